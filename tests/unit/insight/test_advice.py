"""Advice: what to do, whose it is to do, and that something can never run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.insight.test_explain import GPU, Lab, leaf, spec

from fairlead.config import check_text, load_text
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import VOLUME_LIMIT, AffinityTerm, Constraints, Requirement
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, LabelNode, Release, SetWindow
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import PRIORITY_MAX, TAG_FOREIGN, ApplicationSpec, AskSpec, NodeSpec, WindowSpec
from fairlead.insight.advice import Asker, By
from fairlead.insight.explain import explain
from fairlead.insight.search import Effort
from fairlead.insight.unblock import ways
from fairlead.scheduler import Scheduler
from fairlead.wire.verdicts import Verdict

ADMIN = Asker(lambda app: True, lambda queue: True, lambda queue: True, is_admin=True)


def asked(lab: Lab, key: str, asker: Asker | None = None) -> Verdict:
    return explain(lab.scheduler, key, key, changes=Effort(), asker=asker, fork=False)


def test_what_the_owner_can_do_comes_before_what_an_administrator_can() -> None:
    """Another queue has room: nobody needs to raise a maximum, and nothing is stopped."""
    lab = Lab(spec(leaf("a", {GPU: 1}), leaf("b")), {GPU: 8})
    lab.submit("other", "root.a", user="bob")
    lab.submit("late", "root.a")
    found = asked(lab, "late")
    assert found.advice == ["You can move it to root.b; it starts then."]
    assert found.changes is not None
    assert (found.changes[0].dimension, found.changes[0].by) == ("queue", By.ASKER)
    assert {each.dimension: each.by for each in found.changes}["queue-max"] == By.MACHINE
    assert {each.dimension: each.by for each in found.changes}["cancel"] == By.QUEUE


def test_whoever_may_not_submit_to_a_queue_is_not_told_to_move_there() -> None:
    """What is not the asker's is not offered as such; the wait comes before what would stop others."""
    lab = Lab(spec(leaf("a", {GPU: 1}, submitacl="ann,bob"), leaf("b", submitacl="eve"), submitacl=""), {GPU: 8})
    lab.submit("other", "root.a", user="bob", amounts={GPU: 1})
    lab.submit("late", "root.a", user="ann")
    found = asked(lab, "late")
    assert found.advice[0].startswith("Wait: it starts when enough of what runs and comes before it has ended")
    assert found.advice[1] == "Sooner: an administrator of the queue can move it to root.b."
    told = asked(lab, "late", ADMIN)
    assert told.changes is not None
    assert {each.by for each in told.changes} <= {By.ASKER, By.NOBODY}


def test_what_stops_work_is_the_last_resort() -> None:
    """A priority that would stop another is no better than waiting for its end."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("low", "root.a", priority=70, amounts={GPU: 2}, user="bob", time_limit_ms=600_000)
    lab.submit("late", "root.a", priority=5, amounts={GPU: 2})
    found = asked(lab, "late")
    assert found.advice[0].startswith("Wait: it starts when enough of what runs and comes before it has ended")
    assert found.advice[0].endswith(", by time limits in 10m at the latest.")
    assert found.changes is not None
    stops = [each.stops > 0 for each in found.changes]
    assert stops == sorted(stops)


@pytest.mark.parametrize(("of_root", "of_queue", "whose"), [("10", "100", By.ASKER), ("100", "10", By.QUEUE)])
def test_the_nearest_bound_on_priorities_says_whose_a_higher_one_is(of_root: str, of_queue: str, whose: By) -> None:
    """As where it is asked for: what a queue says counts there instead of what is said above it."""
    a = leaf("a", properties={"job.priority.max": of_queue})
    lab = Lab(spec(a, properties={"job.priority.max": of_root}), {GPU: 2})
    lab.submit("low", "root.a", priority=70, amounts={GPU: 2}, user="bob")
    lab.submit("late", "root.a", amounts={GPU: 2}, user="ann")
    found = asked(lab, "late").changes
    assert found is not None
    assert [each.by for each in found if each.dimension == "priority"] == [whose]


def test_ones_own_work_to_cancel_comes_before_what_nobody_can_do() -> None:
    """Of a full machine it said "only if somebody could have room", which is what it waits for."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("mine", "root.a", amounts={GPU: 1}, user="ann")
    lab.submit("theirs", "root.a", amounts={GPU: 1}, user="bob")
    lab.submit("late", "root.a", amounts={GPU: 1}, user="ann")
    on_one_machine = Asker(lambda app: app == "mine", lambda _: False, nodes_may_join=False)
    assert asked(lab, "late", on_one_machine).advice[1] == "Sooner: you can cancel mine."
    others = replace(on_one_machine, may_act=lambda _: False)
    assert asked(lab, "late", others).advice[1].startswith("Sooner it starts only if somebody could have gpu 1 free")


