"""The course of a simulation as a journal: what the scheduler was told, when, and what it decided.

Decides how often what was taken down is written out. Never changes the simulation. Invariant: the file is a journal
like that of a service, so that whatever reads one (`journal`, `sim view`) reads it; one that is there already is never
written to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Event
from fairlead.journal import codec
from fairlead.journal.format import EVENT, SCHEDULE, JournalError
from fairlead.journal.store import Journal

AT_ONCE = 5_000
"""Records that are written out together."""


class JournalRecorder:
    """Takes a course down (`virtual_time.Recorder`)."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def event(self, now_ms: int, event: Event, decisions: Sequence[Decision]) -> None:
        """What it was told. Raises `JournalError`."""
        self._append(now_ms, EVENT, codec.encode(event), decisions)

    def run(self, now_ms: int, limit: int | None, decisions: Sequence[Decision]) -> None:
        """A run, also one that decided nothing: timers may have acted. Raises `JournalError`."""
        self._append(now_ms, SCHEDULE, codec.encode_plain({"limit": limit}), decisions)

    def _append(self, now_ms: int, kind: str, payload: bytes, decisions: Sequence[Decision]) -> None:
        self._journal.append(now_ms, kind, payload, codec.encode_all(decisions))
        if self._journal.pending >= AT_ONCE:
            self._journal.commit()


@contextmanager
def recording(path: Path) -> Iterator[JournalRecorder]:
    """A recorder into a new file, which is whole at the end of the block; where that fails there is none.

    Raises `JournalError`.
    """
    if path.exists():
        raise JournalError(f"{path} is there already; name a new file to record to")
    journal = Journal(path)
    try:
        with journal:
            yield JournalRecorder(journal)
    except Exception:
        path.unlink(missing_ok=True)  # Or it would be in the way of the next attempt.
        raise
    finally:
        # Nobody writes to it any more; its mark of how far that went would call it lost work when the file is removed.
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
