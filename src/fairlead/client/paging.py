"""Pages: how a list is asked for part by part, once for both clients.

Decides which page is asked for next and what is on one. Never sends a call. Invariant: no thing is left out, and none
comes twice.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from fairlead.client.http import Call

T = TypeVar("T")
PAGE = 1000
"""Things in a page of a list, where nothing else is asked for."""


def page_of(call: Call[T], after: str | None, left: int | None) -> Call[T]:
    """The call for the page behind `after`; `left`: how many things are wanted yet."""
    size = PAGE if left is None else min(PAGE, left)
    return msgspec.structs.replace(call, query={**call.query, "limit": size, "after": after})


def things_of(page: Any) -> list[Any]:
    """What is on a page."""
    found: list[Any] = getattr(page, next(name for name in page.__struct_fields__ if name not in ("next", "total")))
    return found
