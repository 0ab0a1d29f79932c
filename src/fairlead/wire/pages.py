"""What only the pages ask for: who looks at them, whether something changed, and the line of all that waits.

Decides the fields. Never who may see them. Invariant: of a job that is not the caller's business the line says whose it
is, what it asks for and how it stands; neither its name, where these are private, nor its reason.
"""

from __future__ import annotations

from typing import Annotated

from fairlead.wire.fields import Amounts, Page, Shape, said
from fairlead.wire.jobs import Reason

# -- who looks ------------------------------------------------------------------------------------------------------


GUEST = "guest"
"""What whoever has no token shows instead of one, where strangers may look (`--open-reads`)."""


class Ticket(Shape, frozen=True, kw_only=True):
    """What opens the pages for whoever asked for it, once."""

    ticket: str
    expires_at_ms: int
    url: Annotated[str, said("Where the pages are; empty: this service serves none.")]
    why_none: Annotated[str, said("Why it serves none.")] = ""


class Session(Shape, frozen=True, kw_only=True):
    """What a browser shows instead of a token, until it expires or is ended."""

    session: str
    user: str
    expires_at_ms: int


class Changed(Shape, frozen=True, kw_only=True):
    """How far the records have come."""

    seq: int


# -- the line -------------------------------------------------------------------------------------------------------


class Step(Shape, frozen=True):
    """What one queue on the way to the root makes of a priority."""

    queue: str
    offset: int
    fence: Annotated[bool, said("Priorities from below do not pass; the offset takes their place.")]
    after: Annotated[int, said("The priority as it is seen above this queue.")]


class InLine(Shape, frozen=True, kw_only=True):
    """A job that waits, at its place among all that wait."""

    place: Annotated[int, said("From 1.")]
    key: str
    name: str
    user: str
    queue: str
    resources: Amounts
    priority: Annotated[int, said("Its own.")]
    effective: Annotated[int, said("As seen at the root, after offsets and fences.")]
    steps: Annotated[list[Step], said("From its leaf up to below the root.")]
    owed: Annotated[bool, said("It is within a guarantee that is not used up, so it goes before others.")]
    submitted_at_ms: int
    visible: Annotated[bool, said("The caller may see all of it, and act on it.")]
    reason: Annotated[Reason | None, said("Why it waits; null also where it is not the caller's business.")]


class ExpectedStart(Shape, frozen=True, kw_only=True):
    """When a job in line is expected to start; null: not in sight."""

    key: str
    median_ms: int | None
    earliest_ms: int | None
    latest_ms: int | None
    known: Annotated[
        bool,
        said("false: nothing has ended here yet; `latest_ms` is when it starts if all takes its time limit, or null."),
    ] = True


class LineForecast(Shape, frozen=True, kw_only=True):
    """When the first of the line are expected to start."""

    made_ms: int
    coverage: Annotated[float, said("How often a start should be between earliest and latest.")]
    starts: list[ExpectedStart]


class Kept(Shape, frozen=True, kw_only=True):
    """Room on a node that is kept for a job that waits."""

    node: str
    key: str
    name: str
    user: str
    queue: str
    resources: Annotated[Amounts, said("What the job asks for.")]
    visible: Annotated[bool, said("The caller may see all of the job, and act on it.")]
    whole: Annotated[bool, said("The node is set aside for it: nothing else starts there.")]
    leaving: Annotated[int, said("So many that were told to stop for it are still there.")]


class KeptPage(Page, frozen=True, kw_only=True):
    """What is kept for which job, by node."""

    kept: list[Kept]


class LinePage(Page, frozen=True, kw_only=True):
    """What waits for room, in the order in which it is looked at. What is held is not in line."""

    line: list[InLine]
