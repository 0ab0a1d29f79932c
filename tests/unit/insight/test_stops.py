"""Stops: the sentence on why nothing is stopped for what waits."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.events import SetPriorityClass
from fairlead.core.model.specs import PriorityClassSpec, QueueSpec
from fairlead.insight.explain import explain
from fairlead.wire.verdicts import Stops, Verdict


def told(c: PriorityCluster, key: str = "urgent") -> Verdict:
    c.run()
    return explain(c.s, key, key, fork=False)


def test_all_of_it_has_the_same_priority() -> None:
    c = PriorityCluster()
    for i in range(4):
        c.fill(f"same{i}", 1, 9)
    c.submit("late", 1, 9)
    verdict = told(c, "late")
    assert verdict.stops == Stops(
        because="",
        queue="",
        running=4,
        spared={"priority": 4},
        until_ms=None,
        sentence="Nothing is stopped for it: all 4 that run have the same or a higher priority.",
    )
    assert verdict.stops.sentence in verdict.details
    assert verdict.stops.sentence in verdict.paragraph


def test_some_of_it_may_go_and_some_is_spared_for_a_time() -> None:
    c = PriorityCluster(QueueSpec(name="a"), QueueSpec(name="b", properties={"preemption.min.runtime": "10m"}))
    c.fill("high", 2, 20)
    c.fill("low", 1, 1)
    c.fill("young", 1, 1, "root.b")
    c.node("small", 1)
    c.submit("urgent", 2, 9)
    verdict = told(c)
    assert verdict.stops is not None
    assert verdict.stops.sentence == (
        "Nothing is stopped for it: of 3 that run on nodes that it could use, 1 has the same or a higher priority, "
        "1 is not yet past its minimum run time and 1 could be stopped, but that makes no room for it; for some of it "
        "that is over in 9m 59s."
    )


def test_in_a_full_queue() -> None:
    c = PriorityCluster(QueueSpec(name="a", max=cores(1)))
    c.fill("high", 1, 20)
    c.submit("urgent", 1, 9)
    assert "the only one that runs in root.a has the same or a higher priority." in told(c).paragraph


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"allow_preempt_other": False}, "it was submitted as work that stops nothing"),
        ({"allow_preempt_other": False, "priority_class": "meek"}, "its priority class meek says Never"),
        ({"idle": True}, "it is idle work, which takes what is left over"),
    ],
    ids=["itself", "class", "idle"],
)
def test_what_keeps_the_ask_itself_from_it(more: dict[str, object], sentence: str) -> None:
    c = PriorityCluster()
    c.handle(SetPriorityClass(PriorityClassSpec(name="meek", value=9, preemption_policy="Never")))
    c.fill("low", 4)
    c.submit("urgent", 1, 9, **more)
    assert sentence in told(c).paragraph


def test_its_class_is_not_named_where_it_does_not_say_never() -> None:
    """The class was given another rule since, or is the default one; the job keeps what it was submitted with."""
    c = PriorityCluster()
    c.handle(SetPriorityClass(PriorityClassSpec(name="usual", value=9, preemption_policy="Never")))
    c.fill("low", 4)
    c.submit("urgent", 1, 9, priority_class="usual")
    c.handle(SetPriorityClass(PriorityClassSpec(name="usual", value=9)))
    assert "it was submitted as work that stops nothing" in told(c).paragraph
    changes = told(c).changes
    assert "priority class" not in str(changes), changes


def test_by_guarantee_a_higher_priority_alone_spares_and_the_delay_is_told() -> None:
    queues = QueueSpec(name="a", guaranteed=cores(2)), QueueSpec(name="b")
    c = PriorityCluster(*queues, rule="guarantee")
    c.fill("low", 4, 20, "root.b")
    c.submit("urgent", 1, 9)
    assert "it may have work stopped in 29s, once it has waited for the preemption.delay" in told(c).paragraph
    c.run(30_000)
    assert "the only one that runs has a higher priority." in told(c).paragraph


def test_nothing_of_it_is_said_of_what_waits_for_no_room_or_starts_by_itself() -> None:
    c = PriorityCluster(QueueSpec(name="a", max_applications=1))
    c.fill("low", 4)
    c.submit("urgent", 1, 9)
    assert told(c).stops is None
    c = PriorityCluster()
    c.fill("low", 4)
    c.submit("urgent", 1, 9)
    assert explain(c.s, "urgent", "urgent", fork=False).stops is None, "its turn has not come yet"


def test_by_guarantee_it_is_said_when_what_changed_since_is_looked_at() -> None:
    """Another job ended since: with what is left there is room, once it is tried again."""
    queues = QueueSpec(name="a", guaranteed=cores(2), properties={"preemption.delay": "1s"}), QueueSpec(name="b")
    c = PriorityCluster(*queues, rule="guarantee", nodes={"n0": 2, "n1": 1})
    c.fill("fixed", 1, 20, "root.b")
    c.fill("elsewhere", 1, 1, "root.b")
    c.fill("low", 1, 1, "root.b")
    c.submit("urgent", 2, 9)
    c.run(1_000)
    c.finished("fixed")
    verdict = told(c)
    assert verdict.stops is not None
    assert verdict.stops.sentence == (
        "Nothing is stopped for it: the only one that runs on nodes that it could use could be stopped, "
        "but that made no room for it when it was tried last; that is tried again in 14s."
    )
    assert verdict.stops.until_ms is not None
    assert c.run(verdict.stops.until_ms - c.now_ms) == ([], ["low"])
