"""Figures of small cases, worked out by hand."""

from __future__ import annotations

import math
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.config import load_text
from fairlead.core.model.resources import Items
from fairlead.sim.columns import Columns, End, Fate, Grid
from fairlead.sim.figures import courses_of, fair_shares, figures_of, guarantees, jain, wait_curve
from fairlead.sim.verdicts import breakdown, write_csv

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a, resources: {guaranteed: {vcore: 2}}}
          - {name: b}
"""
ONE, TWO = (("vcore", 1000),), (("vcore", 2000),)


class Story:
    """Columns filled by hand: a node of 4 cores from 0 s to `end_s`."""

    def __init__(self, end_s: int = 100) -> None:
        self.columns = Columns()
        self.columns.end_ms = end_s * 1000
        self.columns.capacity.append((0, "n", (("vcore", 4000),), 1))

    def task(
        self,
        name: str,
        came_s: int,
        runs: list[tuple[int, int | None, End]],
        items: Items = ONE,
        queue: str = "root.a",
        user: str = "ann",
        priority: int = 0,
    ) -> Story:
        """A task with its runs (begin, end, how)."""
        columns = self.columns
        numbers = columns.queues.of(queue), columns.users.of(user)
        row = columns.add_task(name, *numbers, items, priority, came_s * 1000)
        for begin, end, how in runs:
            run = columns.add_run(row, "n", begin * 1000)
            if end is not None:
                columns.end_run(run, end * 1000, how)
                columns.fate[row] = Fate.COMPLETED if how is End.FINISHED else Fate.WAITING
                if how is End.FINISHED:
                    columns.done_ms[row] = end * 1000
        return self

    def figures(self) -> dict:  # type: ignore[type-arg]
        """What is measured."""
        return figures_of(self.columns, load_text(QUEUES))


def done(begin: int, end: int) -> list[tuple[int, int | None, End]]:
    return [(begin, end, End.FINISHED)]


def test_waits_and_slowdown() -> None:
    """From submission to the first start; from submission to the end over the run time, short ones as ten seconds."""
    story = Story().task("one", 0, done(0, 50)).task("two", 10, done(40, 70)).task("blink", 20, done(30, 31))
    figures = story.figures()
    assert figures["waits"]["started"] == {"count": 3, "mean": 13.333, "p50": 10, "p95": 30, "p99": 30, "max": 30}
    # 50/50, 60/30, 11/10.
    assert figures["slowdown"]["mean"] == pytest.approx((1 + 2 + 1.1) / 3, abs=1e-3)
    assert figures["tasks"]["completed"] == figures["tasks"]["submitted"] == 3


def test_what_never_started_is_counted_and_given_no_wait() -> None:
    """It has waited since it came."""
    figures = Story().task("one", 0, done(0, 10)).task("never", 30, []).figures()
    assert figures["waits"] == {
        "started": {"count": 1, "mean": 0, "p50": 0, "p95": 0, "p99": 0, "max": 0},
        "not_started": 1,
        "longest_unstarted": 70,
    }


def test_use_is_weighted_by_time() -> None:
    """Two cores of four for half of the time is a quarter; up to the last submission it is a half."""
    story = Story().task("one", 0, done(0, 50), TWO).task("late", 50, [])
    use = story.figures()["use"]["vcore"]
    assert (use["mean"], use["peak"], use["capacity"], use["lost"]) == (0.25, 0.5, 4000, 0)
    assert use["while_coming"] == 0.5


def test_use_while_work_comes_ends_with_the_last_submission() -> None:
    story = Story(end_s=30_000).task("one", 0, done(0, 30_000)).task("late", 10, done(10, 30_000), TWO)
    assert story.figures()["use"]["vcore"]["while_coming"] == 0.25


def test_work_that_comes_at_one_moment_has_no_use_while_it_comes() -> None:
    """There is no time in which work came: None, which is neither good nor bad."""
    use = Story().task("one", 0, done(0, 50), TWO).task("two", 0, done(0, 50)).figures()["use"]["vcore"]
    assert (use["while_coming"], use["peak"]) == (None, 0.75)


def test_the_peak_is_what_was_in_use_at_a_moment() -> None:
    story = Story(end_s=1_000_000).task("a", 500, [(500, 510, End.FINISHED)], TWO)
    story.task("b", 510, [(510, 520, End.FINISHED)], TWO)  # After the first, not beside it.
    assert story.figures()["use"]["vcore"]["peak"] == 0.5


def test_use_counts_what_nodes_offered_at_the_time() -> None:
    """A node that is lost for half of the time offers half."""
    story = Story().task("one", 0, done(0, 50), TWO)
    story.columns.capacity += [(50_000, "n", (("vcore", 4000),), -1)]
    assert story.figures()["use"]["vcore"]["mean"] == 0.5


def test_stopped_work_is_counted_with_what_it_lost() -> None:
    """Evicted after twenty seconds, done the second time."""
    runs = [(0, 20, End.EVICTED), (30, 60, End.FINISHED)]
    figures = Story().task("one", 0, runs, TWO).figures()
    assert figures["stops"]["evicted"] == figures["stops"]["tasks_evicted"] == 1
    assert figures["stops"]["lost_run_s"] == figures["stops"]["evicted_run_s"] == 20
    assert figures["use"]["vcore"]["mean"] == pytest.approx(0.25)
    assert figures["use"]["vcore"]["lost"] == pytest.approx(0.1)


def test_waits_by_queue_user_priority_and_size() -> None:
    """Each group has its own."""
    story = Story().task("a", 0, done(10, 20), user="ann", priority=1)
    story.task("b", 0, done(30, 40), (("vcore", 4000),), queue="root.b", user="bob", priority=5)
    by = story.figures()["waits_by"]
    assert {name: g["started"]["mean"] for name, g in by["queue"].items()} == {"root.a": 10, "root.b": 30}
    assert {name: g["started"]["mean"] for name, g in by["user"].items()} == {"ann": 10, "bob": 30}
    assert list(by["priority"]) == ["5", "1"]
    assert {name: g["tasks"] for name, g in by["size"].items()} == {"medium": 1, "large": 1}


def test_all_queues_are_measured_and_those_with_most_tasks_are_shown() -> None:
    """A search for the good of a small queue needs it; a table of thousands says nothing."""
    story = Story()
    for number in range(60):
        for _ in range(1 if number < 15 else 2):
            story.task("t", 0, done(number, 90), queue=f"root.q{number:02}")
    figures = story.figures()
    assert figures["waits_by"]["queue"]["root.q07"]["started"]["mean"] == 7
    assert len(figures["waits_by"]["queue"]) == 60
    shown = [row.name for row in breakdown([{"figures": figures}], "queue")]
    assert shown == [f"root.q{number:02}" for number in (*range(5), *range(15, 60))]
    csv = StringIO()
    write_csv([{"name": "a.yaml", "figures": figures}], csv)
    assert "waiting time by queue,root.q07 mean,7.0\n" in csv.getvalue()


def test_a_guarantee_is_met_when_what_is_wanted_up_to_it_runs() -> None:
    """Two cores guaranteed and wanted: one for half of the time, two for the other half."""
    story = Story().task("x", 0, done(0, 100)).task("y", 0, done(50, 100))
    queue = story.figures()["fairness"]["queues"]["root.a"]
    assert (queue["met"], queue["short"], queue["guaranteed"]) == (0.5, 0.25, 0.5)
    assert (queue["share"], queue["wanted"]) == (0.375, 0.5)
    assert "met" not in Story().task("z", 0, done(0, 1), queue="root.b").figures()["fairness"]["queues"]["root.b"]


def test_a_guarantee_is_watched_from_moment_to_moment() -> None:
    """Of a hundred days: each day a task waits for five minutes and runs for half an hour."""
    day, story = 86_400, Story(100 * 86_400)
    for number in range(100):
        story.task("x", number * day, done(number * day + 300, number * day + 2100), TWO)
    queue = story.figures()["fairness"]["queues"]["root.a"]
    assert (queue["met"], queue["short"]) == (round(30 / 35, 6), round(5 / 35, 6))


def test_a_guarantee_of_what_no_node_offers_is_no_part_of_the_cluster() -> None:
    """Two GPUs of none were 200 % of it."""
    queues = QUEUES.replace("{vcore: 2}", "{vcore: 2, gpu: 2}")
    story = Story().task("one", 0, done(0, 50))
    found = figures_of(story.columns, load_text(queues))["fairness"]["queues"]["root.a"]
    assert (found["guaranteed"], found["met"]) == (0.5, 1.0)


def test_jains_index_over_users() -> None:
    """Both want all of it: equal shares give 1, all for one gives a half; one alone has nothing to be fair to."""
    whole = (("vcore", 4000),)
    equal = Story().task("x", 0, done(0, 100), TWO).task("y", 0, done(0, 100), TWO, user="bob")
    assert equal.figures()["fairness"]["jain"] == 1
    unfair = Story().task("x", 0, done(0, 100), whole).task("y", 0, [], whole, user="bob")
    assert unfair.figures()["fairness"]["jain"] == 0.5
    assert Story().task("x", 0, done(0, 10)).figures()["fairness"]["jain"] is None


def test_jains_index_is_of_those_who_want_something_at_the_time() -> None:
    """Of a hundred days: bob waits each day for an hour until ann has had all of it."""
    whole, story = (("vcore", 4000),), Story(100 * 86_400)
    for begin in range(0, 100 * 86_400, 86_400):
        story.task("x", begin, done(begin, begin + 3600), whole)
        story.task("y", begin, done(begin + 3600, begin + 7200), whole, user="bob")
    assert story.figures()["fairness"]["jain"] == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("wanted", "shares"),
    [
        ((0.1, 1.0, 1.0), (0.1, 0.45, 0.45)),
        ((0.2, 0.0), (0.2, 0.0)),
        ((0.3, 0.3), (0.3, 0.3)),
        ((2.0, 0.1), (0.9, 0.1)),
    ],
)
def test_fair_shares_give_nobody_more_than_it_wants(wanted: tuple[float, ...], shares: tuple[float, ...]) -> None:
    """What one leaves over is divided among the others, in each column by itself."""
    both = np.array([wanted, wanted[::-1]]).T
    assert fair_shares(both) == pytest.approx(np.array([shares, shares[::-1]]).T)


def test_jain() -> None:
    """Between 1/n and 1; of those who have nothing all are equal."""
    assert list(jain(np.array([[2.0, 1, 3, 0], [2, 0, math.nan, 0], [2, 0, 3, 0], [2, 0, 3, 0]]))) == [1, 0.25, 1, 1]


def test_the_curve_of_waits_ends_below_one_when_something_never_started() -> None:
    """Parts of all that were accepted."""
    story = Story().task("one", 0, done(0, 10)).task("two", 0, done(20, 30)).task("never", 0, [])
    assert wait_curve(story.columns) == [(0.0, pytest.approx(1 / 3, abs=1e-5)), (20.0, pytest.approx(2 / 3, abs=1e-5))]


def test_courses_show_who_waited_and_ran_when() -> None:
    """In four stretches of 25 seconds."""
    courses = courses_of(Story().task("one", 0, done(50, 100), TWO).columns, 4)
    assert courses["at_s"] == [12.5, 37.5, 62.5, 87.5]
    assert courses["waiting"] == [1, 1, 0, 0]
    assert courses["running"] == [0, 0, 1, 1]
    assert courses["use"]["vcore"] == [0, 0, 0.5, 0.5]
    assert courses["shares"] == {"root.a": [0, 0, 0.5, 0.5]}


def test_nothing_at_all_is_measured_without_an_error() -> None:
    """An empty workload."""
    figures = Story(0).figures()
    assert (figures["waits"]["started"], figures["slowdown"], figures["use"]) == (None, None, {})


spans = st.lists(st.tuples(st.integers(0, 999), st.integers(1, 500), st.integers(0, 50)), max_size=30)


@given(spans, st.integers(1, 40))
def test_the_mean_of_a_course_is_exact(found: list[tuple[int, int, int]], stretches: int) -> None:
    """However few stretches there are: the integral is that of the spans."""
    begin = np.array([b for b, _, _ in found], dtype=np.int64)
    until = np.array([min(b + n, 1000) for b, n, _ in found], dtype=np.int64)
    weight = np.array([w for _, _, w in found], dtype=float)
    grid = Grid(0, 1000, stretches)
    area = float((grid.mean(begin, until, weight) * grid.width_ms).sum())
    assert area == pytest.approx(float(((until - begin) * weight).sum()), abs=1e-6)


def test_guarantees_are_of_the_partition_that_is_simulated() -> None:
    """Another one may have queues of the same names."""
    other = QUEUES.replace("partitions:\n", "").replace("name: default", "name: gpu").replace("vcore: 2", "vcore: 64")
    assert guarantees(load_text(QUEUES + other)) == {"root.a": {"vcore": 2000}}


def test_stretches_of_less_than_a_millisecond_are_some_of_today_too() -> None:
    """Milliseconds since 1970 are large numbers: what ended at once had stretches of no length, and NumPy warned."""
    today = 1_796_000_000_000
    grid = Grid(today, today, 20_000)
    found = grid.mean(np.array([today]), np.array([today + 1]), np.array([1.0]))
    assert (grid.width_ms, np.round(found, 6).min(), np.round(found, 6).max()) == (1 / 20_000, 1.0, 1.0)
