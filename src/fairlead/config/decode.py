"""Nodes to typed values: every wrong type and duplicate is found, and held with its place and what to do.

Decides how each kind of value may be written (after YuniKorn's reader: a number is text where text is wanted, `yes` is
true where a truth value is wanted). Never knows what a key means. A value that cannot be read is reported and replaced
by its default, so that the rest is still checked. Invariant: every value handed out has its node in `places`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from fairlead.config.yamltree import Node
from fairlead.core.model.properties import parse_duration_ms
from fairlead.core.model.quantities import QuantityError, parse_quantity
from fairlead.core.model.resources import Limits

ERROR = "error"
WARNING = "warning"

SHOWN_AT_MOST = 50
"""Problems printed by `str(ConfigurationError)`; the exception itself holds all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding. Line and column count from 1."""

    source: str
    line: int
    column: int
    path: str
    """Where in the structure, such as `partitions[0].queues[0].resources.max.vcore`; empty for the whole text."""
    value: str = ""
    """The offending value as text."""
    message: str
    """What is wrong and what to do."""
    severity: str = ERROR
    """`error` or `warning`; a file with warnings alone loads."""

    def __str__(self) -> str:
        place = f" {self.path}:" if self.path else ""
        note = "" if self.severity == ERROR else f" {self.severity}:"
        return f"{self.source}:{self.line}:{self.column}:{place}{note} {self.message}"

    def as_dict(self) -> dict[str, str | int]:
        """The fields for JSON."""
        return asdict(self)


class ConfigurationError(ValueError):
    """A queue file that cannot be used; `problems` holds everything that was found, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [str(problem) for problem in self.problems[:SHOWN_AT_MOST]]
        rest = len(self.problems) - len(shown)
        super().__init__("\n".join([*shown, f"... and {rest} more"] if rest > 0 else shown))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that stop the file from being used."""
        return tuple(problem for problem in self.problems if problem.severity == ERROR)

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[tuple[Problem, ...]]]:
        return (ConfigurationError, (self.problems,))


def in_text_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sorted by line, then column, then as found; what two checks say of one place in the same words is said once."""
    once: dict[tuple[object, ...], Problem] = {}
    for problem in sorted(problems, key=lambda p: (p.source, p.line, p.column)):
        place = (problem.source, problem.line, problem.column, problem.path)
        once.setdefault((*place, problem.message, problem.severity), problem)
    return list(once.values())


T = TypeVar("T")

_TRUE = {"true", "True", "TRUE", "y", "Y", "yes", "on"}
_FALSE = {"false", "False", "FALSE", "n", "N", "no", "off"}
_ONLY_PLAIN = {"true", "True", "TRUE", "false", "False", "FALSE"}
TRUTH_WORDS = (_TRUE | _FALSE) - _ONLY_PLAIN
"""Texts that mean true or false even in quotation marks."""
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_STEP = re.compile(r"[.\[]")
_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_NUMBER = 400
_SUGGESTED_AT_MOST = 200
_UINT64_MAX = 2**64 - 1


