"""What can go wrong with a call.

Decides the kinds that a program tells apart, and how a service's problem becomes one sentence. Never prints. Invariant:
every exception of the client is a `ClientError`, whose text says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.wire.cluster import Problem


class ClientError(Exception):
    """Something went wrong: one sentence (`message`) and further lines (`details`)."""

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message, self.details = message, tuple(details)


class Misconfigured(ClientError):
    """The address, the file that says it, or what is to be sent makes no sense."""


class Unreachable(ClientError):
    """Nothing answers; `started` says whether the request may have arrived all the same."""

    def __init__(self, message: str, started: bool = False) -> None:
        super().__init__(message)
        self.started = started


class _Answered(ClientError):
    """The service answered with a problem (RFC 9457), which is `problem`."""

    def __init__(self, problem: Problem) -> None:
        place = f"{problem.field}: " if problem.field and problem.field not in problem.detail else ""
        lines = [_line(each) for each in problem.details]
        # A single problem is the message already, unless it has a place in a file, too.
        only = problem.details[0] if len(lines) == 1 else {}
        said = bool(only) and not only.get("line") and str(only.get("message", "")) in problem.detail
        super().__init__(place + problem.detail, () if said else lines)
        self.problem, self.status, self.code, self.field = problem, problem.status, problem.code, problem.field


class Refused(_Answered):
    """The service said no (status 4xx): not found, not allowed, invalid."""


class ServiceFailed(_Answered):
    """The service failed (status 5xx)."""


class NoService(ClientError):
    """What answers is no Fairlead service, or makes no sense."""


class Untrusted(NoService):
    """What answers could not show over TLS that it is the service."""


def _line(detail: dict[str, Any]) -> str:
    place = ":".join(str(detail[k]) for k in ("line", "column") if detail.get(k) is not None)
    path = detail.get("path") or detail.get("field") or ""
    weight = "warning" if detail.get("severity") == "warning" else ""
    return ": ".join(str(part) for part in (place, path, weight, detail.get("message", "")) if part)
