"""Decisions as lines: when, what, and its fields as JSON.

Decides the one spelling of each decision: milliseconds, the kind in lower case, and an object with the fields by name,
without those that are as they are by default (so the partition is said where it is not the usual one). Never
drops a decision. Invariant: different decisions give different lines, and the digest of an account is the SHA-256 of
the file that its lines would make, however they were told.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TextIO

import msgspec

from fairlead.core.model.decisions import Decision

LINES_AT_A_TIME = 1024
_ENCODER = msgspec.json.Encoder(enc_hook=lambda amount: amount.as_dict(), order="deterministic")
_KINDS: dict[type, tuple[str, tuple[tuple[str, Any], ...]]] = {}
"""Of each kind of decision its name, and its fields with their defaults."""


def decision_line(at_ms: int, decision: Decision) -> bytes:
    """One line with its end."""
    kind: type[Any] = type(decision)
    if kind not in _KINDS:
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
        _KINDS[kind] = name, tuple((f.name, f.default) for f in fields(kind))
    name, declared = _KINDS[kind]
    said = {field: value for field, default in declared if (value := getattr(decision, field)) != default}
    if "reason" in said:
        said["reason"] = said["reason"].as_dict()
    return b"%d %s %s\n" % (at_ms, name.encode(), _ENCODER.encode(said))


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
        text = b"".join([decision_line(at_ms, each) for at_ms, decisions in self._told for each in decisions])
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