class Findings:
    """Collects problems; knows the place of every path of the text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.places: dict[str, Node] = {}
        self.problems: list[Problem] = []
        self._at: set[str] = set()
        self._above: set[str] = set()
        """Paths with a problem, and those with one somewhere below."""

    def add(self, path: str, message: str, *, severity: str = ERROR, at: Node | None = None) -> None:
        """Report a problem at `path` (or the nearest place above it that the text has), or at the node `at`."""
        node = at or self._nearest(path)
        exact = at is not None or path in self.places
        self._at.add(path)
        self._above.update(path[: sign.start()] for sign in _STEP.finditer(path))
        self.problems.append(
            Problem(
                source=self.source,
                line=node.line if node else 1,
                column=node.column if node else 1,
                path=path,
                value=node.shown() if node and exact else "",
                message=message,
                severity=severity,
            )
        )

    def warn(self, path: str, message: str, at: Node | None = None) -> None:
        """Report something that loads, but probably not as meant."""
        self.add(path, message, severity=WARNING, at=at)

    def any_below(self, path: str) -> bool:
        """Whether there is a problem somewhere below a path."""
        return path in self._above

    def any_at(self, path: str) -> bool:
        """Whether there is a problem at a path itself."""
        return path in self._at

    def forget(self) -> None:
        """Begin anew; the places stay."""
        self.problems.clear()
        self._at.clear()
        self._above.clear()

    def did_you_mean(self, word: str, known: Collection[str]) -> str:
        """`; did you mean X?` when a known word is close, else nothing. Searched for the first problems only."""
        if len(word) > 80 or len(self.problems) > _SUGGESTED_AT_MOST:
            return ""
        close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
        return f"; did you mean {close[0]}?" if close else ""

    def _nearest(self, path: str) -> Node | None:
        while path and path not in self.places:
            cut = max(path.rfind("."), path.rfind("["))
            path = path[: max(cut, 0)]
        return self.places.get(path)

    @property
    def failed(self) -> bool:
        """Whether there is an error among them."""
        return any(problem.severity == ERROR for problem in self.problems)


Reader = Callable[[Findings, Node, str], Any]


def child_path(path: str, key: str) -> str:
    """`path.key`, or `path["odd key"]` where the key is not a plain word."""
    if _SIMPLE_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


def wrong(found: Findings, node: Node, path: str, wanted: str) -> None:
    """Report that a value is of another kind than is wanted."""
    seen = f"'{node.shown()}'" if node.kind == "text" else node.shown()
    found.add(path, f"needs {wanted}, not {seen}", at=node)


def read_text(found: Findings, node: Node, path: str) -> str:
    """Any scalar as it was written; empty for null."""
    if node.kind != "text":
        wrong(found, node, path, "a text")
        return ""
    return "" if node.is_null else node.text


def read_truth(found: Findings, node: Node, path: str) -> bool:
    """true or false; `yes`, `on`, `no`, `off` count too; false for null."""
    if node.is_null:
        return False
    readable = node.kind == "text" and (node.plain or node.text not in _ONLY_PLAIN)
    if readable and node.text in _TRUE:
        return True
    if not readable or node.text not in _FALSE:
        wrong(found, node, path, "true or false (without quotes)")
    return False


def _number(node: Node) -> int | float | None:
    """What a plain scalar means as a number; None when it is none. `010` is eight, `1_000` a thousand."""
    text = node.text.replace("_", "")
    if node.kind != "text" or not node.plain or len(text) > _LONGEST_NUMBER:
        return None
    whole = _WHOLE.fullmatch(text)
    if whole:
        digits = whole[2].lower()
        old_octal = digits.startswith("0") and digits.isdigit() and len(digits) > 1
        value = int(digits, 8) if old_octal else int(digits, 0)
        return -value if whole[1] == "-" else value
    return float(text) if _DECIMAL.fullmatch(text) else None


def read_count(found: Findings, node: Node, path: str) -> int:
    """A whole number from 0 to 2**64 - 1; 0 for null. A fraction is cut off with a warning."""
    if node.is_null:
        return 0
    value = _number(node)
    if value is None or value < 0 or value > _UINT64_MAX:
        wrong(found, node, path, "a whole number, 0 or more (without quotes)")
        return 0
    if value != int(value):
        found.warn(path, f"{node.text} is read as {int(value)}; write a whole number", at=node)
    else:
        _warn_of_zero(found, node, path, int(value))
    return min(int(value), _UINT64_MAX)


def _warn_of_zero(found: Findings, node: Node, path: str, value: int) -> None:
    """Digits that begin with 0 may mean another number than they show."""
    if node.text.isdigit() and node.text.startswith("0") and node.text != str(value):
        found.warn(path, f"{node.text} is read as {value}, because it starts with 0; write {value}", at=node)


def read_integer(found: Findings, node: Node, path: str) -> int:
    """A whole number, also below 0; 0 for null."""
    value = 0 if node.is_null else _number(node)
    if not isinstance(value, int):
        wrong(found, node, path, "a whole number (without quotes)")
        return 0
    _warn_of_zero(found, node, path, value)
    return value


def read_duration(found: Findings, node: Node, path: str) -> int:
    """A duration such as `90s` or `1h30m`, in milliseconds; 0 for null."""
    if node.is_null:
        return 0
    found_ms = parse_duration_ms(node.text) if node.kind == "text" else None
    if found_ms is None:
        wrong(found, node, path, "a positive duration with units, such as 30s, 1h30m or 7d")
    return found_ms or 0


def read_bound(found: Findings, node: Node, path: str) -> int | str | None:
    """A whole number, or a text such as `50%`; None for null."""
    if node.is_null:
        return None
    value = _number(node)
    if not isinstance(value, int):
        return read_text(found, node, path)
    _warn_of_zero(found, node, path, value)
    return value


def read_float(found: Findings, node: Node, path: str) -> float:
    """A finite number; 0 for null."""
    if node.is_null:
        return 0.0
    value = _number(node)
    if value is None or not -1e300 < value < 1e300:
        wrong(found, node, path, "a number (without quotes)")
        return 0.0
    return float(value)


def entries(found: Findings, node: Node, path: str, of_what: str) -> Iterator[tuple[str, Node]]:
    """The nodes of a list with their paths; entries that are null are skipped with a warning."""
    if node.is_null:
        return
    if node.kind != "list":
        wrong(found, node, path, f"a list of {of_what}")
        return
    for index, item in enumerate(node.items):
        at = f"{path}[{index}]"
        found.places[at] = item
        if item.is_null:
            found.warn(at, "an empty entry, skipped; remove the dash or fill it in", at=item)
        else:
            yield at, item


def read_texts(found: Findings, node: Node, path: str) -> tuple[str, ...]:
    """A list of texts; a null entry is skipped with a warning."""
    return tuple(read_text(found, item, at) for at, item in entries(found, node, path, "texts"))


def merged(found: Findings, node: Node, path: str) -> dict[str, tuple[Node, Node]]:
    """The entries of a mapping by key, with `<<` merged in below the mapping's own; duplicates are reported."""
    own: dict[str, tuple[Node, Node]] = {}
    below: dict[str, tuple[Node, Node]] = {}
    merges = 0
    for key, value in node.pairs():
        if key.is_merge_key:
            merges += 1
            if merges > 1:
                found.add(path, "a second << in one mapping; merge a list: <<: [*a, *b]", at=key)
            for name, entry in _mergeentries(found, value, path).items():
                below.setdefault(name, entry)
        elif key.kind != "text" or key.is_null:
            found.add(path, f"a key must be a text, not {'empty' if key.is_null else key.shown()}", at=key)
        elif key.text in own:
            first = own[key.text][0]
            found.add(
                child_path(path, key.text),
                f"the key {key.shown()} is already there in line {first.line}; keep one of them",
                at=key,
            )
        else:
            own[key.text] = (key, value)
    return own | {name: entry for name, entry in below.items() if name not in own}


