"""Times and durations in words."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from fairlead import times
from fairlead.cli.values import parse_duration
from fairlead.times import parse_begin


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (-5, "0.0s"),
        (0, "0.0s"),
        (450, "0.5s"),
        (9_999, "10.0s"),
        (10_000, "10s"),
        (10_500, "10s"),
        (61_000, "1m 1s"),
        (3_600_000, "1h"),
        (3_900_000, "1h 5m"),
        (3_599_999, "59m 59s"),
        (90_000_000, "1d 1h"),
        (86_400_000 + 59_000, "1d"),
    ],
)
def test_a_duration_has_two_units_at_most(ms: int, said: str) -> None:
    assert times.duration(ms) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0s"),
        (500, "500ms"),
        (1_500, "1.5s"),
        (60_500, "1m 0.5s"),
        (5_400_000, "1h 30m"),
        (86_400_001, "1d 0.001s"),
        (90 * 86_400_000, "90d"),
    ],
)
def test_an_exact_duration_can_be_typed_again(ms: int, said: str) -> None:
    assert times.duration_exactly(ms) == said
    assert parse_duration(said, "here") == ms


@pytest.mark.parametrize("text", ["1d" + " " * 2_000 + "x", "1d" + "\t" * 90 + "x", "1" * 5_000 + "s", "1" * 5_000])
def test_what_is_no_duration_is_told_at_once(text: str) -> None:
    """It would take longer than a test may to find that out, were the blanks shared out in all ways."""
    with pytest.raises(ValueError, match=r"is not a duration|is too long"):
        times.parse_duration(text)


def at(text: str) -> int:
    """This local moment, in milliseconds since 1970."""
    return int(datetime.fromisoformat(text).astimezone().timestamp()) * 1000


NOW = at("2026-03-01T14:05:00")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", "2026-03-01T14:05:00"),
        ("now+1h30m", "2026-03-01T15:35:00"),
        ("now+60", "2026-03-01T14:06:00"),
        ("now+2hours", "2026-03-01T16:05:00"),
        ("NOW+1week", "2026-03-08T14:05:00"),
        ("16:00", "2026-03-01T16:00:00"),
        ("14:05", "2026-03-02T14:05:00"),
        ("08:00:30", "2026-03-02T08:00:30"),
        ("noon", "2026-03-02T12:00:00"),
        ("midnight", "2026-03-02T00:00:00"),
        ("today", "2026-03-01T14:05:00"),
        ("tomorrow", "2026-03-02T14:05:00"),
        ("tomorrow 8:00", "2026-03-02T08:00:00"),
        ("today teatime", "2026-03-01T16:00:00"),
        ("Sun 15:00", "2026-03-01T15:00:00"),
        ("sun 14:00", "2026-03-08T14:00:00"),
        ("tuesday 8:00", "2026-03-03T08:00:00"),
        ("Sat", "2026-03-07T00:00:00"),
        ("2026-03-05", "2026-03-05T00:00:00"),
        ("2026-03-05T08:00", "2026-03-05T08:00:00"),
        ("2026-03-05 08:00:07", "2026-03-05T08:00:07"),
    ],
)
def test_a_moment_to_begin_at(text: str, moment: str) -> None:
    """As Slurm's users write it; a time of day is the next one."""
    assert parse_begin(text, NOW) == at(moment)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of this machine is that of Berlin, which is set to summer on 2026-03-29."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_tomorrow_is_at_this_time_of_day_though_the_clock_is_set_differently() -> None:
    """That day has 23 hours."""
    now = at("2026-03-28T12:00:00")
    assert parse_begin("tomorrow", now) == at("2026-03-29T12:00:00") == now + 23 * 3_600_000


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("now", "text", "moment"),
    [
        ("2026-03-28T23:30+01:00", "2:30", "2026-03-29T03:30+02:00"),
        ("2026-03-29T01:40+01:00", "2:30", "2026-03-29T03:30+02:00"),
        ("2026-03-28T12:00+01:00", "2026-03-29T02:30", "2026-03-29T03:30+02:00"),
        ("2026-10-25T02:15+02:00", "2:30", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:15+01:00", "2:30", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:15+01:00", "today 2:30", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:15+01:00", "2026-10-25T02:30", "2026-10-25T02:30+01:00"),
        ("2026-10-25T02:45+01:00", "Sun 2:30", "2026-11-01T02:30+01:00"),
    ],
)
def test_a_time_that_clocks_show_twice_or_never(now: str, text: str, moment: str) -> None:
    """The next that it is; what is left out in spring is not before it would have been."""
    assert parse_begin(text, at(now)) == at(moment)


def test_today_is_now_also_between_two_seconds() -> None:
    """It is no moment that is past."""
    assert parse_begin("today", NOW + 123) == NOW + 123


@pytest.mark.parametrize("at_ms", [2**53, 2**62])
def test_a_moment_that_no_clock_shows_is_said(at_ms: int) -> None:
    """Of a window, for example, whose times may be so large."""
    assert times.moment(at_ms) == "after the year 9986"
    assert times.clock_time(at_ms)
    assert times.clock_shift_ms(NOW, at_ms) % 3_600_000 == 0


def test_a_moment_may_name_its_zone() -> None:
    """Then it is the same everywhere."""
    assert parse_begin("2030-01-01T00:00:00Z", NOW) == 1_893_456_000_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("soon", "'soon' is no moment; write now+1h"),
        ("", "'' is no moment"),
        ("25:00", "'25:00' is no moment: hour must be in 0..23"),
        ("tomorrow evening", "'evening' is no time of day"),
        ("satur 8:00", "'satur 8:00' is no moment"),
        ("Sat evening", "'evening' is no time of day"),
        ("now+", "'' is not a duration"),
        ("now+-1h", "'-1h' is not a duration"),
        ("today 8:00", "'today 8:00' is 2026-03-01 08:00:00, which is past"),
        ("2026-02-30", "'2026-02-30' is no moment"),
        ("0001-01-01", "is no moment"),
        ("now+99999999d", "is after the year 9986"),
        ("9999-12-31T23:59:59", "is after the year 9986"),
        (f"now+{'9' * 5000}weeks", "is no moment: it is too long"),
        ("0001-01-01T00:00:00+14:00", "is no moment"),
        ("9999-12-31T23:59:59-14:00", "is no moment"),
        ("now+99999999999999999999weeks", "is after the year 9986"),
        ("now+99999999999d", "is after the year 9986"),
    ],
)
def test_what_is_no_moment_to_begin_at(text: str, said: str) -> None:
    """It says what to write."""
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_begin(text, NOW)


def test_a_number_that_is_too_long_to_be_read_is_no_duration() -> None:
    """It is not shown as a whole either."""
    with pytest.raises(ValueError, match=r"is too long$") as told:
        times.parse_duration("9" * 5000)
    assert len(str(told.value)) < 100
