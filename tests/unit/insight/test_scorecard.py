"""Answers held against what happened, and what follows for the next ones."""

from __future__ import annotations

from math import exp, log
from random import Random

import msgspec
import pytest
from msgspec.structs import replace
from portions import where_compiled

from fairlead.insight.experience import WAYS, Experience, Outcome
from fairlead.insight.forecast import About, Expected
from fairlead.insight.runtimes import Kind
from fairlead.insight.scorecard import Scorecard, State

MINUTE = 60_000
KIND = Kind("ann", "train", "root.a")


def promise(number: int, wait_ms: int) -> Expected:
    name = ("default", f"w{number}", f"w{number}")
    return Expected(wait_ms, wait_ms // 2, wait_ms * 2, 0.8, 0, 0.0, name=name)


def test_each_forecast_is_scored_once() -> None:
    """Inside, earlier, later, or dropped."""
    card = Scorecard(learns=False)
    for number, start_ms in enumerate((100, 40, 300)):
        expected = promise(number, 100)
        card.promise(0, expected)
        card.started(expected.name, start_ms)
        card.started(expected.name, start_ms)
    card.promise(0, promise(9, 100))
    card.keep_only(())
    shown = msgspec.to_builtins(card.score())
    assert (shown["scored"], shown["inside"], shown["early"], shown["late"], shown["dropped"]) == (3, 1, 1, 1, 1)
    assert shown["observed"] == pytest.approx(1 / 3)


@where_compiled
def test_intervals_learn_to_be_right_as_often_as_promised() -> None:
    """Waits that are three times as long as the futures have it, and scattered; later no longer than those have it."""
    for factor in (3.0, 0.4):
        card, chance = Scorecard(), Random(3)
        inside = []
        for number in range(1_000):
            made, wait = number * 10**9, 100_000
            name = ("default", f"w{number}", "k")
            plain = Expected(made + wait, made + int(wait * 0.9), made + int(wait * 1.1), 0.8, 0, 0.0, name=name)
            told = card.promise(made, plain)
            assert told.earliest_ms is not None
            assert told.latest_ms is not None
            at = made + int(wait * (factor if number > 300 else 1) * chance.lognormvariate(0, 0.7))
            card.started(name, at)
            inside.append(told.earliest_ms <= at <= told.latest_ms)
        assert 0.76 <= sum(inside) / len(inside) <= 0.84


def test_many_late_ones_at_once_do_not_widen_all_that_comes_later() -> None:
    """A hundred are overdue together: intervals reach as far as those do, and no farther."""
    card = Scorecard()
    for number in range(100):
        card.promise(0, promise(number, 100_000))
    told = card.calibrated(1_000_000, replace(promise(200, 100_000), median_ms=1_100_000, latest_ms=1_200_000))
    assert told.latest_ms is not None
    assert 1_500_000 < told.latest_ms <= 2_100_000


def test_before_anything_is_known_the_futures_count_most() -> None:
    """Three outcomes in which another way was better do not turn that around, and many do."""
    card = Scorecard()
    first = card.weights("")
    assert first["plain"] == first["futures"] > 2 * first["limits"]
    losses = (900.0, 900.0, 700.0, 900.0, 900.0, 900.0)
    point = log(101_000)
    for count, is_turned in ((3, False), (300, True)):
        outcomes = [Outcome(About(), (point,) * 6, 1.0, 1.0, point, losses)] * count
        told = Scorecard.restored(State(outcomes=outcomes)).weights("")
        assert bool(told["limits"] > told["plain"]) is is_turned


def test_a_long_time_without_a_miss_does_not_make_intervals_narrow() -> None:
    """A thousand starts came inside: the next interval still has seven of ten of them."""
    point = log(101_000)
    waits = [point + (n * 617 % 1_001) / 500 - 1 for n in range(1_001)]
    points, losses = (point, point, None, None, None, point), (1.0, 1.0, None, None, None, None)
    outcomes = [Outcome(About(), points, 1.0, 1.0, wait, losses) for wait in waits]
    card = Scorecard.restored(State(outcomes=outcomes, missed=[False] * 1_000))
    told = card.calibrated(0, replace(promise(0, 100_000), earliest_ms=36_155, latest_ms=273_549))
    assert told.earliest_ms is not None
    assert told.latest_ms is not None
    # The futures are one unit, a factor of e, to each side.
    assert told.earliest_ms <= 101_000 * exp(-0.7) - 1_000
    assert told.latest_ms >= 101_000 * exp(0.7) - 1_000


def test_what_is_overdue_widens_intervals_before_it_starts() -> None:
    """One need not wait for the start to know that it is late; and it counts once."""
    card = Scorecard()
    before = card.promise(0, promise(0, 100_000)).latest_ms
    late = replace(promise(1, 100_000), median_ms=600_000, earliest_ms=550_000, latest_ms=700_000)
    after = card.calibrated(500_000, late).latest_ms
    assert before is not None
    assert after is not None
    assert after - 500_000 > before
    known = card.state().missed
    card.calibrated(500_000, late)
    assert card.state().missed == known


def test_a_scorecard_goes_on_where_it_was() -> None:
    """From its state as plain values, byte for byte."""
    card = Scorecard()
    for number in range(50):
        card.promise(number, promise(number, 100 + number))
        if number % 3:
            card.started(promise(number, 100).name, number * 7)
    text = msgspec.json.encode(card.state())
    again = Scorecard.restored(msgspec.json.decode(text, type=State))
    assert msgspec.json.encode(again.state()) == text
    assert again.score() == card.score()
    assert again.calibrated(1_000, promise(99, 2_000)) == card.calibrated(1_000, promise(99, 2_000))
    with pytest.raises(ValueError, match="add up"):
        Scorecard.restored(State(scored=3, inside=1))
    with pytest.raises(ValueError, match="other ways"):
        Scorecard.restored(State(outcomes=[Outcome(About(), (1.0,), 1.0, 1.0, 1.0, (1.0,))]))


def test_a_job_that_waits_on_is_forecast_again() -> None:
    """When it has waited as long again; every answer is scored."""
    card = Scorecard()
    name = promise(0, 100_000).name
    assert card.is_due(name, 0)
    card.promise(0, promise(0, 100_000))
    assert not card.is_due(name, 30_000)
    assert card.is_due(name, 60_000)
    later = replace(promise(0, 100_000), about=About(waited_ms=60_000), median_ms=160_000, latest_ms=260_000)
    card.promise(60_000, later)
    assert not card.is_due(name, 119_000)
    assert card.is_due(name, 200_000)
    card.started(name, 110_000)
    assert (card.scored, card.score().open) == (2, 0)


def test_a_forecast_without_a_middle_stays_as_it_is() -> None:
    """Nothing can be widened around nothing."""
    never = Expected(None, None, None, 0.8, 0, 1.0, name=("default", "w", "w"))
    assert Scorecard().calibrated(0, never) == never


def test_what_begins_later_is_said_to_start_no_earlier() -> None:
    """However early all started that was forecast before: it is not in line until then."""
    card = Scorecard()
    for number in range(30):
        made = number * 10 * MINUTE
        name = ("default", f"w{number}", f"w{number}")
        card.promise(made, Expected(made + 8 * MINUTE, made + 4 * MINUTE, made + 9 * MINUTE, 0.8, 0, 0.0, name=name))
        card.started(name, made + MINUTE // 10)
    plain = Expected(61 * MINUTE, 60 * MINUTE, 70 * MINUTE, 0.8, 0, 0.0, name=("default", "b", "b"))
    free, bound = card.calibrated(0, plain), card.calibrated(0, replace(plain, begin_ms=60 * MINUTE))
    assert free.median_ms is not None
    assert free.median_ms < 50 * MINUTE
    assert bound.earliest_ms == bound.median_ms == 60 * MINUTE
    before = card.score().inside
    card.promise(0, replace(plain, begin_ms=60 * MINUTE))
    card.started(plain.name, 60 * MINUTE)
    assert card.score().inside == before + 1


def test_one_way_is_put_right_by_all_outcomes_however_unlike() -> None:
    """Of this queue nothing is known: what the limits say is moved by the outcomes of others, in full."""
    point, wait = log(101_000), log(201_000)
    about = About(queue="other", size="large", priority=7, waited_ms=3_600_000)
    outcomes = [Outcome(about, (point,) * 6, 1.0, 1.0, wait, (1.0,) * 6)] * 20
    learned = Experience(outcomes)
    near = learned.nearness(About(queue="mine"))
    by_name = {way.name: number for number, way in enumerate(WAYS)}
    middles = {
        name: learned.put_right(by_name[name], point, (1.0, 1.0), near, 0.1)[1] - point
        for name in ("limits", "limits by all")
    }
    assert middles["limits by all"] == pytest.approx(wait - point, abs=0.05)
    assert middles["limits"] < 0.5 * (wait - point)