def test_a_time_limit_that_is_over_is_no_bound() -> None:
    """What should have ended by it is on its way out, and nobody knows for how long; that of another node still is."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("low", "root.a", amounts={GPU: 2}, user="bob", time_limit_ms=60_000)
    lab.submit("late", "root.a", now_ms=60_000, amounts={GPU: 2})
    wait = "Wait: it starts when enough of what runs and comes before it has ended"
    assert asked(lab, "late").advice[0] == f"{wait}."
    both = Lab(spec(leaf("a")), {GPU: 2}, {GPU: 2})
    both.submit("low", "root.a", amounts={GPU: 2}, user="bob", time_limit_ms=60_000)
    both.submit("other", "root.a", amounts={GPU: 2}, user="bob", time_limit_ms=120_000)
    both.submit("late", "root.a", now_ms=60_000, amounts={GPU: 2})
    assert asked(both, "late").advice[0] == f"{wait}, by time limits in 1m at the latest."


def test_time_limits_on_nodes_are_no_bound_where_something_else_is_full() -> None:
    """The maximum of its queue is used by work that may stay for ever: that a node has room soon starts nothing."""
    lab = Lab(spec(leaf("a", {GPU: 1}), leaf("b")), {GPU: 2})
    lab.submit("stays", "root.a", amounts={GPU: 1}, user="bob")
    lab.submit("ends", "root.b", amounts={GPU: 1}, user="bob", time_limit_ms=600_000)
    lab.submit("late", "root.a", amounts={GPU: 1})
    found = asked(lab, "late")
    assert found.closest[0].frees_ms == 600_000
    assert found.advice[0] == "Wait: it starts when enough of what runs and comes before it has ended."


def test_a_time_limit_that_makes_room_under_a_maximum_is_a_bound() -> None:
    """The node has room all the time."""
    lab = Lab(spec(leaf("a", {GPU: 1})), {GPU: 8})
    lab.submit("ends", "root.a", amounts={GPU: 1}, user="bob", time_limit_ms=600_000)
    lab.submit("late", "root.a", amounts={GPU: 1})
    assert asked(lab, "late").advice[0].endswith(", by time limits in 10m at the latest.")


def test_time_limits_are_no_bound_where_others_may_take_the_room() -> None:
    """It is the first of its queue, and not of all that waits."""
    lab = Lab(spec(leaf("a"), leaf("b")), {GPU: 2})
    lab.submit("low", "root.a", amounts={GPU: 2}, user="bob", time_limit_ms=600_000)
    lab.submit("rival", "root.b", amounts={GPU: 2}, user="bob")
    lab.submit("late", "root.a", amounts={GPU: 2})
    assert asked(lab, "late").advice[0].endswith(", by time limits in 10m unless others take the room.")


def test_what_no_change_of_the_world_lets_run_is_told_so_with_what_would() -> None:
    """It needs 5, the maximum is 3: nothing that runs is in the way, and no smaller thing hides that."""
    lab = Lab(spec(leaf("a", {GPU: 3})), {GPU: 8})
    lab.submit("runs", "root.a", amounts={GPU: 2})
    lab.submit("huge", "root.a", amounts={GPU: 5})
    found = asked(lab, "huge")
    assert found.never is not None
    assert found.never.reason is not None
    assert found.never.reason.code == "queue-full"
    assert found.advice[0].startswith("It can never run as it is: even if nothing else ran, it needs gpu 5")
    assert found.changes is not None
    assert {"queue-max", "smaller-request"} <= {each.dimension for each in found.changes}
    lab.submit("fits", "root.a", amounts={GPU: 3})
    assert asked(lab, "fits").never is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"amounts": {GPU: 9}}, "It can never run as it is, even if nothing else ran."),
        (
            {"where": Constraints(affinity=(AffinityTerm((Requirement("app", "In", ("db",)),)),))},
            "It cannot run as it is, whatever ends, unless work that it wants to be with comes.",
        ),
    ],
    ids=["too large", "nothing to be with"],
)
def test_the_cause_for_which_it_can_never_run_is_said_once(more: dict[str, Any], told: str) -> None:
    """It is what it waits for anyway; and more work may be submitted."""
    lab = Lab(spec(leaf("a")), {GPU: 8})
    lab.submit("late", "root.a", **more)
    found = asked(lab, "late")
    assert found.advice[0] == told
    assert found.paragraph.count(found.sentence) == 1


def test_what_fits_nowhere_even_alone_has_advice_for_then() -> None:
    """Full nodes and a maximum that is too small: what lets it run once there is room is found there."""
    lab = Lab(spec(leaf("a", {GPU: 1}), leaf("b"), rule="guarantee"), {GPU: 2})
    for key in ("one", "two"):
        lab.submit(key, "root.b", user="bob")
    lab.submit("late", "root.a", amounts={GPU: 2})
    found = asked(lab, "late")
    assert found.never is not None
    assert found.changes


def test_what_is_too_large_is_told_to_ask_for_less_and_not_to_stop_others_besides() -> None:
    """With all of the node it could run; that this is in use is for later."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("runs", "root.a", amounts={GPU: 2})
    lab.submit("late", "root.a", amounts={GPU: 3})
    found = asked(lab, "late")
    assert found.advice[1:] == ["You can ask for gpu 2 at most (now gpu 3); it can run then."]
    assert [change.dimension for change in found.changes or () if change.stops] == ["priority+smaller-request"]


