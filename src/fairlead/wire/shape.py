"""What every shape is made of.

Decides that answers may gain fields (an older client reads on) and that requests may not (a misspelt field is no
request). Never knows a field. Invariant: what a request was refused for names the field and says what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A resource, or a part of one, as it is answered."""


class Wrong(ValueError):
    """A field of a request has a value that no type could have refused."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


class Request(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body of a request: no other fields, no converted types."""

    CHECKS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """What a field has to pass beyond its type: gives the value to keep, raises `ValueError` with a sentence."""

    def __post_init__(self) -> None:
        """Check the fields. Raises `Wrong`, which msgspec tells with the place."""
        for name, check in self.CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                try:
                    kept = check(value)
                except Wrong as problem:
                    raise Wrong(f"{name}{problem.field}", problem.message) from None
                except ValueError as problem:
                    raise Wrong(name, str(problem)) from None
                if kept is not value:
                    msgspec.structs.force_setattr(self, name, kept)


class Page(Shape, frozen=True, kw_only=True):
    """One page of a list. `next`: give it as `after` to get the page behind. `total`: how many pass the filters."""

    next: str | None = None
    total: int = 0
