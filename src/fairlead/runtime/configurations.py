"""The queue files that were in force, one after the other: a history that survives restarts; and putting one in force.

Decides how each is numbered, how many are kept, whether there is anything to do at all, and what is noted of the
difference, queue by queue. Never judges one (the scheduler refuses what cannot be applied). Invariant: the history is a
function of the journal's `Configure` entries that took effect; numbers are given once and never again; one change is
one entry of the journal and its note, in one turn; a refused one changes nothing.

It is part of every snapshot, so it outlives the journal records that made it, when those are pruned. The newest
`KEEP` versions stay, fewer if their texts are long; the one in force, the one before it, and the newest of each source
(by that a start knows whether its file says something new) always stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model.decisions import ConfigurationRejected
from fairlead.core.model.events import Configure
from fairlead.core.model.specs import ClusterSpec
from fairlead.insight.preview import queue_settings
from fairlead.journal import codec

if TYPE_CHECKING:
    from fairlead.runtime.books import Turn
    from fairlead.scheduler import Scheduler

KEEP = 100
KEEP_CHARACTERS = 8 * 2**20
"""Of all texts together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A queue file that was put in force."""

    number: int
    at_ms: int
    who: str
    source: str
    """Where it came from: `file PATH`, `api`, `rollback`, `built-in`."""
    checksum: str
    origin: int
    """The version whose text it is: itself, or an earlier one that was put back."""
    text: str


class Configurations:
    """All versions that are kept, oldest first."""

    def __init__(self) -> None:
        self._versions: list[Version] = []
        self._given = 0

    def __len__(self) -> int:
        return len(self._versions)

    def __iter__(self) -> Iterator[Version]:
        return iter(self._versions)

    @property
    def current(self) -> Version | None:
        """The one in force; None before the first."""
        return self._versions[-1] if self._versions else None

    def add(self, event: Configure, at_ms: int) -> Version:
        """It took effect."""
        self._given += 1
        earlier = self.get(event.restores)
        version = Version(
            number=self._given,
            at_ms=at_ms,
            who=event.who,
            source=event.source,
            checksum=event.spec.checksum,
            origin=earlier.origin if earlier is not None else self._given,
            text=event.spec.text,
        )
        self._versions.append(version)
        self._drop_oldest()
        return version

    def _drop_oldest(self) -> None:
        size = sum(len(version.text) for version in self._versions)
        stay = {*self._versions[-2:], *{version.source: version for version in self._versions}.values()}
        for version in self._versions[:]:
            if len(self._versions) <= KEEP and size <= KEEP_CHARACTERS:
                return
            if version not in stay:
                self._versions.remove(version)
                size -= len(version.text)

    def get(self, number: int) -> Version | None:
        """The version of this number, if it is kept."""
        return next((version for version in self._versions if version.number == number), None)

    def before(self) -> Version | None:
        """What to go back to: the version before the one in force; before its origin, where that was put back.

        So going back twice goes two steps back, and not back and forth.
        """
        now = self.current
        if now is None:
            return None
        earlier = [v for v in self._versions if v.number < now.origin and v.text != now.text]
        return earlier[-1] if earlier else None

    def from_source(self, source: str) -> Version | None:
        """The newest version that came from there."""
        return next((version for version in reversed(self._versions) if version.source == source), None)

    def dump(self) -> dict[str, Any]:
        """As plain values."""
        return {"given": self._given, "versions": [asdict(version) for version in self._versions]}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Configurations:
        """What `dump` described."""
        found = cls()
        found._given = state["given"]
        found._versions = [Version(**version) for version in state["versions"]]
        return found


# -- putting one in force ---------------------------------------------------------------------------------------------


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


def configure(
    turn: Turn, spec: ClusterSpec, *, who: str, source: str, restores: int = 0, kept_as_newest: bool = False
) -> Applied:
    """Put a queue file in force unless it is already. A repeated call with the same text does nothing; with
    `kept_as_newest` it makes a version all the same where the newest one of this source has another text.
    """
    cluster = turn.scheduler.cluster
    now = turn.books.configurations.current
    if now is not None and cluster.checksum == spec.checksum and cluster.text == spec.text:
        newest = turn.books.configurations.from_source(source)
        if not kept_as_newest or (newest is not None and newest.checksum == spec.checksum):
            return Applied(now.number)
        restores = now.number
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
