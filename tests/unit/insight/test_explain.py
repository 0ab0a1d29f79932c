from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.config import load_text
from fairlead.core.model.conditions import Awaited, Conditions, Dependency
from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    Release,
    RemoveApplication,
    SetWindow,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, WindowSpec
from fairlead.insight.changes import current_spec
from fairlead.insight.explain import explain
from fairlead.insight.parts import Part, What, acts, clauses
from fairlead.insight.search import Effort
from fairlead.insight.suppositions import submitted
from fairlead.insight.unblock import Ways, unblock, ways
from fairlead.insight.whatif import suppose
from fairlead.scheduler import Scheduler

GPU = "gpu"


def spec(*queues: dict[str, Any], rule: str = "priority", **root: Any) -> ClusterSpec:
    tree = [{"name": "root", "submitacl": "*", "queues": list(queues)} | root]
    return load_text(json.dumps({"partitions": [{"name": "default", "queues": tree, "preemption": {"rule": rule}}]}))


def leaf(name: str, most: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name} | ({"resources": {"max": most}} if most else {}) | more


class Lab:
    """A small cluster in which applications are single asks."""

    def __init__(self, file: ClusterSpec, *nodes: dict[str, int]) -> None:
        self.scheduler = Scheduler(file)
        for number, capacity in enumerate(nodes, 1):
            self.scheduler.handle(AddNode(NodeSpec(id=f"node-{number}", capacity=Resources(capacity))), 0)

    def submit(self, key: str, queue: str, user: str = "ann", now_ms: int = 0, **more: Any) -> None:
        amounts = more.pop("amounts", {GPU: 1})
        self.scheduler.handle(AddApplication(ApplicationSpec(id=key, queue=queue, user=user)), now_ms)
        ask = AskSpec(application=key, key=key, resources=Resources(amounts), **more)
        self.scheduler.handle(AddAsks((ask,)), now_ms)
        self.scheduler.schedule(now_ms)

    def ways(self, key: str) -> Ways:
        return ways(self.scheduler, ("default", key, key), fork=False)

    def changes(self, key: str) -> dict[str, str]:
        return {change.dimension: change.sentence for change in self.ways(key).changes}


def test_a_full_queue_is_named_with_the_level_the_numbers_and_who_holds_it() -> None:
    """The level of the tree that is full, not the leaf below it."""
    file = spec({"name": "ml", "resources": {"max": {GPU: 2}}, "queues": [leaf("a"), leaf("b")]})
    lab = Lab(file, {GPU: 8})
    lab.submit("big", "root.ml.a", user="bob", amounts={GPU: 2})
    lab.submit("late", "root.ml.b")
    verdict = explain(lab.scheduler, "late", "late")
    blocking = [level for level in verdict.levels if level.blocks]
    assert [(b.queue, b.resource, b.needed, b.used, b.max) for b in blocking] == [("root.ml", GPU, 1, 2, 2)]
    assert [(h.key, h.user, h.node) for h in verdict.holders] == [("big", "bob", "node-1")]
    assert "big of bob (gpu 2)" in verdict.paragraph


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"maxapplications": 1}, "root.a runs 1 of at most 1 applications"),
        ({"limits": [{"limit": "own", "users": ["ann"], "maxresources": {GPU: 1}}]}, "user ann has gpu 0 left"),
    ],
    ids=["applications", "limit"],
)
def test_beside_the_reason_each_other_level_that_is_full_is_named(more: dict[str, Any], named: str) -> None:
    """And what the reason names is not named twice."""
    lab = Lab(spec(leaf("a", {GPU: 1}, **more)), {GPU: 8})
    lab.submit("runs", "root.a")
    lab.submit("late", "root.a")
    verdict = explain(lab.scheduler, "late", "late")
    assert named in verdict.sentence
    assert [each for each in verdict.details if each.startswith("Also")] == [
        "Also queue root.a has gpu 0 left of gpu 1."
    ]


def test_of_a_full_queue_what_is_short_is_said_once() -> None:
    """Two resources, in one reason."""
    lab = Lab(spec(leaf("a", {GPU: 1, "memory": 1000})), {GPU: 8, "memory": 8000})
    lab.submit("runs", "root.a", amounts={GPU: 1, "memory": 1000})
    lab.submit("late", "root.a", amounts={GPU: 1, "memory": 1000})
    verdict = explain(lab.scheduler, "late", "late")
    assert verdict.sentence.startswith("needs gpu 1, memory 1000; queue root.a has")
    assert not [each for each in verdict.details if each.startswith("Also")]


