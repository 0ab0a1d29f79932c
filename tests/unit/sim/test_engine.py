"""The engine: what happens to tasks in virtual time."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.pace import kept as kept_by
from invariants.books import check_books

from fairlead.config import load_text
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Release, SetWindow
from fairlead.core.model.reasons import GangTooLarge
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, RetrySpec, WindowSpec
from fairlead.scheduler import Scheduler
from fairlead.sim.attempts import STARTS_MAX, Reasons, Settings
from fairlead.sim.columns import Columns, End, Fate
from fairlead.sim.engine import Engine, Refused
from fairlead.sim.jobs import BACK, LOST, PATIENCE_MS, Fault, Job, OutOfOrder, Task, drawn
from fairlead.sim.lines import decision_line
from fairlead.sim.workloads.swf import header_nodes, read_log, swf

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}, {name: b}]
"""
BY_PRIORITY = QUEUES.replace(
    "    queues:\n      - name: root", "    preemption: {rule: priority}\n    queues:\n      - name: root"
)


def node(name: str = "n", cores: int = 1) -> NodeSpec:
    return NodeSpec(id=name, capacity=Resources({"vcore": cores * 1000}))


def job(name: str, at_s: int = 0, runs_s: int = 10, cores: int = 1, count: int = 1, **more: Any) -> Job:
    """A job of equal tasks of one core, unless said otherwise."""
    gang, queue, exit_code = more.pop("gang", False), more.pop("queue", "root.a"), more.pop("exit_code", 0)
    patience = more.pop("patience_ms", 0)
    keys = [name] if count == 1 else [f"{name}-{i}" for i in range(count)]
    asks = [AskSpec(application=name, key=k, resources=Resources({"vcore": cores * 1000}), **more) for k in keys]
    application = ApplicationSpec(id=name, queue=queue, user="ann", placeholder_timeout_ms=patience)
    return Job(at_s * 1000, application, tuple(Task(a, runs_s * 1000, exit_code) for a in asks), gang)


def simulated(*jobs: Job, nodes: Iterable[NodeSpec] = (), queues: str = QUEUES, **options: Any) -> Engine:
    """A finished simulation."""
    until_ms, faults = options.pop("until_ms", None), options.pop("faults", ())
    engine = Engine(load_text(queues), nodes or [node()], jobs, faults, Settings(**options))
    engine.run(until_ms)
    check_books(engine.scheduler)
    return engine


def runs(columns: Columns) -> list[tuple[str, str, float, float, str]]:
    """Task, node, begin, end (seconds) and how each run ended, in order of start."""
    return [
        (
            columns.names[columns.run_task[i]],
            columns.nodes.values[columns.run_node[i]],
            columns.run_start_ms[i] / 1000,
            columns.run_end_ms[i] / 1000,
            End(columns.run_how[i]).name,
        )
        for i in range(len(columns.run_task))
    ]


def fates(columns: Columns) -> dict[str, Fate]:
    return {columns.names[i]: Fate(columns.fate[i]) for i in range(len(columns))}


def test_a_task_waits_until_the_one_before_has_ended() -> None:
    """What ends at a moment makes room at that moment."""
    columns = simulated(job("one"), job("two", at_s=4)).columns
    assert runs(columns) == [("one", "n", 0, 10, "FINISHED"), ("two", "n", 10, 20, "FINISHED")]
    assert list(columns.start_ms) == [0, 10_000]
    assert (columns.begin_ms, columns.end_ms) == (0, 20_000)


