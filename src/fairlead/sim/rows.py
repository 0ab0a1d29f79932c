"""Rows of a file, read by column name: what tables, traces and lists of nodes and faults have in common.

Decides how lines become cells, and how what is wrong with one is said: file, line, column and value. Never decides what
a column means. Invariant: a row has a cell for every column that the first line names; what is no such row is an error.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar, cast

from fairlead.core.model.quantities import QuantityError, parse_quantity
from fairlead.times import duration_ms
from fairlead.wire.fields import shortened

T = TypeVar("T")
LONGEST_MS = 10**15
"""What lasts longer, or is later, could not be added to a moment."""
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


class TraceError(ValueError):
    """A row (or a whole file) that cannot be used."""

    def __init__(self, file: str, line: int, column: str, value: str, hint: str) -> None:
        at = f"{file}:{line}" + (f": column {column}: {value!r}" if column else "")
        super().__init__(f"{at}: {hint}")
        self.file, self.line, self.column, self.value, self.hint = file, line, column, value, hint


@dataclass(frozen=True, slots=True)
class Row:
    """One line."""

    file: str
    line: int
    cells: Mapping[str, str]

    def error(self, column: str, hint: str) -> TraceError:
        """An error at this column."""
        return TraceError(self.file, self.line, column, self.cells.get(column, ""), hint)

    def get(self, column: str) -> str:
        """The cell; empty where there is none."""
        return self.cells.get(column, "")

    def text(self, column: str) -> str:
        """A cell that is not empty. Raises `TraceError`, as all of these."""
        if not self.get(column):
            raise self.error(column, "must not be empty")
        return self.get(column)

    def whole(self, column: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number within bounds; `default` for an empty cell."""
        text = self.get(column)
        if not text and default is not None:
            return default
        if not _WHOLE.fullmatch(text):
            raise self.error(column, f"must be a whole number, {least} to {most}")
        if not least <= int(text) <= most:
            raise self.error(column, f"must be {least} to {most}")
        return int(text)

    def time_ms(self, column: str, further: str = "") -> int:
        """Seconds, or a time such as `90s`, in milliseconds; `further` is what else the error offers."""
        text = self.get(column)
        long = "must be less than 30,000 years"
        try:
            seconds = float(text)
        except ValueError:
            ms = duration_ms(text)
            if ms is None:
                raise self.error(column, f"must be {further}seconds, or a time such as 90s, 10m or 2h") from None
            if ms >= LONGEST_MS:
                raise self.error(column, long) from None
            return ms
        if not (seconds >= 0 and math.isfinite(seconds)):
            raise self.error(column, "must be 0 or more seconds")
        if seconds * 1000 >= LONGEST_MS:
            raise self.error(column, long)
        return round(seconds * 1000)

    def quantity(self, column: str, resource: str) -> int:
        """An amount of this resource; 0 for an empty cell."""
        try:
            return parse_quantity(resource, self.get(column) or "0")
        except QuantityError as e:
            raise self.error(column, e.hint) from None


@contextmanager
def text_of(path: str, encoding: str, newline: str | None = None) -> Iterator[TextIO]:
    """The text of a file (`.gz` too). Raises `TraceError` where what is compressed is cut off or damaged."""
    try:
        with (
            gzip.open(path, "rt", encoding=encoding, errors="replace", newline=newline)
            if path.endswith(".gz")
            else Path(path).open(encoding=encoding, errors="replace", newline=newline)
        ) as file:
            yield cast(TextIO, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise TraceError(path, 1, "", "", f"is not whole, or not compressed by gzip: {e}") from None


def heading(path: str) -> list[str]:
    """The names of the columns of a CSV file; none of an empty one."""
    with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as file:
        try:
            return [name.strip() for name in next(csv.reader(file), [])]
        except csv.Error as e:
            raise TraceError(path, 1, "", "", f"the names of the columns cannot be read: {e}") from None


def csv_rows(path: str, needed: Iterable[str] = ()) -> Iterator[Row | TraceError]:
    """The lines of a CSV file, each as a row or as what is wrong with it; empty lines are passed over.

    Raises `TraceError` if the first line does not name the columns that are `needed`.
    """
    header = heading(path)
    if missing := [name for name in needed if name not in header]:
        said = "does not name" if header else "is empty, and must name"
        raise TraceError(path, 1, "", "", f"the first line {said}: {', '.join(missing)}")
    with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file)
        next(reader, None)
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as e:
                yield TraceError(path, reader.line_num, "", "", str(e))
                continue
            if cells is None:
                return
            if len(cells) == len(header):
                named = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
                yield Row(path, reader.line_num, named)
            elif cells:
                hint = f"has {len(cells)} columns, the first line names {len(header)}"
                yield TraceError(path, reader.line_num, "", "", hint)


def made_of(
    rows: Iterable[Row | TraceError], make: Callable[[Row], T], bad: list[TraceError] | None = None
) -> Iterator[T]:
    """What is made of each row. A bad one raises `TraceError`, or is added to `bad` and left out when that is given."""
    for row in rows:
        try:
            if isinstance(row, TraceError):
                raise row
            made = make(row)
        except TraceError as e:
            if bad is None:
                raise
            bad.append(e)
        else:
            yield made


def only_once(column: str) -> Callable[[Row], str]:
    """A reader of a column in which each text must stand once."""
    lines: dict[str, int] = {}

    def read(row: Row) -> str:
        name = row.text(column)
        if name in lines:
            raise row.error(column, f"is in line {lines[name]} already")
        lines[name] = row.line
        return name

    return read


def sentence(mistake: Exception) -> str:
    """The sentence: of a file its name and what the system says about it, without its number."""
    if not isinstance(mistake, OSError) or not mistake.strerror:
        return shortened(str(mistake))
    what = mistake.strerror.lower()
    if mistake.filename is None:
        return what
    name = mistake.filename.decode(errors="replace") if isinstance(mistake.filename, bytes) else str(mistake.filename)
    return shortened(f"{name or 'an empty name'}: cannot be opened: {what}")