def test_what_parts_of_an_array_keep_waiting_that_have_yet_to_enter_is_not_told_that_it_never_runs() -> None:
    """Those that are held would enter one after the other where the others end: they are others, too."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.scheduler.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", user="bob", at_once=1)), 0)
    parts = (AskSpec(application="x", key=f"x.{number}", resources=Resources({GPU: 1})) for number in range(3))
    lab.scheduler.handle(AddAsks(tuple(parts)), 0)
    lab.submit("late", "root.a")
    found = asked(lab, "late")
    assert found.never is None
    assert found.advice[0].startswith("Wait: it starts when enough of what runs and comes before it has ended")


def test_what_work_of_another_scheduler_keeps_waiting_is_not_told_that_it_never_runs() -> None:
    """That runs as well, and ends."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    tags = {TAG_FOREIGN: "default"}
    there = AskSpec(application="", key="theirs", resources=Resources({GPU: 1}), tags=tags, node="node-1")
    lab.scheduler.handle(AddAsks((there,)), 0)
    lab.submit("late", "root.a", amounts={GPU: 2})
    assert asked(lab, "late").never is None


@pytest.mark.parametrize("waits", [False, True])
def test_what_wants_to_be_with_others_is_not_told_that_it_never_runs_as_long_as_they_are_there(waits: bool) -> None:
    """Its node is full, or they wait as well: where all others were gone there would be nothing to be with."""
    near = Constraints(affinity=(AffinityTerm((Requirement("app", "In", ("db",)),)),))
    lab = Lab(spec(leaf("a"), rule="guarantee"), {GPU: 2})
    if waits:
        lab.submit("other", "root.a", user="bob", amounts={GPU: 2})
    lab.submit("db", "root.a", user="bob", labels={"app": "db"})
    lab.submit("other-2", "root.a", user="bob")
    lab.submit("late", "root.a", where=near)
    assert asked(lab, "late").never is None
    lab.scheduler.handle(Release("db", "db"), 0)
    assert asked(lab, "late").never is not None