def test_the_engine_decides_what_plain_calls_decide() -> None:
    """The same events at the same times, by hand."""
    lines = io.StringIO()
    engine = simulated(job("one", runs_s=10), job("two", at_s=4, runs_s=5), lines=lines)
    hand, told = Scheduler(), io.StringIO()

    def say(at_ms: int, decisions: Any) -> None:
        told.writelines(decision_line(at_ms, d).decode() for d in decisions)

    size = Resources({"vcore": 1000})
    say(0, hand.handle(Configure(load_text(QUEUES)), 0))
    say(0, hand.handle(AddNode(node()), 0))
    for at_ms, name in ((0, "one"), (4000, "two")):
        say(at_ms, hand.handle(AddApplication(ApplicationSpec(id=name, queue="root.a", user="ann")), at_ms))
        say(at_ms, hand.handle(AddAsks((AskSpec(application=name, key=name, resources=size),)), at_ms))
        say(at_ms, hand.schedule(at_ms))
    say(10_000, hand.handle(Release("one", "one", Cause.FINISHED, exit_code=0), 10_000))
    say(10_000, hand.schedule(10_000))
    say(15_000, hand.handle(Release("two", "two", Cause.FINISHED, exit_code=0), 15_000))
    say(15_000, hand.schedule(15_000))
    assert lines.getvalue() == told.getvalue()
    assert engine.decisions == len(told.getvalue().splitlines())


def test_tasks_of_one_application_may_come_one_by_one() -> None:
    """A job whose application is known adds asks to it."""
    first = job("app")
    second = Job(
        3000,
        first.application,
        (Task(AskSpec(application="app", key="more", resources=Resources({"vcore": 1000})), 5000),),
    )
    engine = simulated(first, second)
    assert runs(engine.columns)[1] == ("app/more", "n", 10, 15, "FINISHED")
    assert engine.ended == engine.tasks == 2


def test_an_application_that_has_completed_is_submitted_again() -> None:
    """Its id may come back later."""
    engine = simulated(job("app"), job("app", at_s=500))
    assert [r[2] for r in runs(engine.columns)] == [0, 500]


def test_what_fits_nowhere_is_still_waiting_at_the_end() -> None:
    """It is counted, and the reason can be asked."""
    engine = simulated(job("huge", cores=5), job("one"))
    assert fates(engine.columns) == {"huge": Fate.WAITING, "one": Fate.COMPLETED}
    reason = engine.why(("huge", "huge"))
    assert reason is not None
    assert reason.code == "too-big-for-every-node"


def test_until_stops_in_the_middle() -> None:
    """Running and waiting ones are counted as such, jobs that were not due are not submitted."""
    engine = simulated(job("one"), job("two", 1), job("later", 20), until_ms=9000)
    assert fates(engine.columns) == {"one": Fate.RUNNING, "two": Fate.WAITING}
    assert engine.columns.end_ms == 9000


def test_a_refused_job_is_counted_with_its_reason() -> None:
    """No such queue; the others go on."""
    engine = simulated(job("lost", queue="root.nowhere", count=2), job("one"))
    assert fates(engine.columns)["lost/lost-0"] is Fate.REFUSED
    assert (sum(engine.refused.values()), engine.ended) == (2, 3)
    assert list(engine.refused) == [
        "queue root.nowhere: failed to place application ...: application rejected: no placement rule matched"
    ]


def test_what_names_no_queue_is_refused_as_such() -> None:
    """Its row of figures has a name, too."""
    engine = simulated(job("lost", queue=""))
    assert next(iter(engine.refused)).startswith("no queue named: failed to place application ...")
    assert engine.columns.queues.values == ["no queue named"]


def test_time_never_goes_back() -> None:
    """A workload out of order is an error that names the job."""
    with pytest.raises(OutOfOrder, match="job early comes at 3000 ms, after one at 5000 ms"):
        simulated(job("late", 5), job("early", 3))


def test_a_node_that_is_refused_stops_it() -> None:
    """Two of one name."""
    with pytest.raises(Refused, match="already exists"):
        simulated(job("one"), nodes=[node(), node()])


# -- stopped and lost ----------------------------------------------------------------------------------------------


def test_evicted_work_comes_back_and_starts_over() -> None:
    """Preempted by priority: the time it ran is lost, its second run is whole."""
    engine = simulated(job("low", runs_s=100), job("high", at_s=50, priority=5), queues=BY_PRIORITY)
    assert runs(engine.columns) == [
        ("low", "n", 0, 50, "EVICTED"),
        ("high", "n", 50, 60, "FINISHED"),
        ("low", "n", 60, 160, "FINISHED"),
    ]


