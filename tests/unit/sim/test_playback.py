"""A trace in virtual time."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.resources import Limits
from fairlead.core.specs import ClusterSpec, PartitionSpec, PreemptionSpec, QueueSpec
from fairlead.sim.playback import Replay, default_cluster
from fairlead.sim.trace import TraceNode, TraceTask


def node(name: str = "n", cpu: int = 1000, gpus: int = 0, model: str = "") -> TraceNode:
    """A machine of one core and 1 GiB, unless said otherwise."""
    return TraceNode(name, cpu, 1024, gpus, model)


def task(name: str, at_s: int = 0, runs_s: int = 10, cpu: int = 1000, qos: str = "LS", **more: Any) -> TraceTask:
    """A task that fills the machine, unless said otherwise."""
    return TraceTask(
        name, cpu, more.get("memory", 1), more.get("gpu", 0), more.get("models", ()), qos, at_s * 1000, runs_s * 1000
    )


def played(*tasks: TraceTask, nodes: list[TraceNode] | None = None, **options: Any) -> tuple[Replay, list[str]]:
    """A finished replay and its lines."""
    lines = io.StringIO()
    replay = Replay(nodes or [node()], list(tasks), options.get("spec"), lines)
    replay.run(options.get("until_ms"))
    return replay, lines.getvalue().splitlines()


def starts(lines: list[str]) -> list[tuple[int, str]]:
    """When what started."""
    words = [line.split() for line in lines]
    return [(int(w[0]), w[2].removeprefix("application=")) for w in words if w[1] == "allocated"]


def test_a_task_waits_until_the_one_before_has_ended() -> None:
    """What ends at a moment makes room at that moment."""
    replay, lines = played(task("one"), task("two", at_s=4))
    assert starts(lines) == [(0, "one"), (10_000, "two")]
    assert (replay.submitted, replay.completed, replay.running, replay.waiting) == (2, 2, {}, {})
    assert replay.waits.figures() == {"count": 2, "mean": 3.0, "p50": 0.0, "p95": 6.0, "p99": 6.0, "max": 6.0}


def test_a_better_class_of_service_starts_first() -> None:
    """Of those that wait, by priority, whatever came first."""
    tasks = [task("now"), task("be", 1, qos="BE"), task("burst", 2, qos="Burstable"), task("ls", 3), task("g", 4)]
    tasks[-1] = task("g", 4, qos="Guaranteed")
    assert [name for _, name in starts(played(*tasks)[1])] == ["now", "g", "ls", "burst", "be"]


def test_a_task_without_run_time_ends_at_once() -> None:
    """And makes room at the same moment."""
    replay, lines = played(task("one", runs_s=0), task("two", runs_s=0))
    assert starts(lines) == [(0, "one"), (0, "two")]
    assert replay.completed == 2


def test_what_fits_nowhere_is_still_waiting_at_the_end() -> None:
    """It is counted, and the reason can be asked."""
    replay, _ = played(task("huge", cpu=5000), task("one"))
    assert (replay.completed, list(replay.waiting)) == (1, ["huge"])
    reason = replay.scheduler.why("huge", "huge")
    assert reason is not None
    assert reason.code == "too-big-for-every-node"


def test_until_stops_in_the_middle() -> None:
    """Running and waiting ones are counted as such, tasks that were not due are not submitted."""
    replay, _ = played(task("one"), task("two", 1), task("later", 20), until_ms=9000)
    assert (replay.submitted, replay.completed, len(replay.running), len(replay.waiting)) == (2, 0, 1, 1)
    assert replay.use.figures()["vcore"]["mean"] == 1.0


def test_a_refused_task_is_counted_with_its_reason() -> None:
    """A queue file without its queue, a task that asks for nothing."""
    only_be = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="be"),))
    spec = ClusterSpec(partitions=(PartitionSpec(root=only_be),))
    replay, _ = played(task("ls"), task("be", qos="BE"), spec=spec)
    assert (list(replay.refused), replay.completed, replay.waiting) == (["ls"], 1, {})
    assert replay.refused["ls"]
    nothing, _ = played(task("nothing", cpu=0, memory=0))
    assert (list(nothing.refused), nothing.waiting) == (["nothing"], {})


def test_a_task_runs_only_on_the_models_it_names() -> None:
    """Even when another node has room; without a model any node will do."""
    nodes = [node("a", 8000, 8, "A10"), node("b", 8000, 1, "V100"), node("c", 8000)]
    tasks = [task(f"v{i}", cpu=10, gpu=600, models=("P100", "V100")) for i in range(2)]
    replay, lines = played(*tasks, task("any", cpu=10, gpu=8000), nodes=nodes)
    placed = {w[2].removeprefix("application="): w[4] for w in map(str.split, lines) if w[1] == "allocated"}
    assert placed == {"v0": "node=b", "any": "node=a", "v1": "node=b"}
    assert starts(lines)[-1] == (10_000, "v1")
    assert replay.use.capacity == {"gpu-milli": 9000, "memory": 3 * 2**30, "vcore": 24_000}


def test_evicted_work_comes_back_and_starts_over() -> None:
    """Preempted by priority: the time it ran is lost, its second run is whole, and totals still add up."""
    queues = tuple(QueueSpec(name=name) for name in ("ls", "be"))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    partition = PartitionSpec(root=root, preemption=PreemptionSpec(enabled=True, rule="priority"))
    replay, lines = played(
        task("low", qos="BE", runs_s=100), task("high", at_s=50), spec=ClusterSpec(partitions=(partition,))
    )
    assert (replay.evictions, replay.lost_ms, replay.completed) == (1, 50_000, 2)
    assert starts(lines) == [(0, "low"), (50_000, "high"), (60_000, "low")]
    assert "key=low#2" in "".join(lines)
    assert replay.now_ms >= 160_000


def test_a_maximum_of_the_queue_file_holds() -> None:
    """The given queue file is used, not the built-in one."""
    be = QueueSpec(name="be", max=Limits({"vcore": 1000}))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(be,))
    spec = ClusterSpec(partitions=(PartitionSpec(root=root),))
    tasks = [task(f"t{i}", qos="BE") for i in range(2)]
    assert starts(played(*tasks, nodes=[node(cpu=9000)], spec=spec)[1])[1] == (10_000, "t1")
    assert starts(played(*tasks, nodes=[node(cpu=9000)], spec=default_cluster())[1])[1] == (0, "t1")


TASKS = st.lists(
    st.builds(
        task,
        st.just(""),
        at_s=st.integers(0, 30),
        runs_s=st.integers(0, 20),
        cpu=st.sampled_from([0, 1000, 1000, 1000, 2000, 2500]),
        qos=st.sampled_from(["LS", "BE", "Guaranteed", "Burstable"]),
        gpu=st.sampled_from([0, 0, 0, 500]),
        models=st.sampled_from([(), (), (), ("A",), ("A", "B"), ("C",)]),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(TASKS, st.integers(0, 40))
def test_every_task_is_in_exactly_one_place(drawn: list[TraceTask], until_s: int) -> None:
    """At any moment: submitted = completed + running + waiting + refused, and use is what runs."""
    tasks = [
        TraceTask(f"t{i}", t.cpu_milli, t.memory_mib, t.gpu_milli, t.models, t.qos, t.created_ms, t.run_ms)
        for i, t in enumerate(sorted(drawn, key=lambda t: t.created_ms))
    ]
    nodes = [node("a", 1000, 1, "A"), node("b", 2000, 1, "B")]
    replay, lines = played(*tasks, nodes=nodes, until_ms=until_s * 1000)
    places = [set(replay.running), set(replay.waiting), set(replay.refused)]
    assert replay.submitted == replay.completed + sum(map(len, places))
    assert sum(map(len, places)) == len(set().union(*places))
    assert replay.submitted == sum(t.created_ms <= until_s * 1000 for t in tasks)
    for name in replay.use.capacity:
        assert replay.use.used[name] == sum(dict(run.items).get(name, 0) for run in replay.running.values())
    replay.scheduler.check()
    reasons = [replay.scheduler.why(name, run.key) for name, run in replay.waiting.items()]
    assert all(reason is not None and reason.code != "next-in-line" for reason in reasons)
    again, lines_again = played(*tasks, nodes=nodes, until_ms=until_s * 1000)
    assert (again.digest, lines_again) == (replay.digest, lines)
