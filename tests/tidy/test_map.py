"""The map of the core and the policy in ARCHITECTURE.md names each module, in the row of its folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "fairlead"


def row(part: str, folder: str) -> str:
    """The row of one folder, in the table of its part."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split(f"| `{part}/` |", 1)[1].split("\n\n", 1)[0]
    [found] = re.findall(rf"^\| `{folder}` \|.*$", table, re.MULTILINE)
    return found


@pytest.mark.parametrize("part", ["core", "policy"])
def test_each_folder_names_its_modules(part: str) -> None:
    """No module is missing from its row, so that a rule is found by reading two tables."""
    folders = sorted(path for path in (PACKAGE / part).iterdir() if path.is_dir() and path.name != "__pycache__")
    assert len(folders) >= 4
    for folder in folders:
        named = set(re.findall(r"`(\w+)`", row(part, folder.name)))
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        assert modules
        assert not modules - named, f"{folder.name}: {sorted(modules - named)} in no row"


@pytest.mark.parametrize("part", ["core", "policy"])
def test_modules_stand_in_folders(part: str) -> None:
    """A new module needs a room; the cycle alone stands above all rooms."""
    assert {path.stem for path in (PACKAGE / part).glob("*.py")} <= {"__init__", "cycle"}