def test_what_ran_at_the_beginning_waits_again_when_it_is_evicted() -> None:
    """It is on its node at first alone, and has all of its time to go when it begins anew."""
    there = job("low", runs_s=70, node="n")
    there = replace(there, tasks=tuple(replace(task, anew_ms=100_000) for task in there.tasks))
    assert runs(simulated(there, job("high", at_s=50, priority=5), queues=BY_PRIORITY).columns) == [
        ("low", "n", 0, 50, "EVICTED"),
        ("high", "n", 50, 60, "FINISHED"),
        ("low", "n", 60, 160, "FINISHED"),
    ]


def test_a_queue_gives_back_what_it_has_too_much_though_nothing_waits() -> None:
    """At the end of its delay, and not when something else happens after that."""
    queue = "{name: a, resources: {max: {vcore: 1}}, properties: {quota.preemption.delay: 5s}}"
    enforced = QUEUES.replace("    queues:\n", "    preemption: {quotapreemptionenabled: true}\n    queues:\n", 1)
    engine = simulated(
        job("old", runs_s=60, count=2, node="n"), nodes=[node(cores=2)], queues=enforced.replace("{name: a}", queue)
    )
    assert [run[2:] for run in runs(engine.columns)][:2] == [(0, 60, "FINISHED"), (0, 5, "EVICTED")]


def test_work_is_given_up_if_nobody_submits_it_again() -> None:
    """`resubmit` off, and no retries."""
    engine = simulated(job("low", runs_s=100), job("high", at_s=50, priority=5), queues=BY_PRIORITY, resubmit=False)
    assert fates(engine.columns) == {"low": Fate.GIVEN_UP, "high": Fate.COMPLETED}


def test_what_was_to_come_of_work_that_has_ended_does_not_keep_it_going() -> None:
    """Neither the end that it would have had, nor that of its grace."""
    given_up = simulated(job("low", runs_s=1_000), job("high", at_s=50, priority=5), queues=BY_PRIORITY, resubmit=False)
    assert given_up.columns.end_ms == 60_000
    ended = simulated(job("low", runs_s=60, grace_ms=500_000), job("high", at_s=50, priority=5), queues=BY_PRIORITY)
    assert ended.columns.end_ms == 70_000


def test_stopping_takes_the_grace_that_the_work_has() -> None:
    """What preempts it starts only then."""
    engine = simulated(job("low", runs_s=100, grace_ms=7000), job("high", at_s=50, priority=5), queues=BY_PRIORITY)
    assert [r[:4] for r in runs(engine.columns)][:2] == [("low", "n", 0, 57), ("high", "n", 57, 67)]


def test_work_that_ends_within_its_grace_has_completed() -> None:
    """Nothing of it is lost."""
    engine = simulated(job("low", runs_s=53, grace_ms=7000), job("high", at_s=50, priority=5), queues=BY_PRIORITY)
    assert [r[3:] for r in runs(engine.columns)] == [(53, "FINISHED"), (63, "FINISHED")]


def test_a_lost_node_takes_its_work_and_brings_back_room() -> None:
    """The work waits until the node is back, and starts over."""
    faults = [Fault(4000, "n", LOST), Fault(9000, "n", BACK)]
    engine = simulated(job("one"), faults=faults)
    assert runs(engine.columns) == [("one", "n", 0, 4, "LOST"), ("one", "n", 9, 19, "FINISHED")]
    assert [(at, sign) for at, _, _, sign in engine.columns.capacity] == [(0, 1), (4000, -1), (9000, 1)]