@pytest.mark.parametrize("conditions", [Conditions(held_by="bob"), Conditions(begin_ms=60_000)])
def test_what_wants_to_be_with_work_that_is_not_in_line_yet_is_not_told_that_it_never_runs(
    conditions: Conditions,
) -> None:
    """It was told that it never runs, and in the next sentence when it starts."""
    near = Constraints(affinity=(AffinityTerm((Requirement("app", "In", ("db",)),)),))
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("late", "root.a", where=near)
    assert asked(lab, "late").never is not None
    lab.scheduler.handle(AddApplication(ApplicationSpec(id="db", queue="root.a", user="bob")), 0)
    db = AskSpec(application="db", key="db", resources=Resources({GPU: 1}), labels={"app": "db"}, conditions=conditions)
    lab.scheduler.handle(AddAsks((db,)), 0)
    assert asked(lab, "late").never is None


def with_a_gang_that_is_too_large(style: str = "Hard", size: int = 1) -> Scheduler:
    """Of three places there is room for two; real work has come for all of them. With `size` 2 there is for one."""
    s = Lab(spec(leaf("a")), {GPU: 2}).scheduler
    whole = Resources({GPU: 3 * size})
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=whole, gang_style=style)), 0)
    for kind in ("place", "real"):
        member = AskSpec(application="g", key="", resources=Resources({GPU: size}), task_group="t")
        member = replace(member, placeholder=kind == "place")
        s.handle(AddAsks(tuple(replace(member, key=f"{kind}-{number}") for number in range(3))), 0)
        s.schedule(0)
    return s


def test_what_waits_for_others_of_its_gang_that_run_is_not_told_that_it_never_runs() -> None:
    """They end, too."""
    s = with_a_gang_that_is_too_large()
    for number in range(2):
        s.handle(Release("g", f"place-{number}", Cause.PLACEHOLDER_REPLACED), 0)
    assert explain(s, "g", "real-0").sentence == "runs on node-1"
    for key in ("place-2", "real-2"):
        assert explain(s, "g", key, changes=Effort(), fork=False).never is None, key


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_what_goes_on_one_by_one_is_not_told_that_it_never_runs(style: str) -> None:
    """One takes the only place that its gang can have; the others have their turn when it has ended."""
    s = with_a_gang_that_is_too_large(style, size=2)
    for key in ("place-2", "real-2"):
        assert explain(s, "g", key, changes=Effort(), fork=False).never is None, key


def test_what_is_left_of_a_gang_that_was_given_up_is_not_told_that_it_never_runs() -> None:
    """There is room for two of the three at a time: they go on one by one, and the third when one has ended."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("other", "root.a", amounts={GPU: 2}, user="bob")
    s = lab.scheduler
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 3}))), 0)
    member = AskSpec(application="g", key="", resources=Resources({GPU: 1}), task_group="t")
    s.handle(AddAsks(tuple(replace(member, key=f"real-{number}") for number in range(3))), 0)
    s.schedule(0)
    said = explain(s, "g", "real-2", changes=Effort(), fork=False)
    assert said.never is None
    assert any(each.startswith("Wait: it starts when enough of what runs") for each in said.advice)


def test_what_waits_for_devices_is_not_told_that_it_never_runs() -> None:
    """Who has them may end, of which the marks of nodes say nothing beforehand."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("late", "root.a", where=Constraints(devices="1 gpu"))
    found = asked(lab, "late")
    assert found.sentence == "the only node does not suit it: 1 without the devices that it claims"
    assert (found.never, found.advice) == (None, [])
    lab.submit("other", "root.a", where=Constraints(devices="1 gpu", selector=(Requirement("zone", "In", ("a",)),)))
    assert asked(lab, "other").never is not None


