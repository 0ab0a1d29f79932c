"""Putting a queue file in force: the event, and beside it a note of what became different in which queue.

Decides whether there is anything to do at all. Never judges the file (the scheduler refuses what cannot be applied).
Invariant: one change is one entry of the journal and its note, in one turn; a refused one changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.core.model.decisions import ConfigurationRejected
from fairlead.core.model.events import Configure
from fairlead.core.model.specs import ClusterSpec
from fairlead.insight.preview import queue_settings
from fairlead.journal import codec
from fairlead.runtime.books import Turn
from fairlead.scheduler import Scheduler

MOST_NOTED = 500
"""Differences in one note, at most; the story of work needs no more."""


@codec.register
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDifference:
    """One thing that is set otherwise in a queue from now on; plain values, None where nothing is set."""

    partition: str
    queue: str
    what: str
    old: object
    new: object


@codec.register
@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesReconfigured:
    """A new queue file is in force, and this is what it changed in queues that were there before."""

    version: int
    who: str
    source: str
    differences: tuple[QueueDifference, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of it. `refused`: why it was not applied; `version`: the number in force now."""

    version: int
    changed: bool = False
    refused: str = ""


def configure(turn: Turn, spec: ClusterSpec, *, who: str, source: str, restores: int = 0) -> Applied:
    """Put a queue file in force unless it is already. A repeated call with the same text does nothing."""
    cluster = turn.scheduler.cluster
    now = turn.books.configurations.current
    if now is not None and cluster.checksum == spec.checksum and cluster.text == spec.text:
        return Applied(now.number)
    before = _settings(turn.scheduler)
    for decision in turn.event(Configure(spec, who, source, restores)):
        if isinstance(decision, ConfigurationRejected):
            return Applied(now.number if now else 0, refused=decision.reason.sentence())
    version = turn.books.configurations.current
    assert version is not None, "a configuration that took effect is in the history"
    found = _differences(before, _settings(turn.scheduler))
    if found:
        turn.note(
            QueuesReconfigured(version=version.number, who=who, source=source, differences=tuple(found[:MOST_NOTED]))
        )
    return Applied(version.number, changed=True)


Settings = dict[tuple[str, str], dict[str, object]]


def _settings(scheduler: Scheduler) -> Settings:
    return {
        (name, queue.path): queue_settings(partition, queue)
        for name, partition in scheduler.cluster.partitions.items()
        for queue in partition.root.walk()
    }


def _differences(before: Settings, after: Settings) -> list[QueueDifference]:
    found = []
    for place, old in before.items():
        new = after.get(place)
        if new is None:
            continue
        for what in old | new:
            if old.get(what) != new.get(what):
                difference = QueueDifference(
                    partition=place[0], queue=place[1], what=what, old=old.get(what), new=new.get(what)
                )
                found.append(difference)
    return found
