"""Kept orders and remembered obstacles: nobody who fits is left waiting, and nobody is passed over."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterable

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster

from fairlead.core.books.demand import Demand, Entry
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    DrainNode,
    Release,
    RemoveApplication,
    RemoveNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.order import pick
from fairlead.scheduler import Scheduler


def cluster(*queues: QueueSpec, rule: str = "guarantee", enabled: bool = False) -> ClusterSpec:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule, enabled=enabled)),))


class Course:
    """A scheduler under way; every call is a millisecond later."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.now_ms = 0
        self.scheduler = Scheduler(spec)

    def handle(self, *events: object) -> None:
        for event in events:
            self.now_ms += 1
            self.scheduler.handle(event, self.now_ms)  # type: ignore[arg-type]
            check_books(self.scheduler)

    def node(self, name: str, **amounts: int) -> None:
        self.handle(AddNode(NodeSpec(id=name, capacity=Resources(amounts))))

    def drained_node(self) -> None:
        """One larger than any room, so that no size lacks room in all nodes together."""
        self.node("larger than any room", vcore=1000)
        self.handle(DrainNode("larger than any room"))

    def app(self, name: str, queue: str = "root.a") -> None:
        self.handle(AddApplication(ApplicationSpec(id=name, queue=queue, user="ann")))

    def ask(self, app: str, key: str, priority: int = 0, **amounts: int) -> None:
        self.handle(AddAsks((AskSpec(application=app, key=key, resources=Resources(amounts), priority=priority),)))

    def end(self, app: str, key: str = "") -> None:
        self.handle(Release(app, key, Cause.FINISHED))

    def placed(self, limit: int | None = None) -> list[str]:
        decisions = self.scheduler.schedule(self.now_ms, limit)
        check_books(self.scheduler)
        return [d.key for d in decisions if isinstance(d, Allocated)]


def leaves(*names: str) -> Iterable[QueueSpec]:
    return [QueueSpec(name=name) for name in names]


def test_work_for_a_queue_that_slept_is_found() -> None:
    """The whole way up is woken, also where the queues above slept before the leaf was ever looked at."""
    course = Course(cluster(QueueSpec(name="a", parent=True, queues=tuple(leaves("x", "y")))))
    course.node("n", vcore=2)
    assert course.placed() == []
    course.app("one", "root.a.x")
    course.ask("one", "k1", vcore=1)
    assert course.placed() == ["k1"]
    course.ask("one", "k2", vcore=1)
    assert course.placed() == ["k2"]


def test_a_queue_whose_work_was_withdrawn_is_found_again() -> None:
    """Ask, withdraw, ask: an inner queue without work sleeps together with all below it."""
    course = Course(cluster(QueueSpec(name="a", parent=True, queues=tuple(leaves("x", "y")))))
    course.app("one", "root.a.x")
    course.ask("one", "k1", vcore=1)
    course.end("one", "k1")
    course.node("n", vcore=2)
    assert course.placed() == []
    course.ask("one", "k2", vcore=1)
    assert course.placed() == ["k2"]


@pytest.mark.parametrize("names", [("memory", "vcore"), ("vcore", "memory")])
def test_of_equal_siblings_the_one_that_waits_for_more_comes_first(names: tuple[str, str]) -> None:
    """Waiting for more of one resource and not for less of any other, whatever the resources are called."""
    course = Course(cluster(*leaves("a", "b")))
    course.app("less", "root.a")
    course.app("more", "root.b")
    course.ask("less", "small", **{names[1]: 1})
    course.ask("more", "large", **{names[0]: 1, names[1]: 1})
    course.ask("more", "small-too", **{names[1]: 1})
    course.node("n", **{names[0]: 1, names[1]: 1})
    assert course.placed() == ["large"]


def test_what_once_waited_does_not_count_any_more() -> None:
    """An amount that went back to zero leaves no trace in the order of siblings."""
    course = Course(cluster(*leaves("a", "b")))
    course.app("once", "root.b")
    course.ask("once", "gone", gpu=1)
    course.end("once", "gone")
    course.app("less", "root.a")
    course.app("more", "root.b")
    course.ask("less", "l1", vcore=1)
    for key in ("m1", "m2"):
        course.ask("more", key, vcore=1)
    course.node("n", vcore=1)
    assert course.placed() == ["m1"]


