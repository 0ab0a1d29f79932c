"""What would start work that is not in line yet."""

from __future__ import annotations

import pytest
from unit.insight.test_explain import GPU, Lab, leaf, spec

from fairlead.core.model.conditions import Awaited, Conditions, Dependency
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release, SetConditions, SetPriority, SetQuota
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QuotaSpec, RetrySpec
from fairlead.insight.explain import explain
from fairlead.insight.search import Effort

DAY_MS = 86_400_000
LOST = Dependency(application="gone", awaited=Awaited.OK, never="failed")


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (Conditions(held_by="ann"), "it were released"),
        (Conditions(begin_ms=3 * DAY_MS), "it were to begin now"),
        (Conditions(after=(Dependency(application="x"),)), "it waited for no other work"),
        (Conditions(after=(LOST,)), "it waited for no other work"),
        (Conditions(held_by="ann", begin_ms=3 * DAY_MS), "it were released and it were to begin now"),
    ],
)
def test_a_condition_that_were_gone(conditions: Conditions, said: str) -> None:
    """All that are in the way, and none that is not."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("late", "root.a", conditions=conditions)
    assert lab.changes("late") == {"condition": f"runs if {said}"}


def test_what_is_not_in_line_has_no_place_in_it() -> None:
    """However many wait in its queue."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    for key in ("runs", "first", "second"):
        lab.submit(key, "root.a")
    lab.submit("late", "root.a", conditions=Conditions(held_by="ann"))
    verdict = explain(lab.scheduler, "late", "late")
    assert (verdict.position, verdict.waiting_in_queue) == (0, 2)
    assert not [each for each in verdict.details if "number" in each]


@pytest.mark.parametrize(("who", "by"), [("ann", "You can release it"), ("root", "An administrator of the queue can")])
def test_what_others_have_put_on_hold_its_owner_does_not_release(who: str, by: str) -> None:
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("late", "root.a", conditions=Conditions(held_by=who))
    assert explain(lab.scheduler, "late", "late", changes=Effort(), fork=False).advice[0].startswith(by)


def array(lab: Lab, **more: object) -> None:
    """Five parts, of which one may be at a time."""
    lab.scheduler.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", user="ann", at_once=1)), 0)
    one = Resources({GPU: 1})
    parts = (AskSpec(application="x", key=f"x.{number}", resources=one, **more) for number in range(5))  # type: ignore[arg-type]
    lab.scheduler.handle(AddAsks(tuple(parts)), 0)
    lab.scheduler.schedule(0)


def test_so_many_parts_at_once_that_it_is_among_them() -> None:
    lab = Lab(spec(leaf("a")), {GPU: 8})
    array(lab)
    found = explain(lab.scheduler, "x", "x.3", changes=Effort(), fork=False)
    assert found.advice == ["You can let x have 4 parts at once (now 1); it starts then."]


def test_where_it_has_no_room_in_line_what_would_start_it_there_is_found_too() -> None:
    lab = Lab(spec(leaf("a")), {GPU: 1})
    array(lab)
    found = explain(lab.scheduler, "x", "x.3", changes=Effort(), fork=False)
    assert found.advice[0] == "Wait: it starts when enough of what runs and comes before it has ended."
    assert found.advice[1].endswith(
        "an administrator can let x have 4 parts at once (now 1) and add 3 more nodes like node-1."
    )
    assert found.changes_complete


@pytest.mark.parametrize(("who", "by"), [("ann", "You"), ("root", "An administrator of the queue")])
def test_what_is_released_where_there_is_no_room_waits_for_it(who: str, by: str) -> None:
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("first", "root.a", user="bob")
    lab.scheduler.schedule(0)
    lab.submit("late", "root.a", conditions=Conditions(held_by=who))
    found = explain(lab.scheduler, "late", "late", changes=Effort(), fork=False)
    assert found.advice == [
        f"{by} can release it; it starts when enough of what runs and comes before it has ended.",
        "Sooner: an administrator can release it and add one more node like node-1.",
    ]


