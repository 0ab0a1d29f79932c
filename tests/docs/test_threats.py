"""docs/threats.md names tests that are there, and one at least for each fault of version 0.1."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", TEXT)))


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("path", "function"), NAMED)
def test_what_is_named_is_there(path: str, function: str) -> None:
    """A file or folder, and the test in it."""
    assert (ROOT / path).exists()
    assert not function or function in functions(ROOT / path)


def test_each_fault_has_a_test() -> None:
    """F1 to F10."""
    rows = [line for line in TEXT.splitlines() if re.match(r"\| F\d", line)]
    assert {row.split("|")[1].strip() for row in rows} == {f"F{number}" for number in range(1, 11)}
    assert all("::test_" in row for row in rows)
