"""Constraints: the production scheduler, which counts as it goes, against one that goes through all that runs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test
from invariants.books import check_books
from properties.worlds import ASKED, CAPACITY, LEAVES, PICK
from reference.constrained import ConstrainedScheduler
from reference.test_same_placements import START_MS, Both

from fairlead.core.model.constraints import (
    HOSTNAME,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    SpreadTerm,
    Taint,
    Toleration,
)
from fairlead.core.model.events import AddAsks, AddNode, Event, LabelNode, ReportImages
from fairlead.core.model.reasons import NextInLine
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, ClusterSpec, PartitionSpec, PreemptionSpec, QueueSpec
from fairlead.scheduler import Scheduler

TOPOLOGIES = ("zone", "zone", HOSTNAME, "rack")
OPERATORS = ("In", "In", "In", "NotIn", "Exists", "DoesNotExist")
MIB = 1024 * 1024
SIZES = {"a": 30, "b": 400, "c": 1500, "d": 9000}
"""Images, in MiB."""
QUEUES = tuple(
    QueueSpec(name=name, parent=bool(below), queues=tuple(QueueSpec(name=each) for each in below))
    for name, below in (("a", "xy"), ("b", "z"), ("c", ""))
)
CLUSTER = ClusterSpec(
    partitions=(
        PartitionSpec(
            root=QueueSpec(name="root", parent=True, submit_acl="*", queues=QUEUES),
            # Reservations are not for the naive one, whatever the ages.
            preemption=PreemptionSpec(enabled=False),
        ),
    )
)


class Chance(random.Random):
    """Constraints drawn at random, from so few words that they meet."""

    def some(self, likely: float, make: object, most: int = 1) -> tuple[object, ...]:
        many = self.randint(1, most) if self.random() < likely else 0
        return tuple(make() for _ in range(many))  # type: ignore[operator]

    def labels(self) -> dict[str, str]:
        drawn = {key: self.choice("xy") for key in ("app", "tier") if self.random() < 0.5}
        return drawn | ({"alone": str(self.randint(0, 99))} if self.random() < 0.3 else {})

    def attributes(self) -> dict[str, str]:
        drawn = {"zone": self.choice("ab"), "rack": self.choice("rs"), "size": self.choice(["1", "5", "many"])}
        return {key: value for key, value in drawn.items() if self.random() < 0.85}

    def condition(self, keys: tuple[str, ...], values: str) -> Requirement:
        operator = self.choice(OPERATORS)
        if operator in ("Exists", "DoesNotExist"):
            return Requirement(self.choice(keys), operator)
        return Requirement(self.choice(keys), operator, tuple(self.sample(values, self.randint(1, 2))))

    def of_node(self) -> Requirement:
        if self.random() < 0.2:
            return Requirement("size", self.choice(["Gt", "Lt"]), (self.choice("135"),))
        return self.condition(("zone", "rack"), "abrs")

    def of_work(self) -> tuple[Requirement, ...]:
        return tuple(self.condition(("app", "tier"), "xy") for _ in range(self.choice([0, 1, 1, 1, 2])))

    def affinity(self) -> AffinityTerm:
        return AffinityTerm(self.of_work(), self.choice(TOPOLOGIES))

    def spread(self) -> SpreadTerm:
        counts = {"only_selected": self.random() < 0.7, "only_tolerated": self.random() < 0.3}
        return SpreadTerm(self.of_work(), self.choice(TOPOLOGIES), self.randint(1, 2), self.randint(1, 3), **counts)

    def taint(self) -> Taint:
        return Taint(self.choice("pq"), self.choice(["", "v"]), self.choice(["NoSchedule", "NoExecute"]))

    def taints(self) -> tuple[Taint, ...]:
        soft = (Taint("p", "", "PreferNoSchedule"),) if self.random() < 0.1 else ()
        return (*soft, *self.some(0.15, self.taint, 2))  # type: ignore[arg-type]

    def toleration(self) -> Toleration:
        effect = self.choice(["", "", "NoSchedule", "NoExecute"])
        if self.random() < 0.3:
            return Toleration(self.choice(["", "p"]), "Exists", "", effect)
        return Toleration(self.choice("pq"), "Equal", self.choice(["", "v"]), effect)

    def port(self) -> str:
        return f"TCP/{self.choice(['0.0.0.0', '1.1.1.1', '2.2.2.2'])}/{self.choice(['80', '90'])}"

    def liked(self) -> PreferredNodes:
        return PreferredNodes(self.randint(1, 9), (self.of_node(),))

    def company(self) -> PreferredWork:
        return PreferredWork(self.randint(-9, 9), self.affinity())

    def images(self) -> dict[str, int]:
        """Of four images some; an image has the same size everywhere."""
        return {name: size * MIB for name, size in SIZES.items() if self.random() < 0.4}

    def where(self) -> Constraints:
        if self.random() < 0.3:
            return Constraints()
        return Constraints(
            selector=self.some(0.15, self.of_node),  # type: ignore[arg-type]
            node_terms=self.some(0.15, lambda: (self.of_node(),), 2),  # type: ignore[arg-type]
            tolerations=self.some(0.3, self.toleration, 2),  # type: ignore[arg-type]
            affinity=self.some(0.25, self.affinity, 2),  # type: ignore[arg-type]
            anti_affinity=self.some(0.25, self.affinity, 2),  # type: ignore[arg-type]
            spread=self.some(0.2, self.spread, 2),  # type: ignore[arg-type]
            ports=self.some(0.2, self.port, 2),  # type: ignore[arg-type]
            preferred_nodes=self.some(0.2, self.liked, 2),  # type: ignore[arg-type]
            preferred_work=self.some(0.2, self.company, 2),  # type: ignore[arg-type]
            preferred_spread=self.some(0.2, self.spread, 2),  # type: ignore[arg-type]
        )


class Constrained(Both):
    """Both schedulers, with constraints on everything that comes."""

    @initialize(
        salt=st.integers(0, 10**6),
        capacities=st.lists(CAPACITY, min_size=1, max_size=5) | st.lists(CAPACITY, min_size=13, max_size=16),
    )
    def start(self, salt: int, capacities: list[Resources]) -> None:
        self.now_ms, self.made = START_MS, 0
        self.chance = Chance(salt)
        self.fast, self.naive = Scheduler(CLUSTER, self.now_ms), ConstrainedScheduler(CLUSTER.partitions[0])
        for capacity in capacities:
            self.add_node(capacity, True)

    def handle(self, event: Event) -> None:
        if isinstance(event, AddNode):
            labelled = replace(event.node, attributes=self.chance.attributes(), taints=self.chance.taints())
            event = AddNode(labelled)
        elif isinstance(event, AddAsks):
            event = replace(event, asks=tuple(self.constrained(spec) for spec in event.asks))
        super().handle(event)

    def constrained(self, spec: AskSpec) -> AskSpec:
        images = sorted(self.chance.choices(list(SIZES), k=self.chance.randint(0, 2)))
        return replace(spec, labels=self.chance.labels(), where=self.chance.where(), images=tuple(images))

    @precondition(lambda self: self.naive.nodes)
    @rule(pick=PICK)
    def images_come_and_go(self, pick: int) -> None:
        node = list(self.naive.nodes)[pick % len(self.naive.nodes)]
        self.handle(ReportImages(node, self.chance.images()))

    @precondition(lambda self: self.naive.nodes)
    @rule(pick=PICK)
    def relabel(self, pick: int) -> None:
        node = list(self.naive.nodes)[pick % len(self.naive.nodes)]
        self.handle(LabelNode(node, self.chance.attributes(), self.chance.taints()))

    @rule(queue=st.sampled_from(LEAVES), resources=ASKED, count=st.integers(2, 6))
    def a_group_comes(self, queue: str, resources: Resources, count: int) -> None:
        self.submit(queue, resources, 0, count)
        self.schedule(None)

    @rule()
    def start_again_from_what_was_written_down(self) -> None:
        written = self.fast.dump()
        self.fast = Scheduler.load(written)
        assert self.fast.dump() == written

    def reconfigure(self) -> None:
        """Not here: queues come and go elsewhere."""

    def schedule(self, limit: int | None) -> None:
        super().schedule(limit)
        check_books(self.fast)
        if limit is None:
            for app in self.naive.applications.values():
                for ask in app.waiting():
                    why = self.fast.why(app.id, ask.key)
                    assert why is not None, f"{app.id}/{ask.key} waits for no reason"
                    assert not isinstance(why, NextInLine), f"{app.id}/{ask.key} would fit and is left waiting"
                    assert why.sentence()


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_the_same_placements_in_the_same_order(fewer_step_settings: settings) -> None:
    """What is counted as work comes and goes is what is there."""
    run_state_machine_as_test(Constrained, settings=fewer_step_settings)