def test_places_that_are_promised_are_said_once() -> None:
    """Not again with those as if they ran."""
    lab = Lab(spec(leaf("a", maxapplications=2)), {GPU: 2})
    lab.submit("runs", "root.a", amounts={GPU: 2})
    lab.submit("strong", "root.a", amounts={GPU: 2}, priority=9)
    lab.submit("late", "root.a")
    verdict = explain(lab.scheduler, "late", "late")
    assert verdict.reason is not None
    assert verdict.reason.code == "applications-promised"
    assert not [each for each in verdict.details if each.startswith("Also")]


def test_what_holds_what_the_reason_names_is_named() -> None:
    """A limit of the user's own is in the way as well as the maximum of the queue, which comes later."""
    own = {"limits": [{"limit": "own", "users": ["ann"], "maxresources": {GPU: 1}}]}
    lab = Lab(spec(leaf("a", {GPU: 2}, **own)), {GPU: 8})
    lab.submit("other", "root.a", user="bob")
    lab.submit("runs", "root.a")
    lab.submit("late", "root.a")
    assert [holder.key for holder in explain(lab.scheduler, "late", "late").holders] == ["runs"]


def test_the_maximum_of_each_level_that_is_in_the_way_is_raised_just_enough() -> None:
    """Both levels together where one alone would not help."""
    file = spec({"name": "ml", "resources": {"max": {GPU: 2}}, "queues": [leaf("a", {GPU: 2}), leaf("b", {GPU: 1})]})
    lab = Lab(file, {GPU: 8})
    lab.submit("one", "root.ml.a", amounts={GPU: 2})
    lab.submit("late", "root.ml.b", amounts={GPU: 2})
    assert lab.changes("late")["queue-max"] == (
        "runs if the maximum of root.ml.b were gpu 2 (now gpu 1) and the maximum of root.ml were gpu 4 (now gpu 2)"
    )


def test_who_comes_first_is_counted_in() -> None:
    """The maximum has to be wide enough for those ahead of it, too."""
    lab = Lab(spec(leaf("a", {GPU: 1})), {GPU: 8})
    for key in ("runs", "first", "second"):
        lab.submit(key, "root.a")
    assert lab.changes("second")["queue-max"] == "runs if the maximum of root.a were gpu 3 (now gpu 1)"


