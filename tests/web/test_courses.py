"""Events become runs and waits, and these a chart."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead import times
from fairlead.web.courses import Course, Run, at_moment, courses
from fairlead.web.gantt import _lanes, gantt

STORY = [
    (0, "job.submitted", "1", {"user": "ann", "name": "long", "queue": "root.a", "resources": {"cpu": 2}}),
    (10, "job.allocated", "1", {"node": "n1"}),
    (20, "job.submitted", "2", {"user": "bob", "name": "urgent", "queue": "root.b", "resources": {"cpu": 2}}),
    (30, "job.evicting", "1", {"node": "n1", "on_behalf_of": "2/2#1", "rule": "priority"}),
    (40, "job.attempt-ended", "1", {"state": "evicted"}),
    (40, "job.released", "1", {"node": "n1"}),
    (41, "job.allocated", "2", {"node": "n1"}),
    (60, "job.ended", "2", {"state": "succeeded"}),
    (61, "job.allocated", "1", {"node": "n1"}),
    (70, "node.changed", "", {"node": "n1"}),
]


def test_of_a_simulation_an_application_says_whose_its_work_is() -> None:
    """What left by itself is over: nothing says so but that it left."""
    told: list[tuple[int, str, str, dict[str, Any]]] = [
        (0, "application.submitted", "a", {"user": "ann"}),
        (0, "job.placed", "a", {"queue": "root.low"}),
        (0, "job.submitted", "a-1", {"application": "a", "resources": {"cpu": 1}}),
        (5, "job.allocated", "a-1", {"node": "n1"}),
        (9, "job.released", "a-1", {"node": "n1", "cause": "FINISHED"}),
    ]
    one = courses(told)["a-1"]
    assert (one.user, one.queue, one.submitted_ms, one.waited_ms) == ("ann", "root.low", 0, 5)
    assert one.runs == [Run("a-1", "n1", 5, 9, "ended")]
    assert at_moment([one], 20) == ([], [])


def test_over_midnight_the_times_of_a_chart_have_their_day() -> None:
    """Of a week each would be some time of some day."""
    noon, day = 1_800_014_400_000 // 86_400_000 * 86_400_000 + 43_200_000, 86_400_000
    assert f">{times.moment(noon)}<" in gantt([], noon, noon + 7 * day, lambda _: 0)
    assert f">{times.clock_time(noon)}<" in gantt([], noon, noon + 1000, lambda _: 0)


def test_what_was_evicted_for_good_waits_no_more() -> None:
    """Its end is told before that its room is free; what is tried again waits from then on."""
    stopped = [*STORY[:2], (30, "job.evicting", "1", {"on_behalf_of": "2/2", "rule": "priority"})]
    told = [*stopped, (40, "job.ended", "1", {"state": "evicted"}), (40, "job.released", "1", {"node": "n1"})]
    one = courses(told)["1"]
    assert (one.runs[0].how, at_moment([one], 50)) == ("evicted", ([], []))
    again = courses([*STORY[:2], *STORY[3:6]])["1"]
    assert at_moment([again], 50) == ([], [again])


def test_what_is_told_late_ended_when_it_did() -> None:
    """What ended while the service was down was drawn until the restart; no clock makes it end before it began."""
    told = [*STORY[:2], (90, "job.ended", "1", {"state": "succeeded", "ended_at_ms": 40})]
    assert courses(told)["1"].runs == [Run("1", "n1", 10, 40, "succeeded")]
    back = [*STORY[:2], (90, "job.attempt-ended", "1", {"state": "failed", "ended_at_ms": 4})]
    one = courses(back)["1"]
    assert (one.runs, one.waits_since_ms) == ([Run("1", "n1", 10, 10, "failed")], 10)


def test_what_is_requeued_runs_until_it_has_stopped() -> None:
    """It was shown as waiting as soon as somebody wanted it, though it had an hour to stop."""
    told = [*STORY[:2], (30, "job.requeued", "1", {"who": "ann"})]
    assert courses(told)["1"].runs == [Run("1", "n1", 10)]
    stopped = [*told, *((90, what, "1", values) for _, what, _, values in STORY[4:6])]
    one = courses(stopped)["1"]
    assert one.runs == [Run("1", "n1", 10, 90, "evicted")]
    assert at_moment([one], 95) == ([], [one])


@pytest.mark.parametrize("end", ["job.cancelled", "job.rejected", "job.refused"])
def test_what_ended_while_it_waited_waits_no_more(end: str) -> None:
    """No other event tells that it is over. What runs goes on until it has stopped, and so do other parts."""
    one = courses([STORY[0], (30, end, "1", {})])["1"]
    assert [at_moment([one], at_ms) for at_ms in (29, 30)] == [([], [one]), ([], [])]
    again = [STORY[0], STORY[1], (40, "job.attempt-ended", "1", {"state": "failed"}), (50, end, "1", {})]
    assert at_moment(courses(again).values(), 60) == ([], [])
    runs = courses([*STORY[:2], (30, end, "1", {})])["1"]
    assert at_moment([runs], 60) == ([(runs, runs.runs[0])], [])
    array = [(0, "job.submitted", "2", {"parts": "1-2"}), (5, end, "2.1", {}), (9, "job.waits", "2.2", {})]
    waits = at_moment(courses(array).values(), 60)[1]
    assert [each.key for each in waits] == ["2.2"]


def test_what_was_changed_while_it_waited_counts() -> None:
    """Core hours are those of what it had in the end."""
    changes: list[tuple[int, str, str, dict[str, Any]]] = [
        (1, "job.changed", "1", {"name": "longer", "time_limit_ms": None}),
        (2, "job.changed", "1", {"resources": {"cpu": 4}}),
    ]
    one = courses([STORY[0], *changes])["1"]
    assert (one.name, one.resources) == ("longer", {"cpu": 4})
    assert courses([STORY[0], changes[0]])["1"].resources == {"cpu": 2}


def test_an_eviction_is_told_with_whom_it_was_for_and_the_next_attempt_after_it() -> None:
    found = courses(STORY)
    one, two = found["1"], found["2"]
    assert one.runs == [Run("1", "n1", 10, 40, "evicted", "2", "priority"), Run("1", "n1", 61)]
    assert two.runs == [Run("2", "n1", 41, 60, "succeeded")]
    assert (one.waited_ms, two.waited_ms) == (10 + 21, 21)
    assert (one.user, one.queue, two.name) == ("ann", "root.a", "urgent")


def test_of_an_array_each_part_is_one_that_waited_since_it_was_submitted() -> None:
    """The array was counted beside its parts and waited for ever; its parts had not waited at all."""
    told: list[tuple[int, str, str, dict[str, Any]]] = [
        (
            0,
            "job.submitted",
            "8",
            {"user": "ann", "name": "fold", "queue": "", "resources": {"cpu": 1}, "parts": "1-2"},
        ),
        (0, "job.placed", "8", {"queue": "root.a"}),
        (5, "job.allocated", "8.1", {"node": "n1"}),
        (9, "job.ended", "8.1", {"state": "succeeded"}),
        (10, "job.moved", "8", {"old": "root.a", "new": "root.b"}),
        (12, "job.waits", "8.2", {"reason": {}}),
    ]
    found = courses(told)
    assert list(found) == ["8.1", "8.2"]
    one, two = found.values()
    assert (one.user, one.name, one.queue, one.submitted_ms, one.waited_ms) == ("ann", "fold", "root.a", 0, 5)
    assert one.runs == [Run("8.1", "n1", 5, 9, "succeeded")]
    assert (two.queue, two.waits_since_ms, two.runs) == ("root.b", 0, [])
    assert [[each.key for each in at_moment(found.values(), at)[1]] for at in (3, 20)] == [["8.1", "8.2"], ["8.2"]]


def test_an_array_is_moved_with_its_parts_that_run() -> None:
    """What is over was in the other queue; other jobs stay."""
    array = [(0, "job.submitted", "1", {"queue": "root.a", "parts": "1-2"}), (5, "job.allocated", "1.1", {"node": "n"})]
    other = (5, "job.submitted", "11", {"queue": "root.a"})
    moved = [(7, "job.moved", "1", {"old": "root.a", "new": "root.b"}), (9, "job.allocated", "1.2", {"node": "n"})]
    found = courses([*array, other, *moved])
    assert {key: each.queue for key, each in found.items()} == {"1.1": "root.b", "1.2": "root.b", "11": "root.a"}


def test_a_job_whose_submission_was_not_seen_waited_until_it_first_ran() -> None:
    """It counted as one that had not waited."""
    one = courses(STORY[1:])["1"]
    one.submitted_after_all(2)
    assert (one.submitted_ms, one.waited_ms) == (2, 8 + 21)


def test_what_ran_and_waited_at_a_moment() -> None:
    found = courses(STORY).values()

    def keys(at_ms: int) -> tuple[list[str], list[str]]:
        ran, waited = at_moment(found, at_ms)
        return [course.key for course, _ in ran], [course.key for course in waited]

    assert keys(-1) == ([], [])
    assert keys(5) == ([], ["1"])
    assert keys(25) == (["1"], ["2"])
    assert keys(50) == (["2"], ["1"])
    assert keys(65) == (["1"], [])


def test_runs_that_overlap_have_lanes_of_their_own_and_nodes_are_apart() -> None:
    runs = [Run("1", "a", 0, 10), Run("2", "a", 5, 15), Run("3", "a", 10, 20), Run("4", "b", 0, None)]
    assert list(_lanes(runs, 100).values()) == [0, 1, 0, 2]


def test_the_chart_leads_from_the_stopped_to_the_stopper_and_escapes_names() -> None:
    found = courses(STORY)
    found["2"].name = "<script>"
    shown = gantt(list(found.values()), 0, 100, lambda _: 0)
    assert shown.count('class="arc"') == 1
    assert shown.count("<rect") == 3
    assert "<script>" not in shown
    assert gantt([Course("9")], 0, 100, lambda _: 0).count("<rect") == 0


def test_a_job_that_was_stopped_a_thousand_times_is_drawn_at_once() -> None:
    """Idle work is: whom each stop was for is not searched for among all that ran."""
    looked, count = 0, 1000

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal looked
            looked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    idle, urgent = Course("1"), Course("2")
    for at in range(count):
        idle.runs.append(Run(Counted("1"), "n1", 10 * at, 10 * at + 5, "evicted", stopped_for="2"))
        urgent.runs.append(Run(Counted("2"), "n1", 10 * at + 5, 10 * at + 10, "ended"))
    drawn = gantt([idle, urgent], 0, 10 * count, lambda _: 0)
    assert drawn.count("was stopped for 2") == count
    assert looked < 50 * count
