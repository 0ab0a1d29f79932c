"""Gangs: what follows from placeholders that come, go, are replaced here or elsewhere, or time out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invariants.books import check_books
from small_clusters import ask, cluster, cores, restarted, started, submit

from fairlead.core.acts import gangs
from fairlead.core.acts.allocations import evict
from fairlead.core.acts.gangs import DEFAULT_TIMEOUT_MS, begin_swap, timeout_ms
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import PLACEHOLDERS
from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    Event,
    Release,
    RemoveApplication,
    SetWindow,
)
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Items, Resources
from fairlead.core.model.specs import (
    TAG_APP_CREATION_TIME,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    WindowSpec,
)
from fairlead.scheduler import Scheduler


class Cluster:
    """Leaves `root.a` and `root.b`, and nodes `n0`, `n1`, ... of so many cores."""

    def __init__(self, *nodes: int, **leaf: int) -> None:
        leaves = (QueueSpec(name="a", **leaf), QueueSpec(name="b"))  # type: ignore[arg-type]
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
        for i, count in enumerate(nodes):
            self.do(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": count}))))

    @property
    def part(self) -> Partition:
        return self.s.cluster.partitions["default"]

    def do(self, event: Event) -> list[Decision]:
        decided = self.s.handle(event, self.part.now_ms)
        check_books(self.s)
        return decided

    def app(self, name: str, queue: str = "root.a", **more: object) -> Application:
        self.do(AddApplication(ApplicationSpec(id=name, queue=queue, **more)))  # type: ignore[arg-type]
        return self.part.applications[name]

    def ask(self, app: Application, key: str, cores: int = 1, group: str = "", placeholder: bool = False) -> Ask:
        size = Resources({"vcore": cores})
        spec = AskSpec(application=app.id, key=key, resources=size, task_group=group, placeholder=placeholder)
        self.do(AddAsks((spec,)))
        return app.asks[key]

    def run(self, after_ms: int = 0) -> list[str]:
        """What starts."""
        decided = self.s.schedule(self.part.now_ms + after_ms)
        check_books(self.s)
        return [f"{d.key}@{d.node}" for d in decided if isinstance(d, Allocated)]

    def end(self, ask: Ask, cause: Cause = Cause.STOPPED_BY_RM) -> list[Decision]:
        return self.do(Release(ask.app.id, ask.key, cause))


def test_real_asks_wait_for_their_placeholders_and_take_their_places() -> None:
    c = Cluster(2)
    app = c.app("gang", placeholder_ask=Resources({"vcore": 1}))
    placeholder = c.ask(app, "p", group="g", placeholder=True)
    real = c.ask(app, "real", group="g")
    assert c.run() == ["p@n0"]
    assert (placeholder.replaces, real.replaces, app.swapping) == (real, placeholder, 1)
    decided = c.end(placeholder, Cause.PLACEHOLDER_REPLACED)
    assert [f"{d.key}@{d.node}" for d in decided if isinstance(d, Allocated)] == ["real@n0"]
    assert (app.swapping, app.task_group("g").replaced, real.stood_in_ms) == (0, 1, placeholder.created_ms)


def test_when_the_last_placeholder_is_withdrawn_its_real_asks_go_on_as_plain_ones() -> None:
    """They have been looked at, and put aside, before."""
    c = Cluster(2)
    blocker = c.ask(c.app("other", "root.b"), "k", 2)
    c.run()
    app = c.app("gang")
    placeholder = c.ask(app, "p", 2, group="g", placeholder=True)
    c.ask(app, "real", 2, group="g")
    assert c.run() == []
    c.end(placeholder)
    c.end(blocker)
    assert c.run() == ["real@n0"]


def test_when_a_placeholder_is_lost_what_was_under_way_to_it_takes_another() -> None:
    c = Cluster(2)
    app = c.app("gang", placeholder_ask=Resources({"vcore": 2}))
    first, second = (c.ask(app, key, group="g", placeholder=True) for key in ("p1", "p2"))
    assert c.run() == ["p1@n0", "p2@n0"]
    real = c.ask(app, "real", group="g")
    c.run()
    assert real.replaces is first
    c.end(first)
    assert real.pending
    c.run()
    assert real.replaces is second


def test_a_swap_to_another_node_keeps_room_there_and_gives_it_back_when_it_is_called_off() -> None:
    """What fitted nowhere meanwhile fits again."""
    c = Cluster(2, 2)
    app = c.app("gang", placeholder_ask=Resources({"vcore": 1}))
    placeholder = c.ask(app, "p", group="g", placeholder=True)
    assert c.run() == ["p@n0"]
    real = c.ask(app, "real", 1, group="g")
    other = c.part.nodes.nodes["n1"]
    c.part.nodes.columns.sync()
    begin_swap(c.part, real, placeholder, other)
    assert other in c.part.nodes.columns.stale, "its row is written anew"
    assert (real.bound_for, other.free) == (other, {"vcore": 1})
    large = c.ask(c.app("large", "root.b"), "large", 2)
    assert c.run() == []
    assert large.shape is not None
    assert large.shape.unfit
    c.end(placeholder)
    assert (real.bound_for, other.free, real.pending) == (None, {"vcore": 2}, True)
    assert len(c.run()) == 2, "both start"


def test_a_gang_that_is_accepted_holds_a_place_and_gives_it_back_when_it_goes() -> None:
    """Its placeholders run, though it does not: one more application may not begin, until it is gone."""
    c = Cluster(4, max_applications=1)
    gang = c.app("gang", placeholder_ask=Resources({"vcore": 9}))
    c.ask(gang, "p", group="g", placeholder=True)
    assert c.run() == ["p@n0"]
    c.ask(c.app("next"), "k")
    assert c.run() == []
    c.do(RemoveApplication("gang"))
    assert c.run() == ["k@n0"]


def test_an_application_that_runs_goes_on_without_placeholders_that_nothing_replaced_in_time() -> None:
    c = Cluster(4)
    app = c.app("gang", placeholder_ask=Resources({"vcore": 2}), placeholder_timeout_ms=5_000)
    for key in ("p1", "p2"):
        c.ask(app, key, group="g", placeholder=True)
    c.run()
    assert c.part.timers.due_ms("default", "gang", PLACEHOLDERS) == 5_000
    decided = c.s.schedule(5_000)
    assert [(d.key, d.cause) for d in decided if isinstance(d, Evict)] == [("p1", Cause.TIMEOUT), ("p2", Cause.TIMEOUT)]
    assert c.part.timers.due_ms("default", "gang", PLACEHOLDERS) is None


@pytest.mark.parametrize(("style", "state"), [("Soft", "Resuming"), ("Hard", "Failing")])
def test_one_that_never_got_its_gang_together_starts_over_or_fails(style: str, state: str) -> None:
    c = Cluster(1)
    app = c.app("gang", placeholder_ask=Resources({"vcore": 2}), gang_style=style, placeholder_timeout_ms=5_000)
    for key in ("p1", "p2"):
        c.ask(app, key, group="g", placeholder=True)
    assert c.run() == ["p1@n0"]
    c.s.schedule(5_000)
    assert str(app.state) == state
    assert list(app.asks) == ["p1"], "what waits is dropped, what runs is told to stop"


def test_the_time_runs_from_when_the_application_was_made() -> None:
    spec = ApplicationSpec(id="a", queue="root.a")
    assert timeout_ms(spec, 0) == DEFAULT_TIMEOUT_MS
    own = ApplicationSpec(id="a", queue="root.a", placeholder_timeout_ms=5_000, tags={TAG_APP_CREATION_TIME: "10"})
    assert timeout_ms(own, 12_000) == 3_000
    assert timeout_ms(own, 60_000) == 1, "it is over at once"


def test_a_gang_is_not_whole_while_one_of_its_placeholders_is_told_to_go() -> None:
    """Its last placeholder is placed in the call in which another one has to go: it does not run with two of three."""
    cluster = Cluster(2, 2)
    gang = cluster.app("gang", placeholder_ask=Resources({"vcore": 3}))
    first, *_ = [cluster.ask(gang, f"p{i}", group="t", placeholder=True) for i in range(2)]
    cluster.run()
    evict(cluster.part, first, Cause.PREEMPTED_BY_SCHEDULER, "", "priority", "")
    cluster.ask(gang, "p2", group="t", placeholder=True)
    assert cluster.run() == ["p2@n0"]
    assert gang.state is State.ACCEPTED
    cluster.do(Release("gang", "p0", Cause.PREEMPTED_BY_SCHEDULER))
    cluster.ask(gang, "p3", group="t", placeholder=True)
    cluster.run()
    assert gang.state is State.RUNNING


@pytest.mark.plain
def test_not_each_placeholder_of_a_large_gang_is_added_up_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only once as much has a node as all need together; 10,000 of them took seconds."""
    added, add_to = 0, gangs.add_to

    def counting(book: dict[str, int], items: Items) -> None:
        nonlocal added
        added += 1
        add_to(book, items)

    monkeypatch.setattr(gangs, "add_to", counting)
    c = Cluster(100)
    app = c.app("job", placeholder_ask=Resources({"vcore": 60}))
    for number in range(60):
        c.ask(app, f"p{number}", group="g", placeholder=True)
    c.run()
    assert (app.state, added) == (State.RUNNING, 60)


