"""`fairlead journal at`: questions to a moment in the past.

Decides which questions a past state can be asked, and brings the state back from the journal file: the nearest snapshot
before, and the records up to that moment. Never writes to the journal and never talks to a service. Invariant: the
state that is asked is the one that the service had then.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli import render
from fairlead.cli.app import Failure, command, show_output, wrong_usage
from fairlead.places import journal_file
from fairlead.wire.fields import with_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.model.specs import ClusterSpec
    from fairlead.insight.suppositions import Place
    from fairlead.insight.trial import Name
    from fairlead.journal.replay import Moment
    from fairlead.scheduler import Scheduler

EXAMPLES = """
fairlead journal at '2026-05-04 14:05' why
fairlead journal at '2026-05-04 14:05' why 17 --all
fairlead journal at 14:05 whatif cancel 12
fairlead journal at '30m ago' whatif priority 17 100
"""
_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d")
_LONGEST = 40
"""A moment is no longer than that, and Python reads no number of thousands of digits."""


@command("at", examples=EXAMPLES)
@click.argument(
    "moment", metavar="TIME", help="Such as '2026-05-04 14:05', 14:05 (today), '30m ago', or a record as '@812'."
)
@click.argument(
    "question", nargs=-1, metavar="QUESTION...", help="Such as why [KEY], or whatif CHANGE..., as those commands."
)
@click.option(
    "--path", type=click.Path(path_type=Path), metavar="PATH", help="The journal file, or the state directory it is in."
)
@click.option("--all", "everything", is_flag=True, help="With why KEY: also all changes that would have started it.")
@show_output
def at(moment: str, question: tuple[str, ...], path: Path | None, everything: bool, output: str) -> None:
    """Ask why and what if of the state of a moment in the past.

    The journal is only read. Without a question it says what waited and ran then.
    """
    from fairlead.insight.by_job import by_job

    then = _open(moment, path)
    if then.seq < 1:
        raise Failure(_nothing_yet(path))
    scheduler: Any = then.scheduler
    words = list(question)
    match words:
        case []:
            answer, lines = _overview(scheduler)
        case ["why"]:
            answer, lines = _why_all(scheduler)
        case ["why", key]:
            answer, lines = _why(scheduler, key, everything)
        case ["whatif", what, *rest]:
            answer, lines = _what_if(scheduler, what, rest)
        case _:
            raise _no_question(words)
    if render.write_value({"seq": then.seq, "at_ms": then.at_ms, "answer": by_job(answer)}, output):
        return
    screen = render.Screen.of()
    screen.line(f"As it was after record {then.seq}, {render.moment(then.at_ms)}:")
    for line in lines:
        screen.line(render.plain(by_job(line)))


def _no_question(words: list[str], found: str = "") -> Failure:
    from fairlead.insight.suppositions import usage

    return wrong_usage(f"journal at: {' '.join(words)!r} is no question{found}; ask why [KEY], {usage()}")


def _open(text: str, path: Path | None) -> Moment:
    from fairlead.journal.format import JournalError
    from fairlead.journal.replay import state_at
    from fairlead.scheduler import Scheduler

    seq, at_ms = _moment(text)
    try:
        return state_at(
            journal_file(path),
            lambda state: Scheduler.load(dict(state)) if state else Scheduler(),
            at_ms=at_ms,
            seq=seq,
        )
    except JournalError as error:
        raise Failure(str(error)) from None


def _nothing_yet(path: Path | None) -> str:
    """What is said of a moment before the first record."""
    from fairlead.journal.reader import Reader

    with Reader(journal_file(path)) as reader:
        begins_ms = next((record.at_ms for record in reader.records(reader.first_seq)), None)
    if begins_ms is None:
        return "nothing has been recorded yet: there is no past to ask"
    return f"nothing was there at that moment: the journal begins at {render.moment(begins_ms)}"


def _moment(text: str) -> tuple[int | None, int | None]:
    """A record, or a time in milliseconds."""
    from fairlead.cli.values import parse_duration

    if text.startswith("@") and text[1:].isdecimal() and len(text) < _LONGEST:
        return int(text[1:]), None
    ago = text[1:] if text.startswith("-") else text.removesuffix(" ago")  # Behind `--`, which ends the options: -30m.
    if ago != text:
        return None, int(time.time() * 1000) - parse_duration(ago, "journal at")
    if text.count("-") == 0 and text.count(":") in (1, 2):
        text = f"{time.strftime('%Y-%m-%d')} {text}"
    for form in _FORMS:
        try:
            return None, int(time.mktime(time.strptime(text, form)) * 1000)
        except ValueError:
            continue
    text = render.cut(text, _LONGEST)
    raise wrong_usage(
        f"journal at: {text!r} is no time; write '2026-05-04 14:05', 14:05, '30m ago', or a record as @812"
    )


def _overview(scheduler: Scheduler) -> tuple[Any, list[str]]:
    partitions = scheduler.cluster.partitions.values()
    counts = {
        "applications": sum(len(p.applications) for p in partitions),
        "running": sum(len(node.allocations) for p in partitions for node in p.nodes.nodes.values()),
        "waiting": sum(a.pending_count for p in partitions for a in p.applications.values())
        + sum(1 for p in partitions for _ in p.held_asks),
        "nodes": sum(len(p.nodes.nodes) for p in partitions),
    }
    said = (f"{count} {what.removesuffix('s') if count == 1 else what}" for what, count in counts.items())
    return counts, [", ".join(said)]


def _asks(scheduler: Scheduler, key: str) -> list[Name]:
    """All asks of this key, of the job of this key, or of its parts, also those that are held."""
    return [name for name in _every(scheduler) if key in (name[1], name[2], name[2].partition("#")[0])]


def _every(scheduler: Scheduler) -> Iterator[Name]:
    """Everything that runs, waits in line, or is held."""
    for name, partition in scheduler.cluster.partitions.items():
        yield from ((name, app.id, key) for app in partition.applications.values() for key in app.asks)
        yield from ((name, app, held.spec.key) for app, held in partition.held_asks)


def _one(scheduler: Scheduler, key: str) -> Name:
    """Of several parts the first that waits."""
    found = _asks(scheduler, key)
    if not found:
        raise Failure(f"there was no job {key!r} at that moment; `fairlead journal events` tells what happened when")
    return next((name for name in found if scheduler.why(name[1], name[2], name[0]) is not None), found[0])


def _all_of(scheduler: Scheduler, key: str) -> Name:
    """As an order means it: the name of an application that is none of an ask stands for all it has."""
    partition, application, ask = _one(scheduler, key)
    return partition, application, ask if key in (ask, ask.partition("#")[0]) else ""


def _why_all(scheduler: Scheduler) -> tuple[Any, list[str]]:
    rows, lines = [], []
    for name, application, key in _every(scheduler):
        reason = scheduler.why(application, key, name)
        if reason is not None:
            queue = scheduler.cluster.partitions[name].applications[application].queue.path
            rows.append({"key": key, "application": application, "reason": with_cpu(reason.as_dict())})
            lines.append(f"{key} in {queue}: {reason.sentence()}")
    return rows, lines or ["Nothing waited."]


def _why(scheduler: Scheduler, key: str, everything: bool) -> tuple[Any, list[str]]:
    from fairlead.insight.explain import explain
    from fairlead.insight.search import Effort

    partition, application, ask = _one(scheduler, key)
    verdict = explain(scheduler, application, ask, partition, changes=Effort() if everything else None)
    return verdict, [f"{ask}: {verdict.state}: {verdict.sentence}", *(f"  {line}" for line in verdict.details)]


def _what_if(scheduler: Scheduler, what: str, rest: list[str]) -> tuple[Any, list[str]]:
    from fairlead.cli.questions import difference_lines
    from fairlead.insight.suppositions import kind_of, read_words
    from fairlead.insight.whatif import suppose

    try:
        kind, said = kind_of(read_words(what, rest))
    except (KeyError, ValueError) as error:
        found = f" ({error})" if isinstance(error, ValueError) else ""
        raise _no_question(["whatif", what, *rest], found) from None
    answer = suppose(scheduler, kind.supposed(said, _then(scheduler)))
    return answer, list(difference_lines(answer))


def _then(scheduler: Scheduler) -> Place:
    """What the words of a question mean at that moment."""
    from fairlead.config import ConfigurationError, load_file
    from fairlead.insight.suppositions import Place

    def node(name: str) -> str:
        for partition in scheduler.cluster.partitions.values():
            if name in partition.nodes.nodes:
                return partition.name
        raise Failure(f"there was no node {name!r} at that moment")

    def file(text: str) -> ClusterSpec:
        try:
            return load_file(text)
        except (OSError, ConfigurationError) as error:
            raise Failure(f"{text}: {error}") from None

    return Place(scheduler, lambda key: _all_of(scheduler, key), node, file)
