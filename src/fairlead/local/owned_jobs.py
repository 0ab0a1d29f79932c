"""Jobs by key, and those of each user.

Decides nothing. So what one user may see of the book is found without a look at everybody's. Invariant: the jobs of a
user are those of the book that it owns, in the same order; a user without jobs has no entry.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.local.job import Job


class OwnedJobs(dict[str, Job]):
    """By key, in the order in which they came. A key is taken out before it comes again."""

    def __init__(self) -> None:
        super().__init__()
        self._of: dict[int, dict[str, Job]] = {}

    def __setitem__(self, key: str, job: Job) -> None:
        super().__setitem__(key, job)
        self._of.setdefault(job.spec.uid, {})[key] = job

    def __delitem__(self, key: str) -> None:
        uid = self[key].spec.uid
        mine = self._of[uid]
        del mine[key]
        if not mine:
            del self._of[uid]
        super().__delitem__(key)

    def of(self, uid: int) -> Iterable[Job]:
        """Those of this user."""
        mine = self._of.get(uid)
        return mine.values() if mine is not None else ()
