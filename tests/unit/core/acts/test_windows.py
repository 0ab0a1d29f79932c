"""Windows as time goes on, played step by step: what waits, what starts before, what is stopped, and what is said."""

from __future__ import annotations

from typing import Any

import pytest
from gang_course import formed
from invariants.books import check_books
from priority_clusters import PriorityCluster

from fairlead.core.model.decisions import Allocated, DeclarationRejected, Evict, WindowClosed, WindowOpened
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release, RemoveWindow, SetWindow
from fairlead.core.model.reasons import WindowAhead
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec, WindowSpec
from fairlead.scheduler import Scheduler

START, LENGTH = 1_000_000, 100_000


class Course(PriorityCluster):
    """A cluster that is looked at as time goes on."""

    def window(self, name: str = "w", **given: Any) -> None:
        self.handle(SetWindow(WindowSpec(**{"name": name, "starts_ms": START, "length_ms": LENGTH} | given)))

    def until(self, now_ms: int) -> set[str]:
        """Let time pass, from timer to timer; what has started by then."""
        while (due_ms := self.s.next_wakeup_ms()) is not None and due_ms <= now_ms:
            self.at(due_ms)
        self.at(now_ms)
        return self.started()

    def at(self, now_ms: int) -> None:
        self.now_ms = max(now_ms, self.now_ms)
        self.decided += self.s.schedule(self.now_ms)
        check_books(self.s)
        copy = Scheduler.load(self.s.dump())
        check_books(copy)
        assert copy.dump() == self.s.dump()

    def started(self) -> set[str]:
        return {d.application for d in self.decided if isinstance(d, Allocated)}

    def of(self, user: str, key: str, queue: str = "root.a", **more: Any) -> None:
        self.handle(AddApplication(ApplicationSpec(id=key, queue=queue, user=user, groups=(f"{user}s",))))
        self.handle(AddAsks((AskSpec(application=key, key=key, resources=Resources({"vcore": 1000}), **more),)))


def test_what_would_run_into_it_waits_and_says_so() -> None:
    """Without a limit from the beginning on; with one as soon as it reaches into the window, not before."""
    c = Course()
    c.window(why="disks")
    c.submit("none", 1)
    c.submit("fits", 1, time_limit_ms=START)
    assert c.until(0) == {"fits"}
    assert c.s.why("none", "none") == WindowAhead("w", START, START + LENGTH, None, "disks", False)
    c.now_ms = 1
    c.submit("late", 1, time_limit_ms=START)
    assert c.until(1) == {"fits"}
    reason = c.s.why("late", "late")
    assert isinstance(reason, WindowAhead)
    assert reason.sentence() == "would run into window w (disks): its time limit reaches into it"


