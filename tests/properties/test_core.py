"""The core under random events: the books hold after every step, and the laws after every scheduling call.

Two schedulers get the same events. The second places in other portions, which must decide the same; it stands for every
other process that replays the journal.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from invariants.books import check_books
from properties.laws import Before, every_wait_has_a_reason, evictions_pay_for_a_placement
from properties.worlds import ASKED, CAPACITY, CLUSTER, FEW, LEAVES, PICK, PRIORITY

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.conditions import Conditions, Dependency, Outcome
from fairlead.core.model.decisions import Decision, Evict
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    Configure,
    DrainNode,
    Event,
    MoveApplication,
    Release,
    RemoveApplication,
    RemoveNode,
    SetAtOnce,
    SetConditions,
    SetPriority,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    TAG_CREATION_TIME,
    TAG_FOREIGN,
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
)
from fairlead.journal import codec
from fairlead.policy.events import held
from fairlead.scheduler import Scheduler

SETTLED_WITHIN = 200
"""Calls after which nothing more may be decided, if nothing happens."""
START_MS = 1_700_000_000_000


class Cluster(RuleBasedStateMachine):
    """One scheduler and its twin under whatever may happen."""

    @initialize(spec=CLUSTER, capacities=st.lists(CAPACITY, max_size=4) | st.lists(CAPACITY, min_size=13, max_size=14))
    def start(self, spec: ClusterSpec, capacities: list[Resources]) -> None:
        self.now_ms = START_MS
        self.scheduler, self.twin = Scheduler(spec, self.now_ms), Scheduler(spec, self.now_ms)
        self.orders: list[Evict] = []
        self.made = 0
        self.settled = False
        for capacity in capacities:
            self.handle(AddNode(NodeSpec(id=self.name("n"), capacity=capacity)))

    @property
    def part(self) -> Partition:
        return self.scheduler.cluster.partitions["default"]

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def handle(self, event: Event) -> None:
        self.settled = False
        assert codec.decode_event(codec.encode(event)) == event
        decisions = self.scheduler.handle(event, self.now_ms)
        assert self.twin.handle(event, self.now_ms) == decisions
        self.take(decisions)

    def take(self, decisions: list[Decision]) -> None:
        assert codec.decode_decisions(codec.encode_all(decisions)) == tuple(decisions)
        self.orders += [d for d in decisions if isinstance(d, Evict)]

    # -- what there is to pick from --

    def node(self, pick: int) -> str:
        ids = [*self.part.nodes.nodes, "elsewhere"]
        return ids[min(pick % 20, len(ids) - 1)] if pick % 20 == 19 else ids[pick % max(len(ids) - 1, 1)]

    def app(self, pick: int) -> Application | None:
        apps = list(self.part.applications.values())
        return apps[pick % len(apps)] if apps else None

    def ask(self, pick: int) -> Ask | None:
        asks = [ask for app in self.part.applications.values() for ask in app.asks.values()]
        return asks[pick % len(asks)] if asks else None

    # -- nodes --

    @rule(
        capacity=CAPACITY,
        opened=st.sampled_from([True, True, True, False]),
        again=st.sampled_from([False] * 9 + [True]),
    )
    def add_node(self, capacity: Resources, opened: bool, again: bool) -> None:
        name = self.node(0) if again else self.name("n")
        self.handle(AddNode(NodeSpec(id=name, capacity=capacity, schedulable=opened)))

    @rule(pick=PICK, capacity=CAPACITY)
    def resize_node(self, pick: int, capacity: Resources) -> None:
        self.handle(UpdateNode(self.node(pick), capacity))

    @rule(pick=PICK, what=st.sampled_from([DrainNode, UndrainNode, RemoveNode]))
    def change_node(self, pick: int, what: type[DrainNode] | type[UndrainNode] | type[RemoveNode]) -> None:
        self.handle(what(self.node(pick)))

    @rule(pick=PICK, used=ASKED, gone=st.booleans())
    def others_use_a_node(self, pick: int, used: Resources, gone: bool) -> None:
        key = f"foreign{pick % 2}"
        if gone:
            self.handle(Release("", key))
        else:
            tags = {TAG_FOREIGN: "default"}
            self.handle(AddAsks((AskSpec(application="", key=key, resources=used, tags=tags, node=self.node(pick)),)))

    # -- applications and asks --

    @rule(queue=st.sampled_from([*LEAVES, "root.nowhere"]), groups=st.sampled_from([(), ("staff",)]))
    def add_application(self, queue: str, groups: tuple[str, ...]) -> None:
        self.handle(AddApplication(ApplicationSpec(id=self.name("a"), queue=queue, user="cleo", groups=groups)))

    @rule(
        queue=st.sampled_from(LEAVES),
        resources=ASKED,
        count=st.integers(1, 9),
        millis=st.sampled_from([0, 0, 1, 40_000]),
    )
    def fill_up(self, queue: str, resources: Resources, count: int, millis: int) -> None:
        """Unimportant work that takes what there is, so that more important work finds it full."""
        app = self.name("a")
        self.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user="bob")))
        self.handle(
            AddAsks(
                tuple(
                    AskSpec(application=app, key=self.name("k"), resources=resources, priority=-5) for _ in range(count)
                )
            )
        )
        self.schedule_all()
        self.time_passes(millis)

    @rule(
        queue=st.sampled_from(LEAVES),
        resources=ASKED,
        priority=PRIORITY,
        count=st.integers(1, 3),
        opted_out=st.sampled_from([False, False, False, True]),
        seconds_ago=st.sampled_from([None, None, None, 0, 5]),
    )
    def submit(
        self, queue: str, resources: Resources, priority: int, count: int, opted_out: bool, seconds_ago: int | None
    ) -> None:
        app = self.name("a")
        self.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user="ann")))
        tags = {} if seconds_ago is None else {TAG_CREATION_TIME: str(self.now_ms // 1000 - seconds_ago)}
        self.handle(
            AddAsks(
                tuple(
                    AskSpec(
                        application=app,
                        key=self.name("k"),
                        resources=resources,
                        priority=priority,
                        tags=tags,
                        allow_preempt_self=not opted_out,
                        allow_preempt_other=not opted_out,
                    )
                    for _ in range(count)
                )
            )
        )

    @rule(
        queue=st.sampled_from(LEAVES),
        resources=st.sampled_from(FEW),
        count=st.integers(1, 3),
        style=st.sampled_from(["Soft", "Hard"]),
        timeout_ms=st.sampled_from([0, 1_000, 20_000]),
    )
    def submit_a_gang(self, queue: str, resources: Resources, count: int, style: str, timeout_ms: int) -> None:
        """Placeholders for a gang come first; its members come by another rule, or never."""
        app = self.name("g")
        self.handle(
            AddApplication(
                ApplicationSpec(
                    id=app,
                    queue=queue,
                    user="ann",
                    placeholder_ask=resources * count,
                    gang_style=style,
                    placeholder_timeout_ms=timeout_ms,
                )
            )
        )
        self.handle(AddAsks(tuple(self.member(app, resources, placeholder=True) for _ in range(count))))

    def member(self, app: str, resources: Resources, placeholder: bool) -> AskSpec:
        return AskSpec(
            application=app, key=self.name("k"), resources=resources, task_group="g", placeholder=placeholder
        )

    @rule(
        pick=PICK,
        resources=st.sampled_from(FEW),
        count=st.integers(1, 3),
        placeholder=st.sampled_from([False] * 4 + [True]),
    )
    def members_of_a_gang_come(self, pick: int, resources: Resources, count: int, placeholder: bool) -> None:
        gangs = [app for app in self.part.applications.values() if app.spec.placeholder_ask]
        if gangs:
            app = gangs[pick % len(gangs)].id
            self.handle(AddAsks(tuple(self.member(app, resources, placeholder) for _ in range(count))))

    @rule(pick=PICK, queue=st.sampled_from(LEAVES))
    def move(self, pick: int, queue: str) -> None:
        app = self.app(pick)
        if app is not None:
            self.handle(MoveApplication(app.id, queue))

    @rule(
        pick=PICK,
        asks=st.lists(st.tuples(ASKED, PRIORITY), min_size=1, max_size=3),
        seconds_ago=st.sampled_from([None, None, 0, 1, 5]),
    )
    def ask_for_more(self, pick: int, asks: list[tuple[Resources, int]], seconds_ago: int | None) -> None:
        app = self.app(pick)
        tags = {} if seconds_ago is None else {TAG_CREATION_TIME: str(self.now_ms // 1000 - seconds_ago)}
        if app is not None:
            self.handle(
                AddAsks(
                    tuple(
                        AskSpec(
                            application=app.id, key=self.name("k"), resources=resources, priority=priority, tags=tags
                        )
                        for resources, priority in asks
                    )
                )
            )

    @rule(pick=PICK, node=PICK, resources=ASKED, priority=PRIORITY)
    def ask_for_one_node(self, pick: int, node: int, resources: Resources, priority: int) -> None:
        app = self.app(pick)
        if app is not None:
            tags = {TAG_REQUIRED_NODE: self.node(node)}
            spec = AskSpec(application=app.id, key=self.name("k"), resources=resources, priority=priority, tags=tags)
            self.handle(AddAsks((spec,)))

    @rule(pick=PICK, node=PICK, resources=ASKED, placeholder=st.booleans())
    def report_a_running_one(self, pick: int, node: int, resources: Resources, placeholder: bool) -> None:
        app = self.app(pick)
        if app is not None:
            group = "g" if placeholder else ""
            spec = AskSpec(
                application=app.id,
                key=self.name("k"),
                resources=resources,
                node=self.node(node),
                placeholder=placeholder,
                task_group=group,
            )
            self.handle(AddAsks((spec,)))

    @rule(pick=PICK, resources=ASKED)
    def resize_an_ask(self, pick: int, resources: Resources) -> None:
        ask = self.ask(pick)
        if ask is not None:
            spec = AskSpec(application=ask.app.id, key=ask.key, resources=resources, priority=ask.priority)
            self.handle(AddAsks((spec,)))

    @rule(pick=PICK, resources=ASKED, limit_ms=st.sampled_from([None, 1, 20_000]))
    def change_an_ask(self, pick: int, resources: Resources, limit_ms: int | None) -> None:
        ask = self.ask(pick)
        if ask is not None:
            size = resources if ask.pending else ask.spec.resources
            self.handle(ChangeAsk(ask.app.id, ask.key, size, limit_ms))

    @rule(pick=PICK, priority=PRIORITY, whole=st.booleans())
    def set_priority(self, pick: int, priority: int, whole: bool) -> None:
        ask = self.ask(pick)
        if ask is not None:
            self.handle(SetPriority(ask.app.id, "" if whole else ask.key, priority))

    @rule(
        pick=PICK,
        held_by=st.sampled_from(["", "", "ann"]),
        later_ms=st.sampled_from([0, 0, 1, 40_000]),
        waits=st.sampled_from([False, False, True]),
        released=st.booleans(),
    )
    def set_conditions(self, pick: int, held_by: str, later_ms: int, waits: bool, released: bool) -> None:
        """What waits is put on hold, or waits for its time, or for another one; what was held is released."""
        waiting = list(self.part.held_asks)
        if released and waiting:
            app, one = waiting[pick % len(waiting)]
            self.handle(SetConditions(app, one.spec.key, Conditions(held_by=held_by)))
            return
        ask, other = self.ask(pick), self.app(pick + 1)
        if ask is not None:
            after = (Dependency(application=other.id),) if waits and other is not None else ()
            begin_ms = self.now_ms + later_ms if later_ms else 0
            conditions = Conditions(held_by=held_by, begin_ms=begin_ms, after=after)
            self.handle(SetConditions(ask.app.id, ask.key, conditions))

    @rule(pick=PICK, at_once=st.integers(0, 3))
    def set_at_once(self, pick: int, at_once: int) -> None:
        """So many of an application are in line or run at a time."""
        app = self.app(pick)
        if app is not None:
            self.handle(SetAtOnce(app.id, at_once, "ann"))

    @rule(pick=PICK, outcome=st.sampled_from([*Outcome]))
    def tell_those_that_wait(self, pick: int, outcome: Outcome) -> None:
        """Something became of an application that others wait for."""
        app = self.app(pick)
        if app is not None:
            for event in held.following(self.part, app.id, outcome, "failed"):
                self.handle(event)

    @rule(pick=PICK, cause=st.sampled_from([*Cause]), whole=st.sampled_from([False, False, False, True]))
    def release(self, pick: int, cause: Cause, whole: bool) -> None:
        ask = self.ask(pick)
        if ask is not None:
            self.handle(Release(ask.app.id, "" if whole else ask.key, cause))

    @rule(picks=st.lists(PICK, min_size=1, max_size=4), whole=st.booleans())
    def work_ends(self, picks: list[int], whole: bool) -> None:
        """Running work ends by itself, and whatever waited for that starts."""
        for pick in picks:
            ask = self.ask(pick)
            if ask is not None and ask.node is not None:
                self.handle(Release(ask.app.id, "" if whole else ask.key, Cause.FINISHED))
        self.schedule_all()

    @rule(pick=PICK)
    def remove_application(self, pick: int) -> None:
        app = self.app(pick)
        if app is not None:
            self.handle(RemoveApplication(app.id))

    @precondition(lambda self: self.orders)
    @rule(pick=PICK)
    def confirm(self, pick: int) -> None:
        order = self.orders.pop(pick % len(self.orders))
        self.handle(Release(order.application, order.key, order.cause))

    # -- the rest --

    @rule()
    def restart(self) -> None:
        """The twin is made anew from the other's state as it would be written to a file; it has to go on the same."""
        written = json.dumps(self.scheduler.dump())
        self.twin = Scheduler.load(json.loads(written))
        check_books(self.twin)
        assert json.dumps(self.twin.dump()) == written

    @rule(spec=CLUSTER)
    def reconfigure(self, spec: ClusterSpec) -> None:
        self.handle(Configure(spec))

    @rule(millis=st.sampled_from([1, 100, 1_000, 2_500, 15_000, 30_000, 300_000, 80 * 3_600_000]))
    def time_passes(self, millis: int) -> None:
        self.settled = False
        self.now_ms += millis

    @rule(limit=st.integers(0, 5), first=st.integers(0, 5))
    def schedule_some(self, limit: int, first: int) -> None:
        """One call with a limit decides what two calls do that share it."""
        before = Before(self.part)
        decisions = self.scheduler.schedule(self.now_ms, limit)
        first = min(first, limit)
        portion = self.twin.schedule(self.now_ms, first)
        if first < limit:
            portion += self.twin.schedule(self.now_ms, limit - first)
        assert portion == decisions
        self.watch(before, decisions)

    @rule()
    def schedule_all(self) -> None:
        for _ in range(SETTLED_WITHIN):
            before = Before(self.part)
            decisions = self.scheduler.schedule(self.now_ms)
            assert self.one_by_one() == decisions
            self.watch(before, decisions)
            if not decisions:
                self.settled = True
                return
        raise AssertionError("it goes on deciding although nothing happens")

    def one_by_one(self) -> list[Decision]:
        decisions: list[Decision] = []
        while portion := self.twin.schedule(self.now_ms, 1):
            decisions += portion
        return decisions

    def watch(self, before: Before, decisions: list[Decision]) -> None:
        before.nothing_grew_beyond()
        evictions_pay_for_a_placement(self.part, decisions)
        self.take(decisions)

    @invariant()
    def the_books_hold(self) -> None:
        check_books(self.scheduler)
        every_wait_has_a_reason(self.scheduler, self.part, self.settled)


@pytest.mark.timeout(1800)
def test_the_core_holds_under_random_events(step_settings: settings) -> None:
    """The books, the reasons and the laws hold whatever happens, in whatever order."""
    run_state_machine_as_test(Cluster, settings=step_settings)
