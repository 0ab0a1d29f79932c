"""Messages about a job that its user wants: which there are, and which are still to be sent.

Decides when one is due. Never sends it (`deliveries` does). Invariant: a message that is due stays so until a record
says what became of it, over restarts too; so it is sent at least once, and a command is begun at most once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(r".+-\d+\.\d+\.(start|end)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Where a message goes, and at which of `start`, `end` and `fail`; with `parts`, of each part of an array."""

    to: str
    on: tuple[str, ...] = ("end",)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueNotice:
    """A message that is to be sent: by its number among those of the job, what happened, and in which attempt."""

    number: int
    what: str
    attempt: int

    def name(self, key: str) -> str:
        """The name of the run that sends it."""
        return f"{key}-{self.attempt}.{self.number}.{self.what}"


def is_notice(run: str) -> bool:
    """Whether a run of this name sends a message."""
    return _NAME.fullmatch(run) is not None


def due(
    notices: Iterable[Notice], what: str, attempt: int, *, well: bool | None = True, whole: bool | None = True
) -> list[DueNotice]:
    """Those that are due when a job has started, or ended `well` or otherwise; None: it has not.

    `whole`: the same of all that it came with, which is the job itself where it is no part of an array.
    """
    found = []
    for number, notice in enumerate(notices):
        counts = well if "parts" in notice.on else whole
        if counts is not None and (what in notice.on or (what == "end" and not counts and "fail" in notice.on)):
            found.append(DueNotice(number=number, what=what, attempt=attempt))
    return found
