"""The jobs that wait or run, and how much of the book those of each user take.

Decides nothing. Invariant: the sums of each user are those of its jobs that are in it; a user without jobs has none.
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead.local.history_records import JobChanged, JobSpec
from fairlead.local.job import Job
from fairlead.local.owned_jobs import OwnedJobs


class Taken(NamedTuple):
    """What the live jobs of a user take."""

    jobs: int = 0
    environment: int = 0
    """Characters of all their environments and scripts together."""


class LiveJobs(OwnedJobs):
    """By key, in the order of submission."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: dict[int, Taken] = {}

    def __setitem__(self, key: str, job: Job) -> None:
        super().__setitem__(key, job)
        self._count(job.spec, 1)

    def __delitem__(self, key: str) -> None:
        self._count(self[key].spec, -1)
        super().__delitem__(key)

    def change(self, job: Job, record: JobChanged, at_ms: int) -> None:
        """Somebody wants one of them otherwise; it may take more or less then."""
        self._count(job.spec, -1)
        job.change(record, at_ms)
        self._count(job.spec, 1)

    def taken(self, uid: int) -> Taken:
        """By the jobs of this user."""
        return self._taken.get(uid, Taken())

    def _count(self, spec: JobSpec, more: int) -> None:
        jobs, size = self.taken(spec.uid)
        now = Taken(jobs + more, size + more * environment_size(spec))
        if now.jobs:
            self._taken[spec.uid] = now
        else:
            self._taken.pop(spec.uid, None)


def environment_size(spec: JobSpec) -> int:
    """Characters of names and values, and of its script; of a part of an array its share of them."""
    characters = sum(len(name) + len(value) for name, value in spec.env.items()) + len(spec.script)
    return characters // (1 if spec.index is None else spec.count)