def test_the_least_priority_that_preempts() -> None:
    """One above what runs, and whom that would stop."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("low", "root.a", priority=70, amounts={GPU: 2})
    lab.submit("late", "root.a", priority=5)
    change = next(c for c in lab.ways("late").changes if c.parts[0].what is What.PRIORITY)
    assert change.sentence == "runs if its priority were 71 (now 5; 70 is not enough); that would stop low"
    assert change.smallest


def test_room_on_one_node_and_when_it_will_be_there() -> None:
    """The node that lacks least, what it lacks, and when time limits free enough of it."""
    lab = Lab(spec(leaf("a")), {GPU: 4}, {GPU: 4})
    lab.submit("one", "root.a", amounts={GPU: 4})
    lab.submit("two", "root.a", amounts={GPU: 2}, time_limit_ms=60_000)
    lab.submit("three", "root.a", amounts={GPU: 1})
    lab.submit("late", "root.a", amounts={GPU: 3})
    near = explain(lab.scheduler, "late", "late").closest[0]
    assert (near.node, near.free, near.missing, near.frees_ms) == ("node-2", {GPU: 1}, {GPU: 2}, 60_000)
    assert lab.changes("late")["node-room"] == "runs if gpu 3 were free on node-2 (now gpu 1)"
    assert lab.changes("late")["smaller-request"] == "runs if it needed no more than gpu 1 (now gpu 3)"
    assert lab.changes("late")["nodes"] == "runs if there were one more node like node-1"


def test_a_node_on_which_more_runs_than_it_has_is_said_to_have_nothing_free() -> None:
    """What is lacking there counts what is beyond it."""
    lab = Lab(spec(leaf("a")), {GPU: 4})
    lab.submit("one", "root.a", amounts={GPU: 4})
    lab.scheduler.handle(UpdateNode("node-1", Resources({GPU: 2})), 0)
    lab.submit("late", "root.a")
    assert lab.changes("late")["node-room"] == "runs if gpu 1 were free on node-1 (now gpu 0)"
    found = explain(lab.scheduler, "late", "late")
    assert (found.sentence, found.closest[0].free, found.closest[0].missing) == (
        "needs gpu 1; all nodes together have gpu 0 free of gpu 2",
        {GPU: 0},
        {GPU: 3},
    )


def test_on_a_node_that_has_too_much_and_of_which_some_is_about_to_leave_so_much_more_has_to_be_free() -> None:
    """Not "if gpu -1 were free": it would be enough, since three leave."""
    parts = (Part(What.NODE_ROOM, "node-1", -3, -1, GPU),)
    assert clauses(parts) == ["gpu 2 more were free on node-1 (now gpu 0)"]
    assert acts(parts) == ["have gpu 2 more free on node-1 (now gpu 0)"]


def test_the_limit_of_a_user_is_raised_just_enough() -> None:
    """In the queue where it is."""
    limits = [{"limit": "", "users": ["ann"], "maxresources": {GPU: 2}}]
    lab = Lab(spec(leaf("a", limits=limits)), {GPU: 8})
    lab.submit("one", "root.a", amounts={GPU: 2})
    lab.submit("late", "root.a", amounts={GPU: 2})
    assert lab.changes("late")["limit"] == "runs if the limit of user ann in root.a were gpu 4 (now gpu 2)"


def test_one_more_application_where_a_queue_runs_as_many_as_it_may() -> None:
    """And the end of one that runs does as well."""
    lab = Lab(spec(leaf("a", maxapplications=1)), {GPU: 8})
    lab.submit("one", "root.a")
    lab.submit("late", "root.a")
    assert lab.changes("late")["queue-applications"] == "runs if root.a might run 2 applications (now 1)"


def test_each_further_limit_is_said_of_whoever_has_it() -> None:
    """It is the user that runs applications, not the limit."""
    limits = [{"limit": "", "users": ["ann"], "maxapplications": 1, "maxresources": {GPU: 1}}]
    lab = Lab(spec(leaf("a", {GPU: 1}, maxapplications=1, limits=limits)), {GPU: 2})
    for key in ("runs", "late"):
        lab.submit(key, "root.a")
    said = explain(lab.scheduler, "late", "late").details
    assert "Also user ann runs 1 of at most 1 applications in root.a." in said
    assert "Also user ann has gpu 0 left of gpu 1 in root.a." in said


def test_a_change_that_would_not_help_is_not_stated() -> None:
    """No priority makes room under a user's limit."""
    limits = [{"limit": "", "users": ["ann"], "maxresources": {GPU: 1}}]
    lab = Lab(spec(leaf("a", limits=limits)), {GPU: 8})
    lab.submit("one", "root.a")
    lab.submit("late", "root.a")
    assert "priority" not in lab.changes("late")


def test_two_dimensions_together_where_none_helps_alone() -> None:
    """A full queue and full nodes, and no single work that has enough."""
    lab = Lab(spec(leaf("a", {GPU: 2}), leaf("b"), rule="guarantee"), {GPU: 4})
    for key, queue in (("one", "root.a"), ("two", "root.a"), ("three", "root.b"), ("four", "root.b")):
        lab.submit(key, queue)
    lab.submit("late", "root.a", amounts={GPU: 2})
    assert lab.changes("late") == {
        "queue-max+node-room": (
            "runs if the maximum of root.a were gpu 4 (now gpu 2) and gpu 2 were free on node-1 (now gpu 0)"
        ),
        "queue-max+nodes": (
            "runs if the maximum of root.a were gpu 4 (now gpu 2) and there were one more node like node-1"
        ),
        "smaller-request+cancel": "runs if it needed no more than gpu 1 (now gpu 2) and one were gone",
        "cancel": "runs if one were gone and two were gone",
    }


@pytest.mark.parametrize("others_wait", [False, True])
def test_what_ends_one_by_one_must_leave_its_room_to_it(others_wait: bool) -> None:
    """Where smaller work takes what the first of them leaves, no room comes together, and all would end for nothing."""
    lab = Lab(spec(leaf("a"), leaf("b"), rule="guarantee"), {GPU: 2})
    lab.submit("one", "root.a")
    lab.submit("two", "root.a")
    lab.submit("large", "root.a", amounts={GPU: 2})
    if others_wait:
        lab.submit("small", "root.b", "bob")
    assert ("cancel" in lab.changes("large")) is not others_wait


