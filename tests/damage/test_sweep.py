"""A part of the sweep of `make damage`, and that it would notice."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from damage.sweep import Sweep, folded, live_state, sweep

from fairlead.journal import losses
from fairlead.local.supervisor import sealed

pytestmark = [pytest.mark.thorough, pytest.mark.real, pytest.mark.timeout(240)]
STEP = 64 * 41


@pytest.fixture(scope="module")
def states() -> Iterator[list[Path]]:
    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    live = live_state(directory)
    yield [live, folded(live, directory)]
    shutil.rmtree(directory)


def test_a_flipped_bit_is_found_or_harmless(states: list[Path]) -> None:
    """At some bytes of every file; `make damage` looks at every 64th."""
    said: list[str] = []
    for state in states:
        assert sweep(state, STEP, 0, 1, said.append) == []
    assert any("journal.db-wal" in line and "found" in line for line in said)
    assert any("claim" in line and "harmless" in line for line in said)


def test_what_is_passed_over_fails_the_sweep(states: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the look at the end of the journal; without the checksum of a claim, one of whose numbers is hit."""
    middle = (states[0] / "journal.db-wal").stat().st_size // 2
    claim = sorted(states[0].glob("runs/*/claim"))[0]
    with tempfile.TemporaryDirectory() as work:
        trial = Sweep(states[0], Path(work))
        monkeypatch.setattr(losses, "look", lambda *_: losses.End())
        with pytest.raises(AssertionError, match="passed over"):
            trial.try_one(states[0] / "journal.db-wal", middle)
        monkeypatch.setattr(sealed, "unseal", lambda file: file.split(b"\n")[0][9:])
        with pytest.raises((AssertionError, ValueError)):
            trial.try_one(claim, 9 + claim.read_bytes()[9:].index(b'"supervisor": ') + 14)
