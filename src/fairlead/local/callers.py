"""Who asks, and what he may see and do here.

Decides what somebody may do whatever the queues say: all with his own work, everything as an administrator of the
service. What the queues' access lists add is in `fairlead.local.access`. Never finds out who somebody is
(`fairlead.service.identity` does). Invariant: what a caller may not see does not exist for him.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.local.job import Job
from fairlead.runtime import Refusal


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who was recognised."""

    user: str
    uid: int
    is_admin: bool = False
    may_submit: bool = True
    """False where work cannot run as him: a service without root's rights runs work as its own user alone."""
    groups: tuple[str, ...] = ()
    """The names of his groups at the moment, as the system has them."""

    def may_see(self, job: Job) -> bool:
        """Whether all of this job, with what it writes, exists for him."""
        return self.is_admin or job.spec.uid == self.uid

    def require_admin(self, what: str) -> None:
        """Refuse unless he is an administrator."""
        if not self.is_admin:
            raise Refusal("forbidden", f"only administrators may {what}; ask one of them")

    def require_submit(self, runs_as: str) -> None:
        """Refuse where the job could not run as him."""
        if not self.may_submit:
            raise Refusal(
                "forbidden",
                f"this service runs work as {runs_as} alone, and you are {self.user}; start one of your own with "
                f"`fairlead up`, or have it started by root for everybody",
            )