@pytest.mark.parametrize("parked", [False, True])
def test_the_order_of_a_leaf_may_change_while_it_waits(parked: bool) -> None:
    """A reload from fifo by priority to fair without it reorders all who wait, in line or set aside."""
    sort = {"application.sort.policy": "fair", "application.sort.priority": "disabled"}
    course = Course(cluster(*leaves("a")))
    course.node("n", vcore=2)
    for app in ("one", "two"):
        course.app(app)
        course.ask(app, f"{app}-1", vcore=1)
    assert course.placed() == ["one-1", "two-1"]
    for app, priority in (("one", 0), ("two", 5), ("three", 1)):
        if app == "three":
            course.app(app)
        course.ask(app, f"{app}-2", priority=priority, vcore=1)
    if parked:
        assert course.placed() == []
    course.handle(Configure(cluster(QueueSpec(name="a", properties=sort))))
    assert course.placed() == []
    for app, priority in (("one", 9), ("three", 9)):
        course.ask(app, f"{app}-3", priority=priority, vcore=1)
    course.node("m", vcore=1)
    assert course.placed() == ["three-3"]


def test_who_is_withdrawn_passes_the_turn_on() -> None:
    """The next in order was let out and then withdrawn: its turn goes to the one after it, not to a newcomer."""
    course = Course(cluster(*leaves("a")))
    course.node("n", vcore=1)
    for number in range(4):
        course.app(f"app{number}")
        course.ask(f"app{number}", f"k{number}", vcore=1)
    assert course.placed() == ["k0"]
    course.node("m", vcore=2)
    course.app("late")
    course.ask("late", "k-late", vcore=1)
    assert course.placed(1) == ["k1"]
    course.end("app2", "k2")
    assert course.placed() == ["k3"]


def test_a_reported_placeholder_lets_its_application_run() -> None:
    """An application that is counted as running already does not wait behind `maxapplications` any longer."""
    course = Course(cluster(QueueSpec(name="a", max_applications=1)))
    course.node("n", vcore=3)
    for app in ("one", "two"):
        course.app(app)
        course.ask(app, f"{app}-1", vcore=1)
    assert course.placed() == ["one-1"]
    spec = AskSpec(
        application="two", key="p", resources=Resources({"vcore": 1}), node="n", placeholder=True, task_group="g"
    )
    course.handle(AddAsks((spec,)))
    assert course.placed() == ["two-1"]


def test_a_new_size_changes_nothing_but_the_size() -> None:
    """A report of another size without the other fields leaves them as they were submitted."""
    course = Course(cluster(*leaves("a")))
    course.node("n", vcore=3)
    course.app("one")
    placeholder = AskSpec(
        application="one", key="p", resources=Resources({"vcore": 1}), node="n", placeholder=True, task_group="g"
    )
    course.handle(AddAsks((placeholder,)))
    course.ask("one", "p", vcore=2)
    app = course.scheduler.cluster.partitions["default"].applications["one"]
    assert app.placeholders == {"vcore": 2}
    assert app.asks["p"].spec.task_group == "g"


def test_held_space_is_not_used_beyond_what_all_nodes_have() -> None:
    """A preemptor whose space became free still waits while another node is over-committed."""
    course = Course(cluster(*leaves("a"), rule="priority", enabled=True))
    course.node("n", vcore=2)
    course.node("m", vcore=2)
    course.app("low")
    for key in ("l1", "l2"):
        course.ask("low", key, vcore=2)
    assert sorted(course.placed()) == ["l1", "l2"]
    course.app("high")
    course.ask("high", "h", priority=9, vcore=2)
    course.scheduler.schedule(course.now_ms)
    high = course.scheduler.cluster.partitions["default"].applications["high"].asks["h"]
    assert high.held_on is not None
    other = next(name for name in ("n", "m") if name != high.held_on.id)
    forced = AskSpec(application="low", key="forced", resources=Resources({"vcore": 1}), node=other)
    course.handle(AddAsks((forced,)))
    course.handle(Release("low", high.victims[0].key, Cause.PREEMPTED_BY_SCHEDULER))
    course.placed()
    root = course.scheduler.cluster.partitions["default"].root
    assert root.max == {"vcore": 4}
    assert root.allocated["vcore"] <= 4


