"""Notes of what work waits for, as it changes: so that its story tells more than that it waited.

Decides which waiting works are looked at when, and which changes are worth a note. Never asks more than a bounded
number of questions at once. Invariant: the number of notes of one work grows with the logarithm of its wait.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fairlead.core.reasons import AttemptHeldBack, NextInLine, Reason, WaitingForVictims
from fairlead.local.records import WorkWaits
from fairlead.local.work import State, Work
from fairlead.local.works import Works

if TYPE_CHECKING:
    from fairlead.runtime import Turn

LOOKED_AT_ONCE = 100
FIRST_AFTER_MS = 1_000
"""What starts sooner has no story of waiting."""
LEAST_GAP_MS = 5_000
GAP_PART = 4
"""A change is noted when this part of the whole wait has passed since the last note."""


class WaitNotes:
    """Goes round all waiting works, some at a time."""

    def __init__(self) -> None:
        self._round: deque[str] = deque()

    def look(self, turn: Turn, works: Works) -> int:
        """Look at the next few; how many notes were made."""
        if not self._round:
            self._round.extend(work.key for work in works.live() if work.state is State.WAITING)
        made = 0
        for _ in range(min(LOOKED_AT_ONCE, len(self._round))):
            work = works.get(self._round.popleft())
            if work is not None and (note := _note(turn, work)) is not None:
                turn.note(note)
                made += 1
        return made


def _note(turn: Turn, work: Work) -> WorkWaits | None:
    waited = turn.now_ms - work.submitted_at_ms
    if work.state is not State.WAITING or waited < FIRST_AFTER_MS:
        return None
    if work.waits_for and turn.now_ms - work.waits_noted_ms < max(LEAST_GAP_MS, waited // GAP_PART):
        return None
    reason = turn.scheduler.why(work.key, work.ask_key)
    if reason is None or isinstance(reason, NextInLine | AttemptHeldBack):
        return None
    subject = _subject(reason)
    if work.waits_for == f"{reason.code} {subject}":
        return None
    return WorkWaits(key=work.key, code=reason.code, subject=subject, sentence=reason.sentence())


def _subject(reason: Reason) -> str:
    """What is in the way, without the numbers that change all the time."""
    if isinstance(reason, WaitingForVictims):
        return " ".join(reason.victims)
    return " ".join(str(getattr(reason, name)) for name in ("kind", "name", "queue") if hasattr(reason, name))
