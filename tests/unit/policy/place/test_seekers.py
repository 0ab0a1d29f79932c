"""Which ask of a demand has a node set aside next: remembered, and found anew whenever another one may be before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from priority_clusters import PriorityCluster
from properties.rank_courses import decided_in

from fairlead.core.acts import nominate, reserve_node
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.demand import Demand
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Reserved
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Configure, DrainNode, Release, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.order.pick import Lines
from fairlead.policy.place import allocate, reserved
from fairlead.policy.place.reserved import first_seeker

FAIR = {"application.sort.policy": "fair"}


class Waiting(PriorityCluster):
    """A full node by guarantee, and a leaf where applications go by what they use; nothing is stopped."""

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        super().__init__(
            QueueSpec(name="a", properties=properties or {}), nodes={"n1": 4}, rule="guarantee", enabled=False
        )
        self.fill("runs", 4)

    @property
    def partition(self) -> Partition:
        return self.s.cluster.partitions["default"]

    @property
    def lines(self) -> Lines:
        return self.s._cycle_of(self.partition).lines

    def add(self, app: str, key: str, priority: int = 0, cores: int = 2) -> None:
        """One more ask of an application, which is made if it is not there."""
        if app not in self.partition.applications:
            self.handle(AddApplication(ApplicationSpec(id=app, queue="root.a")))
        size = Resources({"vcore": cores * 1000})
        self.handle(AddAsks((AskSpec(application=app, key=key, resources=size, priority=priority),)))

    def ask(self, app: str, key: str) -> Ask:
        return self.partition.applications[app].asks[key]

    def pass_time(self, millis: int) -> None:
        """Without a call that schedules."""
        self.now_ms += millis
        self.handle(Release("runs", "nothing-of-this-name"))

    def first(self) -> str:
        """The first ask that has its turn, of all that wait."""
        lines = self.lines
        lines.settle()
        asks = [ask for app in self.partition.applications.values() for ask in app.asks.values()]
        demands = {ask.batch.demand: None for ask in asks if ask.batch is not None}
        [demand] = demands
        found = first_seeker(self.partition, lines, demand)
        return found[1].key if found is not None else ""


def younger_but_higher(c: Waiting) -> None:
    """It was there before, and has waited long enough now."""
    c.pass_time(1_500)


def higher_comes_and_waits(c: Waiting) -> None:
    c.add("a3", "new", 5)
    c.pass_time(3_000)


def first_is_withdrawn(c: Waiting) -> None:
    c.handle(Release("a1", "w1", Cause.STOPPED_BY_RM))


def first_goes_back(c: Waiting) -> None:
    c.handle(SetPriority("a1", "w1", -3))


def second_comes_forward(c: Waiting) -> None:
    c.handle(SetPriority("a2", "w2", 3))


def first_gets_a_node(c: Waiting) -> None:
    reserve_node.reserve(c.partition, c.ask("a1", "w1"), c.partition.nodes.nodes["n1"])


def room_gathers_for_the_first(c: Waiting) -> None:
    nominate.nominate(c.partition, c.ask("a1", "w1"), c.partition.nodes.nodes["n1"], (), gathers=True)


def other_criteria(c: Waiting) -> None:
    """Priorities count first no longer; of two that came at once the older application is first."""
    queue = QueueSpec(name="a", properties={"application.sort.priority": "disabled"})
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(queue,))
    c.handle(Configure(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(enabled=False)),))))


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (younger_but_higher, "young"),
        (higher_comes_and_waits, "new"),
        (first_is_withdrawn, "w2"),
        (first_goes_back, "w2"),
        (second_comes_forward, "w2"),
        (first_gets_a_node, "w2"),
        (room_gathers_for_the_first, "w2"),
    ],
)
def test_which_is_first_is_found_anew(change: Callable[[Waiting], None], after: str) -> None:
    c = Waiting()
    c.add("a1", "w1", 2)
    c.add("a2", "w2", 1)
    c.pass_time(2_500)
    if change is younger_but_higher:
        c.add("a3", "young", 5)
        c.pass_time(1_000)
    assert c.first() == c.first() == "w1"
    change(c)
    assert c.first() == after


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_an_application_that_uses_less_than_before_comes_first(is_looked_at: bool) -> None:
    """Also where its line was put in order already, since something of it might have fitted."""
    c = Waiting(FAIR)
    c.handle(Release("runs", "runs", Cause.FINISHED))
    for app in ("a1", "a2"):
        c.add(app, f"{app}-runs", cores=2 if app == "a1" else 1)
        c.run()
        c.add(app, f"{app}-waits")
    c.pass_time(2_500)
    assert c.first() == c.first() == "a2-waits"
    c.handle(Release("a1", "a1-runs", Cause.FINISHED))
    if is_looked_at:
        c.lines.settle()
        batch = c.ask("a1", "a1-waits").batch
        assert batch is not None
        entry = c.lines.first(batch.demand)
        assert entry is not None
        assert entry[2] is batch
    assert c.first() == "a1-waits"


def test_an_application_that_uses_more_than_before_falls_back() -> None:
    c = Waiting(FAIR)
    c.handle(Release("runs", "runs", Cause.FINISHED))
    for app in ("a1", "a2"):
        c.add(app, f"{app}-runs", cores=1)
        c.run()
        c.add(app, f"{app}-waits", cores=3)
    c.pass_time(2_500)
    assert c.first() == c.first() == "a1-waits"
    c.add("a1", "small", cores=1)
    assert c.run()[0] == ["small@n1"]
    assert c.first() == "a2-waits"


def test_the_next_of_another_size_stands_before_what_was_found() -> None:
    """For the first node all sizes were looked at; for the second the size whose first ask has a node still counts."""
    c = Waiting()
    c.node("n2", 4)
    c.fill("runs2", 4)
    c.node("spare", 8)
    c.handle(DrainNode("spare"))  # All nodes together have room: only each by itself has none.
    c.add("a1", "small", 0, cores=1)
    c.run()
    c.add("a2", "large", 5, cores=2)
    c.add("a2", "large as well", 4, cores=2)
    c.run(2_500)
    assert [d.key for d in c.decided if isinstance(d, Reserved)] == ["large", "large as well"]


def test_other_criteria_are_other_places() -> None:
    c = Waiting()
    c.add("a1", "w1", 0)
    c.add("a2", "w2", 3)
    c.pass_time(2_500)
    assert c.first() == "w2"
    other_criteria(c)
    assert c.first() == "w1"


@pytest.mark.plain
def test_a_node_that_is_set_aside_costs_a_look_at_the_one_demand_that_got_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not at all that wait: with hundreds of sizes and nodes that was seconds in one call."""
    c = PriorityCluster(QueueSpec(name="a"), nodes={f"n{i}": 4 for i in range(8)}, rule="guarantee", enabled=False)
    for i in range(8):
        c.fill(f"runs{i}", 4)
    c.node("spare", 8)
    c.handle(DrainNode("spare"))  # All nodes together have room: only each by itself has none.
    sizes = [Resources({"vcore": 100 * (i + 1)}) for i in range(6)]
    for app in (f"app{i}" for i in range(20)):
        c.handle(AddApplication(ApplicationSpec(id=app, queue="root.a")))
        c.handle(AddAsks(tuple(AskSpec(application=app, key=f"{app}-{r}", resources=r) for r in sizes)))
    c.run()
    looks: list[Batch] = []
    checks: list[Demand] = []
    first_due, seeks_still = reserved._first_due, reserved._seeks_still

    def counted(partition: Partition, batch: Batch, latest: int) -> tuple[Ask | None, int]:
        looks.append(batch)
        return first_due(partition, batch, latest)

    def checked(partition: Partition, lines: object, demand: Demand, *more: Any) -> bool:
        checks.append(demand)
        return seeks_still(partition, lines, demand, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(reserved, "_first_due", counted)
    monkeypatch.setattr(reserved, "_seeks_still", checked)
    c.run(2_500)
    assert sum(isinstance(d, Reserved) for d in c.decided) == 8
    assert len(looks) < 60  # 144, if each of six demands were looked at for each of eight nodes.
    assert len(checks) < 30  # 48, if each were looked at that stands behind one that was found.


@pytest.mark.plain
def test_looking_anew_each_time_decides_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(60, 64)
    quick = [decided_in("guarantee", number) for number in numbers]
    assert sum(isinstance(d, Reserved) for decided in quick for d in decided) > 5
    used: list[Demand] = []

    def never(_: Partition, __: object, demand: Demand, *more: object) -> bool:
        used.append(demand)
        return False

    monkeypatch.setattr(reserved, "_seeks_still", never)
    monkeypatch.setattr(allocate, "first_seeker", lambda p, lines, demand, before=None: first_seeker(p, lines, demand))
    assert [decided_in("guarantee", number) for number in numbers] == quick
    assert used
