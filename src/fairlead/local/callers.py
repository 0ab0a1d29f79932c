"""Who asks, and what he may see and do here.

Decides the one rule: a piece of work is the business of its owner and of administrators, and of nobody else. Never
finds out who somebody is (`fairlead.service.identity` does). Invariant: what a caller may not see does not exist for
him.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.local.works import Work
from fairlead.runtime import Refusal


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who was recognised."""

    user: str
    uid: int
    is_admin: bool = False
    may_submit: bool = True
    """False where work cannot run as him: a service without root's rights runs work as its own user alone."""

    def may_see(self, work: Work) -> bool:
        """Whether this work exists for him."""
        return self.is_admin or work.spec.uid == self.uid

    def require_admin(self, what: str) -> None:
        """Refuse unless he is an administrator."""
        if not self.is_admin:
            raise Refusal("forbidden", f"only administrators may {what}; ask one of them")

    def require_submit(self, runs_as: str) -> None:
        """Refuse where the work could not run as him."""
        if not self.may_submit:
            raise Refusal(
                "forbidden",
                f"this service runs work as {runs_as} alone, and you are {self.user}; start one of your own with "
                f"`fairlead up`, or have it started by root for everybody",
            )
