"""What a new queue file would change, and what it would have made of past work, in lines for people.

Decides the order (what is lost first, then what is new) and the words. Never asks the service. Invariant: where not all
jobs are listed, their number is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cli import render
from fairlead.cli.render import Column, Screen
from fairlead.times import duration

if TYPE_CHECKING:
    from fairlead.wire.configuration import Change, ConfigDifference, ConfigPast, NamedJob, NamedJobs

_SIGNS = {"added": "+", "restarted": "+", "removed": "-", "draining": "-", "changed": "~"}
_STYLES = {"+": "green", "-": "red", "~": "yellow", "!": "red"}
_JOBS = (
    ("would_be_stopped", "!", "would be stopped at once"),
    ("would_fail", "!", "would fail: its partition is removed"),
    ("would_wait", "!", "would start now, and would wait"),
    ("would_wait_for_else", "~", "would wait for something else"),
    ("would_start", "+", "would start"),
)
_SHOWN = 20


def write(screen: Screen, found: ConfigDifference) -> None:
    """Write the difference, or one line where there is none."""
    if found.refused:
        screen.line(screen.styled(render.plain(f"it would be refused: {found.refused.sentence}"), "red"))
        return
    shown = list(lines(found))
    for sign, text in shown:
        screen.line(screen.styled(f"{sign} {render.plain(text)}", _STYLES.get(sign, "")))
    if not shown:
        screen.line("no queue, limit, rule or job would change")


_MEANS = (Column("", least=12, keep_end=True), Column("NOW", right=True), Column("THEN", right=True))


def write_past(screen: Screen, found: ConfigPast) -> None:
    """Write what it would have made of past work."""
    since = render.moment(found.since_ms)
    jobs = "1 job" if found.tasks == 1 else f"{found.tasks:,} jobs"
    screen.line(f"{jobs} that ran or waited since {since}, under the file in force and under this file:")
    for said in found.sentences:
        screen.line(render.plain(said))
    for by, means in (("queue", found.queues), ("user", found.users)):
        if len(means) > 1:
            screen.line(f"\nMean wait by {by}")
            render.table(screen, _MEANS, [[each.name, _mean(each.now_ms), _mean(each.then_ms)] for each in means])
    for note in found.notes:
        screen.line(f"note: {render.plain(note)}")


def _mean(ms: int | None) -> str:
    return "-" if ms is None else duration(ms)


def lines(diff: ConfigDifference) -> Iterator[tuple[str, str]]:
    """Each line with its sign: `+` new, `-` gone, `~` otherwise, `!` somebody's work suffers."""
    for name in diff.partitions_removed:
        yield "-", f"partition {name} is removed, with all that is in it"
    for name in diff.partitions_added:
        yield "+", f"partition {name} is added"
    for setting in diff.settings:
        yield "~", f"{setting.what}: {_value(setting.old)} -> {_value(setting.new)}"
    for each in diff.declared:
        yield (
            _SIGNS.get(each.kind, "~"),
            f"{each.what.replace('-', ' ')} {each.name} {_KINDS.get(each.kind, each.kind)}",
        )
        yield from _changes(each.kind, each.changes if each.kind != "removed" else [])
    for queue in diff.queues:
        sign = _SIGNS.get(queue.kind, "~")
        jobs = f", with {counted(queue.jobs)} in it" if queue.jobs and sign != "~" else ""
        yield sign, f"{queue.queue} {_KINDS.get(queue.kind, queue.kind)}{jobs}"
        yield from _changes(queue.kind, queue.changes)
    for over in diff.over:
        whose = f"{over.who} in {over.queue}" if over.who else over.queue
        what = "number of running jobs" if over.what == "maxapplications" else "maximum"
        used = f"{_value(over.used)} in use of {_value(over.limit)}"
        yield "!", f"{whose} would be over its {what}: {used} ({counted(over.count)})"
        yield from _listed(over.jobs, over.count)
    for name, sign, what in _JOBS:
        part: NamedJobs = getattr(diff, name)
        if part.count:
            yield sign, f"{counted(part.count)}: {what}"
            yield from _listed(part.jobs, part.count)


def counted(jobs: int) -> str:
    """`1 job`, `2 jobs`."""
    return "1 job" if jobs == 1 else f"{jobs} jobs"


def _changes(kind: str, changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    for change in changes:
        was = f"{_value(change.old)} -> " if kind != "added" else ""
        yield " ", f"    {change.what}: {was}{_value(change.new)}"


_KINDS = {
    "added": "is added",
    "changed": "changes",
    "restarted": "takes work again",
    "draining": "takes nothing new, and leaves when it is empty",
    "removed": "is removed",
}


def _listed(jobs: Sequence[NamedJob], count: int) -> Iterator[tuple[str, str]]:
    for job in jobs[:_SHOWN]:
        name = f" {job.name}" if job.name else ""
        reason = f": {job.reason.sentence}" if job.reason else ""
        yield " ", f"    {job.key}{name} of {job.user} in {job.queue}{reason}"
    if count > _SHOWN:
        yield " ", f"    and {count - min(len(jobs), _SHOWN)} more"


def _value(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, dict) and value and all(isinstance(amount, int | float) for amount in value.values()):
        return render.amounts(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
