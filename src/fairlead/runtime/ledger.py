"""The journal as the writer uses it: one that can take back what it has not yet committed.

Decides nothing about what is recorded. Invariant: after `rollback` the journal goes on from its last durable record, as
if the rest had never been appended.
"""

from __future__ import annotations

from fairlead.journal import tail
from fairlead.journal.store import Journal


class Ledger(Journal):
    """A journal with a way back."""

    def rollback(self) -> None:
        """Drop what waits for a commit; open the file again if a failed write left it unclear. Raises as `Journal`."""
        self._pending.clear()
        if self._broken:
            self.close()
            self.__init__(self.path, keep_snapshots=self._keep)  # type: ignore[misc]
            return
        self.last_seq, self.last_at_ms, self._chain = tail.end(self._connection)
        self.committed_seq = self.last_seq
