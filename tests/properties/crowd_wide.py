"""Crowds in which everything else happens too: trees of three levels with offsets, fences and resource groups, taints,
ports, volumes, preferences, images, windows, bounds on how much of an application runs at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from properties.crowd import Crowd

from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import (
    HOSTNAME,
    PREFER_NO_SCHEDULE,
    VOLUME_LIMIT,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    SpreadTerm,
    Taint,
    Toleration,
)
from fairlead.core.model.events import (
    AddNode,
    Event,
    LabelAsk,
    LabelNode,
    RemoveWindow,
    ReportImages,
    SetAtOnce,
    SetWindow,
)
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import AskSpec, ClusterSpec, LimitSpec, QueueSpec, WindowSpec

WIDE_FROM = 200_000
TAINT = Taint("dedicated", "x")
OF_PARENTS = {
    "priority.offset": (("-2", "3"), 0.3),
    "priority.policy": (("fence",), 0.2),
    "resource.group": (("true",), 0.4),
    "preemption.policy": (("fence", "disabled"), 0.15),
}


def crowd_of(number: int, part: Callable[[], Partition], rule: str = "") -> Crowd:
    """The crowd of this number."""
    return (WideCrowd if number >= WIDE_FROM else Crowd)(number, part, rule)


class WideCrowd(Crowd):
    """See above. Its leaves stand in turn below `root.p`, `root.q.r` and `root`."""

    def happens(self) -> Iterator[Event]:
        yield from super().happens()
        for _ in range(self.chance.choice([0, 0, 1])):
            yield self._else()

    def _else(self) -> Event:
        chance, apps, nodes = self.chance, list(self.part.applications), list(self.part.nodes.nodes)
        choices: list[Event] = [SetWindow(self._window()), RemoveWindow(chance.choice("vw"))]
        if nodes:
            images = {f"i{n}": chance.choice([1, 500, 5_000]) << 20 for n in range(3) if chance.random() < 0.5}
            choices += [self._labelled(chance.choice(nodes)), ReportImages(chance.choice(nodes), images)]
        if apps:
            app = chance.choice(apps)
            choices += [SetAtOnce(app, chance.choice([0, 1, 3]))]
            if asks := list(self.part.applications[app].asks):
                choices += [LabelAsk(app, chance.choice(asks), {"app": chance.choice(apps)}, self._where(app))]
        return chance.choice(choices)

    def _window(self) -> WindowSpec:
        chance, nodes = self.chance, list(self.part.nodes.nodes)
        return WindowSpec(
            name=chance.choice("vw"),
            starts_ms=self.now_ms + chance.choice([0, 2_000, 20_000]),
            length_ms=chance.choice([1_000, 10_000]),
            every_ms=chance.choice([0, 30_000]),
            nodes=tuple(chance.sample(nodes, min(len(nodes), chance.randint(0, 3)))),
            users=("u0",),
            stop_running=chance.random() < 0.3,
        )

    # -- what it is about -------------------------------------------------------------------------------------------

    def _labelled(self, node: str) -> LabelNode:
        chance = self.chance
        attributes = {"zone": f"z{chance.randrange(3)}", VOLUME_LIMIT + "d": str(chance.randint(0, 3))}
        taints = (replace(TAINT, effect=chance.choice([TAINT.effect, PREFER_NO_SCHEDULE])),)
        return LabelNode(node, attributes, taints if chance.random() < 0.2 else ())

    def _node(self) -> AddNode:
        made = super()._node()
        labelled = self._labelled(made.node.id)
        return AddNode(replace(made.node, attributes=labelled.attributes, taints=labelled.taints))

    def _leaf(self) -> str:
        chosen = self.chance.choice(self.leaves)
        return ("root.p.", "root.q.r.", "root.")[self.leaves.index(chosen) % 3] + chosen

    def _ask(self, app: str) -> AskSpec:
        chance = self.chance
        drawn = super()._ask(app)
        return replace(
            drawn,
            priority=0 if drawn.priority_class else drawn.priority,
            allow_preempt_self=chance.random() < 0.9,
            originator=chance.random() < 0.05,
            min_runtime_ms=chance.choice([0, 0, 0, 3_000]),
            images=(f"i{chance.randrange(3)}",) if chance.random() < 0.1 else (),
        )

    def _where(self, app: str) -> Constraints:
        chance, own = self.chance, (Requirement("app", "In", (app,)),)
        zone = (Requirement("zone", "In", (f"z{chance.randrange(3)}",)),)
        near, spread = AffinityTerm(own, "zone"), SpreadTerm(own, HOSTNAME, chance.randint(1, 3))
        wishes = Constraints(
            preferred_nodes=(PreferredNodes(chance.randint(1, 9), zone),),
            preferred_work=(PreferredWork(chance.choice([-5, 5]), near),),
        )
        choices = [
            super()._where(app),
            Constraints(ports=(f"TCP/0.0.0.0/{chance.randint(80, 82)}",)),
            Constraints(volumes=(f"v{chance.randrange(4)}@d",)),
            Constraints(selector=zone),
            Constraints(spread=(spread,)),
            wishes,
            Constraints(preferred_spread=(spread,)),
        ]
        tolerations = (Toleration(TAINT.key, value=TAINT.value),) if chance.random() < 0.3 else ()
        return replace(chance.choice(choices), tolerations=tolerations)

    def _file(self) -> ClusterSpec:
        """The same with three parents instead of none or one."""
        file = super()._file()
        part = file.partitions[0]
        leaves = [self._queue(name) for name in self.leaves]
        inner = self._parent("r", leaves[1::3])
        queues = (self._parent("p", leaves[::3]), self._parent("q", [inner]), *leaves[2::3])
        limits = LimitSpec(users=("u1",), max_resources=Limits({"vcore": self.chance.randint(8, 40) * 1_000}))
        root = replace(part.root, queues=queues, limits=(limits,) if self.chance.random() < 0.3 else ())
        return replace(file, partitions=(replace(part, root=root),))

    def _parent(self, name: str, queues: list[QueueSpec]) -> QueueSpec:
        chance = self.chance
        return QueueSpec(
            name=name,
            parent=True,
            queues=tuple(queues),
            max=self._vcore(20, 60, 0.3),
            guaranteed=self._vcore(5, 30, 0.4),
            max_applications=chance.choice([0, 0, 0, 8]),
            properties={key: chance.choice(texts) for key, (texts, p) in OF_PARENTS.items() if chance.random() < p},
        )
