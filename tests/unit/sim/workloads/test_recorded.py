"""A recorded past as a workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairlead.config import load_text
from fairlead.core.model.conditions import MET, Conditions, Dependency
from fairlead.core.model.constraints import Taint
from fairlead.core.model.decisions import Allocated, Evict, Released
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    Configure,
    DrainNode,
    Event,
    LabelNode,
    MoveApplication,
    Release,
    RemoveNode,
    RemovePriorityClass,
    SetAtOnce,
    SetConditions,
    SetPriority,
    SetPriorityClass,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, PriorityClassSpec, RetrySpec
from fairlead.scheduler import Scheduler
from fairlead.sim.columns import NOT_YET, End
from fairlead.sim.engine import Engine
from fairlead.sim.figures import figures_of
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, spec_of
from fairlead.sim.workloads.recorded import Moment, NothingRecorded, recorded

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]\n"
BY_PRIORITY = QUEUES.replace("name: default, q", "name: default, preemption: {rule: priority}, q")


class Past:
    """A scheduler whose moments are kept, as a journal keeps them."""

    def __init__(self, cores: int = 1) -> None:
        self.scheduler = Scheduler()
        self.moments: list[Moment] = []
        self.say(0, Configure(replace(load_text(QUEUES), text=QUEUES)))
        self.say(0, AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1000 * cores}))))

    def say(self, at_s: int, event: Event) -> Past:
        """An event, and a scheduling run after it."""
        at_ms = at_s * 1000
        self.moments.append((at_ms, event, tuple(self.scheduler.handle(event, at_ms))))
        self.moments.append((at_ms, None, tuple(self.scheduler.schedule(at_ms))))
        return self

    def come(self, at_s: int, name: str, user: str = "ann", **more: Any) -> Past:
        """An application with one ask."""
        self.say(at_s, AddApplication(ApplicationSpec(id=name, queue="root.a", user=user)))
        return self.say(
            at_s, AddAsks((AskSpec(application=name, key=name, resources=Resources({"vcore": 1000}), **more),))
        )

    def end(self, at_s: int, key: str, cause: Cause = Cause.FINISHED, exit_code: int = 0) -> Past:
        """An end."""
        return self.say(at_s, Release(key.split("#")[0], key, cause, exit_code=exit_code))

    def jobs(self, **options: Any) -> list[tuple[int, str, int]]:
        """When what is in line, and how long it runs (seconds)."""
        return [
            (max(j.at_ms, (t.ask.conditions or MET).begin_ms) // 1000, j.application.id, t.run_ms // 1000)
            for j in recorded(self.moments, "past", **options).jobs
            for t in j.tasks
        ]


def test_run_times_are_the_real_ones() -> None:
    """From the start to the end, however long it waited before."""
    past = Past().come(0, "one").come(5, "two").end(20, "one").end(50, "two")
    assert past.jobs() == [(0, "one", 20), (5, "two", 30)]


def test_what_ended_while_the_service_was_down_ran_to_its_end() -> None:
    """The restart tells of it hours later. By a clock that was set it lasted nothing at all, or until then."""
    past = Past(cores=4)
    for name in ("one", "early", "late"):
        past.come(5, name)
    for name, ended_ms in (("one", 20_000), ("early", 2), ("late", 9_900_000)):
        past.say(7200, Release(name, name, Cause.FINISHED, ended_ms=ended_ms))
    assert past.jobs() == [(5, "one", 15), (5, "early", 0), (5, "late", 7195)]
    assert past.jobs(from_ms=6_000) == [(6, "one", 14), (6, "late", 7194)]


def test_the_same_queue_file_gives_the_same_past() -> None:
    """Replayed with the recorded queues and nodes, everything starts and ends when it did."""
    past = Past(2).come(0, "one").come(1, "two").come(2, "three").end(20, "two").end(30, "one").end(70, "three")
    workload = recorded(past.moments, "past")
    engine = Engine(load_text(workload.queues), workload.nodes, workload.jobs)
    engine.run()
    assert list(engine.columns.start_ms) == [0, 1000, 20_000]
    assert list(engine.columns.done_ms) == [30_000, 20_000, 70_000]


def test_what_still_runs_goes_on_as_long_as_longer_work() -> None:
    """All else would start at the end of the record. Where nothing is longer it runs to its time limit, if any."""
    past = Past(cores=9).come(0, "short").come(0, "long").come(0, "longest", "bob").end(10, "short").end(60, "long")
    past.end(300, "longest").come(310, "ann-has").come(310, "all-have", "eve").come(310, "limited", time_limit_ms=9**9)
    past.come(315, "last")
    assert past.jobs()[3:6] == [(310, "ann-has", 10), (310, "all-have", 60), (310, "limited", 10)]
    past.say(380, DrainNode("n"))
    assert past.jobs()[3:6] == [(310, "ann-has", 300), (310, "all-have", 300), (310, "limited", 300)]
    past.say(710, DrainNode("n"))
    assert past.jobs()[3:6] == [(310, "ann-has", 400), (310, "all-have", 400), (310, "limited", 9**9 // 1000)]


def test_what_still_runs_where_nothing_is_longer_ends_and_what_never_ran_gets_the_median() -> None:
    """Both are said."""
    past = Past().come(0, "one").end(10, "one").come(20, "two", "bob").come(30, "three").come(90, "four", "eve")
    workload = recorded(past.moments, "past")
    assert past.jobs() == [(0, "one", 10), (20, "two", 70), (30, "three", 10), (90, "four", 10)]
    assert workload.notes[0].startswith("tasks that still ran when the record ends, taken to run as long as")
    assert "tasks that never ran, given the median run time of their user: 2" in workload.notes[1]


def test_further_attempts_are_not_tasks_of_their_own() -> None:
    """The run time is that of the last one, and how it ended."""
    past = Past().come(0, "one", retry=RetrySpec(limit=1))
    past.end(10, "one", exit_code=1).end(40, "one#2")
    assert past.jobs() == [(0, "one", 30)]


@pytest.mark.parametrize("cause", [Cause.STOPPED_BY_RM, Cause.PREEMPTED_BY_SCHEDULER])
def test_what_was_stopped_did_not_fail(cause: Cause) -> None:
    """It has the exit code of a signal; played again it would be tried as often as its user allowed for failures."""
    past = Past().come(0, "one", retry=RetrySpec(limit=3) if cause is Cause.STOPPED_BY_RM else None)
    past.end(10, "one", cause, exit_code=143)
    workload = recorded(past.moments, "past")
    engine = Engine(load_text(workload.queues), workload.nodes, workload.jobs)
    engine.run()
    assert list(engine.columns.run_how) == [End.FINISHED]
    assert list(engine.columns.done_ms) == [10_000]


def _evicted_for_good() -> Past:
    """Of three jobs on one core the second makes way for the third, and nobody submits it again."""
    past = Past()
    past.say(0, Configure(replace(load_text(BY_PRIORITY), text=BY_PRIORITY)))
    past.come(0, "long").end(50, "long").come(50, "low").come(60, "high", "bob", priority=1)
    return past.end(60, "low", Cause.PREEMPTED_BY_SCHEDULER, exit_code=143).end(80, "high")


def test_what_was_evicted_for_good_would_have_run_on() -> None:
    """As long as longer work of its user: without the preemption of the record it is not over when it would begin."""
    past = _evicted_for_good()
    assert past.jobs() == [(0, "long", 50), (50, "low", 50), (60, "high", 20)]
    workload = recorded(past.moments, "past")
    assert workload.notes[-1].endswith("changes of the queue file (the last one counts) 1")
    assert workload.notes[0] == (
        "tasks that were evicted for good, taken to run as long as longer ones of their user: 1"
    )
    engine = Engine(load_text(QUEUES), workload.nodes, recorded(past.moments, "past").jobs)
    engine.run()
    assert list(engine.columns.done_ms) == [50_000, 100_000, 120_000]


def test_by_the_same_queue_file_it_is_evicted_again_and_does_not_come_back() -> None:
    """As it was: had its owner submitted it again, the record would have that as well."""
    workload = recorded(_evicted_for_good().moments, "past")
    engine = Engine(load_text(workload.queues), workload.nodes, workload.jobs)
    engine.run()
    assert list(engine.columns.done_ms) == [50_000, 60_000, 80_000]
    assert list(engine.columns.run_how) == [End.FINISHED, End.EVICTED, End.FINISHED]


def test_what_is_told_to_stop_takes_as_long_as_then() -> None:
    """Hardly any work takes all of its grace; what was never told to takes as long as others did."""
    past = Past()
    past.say(0, Configure(replace(load_text(BY_PRIORITY), text=BY_PRIORITY)))
    past.come(0, "low", grace_ms=30_000, retry=RetrySpec(limit=1)).come(10, "high", priority=1, grace_ms=30_000)
    past.end(12, "low", Cause.PREEMPTED_BY_SCHEDULER).end(40, "high").end(70, "low#2")
    jobs = list(recorded(past.moments, "past").jobs)
    assert [(task.ask.key, task.stop_ms) for job in jobs for task in job.tasks] == [("low", 2_000), ("high", 2_000)]
    engine = Engine(load_text(BY_PRIORITY), [NodeSpec(id="n", capacity=Resources({"vcore": 1000}))], jobs)
    engine.run()
    assert list(engine.columns.run_start_ms) == [0, 12_000, 40_000]
    assert list(engine.columns.run_end_ms) == [12_000, 40_000, 70_000]


def test_what_ended_by_itself_while_it_was_to_stop_takes_no_less() -> None:
    """It was stopped once and took all of its grace; then it was told to again a second before its own end."""
    past = Past()
    past.say(0, Configure(replace(load_text(BY_PRIORITY), text=BY_PRIORITY)))
    past.come(0, "low", grace_ms=9_000, retry=RetrySpec(limit=1)).come(10, "high", priority=1)
    past.end(19, "low", Cause.PREEMPTED_BY_SCHEDULER).end(40, "high").come(69, "again", priority=1).end(70, "low#2")
    past.end(80, "again").come(80, "other").come(81, "last", priority=1).end(83, "other").end(90, "last")
    jobs = recorded(past.moments, "past").jobs
    assert {task.ask.key: task.stop_ms for job in jobs for task in job.tasks}.items() >= {
        ("low", 9_000),
        ("other", 2_000),
    }


def test_where_nothing_was_told_to_stop_it_takes_its_grace() -> None:
    """Nobody knows better."""
    (job,) = recorded(Past().come(0, "one", grace_ms=30_000).end(10, "one").moments, "past").jobs
    assert job.tasks[0].stop_ms is None


def test_a_stretch_of_time_can_be_chosen() -> None:
    """By submission; what is known from before is used."""
    past = Past().come(0, "one").end(5, "one").come(10, "two").end(15, "two").come(20, "three").end(25, "three")
    assert past.jobs(from_ms=10_000, until_ms=20_000) == [(10, "two", 5)]


def test_nodes_are_those_of_the_record_or_given() -> None:
    """With their last capacity, and the taints that they had all the time."""
    past = Past().say(1, UpdateNode("n", Resources({"vcore": 8000}))).come(2, "one")
    assert [n.capacity["vcore"] for n in recorded(past.moments, "past").nodes] == [8000]
    other = NodeSpec(id="m", capacity=Resources({"vcore": 1}))
    assert recorded(past.moments, "past", nodes=[other]).nodes == (other,)
    there = len(past.moments)
    state = Scheduler.load(past.say(3, LabelNode("n", {}, (Taint("broken"),))).scheduler.dump())
    past.say(4, LabelNode("n", {}))
    pruned = recorded(past.moments[there:], "past", state=state)
    assert [(n.capacity["vcore"], n.taints) for n in pruned.nodes] == [(8000, ())]


def test_what_ran_or_waited_at_the_beginning_comes_at_the_beginning() -> None:
    """What ran is on its node and has the rest of its time to go, but all of it anew; what waited has all of it."""
    past = Past().come(0, "one").come(5, "two").end(30, "one").end(50, "two")
    workload = recorded(past.moments, "past", from_ms=10_000)
    jobs = list(workload.jobs)
    assert [(j.at_ms, j.application.id, t.run_ms, t.anew().run_ms, t.ask.node) for j in jobs for t in j.tasks] == [
        (10_000, "one", 20_000, 30_000, "n"),
        (10_000, "two", 20_000, 20_000, ""),
    ]
    assert "tasks that waited or ran already at the beginning, taken to come then: 2" in workload.notes
    engine = Engine(load_text(workload.queues), workload.nodes, jobs)
    engine.run()
    assert list(engine.columns.start_ms) == [10_000, 30_000]
    other = [NodeSpec(id="m", capacity=Resources({"vcore": 1000}))]
    assert [t.ask.node for j in recorded(past.moments, "past", 10_000, nodes=other).jobs for t in j.tasks] == ["", ""]


def test_a_pruned_record_begins_with_its_state() -> None:
    """Applications, asks and nodes that came before the first moment that is left."""
    past = Past().come(0, "one").come(5, "two")
    state, there = Scheduler.load(past.scheduler.dump()), len(past.moments)
    past.end(30, "one").end(50, "two").come(60, "three").end(70, "three")
    workload = recorded(past.moments[there:], "past", state=state)
    assert [n.id for n in workload.nodes] == ["n"]
    assert [(j.at_ms // 1000, j.application.id, j.tasks[0].run_ms // 1000) for j in workload.jobs] == [
        (5, "one", 25),
        (5, "two", 20),
        (60, "three", 10),
    ]
    assert workload.queues == QUEUES


def test_what_was_changed_before_a_pruned_record_begins_is_as_it_is_then() -> None:
    """Its queue, and its priority; one that comes of a class stays that of the class."""
    high, queues = PriorityClassSpec(name="high", value=5), QUEUES.replace("{name: a}", "{name: a}, {name: b}")
    past = Past().say(0, Configure(replace(load_text(queues), text=queues)))
    past.say(0, SetPriorityClass(high)).come(0, "one").come(1, "two").come(2, "three", priority_class="high")
    for app in ("two", "three"):
        past.say(3, SetPriority(app, app, 7))
    past.say(3, MoveApplication("one", "root.b"))
    jobs = recorded([(4_000, None, ())], "past", state=Scheduler.load(past.scheduler.dump())).jobs
    assert [(job.application.queue, task.ask.priority) for job in jobs for task in job.tasks] == [
        ("root.b", 0),
        ("root.a", 7),
        ("root.a", 5),
    ]


def test_a_gang_stays_a_gang() -> None:
    """It starts when all of it has room, as it did."""
    past = Past(2).come(0, "other")
    group: dict[str, Any] = {"application": "g", "resources": Resources({"vcore": 1000}), "task_group": "all"}
    past.say(5, AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({"vcore": 2000}))))
    past.say(5, AddAsks(tuple(AskSpec(key=f"p{i}", placeholder=True, **group) for i in range(2))))
    past.end(20, "other")
    past.say(20, AddAsks(tuple(AskSpec(key=f"g{i}", **group) for i in range(2))))
    for i in range(2):
        past.say(20, Release("g", f"p{i}", Cause.PLACEHOLDER_REPLACED))
    for i in range(2):
        past.say(40, Release("g", f"g{i}", Cause.FINISHED))
    workload = recorded(past.moments, "past")
    jobs = list(workload.jobs)
    assert [(j.at_ms // 1000, j.application.id, len(j.tasks), j.gang) for j in jobs] == [
        (0, "other", 1, False),
        (5, "g", 2, True),
    ]
    assert workload.tasks == 3
    engine = Engine(load_text(workload.queues), workload.nodes, jobs)
    engine.run()
    assert list(engine.columns.start_ms) == [0, 20_000, 20_000]
    assert list(engine.columns.done_ms) == [20_000, 40_000, 40_000]


@pytest.mark.parametrize("is_pruned", [False, True])
def test_what_waits_at_the_beginning_is_in_line_as_it_was(is_pruned: bool) -> None:
    """By the age of its application: a gang too, and of an older one also what was submitted last."""
    past = Past().come(0, "runs").say(1, AddApplication(ApplicationSpec(id="old", queue="root.a", user="ann")))
    group: dict[str, Any] = {"application": "g", "resources": Resources({"vcore": 1000}), "task_group": "all"}
    past.say(2, AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({"vcore": 1000}))))
    past.say(2, AddAsks((AskSpec(key="p", placeholder=True, **group),))).come(3, "behind")
    past.say(4, AddAsks((AskSpec(application="old", key="last", resources=Resources({"vcore": 1000})),)))
    state, there = Scheduler.load(past.scheduler.dump()), len(past.moments)
    past.end(20, "runs").say(30, Release("old", "last", Cause.FINISHED)).say(30, AddAsks((AskSpec(key="r", **group),)))
    past.say(30, Release("g", "p", Cause.PLACEHOLDER_REPLACED)).say(40, Release("g", "r", Cause.FINISHED))
    past.end(50, "behind")
    more: dict[str, Any] = {"state": state} if is_pruned else {"from_ms": 4_000}
    workload = recorded(past.moments[there:] if is_pruned else past.moments, "past", **more)
    jobs = list(workload.jobs)
    assert [(job.at_ms, job.application.id) for job in jobs] == [(4_000, app) for app in ("runs", "old", "g", "behind")]
    engine = Engine(load_text(workload.queues), workload.nodes, jobs)
    engine.run()
    assert list(engine.columns.done_ms) == [20_000, 30_000, 40_000, 50_000]


@pytest.mark.parametrize("is_pruned", [False, True])
def test_gangs_that_were_never_together_are_counted(is_pruned: bool) -> None:
    """What comes once they are has not come; where the record begins with them, too."""
    past = Past().come(0, "other")
    for app in ("g", "h"):
        group: dict[str, Any] = {"application": app, "resources": Resources({"vcore": 1000}), "task_group": "all"}
        past.say(5, AddApplication(ApplicationSpec(id=app, queue="root.a", placeholder_ask=Resources({"vcore": 2000}))))
        past.say(5, AddAsks(tuple(AskSpec(key=f"{app}{i}", placeholder=True, **group) for i in range(2))))
    state, there = Scheduler.load(past.scheduler.dump()) if is_pruned else None, len(past.moments) * is_pruned
    past.end(20, "other")
    note = "gangs that never had all of their room, left out: their work had not come: 2"
    assert note in recorded(past.moments[there:], "past", state=state).notes
    assert is_pruned or note not in recorded(past.moments, "past", until_ms=1_000).notes


def test_what_administrators_did_is_counted() -> None:
    """And what their acts ended is said to have been stopped."""
    past = Past().come(0, "one").say(3, SetPriority("one", "one", 7)).say(4, DrainNode("n")).say(5, RemoveNode("n"))
    past.say(6, SetPriorityClass(PriorityClassSpec(name="high", value=5)))
    past.say(6, Configure(replace(load_text(QUEUES), text=QUEUES + "# changed\n")))
    workload = recorded(past.moments, "past")
    assert "tasks that were stopped before their end, taken to run as long as they did: 1" in workload.notes
    assert workload.notes[-1] == (
        "what administrators did is not repeated: changes of the queue file (the last one counts) 1, nodes drained 1, "
        "nodes removed 1, priorities changed 1"
    )
    assert past.jobs() == [(0, "one", 5)]


def test_nodes_have_the_labels_of_the_end() -> None:
    """Work that requires one would never start; taints come and go as nodes are drained, which is not repeated."""
    past = Past().say(0, LabelNode("n", {"disk": "ssd"})).come(1, "one").end(9, "one")
    workload = recorded(past.moments, "past")
    assert (workload.nodes[0].attributes, workload.notes) == ({"disk": "ssd"}, [])
    past.say(9, LabelNode("n", {"disk": "ssd"}, (Taint("broken", "", "NoSchedule"),)))
    workload = recorded(past.moments, "past")
    assert workload.nodes[0].taints == ()
    assert workload.notes == [
        "what administrators did is not repeated: taints of nodes (their labels are those of the end) 1"
    ]


def test_classes_that_were_declared_are_there() -> None:
    """Work that names them would be refused under every file that does not have them."""
    high = PriorityClassSpec(name="high", value=5, global_default=True)
    past = Past().say(0, SetPriorityClass(high)).say(0, SetPriorityClass(replace(high, name="system-no")))
    past.come(0, "one", priority_class="high")
    state, before = Scheduler.load(past.scheduler.dump()), len(past.moments)
    past.say(1, RemovePriorityClass("high")).end(9, "one")
    workload = recorded(past.moments, "past")
    assert workload.classes == (replace(high, global_default=False),)
    assert recorded(past.moments[before:], "past", state=state).classes == workload.classes
    spec = spec_of(Trial(name="x", text=QUEUES, source=Source(workload="past")), workload)
    engine = Engine(spec, workload.nodes, workload.jobs)
    engine.run()
    assert (engine.refused, engine.tasks) == ({}, 1)


def test_what_was_changed_comes_as_it_was_in_the_end() -> None:
    """What stood still has not reached its time limit, which stood still as well; what waited has its new size."""
    one, two = Resources({"vcore": 1000}), Resources({"vcore": 2000})
    past = Past(cores=2).come(0, "one", time_limit_ms=10_000).say(5, ChangeAsk("one", "one", one))
    past.say(105, ChangeAsk("one", "one", one, 110_000)).come(106, "two").come(107, "wide")
    past.say(107, ChangeAsk("wide", "wide", two, 20_000)).end(108, "one").end(110, "two").end(120, "wide")
    workload = recorded(past.moments, "past")
    tasks = {task.ask.key: task for job in workload.jobs for task in job.tasks}
    assert (tasks["one"].run_ms, tasks["one"].ask.time_limit_ms) == (108_000, 110_000)
    assert (tasks["wide"].ask.resources, tasks["wide"].ask.time_limit_ms) == (two, 20_000)
    assert workload.notes == []


def test_that_bounds_of_arrays_were_changed_is_counted() -> None:
    past = Past().come(0, "one").say(1, SetAtOnce("one", 2)).end(5, "one")
    assert recorded(past.moments, "past").notes == [
        "what administrators did is not repeated: bounds of arrays changed 1"
    ]


def test_what_is_held_comes_when_it_is_in_line() -> None:
    """At its time, or when it was released; what was held to the end does not come at all."""
    past = Past(cores=4)
    past.come(0, "later", conditions=Conditions(begin_ms=5_000))
    past.come(1, "held", conditions=Conditions(held_by="ann")).come(2, "never", conditions=Conditions(held_by="ann"))
    past.say(5, SetPriority("never", "never", 1))
    past.say(7, SetConditions("held", "held", Conditions())).end(8, "later").end(9, "held")
    assert past.jobs() == [(5, "later", 3), (7, "held", 2)]
    workload = recorded(past.moments, "past")
    engine = Engine(load_text(QUEUES), workload.nodes, workload.jobs)
    engine.run(until_ms=6_000)
    assert list(engine.columns.start_ms) == [5_000, NOT_YET]
    assert figures_of(engine.columns, load_text(QUEUES))["waits"]["longest_unstarted"] == 0


@pytest.mark.parametrize("queues", [QUEUES, BY_PRIORITY])
@pytest.mark.parametrize("is_cut", [False, True])
def test_what_was_held_stands_where_its_application_stood(queues: str, is_cut: bool) -> None:
    """Before what was submitted while it was held, as in the record; also where that begins in the middle of things."""
    past = Past().say(0, Configure(replace(load_text(queues), text=queues))).come(0, "long")
    past.come(1, "begin", conditions=Conditions(begin_ms=50_000)).come(2, "later")
    past.say(3, SetConditions("later", "later", Conditions(held_by="ann"), "ann")).come(10, "other")
    state, moments = Scheduler.load(past.scheduler.dump()), len(past.moments) if is_cut else 0
    past.say(50, SetConditions("later", "later", Conditions())).come(60, "last")
    for at_s, key in ((100, "long"), (200, "begin"), (300, "later"), (400, "other"), (500, "last")):
        past.end(at_s, key)
    workload = recorded(past.moments[moments:], "past", state=state if is_cut else None)
    engine = Engine(load_text(workload.queues), workload.nodes, workload.jobs)
    engine.run()
    begins = sorted(zip(engine.columns.start_ms, engine.columns.names, strict=True))
    assert [name for _, name in begins] == ["long", "begin", "later", "other", "last"]
    assert engine.columns.begin_ms == (10_000 if is_cut else 0)


def test_a_part_of_an_array_that_was_held_has_its_turn_as_it_was() -> None:
    """Of two at a time the first is released while the second runs, and goes before the third; the array stays as old
    as it is when nothing of it is in line for a while.
    """
    past = Past().say(0, AddApplication(ApplicationSpec(id="a", queue="root.a", user="ann", at_once=1)))
    one, hold = Resources({"vcore": 1000}), Conditions(held_by="ann")
    asks = [
        AskSpec(application="a", key=f"a.{i}", resources=one, conditions=None if i in (1, 2) else hold)
        for i in range(4)
    ]
    past.say(0, AddAsks(tuple(asks))).say(5, SetConditions("a", "a.0", Conditions())).come(6, "other")
    for at_s, key in ((10, "a.1"), (20, "a.0"), (30, "a.2")):
        past.say(at_s, Release("a", key, Cause.FINISHED))
    past.come(40, "younger").say(90, SetConditions("a", "a.3", Conditions())).end(100, "other")
    past.say(110, Release("a", "a.3", Cause.FINISHED)).end(120, "younger")
    workload = recorded(past.moments, "past")
    engine = Engine(load_text(workload.queues), workload.nodes, workload.jobs)
    engine.run()
    columns = engine.columns
    assert [name for _, name in sorted(zip(columns.start_ms, columns.names, strict=True))] == [
        *("a/a.1", "a/a.0", "a/a.2", "other", "a/a.3", "younger")
    ]


def test_what_waited_for_others_or_was_tried_again_is_counted() -> None:
    """It came when they ended then, whenever they end here; of several runs the last counts."""
    past = Past().come(0, "one", retry=RetrySpec(limit=1)).end(10, "one", exit_code=1)
    past.come(11, "next", conditions=Conditions(after=(Dependency(application="one"),))).end(30, "one#2")
    past.say(31, SetConditions("next", "next", Conditions())).end(40, "next")
    assert past.jobs() == [(0, "one", 20), (31, "next", 9)]
    assert recorded(past.moments, "past").notes == [
        "tasks that were tried again, taken to run as long as the last time: 1",
        "tasks that waited for others, taken to come when these were through then: 1",
    ]


def test_a_record_without_work_is_refused() -> None:
    """With what there is instead."""
    with pytest.raises(NothingRecorded, match=r"past: nothing was submitted in partition default$"):
        recorded(Past().moments, "past")
    elsewhere = AskSpec(application="x", key="x", resources=Resources({"vcore": 1}))
    past: list[Moment] = [
        *Past().moments,
        (1, AddApplication(ApplicationSpec(id="x", queue="root.a", partition="gpu")), ()),
        (1, AddAsks((elsewhere,), partition="gpu"), ()),
    ]
    with pytest.raises(NothingRecorded, match="other partitions have 1 submissions"):
        recorded(past, "past")


def test_what_ran_and_never_ran_again_ran_as_long_as_the_last_time() -> None:
    """Whether it is in line again or was held: it is not left out, and nothing else is taken for its run time."""
    past = Past(cores=2).come(0, "usual").end(3, "usual").come(4, "lost", retry=RetrySpec(limit=1))
    past.end(14, "lost", Cause.INTERRUPTED).end(20, "lost#2").come(20, "low").come(20, "held")
    past.moments.append((40_000, None, (Evict("held", "held", "n", Cause.REQUEUED),)))
    past.end(45, "held", Cause.REQUEUED).say(45, SetConditions("held", "held#2", Conditions(held_by="ann"), "ann"))
    past.end(50, "held#2", Cause.STOPPED_BY_RM).say(50, DrainNode("n")).end(51, "low", Cause.REQUEUED)
    assert past.jobs() == [(0, "usual", 3), (4, "lost", 6), (20, "low", 31), (20, "held", 25)]
    notes = recorded(past.moments, "past").notes
    assert notes[:2] == [
        "tasks that were tried again, taken to run as long as the last time: 2",
        "tasks that were stopped before their end, taken to run as long as they did: 1",
    ]


def test_what_failed_and_runs_again_has_not_failed_yet() -> None:
    """It still runs when the record ends, and is taken to end well then, as all others that do."""
    past = Past().come(0, "one", retry=RetrySpec(limit=1)).end(10, "one", exit_code=1).come(30, "two")
    [task] = [task for job in recorded(past.moments, "past").jobs for task in job.tasks if task.ask.key == "one"]
    assert (task.run_ms, task.exit_code) == (20_000, 0)


def test_work_of_the_same_names_in_another_partition_is_not_taken_for_it() -> None:
    """What is decided there starts and ends nothing here."""
    past = Past().come(0, "one")
    moments = [*past.moments, (5000, None, (Allocated("one", "one", "m", "gpu"),))]
    moments += [(6000, None, (Released("one", "one", "m", Cause.STOPPED_BY_RM, "", "gpu"),))]
    moments += past.end(20, "one").moments[len(past.moments) - 2 :]
    assert [task.run_ms for job in recorded(moments, "past").jobs for task in job.tasks] == [20_000]
