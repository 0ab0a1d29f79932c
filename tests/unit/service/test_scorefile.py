"""The score of forecasts on disk."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.insight.forecast import Expected
from fairlead.insight.scorecard import Scorecard
from fairlead.service.forecaster import Forecaster, ScoreFile

NAME = ("default", "w", "w")


def a_card() -> Scorecard:
    card = Scorecard()
    for number in range(3):
        name = ("default", f"w{number}", "w")
        card.promise(0, Expected(100, 50, 200, 0.8, 0, 0.0, name=name))
        if number:
            card.started(name, 90 * number)
    return card


def test_a_score_is_there_after_a_restart(tmp_path: Path) -> None:
    """The counts, what was learned, and what is open; a new one begins at nothing."""
    file, card = ScoreFile(tmp_path / "forecasts.json"), a_card()
    assert file.read().score() == Scorecard().score()
    file.write(card.state())
    again = ScoreFile(tmp_path / "forecasts.json").read()
    assert again.state() == card.state()
    assert again.is_promised(("default", "w0", "w"))
    assert oct((tmp_path / "forecasts.json").stat().st_mode)[-3:] == "600"


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    """A service that idles leaves the disk alone."""
    path, card = tmp_path / "forecasts.json", a_card()
    file = ScoreFile(path)
    file.write(card.state())
    path.unlink()
    file.write(card.state())
    assert not path.exists()
    card.started(("default", "w0", "w"), 100)
    file.write(card.state())
    assert path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"scored": 7}', '{"coverage": 3.0}'])
def test_a_file_that_makes_no_sense_is_moved_aside(text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a sentence; the service starts, and nothing is lost."""
    path = tmp_path / "forecasts.json"
    path.write_text(text)
    assert ScoreFile(path).read().score() == Scorecard().score()
    assert "begins anew" in caplog.text
    assert str(path) in caplog.text
    assert (tmp_path / "forecasts.json.bad").read_text() == text


def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    """One process writes another score again and again, and is killed with -9; what is there is one of them."""
    path = tmp_path / "forecasts.json"
    for attempt in range(5):
        pid = os.fork()
        if pid == 0:
            try:
                card, file, number = a_card(), ScoreFile(path), 0
                while True:
                    name = ("default", f"more{number}", "w" * 1_000)
                    number += 1
                    card.promise(0, Expected(100, 50, 200, 0.8, 0, 0.0, name=name))
                    file.write(card.state())
            finally:
                os._exit(1)
        while not path.exists():
            time.sleep(0.001)
        time.sleep(0.01 * attempt)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        again = ScoreFile(path).read()
        assert again.scored == 2
        path.unlink()


def test_what_started_while_nobody_listened_is_scored_at_the_next_look(tmp_path: Path) -> None:
    """The service was killed between a start and the next look: the book of jobs knows when it began."""
    file, card = ScoreFile(tmp_path / "forecasts.json"), Scorecard()
    card.promise(0, Expected(100, 50, 200, 0.8, 0, 0.0, name=NAME))
    file.write(card.state())
    job = SimpleNamespace(key="w", ask_key="w", started_at_ms=150)
    jobs = SimpleNamespace(live=lambda: (), get={"w": job}.get)

    class Desk:
        async def look(self, ask: Any) -> Any:
            return ask(None, jobs)

    forecaster = Forecaster(ScoreFile(tmp_path / "forecasts.json"))
    asyncio.run(forecaster.look(Desk()))  # type: ignore[arg-type]
    assert (forecaster.card.scored, forecaster.card.inside, forecaster.card.dropped) == (1, 1, 0)
    assert ScoreFile(tmp_path / "forecasts.json").read().scored == 1


def test_a_full_disk_costs_the_score_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A sentence in the log; the service goes on."""
    forecaster = Forecaster(ScoreFile(tmp_path / "gone" / "forecasts.json"))
    forecaster.store()
    assert "cannot be kept" in caplog.text
