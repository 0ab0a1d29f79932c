"""Places under `maxapplications`: whoever runs nothing and only waits to be tried again, or is idle, holds none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, Decision
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Event, Release
from fairlead.core.model.reasons import ApplicationsAtMax, AttemptHeldBack, LimitApplications
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.scheduler import Scheduler

SOON = RetrySpec(limit=3)
LATER = RetrySpec(limit=3, backoff_ms=40_000)


class Place:
    """The leaf `root.one`, in which one application may run: by the queue itself, or by a limit of each user."""

    def __init__(self, cores: int = 8, by_limit: bool = False, most: int = 1) -> None:
        limits = (LimitSpec(users=("*",), max_applications=most),) if by_limit else ()
        leaf = QueueSpec(name="one", max_applications=0 if by_limit else most, limits=limits)
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
        self.now_ms = 0
        self.do(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": cores}))))

    def do(self, event: Event) -> list[Decision]:
        decided = self.s.handle(event, self.now_ms)
        check_books(self.s)
        return decided

    def submit(self, app: str, *keys: str, cores: int = 1, **fields: Any) -> None:
        if app not in self.apps:
            self.do(AddApplication(ApplicationSpec(id=app, queue="root.one", user="ann")))
        amount = Resources({"vcore": cores})
        self.do(AddAsks(tuple(AskSpec(application=app, key=k, resources=amount, **fields) for k in keys)))

    def end(self, app: str, key: str, cause: Cause = Cause.FINISHED, exit_code: int = 1) -> None:
        self.do(Release(app, key, cause, exit_code=exit_code))

    def run(self, wait_ms: int = 0) -> list[str]:
        """The keys that start once so much time has passed; that a restart in between changes nothing is checked."""
        self.now_ms += wait_ms
        again = Scheduler.load(json.loads(json.dumps(self.s.dump())))
        decided = self.s.schedule(self.now_ms)
        assert again.schedule(self.now_ms) == decided
        assert again.dump() == self.s.dump()
        check_books(self.s)
        return [d.key for d in decided if isinstance(d, Allocated)]

    @property
    def apps(self) -> Any:
        return self.s.cluster.partitions["default"].applications

    def states(self) -> dict[str, str]:
        return {name: str(app.state) for name, app in self.apps.items()}


BOTH = pytest.mark.parametrize("by_limit", [False, True], ids=["queue", "user"])


@BOTH
def test_a_back_off_holds_no_place(by_limit: bool) -> None:
    """ann's job failed and is held back for 40 s: bob's runs meanwhile, and ann's comes back when that is over."""
    p = Place(by_limit=by_limit)
    p.submit("ann", "a", retry=LATER)
    p.submit("bob", "b")
    assert p.run() == ["a"]
    p.end("ann", "a")
    assert p.states() == {"ann": "Accepted", "bob": "Accepted"}
    assert p.run() == ["b"]
    assert isinstance(p.s.why("ann", "a#2"), AttemptHeldBack)
    assert p.run(40_000) == []
    why = p.s.why("ann", "a#2")
    assert isinstance(why, LimitApplications if by_limit else ApplicationsAtMax)
    p.end("bob", "b", exit_code=0)
    assert p.run() == ["a#2"]
    assert p.states()["ann"] == "Running"


@BOTH
def test_a_retry_that_waits_for_room_holds_no_place(by_limit: bool) -> None:
    """It wants four cores that are taken elsewhere by now; another one runs in the place that it does not need."""
    p = Place(4, by_limit=by_limit, most=2)
    p.submit("ann", "a", cores=4, retry=SOON)
    assert p.run() == ["a"]
    p.submit("old", "o", retry=SOON)
    p.end("ann", "a", Cause.INTERRUPTED)
    p.submit("now", "n", node="n")
    assert p.run() == ["o"]
    p.submit("bob", "b")
    assert p.run() == []
    p.end("old", "o", exit_code=0)
    assert p.run() == ["b"]
    assert isinstance(p.s.why("ann", "a#2"), LimitApplications if by_limit else ApplicationsAtMax)