def test_what_takes_longer_than_its_node_lasts_is_given_up() -> None:
    """Else a simulation had no end, and kept each of its starts."""
    endless = (Fault(i * 3000, "n", LOST if i % 2 else BACK) for i in range(1, 10**9))
    engine = simulated(job("long"), job("short", at_s=1, runs_s=1), faults=endless)
    assert [Fate(fate).name for fate in engine.columns.fate] == ["GIVEN_UP", "COMPLETED"]
    assert len(engine.columns.run_task) == STARTS_MAX + 1


def test_faults_without_end_do_not_keep_it_going() -> None:
    """When all work is through, it is over."""
    endless = (Fault(i * 3000, "m", LOST if i % 2 else BACK) for i in range(1, 10**9))
    engine = simulated(job("one", cores=2), nodes=[node("n", 2), node("m")], faults=endless)
    assert engine.columns.end_ms == 10_000


def test_retries_are_the_schedulers_own() -> None:
    """Work that fails is tried as often as it may be, and counted once."""
    engine = simulated(job("flaky", exit_code=1, retry=RetrySpec(limit=2)))
    assert [r[2:] for r in runs(engine.columns)] == [(0, 10, "FAILED"), (10, 20, "FAILED"), (20, 30, "FAILED")]
    assert (engine.tasks, engine.ended, fates(engine.columns)) == (1, 1, {"flaky": Fate.COMPLETED})


def test_what_its_time_limit_cut_off_is_not_tried_again() -> None:
    """It would need as much time again; so it is on a machine."""
    engine = simulated(job("long", runs_s=100, time_limit_ms=30_000, retry=RetrySpec(limit=2)))
    assert [End(how) for how in engine.columns.run_how] == [End.CUT_OFF]
    assert Fate(engine.columns.fate[0]) is Fate.COMPLETED


def test_a_time_limit_cuts_work_off() -> None:
    """At its declared limit."""
    engine = simulated(job("long", runs_s=100, time_limit_ms=30_000))
    assert runs(engine.columns) == [("long", "n", 0, 30, "CUT_OFF")]


# -- gangs ---------------------------------------------------------------------------------------------------------


def test_a_gang_starts_together() -> None:
    """Only when there is room for all of it, though there was room for one before."""
    nodes = [node("n"), node("m")]
    engine = simulated(job("one", runs_s=20), job("team", at_s=5, count=2, gang=True), nodes=nodes)
    started = {name: begin for name, _, begin, _, _ in runs(engine.columns)}
    assert started == {"one": 0, "team/team-0": 20, "team/team-1": 20}
    assert all(fate is Fate.COMPLETED for fate in fates(engine.columns).values())


def test_a_gang_whose_patience_ends_goes_on_one_by_one() -> None:
    """The default style is soft."""
    nodes = [node("n"), node("m")]
    engine = simulated(job("one", runs_s=200), job("team", at_s=5, count=2, gang=True, patience_ms=60_000), nodes=nodes)
    started = {name: begin for name, _, begin, _, _ in runs(engine.columns)}
    assert 65 <= started["team/team-0"] < 200
    assert engine.ended == 3


def test_a_gang_whose_placeholders_are_refused_is_refused() -> None:
    """It waited to the end, and nobody knew what for."""
    engine = simulated(job("team", count=2, gang=True, idle=True), job("one", at_s=5))
    assert fates(engine.columns) == {"team/team-0": Fate.REFUSED, "team/team-1": Fate.REFUSED, "one": Fate.COMPLETED}
    [(why, count)] = engine.refused.items()
    assert why.startswith("idle work cannot be a gang")
    assert count == 2


@pytest.mark.parametrize(
    ("cores", "count", "why"), [(1, 5, "its gang needs cpu 5 together"), (2, 2, "all nodes hold 0")]
)
def test_a_gang_that_waits_as_long_as_it_takes_and_can_never_be_whole_is_refused(
    cores: int, count: int, why: str
) -> None:
    """It kept what room it found for a year, and started in parts then."""
    gang = job("team", count=count, cores=cores, gang=True, patience_ms=PATIENCE_MS)
    engine = simulated(gang, job("one", at_s=5), nodes=[node(f"n{i}") for i in range(4)])
    assert fates(engine.columns)["one"] is Fate.COMPLETED
    assert [(why in said, number) for said, number in engine.refused.items()] == [(True, count)]
    assert engine.columns.end_ms == 15_000


