"""The page about comparing queue files: its files are written, its commands are run, its output is what comes out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "decide.md"
_BLOCK = re.compile(r"^```(\w+)(?: +(\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown(expected: str) -> re.Pattern[str]:
    """What output a page stands for: `...` on a line of its own is any lines, within a line any text."""
    parts = []
    for line in expected.rstrip("\n").split("\n"):
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(part) for part in line.split("...")) + r" *\n")
    return re.compile("".join(parts))


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", [0, 1, 2])
def test_the_page_tells_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    """From the first block to the last, in an empty folder, as a reader would; each third command, since all of them
    take long.
    """
    monkeypatch.chdir(tmp_path)
    commands = 0
    for kind, name, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "console":
            commands += 1
            if commands % 3 != part:
                continue
            command, _, expected = text.partition("\n")
            words = shlex.split(command.removeprefix("$ fairlead "))
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, result.output
            assert shown(expected).fullmatch(result.stdout), f"{command}\n{result.stdout}"
        else:
            Path(name).write_text(text, encoding="utf-8")
    assert commands == PAGE.read_text(encoding="utf-8").count("$ fairlead ")
    if part == 0:
        assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_wrong_page_would_be_found() -> None:
    """The pattern is not one that takes anything."""
    assert shown("a ... c\n...\nend\n").fullmatch("a b c\nx\ny\nend\n")
    assert not shown("a ... c\n...\nend\n").fullmatch("a b d\nx\nend\n")
    assert not shown("a\nend\n").fullmatch("a\nx\nend\n")
