"""The ways in which the runtime says no to a caller, each with a sentence that says what to do.

Decides the kinds. Never knows about HTTP: who stands in front turns a `code` into a status. Invariant: whoever gets one
of these knows that nothing was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Refusal(Exception):
    """A request that is not done, and why.

    `code` is a fixed word for programs (`not-found`, `forbidden`, `invalid`, `conflict`, `unavailable`, ...), `field`
    the path of the offending value in the request, `details` further problems of the same kind.
    `after_s`: seconds after which it makes sense to try again, where it is about that.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        details: Sequence[Mapping[str, Any]] = (),
        after_s: int = 1,
    ) -> None:
        super().__init__(message)
        self.after_s = after_s
        self.code, self.message, self.field, self.details = code, message, field, list(details)

    def __reduce__(self) -> tuple[Any, ...]:
        # It goes from the process that answers a question to the one that asks.
        return Refusal, (self.code, self.message), self.__dict__


class Unavailable(Refusal):
    """Not now: the journal cannot be written, or the service is going down. Nothing was recorded."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


class InternalFault(Refusal):
    """A fault in the program stopped this request; the books were put back to what they were before it."""

    def __init__(self, message: str) -> None:
        super().__init__("internal", message)
