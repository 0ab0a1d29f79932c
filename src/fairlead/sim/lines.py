"""Decisions as lines: one readable, canonical line for each, the same bytes for the same decisions.

Decides the form alone: `TIME NAME field=value ...`, fields in their order of declaration, empty ones left out, texts
that could be misread quoted as JSON; the partition is said at the end, unless it is the usual one. Never drops a
decision. Invariant: different decisions give different lines, and the digest of an account is the SHA-256 of the file
that its lines would make, however they were told.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, TextIO

import msgspec

from fairlead.core.model.decisions import Decision
from fairlead.core.model.reasons import Reason
from fairlead.core.model.specs import DEFAULT_PARTITION

_PLAIN = re.compile(r"[A-Za-z0-9_./:@#|+-]+")
_PLAIN_LINES = b"".join(bytes([c]) for c in range(128) if _PLAIN.fullmatch(chr(c))) + b" =\n"
"""What lines consist of that have plain texts only."""


class _Kind:
    """One kind of decision: its name, its fields, and ready forms for when all of its texts are plain."""

    __slots__ = ("fields", "forms", "full", "is_elsewhere", "name", "values")

    def __init__(self, kind: type) -> None:
        declared = fields(kind)
        self.is_elsewhere = any(f.name == "partition" and f.default == DEFAULT_PARTITION for f in declared)
        """Whether it may belong to another partition than the usual one, which is then said at the end."""
        if self.is_elsewhere:
            declared = tuple(f for f in declared if f.name != "partition")
        self.name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
        self.fields = [(f.name, attrgetter(f.name)) for f in declared]
        texts = len(declared) > 1 and all(f.type in ("str", "Cause") for f in declared)
        self.values: Callable[[Any], tuple[str, ...]] | None = (
            attrgetter(*(f.name for f in declared)) if texts else None
        )
        self.forms: dict[tuple[bool, ...], str] = {}
        """By which texts are there, the line without the time, to be filled in."""
        self.full = self.form((True,) * len(declared))

    def form(self, there: tuple[bool, ...]) -> str:
        """The form of a line with these texts."""
        parts = [f"{name}=%s" if given else "%.0s" for (name, _), given in zip(self.fields, there, strict=True)]
        gaps = ["" if part == "%.0s" else " " for part in parts]
        form = self.forms[there] = f" {self.name}" + "".join(g + p for g, p in zip(gaps, parts, strict=True))
        return form


_KINDS: dict[type, _Kind] = {}


def decision_line(at_ms: int, decision: Decision) -> str:
    """One line without a line end: when (milliseconds), what, and its fields."""
    kind = _KINDS.get(type(decision))
    if kind is None:
        kind = _KINDS[type(decision)] = _Kind(type(decision))
    if kind.values is not None:
        values = kind.values(decision)
        if _PLAIN.fullmatch("".join(values)):
            if all(values):
                line = f"{at_ms}{kind.full % values}"
            else:
                there = tuple(map(bool, values))
                line = f"{at_ms}{(kind.forms.get(there) or kind.form(there)) % values}"
            if kind.is_elsewhere and decision.partition != DEFAULT_PARTITION:  # type: ignore[union-attr]
                line += _elsewhere(decision)
            return line
    parts = [f"{at_ms} {kind.name}"]
    for name, get in kind.fields:
        value = get(decision)
        if value != "" and value != ():
            parts.append(f"{name}={_text(value)}")
    line = " ".join(parts)
    return line + _elsewhere(decision) if kind.is_elsewhere else line


def lines_of(told: Sequence[tuple[int, Sequence[Decision]]]) -> bytes:
    """The lines of many decisions, each with its line end: what `decision_line` says, said at once.

    Whether all texts were plain is seen afterwards, by counting what stands between them.
    """
    done: list[bytes] = []
    quick: list[str] = []
    shown = 0
    for at_ms, decisions in told:
        for decision in decisions:
            kind = _KINDS.get(type(decision))
            if (
                kind is None or kind.values is None or (kind.is_elsewhere and decision.partition != DEFAULT_PARTITION)  # type: ignore[union-attr]
            ):
                done += (_joined(quick, shown), f"{decision_line(at_ms, decision)}\n".encode())
                quick, shown = [], 0
                continue
            values = kind.values(decision)
            if all(values):
                quick.append(f"{at_ms}{kind.full % values}")
                shown += len(values)
            else:
                there = tuple(map(bool, values))
                quick.append(f"{at_ms}{(kind.forms.get(there) or kind.form(there)) % values}")
                shown += sum(there)
    done.append(_joined(quick, shown))
    if _NOT_PLAIN in done:
        return "".join(f"{decision_line(at_ms, each)}\n" for at_ms, decisions in told for each in decisions).encode()
    return b"".join(done)


_NOT_PLAIN = b"\0"


def _joined(lines: list[str], shown: int) -> bytes:
    """Lines that show so many texts, with their ends; `_NOT_PLAIN` if some text has to be quoted."""
    if not lines:
        return b""
    text = ("\n".join(lines) + "\n").encode()
    is_plain = (
        text.count(b"=") == shown
        and text.count(b" ") == shown + len(lines)
        and text.count(b"\n") == len(lines)
        and not text.translate(None, _PLAIN_LINES)
    )
    return text if is_plain else _NOT_PLAIN


def _elsewhere(decision: Any) -> str:
    partition = decision.partition
    return "" if partition == DEFAULT_PARTITION else f" partition={_text(partition)}"


def _text(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    plain = value.as_dict() if isinstance(value, Reason) else value
    return msgspec.json.encode(plain, order="sorted").decode()


LINES_AT_A_TIME = 1024


class Account:
    """Takes decisions down as they are made."""

    __slots__ = ("_count", "_digest", "_file", "_told", "wanted")

    def __init__(self, digest: bool, file: TextIO | None) -> None:
        self._digest = hashlib.sha256() if digest else None
        self._file = file
        self._told: list[tuple[int, Sequence[Decision]]] = []
        """Told, and not passed on yet."""
        self._count = 0
        self.wanted = digest or file is not None
        """Somebody reads it; if not, telling is wasted."""

    def tell(self, now_ms: int, decisions: Sequence[Decision]) -> None:
        """What was decided at a moment. The list must stay as it is."""
        self._told.append((now_ms, decisions))
        self._count += len(decisions)
        if self._count >= LINES_AT_A_TIME:
            self.pass_on()

    def pass_on(self) -> None:
        """Bring file and digest up to date."""
        if not self._told:
            return
        text = lines_of(self._told)
        self._told.clear()
        self._count = 0
        if self._file is not None:
            self._file.write(text.decode())
        if self._digest is not None:
            self._digest.update(text)

    @property
    def digest(self) -> str:
        """Of everything told so far, in hex; empty if it is not wanted."""
        self.pass_on()
        return self._digest.hexdigest() if self._digest is not None else ""
