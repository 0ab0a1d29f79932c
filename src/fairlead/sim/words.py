"""The words that every step of a scenario is made of: names, numbers within their range, amounts.

Decides what counts as such a word. Never knows a step. Invariant: a value that passes is within the range that the
scheduler takes.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN

Priority = Annotated[int, msgspec.Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
Some = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Millis = Annotated[int, msgspec.Meta(ge=0, le=10**13)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Amounts = dict[str, int]


class ScenarioError(ValueError):
    """A scenario that cannot be run as it stands; the text says where and why."""


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A value inside a step."""


class Step(Words, frozen=True, tag_field="op", kw_only=True):
    """What every step may carry; both fields matter only where a real clock runs."""

    no_settle: bool = False
    real: bool = False
