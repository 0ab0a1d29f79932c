"""The client against a real service; `docs/client.md` is run as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.nursery import Nursery
from testbed.unix_socket import wait_until_served

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]


@pytest.fixture
def socket(nursery: Nursery, tmp_path: Path) -> Iterator[Path]:
    """A service of two cores."""
    path = Path("/tmp") / f"fl-{tmp_path.name[-40:]}.sock"
    words = ("--state", str(tmp_path / "state"), "--socket", str(path), "--no-tcp", "--resource", "cpu=2")
    process = nursery.start("up", *words, log=tmp_path / "log")
    wait_until_served(path, lambda: None if process.poll() is None else (tmp_path / "log").read_text())
    yield path
    process.terminate()
    process.wait(50)


def test_every_block_of_the_page_runs(socket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one program."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) >= 8
    monkeypatch.setenv("FAIRLEAD_SOCKET", str(socket))
    names: dict[str, object] = {"SOCKET": str(socket)}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