def test_it_starts_by_itself_when_its_victims_are_gone() -> None:
    """Then nothing needs to change."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("low", "root.a", amounts={GPU: 2})
    lab.submit("high", "root.a", priority=9)
    found = lab.ways("high")
    assert found.by_itself is not None
    assert found.changes == ()
    told = explain(lab.scheduler, "high", "high", changes=Effort(), fork=False).paragraph
    assert "starts on node-1 without any change" in told


def test_the_effort_is_bounded_and_says_so() -> None:
    """What was found is told; that more was not tried, too."""
    lab = Lab(spec(leaf("a")), {GPU: 4})
    lab.submit("one", "root.a", amounts={GPU: 4}, priority=3)
    lab.submit("late", "root.a", amounts={GPU: 3})
    found = ways(lab.scheduler, ("default", "late", "late"), Effort(trials=3), fork=False)
    assert (found.is_complete, found.trials) == (False, 3)


def test_the_position_counts_everybody_ahead_in_the_queue() -> None:
    """By priority, then by age."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("runs", "root.a", priority=9)
    for key, priority in (("old", 1), ("new", 1), ("high", 5)):
        lab.submit(key, "root.a", priority=priority)
    positions = {key: explain(lab.scheduler, key, key).position for key in ("old", "new", "high")}
    assert positions == {"high": 1, "old": 2, "new": 3}


def test_nodes_that_are_out_of_the_question_are_counted_by_why() -> None:
    """A drained one is not open."""
    lab = Lab(spec(leaf("a")), {GPU: 1}, {GPU: 1})
    lab.scheduler.handle(DrainNode("node-2"), 0)
    lab.submit("runs", "root.a")
    lab.submit("late", "root.a")
    nodes = explain(lab.scheduler, "late", "late").nodes
    assert nodes is not None
    assert (nodes.total, nodes.open, nodes.with_room, dict(nodes.closed)) == (2, 1, 0, {"draining": 1})


