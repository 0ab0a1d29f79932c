"""The production scheduler against the naive one: the same events give the same placements in the same order.

What this watches is everything that the production scheduler keeps instead of working it out: the orders in heaps, asks
and applications that are left alone while something is in their way, and the search of many nodes over columns.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from properties.worlds import ASKED, CAPACITY, LEAVES, PEACEFUL_CLUSTER, PICK, PRIORITY
from reference.naive import NaiveScheduler

from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    Event,
    Release,
    RemoveApplication,
    RemoveNode,
    SetPriority,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_CREATION_TIME, TAG_FOREIGN, ApplicationSpec, AskSpec, ClusterSpec, NodeSpec
from fairlead.scheduler import Scheduler

START_MS = 1_700_000_000_000


class Both(RuleBasedStateMachine):
    """Both schedulers. No ask ever is two seconds old: then the fast one reserves nodes, which the naive one cannot."""

    @initialize(
        spec=PEACEFUL_CLUSTER, capacities=st.lists(CAPACITY, max_size=3) | st.lists(CAPACITY, min_size=13, max_size=16)
    )
    def start(self, spec: ClusterSpec, capacities: list[Resources]) -> None:
        self.now_ms = START_MS
        self.made = 0
        self.fast, self.naive = Scheduler(spec, self.now_ms), NaiveScheduler(spec.partitions[0])
        for capacity in capacities:
            self.add_node(capacity, True)

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def handle(self, event: Event) -> None:
        self.now_ms += 1
        self.fast.handle(event, self.now_ms)
        self.naive.handle(event, self.now_ms)

    def some_app(self, pick: int) -> str:
        return list(self.naive.applications)[pick % len(self.naive.applications)]

    def some_ask(self, pick: int) -> tuple[str, str]:
        asks = [(app.id, key) for app in self.naive.applications.values() for key in app.asks]
        return asks[pick % len(asks)]

    has_apps = precondition(lambda self: self.naive.applications)
    has_asks = precondition(lambda self: any(app.asks for app in self.naive.applications.values()))
    has_nodes = precondition(lambda self: self.naive.nodes)

    @rule(queue=st.sampled_from(LEAVES), resources=ASKED, priority=PRIORITY, count=st.integers(1, 4))
    def submit_some(self, queue: str, resources: Resources, priority: int, count: int) -> None:
        self.submit(queue, resources, priority, count)

    def submit(self, queue: str, resources: Resources, priority: int, count: int) -> None:
        app = self.name("a")
        self.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user="ann")))
        self.ask_of(app, [(resources, priority)] * count, None)

    @has_apps
    @rule(
        pick=PICK,
        asks=st.lists(st.tuples(ASKED, PRIORITY), min_size=1, max_size=3),
        seconds_ago=st.sampled_from([None, None, 0, 1]),
    )
    def ask_for_more(self, pick: int, asks: list[tuple[Resources, int]], seconds_ago: int | None) -> None:
        self.ask_of(self.some_app(pick), asks, seconds_ago)

    def ask_of(self, app: str, asks: list[tuple[Resources, int]], seconds_ago: int | None) -> None:
        tags = {} if seconds_ago is None else {TAG_CREATION_TIME: str(START_MS // 1000 - seconds_ago)}
        self.handle(
            AddAsks(
                tuple(
                    AskSpec(application=app, key=self.name("k"), resources=resources, priority=priority, tags=tags)
                    for resources, priority in asks
                )
            )
        )

    @has_asks
    @rule(pick=PICK, resources=ASKED)
    def resize_an_ask(self, pick: int, resources: Resources) -> None:
        app, key = self.some_ask(pick)
        self.handle(AddAsks((AskSpec(application=app, key=key, resources=resources),)))

    @has_apps
    @has_nodes
    @rule(pick=PICK, node=PICK, resources=ASKED, foreign=st.booleans())
    def report_a_running_one(self, pick: int, node: int, resources: Resources, foreign: bool) -> None:
        where = list(self.naive.nodes)[node % len(self.naive.nodes)]
        app, tags = ("", {TAG_FOREIGN: "default"}) if foreign else (self.some_app(pick), {})
        key = self.name("k")
        self.handle(AddAsks((AskSpec(application=app, key=key, resources=resources, node=where, tags=tags),)))

    @has_asks
    @rule(pick=PICK, priority=PRIORITY, whole=st.booleans())
    def set_priority(self, pick: int, priority: int, whole: bool) -> None:
        app, key = self.some_ask(pick)
        self.handle(SetPriority(app, "" if whole else key, priority))

    @has_asks
    @rule(pick=PICK, whole=st.sampled_from([False, False, False, True]))
    def release(self, pick: int, whole: bool) -> None:
        app, key = self.some_ask(pick)
        self.handle(Release(app, "" if whole else key))

    @has_apps
    @rule(picks=st.lists(PICK, min_size=1, max_size=3), limit=st.none() | st.integers(1, 6))
    def applications_end_and_others_start(self, picks: list[int], limit: int | None) -> None:
        for pick in picks:
            if self.naive.applications:
                self.handle(Release(self.some_app(pick), ""))
        self.schedule(limit)

    @has_asks
    @rule(picks=st.lists(PICK, min_size=1, max_size=4), limit=st.none() | st.integers(1, 6))
    def some_end_and_others_start(self, picks: list[int], limit: int | None) -> None:
        for pick in picks:
            if any(app.asks for app in self.naive.applications.values()):
                self.handle(Release(*self.some_ask(pick)))
        self.schedule(limit)

    @rule(
        crowd=st.lists(st.tuples(st.sampled_from(LEAVES), ASKED, PRIORITY), min_size=2, max_size=6),
        limit=st.none() | st.integers(1, 6),
    )
    def a_crowd_comes(self, crowd: list[tuple[str, Resources, int]], limit: int | None) -> None:
        for queue, resources, priority in crowd:
            self.submit(queue, resources, priority, 1)
        self.schedule(limit)

    @has_apps
    @rule(pick=PICK)
    def remove_application(self, pick: int) -> None:
        self.handle(RemoveApplication(self.some_app(pick)))

    @rule(capacity=CAPACITY, opened=st.sampled_from([True, True, False]))
    def add_node(self, capacity: Resources, opened: bool) -> None:
        self.handle(AddNode(NodeSpec(id=self.name("n"), capacity=capacity, schedulable=opened)))

    @has_nodes
    @rule(pick=PICK, capacity=CAPACITY)
    def resize_node(self, pick: int, capacity: Resources) -> None:
        self.handle(UpdateNode(list(self.naive.nodes)[pick % len(self.naive.nodes)], capacity))

    @has_nodes
    @rule(pick=PICK, what=st.sampled_from([DrainNode, UndrainNode, RemoveNode]))
    def change_node(self, pick: int, what: type[DrainNode] | type[UndrainNode] | type[RemoveNode]) -> None:
        self.handle(what(list(self.naive.nodes)[pick % len(self.naive.nodes)]))

    @rule(spec=PEACEFUL_CLUSTER)
    def reconfigure(self, spec: ClusterSpec) -> None:
        self.handle(Configure(spec))

    @rule(limit=st.none() | st.integers(1, 6))
    def schedule_some(self, limit: int | None) -> None:
        self.schedule(limit)

    def schedule(self, limit: int | None) -> None:
        placed = [
            (d.application, d.key, d.node) for d in self.fast.schedule(self.now_ms, limit) if isinstance(d, Allocated)
        ]
        assert placed == self.naive.schedule(limit)

    def teardown(self) -> None:
        if hasattr(self, "fast"):
            self.schedule(None)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_the_same_placements_in_the_same_order(step_settings: settings) -> None:
    """Keeping orders and remembering obstacles changes nothing about who is placed where."""
    run_state_machine_as_test(Both, settings=step_settings)
