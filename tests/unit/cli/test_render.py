"""Values as text."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from fairlead.cli import render
from fairlead.cli.render import Column, Screen, table

COLUMNS = (
    Column("KEY"),
    Column("NAME", least=6),
    Column("EXTRA", drop=1),
    Column("N", right=True),
    Column("WHY", least=8),
)


def drawn(rows: Sequence[Sequence[str]], width: int | None = None, colour: bool = False) -> list[str]:
    out = io.StringIO()
    table(Screen(out, width, colour), COLUMNS, rows, {"bad": "red"})
    return out.getvalue().splitlines()


def test_a_table_is_aligned() -> None:
    """Text to the left, numbers to the right, two spaces between."""
    assert drawn([["1", "a", "x", "10", "why"], ["22", "long", "", "9", ""]]) == [
        "KEY  NAME  EXTRA   N  WHY",
        "1    a     x      10  why",
        "22   long  -       9  -",
    ]


def test_nothing_is_cut_without_a_terminal() -> None:
    """Scripts see all of it."""
    assert drawn([["1", "n" * 300, "x", "1", "w" * 300]])[1].count("w") == 300


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Long cells are cut with an ellipsis, then columns are left out."""
    lines = drawn([["1", "n" * 50, "extra" * 5, "12345", "w" * 300]], width)
    assert max(map(len, lines)) <= width
    assert "…" in lines[1]


def test_a_column_is_left_out_before_others_become_unreadable() -> None:
    """The one marked for it goes, the others stay."""
    assert "EXTRA" not in drawn([["1", "n" * 40, "e" * 30, "1", "w" * 90]], 70)[0]
    assert "EXTRA" in drawn([["1", "n" * 40, "e" * 30, "1", "w" * 90]], 100)[0]


def test_control_characters_of_others_are_shown_not_obeyed() -> None:
    """A name cannot clear the screen or break a line."""
    line = drawn([["1", "a\x1b[2Jb\nc\u202e", "x", "1", ""]])
    assert len(line) == 2
    assert r"a\x1b[2Jb\nc\u202e" in line[1]


def test_wide_characters_count_twice() -> None:
    """Columns stay aligned under them."""
    first, second = drawn([["1", "名前", "x", "1", ""], ["1", "abcd", "x", "1", ""]])[1:]
    assert first.index("x") == second.index("x") - 2
    assert render.width_of(first.split("x", maxsplit=1)[0]) == len(second.split("x", maxsplit=1)[0])


def test_colour_only_where_asked_for() -> None:
    """A cell of that text is coloured, and stays aligned."""
    assert "\x1b[31mbad\x1b[0m" in drawn([["bad", "a", "x", "1", "w"]], colour=True)[1]
    assert "\x1b" not in "".join(drawn([["bad", "a", "x", "1", "w"]]))


def test_no_color_is_respected() -> None:
    """Also on a terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert Screen.of(Terminal(), {}).colour
    assert not Screen.of(Terminal(), {"NO_COLOR": "1"}).colour
    assert not Screen.of(Terminal(), {"TERM": "dumb"}).colour
    assert Screen.of(io.StringIO(), {}).width is None


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "-"),
        (0, "0.0s"),
        (400, "0.4s"),
        (12_345, "12s"),
        (185_000, "3m 5s"),
        (3_720_000, "1h 2m"),
        (183_600_000, "2d 3h"),
        (-50, "0.0s"),
    ],
)
def test_durations_are_short(ms: int | None, text: str) -> None:
    """Two units at most."""
    assert render.duration(ms) == text


def test_amounts_are_named_as_people_name_them() -> None:
    """Cores, and memory in the units that people write."""
    assert render.amounts({"cpu": 1.5, "memory": 2**30, "gpu": 1}) == "cpu 1.5, gpu 1, memory 1Gi"
    assert render.amounts({}) == "-"


def test_a_bar_never_leaves_its_width() -> None:
    """More than full is full."""
    assert [render.bar(part, 4) for part in (-1, 0, 0.5, 1, 7)] == ["....", "....", "##..", "####", "####"]


def test_fields_without_a_value_are_left_out() -> None:
    """The others stay aligned, more lines stand below each other."""
    out = io.StringIO()
    render.fields(Screen(out), [("a", "1"), ("empty", ""), ("long", "x\ny")])
    assert out.getvalue().splitlines() == ["a     1", "long  x", "      y"]
