"""Answers to questions, in lines of text.

Decides the words for what would be otherwise and for when something is expected. Never asks. Invariant: a line for each
kind of thing that would change, none for what would not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.cli import render
from fairlead.times import clock_time

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job
    from fairlead.wire.questions import Fate, Fates, Otherwise, Score, Shift, When, Why

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
            before, after = (render.amounts(used) or "nothing" for used in (share.before, share.after))
            yield f"  {share.queue} would use {after} (now {before})"
    if forecast:
        yield from _shifts(answer.expected, answer.unseen)


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
    about += [f"by {job.rule}"] if job.rule else []
    return f"{job.key} ({', '.join(about)})" if about else job.key


def _shifts(shifts: list[Shift], unseen: int) -> Iterator[str]:
    if not shifts and not unseen:
        yield "  no expected start would move"
    for each in shifts[:NAMED]:
        yield f"  {each.key} would be expected at {_at(each.after_ms)} instead of {_at(each.before_ms)}"
    if len(shifts) > NAMED:
        yield f"  and {len(shifts) - NAMED} more expected starts would move"
    if unseen:
        yield (
            f"  for {unseen} that {'waits' if unseen == 1 else 'wait'} it is not known whether the start would move: "
            f"the time for an answer was over; `--spend 1m` looks farther"
        )


def _at(at_ms: int | None) -> str:
    return render.moment(at_ms) if at_ms is not None else "no time in sight"


def why_lines(answer: Why) -> Iterator[str]:
    """Why a job is in its state."""
    place = f" ({_ordinal(answer.queue_position)} in its queue)" if answer.queue_position else ""
    yield f"{answer.key}: {answer.state}{place}: {answer.sentence}"
    if answer.expected_start_ms:
        at = render.moment(answer.expected_start_ms)
        yield f"  By the time limits of what runs it has room at {at}, unless others take it."
    yield from (f"  {line}" for line in (answer.verdict.details if answer.verdict else ()))


def waiting_line(job: Job) -> str:
    """One of many that wait, and why."""
    return f"{job.key}: {job.name} in {job.queue}: {job.reason.sentence if job.reason else 'not looked at yet'}"


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def score_lines(score: Score) -> Iterator[str]:
    """How often forecasts were right."""
    if score.observed is not None:
        yield (
            f"So far {100 * score.observed:.0f} % of {score.scored} starts came inside their interval "
            f"({100 * score.promised:.0f} % should); {score.early} earlier, {score.late} later."
        )
    else:
        yield f"No forecast has come true or failed yet; {score.open} are open."


def expected_lines(answer: When, now_ms: int) -> Iterator[str]:
    """When something is expected to start."""
    ahead = "nobody" if not answer.ahead else str(answer.ahead)
    early, late, median = answer.earliest_ms, answer.latest_ms, answer.median_ms
    if answer.broken_off and early is not None:
        yield (
            f"{answer.key}: later than {_time(early, now_ms)} in nine of ten futures; {answer.ahead} or more "
            "ahead of it."
        )
        yield (
            f"The time for an answer was over before its start was seen in {answer.broken_off} of {answer.draws} "
            "futures; `--spend 1m` looks farther."
        )
    elif median is None or early is None:
        yield f"{answer.key}: no start in sight; {ahead} ahead of it."
    else:
        until = _time(late, now_ms) if late is not None else "no time in sight"
        yield (
            f"{answer.key}: {100 * answer.coverage:.0f} %: {_time(early, now_ms)} to {until}, most likely about "
            f"{_time(median, now_ms)}; {ahead} ahead of it."
        )
    if answer.never:
        yield f"In {100 * answer.never:.0f} % of {answer.draws} futures it does not start within 30 days."
    played = "Played" if answer.broken_off else "Played through"
    yield f"{played} {answer.draws} futures; taken for granted:"
    for each in answer.assumptions:
        yield f"  {each}"


def _time(at_ms: int, now_ms: int) -> str:
    """The time of day, with the date when that is another one."""
    same_day = render.moment(at_ms)[:10] == render.moment(now_ms)[:10]
    return clock_time(at_ms) if same_day else render.moment(at_ms)
