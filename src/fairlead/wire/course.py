"""A recorded course that is looked at: how long it is, and where in it one is.

Decides the fields.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fairlead.wire.fields import Request, Shape, said

Moment = Annotated[int, Meta(ge=-(2**60), le=2**60)]
Record = Annotated[int, Meta(ge=0, le=2**60)]
Step = Annotated[int, Meta(ge=-1, le=1)]
Speed = Annotated[float, Meta(ge=0, le=1e6)]


class Course(Shape, frozen=True, kw_only=True):
    """A journal of a service or a simulation, and the moment of it that all other answers are about."""

    name: Annotated[str, said("The file.")]
    begin_ms: int
    end_ms: int
    first_seq: Annotated[int, said("The first record that can be looked at.")]
    last_seq: int
    seq: Annotated[int, said("The last record that had happened at the moment.")]
    at_ms: Annotated[int, said("The moment.")]
    speed: Annotated[float, said("Seconds that pass in a second; 0: it stands still.")]


class Go(Request, frozen=True, kw_only=True):
    """Where to go in a course: one of these; `speed` may also be with another."""

    at_ms: Annotated[Moment | None, said("To a moment.")] = None
    seq: Annotated[Record | None, said("To what was so after this record.")] = None
    step: Annotated[Step | None, said("To the next record with a decision (1), or back (-1).")] = None
    speed: Annotated[Speed | None, said("Go on by itself so fast; 0: stand still.")] = None
