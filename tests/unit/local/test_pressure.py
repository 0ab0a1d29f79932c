"""Short of memory: who has to go, and when."""

from __future__ import annotations

import random

import pytest

from fairlead.local.pressure import Memory, Step, Threshold, Use, Watch, choose, order, parse_threshold

MI = 2**20
PLENTY = Memory(1000 * MI, 900 * MI)
SHORT = Memory(1000 * MI, 40 * MI)
LEAST = 50 * MI


def use(key: str, used: int, request: int = 0, priority: int = 0, started_ms: int = 0) -> Use:
    return Use(key, priority, request * MI, used * MI, started_ms)


def names(*uses: Use) -> list[str]:
    return [each.key for each in order(uses)]


def test_who_uses_more_than_he_asked_for_goes_first() -> None:
    """Whatever the priorities: work within its request comes last."""
    assert names(use("within", 100, 100, priority=-5), use("above", 101, 100, priority=50)) == ["above", "within"]


def test_then_the_lower_priority_goes_first() -> None:
    """A little above with a low priority before far above with a high one."""
    assert names(use("high", 900, 100, priority=9), use("low", 101, 100, priority=1)) == ["low", "high"]


def test_then_who_is_further_above_relative_to_his_request() -> None:
    """Twice the request goes before one and a half, though that is more bytes; no request at all before both."""
    found = names(use("half", 600, 400), use("twice", 100, 50), use("none", 10))
    assert found == ["none", "twice", "half"]


def test_then_the_younger_and_what_uses_nothing_never() -> None:
    """All else equal the one that loses least time; stopping what holds nothing helps nobody."""
    assert names(use("old", 100, started_ms=1), use("young", 100, started_ms=9), use("empty", 0)) == ["young", "old"]


def test_the_order_does_not_depend_on_the_order_of_measuring() -> None:
    """It is total."""
    uses = [use(str(i), 10 * (i % 3), 10, i % 2, i % 4) for i in range(12)]
    first = names(*uses)
    for seed in range(10):
        random.Random(seed).shuffle(uses)
        assert names(*uses) == first


def test_the_sentence_has_the_figures() -> None:
    """Which, how much, of what, and what is left."""
    victim = choose([use("1", 300, 200)], SHORT, LEAST)
    assert victim is not None
    assert victim.sentence == (
        "told to stop because it uses 300Mi, more than its request of 200Mi; the machine is short of memory: 40Mi of "
        "1000Mi are left, 50Mi shall be"
    )
    assert not victim.last_resort


def test_work_within_its_request_is_not_stopped_for_others() -> None:
    """What is short is used by something else: as long as there is some memory left, nobody goes."""
    assert choose([use("1", 100, 200), use("2", 200, 200)], SHORT, LEAST) is None


def test_as_a_last_resort_it_is_and_that_is_said() -> None:
    """A quarter of the threshold is left: the lowest priority, the largest of those."""
    uses = [use("1", 300, 300), use("2", 100, 200), use("3", 400, 500, priority=1)]
    victim = choose(uses, Memory(1000 * MI, 12 * MI), LEAST)
    assert victim is not None
    assert (victim.use.key, victim.last_resort) == ("1", True)
    assert "as a last resort, though it is within its request (300Mi of 300Mi)" in victim.sentence


def test_nobody_runs_and_nobody_goes() -> None:
    """The memory is used by what is no work."""
    assert choose([], Memory(1000 * MI, 0), LEAST) is None


def watch(short: bool = False) -> Watch:
    return Watch(Threshold(per_mille=50), short)


def test_one_measurement_is_none() -> None:
    """A short dip does nothing."""
    w = watch()
    assert [w.look(m, ["1"]) for m in (SHORT, PLENTY, SHORT)] == [Step.NOTHING] * 3


def test_first_the_door_is_closed_then_somebody_goes() -> None:
    """Nothing new starts while somebody is being stopped."""
    w = watch()
    assert [w.look(SHORT, ["1"]) for _ in range(3)] == [Step.NOTHING, Step.BEGIN, Step.CHOOSE]


def test_one_victim_at_a_time() -> None:
    """While he is there nobody else goes; when he is gone it is measured afresh."""
    w = watch(short=True)
    assert [w.look(SHORT, ["1", "2"]) for _ in range(2)] == [Step.NOTHING, Step.CHOOSE]
    w.told_to_stop("1")
    assert [w.look(SHORT, ["1", "2"]) for _ in range(5)] == [Step.NOTHING] * 5
    assert [w.look(SHORT, ["2"]) for _ in range(2)] == [Step.NOTHING, Step.CHOOSE]


def test_it_is_over_when_clearly_more_than_the_threshold_is_free() -> None:
    """Just above it is not enough: nothing starts that would make it short again at once."""
    w = watch(short=True)
    barely = Memory(1000 * MI, 55 * MI)
    assert [w.look(barely, []) for _ in range(3)] == [Step.NOTHING] * 3
    assert [w.look(PLENTY, []) for _ in range(3)] == [Step.NOTHING, Step.END, Step.NOTHING]


def test_a_step_that_could_not_be_taken_is_given_again() -> None:
    """As if nobody had looked."""
    w = watch()
    assert [w.look(SHORT, ["1"]) for _ in range(2)] == [Step.NOTHING, Step.BEGIN]
    w.take_back(Step.BEGIN)
    assert [w.look(SHORT, ["1"]) for _ in range(3)] == [Step.NOTHING, Step.BEGIN, Step.CHOOSE]
    w.take_back(Step.CHOOSE)
    assert [w.look(SHORT, ["1"]) for _ in range(2)] == [Step.NOTHING, Step.CHOOSE]
    assert [w.look(PLENTY, []) for _ in range(2)] == [Step.NOTHING, Step.END]
    w.take_back(Step.END)
    assert [w.look(PLENTY, []) for _ in range(2)] == [Step.NOTHING, Step.END]


@pytest.mark.parametrize(
    ("text", "least"), [("5%", 50), ("0.5 %", 5), ("12.5%", 125), ("300Mi", 300), ("off", 0), ("OFF", 0)]
)
def test_thresholds_as_they_are_written(text: str, least: int) -> None:
    """A part of what there is, or an amount."""
    assert parse_threshold(text).of(1000 * MI) == least * MI


@pytest.mark.parametrize("text", ["", "0", "0%", "5 per cent", "-1%", "100%", "5%%", "1.25%", "x"])
def test_what_is_no_threshold_is_refused(text: str) -> None:
    """With examples of what is one."""
    with pytest.raises(ValueError, match="such as 5%, an amount such as 512Mi, or off"):
        parse_threshold(text)