def test_one_node_is_not_counted_among_others() -> None:
    """Nobody says "of 1 nodes 1 are open"."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("runs", "root.a")
    lab.submit("late", "root.a")
    said = explain(lab.scheduler, "late", "late").paragraph
    assert "The only node is open to it and has no room. node-1 lacks: gpu 1." in said
    lab.submit("big", "root.a", amounts={GPU: 1}, where=Constraints(selector=(Requirement("zone", "In", ("x",)),)))
    lab.scheduler.handle(Release("runs", "runs"), 0)
    said = explain(lab.scheduler, "big", "big").paragraph
    assert "The only node is not open to it (1 ruled out by selector)." in said, "it has room"


def test_one_of_several_nodes_is_and_has() -> None:
    lab = Lab(spec(leaf("a")), {GPU: 1}, {GPU: 1})
    lab.scheduler.handle(DrainNode("node-2"), 0)
    lab.submit("runs", "root.a")
    lab.submit("late", "root.a")
    said = explain(lab.scheduler, "late", "late").paragraph
    assert "Of 2 nodes 1 is open to it (1 draining) and 0 have room." in said


def test_a_node_that_is_too_small_is_not_the_one_that_lacks_least() -> None:
    """Of two that are open one could never hold it: it was named, and nobody was said to have what is short."""
    lab = Lab(spec(leaf("a")), {GPU: 3}, {GPU: 8}, {GPU: 1})
    lab.submit("runs", "root.a", amounts={GPU: 8})
    lab.submit("late", "root.a", amounts={GPU: 4})
    said = explain(lab.scheduler, "late", "late").paragraph
    assert "Of 3 nodes 3 are open to it, 1 of them large enough, and 0 have room." in said
    assert "node-2 lacks least: gpu 4. Held by runs of ann (gpu 8)." in said
    lab.submit("huge", "root.a", amounts={GPU: 9})
    said = explain(lab.scheduler, "huge", "huge").paragraph
    assert "0 of them large enough, and 0 have room." in said
    assert "lacks" not in said


def test_the_only_node_is_said_to_be_too_small() -> None:
    """Not to have no room: nothing runs there."""
    lab = Lab(spec(leaf("a")), {GPU: 3})
    lab.submit("huge", "root.a", amounts={GPU: 9})
    assert "The only node is open to it and is not large enough." in explain(lab.scheduler, "huge", "huge").paragraph


def test_what_runs_says_why_those_that_came_earlier_wait() -> None:
    """They need more than there is."""
    lab = Lab(spec(leaf("a")), {GPU: 3})
    lab.submit("first", "root.a", amounts={GPU: 2})
    lab.submit("big", "root.a", amounts={GPU: 2}, now_ms=10)
    lab.submit("small", "root.a", now_ms=20)
    verdict = explain(lab.scheduler, "small", "small")
    assert (verdict.state, verdict.node) == ("running", "node-1")
    assert [each.key for each in verdict.passed_over] == ["big"]
    assert "big came earlier and waits" in verdict.paragraph


def test_nobody_has_what_is_more_than_there_is() -> None:
    """More than the queue may ever use, or than any node is: the end of nothing would help."""
    lab = Lab(spec(leaf("small", {GPU: 2}), leaf("wide")), {GPU: 4})
    lab.submit("runs", "root.small", amounts={GPU: 2})
    lab.submit("beside", "root.wide", amounts={GPU: 2})
    lab.submit("much", "root.small", amounts={GPU: 3})
    lab.submit("large", "root.wide", amounts={GPU: 5})
    for key in ("much", "large"):
        assert explain(lab.scheduler, key, key).holders == [], key
    lab.submit("fits", "root.wide", amounts={GPU: 4})
    assert [each.key for each in explain(lab.scheduler, "fits", "fits").holders] == ["runs", "beside"]


@pytest.mark.parametrize("gpus", [8, 5], ids=["nodes have room", "nodes are full too"])
def test_what_counts_under_a_limit_at_the_root_has_what_is_short(gpus: int) -> None:
    """Neither nobody, nor what others have on the nodes."""
    file = spec(leaf("a"), limits=[{"limit": "of ann", "users": ["ann"], "maxresources": {GPU: 2}}])
    lab = Lab(file, {GPU: gpus})
    lab.submit("own", "root.a", amounts={GPU: 2})
    lab.submit("other", "root.a", user="bob", amounts={GPU: 3})
    lab.submit("late", "root.a")
    verdict = explain(lab.scheduler, "late", "late")
    assert "user ann has gpu 0 left of gpu 2 in root" in verdict.sentence
    assert [holder.key for holder in verdict.holders] == ["own"]


def test_idle_work_that_counts_in_its_group_alone_holds_nothing_of_a_maximum_below() -> None:
    """Its end would give the leaf nothing."""
    lab = Lab(spec(leaf("a", {GPU: 2})), {GPU: 8})
    lab.submit("leftover", "root.a", amounts={GPU: 3}, idle=True)
    lab.submit("runs", "root.a", amounts={GPU: 2})
    lab.submit("late", "root.a")
    assert [holder.key for holder in explain(lab.scheduler, "late", "late").holders] == ["runs"]


def test_where_the_root_runs_all_the_applications_it_may_they_are_the_holders() -> None:
    """Whatever node they run on; no node is short of anything."""
    lab = Lab(spec(leaf("a", maxapplications=1), leaf("b", maxapplications=1), maxapplications=1), {GPU: 8})
    lab.submit("runs", "root.a")
    lab.submit("late", "root.b")
    verdict = explain(lab.scheduler, "late", "late")
    assert verdict.sentence == "queue root runs 1 of at most 1 applications"
    assert [holder.key for holder in verdict.holders] == ["runs"]


def test_room_on_a_node_is_told_with_what_is_kept_there_for_others() -> None:
    """`big` waited too long, and gets the first four: `late` runs once there is one more."""
    lab = Lab(spec(leaf("a", properties={"wait.max": "10s"}), leaf("b")), {GPU: 4}, {GPU: 9})
    lab.scheduler.handle(DrainNode("node-2"), 0)
    lab.submit("runs", "root.b", amounts={GPU: 3})
    lab.submit("big", "root.a", amounts={GPU: 4})
    lab.scheduler.schedule(10_000)
    lab.submit("late", "root.b", now_ms=10_000)
    assert lab.changes("late")["node-room"] == "runs if gpu 5 were free on node-1 (now gpu 1)"


def test_of_an_ask_for_which_work_was_stopped_that_work_holds_the_room() -> None:
    """Not what runs on other nodes, of which one may come closer."""
    lab = Lab(spec(leaf("a")), {GPU: 4}, {GPU: 4})
    lab.submit("low", "root.a", amounts={GPU: 4})
    lab.submit("high", "root.a", amounts={GPU: 4}, priority=9)
    lab.submit("late", "root.a", amounts={GPU: 2}, priority=5)
    verdict = explain(lab.scheduler, "late", "late")
    assert verdict.sentence == "space on node-1 is held for it; waiting for low to stop"
    assert [holder.key for holder in verdict.holders] == ["low"]
    assert not [each for each in verdict.details if "lacks" in each]


def test_holders_that_the_asker_may_not_see_are_counted() -> None:
    """Not named."""
    lab = Lab(spec(leaf("a", {GPU: 1})), {GPU: 8})
    lab.submit("secret", "root.a", user="bob")
    lab.submit("late", "root.a")
    verdict = explain(lab.scheduler, "late", "late", sees=lambda app: app != "secret")
    assert (verdict.holders, verdict.hidden_holders) == ([], 1)
    assert "secret" not in verdict.paragraph


LOST = Dependency(application="gone", awaited=Awaited.OK, never="failed")


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (Conditions(held_by="ann"), "it was put on hold by ann and waits until it is released."),
        (Conditions(begin_ms=9_000), "it waits for the time it is to begin at."),
        (Conditions(after=(LOST,)), "it can never run: gone "),
    ],
)
def test_why_it_is_not_in_line_is_a_whole_sentence(conditions: Conditions, said: str) -> None:
    """Whatever word the reason begins with."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("late", "root.a", conditions=conditions)
    assert explain(lab.scheduler, "late", "late").paragraph.startswith(f"late waits: {said}")


