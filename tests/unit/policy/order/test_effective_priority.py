"""What stands above what, once queues have had their say: offsets, fences and guarantees."""

from __future__ import annotations

import pytest
from loose_books import application, ask, node, tree
from priority_clusters import PriorityCluster

from fairlead.core.books.asks import Ask
from fairlead.core.books.nominations import Nomination
from fairlead.core.books.queues import Queue
from fairlead.policy.order.effective_priority import (
    EVERYBODY,
    NOBODY,
    NOT_OWED,
    below,
    is_owed,
    is_stronger,
    owed_by,
    path_of,
    rank,
    search_root,
    standing_by_queue,
    weaker_than,
)
from fairlead.scheduler import Scheduler

ONE, TWO = (("vcore", 1),), (("vcore", 2),)


def queues(**properties: dict[str, str]) -> dict[str, Queue]:
    """`root.p.a`, `root.p.b` and `root.q.c`, by their last names, with these properties; guarantees count."""
    by_path = tree("root.p.a", "root.p.b", "root.q.c")
    made = {queue.name: queue for queue in by_path.values()}
    for name, raw in properties.items():
        made[name].set_properties(raw)
    for queue in made.values():
        queue.by_rank = True
    made["root"].owes = True
    return made


def waiting(leaf: Queue, priority: int = 0, vcore: int = 1) -> Ask:
    """An ask of an application of its own."""
    return ask(application(leaf, f"app{priority}{vcore}"), "k", {"vcore": vcore}, priority=priority)


def stands_above(left: Ask, right: Ask) -> bool:
    """By priority alone."""
    return right.priority < below(standing_by_queue(left.app.queue, left.priority), right.app.queue)


def test_in_one_leaf_priorities_are_compared_as_they_are() -> None:
    q = queues(a={"priority.offset": "5"})
    assert stands_above(waiting(q["a"], 2), waiting(q["a"], 1))
    assert not stands_above(waiting(q["a"], 1), waiting(q["a"], 1))


def test_offsets_count_up_to_where_the_queues_meet() -> None:
    """That of a common parent counts for both."""
    q = queues(a={"priority.offset": "5"}, p={"priority.offset": "100"})
    assert stands_above(waiting(q["a"], 0), waiting(q["b"], 4))
    assert not stands_above(waiting(q["a"], 0), waiting(q["b"], 5))
    assert stands_above(waiting(q["a"], 0), waiting(q["c"], 104))


def test_a_fence_hides_what_is_inside() -> None:
    """All inside stand as high as its offset."""
    q = queues(a={"priority.policy": "fence", "priority.offset": "3"})
    assert not stands_above(waiting(q["a"], 99), waiting(q["b"], 3))
    assert stands_above(waiting(q["b"], 4), waiting(q["a"], 99))
    assert stands_above(waiting(q["a"], 2), waiting(q["a"], 1)), "inside it counts"


def test_behind_a_fence_all_or_nothing_stands_below() -> None:
    q = queues(c={"priority.policy": "fence", "priority.offset": "3"})
    assert below(standing_by_queue(q["a"], 4), q["c"]) == EVERYBODY
    assert below(standing_by_queue(q["a"], 3), q["c"]) == NOBODY


def test_work_is_ranked_as_seen_at_the_root_then_by_its_own_priority() -> None:
    q = queues(a={"priority.offset": "5"}, b={"priority.policy": "fence", "priority.offset": "7"})
    assert rank(q["a"], 2) == (7, 2)
    assert rank(q["b"], 99) == (7, 99)


def test_a_fence_of_preemption_is_where_the_search_ends() -> None:
    q = queues(p={"preemption.policy": "fence"})
    assert search_root(q["a"]) is q["p"]
    assert search_root(q["c"]) is q["root"]


@pytest.mark.parametrize(("used", "owed"), [(0, True), (1, True), (2, False)])
def test_an_ask_is_owed_what_a_guarantee_has_room_for_as_a_whole(used: int, owed: bool) -> None:
    q = queues()
    q["a"].guaranteed = {"vcore": 2}
    q["a"].add_allocated((("vcore", used),))
    assert is_owed(q["a"], ONE) is owed


