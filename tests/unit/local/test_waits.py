"""Notes of what jobs wait for: when it changes, not too often, a bounded number at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, RemoveNode
from fairlead.core.model.reasons import WaitingForVictims
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.local import waits
from fairlead.local.history_records import JobSpec, JobSubmitted
from fairlead.local.jobs import Jobs
from fairlead.local.waits import FIRST_AFTER_MS, LEAST_GAP_MS, WaitNotes
from fairlead.runtime import Turn
from fairlead.scheduler import Scheduler


@dataclass
class Desk:
    """A scheduler, a book and a clock: what a turn shows to who looks at waits."""

    scheduler: Scheduler = field(default_factory=Scheduler)
    jobs: Jobs = field(default_factory=Jobs)
    notes: WaitNotes = field(default_factory=WaitNotes)
    now_ms: int = 0

    def __post_init__(self) -> None:
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
        self.scheduler.handle(Configure(ClusterSpec(partitions=(PartitionSpec(root=root),))), 0)

    def note(self, record: Any) -> None:
        self.jobs.apply(record, self.now_ms)

    def submit(self, key: str, vcore: int = 1000) -> None:
        resources = Resources({"vcore": vcore})
        spec = JobSpec(key=key, user="u", uid=1, command=("x",), queue="root.a", resources=resources)
        self.note(JobSubmitted(job=spec))
        self.scheduler.handle(AddApplication(ApplicationSpec(id=key, queue="root.a", user="u")), self.now_ms)
        self.scheduler.handle(AddAsks((AskSpec(application=key, key=key, resources=resources),)), self.now_ms)
        self.jobs.follow(self.scheduler.schedule(self.now_ms), self.now_ms)

    def look(self, at_ms: int) -> int:
        self.now_ms = at_ms
        return self.notes.look(cast(Turn, self), self.jobs)

    def story(self, key: str) -> list[tuple[int, str]]:
        job = self.jobs.get(key)
        assert job is not None
        return [(entry.at_ms, entry.detail) for entry in job.history if entry.what == "waits"]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_what_waits_longer_than_a_moment_has_its_reason_noted_once(desk: Desk) -> None:
    """The same reason is not noted again, whatever its numbers."""
    desk.submit("1")
    assert desk.look(FIRST_AFTER_MS - 1) == 0
    assert desk.look(FIRST_AFTER_MS) == 1
    assert desk.look(10**6) == 0
    [(at_ms, said)] = desk.story("1")
    assert (at_ms, said) == (FIRST_AFTER_MS, "there is no node in partition default")


def test_another_reason_is_noted_after_a_while(desk: Desk) -> None:
    """At least some seconds after the last, later ever less often."""
    desk.submit("1", vcore=2000)
    assert desk.look(FIRST_AFTER_MS) == 1
    desk.scheduler.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1000}))), FIRST_AFTER_MS)
    assert desk.look(FIRST_AFTER_MS + LEAST_GAP_MS - 1) == 0
    assert desk.look(FIRST_AFTER_MS + LEAST_GAP_MS) == 1
    assert "the only node has" in desk.story("1")[-1][1]


def test_attempts_are_called_as_their_jobs(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a story too: nobody knows a job 60#7."""
    desk.submit("1")
    monkeypatch.setattr(Scheduler, "why", lambda *_: WaitingForVictims("n", ("60#7",)))
    desk.look(FIRST_AFTER_MS)
    assert desk.story("1") == [(FIRST_AFTER_MS, "space on n is held for it; waiting for 60 to stop")]


def test_the_number_of_notes_grows_with_the_logarithm_of_the_wait(desk: Desk) -> None:
    """A reason that flaps for a day leaves a short story."""
    node = AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1000})))
    desk.submit("1", vcore=2000)
    for second in range(10, 24 * 3600, 10):
        desk.scheduler.handle(node if second % 20 else RemoveNode("n"), second * 1000)
        desk.look(second * 1000)
    assert 10 < len(desk.story("1")) < 50


def test_so_many_are_looked_at_at_once_and_all_come_round(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is forgotten, however many wait."""
    monkeypatch.setattr(waits, "LOOKED_AT_ONCE", 2)
    for key in "12345":
        desk.submit(key)
    assert [desk.look(2_000) for _ in range(4)] == [2, 2, 1, 0]
    assert all(desk.story(key) for key in "12345")
