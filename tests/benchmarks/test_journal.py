"""The benchmark of the codec measures what it says."""

from __future__ import annotations

import pytest
from benchmarks import journal

from fairlead.core.model.events import AddAsks
from fairlead.journal import codec


def test_every_row_says_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks with their limit, decisions without one, each with its size and both times."""
    monkeypatch.setattr(journal, "REPEATS", 2)
    (asks, line), (decisions, _) = journal.rows(1)
    assert (asks["name"], decisions["name"]) == ("journal: 100 asks", "journal: 100 decisions")
    for row in (asks, decisions):
        assert row["encode_cpu_micros"] > 0
        assert row["decode_cpu_micros"] > 0
    together = asks["encode_cpu_micros"] + asks["decode_cpu_micros"]
    assert asks["within"] == (together <= asks["limit_micros"])
    assert f"{asks['bytes']:,} bytes" in line
    assert "limit" not in decisions


def test_what_is_read_back_otherwise_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A codec that loses something is not fast, it is wrong."""
    monkeypatch.setattr(codec, "decode_event", lambda data: AddAsks(()))
    with pytest.raises(AssertionError, match="asks were read back as something else"):
        journal.rows(1)
