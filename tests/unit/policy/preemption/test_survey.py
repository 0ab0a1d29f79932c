"""What attempts to make room by guarantee share: listed once for each state of the books, and the same as anew."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores, on
from properties.rank_courses import decided_in

from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Evict
from fairlead.core.model.specs import QueueSpec
from fairlead.policy.place import allocate
from fairlead.policy.preemption import survey
from fairlead.policy.preemption.survey import Survey

DELAY_MS = 30_000
OWED = QueueSpec(name="a", guaranteed=cores(4))
OTHER = QueueSpec(name="b", guaranteed=cores(1))


def partition(c: PriorityCluster) -> Partition:
    return c.s.cluster.partitions["default"]


def keys(asks: list[Ask]) -> list[str]:
    return [ask.key for ask in asks]


def test_of_a_leaf_that_is_listed_which_is_low_enough_and_may_be_told_to_stop() -> None:
    c = PriorityCluster(OWED, OTHER, nodes={"n1": 8, "n2": 4}, rule="guarantee")
    c.fill("low", 1, 0, "root.b")
    c.fill("high", 1, 5, "root.b")
    c.fill("idle", 1, 0, "root.b", idle=True)
    c.fill("bound", 1, 0, "root.b", tags=on("n2"))
    c.submit("waits", 9, 0, "root.b")
    found = Survey(partition(c))
    b = partition(c).applications["low"].queue
    assert keys(found.stoppable(b, 1)) == ["low"]
    assert keys(found.stoppable(b, 6)) == ["low", "high"]


def test_that_is_to_come_for_which_work_was_told_to_stop() -> None:
    c = PriorityCluster(OWED, OTHER, nodes={"n1": 4}, rule="guarantee")
    c.fill("one", 2, 0, "root.b")
    c.fill("two", 2, 0, "root.b")
    c.submit("owed", 2)
    assert Survey(partition(c)).to_come == []
    assert c.run(DELAY_MS)[1] == ["two"]
    found = Survey(partition(c))
    assert keys(found.to_come) == ["owed"]
    assert keys(found.stoppable(partition(c).applications["one"].queue, 1)) == ["one"]


def crowded(asks: int) -> PriorityCluster:
    """So many asks of as many applications, and all that runs elsewhere is one work larger than what they are owed."""
    c = PriorityCluster(QueueSpec(name="a", guaranteed=cores(2)), OTHER, nodes={"n1": 4}, rule="guarantee")
    c.fill("other", 4, 0, "root.b")
    for i in range(asks):
        c.submit(f"w{i}", 1, 0)
    c.run()
    return c


@pytest.mark.plain
def test_attempts_of_one_state_look_once_at_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    c = crowded(40)
    looks: list[Ask] = []
    may_be_told = survey.may_be_told
    monkeypatch.setattr(survey, "may_be_told", lambda ask: looks.append(ask) is None and may_be_told(ask))
    least = Survey(partition(c)).stoppable(partition(c).applications["other"].queue, 10)
    assert (keys(least), len(looks)) == (["other"], 1)
    looks.clear()
    assert c.run(DELAY_MS) == ([], [])
    assert all(
        ask.preempt_checked_ms == c.now_ms
        for app in partition(c).applications.values()
        for ask in app.asks.values()
        if ask.pending
    )
    assert keys(looks) == ["other"]


@pytest.mark.plain
def test_those_that_may_try_are_put_in_order_once_for_each_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    c = crowded(40)
    keyed: list[Batch] = []
    batch_key = allocate.batch_key

    def counted(batch: Batch) -> tuple[object, ...]:
        keyed.append(batch)
        return batch_key(batch)

    monkeypatch.setattr(allocate, "batch_key", counted)
    assert c.run(DELAY_MS) == ([], [])
    assert len(keyed) <= 40 + 30 + 20 + 10


@pytest.mark.plain
def test_a_new_survey_for_each_attempt_decides_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = (26, 175, 424)
    shared = [decided_in("guarantee", number) for number in numbers]
    assert sum(isinstance(d, Evict) and d.rule == "guarantee" for decided in shared for d in decided) > 9
    made: list[Survey] = []
    init = Survey.__init__

    def never_again(self: Survey, part: Partition) -> None:
        init(self, part)
        self.version = -1
        made.append(self)

    monkeypatch.setattr(Survey, "__init__", never_again)
    assert [decided_in("guarantee", number) for number in numbers] == shared
    assert made
