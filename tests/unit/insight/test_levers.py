"""What would start a waiting ask where constraints, turns, classes and quotas are in its way: each on a small state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.insight.test_explain import GPU, Lab, leaf, spec

from fairlead.core.model.constraints import CORDONED, AffinityTerm, Constraints, Requirement, SpreadTerm, Taint
from fairlead.core.model.decisions import AskRejected
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    DrainNode,
    LabelNode,
    Leaving,
    Release,
    RemovePriorityClass,
    ReserveAsk,
    SetBudget,
    SetPriorityClass,
    SetQuota,
    SetWindow,
)
from fairlead.core.model.reasons import BackedOff
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    NodeSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QuotaSpec,
    RetrySpec,
    WindowSpec,
)
from fairlead.insight.explain import explain
from fairlead.insight.parts import Part, What, acts
from fairlead.insight.search import Effort
from fairlead.insight.suppositions import submitted
from fairlead.insight.trial import leaving, settle
from fairlead.insight.unblock import ways
from fairlead.insight.whatif import suppose
from fairlead.wire.verdicts import Stopped

HOUR_MS = 3_600_000
APP = (Requirement("app", "In", ("x",)),)


def lab(*nodes: dict[str, int], rule: str = "priority", **properties: str) -> Lab:
    """One queue `root.a` with these properties."""
    return Lab(spec(leaf("a", properties=properties), leaf("b"), rule=rule), *nodes)


def wanting(key: str, *values: str, operator: str = "In") -> Constraints:
    return Constraints(selector=(Requirement(key, operator, values),))


# -- where it may run ---------------------------------------------------------------------------------------------


def test_an_attribute_that_a_node_would_have_and_the_selector_that_it_would_do_without() -> None:
    """Each on its own is enough."""
    there = lab({GPU: 2})
    there.submit("late", "root.a", where=wanting("gpu", "a100"))
    assert there.changes("late") == {
        "node-attribute": "runs if node node-1 had the attribute gpu=a100",
        "constraints": "runs if it were submitted without its node selector",
    }


@pytest.mark.parametrize(
    ("where", "attributes", "said"),
    [
        (wanting("zone", operator="Exists"), {}, "had the attribute zone=yes"),
        (wanting("zone", operator="DoesNotExist"), {"zone": "a"}, "had no attribute zone"),
        (wanting("zone", "a", operator="NotIn"), {"zone": "a"}, "had no attribute zone"),
        (wanting("size", "5", operator="Gt"), {"size": "5"}, "had the attribute size=6"),
        (wanting("size", "5", operator="Lt"), {}, "had the attribute size=4"),
        (
            Constraints(node_terms=((Requirement("zone", "In", ("a",)), APP[0]), (Requirement("zone", "In", ("b",)),))),
            {},
            "had the attribute zone=b",
        ),
    ],
)
def test_the_least_that_a_node_would_have_to_say(where: Constraints, attributes: dict[str, str], said: str) -> None:
    """By every operator; of several terms the one that needs least."""
    there = lab({GPU: 2})
    there.scheduler.handle(LabelNode("node-1", attributes), 0)
    there.submit("late", "root.a", where=where)
    assert there.changes("late")["node-attribute"] == f"runs if node node-1 {said}"


def test_a_size_or_a_priority_and_a_selector_together() -> None:
    """What is submitted again with other words is as small, or as important, as is said with it."""
    there = lab({GPU: 2})
    there.submit("late", "root.a", amounts={GPU: 3}, where=wanting("gpu", "a100"))
    assert there.changes("late") == {
        "smaller-request+constraints": "runs if it needed no more than gpu 2 (now gpu 3) and it were submitted "
        "without its node selector"
    }
    there.submit("runs", "root.a", amounts={GPU: 2})
    there.submit("also", "root.a", amounts={GPU: 2}, where=wanting("gpu", "a100"))
    assert there.changes("also")["priority+constraints"].startswith("runs if its priority were 1 (now 0)")


def test_what_no_attribute_can_meet_is_not_stated() -> None:
    """Two conditions that exclude each other."""
    there = lab({GPU: 2})
    both = Constraints(selector=(Requirement("zone", "In", ("a",)), Requirement("zone", "DoesNotExist")))
    there.submit("late", "root.a", where=both)
    assert set(there.changes("late")) == {"constraints"}


def test_a_taint_that_were_gone_or_tolerated() -> None:
    """Both are said as one writes them."""
    there = lab({GPU: 2})
    there.scheduler.handle(LabelNode("node-1", {}, (Taint("team", "x"),)), 0)
    there.submit("late", "root.a")
    found = there.changes("late")
    assert found["taint"] == "runs if node node-1 had no taint team=x:NoSchedule"
    assert found["constraints"] == "runs if it tolerated the taint team=x:NoSchedule"


def test_a_node_of_a_cluster_that_were_not_cordoned() -> None:
    """Its cluster would put the taint back."""
    there = lab({GPU: 2})
    there.scheduler.handle(LabelNode("node-1", {}, (Taint(CORDONED, ""),)), 0)
    there.submit("late", "root.a")
    assert there.changes("late")["taint"] == "runs if node node-1 were not cordoned"
    assert acts((Part(What.TAINT, "n0", 0, 1, text=f"{CORDONED}:NoSchedule"),)) == ["uncordon node n0"]


def test_a_node_that_were_not_drained() -> None:
    """And its taint goes only where that is needed too."""
    there = lab({GPU: 2})
    there.scheduler.handle(DrainNode("node-1"), 0)
    there.submit("late", "root.a")
    assert there.changes("late")["drain"] == "runs if node node-1 were not drained"
    there.scheduler.handle(LabelNode("node-1", {}, (Taint("team", "x"),)), 0)
    assert there.changes("late")["taint+drain"].endswith("no taint team=x:NoSchedule and node node-1 were not drained")


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (Constraints(affinity=(AffinityTerm((Requirement("app", "In", ("y",)),), "zone"),)), "affinity"),
        (Constraints(anti_affinity=(AffinityTerm(APP),)), "anti-affinity"),
        (Constraints(spread=(SpreadTerm(APP, "zone"),)), "spread"),
        (Constraints(ports=("TCP/0.0.0.0/80",)), "host ports"),
    ],
)
def test_a_constraint_that_it_would_do_without(where: Constraints, name: str) -> None:
    """Of those that look at other work."""
    there = lab({GPU: 4})
    there.scheduler.handle(LabelNode("node-1", {"zone": "a"}), 0)
    ports = Constraints(ports=("TCP/0.0.0.0/80",))
    there.submit("first", "root.a", labels={"app": "x"}, where=ports)
    # A second zone without room makes the first one too full.
    scheduler = there.scheduler
    scheduler.handle(AddNode(NodeSpec(id="node-2", capacity=Resources({GPU: 1}), attributes={"zone": "b"})), 0)
    there.submit("fills", "root.b", where=wanting("zone", "b"))
    there.submit("late", "root.a", labels={"app": "x"}, where=where)
    assert there.changes("late")["constraints"] == f"runs if it were submitted without its {name}"


def test_a_node_that_it_would_not_have_to_run_on() -> None:
    """The named one is full."""
    there = lab({GPU: 1}, {GPU: 1}, rule="guarantee")
    there.submit("first", "root.a", tags={TAG_REQUIRED_NODE: "node-1"}, originator=True)
    there.submit("late", "root.a", tags={TAG_REQUIRED_NODE: "node-1"})
    assert there.changes("late")["any-node"] == "runs if it might run on other nodes than node-1"


@pytest.mark.parametrize("free", [1, 0])
def test_a_task_group_that_it_would_be_no_member_of(free: int) -> None:
    """Its gang is not whole: beside it there is room for this one alone, or there is none."""
    there = lab({GPU: 2})
    there.submit("busy", "root.a", amounts={GPU: 2 - free})
    gang = ApplicationSpec(id="gang", queue="root.a", placeholder_ask=Resources({GPU: 2}), gang_style="Hard")
    there.scheduler.handle(AddApplication(gang), 0)
    placeholder = AskSpec(application="gang", key="p0", resources=Resources({GPU: 2}), task_group="g", placeholder=True)
    late = replace(placeholder, key="late", resources=Resources({GPU: 1}), placeholder=False)
    there.scheduler.handle(AddAsks((placeholder, late)), 0)
    there.scheduler.schedule(0)
    name = ("default", "gang", "late")
    said = {change.dimension: change.sentence for change in ways(there.scheduler, name, fork=False).changes}
    assert said.get("no-gang") == ("runs if it were no member of task group g" if free else None)


def test_a_place_that_its_own_gang_would_give_up() -> None:
    """Of a gang of three two hold nodes: with a higher priority the third has none of theirs, only what is weaker."""
    there = lab({GPU: 1}, {GPU: 1}, {GPU: 1}, rule="priority")
    there.submit("busy", "root.a", priority=7)
    gang = ApplicationSpec(id="gang", queue="root.a", placeholder_ask=Resources({GPU: 3}), gang_style="Hard")
    there.scheduler.handle(AddApplication(gang), 0)
    one = AskSpec(application="gang", key="p0", resources=Resources({GPU: 1}), task_group="g", placeholder=True)
    there.scheduler.handle(AddAsks(tuple(replace(one, key=f"p{number}") for number in range(3))), 0)
    there.scheduler.schedule(0)
    said = [change.sentence for change in ways(there.scheduler, ("default", "gang", "p2"), fork=False).changes]
    priority = "runs if its priority were 8 (now 0; 7 is not enough); that would stop busy"
    assert [sentence for sentence in said if "priority" in sentence] == [priority]


def test_work_that_takes_the_place_of_a_placeholder_robs_no_gang() -> None:
    """What leaves makes room for both of a gang: each starts by itself, and the first gives way to its own work."""
    there = lab({GPU: 1}, {GPU: 1}, rule="priority")
    for number in range(2):
        there.submit(f"busy-{number}", "root.a")
    gang = ApplicationSpec(id="gang", queue="root.a", placeholder_ask=Resources({GPU: 2}), gang_style="Hard")
    there.scheduler.handle(AddApplication(gang), 0)
    work = AskSpec(application="gang", key="w0", resources=Resources({GPU: 1}), task_group="g", priority=5)
    asks = [replace(work, key=f"{'pw'[number // 2]}{number % 2}", placeholder=number < 2) for number in range(4)]
    there.scheduler.handle(AddAsks(tuple(asks)), 0)
    there.scheduler.schedule(0)
    assert len(leaving(there.scheduler)) == 2
    found = ways(there.scheduler, ("default", "gang", "p1"), fork=False)
    assert found.by_itself is not None
    assert found.by_itself.evicted == ()


# -- whom it has to let pass --------------------------------------------------------------------------------------


def turn(**properties: str) -> Lab:
    """`big` has its turn kept and waits for `long`, which ends after an hour; `late` would fit beside."""
    there = lab({GPU: 4}, **properties)
    there.submit("long", "root.a", amounts={GPU: 3}, time_limit_ms=3_600_000, priority=9)
    there.submit("big", "root.a", amounts={GPU: 4}, priority=5)
    there.scheduler.handle(ReserveAsk("big", "big", True, "ann", "a deadline"), 0)
    there.submit("late", "root.a")
    return there


def test_a_reservation_that_were_lifted_and_backfill_past_it() -> None:
    """Backfill alone does not help an ask without a time limit."""
    found = turn().changes("late")
    assert found["reservation"] == "runs if the reservation of big were lifted"
    assert found["priority"].startswith("runs if its priority were 5 (now 0; 4 is not enough)")
    assert "queue-property" not in found


def test_a_time_limit_that_lets_it_pass_a_kept_turn() -> None:
    """As long as it may be: a millisecond more would delay the other."""
    found = turn(backfill="easy").changes("late")
    assert found["time-limit"] == "runs if its time limit were 1h at most (now it has none)"


def test_a_turn_that_was_given_by_waiting_ends_with_the_bound() -> None:
    """Nobody can lift it for good: it would come back."""
    there = lab({GPU: 4}, **{"wait.max": "10s"})
    there.submit("long", "root.a", amounts={GPU: 3})
    there.submit("big", "root.a", amounts={GPU: 4})
    settle(there.scheduler, 10_000)
    there.submit("late", "root.a", now_ms=10_000)
    found = there.changes("late")
    assert found["queue-property"] == "runs if root.a had no wait.max"
    assert found["cancel"].startswith("runs if ")
    assert "reservation" not in found


# -- who may be stopped for it ------------------------------------------------------------------------------------


def test_a_class_that_never_preempts() -> None:
    """The class forbids it; its priority would be high enough."""
    file = replace(
        spec(leaf("a"), rule="priority"),
        priority_classes=(PriorityClassSpec(name="meek", value=9, preemption_policy="Never"),),
    )
    there = Lab(file, {GPU: 1})
    there.submit("low", "root.a")
    there.submit("late", "root.a", priority_class="meek")
    assert there.changes("late")["may-preempt"] == (
        "runs if others might be stopped for it (its priority class meek says Never); that would stop low"
    )


@pytest.mark.parametrize("gone", [False, True])
def test_work_whose_class_means_something_else_by_now_can_be_submitted_again(gone: bool) -> None:
    """Or whose class is gone."""
    there = lab({GPU: 2})
    there.scheduler.handle(SetPriorityClass(PriorityClassSpec(name="high", value=4)), 0)
    there.submit("late", "root.a", where=wanting("gpu", "a100"), priority_class="high")
    later = RemovePriorityClass("high") if gone else SetPriorityClass(PriorityClassSpec(name="high", value=6))
    there.scheduler.handle(later, 0)
    assert there.changes("late")["constraints"] == "runs if it were submitted without its node selector"


def test_work_that_is_spared_for_a_time() -> None:
    """When it has run for long enough it is stopped; a millisecond before it is not."""
    there = lab({GPU: 1}, **{"preemption.min.runtime": "60s"})
    there.submit("young", "root.a")
    there.submit("late", "root.a", priority=5)
    change = next(c for c in there.ways("late").changes if c.dimension == "time")
    assert change.sentence == (
        "runs if nothing happened for 1m (work that is spared now may be stopped then); that would stop young"
    )
    assert change.smallest
    assert change.parts[0].value == 60_000


def test_a_limit_of_every_user_is_said_of_each() -> None:
    """Not of a user called `*`; nor of all of them together."""
    limits = [{"limit": "all", "users": ["*"], "maxapplications": 1, "maxresources": {GPU: 4}}]
    there = Lab(spec(leaf("a", limits=limits)), {GPU: 8})
    there.submit("one", "root.a")
    there.submit("late", "root.a")
    said = "runs if each user (*) might run 2 applications in root.a (now 1)"
    assert there.changes("late")["limit-applications"] == said


def test_a_rest_that_were_over() -> None:
    """Its application rests because an ask of it fitted nowhere; the one behind that would."""
    rest = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "30s"}
    there = lab({GPU: 2}, {GPU: 2}, **rest)
    there.scheduler.handle(AddApplication(ApplicationSpec(id="many", queue="root.a", user="ann")), 0)
    sizes = (("large", 3), ("small", 1))
    asks = tuple(AskSpec(application="many", key=key, resources=Resources({GPU: size})) for key, size in sizes)
    there.scheduler.handle(AddAsks(asks), 0)
    there.scheduler.schedule(0)
    assert there.scheduler.why("many", "small") == BackedOff(30_000, 1)
    there.scheduler.handle(Release("many", "large"), 0)
    found = explain(there.scheduler, "many", "small", changes=Effort(), fork=False)
    assert "It runs if nothing happened for 30s (an application has rested long enough then)" in found.paragraph
    assert found.advice == ["Wait 30s: an application has rested long enough then; it starts then."]


def test_a_queue_that_is_guaranteed_more() -> None:
    """From the moment on at which others may be stopped for it again."""
    file = spec(
        leaf("a", resources={"guaranteed": {GPU: 1}}, properties={"preemption.delay": "1s"}),
        leaf("b"),
        rule="guarantee",
    )
    there = Lab(file, {GPU: 3})
    for key in ("x", "y", "z"):
        there.submit(key, "root.b")
    there.submit("one", "root.a")
    settle(there.scheduler, 2_000)
    there.submit("two", "root.a", now_ms=3_000)
    settle(there.scheduler, 5_000)
    assert there.changes("two")["guaranteed+time"] == (
        "runs if the guarantee of root.a were gpu 2 (now gpu 1) and nothing happened for 15s "
        "(others may be stopped then); that would stop y"
    )


def test_a_queue_that_is_guaranteed_more_comes_first_though_nothing_is_preempted() -> None:
    """Idle work gives its room back to whoever comes first."""
    file = spec(leaf("a"), leaf("b"), rule="both")
    part = replace(file.partitions[0], preemption=PreemptionSpec(rule="both", enabled=False))
    there = Lab(replace(file, partitions=(part,)), {GPU: 1})
    there.submit("idle", "root.b", idle=True)
    there.submit("first", "root.b", user="bob")
    there.submit("late", "root.a")
    assert there.changes("late")["guaranteed"] == "runs if the guarantee of root.a were gpu 1 (now gpu 0)"


def test_a_budget_never_keeps_anybody_waiting_and_is_named_where_a_change_goes_beyond_it() -> None:
    """Work is stopped against a budget where there is no other choice."""
    there = lab({GPU: 1})
    there.submit("web", "root.a", labels={"app": "x"})
    there.scheduler.handle(SetBudget(BudgetSpec(name="keep", selector=APP, min_available=1)), 0)
    there.submit("late", "root.a")
    assert there.changes("late")["priority"] == (
        "runs if its priority were 1 (now 0); that would stop web, against the disruption budget keep"
    )


def test_what_is_supposed_names_the_budget_that_it_goes_beyond() -> None:
    """It said whom it would stop, as if nothing spared that."""
    there = lab({GPU: 1})
    there.submit("web", "root.a", labels={"app": "x"})
    there.scheduler.handle(SetBudget(BudgetSpec(name="keep", selector=APP, min_available=1)), 0)
    ask = AskSpec(application="new", key="new", resources=Resources({GPU: 1}), priority=5)
    said = suppose(there.scheduler, submitted(ApplicationSpec(id="new", queue="root.a"), [ask]), fork=False)
    assert [(each.key, each.violates) for each in said.evicted.jobs] == [("web", ["keep"])]


def test_a_time_limit_with_which_it_is_over_before_a_window() -> None:
    """And that the window passes; the windows of others are not in its way."""
    there = lab({GPU: 1})
    there.scheduler.handle(SetWindow(WindowSpec(name="w", starts_ms=60_000, length_ms=5_000)), 0)
    there.submit("late", "root.a")
    found = there.changes("late")
    assert found["time-limit"] == "runs if its time limit were 1m at most (now it has none)"
    assert found["time"] == "runs if nothing happened for 1m 5s (a window begins or ends then)"


def test_what_is_too_large_for_a_drained_node_is_told_both() -> None:
    """Nothing was said, since neither helps alone."""
    there = lab({GPU: 2})
    there.scheduler.handle(DrainNode("node-1"), 0)
    there.submit("late", "root.a", amounts={GPU: 3})
    found = there.changes("late")
    assert found["smaller-request+drain"] == (
        "runs if it needed no more than gpu 2 (now gpu 3) and node node-1 were not drained"
    )


def test_of_several_windows_the_longest_time_limit_that_helps_is_named() -> None:
    """Where they name different nodes; that of the first one was tried alone, and nothing said, since more would do."""
    there = lab({GPU: 1}, {GPU: 1})
    for number, starts_ms in ((1, 10_000), (2, 60_000)):
        window = WindowSpec(name=f"w{number}", starts_ms=starts_ms, length_ms=5_000, nodes=(f"node-{number}",))
        there.scheduler.handle(SetWindow(window), 0)
    there.submit("late", "root.a")
    assert there.changes("late")["time-limit"] == "runs if its time limit were 1m at most (now it has none)"


def test_a_time_limit_counts_the_grace_of_what_would_be_stopped() -> None:
    """With 60 s it would be over before the window only if it started at once, but what runs takes 30 s to leave."""
    there = lab({GPU: 1})
    there.submit("runs", "root.b", time_limit_ms=10_000, grace_ms=30_000)
    there.scheduler.handle(SetWindow(WindowSpec(name="w", starts_ms=60_000, length_ms=5_000)), 0)
    there.submit("late", "root.a", priority=9, time_limit_ms=60_000)
    found = there.changes("late")["time-limit"]
    assert found == "runs if its time limit were 30s at most (now 1m); that would stop runs"


def test_in_a_window_that_comes_again_work_without_a_limit_is_told_which_would_do() -> None:
    """It was told that it never runs since a window is open, and that nothing would help."""
    there = lab({GPU: 1})
    there.scheduler.handle(SetWindow(WindowSpec(name="w", starts_ms=0, length_ms=5_000, every_ms=20_000)), 0)
    there.submit("late", "root.a")
    never = there.ways("late").never
    assert never is not None
    assert never.sentence() == "would run into window w: it has no time limit"
    assert there.changes("late") == {
        "time-limit+time": "runs if its time limit were 15s at most (now it has none) and nothing happened for 5s (a "
        "window begins or ends then)"
    }


def test_what_a_gang_leaves_behind_comes_back_by_itself() -> None:
    """It was said that "the state of an application changes then"."""
    lab = Lab(spec(leaf("a"), leaf("b")), {GPU: 2})
    s, one = lab.scheduler, {"application": "g", "resources": Resources({GPU: 1}), "task_group": "t"}
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({GPU: 2}))), 0)
    s.handle(AddAsks(tuple(AskSpec(key=key, placeholder=True, **one) for key in ("p0", "p1"))), 0)
    s.schedule(0)
    s.handle(AddAsks((AskSpec(key="real", **one),)), 0)
    s.schedule(0)
    s.handle(Release("g", "p0", Cause.PLACEHOLDER_REPLACED), 0)
    s.schedule(0)
    s.handle(Release("g", "real"), 0)
    lab.submit("late", "root.b", amounts={GPU: 2})
    said = "runs if nothing happened for 30s (what is kept for a gang that has ended is given back then)"
    assert lab.changes("late")["time"].startswith(said)


def test_a_time_is_named_once_with_what_happens_then() -> None:
    """A guarantee that needs time as well, and is not needed, was said as a time at which others may be stopped."""
    there = lab({GPU: 1}, rule="guarantee")
    there.scheduler.handle(SetWindow(WindowSpec(name="w", starts_ms=10_000, length_ms=5_000)), 0)
    there.submit("late", "root.b", time_limit_ms=12_000)
    times = [change.sentence for change in there.ways("late").changes if change.dimension == "time"]
    assert times == ["runs if nothing happened for 15s (a window begins or ends then)"]


def test_what_waits_for_the_end_of_a_long_window_is_not_told_that_it_never_runs() -> None:
    """Also where that is more than a day ahead."""
    there = lab({GPU: 1})
    there.scheduler.handle(SetWindow(WindowSpec(name="w", starts_ms=0, length_ms=60 * HOUR_MS)), 0)
    there.submit("late", "root.a")
    assert there.ways("late").never is None
    assert there.changes("late") == {"time": "runs if nothing happened for 2d 12h (a window begins or ends then)"}


def test_idle_work_that_were_not_idle() -> None:
    """Its group has no room left, its own queue has what it is guaranteed."""
    there = lab({GPU: 2})
    there.submit("other", "root.b", amounts={GPU: 2})
    there.submit("late", "root.a", idle=True, priority=3)
    assert there.changes("late")["not-idle"] == "runs if it were not idle; that would stop other"


# -- what is not in line, and what was stopped --------------------------------------------------------------------


def test_an_attempt_that_is_held_back_has_a_verdict_and_a_time() -> None:
    """It is in no line before its back-off is over."""
    there = lab({GPU: 1})
    there.submit("work", "root.a", retry=RetrySpec(limit=2, backoff_ms=30_000))
    there.scheduler.handle(Release("work", "work", Cause.FINISHED, exit_code=1), 1_000)
    found = explain(there.scheduler, "work", "work#2", changes=Effort(), fork=False)
    assert (found.state, found.reason.code if found.reason else "") == ("waiting", "attempt-held-back")
    assert "It runs if nothing happened for 30s (what is held until then enters the line)." in found.paragraph
    assert found.needed == {GPU: 1}


def test_who_was_told_to_stop_is_told_by_which_rule_and_for_whom() -> None:
    """In words and as values; and still after a restart."""
    there = lab({GPU: 1})
    there.submit("low", "root.a")
    there.submit("high", "root.a", priority=5)
    for scheduler in (there.scheduler, type(there.scheduler).load(there.scheduler.dump())):
        found = explain(scheduler, "low", "low")
        assert found.sentence == "was told to stop on node-1 to make room for high (that one has a higher priority)"
        assert found.stopped == Stopped("PREEMPTED_BY_SCHEDULER", "priority", "high")
    hidden = explain(there.scheduler, "low", "low", sees=lambda app: app == "low")
    assert "to make room for somebody else's work (that one has a higher priority)" in hidden.sentence


def test_who_was_told_to_stop_by_somebody_else_has_no_rule() -> None:
    """As after a restart on a cluster."""
    there = lab({GPU: 1})
    there.submit("low", "root.a")
    there.scheduler.handle(Leaving("low", "low"), 0)
    assert explain(there.scheduler, "low", "low").sentence == "was told to stop on node-1 (STOPPED_BY_RM)"


def test_an_application_that_was_refused_says_why() -> None:
    """It has no queue, and no asks."""
    there = lab({GPU: 1})
    there.submit("lost", "root.nowhere")
    found = explain(there.scheduler, "lost", "lost")
    assert found.state == "refused"
    assert found.paragraph.startswith("lost was refused: ")


# -- quotas by class ----------------------------------------------------------------------------------------------


def quota(name: str, queue: str, most: int) -> SetQuota:
    scopes = (Requirement("PriorityClass", "In", ("batch",)),)
    return SetQuota(QuotaSpec(name=name, queue=queue, resources=Limits({GPU: most}), scopes=scopes), "ann")


def test_the_quotas_that_would_take_in_what_is_refused() -> None:
    """All that are in the way, each just wide enough for everything that is submitted; tried by submitting it."""
    file = replace(spec(leaf("a")), priority_classes=(PriorityClassSpec(name="batch", value=1),))
    there = Lab(file, {GPU: 1})
    for order in (quota("all", "root", 4), quota("mine", "root.a", 2)):
        there.scheduler.handle(order, 0)
    there.submit("one", "root.a", priority_class="batch", amounts={GPU: 2})
    app = ApplicationSpec(id="new", queue="root.a", user="ann")
    asks = [
        AskSpec(application="new", key=key, resources=Resources({GPU: 2}), priority_class="batch")
        for key in ("two", "three")
    ]
    said = suppose(there.scheduler, submitted(app, asks), fork=False)
    assert said.admitted is not None
    assert said.admitted.sentence == (
        "taken in if quota mine of root.a were gpu 6 (now gpu 2) and quota all of root were gpu 6 (now gpu 4)"
    )
    assert said.admitted.parts[0].value == 6
    for most, refused in ((5, 1), (6, 0)):
        trial = type(there.scheduler).load(there.scheduler.dump())
        events: list[Any] = [quota("all", "root", 6), quota("mine", "root.a", most), *submitted(app, asks).events]
        decided = [each for event in events for each in trial.handle(event, 0)]
        assert sum(isinstance(each, AskRejected) for each in decided) == refused


def test_a_refusal_that_no_quota_would_help_has_no_such_change() -> None:
    """The class is unknown."""
    there = lab({GPU: 1})
    app = ApplicationSpec(id="new", queue="root.a", user="ann")
    ask = AskSpec(application="new", key="new", resources=Resources({GPU: 1}), priority_class="nobody")
    said = suppose(there.scheduler, submitted(app, [ask]), fork=False)
    assert said.refused
    assert said.admitted is None


def test_where_a_quota_is_full_work_can_still_be_submitted_again() -> None:
    """What it asked for itself is free then."""
    there = lab({GPU: 2})
    there.scheduler.handle(SetQuota(QuotaSpec(name="all", queue="root", resources=Limits({GPU: 2}))), 0)
    there.submit("late", "root.a", amounts={GPU: 2}, where=wanting("gpu", "a100"))
    assert there.changes("late")["constraints"] == "runs if it were submitted without its node selector"


def test_quotas_that_would_take_it_in_where_no_partition_is_the_default_one() -> None:
    file = spec(leaf("a"))
    there = Lab(replace(file, partitions=(replace(file.partitions[0], name="gpu"),)))
    there.scheduler.handle(SetQuota(QuotaSpec(name="all", queue="root", resources=Limits({GPU: 1}))), 0)
    asks = [AskSpec(application="new", key="new", resources=Resources({GPU: 2}))]
    supposed = submitted(ApplicationSpec(id="new", queue="root.a", partition="gpu"), asks)
    found = suppose(there.scheduler, supposed, fork=False)
    assert found.admitted is not None
    assert found.admitted.sentence == "taken in if quota all of root were gpu 2 (now gpu 1)"