@BOTH
def test_what_is_tried_again_goes_ahead_of_those_that_never_ran(by_limit: bool) -> None:
    """Whatever their age and priority: all of them wait for the one place."""
    p = Place(by_limit=by_limit)
    p.submit("first", "f")
    p.submit("urgent", "u", priority=9)
    p.submit("ann", "a", priority=10, retry=LATER)
    assert p.run() == ["a"]
    p.end("ann", "a")
    assert p.run() == ["u"]
    assert p.run(40_000) == []
    p.end("urgent", "u", exit_code=0)
    assert p.run() == ["a#2"]
    p.end("ann", "a#2", exit_code=0)
    assert p.run() == ["f"]


@BOTH
def test_without_anybody_else_it_comes_straight_back(by_limit: bool) -> None:
    """An interrupted job takes the place again in the next run."""
    p = Place(by_limit=by_limit)
    p.submit("ann", "a", retry=SOON)
    assert p.run() == ["a"]
    p.end("ann", "a", Cause.INTERRUPTED)
    assert p.run() == ["a#2"]
    assert p.states() == {"ann": "Running"}


@BOTH
def test_an_application_of_which_something_runs_keeps_its_place(by_limit: bool) -> None:
    """A member that is tried again comes back into an application that runs."""
    p = Place(by_limit=by_limit)
    p.submit("ann", "a", "b", retry=LATER)
    p.submit("bob", "c")
    assert p.run() == ["a", "b"]
    p.end("ann", "a")
    assert p.states()["ann"] == "Running"
    assert p.run(40_000) == ["a#2"]
    p.end("ann", "a#2")
    p.end("ann", "b", exit_code=0)
    assert p.run() == ["c"]


@BOTH
def test_ordinary_work_that_waits_keeps_the_place_as_before(by_limit: bool) -> None:
    """As in YuniKorn: an application that has run and has plain asks waiting counts. It gives way without them."""
    p = Place(4, by_limit=by_limit, most=1)
    p.submit("ann", "a", cores=4, retry=LATER)
    p.submit("ann", "plain", cores=5)
    assert p.run() == ["a"]
    p.submit("bob", "b")
    p.end("ann", "a")
    assert p.states()["ann"] == "Running"
    assert p.run() == []
    p.do(Release("ann", "plain"))
    assert p.states()["ann"] == "Accepted"
    assert p.run() == ["b"]


def test_a_retry_that_is_withdrawn_lets_its_application_complete() -> None:
    """It is accepted, with nothing to come and nothing that waits."""
    p = Place()
    p.submit("ann", "a", retry=LATER)
    p.run()
    p.end("ann", "a")
    p.do(Release("ann", "a#2"))
    assert p.states() == {"ann": "Completing"}
    p.run(30_000)
    assert p.states() == {}


def test_idle_work_that_was_stopped_comes_back_after_ordinary_work() -> None:
    """The ordinary job has the higher priority and waited for the place; idle work takes what others leave over."""
    p = Place(4)
    p.submit("idle", "i", cores=4, idle=True)
    assert p.run() == ["i"]
    p.submit("bob", "b", priority=5)
    p.submit("idle-too", "j", idle=True)
    p.end("idle", "i", Cause.PREEMPTED_BY_SCHEDULER)
    assert p.states()["idle"] == "Accepted"
    assert p.run() == ["b"]
    p.end("bob", "b", exit_code=0)
    assert p.run() == ["j"]  # Of idle work the older first.


def test_idle_work_that_ends_while_more_of_it_waits_holds_no_place() -> None:
    """The rest of an idle array waits for room like other idle work: whoever is not idle goes first."""
    p = Place(4)
    p.submit("idle", "i", "j", cores=4, idle=True)
    assert p.run() == ["i"]
    p.submit("bob", "b")
    p.end("idle", "i", exit_code=0)
    assert p.run() == ["b"]
    p.end("bob", "b", exit_code=0)
    assert p.run() == ["j"]


def test_new_work_for_an_application_that_is_accepted_again_waits_with_it() -> None:
    """It has not started as far as the place is concerned."""
    p = Place()
    p.submit("ann", "a", retry=LATER)
    p.submit("bob", "b")
    p.run()
    p.end("ann", "a")
    assert p.run() == ["b"]
    p.submit("ann", "new")
    assert p.run() == []
    p.end("bob", "b", exit_code=0)
    assert p.run() == ["new"]
    assert p.run(40_000) == ["a#2"]