def test_what_waits_for_other_work_comes_by_itself() -> None:
    """Unless that can never end as it should."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("first", "root.a")
    for name, after in (("next", Dependency(application="first")), ("lost", LOST)):
        lab.submit(name, "root.a", conditions=Conditions(after=(after,)))
    said = [explain(lab.scheduler, name, name, changes=Effort(), fork=False).advice[0] for name in ("next", "lost")]
    assert said[0].startswith("Wait: it starts when enough")
    assert said[1].startswith("You can let it wait for no other work; it starts when enough")


def test_the_turn_of_a_part_that_is_on_hold_comes_by_itself_once_it_is_released() -> None:
    """That more of its array may be at once is asked of nobody."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    array(lab)
    lab.scheduler.handle(SetConditions("x", "x.3", Conditions(held_by="ann", begin_ms=DAY_MS)), 0)
    found = explain(lab.scheduler, "x", "x.3", changes=Effort(), fork=False)
    assert found.advice[0] == "You can release it; it starts when enough of what runs and comes before it has ended."


def test_of_what_a_quota_keeps_out_of_line_not_everything_is_tried() -> None:
    lab = Lab(spec(leaf("a")), {GPU: 4})
    lab.scheduler.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({GPU: 1}))), 0)
    lab.submit("late", "root.a", conditions=Conditions(held_by="ann"))
    lab.submit("first", "root.a")
    found = explain(lab.scheduler, "late", "late", changes=Effort(), fork=False)
    assert (found.changes, found.changes_complete) == ([], False)
    short = f"it needs {GPU} 1; quota q of queue root.a has {GPU} 1 in use of {GPU} 1"
    assert found.details[0] == f"If it came into line now it would be refused: {short}."
    lab.scheduler.handle(Release("first", "first"), 0)
    assert explain(lab.scheduler, "late", "late").refusal is None


def test_so_many_parts_at_once_that_a_quota_refuses_them_are_no_way() -> None:
    """It ends, and says that not everything was tried."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.scheduler.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({GPU: 2}))), 0)
    lab.submit("first", "root.a")
    array(lab)
    found = explain(lab.scheduler, "x", "x.3", changes=Effort(), fork=False)
    assert (found.changes, found.changes_complete) == ([], False)


def test_what_is_released_first_takes_its_turn_before_those_that_wait_for_theirs() -> None:
    """Of what is said together the first is done first: else one more at once would be the turn of another part."""
    lab = Lab(spec(leaf("a")), {GPU: 8})
    array(lab)
    lab.scheduler.handle(SetConditions("x", "x.1", Conditions(held_by="ann")), 0)
    lab.scheduler.handle(SetPriority("x", "x.1", 5), 0)
    found = explain(lab.scheduler, "x", "x.1", changes=Effort(), fork=False)
    assert found.advice == ["You can release it and let x have 2 parts at once (now 1); it starts then."]


def test_what_is_held_and_larger_than_every_node_can_never_run() -> None:
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("late", "root.a", amounts={GPU: 2}, conditions=Conditions(held_by="ann"))
    found = explain(lab.scheduler, "late", "late", changes=Effort(), fork=False)
    assert found.never is not None
    assert found.advice[1] == "You can release it and ask for gpu 1 at most (now gpu 2); it starts then."


def test_a_back_off_is_nothing_that_one_takes_away() -> None:
    """It is over by itself."""
    lab = Lab(spec(leaf("a")), {GPU: 1})
    lab.submit("late", "root.a", retry=RetrySpec(limit=1, backoff_ms=60_000))
    lab.scheduler.handle(Release("late", "late", Cause.FINISHED, exit_code=1), 1_000)
    found = explain(lab.scheduler, "late", "late#2", changes=Effort(), fork=False)
    assert [change.dimension for change in found.changes or ()] == ["time"]
