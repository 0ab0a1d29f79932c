"""Records of a file: what form a file has, and its lines or objects as cells by name.

Decides by the content, not by the name of the file: CSV with its delimiter, columns between blanks, the Standard
Workload Format, accounting logs of PBS, JSON lines, or one JSON document (`objects` makes flat what schedulers write).
Never decides what a column means. Invariant: a source gives the same records each time it is read, one at a time; what
cannot be taken apart is said with its line.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, TextIO

import msgspec

from fairlead.sim.importing.objects import flat_records, form_of
from fairlead.sim.importing.quantities import Unreadable
from fairlead.sim.rows import TraceError, text_of
from fairlead.sim.workloads.swf import FIELDS as SWF_FIELDS

LOOKED_AT = 200
"""Lines by which the form of a file is told."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
Cells = dict[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """One line or object."""

    line: int
    cells: Cells


@dataclass(frozen=True, slots=True)
class Broken:
    """One that cannot be taken apart."""

    line: int
    hint: str


@dataclass(frozen=True, slots=True)
class Records:
    """A file that can be read."""

    path: str
    form: str
    """In words: `CSV with semicolons, in cp1252`."""
    columns: tuple[str, ...]
    read: Callable[[], Iterator[Record | Broken]]


def opened(path: str) -> Records:
    """What a file holds. Raises `TraceError` if that cannot be told, OSError if it cannot be read."""
    encoding = _encoding(path)
    with _text(path, encoding) as file:
        lines = [line.rstrip("\r\n") for line in islice(file, LOOKED_AT)]
    first = next((line.strip() for line in lines if line.strip()), "")
    if not first:
        raise TraceError(path, 1, "", "", "is empty")
    if first[0] in "{[":
        return _json(path, encoding, lines)
    if sum(len(line.split()) == len(SWF_FIELDS) and _is_numbers(line.split()) for line in lines) > len(lines) // 2:
        return _of_lines(path, "Standard Workload Format", _SWF_COLUMNS, encoding, _swf_cells)
    if sum(_PBS.match(line) is not None for line in lines) > len(lines) // 2:
        return _accounting(path, encoding, lines)
    return _table(path, encoding, lines)


_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
"""How files of spreadsheets begin, newer and older ones."""


def _encoding(path: str) -> str:
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as file:
            begin = file.read(2**20)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise TraceError(path, 1, "", "", f"is not whole, or not compressed by gzip: {e}") from None
    if begin.startswith(_SPREADSHEETS):
        raise TraceError(path, 1, "", "", "is a spreadsheet (or an archive), and no text: save it as CSV")
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in begin[:2]:  # The same without the mark at its beginning: what is not ASCII does not come first.
        return "utf-16-le" if begin[1:2] == b"\0" else "utf-16-be"
    try:
        # The last character may be cut in two.
        getincrementaldecoder("utf-8")().decode(begin, final=len(begin) < 2**20)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _text(path: str, encoding: str) -> AbstractContextManager[TextIO]:
    return text_of(path, encoding, newline="")


def _said(form: str, encoding: str) -> str:
    return form if encoding == "utf-8-sig" else f"{form}, in {encoding}"


# -- lines of cells ------------------------------------------------------------------------------------------------


def _table(path: str, encoding: str, lines: Sequence[str]) -> Records:
    delimiter, width = _delimiter(lines)
    if delimiter is None:
        return _between_blanks(path, encoding, lines)
    # What stands above the names (a title, remarks) has fewer cells, or hardly any that is not empty.
    rows = list(csv.reader(lines, delimiter=delimiter))
    skipped = next(
        (n for n, cells in enumerate(rows) if len(cells) == width and 2 * sum(map(bool, cells)) > width), len(rows) - 1
    )
    header = rows[skipped]
    names = _names(header)
    begin = skipped + (names is not None)
    columns = names or tuple(str(n) for n in range(1, width + 1))

    def read() -> Iterator[Record | Broken]:
        with _text(path, encoding) as file:
            reader = csv.reader(file, delimiter=delimiter)
            for _ in range(begin):
                next(reader)
            yield from _matched(reader, columns)

    form = f"CSV with {DELIMITERS[delimiter]}" + ("" if names else ", without names of columns")
    return Records(path, _said(form, encoding), columns, read)


def _matched(reader: Any, columns: Sequence[str]) -> Iterator[Record | Broken]:
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as e:
            yield Broken(reader.line_num, str(e))
            continue
        if cells is None:
            return
        if len(cells) == len(columns):
            yield Record(reader.line_num, dict(zip(columns, map(str.strip, cells), strict=True)))
        elif any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
            yield Broken(reader.line_num, f"has not {len(columns)} cells, as the line of names has")


def _delimiter(lines: Sequence[str]) -> tuple[str | None, int]:
    """What stands between cells and how many there are: what most lines agree on; None: no such sign."""
    best: tuple[float, int, str | None] = (0.0, 1, None)
    for sign in DELIMITERS:
        try:
            widths = Counter(len(cells) for cells in csv.reader(lines, delimiter=sign) if any(cells))
        except csv.Error:
            continue
        width, count = max(widths.items(), key=lambda found: (found[1], found[0]), default=(1, 0))
        if width > 1:
            best = max(best, (count / sum(widths.values()), width, sign), key=lambda found: found[:2])
    return best[2], best[1]


def _names(cells: Sequence[str]) -> tuple[str, ...] | None:
    """The cells as names of columns; None if they are none: numbers or dates, as a row has."""
    names = [cell.strip() for cell in cells]
    if any(re.fullmatch(r"[\d.,:/T+-]+ ?[\d:.Z]*", name) for name in names if name):
        return None
    return tuple(name or f"column {number}" for number, name in _distinct(names))


def _distinct(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    seen: Counter[str] = Counter()
    for number, name in enumerate(names, 1):
        seen[name] += 1
        yield number, name if seen[name] == 1 or not name else f"{name} {seen[name]}"


def _between_blanks(path: str, encoding: str, lines: Sequence[str]) -> Records:
    """Columns that stand below each other (a line of dashes says where), or words."""
    filled = [line for line in lines if line.strip() and not line.startswith("#")]
    if len(filled) > 1 and re.fullmatch(r"[-= ]+", filled[1]):
        spans = [match.span() for match in re.finditer(r"[-=]+", filled[1])]
        names = tuple(name for _, name in _distinct([filled[0][a:b].strip() for a, b in spans]))
        return _of_lines(
            path, "columns below dashes", names, encoding, lambda line: [line[a:b].strip() for a, b in spans]
        )
    found = _names(filled[0].split()) if filled else None
    agree = sum(len(line.split()) == len(filled[0].split()) for line in filled[1:])
    if found is None or len(found) < 2 or 2 * agree < len(filled) - 1:
        hint = "is no table: commas, semicolons, tabs or bars between cells, the same number in each line; or JSON"
        raise TraceError(path, 1, "", "", hint)
    return _of_lines(path, "words between blanks", found, encoding, str.split)


def _of_lines(
    path: str, form: str, columns: Sequence[str], encoding: str, cells_of: Callable[[str], Sequence[str]]
) -> Records:
    names = tuple(columns)

    def read() -> Iterator[Record | Broken]:
        with _text(path, encoding) as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line[0] in "#;" or re.fullmatch(r"[-= \r\n]+", line):
                    continue
                cells = cells_of(line.rstrip("\r\n"))
                if tuple(cells) == names:
                    continue
                if len(cells) == len(names):
                    yield Record(number, dict(zip(names, cells, strict=True)))
                else:
                    yield Broken(number, f"has not {len(names)} cells, as the others have")

    return Records(path, _said(form, encoding), names, read)


_SUBMIT, _WAIT = SWF_FIELDS.index("submit time"), SWF_FIELDS.index("wait time")
_SECONDS = {"submit time": "submit time s", "wait time": "start time s"} | {
    name: f"{name} s" for name in ("run time", "requested time")
}
"""The format says in which unit these are: nothing is to be guessed."""
_SWF_COLUMNS = tuple(_SECONDS.get(name, name) for name in SWF_FIELDS)


def _swf_cells(line: str) -> list[str]:
    """-1 says that something is not known. In the place of the wait stands when it started, as other tables say it."""
    cells = ["" if cell in ("-1", "-1.0", "-1.00") else cell for cell in line.split()]
    known = cells[_SUBMIT : _WAIT + 1]
    cells[_WAIT : _WAIT + 1] = [f"{sum(map(float, known)):.3f}".removesuffix(".000") if _is_numbers(known) else ""]
    return cells


_PBS = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;(?P<what>\w+);(?P<job>[^;]*);(?P<rest>.*)")
"""A line of the accounting of PBS and TORQUE."""


def _accounting(path: str, encoding: str, lines: Sequence[str]) -> Records:
    """Of jobs that ended; the columns are what the first lines say of some."""
    names = tuple(dict.fromkeys(name for line in lines for name in _ended(line)))
    if not names:
        raise TraceError(path, 1, "", "", "is a log of PBS in which no job ended (E) in the first lines")

    def read() -> Iterator[Record]:
        with _text(path, encoding) as file:
            for number, line in enumerate(file, 1):
                if cells := _ended(line):
                    yield Record(number, {name: cells.get(name, "") for name in names})

    return Records(path, _said("accounting log of PBS", encoding), names, read)


def _ended(line: str) -> Cells:
    """What is said of a job that ended; nothing of another line."""
    match = _PBS.match(line)
    if match is None or match["what"] != "E":
        return {}
    pairs = (word.partition("=") for word in match["rest"].split())
    return {"job": match["job"]} | {name: value for name, equals, value in pairs if equals}


def _is_numbers(cells: Iterable[str]) -> bool:
    return all(re.fullmatch(r"-?\d+(\.\d+)?", cell) for cell in cells)


# -- JSON ----------------------------------------------------------------------------------------------------------


class _Document(msgspec.Struct):
    """Where the records of a document stand, in those that schedulers write and some others."""

    jobs: list[msgspec.Raw] = []
    items: list[msgspec.Raw] = []
    applications: list[msgspec.Raw] = []
    rows: list[msgspec.Raw] = []
    records: list[msgspec.Raw] = []
    data: list[msgspec.Raw] = []


def _json(path: str, encoding: str, lines: Sequence[str]) -> Records:
    if _is_json_lines(lines):
        return _of_objects(path, "JSON lines", lambda: _json_lines(path, encoding))
    return _of_objects(path, "JSON", lambda: _document(path, encoding))


def _is_json_lines(lines: Sequence[str]) -> bool:
    filled = [line for line in lines if line.strip()]
    found = [each for line in filled if isinstance(each := _decoded(line), dict)]
    if len(found) == len(filled) == 1:
        return not any(isinstance(found[0].get(name), list) for name in _Document.__struct_fields__)
    return 2 * len(found) > len(filled)


def _json_lines(path: str, encoding: str) -> Iterator[tuple[int, Any]]:
    with _text(path, encoding) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, _decoded(line)


def _decoded(text: str | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as e:
        return Broken(0, f"is not JSON: {e}")


def _document(path: str, encoding: str) -> Iterator[tuple[int, Any]]:
    """The objects of one document, by number: parts of the file as it lies there, which is not read into memory."""
    if path.endswith(".gz") or encoding != "utf-8-sig":
        with _text(path, encoding) as text:
            yield from _parts(path, text.read().encode())
        return
    with Path(path).open("rb") as file:
        # Not closed by hand: the parts that are left refer to it.
        view = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
    yield from _parts(path, view[3:] if bytes(view[:3]) == b"\xef\xbb\xbf" else view)


def _parts(path: str, content: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    try:
        found = msgspec.json.decode(content, type=list[msgspec.Raw] | _Document)
    except msgspec.DecodeError as e:
        raise TraceError(path, 1, "", "", f"is not JSON that is understood: {e}") from None
    if isinstance(found, _Document):
        found = next((rows for rows in msgspec.structs.astuple(found) if rows), [])
    for number, raw in enumerate(found, 1):
        yield number, _decoded(bytes(raw).decode("utf-8", "replace"))


def _of_objects(path: str, form: str, objects: Callable[[], Iterator[tuple[int, Any]]]) -> Records:
    some = [each for _, each in islice(objects(), LOOKED_AT) if isinstance(each, dict)]
    if not some:
        raise TraceError(path, 1, "", "", "holds no objects: a list of them, or one in each line")
    kind = form_of(some[0])

    def read() -> Iterator[Record | Broken]:
        for number, each in objects():
            if isinstance(each, Broken):
                yield Broken(number, each.hint)
            elif not isinstance(each, dict):
                yield Broken(number, "is no object")
            else:
                yield from _of_object(kind, number, each)

    made = (record for each in some for record in _of_object(kind, 0, each) if isinstance(record, Record))
    columns = dict.fromkeys(name for record in made for name in record.cells)
    return Records(path, f"{form} {kind}".strip(), tuple(columns), read)


def _of_object(kind: str, number: int, each: Mapping[str, Any]) -> Iterator[Record | Broken]:
    """The records in an object. Lists of what a cluster has hold objects of other kinds, too."""
    try:
        yield from (Record(number, cells) for cells in list(flat_records(kind, each)))
    except Unreadable as e:
        yield Broken(number, str(e))
    except (LookupError, AttributeError, TypeError, ValueError):
        yield Broken(number, f"is not as those {kind} are")
