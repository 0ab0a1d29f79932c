"""Courses that look the same with the service killed again and again, and that it would be noticed if they did not."""

from __future__ import annotations

import pytest
from simulation import restarts

from fairlead.local import dependencies
from fairlead.local.place import LocalPlace


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (3, 4, 5))])
def test_users_see_the_same_whether_it_was_killed_or_not(seed: int) -> None:
    """After each order: rows, details, reasons, queues."""
    killed, done = restarts.compare(seed, 40)
    assert killed > 3
    assert done.total() > 12


def test_what_is_forgotten_by_a_kill_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that does not look at what ran on."""
    monkeypatch.setattr(LocalPlace, "_reconcile", lambda *_: None)
    with pytest.raises(restarts.Differs, match="seed 1, step"):
        restarts.compare(1, 40)


def test_what_waits_for_what_has_come_about_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told of ends."""
    monkeypatch.setattr(dependencies, "settle", lambda *_: None)
    with pytest.raises(restarts.Differs, match="waits for"):
        restarts.compare(1, 40)