def test_of_an_array_of_which_enough_run_it_is_said_so_in_a_whole_sentence() -> None:
    """The part that has to wait."""
    lab = Lab(spec(leaf("a")), {GPU: 8})
    lab.scheduler.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", user="ann", at_once=1)), 0)
    one = Resources({GPU: 1})
    lab.scheduler.handle(AddAsks(tuple(AskSpec(application="x", key=key, resources=one) for key in ("x.0", "x.1"))), 0)
    lab.scheduler.schedule(0)
    said = explain(lab.scheduler, "x", "x.1").paragraph
    assert said.startswith("x.1 waits: it is part of x, of which 1 of at most 1")


def with_a_stronger_ask_of_bob(*, ran: bool) -> Lab:
    """Of ann something runs that has to make room for something of bob; whether the scheduler has run since."""
    lab = Lab(spec(leaf("a"), leaf("b")), {GPU: 1})
    lab.submit("anns", "root.a")
    lab.scheduler.handle(AddApplication(ApplicationSpec(id="bobs", queue="root.b", user="bob")), 1)
    ask = AskSpec(application="bobs", key="bobs", resources=Resources({GPU: 1}), priority=5)
    lab.scheduler.handle(AddAsks((ask,)), 1)
    if ran:
        lab.scheduler.schedule(1)
    return lab


def test_whom_it_makes_room_for_stays_unnamed_when_that_is_gone() -> None:
    """Who may not see it learns no more by waiting until it was cancelled."""
    lab = with_a_stronger_ask_of_bob(ran=True)
    for _ in range(2):
        verdict = explain(lab.scheduler, "anns", "anns", sees=lambda app: app == "anns")
        assert verdict.stopped is not None
        assert verdict.stopped.for_whom == "somebody else's work"
        lab.scheduler.handle(RemoveApplication("bobs"), 2)


def test_work_of_others_that_would_stop_by_itself_is_not_named() -> None:
    """Neither where it starts without a change, nor where it would have to make room in what is supposed."""
    lab = with_a_stronger_ask_of_bob(ran=False)
    bob = {"changes": Effort(), "fork": False, "sees": lambda app: app == "bobs"}
    verdict = explain(lab.scheduler, "bobs", "bobs", **bob)  # type: ignore[arg-type]
    assert verdict.advice == ["It starts on node-1 without any change once somebody else's work stopped."]
    assert "anns" not in verdict.paragraph
    everything = explain(lab.scheduler, "bobs", "bobs", changes=Effort(), fork=False)
    assert everything.advice == ["It starts on node-1 without any change once anns stopped."]