def test_what_changes_on_its_way_to_a_placeholder_waits_again() -> None:
    """Whether it may take that place, and fits, is looked at from the start."""
    c = Cluster(2)
    app = c.app("gang", placeholder_ask=Resources({"vcore": 1}))
    placeholder = c.ask(app, "p", group="g", placeholder=True)
    real = c.ask(app, "real", group="g")
    c.run()
    assert real.replaces is placeholder
    c.do(AddAsks((replace(real.spec, resources=Resources({"vcore": 2})),)))
    assert (real.pending, real.replaces, placeholder.replaces, app.swapping) == (True, None, None, 0)


@pytest.mark.parametrize("node", ["n0", "n1"])
def test_what_is_reported_to_run_on_its_way_to_a_placeholder_runs_there(node: str) -> None:
    """Somebody else has started it meanwhile: it is on that node alone, and its room is not given out twice."""
    s = cluster(nodes={"n0": 4, "n1": 4})
    s.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=cores(2))), 0)
    ask(s, "gang", "p", 2, task_group="g", placeholder=True)
    ask(s, "gang", "real", 2, task_group="g")
    s.schedule(0)
    assert started(ask(s, "gang", "real", 2, 1, task_group="g", node=node)) == [f"real@{node}"]
    check_books(s)
    submit(s, "other", 4, 2, queue="root.b")
    on_other = started(s.schedule(2))
    assert on_other == ([] if node == "n1" else ["other@n1"])
    assert started(s.handle(Release("gang", "p", Cause.PLACEHOLDER_REPLACED), 3)) == []
    check_books(s)
    assert s.dump() == restarted(s).dump()


@pytest.mark.parametrize("limit_ms", [1_000, 1_000_000])
def test_on_its_way_to_a_placeholder_it_keeps_off_a_window_with_another_limit(limit_ms: int) -> None:
    """As a scheduler decides that has loaded the same state."""
    s = cluster(nodes={"n0": 4})
    s.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=cores(1))), 0)
    ask(s, "gang", "p", task_group="g", placeholder=True)
    ask(s, "gang", "real", task_group="g", time_limit_ms=2_000)
    s.schedule(0)
    s.handle(SetWindow(WindowSpec(name="w", starts_ms=100_000, length_ms=50_000)), 0)
    s.handle(ChangeAsk("gang", "real", cores(1), limit_ms), 1)
    check_books(s)
    for each in (s, restarted(s)):
        decided = each.handle(Release("gang", "p", Cause.PLACEHOLDER_REPLACED), 2) + each.schedule(3)
        assert started(decided) == (["real@n0"] if limit_ms == 1_000 else [])
