"""Values as text for people: tables, times, amounts, bars.

Decides how things look in a terminal and outside one. Never asks the service. Invariant: outside a terminal nothing is
cut, coloured or boxed, every row is one line, and no control character of somebody else's text gets through.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, TypeVar

import msgspec

from fairlead import times
from fairlead.core.model.quantities import format_amount, format_amounts
from fairlead.wire.fields import with_vcore

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]")
_ANSI = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
STATE_STYLES = {
    "running": "green",
    "waiting": "yellow",
    "suspended": "yellow",
    "stopping": "yellow",
    "succeeded": "dim",
    "cancelled": "dim",
    "failed": "red",
    "evicted": "red",
    "lost": "red",
    "timed_out": "red",
    "rejected": "red",
}
NONE = "-"
_T = TypeVar("_T")


def plain(text: object) -> str:
    """The text on one line, with control characters shown instead of obeyed."""
    return _CONTROL.sub(lambda m: repr(m.group())[1:-1], str(text))


def width_of(text: str) -> int:
    """Columns that the text takes in a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, keep_end: bool = False) -> str:
    """The text in at most `width` columns, with an ellipsis where something is missing: the end, or the beginning."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        surplus = max(1, (width_of(text) - width + 1) // 2)
        text = text[surplus:] if keep_end else text[:-surplus]
    if width <= 0:
        return ""
    return "…" + text if keep_end else text + "…"


class Screen(msgspec.Struct, frozen=True):
    """What can be written to: `width` None means no limit (not a terminal)."""

    out: IO[str]
    width: int | None = None
    colour: bool = False

    @classmethod
    def of(cls, out: IO[str] | None = None, environ: Mapping[str, str] | None = None, *, wide: bool = False) -> Screen:
        """The screen that a stream is. NO_COLOR and TERM=dumb switch colours off; `wide`: nothing is cut."""
        out, environ = out or sys.stdout, os.environ if environ is None else environ
        terminal = out.isatty()
        colour = terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        return cls(out, _columns() if terminal and not wide else None, colour)

    def line(self, text: str = "") -> None:
        """Write one line."""
        self.out.write(text + "\n")

    def styled(self, text: str, style: str) -> str:
        """The text in a colour, if this screen has colours."""
        return f"\x1b[{_ANSI[style]}m{text}\x1b[0m" if self.colour and style and text else text

    def title(self, text: str) -> None:
        """Write a line that stands above others."""
        self.line(self.styled(text, "bold"))


class Column(msgspec.Struct, frozen=True):
    """One column of a table. `least` set: it may be cut down to that width."""

    title: str
    right: bool = False
    least: int | None = None
    keep_end: bool = False
    """Cut at its beginning: the end tells more."""
    drop: int = 0
    """0: never left out; otherwise columns are left out in this order."""


Columns = Sequence[tuple[Column, Callable[[_T], str]]]
"""The columns of a table of things, each with its text for one of them."""


def _columns() -> int:
    """How wide the terminal is."""
    import shutil  # It takes its time to import, and only a terminal needs it.

    return shutil.get_terminal_size().columns


def table(
    screen: Screen,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    styles: Mapping[str, str] | None = None,
    *,
    header: bool = True,
) -> None:
    """Write rows under their titles (`header`). `styles` gives a style to a whole cell by its text."""
    cells = [[plain(cell) or NONE for cell in row] for row in rows]
    shown = list(range(len(columns)))
    widths = [max([len(c.title), *(width_of(row[i]) for row in cells)]) for i, c in enumerate(columns)]
    if screen.width is not None:
        shown, widths = _fit(columns, widths, screen.width)
    if header:
        screen.title(_row(columns, shown, widths, [c.title for c in columns], {}, None))
    for row in cells:
        screen.line(_row(columns, shown, widths, row, styles or {}, screen))


def _fit(columns: Sequence[Column], widths: list[int], width: int) -> tuple[list[int], list[int]]:
    """Which columns are shown and how wide. First the long ones are cut, then columns are left out, then cut harder."""
    shown, widths = list(range(len(columns))), list(widths)

    def excess() -> int:
        return sum(widths[i] for i in shown) + 2 * (len(shown) - 1) - width

    def shrink(least: Callable[[int], int]) -> None:
        for i in sorted((i for i in shown if columns[i].least is not None), key=lambda i: -widths[i]):
            widths[i] = max(min(widths[i], least(columns[i].least or 0)), widths[i] - max(0, excess()))

    shrink(lambda least: max(least, 24))
    for i in sorted((i for i in shown if columns[i].drop), key=lambda i: columns[i].drop):
        if excess() > 0:
            shown.remove(i)
    shrink(lambda least: least)
    shrink(lambda _least: 3)
    return shown, widths


def _row(
    columns: Sequence[Column],
    shown: Sequence[int],
    widths: Sequence[int],
    row: Sequence[str],
    styles: Mapping[str, str],
    screen: Screen | None,
) -> str:
    parts = []
    for i in shown:
        text = cut(row[i], widths[i], columns[i].keep_end)
        pad = " " * (widths[i] - width_of(text))
        if screen and (style := styles.get(row[i])):
            text = screen.styled(text, style)
        parts.append(pad + text if columns[i].right else text + (pad if i != shown[-1] else ""))
    return "  ".join(parts).rstrip()


def fields(screen: Screen, pairs: Iterable[tuple[str, str]]) -> None:
    """Write `name  value` lines, aligned; lines of a longer value stand below each other. Empty values are left out."""
    kept = [(name, value) for name, value in pairs if value]
    room = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        first, *rest = value.split("\n")
        screen.line(f"{screen.styled(name.ljust(room), 'bold')}  {plain(first)}")
        for line in rest:
            screen.line(f"{'':{room}}  {plain(line)}")


def amounts(values: Mapping[str, int | float] | None) -> str:
    """`cpu 2, gpu 1, memory 4Gi`, sorted; a dash for nothing."""
    return format_amounts(with_vcore(values)) if values else NONE


def amount(name: str, value: int | float) -> str:
    """`2` for cpu, `4Gi` for memory."""
    ((resource, counted),) = with_vcore({name: value}).items()
    return format_amount(resource, counted)


def now_ms() -> int:
    """Milliseconds since 1970 by this clock."""
    return int(time.time() * 1000)


def duration(ms: int | None) -> str:
    """A duration; a dash for None."""
    return NONE if ms is None else times.duration(ms)


def moment(at_ms: int | None) -> str:
    """Local date and time of day; empty for None."""
    return "" if at_ms is None else times.moment(at_ms)


def bar(part: float, width: int) -> str:
    """`####....` for a part between 0 and 1; more than 1 is a full bar."""
    full = min(width, max(0, round(part * width)))
    return "#" * full + "." * (width - full)


def write_value(value: Any, output: str) -> bool:
    """Write what a service said, or any plain value, as `json` or `yaml`, names sorted; False for other formats."""
    if output not in ("json", "yaml"):
        return False
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2).decode() + "\n")
    else:
        import yaml

        yaml.safe_dump(msgspec.to_builtins(value), sys.stdout, allow_unicode=True)
    return True


def write_names(things: Iterable[Any], name: str, output: str) -> bool:
    """Write the name of each, a line each; False for other formats than `name`."""
    if output == "name":
        for each in things:
            print(plain(getattr(each, name)))
    return output == "name"


def write_list(
    output: str,
    things: Iterable[_T],
    columns: Columns[_T],
    *,
    name: str = "name",
    styles: Mapping[str, str] | None = None,
) -> None:
    """Write a list in any format: columns with their texts; `name` is the attribute that `-o name` prints."""
    found = list(things)
    if not write_names(found, name, output) and not write_value(found, output):
        rows = [[text(each) for _, text in columns] for each in found]
        table(Screen.of(wide=output == "wide"), [column for column, _ in columns], rows, styles)