def test_a_gang_that_is_too_large_is_not_told_what_starts_one_of_its_placeholders() -> None:
    """Of a hundred places on nodes with four it said that one more node is enough."""
    s = Lab(spec(leaf("a")), {GPU: 2}).scheduler
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 50}))), 0)
    place = AskSpec(application="g", key="", resources=Resources({GPU: 1}), task_group="t", placeholder=True)
    s.handle(AddAsks(tuple(replace(place, key=f"place-{number}") for number in range(50))), 0)
    s.schedule(0)
    said = explain(s, "g", "place-2", changes=Effort(), fork=False)
    assert said.sentence == "its gang needs gpu 50 together; all nodes together have gpu 2"
    assert said.advice == ["Its gang starts with more nodes, or a smaller gang."]


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (3, "; it has its room then, and its gang starts when 2 more have theirs, too"),
        (2, "; it has its room then, and its gang starts when 1 more has theirs, too"),
        (1, ""),
    ],
)
def test_a_placeholder_is_not_told_that_it_starts_while_others_of_its_gang_lack_their_room(
    lacking: int, said: str
) -> None:
    """One more node was to start a job that needs two."""
    s = Lab(spec(leaf("a")), {GPU: 4}).scheduler
    s.handle(AddApplication(ApplicationSpec(id="hog", queue="root.a")), 0)
    s.handle(AddAsks((AskSpec(application="hog", key="1", resources=Resources({GPU: lacking})),)), 0)
    s.schedule(0)
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 4}))), 0)
    place = AskSpec(application="g", key="", resources=Resources({GPU: 1}), task_group="t", placeholder=True)
    s.handle(AddAsks(tuple(replace(place, key=f"place-{number}") for number in range(4))), 0)
    s.schedule(0)
    found = explain(s, "g", "place-3", changes=Effort(), fork=False)
    assert found.gang_lacks == lacking - 1
    assert found.advice[-1] == f"Sooner: an administrator can add one more node like node-1{said}."


def test_nor_is_one_with_more_members_than_the_nodes_could_hold() -> None:
    s = Lab(spec(leaf("a")), {GPU: 3}).scheduler
    s.handle(AddNode(NodeSpec(id="m", capacity=Resources({GPU: 3}))), 0)
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 6}))), 0)
    place = AskSpec(application="g", key="", resources=Resources({GPU: 2}), task_group="t", placeholder=True)
    s.handle(AddAsks(tuple(replace(place, key=f"place-{number}") for number in range(3))), 0)
    s.schedule(0)
    said = explain(s, "g", "place-2", changes=Effort(), fork=False)
    assert said.sentence.startswith("task group t has 3 members of gpu 2 each; all nodes together could hold at most 2")
    assert said.advice == ["Its gang starts with more nodes, or a smaller gang."]


def test_a_gang_that_is_larger_than_its_limit_is_not_told_to_wait() -> None:
    """Whatever ends, it is not whole; what makes it so is said."""
    own = {"limits": [{"limit": "own", "users": ["nobody"], "maxresources": {GPU: 2}}]}
    s = Lab(spec(leaf("a", **own)), {GPU: 8}).scheduler
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 3}))), 0)
    place = AskSpec(application="g", key="", resources=Resources({GPU: 1}), task_group="t", placeholder=True)
    s.handle(AddAsks(tuple(replace(place, key=f"place-{number}") for number in range(3))), 0)
    s.schedule(0)
    verdict = explain(s, "g", "place-2", changes=Effort(), fork=False)
    assert not [each for each in verdict.advice if each.startswith("Wait")]
    assert "raise the limit of user nobody in root.a to gpu 3" in verdict.advice[0]


@pytest.mark.parametrize(
    ("properties", "where", "passing", "lasting"),
    [
        (
            {"application.unschedasks.backoff": "1"},
            Constraints(selector=(Requirement("zone", "In", ("a",)),)),
            "backed-off",
            "the only node does not suit it: 1 without an attribute that it asks for",
        ),
        (
            {"wait.max": "10s"},
            Constraints(affinity=(AffinityTerm((Requirement("app", "In", ("db",)),)),)),
            "held-for-reservation",
            "the only node does not suit it: 1 without the work that it wants to be with",
        ),
    ],
    ids=["rests", "waits for a turn"],
)
def test_what_can_never_run_is_told_the_cause_and_not_what_passes(
    properties: dict[str, str], where: Constraints, passing: str, lasting: str
) -> None:
    """Its application rests, or its like has its turn kept, again and again, since it fits nowhere."""
    s = Lab(spec(leaf("a", properties=properties)), {GPU: 2}).scheduler
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 2}))), 0)
    place = AskSpec(application="g", key="", resources=Resources({GPU: 1}), where=where, task_group="t")
    place = replace(place, placeholder=True)
    s.handle(AddAsks(tuple(replace(place, key=f"place-{number}") for number in range(2))), 0)
    s.schedule(0)
    s.schedule(20_000)
    verdict = explain(s, "g", "place-1", changes=Effort(), fork=False)
    assert verdict.reason is not None
    assert verdict.never is not None
    assert (verdict.reason.code, verdict.never.sentence) == (passing, lasting)


