"""What is remembered of work that was stopped for other work: pairs, nodes in vain, evictions by the hour."""

from __future__ import annotations

import pytest
from loose_books import application, ask, node, tree

from fairlead.core.books import eviction_history
from fairlead.core.books.asks import Ask
from fairlead.core.books.eviction_history import FRUITLESS_MAX, HOUR_MS, Disruption
from fairlead.core.books.queues import Queue


def two(**properties: str) -> tuple[Ask, Ask]:
    """What preempts, and what is stopped, in a queue with these properties."""
    queues = tree("root.a", "root.b")
    queues["root.b"].set_properties({name.replace("_", "."): value for name, value in properties.items()})
    return ask(application(queues["root.a"], "high"), "h"), ask(application(queues["root.b"], "low"), "l")


def test_a_pair_is_remembered_until_something_new_comes() -> None:
    memory, (high, low) = Disruption(), two()
    assert not memory.was_stopped_for(high, low)
    memory.note(high, low, 0)
    assert memory.was_stopped_for(high, low)
    assert not memory.was_stopped_for(low, high)
    memory.news += 1
    assert not memory.was_stopped_for(high, low)


def test_all_attempts_are_one_piece_of_work() -> None:
    """What comes back after it was stopped is the same victim."""
    memory, (high, low) = Disruption(), two()
    memory.note(high, low, 0)
    again = ask(low.app, "l#2", attempt=2, first_key="l")
    assert memory.was_stopped_for(high, again)


def test_a_loop_is_reported_once() -> None:
    memory, (high, low) = Disruption(), two()
    memory.note(high, low, 0)
    assert memory.report_pair(high, low)
    assert not memory.report_pair(high, low)


def test_what_was_stopped_in_vain_so_often_bars_the_node_for_an_hour() -> None:
    memory, (high, _), there = Disruption(), two(), node("n1", vcore=1)
    told = [memory.note_fruitless(high, there, at) for at in range(FRUITLESS_MAX)]
    assert told == [False] * (FRUITLESS_MAX - 1) + [True]
    until_ms = FRUITLESS_MAX - 1 + HOUR_MS
    assert memory.barred_until(high, there, 5) == until_ms
    assert memory.barred_until(high, node("n2", vcore=1), 5) is None
    assert memory.barred_until(high, there, until_ms) is None


def test_another_capacity_lifts_the_bar() -> None:
    """It may come out differently now; new work alone changes nothing."""
    memory, (high, _), there = Disruption(), two(), node("n1", vcore=1)
    for _ in range(FRUITLESS_MAX):
        memory.note_fruitless(high, there, 0)
    memory.news += 1
    assert memory.barred_until(high, there, 1) is not None
    memory.capacity_changed()
    assert memory.barred_until(high, there, 1) is None
    assert not memory.note_fruitless(high, there, 1), "it is counted from one again"


def test_what_has_a_history_is_not_like_its_equals() -> None:
    memory, (high, low) = Disruption(), two()
    assert not memory.has_history(high)
    memory.note(high, low, 0)
    assert memory.has_history(high)
    assert not memory.has_history(low)


def left_in(memory: Disruption, queue: Queue, now_ms: int) -> tuple[int, int | None]:
    """How many may go now, and when there is one more."""
    return memory.evictions_left(queue, now_ms)


def test_a_queue_loses_so_many_an_hour() -> None:
    """Each counts for an hour from its own time."""
    memory, (high, low) = Disruption(), two(preemption_evictions_max="2")
    queue = low.app.queue
    assert left_in(memory, queue, 0) == (2, None)
    memory.note(high, low, 100)
    memory.note(high, low, 200)
    assert left_in(memory, queue, 300) == (0, 100 + HOUR_MS)
    assert left_in(memory, queue, 100 + HOUR_MS) == (1, 200 + HOUR_MS)
    assert left_in(memory, queue, 200 + HOUR_MS)[0] == 2


@pytest.mark.plain
def test_pairs_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that count no more go first, then the oldest."""
    monkeypatch.setattr(eviction_history, "REMEMBERED_MAX", 2)
    memory, (_, low) = Disruption(), two()
    app = application(tree("root.c")["root.c"], "many")
    for at in range(5):
        memory.note(ask(app, f"k{at}"), low, 0)
    assert len(memory.dump()["pairs"]) == 2
    assert memory.dump()["pairs"][-1][0] == "many/k4"


@pytest.mark.plain
def test_what_was_in_vain_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was so the longest ago goes first."""
    monkeypatch.setattr(eviction_history, "REMEMBERED_MAX", 2)
    memory, app, there = Disruption(), application(tree("root.c")["root.c"], "many"), node("n1", vcore=1)
    for key in ("k0", "k1", "k0", "k2"):
        memory.note_fruitless(ask(app, key), there, 0)
    assert [row[0] for row in memory.dump()["fruitless"]] == ["many/k0", "many/k2"]


def test_it_survives_a_restart() -> None:
    memory, (high, low), there = Disruption(), two(preemption_evictions_max="2"), node("n1", vcore=1)
    memory.note(high, low, 100)
    memory.note_fruitless(high, there, 100)
    memory.leave_by[low] = 500
    memory.overdue[low] = None
    known = {(a.app.id, a.key): a for a in (high, low)}
    again = Disruption.load(memory.dump(), known)
    assert again.dump() == memory.dump()
    assert again.was_stopped_for(high, low)
    assert left_in(again, low.app.queue, 200)[0] == 1
    assert again.leave_by == {low: 500}


def test_nothing_is_remembered_of_queues_that_lost_nothing_for_an_hour() -> None:
    """They may be gone; nobody asks what they may lose any more."""
    memory, (high, low), (_, other) = Disruption(), two(preemption_evictions_max="2"), two()
    other.app.queue.path = "root.c"
    other.app.queue.set_properties({"preemption.evictions.max": "2"})
    memory.note(high, low, 0)
    memory.note(high, other, 10)
    memory.note(high, low, 20)
    memory.note(high, low, HOUR_MS + 10)
    assert memory.dump()["times"] == [["root.b", [20, HOUR_MS + 10]]]
    assert left_in(memory, low.app.queue, HOUR_MS + 10) == (0, HOUR_MS + 20)
