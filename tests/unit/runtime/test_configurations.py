"""The history of queue files: numbers, the way back, what is kept."""

from __future__ import annotations

import pytest

from fairlead.core.model.events import Configure
from fairlead.core.model.specs import ClusterSpec
from fairlead.runtime import configurations
from fairlead.runtime.configurations import Configurations


def put(history: Configurations, text: str, restores: int = 0, who: str = "ann", source: str = "api") -> int:
    spec = ClusterSpec(checksum=f"sum of {text}", text=text)
    return history.add(Configure(spec, who, source, restores), at_ms=1000 + len(history)).number


def test_versions_are_numbered_and_say_who_when_and_from_where() -> None:
    """From 1 on; the newest is in force."""
    history = Configurations()
    assert (history.current, history.before(), len(history)) == (None, None, 0)
    put(history, "a")
    put(history, "b", who="bob", source="file /etc/q.yaml")
    now = history.current
    assert now is not None
    assert (now.number, now.at_ms, now.who, now.source, now.checksum) == (
        2,
        1001,
        "bob",
        "file /etc/q.yaml",
        "sum of b",
    )
    assert [version.origin for version in history] == [1, 2]


def back(history: Configurations) -> str:
    earlier = history.before()
    if earlier is None:
        return "nothing"
    put(history, earlier.text, restores=earlier.number)
    return earlier.text


def test_going_back_twice_goes_two_steps_back() -> None:
    """Not back and forth between the last two; at the first there is nothing to go back to."""
    history = Configurations()
    for text in "abc":
        put(history, text)
    assert [back(history), back(history), back(history)] == ["b", "a", "nothing"]
    assert [(v.number, v.origin) for v in history] == [(1, 1), (2, 2), (3, 3), (4, 2), (5, 1)]


def test_a_text_applied_by_hand_is_no_step_back() -> None:
    """Only what was put back counts as the version it was."""
    history = Configurations()
    for text in ("a", "b", "a"):
        put(history, text)
    assert back(history) == "b"


def test_going_back_passes_over_the_same_text() -> None:
    """Otherwise nothing would change."""
    history = Configurations()
    for text in ("a", "b"):
        put(history, text)
    put(history, "b", source="file q")
    assert back(history) == "a"


def test_the_newest_from_one_source_is_found() -> None:
    """Whatever came in another way since."""
    history = Configurations()
    put(history, "a", source="file q")
    put(history, "b")
    found = history.from_source("file q")
    assert found is not None
    assert found.text == "a"
    assert history.from_source("file other") is None


def test_old_versions_go_and_numbers_are_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of them, and a size, are kept."""
    monkeypatch.setattr(configurations, "KEEP", 3)
    history = Configurations()
    for text in "abcde":
        put(history, text)
    assert [version.number for version in history] == [3, 4, 5]
    assert history.get(1) is None
    assert put(history, "f") == 6


def test_long_texts_leave_the_one_in_force_and_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the way back is always open."""
    monkeypatch.setattr(configurations, "KEEP_CHARACTERS", 10)
    history = Configurations()
    for letter in "abc":
        put(history, letter * 100)
    assert [version.number for version in history] == [2, 3]


def test_the_newest_from_each_source_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many came in another way since: by that a start knows whether its file says something new."""
    monkeypatch.setattr(configurations, "KEEP", 3)
    history = Configurations()
    for text in ("old", "a"):
        put(history, text, source="file q")
    for text in "bcdef":
        put(history, text)
    assert [version.number for version in history] == [2, 6, 7]
    found = history.from_source("file q")
    assert found is not None
    assert found.text == "a"


def test_a_history_is_written_down_and_read_back() -> None:
    """With everything in it, and it goes on where it was."""
    history = Configurations()
    put(history, "a")
    put(history, "b")
    put(history, "a", restores=1)
    again = Configurations.load(history.dump())
    assert list(again) == list(history)
    assert put(again, "c") == 4