@pytest.mark.parametrize(
    ("where", "never"),
    [
        ({}, "needs gpu 2 on one node; the only node has gpu 1"),
        ({"where": Constraints(ports=("TCP/0.0.0.0/80",))}, "takes the place of a placeholder of task group t; 0 of 1"),
    ],
    ids=["the same", "with a port"],
)
def test_work_whose_placeholder_can_have_no_node_is_told_why(where: dict[str, Any], never: str) -> None:
    """Not only that none has one; but where the placeholder asks for something else, which does not hold for it."""
    s = Lab(spec(leaf("a")), {GPU: 1}).scheduler
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 2}))), 0)
    place = AskSpec(application="g", key="place", resources=Resources({GPU: 2}), task_group="t", placeholder=True)
    s.handle(AddAsks((place, replace(place, key="real", placeholder=False, **where))), 0)
    s.schedule(0)
    verdict = explain(s, "g", "real", changes=Effort(), fork=False)
    assert verdict.sentence.startswith("takes the place of a placeholder")
    assert verdict.never is not None
    assert verdict.never.sentence.startswith(never)


def test_what_is_under_way_to_the_place_of_a_placeholder_says_so() -> None:
    """It has no node yet."""
    said = explain(with_a_gang_that_is_too_large(), "g", "real-0").paragraph
    assert said.startswith("real-0 starts as soon as place-0 has stopped, which kept room for its gang.")


def test_a_place_that_is_kept_for_a_gang_is_not_told_to_be_smaller() -> None:
    """The work that it is kept for would not fit there: its size is not its own to change."""
    lab = Lab(spec(leaf("a"), rule="guarantee"), {GPU: 3})
    s = lab.scheduler
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 4}))), 0)
    place = AskSpec(application="g", key="", resources=Resources({GPU: 2}), task_group="t", placeholder=True)
    s.handle(AddAsks(tuple(replace(place, key=f"place-{number}") for number in range(2))), 0)
    s.schedule(0)
    changes = explain(s, "g", "place-1", changes=Effort(), fork=False).changes
    assert changes
    assert all("smaller-request" not in each.dimension for each in changes)


def test_several_things_that_an_ask_says_of_itself_and_can_do_are_tried_together() -> None:
    """The attribute that it wants and its rank: neither alone would do, and nobody else is needed."""
    lab = Lab(spec(leaf("a")), {GPU: 1}, {GPU: 1})
    lab.scheduler.handle(LabelNode("node-1", {"zone": "a"}), 0)
    there = Constraints(selector=(Requirement("zone", "In", ("a",)),))
    lab.submit("first", "root.a", user="bob", priority=PRIORITY_MAX, where=there)
    lab.submit("low", "root.a", user="bob", priority=5)
    lab.submit("late", "root.a", where=there)
    found = [each.sentence for each in lab.ways("late").changes if each.by == By.ASKER]
    assert found == [
        "runs if it were submitted without its node selector and its priority were 6 (now 0; 5 is not enough); "
        "that would stop low"
    ]


@pytest.mark.parametrize("resource", ["vcore", "memory"])
def test_only_the_guarantee_that_helps_is_named(resource: str) -> None:
    """Not one for each resource that it asks for."""
    one = {"vcore": 1000, "memory": 1}
    lab = Lab(spec(leaf("a"), leaf("b", properties={"preemption.delay": "1ms"}), rule="guarantee"), one)
    lab.submit("runs", "root.a", amounts=one)
    lab.submit("late", "root.b", amounts={resource: one[resource]}, now_ms=60_000)
    for change in lab.ways("late").changes:
        if change.dimension == "guaranteed":
            assert [part.resource for part in change.parts] == ["cpu" if resource == "vcore" else resource]


