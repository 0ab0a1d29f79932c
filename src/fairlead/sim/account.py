"""The account of a simulation: every decision as a line, to a file, into a digest, or both.

Decides when lines are passed on. Never changes one (`sim.lines` decides their form). Invariant: the digest is the
SHA-256 of the file that the lines would make, however they were told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TextIO

from fairlead.core.decisions import Decision
from fairlead.sim.lines import lines_of

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
