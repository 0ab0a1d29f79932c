"""Commands that ask, why and when, and answers in lines of text, also those of `whatif`.

Decides in which words an answer is printed. Never changes anything; the service works the answers out on a copy of its
state. Invariant: `--json` prints what the service said; there is a line for each kind of thing that would change, none
for what would not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli import expected, parts, render
from fairlead.cli.app import (
    command,
    connected,
    key_or_none,
    named,
    namespace_option,
    show_output,
    wrong_usage,
)
from fairlead.cli.render import Screen
from fairlead.cli.starts import print_starts
from fairlead.cli.values import parse_duration
from fairlead.client.sync import Client
from fairlead.wire.questions import DRAFT
from fairlead.wire.stopped import why_stopped

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job
    from fairlead.wire.questions import Fate, Fates, Otherwise
    from fairlead.wire.verdicts import Verdict, Why

NAMED = 8
_PARTS = (
    ("starts", "would start"),
    ("elsewhere", "would start on another node"),
    ("starts_not", "would not start, and would without it"),
    ("evicted", "would be told to stop"),
    ("spared", "would go on, and would be told to stop without it"),
    ("ends", "would be gone"),
)


def difference_lines(answer: Otherwise, forecast: bool = False) -> Iterator[str]:
    """What would be otherwise."""
    head = f"If {answer.supposed}:"
    for refused in answer.refused:
        yield f"{head} it would be refused: {refused.sentence}"
    if answer.admitted:
        yield f"  It would be {answer.admitted.sentence}."
    if answer.refused:
        return
    if answer.empty and not (answer.waits or answer.expected or answer.unseen):
        yield f"{head} nothing would be otherwise now."
        return
    yield head
    for part, words in _PARTS:
        if (fates := getattr(answer, part)).count:
            yield f"  {words}: {_jobs(fates)}"
    for each in answer.waits:
        yield f"  {each.key} would wait: {each.reason.sentence}"
    for share in answer.shares:
        if share.queue.count(".") or len(answer.shares) == 1:
            before, after = (render.amounts(used) if used else "nothing" for used in (share.before, share.after))
            yield f"  {share.queue} would use {after} (now {before})"
    if forecast:
        yield from _begins(answer)
        yield from _shifts(answer)
    elif any(each.key.partition(".")[0] == DRAFT for each in answer.waits):
        yield "  When it is expected to start: `--forecast`."


def _begins(answer: Otherwise) -> Iterator[str]:
    """When what is submitted starts; of an array the last part of it, as `when` says it."""
    if answer.begins:
        latest = max(answer.begins, key=lambda each: inf if each.median_ms is None else each.median_ms)
        yield from (f"  {line}" for line in expected.interval(latest, time.time_ns() // 1_000_000))


def _jobs(part: Fates) -> str:
    named = [_job(job) for job in part.jobs[:NAMED]]
    rest = part.count - len(named)
    if rest:
        others = f", {part.hidden} of them not yours to see" if part.hidden else ""
        named.append(f"{rest} more{others}" if named else f"{rest} of others")
    return ", ".join(named)


def _job(job: Fate) -> str:
    about = [job.user] if job.user else []
    about += [f"on {job.node}"] if job.node else []
    about += [f"for {job.on_behalf_of.rpartition('/')[2]}"] if job.on_behalf_of else []
    about += [why_stopped(job.rule)] if job.rule else []
    about += [f"against the disruption budget {' and '.join(job.violates)}"] if job.violates else []
    return f"{job.key} ({', '.join(about)})" if about else job.key


def _shifts(answer: Otherwise) -> Iterator[str]:
    shifts, unseen = answer.expected, answer.unseen
    if not shifts and not unseen:
        yield "  no expected start would move"
    for each in shifts[:NAMED]:
        yield f"  {each.key} would be expected at {_at(each.after_ms)} instead of {_at(each.before_ms)}"
    if len(shifts) > NAMED:
        yield f"  and {len(shifts) - NAMED} more expected starts would move"
    if shifts and not answer.known:
        yield "  these times are guessed: nothing has ended here so far, which would tell how long work takes"
    if unseen:
        yield (
            f"  for {unseen} that {'waits' if unseen == 1 else 'wait'} it is not known whether the start would move: "
            f"the time for an answer was over; `--spend 1m` looks farther"
        )


def _at(at_ms: int | None) -> str:
    return render.moment(at_ms) if at_ms is not None else "no time in sight"


def why_lines(answer: Why, everything: bool = False) -> Iterator[str]:
    """Why a job is in its state, and what to do; with `everything` all numbers and all changes that would help."""
    if answer.parts:
        yield from parts.why_lines(answer)
        return
    place = f" ({_ordinal(answer.queue_position)} in its queue)" if answer.queue_position else ""
    before = _before(answer.verdict) if answer.verdict is not None else ""
    yield f"{answer.key}: {answer.state}{place}: {answer.sentence}{before}"
    if answer.expected_start_ms:
        at = render.moment(answer.expected_start_ms)
        yield f"  By the time limits of what runs it has room at {at}, unless others take it."
    if answer.verdict is None:
        return
    yield from (f"  {line}" for line in answer.verdict.advice)
    if everything or not answer.verdict.advice:
        yield from (f"  {line}" for line in answer.verdict.details)
    if everything:
        for change in answer.verdict.changes or ():
            yield from (f"  {line}" for line in change.difference.splitlines())


def _before(verdict: Verdict) -> str:
    """Which come first, as the end of a sentence."""
    if not verdict.ahead:
        return ""
    rest = verdict.position - 1 - len(verdict.ahead)
    first = "comes" if verdict.position == 2 else "come"
    return f"; {', '.join(verdict.ahead)}{f' and {rest} more' if rest else ''} {first} first"


def waiting_line(job: Job) -> str:
    """One of many that wait, and why."""
    return f"{job.key}: {job.name} in {job.queue}: {job.reason.sentence if job.reason else 'not looked at yet'}"


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


# -- answers in lines of text -----------------------------------------------------------------------------------------


SPEND_MAX_MS = 60_000
"""As the service has it; it is told before one is asked."""
SHORT_S, LONG_S = 3.0, 10.0
"""What would start it is looked for so long: for what to do, and for everything."""
all_option = click.option(
    "--all", "everything", is_flag=True, help="Say all numbers, and all changes that would start it; up to 10 seconds."
)

WHY_EXAMPLES = """
fairlead why 17
fairlead why 17 --all
fairlead why            (everything that waits)
fairlead why pod/web-1 -n shop     (on a cluster)
"""
WHEN_EXAMPLES = """
fairlead when 17
fairlead when           (all that waits for room)
fairlead when pod/web-1 -n shop     (on a cluster)
"""


# -- why ----------------------------------------------------------------------------------------------------------


@command("why", examples=WHY_EXAMPLES)
@key_or_none("Key of the job; everything that waits if left out.")
@all_option
@namespace_option
@show_output
@connected
def why(client: Client, key: str | None, everything: bool, namespace: str | None, output: str) -> None:
    """Say why a job waits, and what to do.

    First what is in the way and which jobs come first, then the one change that is recommended: nothing that stops
    work before something that does, what you can do before what an administrator can, a wait before new hardware.
    Each change was tried on a copy, and one unit less was not enough. With --all: every number, every change, and the
    difference of the queue file where that is what would change.
    """
    if key is not None:
        seconds = LONG_S if everything else SHORT_S
        answer = client.why(named(client, key, namespace), changes=True, seconds=seconds)
        tell(answer, output, lambda: why_lines(answer, everything))
        return
    if everything:
        raise wrong_usage("why: --all needs the key of one job")
    jobs = list(client.jobs(state="waiting", namespace=namespace))
    fields = ("key", "name", "queue", "state", "reason")
    shown = [{name: getattr(job, name) for name in fields} for job in jobs]
    nothing = [] if jobs or Screen.of().width is None else ["Nothing waits."]
    tell(shown, output, lambda: [*nothing, *(waiting_line(job) for job in jobs)])


# -- when ---------------------------------------------------------------------------------------------------------


@command("when", examples=WHEN_EXAMPLES)
@key_or_none("Key of the job; the line of all that waits for room if left out.")
@click.option(
    "--spend", default="", metavar="TIME", help="Look ahead for so long, such as 30s; 5 s if left out, 1m at most."
)
@namespace_option
@show_output
@connected
def when(client: Client, key: str | None, spend: str, namespace: str | None, output: str) -> None:
    """Say when a job that waits is expected to start.

    As an interval in which four of five starts should be, with what it rests on, and how often the service was right.
    Where much waits and the time is not enough to see its start: after which time.
    """
    now_ms = int(time.time() * 1000)
    if key is None:
        print_starts(client, seconds(spend) if spend else None, output)
    else:
        answer = client.when(named(client, key, namespace), seconds=seconds(spend) if spend else None)
        tell(answer, output, lambda: [*expected.lines(answer, now_ms), *expected.score_lines(answer.score)])


def tell(answer: Any, output: str, lines: Callable[[], Iterable[str]]) -> None:
    """Print an answer, in lines for people."""
    if not render.write_value(answer, output):
        screen = Screen.of()
        for line in lines():
            screen.line(render.plain(line))


def seconds(spend: str) -> float:
    """The time of `--spend`."""
    millis = parse_duration(spend, "--spend")
    if not 0 < millis <= SPEND_MAX_MS:
        raise wrong_usage(f"--spend: more than 0 and at most 1m, not '{spend}'")
    return millis / 1000