def test_one_that_waits_for_room_begins_to_reach_into_it() -> None:
    """It would have fitted when it came; its turn comes too late, and then it waits for the end."""
    c = Course()
    c.window()
    c.submit("first", 4, time_limit_ms=START // 2)
    c.submit("second", 4, time_limit_ms=START // 2)
    assert c.until(START // 2) == {"first"}
    c.finished("first")
    c.now_ms += 1
    assert c.until(c.now_ms) == {"first"}
    assert isinstance(c.s.why("second", "second"), WindowAhead)
    assert c.until(START + LENGTH - 1) == {"first"}
    assert c.until(START + LENGTH) == {"first", "second"}


def test_it_opens_over_what_runs_and_names_it() -> None:
    c = Course()
    c.submit("old", 1)
    c.until(0)
    c.window()
    c.until(START)
    opened = [d for d in c.decided if isinstance(d, WindowOpened)]
    assert opened == [WindowOpened("w", START + LENGTH, ("old/old",))]
    reason_of_new = (c.submit("new", 1, time_limit_ms=1), c.until(START + 1), c.s.why("new", "new"))[-1]
    assert isinstance(reason_of_new, WindowAhead)
    assert reason_of_new.is_open
    assert c.until(START + LENGTH) == {"old", "new"}
    assert [d for d in c.decided if isinstance(d, WindowClosed)] == [WindowClosed("w", None)]
    assert not list(c.s.cluster.admission.windows), "one that does not come again is gone"


def test_what_runs_is_stopped_where_that_is_wanted() -> None:
    """Not before it begins, and not what it is for."""
    c = Course()
    c.of("ann", "anns")
    c.submit("other", 1)
    c.until(0)
    c.window(stop_running=True, users=("ann",))
    c.until(START - 1)
    assert not [d for d in c.decided if isinstance(d, Evict)]
    c.until(START)
    assert [(d.application, d.rule) for d in c.decided if isinstance(d, Evict)] == [("other", "window")]
    assert [d.stays for d in c.decided if isinstance(d, WindowOpened)] == [()]
    c.until(START + 5)
    assert len([d for d in c.decided if isinstance(d, Evict)]) == 1, "it is told once"


@pytest.mark.parametrize("given", [{"queues": ("root.a",)}, {"users": ("ann",)}, {"groups": ("anns",)}])
def test_those_it_is_for_start_as_ever(given: dict[str, Any]) -> None:
    c = Course()
    c.window(starts_ms=0, **given)
    c.of("ann", "mine")
    c.of("bob", "his", "root.b")
    assert c.until(10) == {"mine"}


def test_who_has_no_groups_has_one_of_the_own_name() -> None:
    """As with access lists and limits."""
    c = Course()
    c.window(starts_ms=0, groups=("ann",))
    c.handle(AddApplication(ApplicationSpec(id="mine", queue="root.a", user="ann")))
    c.handle(AddAsks((AskSpec(application="mine", key="mine", resources=Resources({"vcore": 1000})),)))
    assert c.until(10) == {"mine"}


def test_other_nodes_take_what_it_keeps_away() -> None:
    """Only the named ones are kept free; on them what ends in time starts."""
    c = Course(nodes={"n1": 1, "n2": 1})
    c.window(nodes=("n1",))
    for key in ("a", "b"):
        c.submit(key, 1)
    c.submit("short", 1, time_limit_ms=10)
    assert c.until(0) == {"a", "short"}
    placed = {d.application: d.node for d in c.decided if isinstance(d, Allocated)}
    assert placed == {"a": "n2", "short": "n1"}
    assert not isinstance(c.s.why("b", "b"), WindowAhead), "n2 would do, and is full"


def test_a_course_comes_every_week_until_it_is_cancelled() -> None:
    c = Course(QueueSpec(name="a"), QueueSpec(name="course"))
    c.window(every_ms=10 * LENGTH, queues=("root.course",))
    c.until(START + 25 * LENGTH)
    assert [d.next_ms for d in c.decided if isinstance(d, WindowClosed)] == [
        START + 10 * LENGTH,
        START + 20 * LENGTH,
        START + 30 * LENGTH,
    ]
    c.submit("endless", 1)
    assert c.until(c.now_ms + 1) == set()
    c.handle(RemoveWindow("w"))
    assert c.until(c.now_ms) == {"endless"}
    c.handle(RemoveWindow("w"))
    assert isinstance(c.decided[-1], DeclarationRejected)


def test_a_change_moves_what_waits() -> None:
    c = Course()
    c.window()
    c.submit("limited", 4, time_limit_ms=LENGTH)
    c.submit("waits", 4, time_limit_ms=LENGTH)
    assert c.until(0) == {"limited"}
    c.window(starts_ms=LENGTH)
    assert c.until(1) == {"limited"}
    assert isinstance(c.s.why("waits", "waits"), WindowAhead)
    c.window(starts_ms=START)
    c.finished("limited")
    assert c.until(2) == {"limited", "waits"}


def test_no_turn_is_kept_for_what_a_window_keeps_away() -> None:
    """It waits longer than its queue allows; the others of the queue do not wait for it."""
    c = Course(QueueSpec(name="a", properties={"wait.max": "10s"}))
    c.submit("first", 4, time_limit_ms=20_000)
    c.submit("endless", 4)
    c.until(15_000)
    c.window(starts_ms=10_000_000)
    c.finished("first")
    c.now_ms = 20_000
    c.submit("short", 1, time_limit_ms=1_000)
    assert c.until(60_000) == {"first", "short"}
    assert isinstance(c.s.why("endless", "endless"), WindowAhead)
    assert c.until(10_000_000 + LENGTH + 1) == {"first", "short"}, "short still runs"
    c.finished("short")
    assert "endless" in c.until(10_000_000 + LENGTH + 2)


def test_nothing_is_stopped_for_what_a_window_keeps_away() -> None:
    c = Course()
    c.submit("weak", 4, time_limit_ms=50_000_000)
    c.until(0)
    c.window()
    c.submit("strong", 4, 100)
    c.until(100)
    assert not [d for d in c.decided if isinstance(d, Evict)]
    c.until(START + LENGTH)
    assert [d.application for d in c.decided if isinstance(d, Evict)] == ["weak"]


def test_the_turn_of_what_waits_too_long_is_kept_when_the_window_is_over() -> None:
    """`Reserving.look_again`: while the window was ahead, no node could ever have held it."""
    c = Course(QueueSpec(name="a", properties={"wait.max": "10s"}), QueueSpec(name="b"))
    c.fill("runs", 4, queue="root.b")
    c.window()
    c.submit("long", 4, time_limit_ms=10 * START)
    reserving = c.s.cluster.partitions["default"].reserving
    c.until(START + LENGTH - 1)
    assert not list(reserving.every())
    c.until(START + LENGTH)
    assert [ask.key for ask, _ in reserving.every()] == ["long"]


def test_what_is_on_its_way_to_the_place_of_a_placeholder_waits_for_the_end_of_the_window() -> None:
    g = formed(2)
    g.ask("real", time_limit_ms=2 * START)
    assert [d.key for d in g.run() if isinstance(d, Evict)] == ["p0"]
    g.do(SetWindow(WindowSpec(name="w", starts_ms=START, length_ms=LENGTH)))
    assert g.app.asks["real"].pending
    g.do(Release("g", "p0", Cause.PLACEHOLDER_REPLACED))
    assert sorted(g.running) == ["p1"]
    g.now = START + LENGTH
    assert [d.key for d in g.run() if isinstance(d, Evict)] == ["p1"]


def test_a_placeholder_keeps_off_with_the_time_for_its_gang_and_the_limit() -> None:
    """Its place goes on to the work of its gang, whose own time begins only then, at the latest when it is late."""
    c = Course()
    c.window(every_ms=START)
    size = Resources({"vcore": 1000})
    fits, ends = START - 10_000, {"time_limit_ms": 10_000}
    for key, timeout_ms, more in (("fits", fits, ends), ("late", fits + 1, ends), ("none", 1, {})):
        spec = ApplicationSpec(id=key, queue="root.a", placeholder_ask=size, placeholder_timeout_ms=timeout_ms)
        c.handle(AddApplication(spec))
        c.handle(
            AddAsks((AskSpec(application=key, key="p", resources=size, task_group="g", placeholder=True, **more),))
        )
    assert c.until(0) == {"fits"}
    assert c.s.why("late", "p") == WindowAhead("w", START, START + LENGTH, START + 1, "", False)
    assert c.until(START + LENGTH + 1) == {"fits"}, "nor between two of its times"
    c.handle(RemoveWindow("w"))
    assert c.until(START + LENGTH + 2) == {"fits", "late", "none"}


def test_a_gang_is_over_before_a_window_that_comes_again() -> None:
    """Its work starts as late as it may, and ends in time; before, no gang ever started beside such a window."""
    c = Course()
    c.window(every_ms=START)
    size, minute = Resources({"vcore": 1000}), 60_000
    gang = ApplicationSpec(id="g", queue="root.a", placeholder_ask=size, placeholder_timeout_ms=minute)
    c.handle(AddApplication(gang))
    more = {"application": "g", "resources": size, "task_group": "g", "time_limit_ms": minute}
    c.now_ms = START - 2 * minute
    c.handle(AddAsks((AskSpec(key="p", placeholder=True, **more),)))
    assert c.until(c.now_ms) == {"g"}
    c.now_ms = START - minute - 1
    c.handle(AddAsks((AskSpec(key="work", **more),)))
    c.at(c.now_ms)
    c.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED))
    c.until(START - 1)
    assert [(d.key, d.node) for d in c.decided if isinstance(d, Allocated)] == [("p", "n1"), ("work", "n1")]