def _mergeentries(found: Findings, value: Node, path: str) -> dict[str, tuple[Node, Node]]:
    sources = value.items if value.kind == "list" else [value]
    entries: dict[str, tuple[Node, Node]] = {}
    for source in sources:
        if source.kind != "mapping":
            found.add(path, "<< merges a mapping or a list of mappings, such as <<: *name", at=source)
            continue
        for name, entry in merged(found, source, path).items():
            entries.setdefault(name, entry)
    return entries


def _read_map(
    found: Findings, node: Node, path: str, reader: Callable[[Findings, Node, str], T], of_what: str
) -> dict[str, T]:
    if node.is_null:
        return {}
    if node.kind != "mapping":
        wrong(found, node, path, f"a mapping of {of_what}")
        return {}
    values: dict[str, T] = {}
    for name, (_, value) in merged(found, node, path).items():
        at = child_path(path, name)
        found.places[at] = value
        values[name] = reader(found, value, at)
    return values


def read_text_map(found: Findings, node: Node, path: str) -> dict[str, str]:
    """Any keys, texts as values."""
    return _read_map(found, node, path, read_text, "names to texts")


def read_float_map(found: Findings, node: Node, path: str) -> dict[str, float]:
    """Any keys, numbers as values."""
    return _read_map(found, node, path, read_float, "names to numbers")


def read_limits(found: Findings, node: Node, path: str) -> Limits | None:
    """Resource names to quantities; None for null. An unreadable one is reported and left out."""
    if node.is_null:
        return None
    amounts: dict[str, int] = {}
    for name, text in _read_map(found, node, path, read_text, "resource names to quantities").items():
        try:
            amounts[name] = _quantity(name, text)
        except QuantityError as error:
            found.add(child_path(path, name), f"{error.kind}: '{text[:60]}' for {name}; {error.hint}")
    return Limits(amounts)


def _quantity(name: str, text: str) -> int:
    if not text.isascii():
        raise QuantityError("invalid quantity", name, text, "only ASCII digits count")
    try:
        return parse_quantity(name, text)
    except QuantityError:
        raise
    except ValueError as error:
        raise QuantityError("invalid quantity: overflow", name, text, "the number has too many digits") from error