def test_limits_of_calls_add_up_with_several_partitions() -> None:
    """Each partition places at most one ask in a round, and a limit counts rounds: 1 and 1 decide what 2 does."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=tuple(leaves("a")))
    spec = ClusterSpec(partitions=tuple(PartitionSpec(name=name, root=root) for name in ("default", "other")))
    placed = []
    for limits in ([2], [1, 1]):
        course = Course(spec)
        for part, count in (("default", 4), ("other", 3)):
            node = NodeSpec(id="n", capacity=Resources({"vcore": 9}), partition=part)
            app = ApplicationSpec(id="one", queue="root.a", partition=part)
            asks = [
                AskSpec(application="one", key=f"{part}-{i}", resources=Resources({"vcore": 1})) for i in range(count)
            ]
            course.handle(AddNode(node), AddApplication(app), AddAsks(tuple(asks), part))
        placed.append([key for limit in limits for key in course.placed(limit)])
    assert placed[0] == placed[1] == ["default-0", "other-0", "default-1", "other-1"]


def test_who_loses_a_reserved_node_gets_another() -> None:
    """The node that was set aside for the second of two equal asks is removed: another one is set aside for it."""
    course = Course(cluster(*leaves("a")))
    for name, vcore in (("n1", 2), ("n2", 2), ("n3", 2), ("n4", 1), ("n5", 1)):
        course.node(name, vcore=vcore)
    course.app("running")
    for key in ("r1", "r2", "r3"):
        course.ask("running", key, vcore=1)
    assert course.placed() == ["r1", "r2", "r3"]
    course.app("waiting")
    for key in ("w1", "w2"):
        course.ask("waiting", key, vcore=2)
    course.now_ms += 5_000
    assert course.placed() == []
    second = course.scheduler.cluster.partitions["default"].applications["waiting"].asks["w2"]
    lost = second.reserved_on
    assert lost is not None
    course.handle(RemoveNode(lost.id))
    assert second.reserved_on is None
    course.placed()
    assert second.reserved_on is not None


def test_an_application_that_had_nothing_left_stands_in_its_old_place_again() -> None:
    """Also while so many shapes fit that applications are gone through instead of shapes."""
    course = Course(cluster(QueueSpec(name="a")))
    course.node("n", vcore=14)
    for name in ("first", "second"):
        course.app(name)
    course.ask("first", "k1", vcore=1)
    for cores in range(2, 12):
        course.ask("second", f"of {cores}", vcore=cores)
    assert course.placed(2) == ["k1", "of 2"]
    course.ask("first", "k2", vcore=1)
    assert course.placed(1) == ["k2"]


def test_an_application_whose_placeholder_runs_passes_the_gate_of_its_queue() -> None:
    """Also where its user may run only so many applications: its placeholder counts for both already."""
    queue = QueueSpec(name="a", max_applications=1, limits=(LimitSpec(users=("*",), max_applications=2),))
    course = Course(cluster(queue))
    course.node("n", vcore=4)
    for name in ("first", "gang"):
        course.app(name)
        course.ask(name, f"of {name}", vcore=1)
    assert course.placed() == ["of first"]
    running = AskSpec(
        application="gang", key="holds", resources=Resources({"vcore": 1}), node="n", placeholder=True, task_group="g"
    )
    course.handle(AddAsks((running,)))
    assert course.placed() == ["of gang"]


@pytest.mark.parametrize("grows", [False, True], ids=["reported", "grown"])
def test_use_that_is_reported_moves_an_application_behind_others(grows: bool) -> None:
    """In a fair queue, whether an allocation is taken over or grows in place: as after a restart."""
    fair = QueueSpec(name="a", properties={"application.sort.policy": "fair"})
    c = PriorityCluster(fair, QueueSpec(name="b"), nodes={"n1": 8}, rule="guarantee")
    c.fill("first", 1, 0, "root.a")
    c.fill("second", 1, 0, "root.a")
    c.fill("other", 6, 0, "root.b")
    for name in ("first", "second"):
        more = AskSpec(application=name, key="more", resources=Resources({"vcore": 2000}))
        c.handle(AddAsks((more,)))
    c.run()
    key, cores_ = ("first", 2) if grows else ("there", 1)
    use = AskSpec(application="first", key=key, resources=Resources({"vcore": cores_ * 1000}), node="n1")
    c.handle(AddAsks((use,)))
    c.finished("other")
    c.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 2000}))))
    decided = c.s.schedule(c.now_ms, 1)
    assert [d.application for d in decided if isinstance(d, Allocated)] == ["second"]


@pytest.mark.plain
@pytest.mark.parametrize("few", [0, pick.FEW_APPLICATIONS], ids=["by demands", "by applications"])
@pytest.mark.parametrize("offset", [0, 10])
def test_what_an_application_has_in_line_moves_up_with_it(
    monkeypatch: pytest.MonkeyPatch, offset: int, few: int
) -> None:
    """Whether the sizes are few, and looked up one by one, or many; one is more than the maximum above has room for."""
    monkeypatch.setattr(pick, "FEW_APPLICATIONS", few)
    parent = QueueSpec(name="a", parent=True, max=Limits({"vcore": 100}), queues=(QueueSpec(name="leaf"),))
    course = Course(cluster(parent))
    course.node("n", vcore=1000, memory=1000)
    course.app("first", "root.a.leaf")
    course.app("second", "root.a.leaf")
    course.ask("first", "too large", vcore=101)
    for size in range(1, 7):
        course.ask("first", f"first of {size}", vcore=1, memory=size)
        course.ask("first", f"first again of {size}", vcore=1, memory=size)
        course.ask("second", f"second of {size}", vcore=1, memory=offset + size)
    assert course.placed(1) == ["first of 1"]
    course.ask("second", "too large as well", 5, vcore=101)
    assert course.placed(1) == ["second of 1"]


@pytest.mark.parametrize("sizes", [2, 20])
@pytest.mark.parametrize("policy", ["fair", "fifo"])
def test_applications_and_demands_lead_to_the_same_batch(
    monkeypatch: pytest.MonkeyPatch, sizes: int, policy: str
) -> None:
    """Whether its applications are looked at, or its demands, by shape or in order: the first of a leaf is one."""
    rng = random.Random(sizes)
    course = Course(cluster(QueueSpec(name="a", properties={"application.sort.policy": policy})))
    course.node("n", vcore=25)
    course.drained_node()
    for n in range(8):
        course.app(f"app-{n}")
    partition = course.scheduler.cluster.partitions["default"]
    lines, leaf = course.scheduler._cycle_of(partition).lines, partition.root.children["a"]
    found = []
    for number in range(150):
        app = partition.applications[f"app-{rng.randrange(8)}"]
        if app.asks and rng.random() < 0.4:
            course.end(app.id, rng.choice(list(app.asks)))
        else:
            course.ask(app.id, f"k{number}", rng.randrange(3), vcore=rng.randint(1, sizes))
        lines.settle()
        firsts = []
        ways = ((8, 1000, 0, 1), (0, 0, 1000, 1), (0, 0, 0, 1), (0, 0, 0, 4), (0, 0, 0, 1000), (8, 1, 1000, 1))
        for applications, batches, shapes, cost in ways:
            monkeypatch.setattr(pick, "ASIDE_COST", cost)
            monkeypatch.setattr(pick, "FEW_APPLICATIONS", applications)
            monkeypatch.setattr(pick, "FEW_BATCHES", batches)
            monkeypatch.setattr(pick, "FEW_SHAPES", shapes)
            lines._state = ()
            firsts += [lines.first_that_may_fit(leaf), lines.first_that_may_fit(leaf)]
        assert len(set(firsts)) == 1
        found.append(firsts[0])
        course.placed(1)
    assert len(set(found)) > 10


def counted_looks(monkeypatch: pytest.MonkeyPatch) -> list[Demand]:
    """The demands of which the first entry is asked for, from now on."""
    looks: list[Demand] = []
    first = pick.Lines.first

    def counted(self: pick.Lines, demand: Demand) -> Entry | None:
        looks.append(demand)
        return first(self, demand)

    monkeypatch.setattr(pick.Lines, "first", counted)
    return looks


@pytest.mark.plain
def test_what_does_not_fit_is_passed_over_only_as_long_as_that_is_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a few sizes that fit stand a hundred that do not: then those few are looked up."""
    course = Course(cluster(QueueSpec(name="a")))
    course.node("n", vcore=20)
    course.drained_node()
    for n in range(100):
        course.app(f"large-{n}")
        course.ask(f"large-{n}", f"large-{n}", vcore=100 + n)
    assert course.placed() == []
    for n in range(1, 13):
        course.app(f"small-{n}")
        course.ask(f"small-{n}", f"small-{n}", vcore=n)
    partition = course.scheduler.cluster.partitions["default"]
    lines, leaf = course.scheduler._cycle_of(partition).lines, partition.root.children["a"]
    lines.settle()
    looks = counted_looks(monkeypatch)
    found = lines.first_that_may_fit(leaf)
    assert found is not None
    assert found.head.key == "small-1"
    assert len(looks) < 20


