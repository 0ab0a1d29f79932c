"""An input is too long by what it spends on a processor, not by what others do meanwhile."""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz import run
from fuzz.bounds import TooLong, bounded
from fuzz.targets import TARGETS


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """They mean afterwards what they meant."""
    before = {each: signal.getsignal(each) for each in (signal.SIGPROF, signal.SIGALRM)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def busy(_: bytes) -> None:
    """Takes every error for one of its own."""
    while True:
        try:
            while True:
                pass
        except Exception:
            continue


def test_what_never_ends_is_stopped() -> None:
    """By what it spends."""
    with pytest.raises(TooLong, match="on a processor"):
        bounded(busy, 0.05)(b"")


def test_what_waits_while_others_have_the_processor_has_not_had_its_time() -> None:
    """By the clock it had ten times of it."""
    bounded(lambda _: time.sleep(0.5), 0.05)(b"")


def test_what_stands_still_is_stopped_by_the_clock() -> None:
    """Where that is asked for."""
    with pytest.raises(TooLong, match="by the clock"):
        bounded(lambda _: time.sleep(60), 10, standstill_s=0.05)(b"")


def test_afterwards_nothing_goes_off() -> None:
    """What comes after an input is no part of it."""
    left = []
    timers = signal.ITIMER_PROF, signal.ITIMER_REAL
    read = bounded(lambda _: left.extend(signal.getitimer(each)[0] for each in timers), 10, standstill_s=10)
    read(b"")
    assert all(seconds > 0 for seconds in left)
    assert [signal.getitimer(each)[0] for each in timers] == [0.0, 0.0]


def test_an_input_that_is_too_long_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the run fails."""
    monkeypatch.setattr(run, "BUILD", tmp_path)
    monkeypatch.setattr(run, "bounded", functools.partial(bounded, processor_s=0.05))
    monkeypatch.setitem(TARGETS, "api", busy)
    with pytest.raises(TooLong):
        run.without("api", 60, 7)
    assert "input 7 is kept" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["api-7"]
