"""Pages of a list.

Decides where a page begins and what its cursor is: the place in the order of the last thing shown. Never keeps a page.
Invariant: while things come and go, each thing that stays is on one page; when the thing that served as cursor is gone,
the next page goes on at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Query

from fairlead.runtime import Refusal

T = TypeVar("T")
Order = int | str | tuple[int | str, ...]
"""What a thing is sorted by; no two things of a list have the same."""
MOST = 1000
Limit = Annotated[int, Query(ge=1, le=MOST, description="At most so many.")]
After = Annotated[str | None, Query(max_length=2000, description="Go on after this: `next` of the page before.")]


def cut(found: Iterable[T], order: Callable[[T], Any], after: str | None, limit: int) -> tuple[list[T], dict[str, Any]]:
    """A page of what was found, and its `next` and `total`. Raises `Refusal` for a cursor that is none."""
    things = sorted(found, key=order)
    rest = things
    if after is not None:
        begin = _place(after)
        try:
            rest = [thing for thing in things if order(thing) > begin]
        except TypeError:
            raise _no_cursor(after) from None
    page = rest[:limit]
    following = msgspec.json.encode(order(page[-1])).decode() if page and len(rest) > limit else None
    return page, {"next": following, "total": len(things)}


def _place(after: str) -> Any:
    try:
        return msgspec.json.decode(after, type=Order)
    except msgspec.DecodeError:
        raise _no_cursor(after) from None


def _no_cursor(after: str) -> Refusal:
    return Refusal("invalid", f"{after[:60]!r} is no cursor; give `next` of the page before", field="after")