@pytest.mark.thorough
@pytest.mark.plain
@pytest.mark.parametrize(("sizes", "aside_cost", "most"), [(60, 1000, 300), (200, pick.ASIDE_COST, 600)])
def test_many_sizes_that_find_no_node_are_put_in_order_once(
    monkeypatch: pytest.MonkeyPatch, sizes: int, aside_cost: int, most: int
) -> None:
    """One after the other finds none. There were 1,800 looks where all that were left were looked at for the first of
    them each time; and 1,098 where each set aside those before it, as long as that was not much for one of them.
    """
    course = Course(cluster(QueueSpec(name="a")))
    course.node("n", vcore=4)
    course.drained_node()
    for n in range(sizes):
        course.app(f"app-{n}")
        course.ask(f"app-{n}", f"app-{n}", vcore=5 + n)
    course.app("fits")
    course.ask("fits", "fits", vcore=4)
    looks = counted_looks(monkeypatch)
    monkeypatch.setattr(pick, "FEW_APPLICATIONS", 0)
    monkeypatch.setattr(pick, "ASIDE_COST", aside_cost)
    assert course.placed() == ["fits"]
    assert len(looks) < most


@pytest.mark.plain
def test_many_sizes_of_several_leaves_are_put_in_order_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """By rank a turn looks at the first of each leaf in turn; the order of one was forgotten for that of the next."""
    course = Course(cluster(QueueSpec(name="a"), QueueSpec(name="b")))
    course.node("n", vcore=4)
    for leaf in "ab":
        for n in range(100):
            course.app(f"{leaf}-{n}", queue=f"root.{leaf}")
            course.ask(f"{leaf}-{n}", f"{leaf}-{n}", vcore=5 + n)
    partition = course.scheduler.cluster.partitions["default"]
    lines, leaves = course.scheduler._cycle_of(partition).lines, partition.root.children
    lines.settle()
    monkeypatch.setattr(pick, "FEW_APPLICATIONS", 0)
    monkeypatch.setattr(pick, "ASIDE_COST", 1000)
    looks = counted_looks(monkeypatch)
    for _ in range(40):
        for leaf in "ab":
            found = lines.first_that_may_fit(leaves[leaf])
            assert found is not None
            partition.nodes.mark_unfit(found.demand.shape)
    assert len(looks) < 600


def test_a_line_does_not_grow_with_the_applications_that_were_there() -> None:
    """What ended is dropped when the line is tidied up; else each further start would take longer."""
    course = Course(cluster(QueueSpec(name="a")))
    course.node("n", vcore=10)
    for number in range(300):
        course.app(f"app-{number}")
        course.ask(f"app-{number}", "k", vcore=1)
        course.placed()
        course.end(f"app-{number}")
        course.handle(RemoveApplication(f"app-{number}"))
    leaf = course.scheduler.cluster.partitions["default"].root.children["a"]
    assert len(leaf.apps_heap) < 100


def test_where_rank_decides_nothing_stays_of_what_waited_once() -> None:
    """Each job that came while none of its kind waited left something for good, and each further start took longer."""
    busy = PriorityCluster()
    busy.node("n", 4)
    for number in range(300):
        busy.submit(f"k{number}", 1)
        assert busy.run()[0] == [f"k{number}@n"]
        busy.finished(f"k{number}")
    gc.collect()
    assert sum(isinstance(each, Demand) for each in gc.get_objects()) < 100
