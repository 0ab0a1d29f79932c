"""The tables of `docs/coming-from`, read from the pages.

A row has three cells: what is typed elsewhere, what is typed here (commands, or nothing), and how they stand to each
other: `same`, `other word`, or `not`, and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from fairlead.cli.main import app

PAGES = Path(__file__).resolve().parents[2] / "docs" / "coming-from"
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    """One row, with its place."""

    page: str
    line: int
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    how: str
    why: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_here(self) -> bool:
        return self.how != "not"


def rows(page: str) -> list[Row]:
    """All rows with a verdict; other tables of the page are passed over."""
    found = []
    for number, line in enumerate((PAGES / f"{page}.md").read_text().splitlines(), 1):
        cells = [each.strip().replace("\\|", "|") for each in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and (verdict := re.match("same|other word|not", cells[2])):
            theirs, ours = (tuple(_CODE.findall(cell)) for cell in cells[:2])
            found.append(Row(page, number, theirs, ours, verdict[0], cells[2]))
    return found


def pages() -> list[str]:
    return sorted(path.stem for path in PAGES.glob("*.md"))


def codes(text: str) -> list[str]:
    return _CODE.findall(text)


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that these words of a command line name, and the rest of them."""
    found: Any = app
    assert words[0] == "fairlead", words
    rest = words[1:]
    while isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        found = found.get_command(click.Context(found), rest[0])
        assert found is not None, f"there is no command {words}"
        rest = rest[1:]
    return found, rest


def unknown_options(words: list[str]) -> list[str]:
    """The options before `--` that the command does not have."""
    command, rest = command_of(words)
    known = {text for each in command.params for text in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
    typed = rest[: rest.index("--")] if "--" in rest else rest
    with_value = {
        text
        for each in command.params
        if isinstance(each, click.Option) and not each.is_flag
        for text in (*each.opts, *each.secondary_opts)
    }
    options = [
        word for before, word in pairwise(["", *typed]) if before not in with_value and re.match("--?[a-z]", word)
    ]
    return [word for word in options if word.partition("=")[0] not in known]


def every_option() -> set[str]:
    """Of all commands."""
    found, waiting = {"--help"}, [app]
    while waiting:
        command: Any = waiting.pop()
        found |= {text for each in command.params for text in (*each.opts, *each.secondary_opts)}
        if isinstance(command, click.Group):
            waiting += [command.get_command(click.Context(command), name) for name in command.list_commands(None)]  # type: ignore[arg-type]
    return found
