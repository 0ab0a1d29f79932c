"""What a token may be used for, beside what its user may do: to read, to submit, or for everything; in a queue or all.

Decides which of the three a request needs, and whether one queue is enough, by its method and path. Never looks at who
asks. Invariant: what is not known here needs a token for everything and for all queues, so a new route is never open to
a token that was made for less.
"""

from __future__ import annotations

import re

from fairlead.wire.declarations import TokenScope

WIDTH: dict[TokenScope, int] = {"read": 0, "submit": 1, "administer": 2}
"""A token for one of them is one for those before it, too."""
ASKING = frozenset(
    {
        "/api/v1/whatif",
        "/api/v1/config/check",
        "/api/v1/config/diff",
        "/api/v1/config/compare",
        "/ws/v1/validate-conf",
    }
)
"""Where a POST changes nothing: what is asked about is too long for a query."""
CLEAN = "/api/v1/clean"
OF_JOBS = re.compile(rf"/api/v1/jobs(/[^/]+(/[a-z]+)?)?|{CLEAN}")


def needed(method: str, path: str) -> TokenScope:
    """The least that a token has to be for."""
    if method in ("GET", "HEAD", "OPTIONS") or (method == "POST" and path in ASKING):
        return "read"
    return "submit" if OF_JOBS.fullmatch(path) else "administer"


def is_within_queues(method: str, path: str) -> bool:
    """Whether a token for one queue may be used so: to look, and for what is about single jobs."""
    return needed(method, path) != "administer" and path != CLEAN


def covers(scope: TokenScope, method: str, path: str) -> bool:
    """Whether a token for this may be used so."""
    return WIDTH[needed(method, path)] <= WIDTH[scope]
