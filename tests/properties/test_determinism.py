"""The same events give the same bytes of decisions in any process, however it hashes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from properties import course as program

ROOT = Path(__file__).resolve().parents[2]


def taken(number: int, steps: int, hash_seed: str) -> str:
    """What a process of its own says about a course."""
    environment = os.environ | {
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
    }
    command = [sys.executable, str(program.__file__), str(number), str(steps)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=50).stdout


@pytest.mark.parametrize("number", [111, 222, 399])
def test_decisions_do_not_depend_on_hashes(number: int) -> None:
    """Under two hash seeds a course of 300 steps is decided byte by byte the same, and is not dull."""
    said = taken(number, 300, "1")
    assert said == taken(number, 300, "4242")
    placed = re.search(r" Allocated=(\d+)", said)
    assert placed is not None
    assert int(placed[1]) > 50
