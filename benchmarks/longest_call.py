"""How long is the longest call where much work of many sizes waits?

    python -m benchmarks.longest_call [SITUATION ...]

Each situation is a cluster under way. In a turn some work ends, other work comes, and it schedules; then time passes.
Prints the mean of a turn, and the longest call of `handle` or `schedule`: so long nobody is answered. The status is 1
if that is more than 3 s. It takes about a minute and 0.5 GB.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fairlead.collector import collector_off
from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, Requirement, SpreadTerm
from fairlead.core.model.decisions import Allocated, Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Event, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler

MOST_S = 3.0
FAIR = {"application.sort.policy": "fair"}
CORES, MEMORY = 10_000, 40_000
USERS = 50


def sizes(count: int) -> list[Resources]:
    """So many sizes, of about a core."""
    return [Resources({"vcore": 500 + 1000 * i // count, "memory": 1000 + 3700 * i // count}) for i in range(count)]


def vcore(amount: int) -> Limits:
    """A maximum, or a guarantee, of this much."""
    return Limits({"vcore": amount})


@dataclass(frozen=True, slots=True)
class Situation:
    """A cluster, what waits in it from the beginning, and how time passes."""

    queues: tuple[QueueSpec, ...]
    nodes: int
    sizes: int
    applications: int
    each: int
    """So many asks of each application."""
    leaf_of: Callable[[int], str]
    """The full path of the queue of each application, by its number."""
    rule: str = "guarantee"
    step_ms: int = 100
    turns: int = 60
    where: Callable[[str], Constraints] | None = None
    """Constraints of the work of an application, which is labelled with its name."""
    later: Callable[[], Iterable[Event]] | None = None
    """What comes once the cluster is full."""


def _one_leaf(**more: Any) -> tuple[QueueSpec, ...]:
    return (QueueSpec(name="l", properties={**FAIR, **more.pop("properties", {})}, **more),)


def _department() -> tuple[QueueSpec, ...]:
    leaves = tuple(QueueSpec(name=f"l{i}", properties=FAIR) for i in range(20))
    return (QueueSpec(name="d", parent=True, max=vcore(9_000_000), queues=leaves),)


def _leaves(count: int, **more: Any) -> tuple[QueueSpec, ...]:
    return tuple(QueueSpec(name=f"l{i}", properties=FAIR, **more) for i in range(count))


def _owed() -> Iterable[Event]:
    """Work for eight queues that are below their guarantees, as two have all."""
    chance, drawn = random.Random(4), sizes(100)
    for n in range(200):
        app = f"owed-{n}"
        yield AddApplication(ApplicationSpec(id=app, queue=f"root.l{2 + n % 8}"))
        yield AddAsks(
            tuple(AskSpec(application=app, key=f"{app}-{i}", resources=chance.choice(drawn)) for i in range(20))
        )


def _daemons() -> Iterable[Event]:
    """One for each node, above all that runs there."""
    yield AddApplication(ApplicationSpec(id="daemons", queue="root.l"))
    size = Resources({"vcore": 100, "memory": 100})
    tags = [{TAG_REQUIRED_NODE: f"n{i:05d}"} for i in range(300)]
    asks = (
        AskSpec(application="daemons", key=f"d{i}", resources=size, priority=10, tags=tag) for i, tag in enumerate(tags)
    )
    yield AddAsks(tuple(asks))


def _own(app: str) -> tuple[Requirement, ...]:
    return (Requirement("app", "In", (app,)),)


def _apart(app: str) -> Constraints:
    return Constraints(anti_affinity=(AffinityTerm(_own(app), HOSTNAME),))


def _spread(app: str) -> Constraints:
    return Constraints(spread=(SpreadTerm(_own(app), "zone", 1),))


LIMITS = (LimitSpec(users=("*",), max_resources=vcore(100_000), max_applications=3),)
SITUATIONS = {
    "a full department": Situation(_department(), 1000, 200, 1000, 20, lambda n: f"root.d.l{n % 20}"),
    "nodes set aside": Situation(_one_leaf(), 1000, 200, 200, 100, lambda _: "root.l", step_ms=1000),
    "many below guarantee": Situation(
        _leaves(10, guaranteed=vcore(500_000)),
        1000,
        100,
        200,
        100,
        lambda n: f"root.l{n % 2}",
        step_ms=1000,
        later=_owed,
    ),
    "users at their limits": Situation(_one_leaf(limits=LIMITS), 1000, 50, 2000, 10, lambda _: "root.l"),
    "turns kept": Situation(
        _one_leaf(properties={"wait.max": "10s"}), 500, 50, 100, 100, lambda _: "root.l", step_ms=1000
    ),
    "apart from its like": Situation(_one_leaf(), 500, 9, 300, 40, lambda _: "root.l", where=_apart),
    "spread over zones": Situation(_one_leaf(), 500, 9, 300, 40, lambda _: "root.l", where=_spread),
    "full leaves, by both": Situation(
        _leaves(50, max=vcore(180_000)), 1000, 100, 200, 100, lambda n: f"root.l{n % 50}", rule="both", turns=20
    ),
    "guaranteed leaves, by both": Situation(
        _leaves(200, guaranteed=vcore(25_000)), 1000, 9, 1000, 20, lambda n: f"root.l{n % 200}", rule="both"
    ),
    "apart in many leaves, by both": Situation(
        _leaves(64), 500, 9, 300, 40, lambda n: f"root.l{n % 64}", rule="both", where=_apart
    ),
    "a daemon set, by both": Situation(
        _one_leaf(), 300, 9, 100, 50, lambda _: "root.l", rule="both", turns=20, later=_daemons
    ),
}


class UnderWay:
    """A situation that is played."""

    def __init__(self, situation: Situation) -> None:
        self.situation, self.chance = situation, random.Random(3)
        self.now_ms, self.longest_s = 0, 0.0
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=situation.queues)
        partition = PartitionSpec(root=root, preemption=PreemptionSpec(rule=situation.rule))
        self.scheduler = Scheduler(ClusterSpec(partitions=(partition,)))
        self.sizes = sizes(situation.sizes)
        self.running: dict[tuple[str, str], None] = {}

    def fill(self) -> None:
        """Nodes, work, and what starts at once."""
        capacity = Resources({"vcore": CORES, "memory": MEMORY})
        for i in range(self.situation.nodes):
            self.handle(AddNode(NodeSpec(id=f"n{i:05d}", capacity=capacity, attributes={"zone": f"z{i % 3}"})))
        for n in range(self.situation.applications):
            queue, user = self.situation.leaf_of(n), f"u{n % USERS}"
            self.handle(AddApplication(ApplicationSpec(id=f"app-{n}", queue=queue, user=user)))
            self.handle(AddAsks(tuple(self.ask(f"app-{n}", f"{n}-{i}") for i in range(self.situation.each))))
        self.schedule()
        for event in self.situation.later() if self.situation.later is not None else ():
            self.handle(event)

    def ask(self, app: str, key: str) -> AskSpec:
        """One more, of any size and priority."""
        where = self.situation.where(app) if self.situation.where is not None else Constraints()
        size, priority = self.chance.choice(self.sizes), self.chance.randint(0, 3)
        return AskSpec(application=app, key=key, resources=size, priority=priority, labels={"app": app}, where=where)

    def timed(self, call: Callable[[], Any]) -> Any:
        """What a call gives; how long it took counts."""
        began = time.perf_counter()
        given = call()
        self.longest_s = max(self.longest_s, time.perf_counter() - began)
        return given

    def handle(self, event: Event) -> None:
        """One event."""
        self.timed(lambda: self.scheduler.handle(event, self.now_ms))

    def schedule(self) -> None:
        """One call; what is told to stop is gone at once."""
        for decision in self.timed(lambda: self.scheduler.schedule(self.now_ms)):
            if isinstance(decision, Allocated):
                self.running[decision.application, decision.key] = None
            elif isinstance(decision, Evict):
                self.end((decision.application, decision.key), decision.cause)

    def end(self, work: tuple[str, str], cause: Cause = Cause.FINISHED) -> None:
        """It has ended."""
        self.running.pop(work, None)
        self.handle(Release(*work, cause))

    def play(self) -> float:
        """All turns; the seconds of one."""
        began = time.perf_counter()
        for turn in range(self.situation.turns):
            self.now_ms += self.situation.step_ms
            if self.running:
                self.end(self.chance.choice(list(self.running)))
            app = f"app-{self.chance.randrange(self.situation.applications)}"
            self.handle(AddAsks((self.ask(app, f"new-{turn}"),)))
            self.schedule()
        return (time.perf_counter() - began) / self.situation.turns


def main(names: list[str]) -> int:
    """Play the situations of these names, or all, and print each; the status."""
    if unknown := [name for name in names if name not in SITUATIONS]:
        print(f"no situation is called {unknown[0]!r}; there are: {', '.join(SITUATIONS)}", file=sys.stderr)
        return 2
    longest_s = 0.0
    for name in names or SITUATIONS:
        with collector_off():
            played = UnderWay(SITUATIONS[name])
            played.fill()
            mean_s = played.play()
        longest_s = max(longest_s, played.longest_s)
        print(f"{name:24} {mean_s * 1e3:8.1f} ms a turn, the longest call {played.longest_s:6.2f} s", flush=True)
    return int(longest_s > MOST_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