def test_a_gang_that_waits_as_long_as_it_takes_does_not_make_a_simulation_last_as_long() -> None:
    """A limit of its user is in its way, which nothing raises."""
    limit = "{limit: ann, users: [ann], maxresources: {vcore: 1}}"
    limited = QUEUES.replace("{name: a}", f"{{name: a, limits: [{limit}]}}")
    gang = job("team", count=2, gang=True, patience_ms=PATIENCE_MS)
    engine = simulated(job("one", queue="root.b"), gang, nodes=[node(cores=4)], queues=limited)
    assert set(fates(engine.columns).values()) == {Fate.COMPLETED, Fate.WAITING}
    assert engine.columns.end_ms < 3_600_000


def test_a_gang_that_loses_a_node_while_it_gathers_starts_later() -> None:
    """The placeholder that was lost is asked for again."""
    nodes = [node("n"), node("m")]
    faults = [Fault(10_000, "n", LOST), Fault(30_000, "n", BACK)]
    engine = simulated(job("one", runs_s=20), job("team", at_s=5, count=2, gang=True), nodes=nodes, faults=faults)
    assert engine.ended == 3
    assert {begin for name, _, begin, _, _ in runs(engine.columns) if name.startswith("team")} == {30}


# -- determinism ---------------------------------------------------------------------------------------------------