def test_a_new_node_helps_where_what_runs_keeps_it_away() -> None:
    """One that may not stand beside its like needs one more node."""
    apart = Constraints(anti_affinity=(AffinityTerm((Requirement("app", "Exists"),)),))
    lab = Lab(spec(leaf("a")), {GPU: 8})
    lab.submit("first", "root.a", labels={"app": "db"}, where=apart)
    lab.submit("second", "root.a", labels={"app": "db"}, where=apart)
    found = lab.ways("second")
    assert found.is_complete
    assert "runs if there were one more node like node-1" in [change.sentence for change in found.changes]


def test_a_new_node_helps_where_no_more_volumes_can_be_attached_or_a_window_names_the_old_one() -> None:
    """Neither says anything of a new one."""
    lab = Lab(spec(leaf("a")), {GPU: 8})
    lab.scheduler.handle(LabelNode("node-1", {f"{VOLUME_LIMIT}disk": "1"}), 0)
    for key in ("first", "second"):
        lab.submit(key, "root.a", where=Constraints(volumes=(f"{key}@disk",)))
    assert lab.changes("second")["nodes"] == "runs if there were one more node like node-1"
    lab.scheduler.handle(Release("first", "first"), 0)
    lab.scheduler.handle(SetWindow(WindowSpec(name="w", starts_ms=60_000, length_ms=5_000, nodes=("node-1",))), 0)
    assert lab.changes("second")["nodes"] == "runs if there were one more node like node-1"


def test_a_change_of_the_queue_file_comes_as_a_difference_that_is_valid() -> None:
    """It is the text that is in force, with one line changed."""
    text = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a   # the small one
            resources:
              max: {gpu: 1}
"""
    lab = Lab(load_text(text), {GPU: 8})
    lab.submit("runs", "root.a")
    lab.submit("late", "root.a")
    change = next(each for each in lab.ways("late").changes if each.dimension == "queue-max")
    assert change.difference.splitlines()[-2:] == ["-              max: {gpu: 1}", "+              max: {gpu: 2}"]
    assert check_text(text.replace("gpu: 1", "gpu: 2")) == []


def test_a_queue_file_that_the_checks_refuse_is_no_change() -> None:
    """A guarantee above the parent's is not proposed."""
    tree = {
        "name": "p",
        "resources": {"guaranteed": {GPU: 1}},
        "queues": [leaf("a", properties={"preemption.delay": "1ms"})],
    }
    lab = Lab(spec(tree, leaf("b"), rule="guarantee"), {GPU: 2})
    lab.submit("runs", "root.b", user="bob", amounts={GPU: 2})
    lab.submit("late", "root.p.a", amounts={GPU: 2}, now_ms=60_000)
    for change in lab.ways("late").changes:
        raised = {part.subject: part.value for part in change.parts if part.what == "guaranteed"}
        assert raised.get("root.p.a", 0) <= raised.get("root.p", 1)


def test_on_one_machine_nobody_is_told_to_add_nodes() -> None:
    """It is said whose it is: nobody's."""
    lab = Lab(spec(leaf("a")), {GPU: 2})
    lab.submit("runs", "root.a", amounts={GPU: 2}, user="bob", priority=9)
    lab.submit("late", "root.a")
    alone = Asker(lambda app: app == "late", lambda queue: False, nodes_may_join=False)
    changes = {
        each.dimension: each.by for each in ways(lab.scheduler, ("default", "late", "late"), asker=alone).changes
    }
    assert changes["nodes"] == By.NOBODY


def test_those_ahead_are_named_and_no_sentence_comes_twice() -> None:
    """The first three, those that the asker may see."""
    lab = Lab(spec(leaf("a", {GPU: 1})), {GPU: 8})
    for key in ("runs", "first", "second", "third", "fourth", "late"):
        lab.submit(key, "root.a")
    found = asked(lab, "late")
    assert (found.ahead, found.position) == (["first", "second", "third"], 5)
    assert found.changes is not None
    sentences = [change.sentence for change in found.changes]
    assert len(sentences) == len(set(sentences))
    assert "first, second, third and 1 more before it" in found.paragraph