def test_what_was_told_to_stop_counts_as_gone() -> None:
    q = queues()
    q["a"].guaranteed = {"vcore": 1}
    q["a"].add_allocated(ONE)
    assert not is_owed(q["a"], ONE)
    q["a"].add_part(ONE, 1, is_leaving=True)
    assert is_owed(q["a"], ONE)


def test_every_guarantee_on_the_way_must_have_room() -> None:
    """And some must be of what is asked for."""
    q = queues()
    q["p"].guaranteed, q["a"].guaranteed = {"vcore": 1}, {"vcore": 2, "memory": 5}
    assert is_owed(q["a"], ONE)
    assert not is_owed(q["a"], TWO)
    assert not is_owed(q["a"], (("gpu", 1),))


def test_nothing_is_owed_where_guarantees_do_not_count() -> None:
    """By rule `priority`."""
    q = queues()
    q["root"].owes, q["a"].guaranteed = False, {"vcore": 9}
    assert owed_by(q["a"], ONE) == NOT_OWED


def test_the_nearer_guarantee_is_the_stronger_claim() -> None:
    """In a guaranteed queue, what a child is guaranteed comes before what another takes of the rest."""
    q = queues()
    q["p"].guaranteed, q["a"].guaranteed = {"vcore": 4}, {"vcore": 1}
    own, shared = waiting(q["a"], 1), waiting(q["b"], 9)
    assert (owed_by(q["a"], ONE), owed_by(q["b"], ONE), owed_by(q["c"], ONE)) == (0, 1, NOT_OWED)
    assert is_stronger(own, shared)
    assert not is_stronger(shared, own)


def test_an_ask_that_is_owed_is_stronger_than_any_that_is_not() -> None:
    q = queues()
    q["a"].guaranteed = {"vcore": 1}
    assert is_stronger(waiting(q["a"], -5), waiting(q["c"], 99))
    assert is_stronger(waiting(q["c"], 99), waiting(q["a"], 0, vcore=2)), "beyond it only the priority counts"


def test_of_nominees_those_are_weaker_that_it_is_stronger_than_one_by_one() -> None:
    """Of one queue and priority the small one is within the guarantee, and the large one is not."""
    q = queues()
    q["a"].guaranteed = {"vcore": 1}
    nominees = [
        waiting(q["a"], 0),
        waiting(q["a"], 0, vcore=2),
        waiting(q["b"], 9),
        waiting(q["b"], 3),
        waiting(q["b"], 3),
    ]
    part = Scheduler().cluster.partitions["default"]
    for each in nominees:
        part.nominations.of[each] = Nomination(each, node("n"), (), gathers=False)
    preemptor = waiting(q["c"], 5)
    assert weaker_than(part, preemptor) == [nominees[1], *nominees[3:]]
    assert weaker_than(part, nominees[3]) == [nominees[1]]


def test_nothing_is_stronger_than_itself_and_of_two_at_most_one_is() -> None:
    q = queues(a={"priority.offset": "2"}, b={"priority.policy": "fence"})
    q["p"].guaranteed, q["c"].guaranteed = {"vcore": 2}, {"vcore": 1}
    asks = [waiting(q[leaf], priority, size) for leaf in "abc" for priority in (0, 3) for size in (1, 2, 3)]
    for one in asks:
        for other in asks:
            assert not (is_stronger(one, other) and is_stronger(other, one)), (one, other)


def test_the_stronger_one_comes_earlier_in_order() -> None:
    """Whoever may take room from another also has its turn before it."""
    q = queues(a={"priority.offset": "2"})
    q["a"].guaranteed = {"vcore": 1}
    asks = [waiting(q[leaf], priority, size) for leaf in "abc" for priority in (0, 3, 4) for size in (1, 2)]
    for one in asks:
        for other in asks:
            if is_stronger(one, other):
                assert path_of(one) < path_of(other), (one, other)


def test_a_nominated_ask_has_the_same_place_after_a_restart() -> None:
    """The key of its application was kept while it was in line; nothing of it is any more."""
    c = PriorityCluster()
    c.fill("low", 4)
    c.submit("urgent", 4, 9)
    assert c.run() == ([], ["low"])
    again = Scheduler.load(c.s.dump())
    [ask], [read] = (list(s.cluster.partitions["default"].nominations) for s in (c.s, again))
    assert not ask.app.batches
    assert path_of(ask) == path_of(read)