def test_the_same_input_gives_the_same_decisions() -> None:
    """Byte for byte, and each started task is told once."""
    jobs = [job(f"j{i}", at_s=i // 3, runs_s=1 + i * 7 % 13, count=1 + i % 3, priority=i % 4) for i in range(60)]
    first, second = (simulated(*jobs, nodes=[node("n", 2), node("m", 3)], queues=BY_PRIORITY) for _ in range(2))
    assert first.account.digest == second.account.digest
    assert first.ended == first.tasks == sum(1 + i % 3 for i in range(60))


def test_decisions_are_written_as_lines() -> None:
    """Each one, in order."""
    lines = io.StringIO()
    engine = simulated(job("one"), lines=lines)
    assert len(lines.getvalue().splitlines()) == engine.decisions
    assert decision_line(0, Allocated("one", "one", "n")).decode() in lines.getvalue()


def test_what_has_ended_is_forgotten() -> None:
    """What the engine keeps of a long workload is what is alive, and the columns."""
    gangs = [job(f"g{i}", at_s=60 * i, count=2, gang=True) for i in range(100)]
    flaky = [job(f"f{i}", at_s=60 * i + 30, exit_code=i % 2, retry=RetrySpec(limit=1)) for i in range(100)]
    engine = simulated(*sorted(gangs + flaky, key=lambda j: j.at_ms), nodes=[node("n"), node("m")])
    assert engine.ended == engine.tasks == 300
    assert engine.account.digest
    values = (getattr(engine, name) for name in dir(engine) if not name.startswith("__"))
    kept = [value for value in values if isinstance(value, dict | list)]
    assert sum(map(len, kept)) < 20


def test_what_is_kept_does_not_grow_with_the_workload() -> None:
    """Timers, books of the scheduler and of the engine: ten times the work keeps no more at once."""

    def most(count: int) -> tuple[int, int]:
        jobs = [job(f"j{i}", at_s=20 * i, runs_s=30, count=1 + i % 3) for i in range(count)]
        engine = Engine(load_text(QUEUES), [node("n", 3), node("m", 2)], jobs, (), Settings())
        kept = books = 0
        for minute in range(count // 3 + 10):
            engine.run(minute * 60_000)
            (partition,) = engine.scheduler.cluster.partitions.values()
            there = (partition.applications, partition.ended, partition.rejected, partition.shapes)
            kept, books = max(kept, kept_by(engine)), max(books, sum(map(len, there)))
        assert engine.ended == engine.tasks == sum(1 + i % 3 for i in range(count))
        return kept, books

    assert most(3000) == most(300)


def test_what_is_remembered_of_ended_work_decides_nothing() -> None:
    """A scheduler that keeps its history places the same."""
    jobs = [job(f"j{i}", at_s=i // 3, runs_s=1 + i * 7 % 13, priority=i % 4) for i in range(60)]
    lines = [io.StringIO(), io.StringIO()]
    engines = [Engine(load_text(BY_PRIORITY), [node("n", 2)], jobs, (), Settings(lines=written)) for written in lines]
    for partition in engines[1].scheduler.cluster.partitions.values():
        partition.keeps_history = True
    for engine in engines:
        engine.run()
    assert lines[0].getvalue() == lines[1].getvalue()
    assert len(engines[1].scheduler.cluster.partitions["default"].ended) > 40
    assert not engines[0].scheduler.cluster.partitions["default"].ended


GUARANTEED = QUEUES.replace("{name: a}", "{name: a, resources: {guaranteed: {vcore: 1}}}")
RESTING = QUEUES.replace(
    "{name: a}", "{name: a, properties: {application.backoff.threshold: '1', application.backoff.delay: 20s}}"
)


@pytest.mark.parametrize("queues", [GUARANTEED, RESTING])
@pytest.mark.timeout(60)
def test_what_no_node_can_hold_does_not_keep_it_going(queues: str) -> None:
    """An attempt to preempt every 15 seconds, or a rest of its application, is no reason to go on for ever."""
    engine = simulated(job("wide", cores=2, count=2), job("fits", at_s=5, runs_s=100), queues=queues)
    assert (len(engine.waiting), engine.ended) == (2, 1)
    assert engine.columns.end_ms == 135_000  # half a minute after its last task an application is completed
    engine.run(500_000)
    assert (len(engine.waiting), engine.columns.end_ms) == (2, 500_000)


def test_who_rests_longer_than_others_look_again_still_starts() -> None:
    """Timers that come in vain do not end it before one that helps: the gang gives up waiting for its members."""
    patient = job("gang", count=2, gang=True, patience_ms=100_000)
    engine = simulated(job("wide", cores=2), patient, queues=GUARANTEED)
    assert sorted(run[0] for run in runs(engine.columns)) == ["gang/gang-0", "gang/gang-1"]
    assert set(engine.waiting) == {("wide", "wide")}


def test_a_node_that_is_set_aside_for_nothing_goes_back_before_it_ends() -> None:
    """Each at the end of its own hour: of one gang the first node is taken soon, and the other one cannot be."""
    limited = QUEUES.replace("name: a}", "name: a, limits: [{limit: '', users: [ann], maxresources: {vcore: 4}}]}")
    nodes = [node("n1", 8), node("n2", 4), node("n3", 4), *(node(f"small{i}", 2) for i in range(4))]
    busy = [job(name, 0, 10 * i, size, queue="root.b") for i, name, size in ((1, "n1", 8), (3, "n2", 4), (2, "n3", 4))]
    older = [job("wide", 1, 30, 8, queue="root.b"), job("other", 1, 20, 4, queue="root.b")]
    gang = job("gang", 2, cores=3, count=2, gang=True, patience_ms=PATIENCE_MS)
    engine = simulated(*busy, *older, gang, job("late", 15, cores=6, queue="root.b"), nodes=nodes, queues=limited)
    assert runs(engine.columns)[-1] == ("late", "n1", 3_610, 3_620, "FINISHED")


TWO_QUEUES = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: queue-1}, {name: queue-2}]}]
"""


def wide_jobs(tmp_path: Path, *jobs: tuple[int, int, int]) -> Engine:
    """A log of a machine of four processors: each job with its submission, processors and queue; a minute each."""
    head = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 4\n"
    rows = [
        f"{i} {at_s} -1 60 {procs} -1 -1 {procs} -1 -1 1 7 -1 -1 {queue} -1 -1 -1"
        for i, (at_s, procs, queue) in enumerate(jobs, 1)
    ]
    log = tmp_path / "log.swf"
    log.write_text(head + "\n".join(rows) + "\n")
    workload = swf(read_log(str(log)))
    return simulated(*workload.jobs, nodes=header_nodes(read_log(str(log))), queues=TWO_QUEUES)


def test_wide_jobs_of_two_queues_do_not_wait_for_each_other_for_ever(tmp_path: Path) -> None:
    """Two of three processors on four, one in each queue: one after the other, and not 366 days later."""
    engine = wide_jobs(tmp_path, (0, 3, 1), (0, 3, 2))
    assert set(fates(engine.columns).values()) == {Fate.COMPLETED}
    assert engine.now_ms == 120_000


def test_a_log_of_wide_jobs_in_two_queues_comes_through(tmp_path: Path) -> None:
    """Sixty jobs, three at a time, each of which the machine can hold: in the worst case one after the other."""
    jobs = [(30 * (i // 3), 2 + i % 3, 1 + i % 2) for i in range(60)]
    engine = wide_jobs(tmp_path, *jobs)
    assert set(fates(engine.columns).values()) == {Fate.COMPLETED}
    assert engine.now_ms <= 60 * 60_000


def test_a_task_whose_gang_is_not_whole_waits_for_what_its_placeholders_wait_for() -> None:
    """Its own ask is not there yet."""
    engine = simulated(job("a", count=3, gang=True), nodes=[node(cores=2)], until_ms=60_000)
    assert isinstance(engine.why(("a", "a-0")), GangTooLarge)


def test_nodes_that_come_and_go_for_ever_do_not_keep_alive_what_fits_nowhere() -> None:
    """Of many nodes there is always one away, so it was waited for for ever."""
    names = [f"n{number}" for number in range(20)]
    engine = Engine(
        load_text(QUEUES),
        [node(name) for name in names],
        [job("a"), job("wide", cores=2)],
        drawn(names, 1, 10**6, 10**6),
    )
    turns: list[int] = []

    def count(done: int) -> None:
        turns.append(done)
        engine.stopped = len(turns) > 4

    engine.run(progress=count)
    assert not engine.stopped
    assert (engine.tasks, list(engine.waiting)) == (2, [("wide", "wide")])


def test_a_simulation_to_a_moment_ends_when_all_work_is_through() -> None:
    """How long it lasted, and what was in use meanwhile, is of the work and not of the time that was allowed."""
    assert simulated(job("one"), until_ms=86_400_000).columns.end_ms == 10_000
    waits = simulated(job("one"), job("wide", cores=2), until_ms=86_400_000)
    assert waits.columns.end_ms == 86_400_000


def test_the_queue_is_the_one_that_placement_rules_chose() -> None:
    queues = QUEUES.replace(
        "    queues:\n      - name: root",
        "    placementrules: [{name: fixed, value: root.b}]\n    queues:\n      - name: root",
    )
    engine = simulated(job("one", queue="root.default"), queues=queues)
    assert engine.columns.queues.values == ["root.b"]


def test_refusals_leave_names_out_as_words() -> None:
    """`a` is a letter of many others, too."""
    reasons = Reasons()
    for name in ("a", "b"):
        reasons.add(f"{name}/{name}-1: an application like {name}. has no base", f"{name}-1", name)
    assert reasons == {".../...: an application like .... has no base": 2}


def test_what_runs_into_a_window_starts_when_that_is_over() -> None:
    """The simulation gave up before: nothing runs, nothing comes, and only the next of the two times has a timer."""
    engine = Engine(load_text(QUEUES), [node()], [job("x", runs_s=10)])
    engine.handle(SetWindow(WindowSpec(name="w", starts_ms=100_000, length_ms=50_000, nodes=("n",))))
    engine.run()
    assert not engine.waiting
    assert engine.scheduler.cluster.now_ms >= 160_000