def test_whom_it_would_have_to_make_room_for_is_not_named() -> None:
    """If something of the asker were told to stop for work of others."""
    lab = Lab(spec(leaf("a"), leaf("b")), {GPU: 1})
    lab.submit("anns", "root.a")
    ask = AskSpec(application="bobs", key="secret", resources=Resources({GPU: 1}), priority=5)
    bobs = submitted(ApplicationSpec(id="bobs", queue="root.b", user="bob"), [ask])
    for sees, named in ((lambda app: app == "anns", "somebody else's work"), (lambda app: True, "bobs/secret")):
        answer = suppose(lab.scheduler, bobs, sees=sees, fork=False)
        assert [(each.key, each.on_behalf_of) for each in answer.evicted.jobs] == [("anns", named)]


def test_unblock_gives_plain_values_and_nothing_for_what_does_not_wait() -> None:
    """JSON-ready."""
    lab = Lab(spec(leaf("a", {GPU: 1})), {GPU: 8})
    lab.submit("runs", "root.a")
    lab.submit("late", "root.a")
    found = unblock(lab.scheduler, "late", "late")
    assert json.loads(json.dumps(found)) == found
    raised = {"what": "queue-max", "subject": "root.a", "now": 1, "value": 2, "resource": GPU, "who": "", "text": ""}
    assert [change["parts"] for change in found if change["dimension"] == "queue-max"] == [[raised]]
    assert unblock(lab.scheduler, "runs", "runs") == []
    assert unblock(lab.scheduler, "nobody", "x") == []


def test_trying_changes_keeps_classes_budgets_and_quotas_of_the_file() -> None:
    """A change of a maximum is a change of nothing else."""
    text = {
        "partitions": [{"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": [leaf("a")]}]}],
        "priorityclasses": [{"name": "urgent", "value": 50}],
    }
    scheduler = Scheduler(load_text(json.dumps(text)))
    before = scheduler.cluster.admission.dump()
    scheduler.handle(Configure(current_spec(scheduler)), 0)
    assert scheduler.cluster.admission.dump() == before
    assert current_spec(scheduler).priority_classes


def test_a_verdict_on_nobody_is_an_error() -> None:
    """And on what waits no longer."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("runs", "root.a")
    lab.scheduler.handle(Release("runs", "runs"), 0)
    with pytest.raises(KeyError):
        explain(lab.scheduler, "runs", "runs")
    with pytest.raises(KeyError):
        explain(lab.scheduler, "nobody", "x")


def test_a_reason_about_something_else_is_not_said_of_the_ask() -> None:
    """The queue runs as many as it may: not "it queue root.a runs"."""
    lab = Lab(spec(leaf("a", maxapplications=1)), {GPU: 8})
    lab.submit("one", "root.a")
    lab.submit("late", "root.a")
    assert explain(lab.scheduler, "late", "late").paragraph.startswith("late waits: queue root.a runs 1 of at most 1")
    lab.submit("large", "root.a", amounts={GPU: 9})
    assert explain(lab.scheduler, "large", "large").paragraph.startswith("large waits: queue root.a runs")
    nowhere = Lab(spec(leaf("a")))
    nowhere.submit("job", "root.a")
    advice = explain(nowhere.scheduler, "job", "job", changes=Effort(), fork=False).advice
    assert advice == ["It cannot run as it is, whatever ends, unless a node comes."]


def test_what_a_window_beyond_a_day_keeps_waiting_can_run_when_that_is_over() -> None:
    """But not where the window comes again before it could have ended."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.scheduler.handle(SetWindow(WindowSpec(name="w", starts_ms=80_000_000, length_ms=10_000_000)), 0)
    lab.submit("one", "root.a", time_limit_ms=70_000_000)
    lab.submit("late", "root.a")
    advice = explain(lab.scheduler, "late", "late", changes=Effort(), fork=False).advice
    assert advice[0] == "Wait: it starts when enough of what runs and comes before it has ended."
    every_day = Lab(spec(leaf("a")), {GPU: 1})
    window = WindowSpec(name="w", starts_ms=80_000_000, length_ms=10_000_000, every_ms=86_400_000)
    every_day.scheduler.handle(SetWindow(window), 0)
    every_day.submit("late", "root.a")
    advice = explain(every_day.scheduler, "late", "late", changes=Effort(), fork=False).advice
    assert "It can never run as it is" in advice[0]
