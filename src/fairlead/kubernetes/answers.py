"""How the API server answers: pages of lists, lines of watches, refusals.

Decides how an answer is taken apart before the kind of its objects matters. Never looks into an object. Invariant: a
line of a watch is decoded by its type first, since an error carries a `Status` where an object is expected.
"""

from __future__ import annotations

import msgspec

from fairlead.kubernetes.objects import Metadata, Part, Text


class ListMetadata(Part, frozen=True):
    """Where a list stands."""

    resource_version: Text = None
    continue_: Text = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class Page(Part, frozen=True):
    """One page of a list; the items are decoded by who knows their kind."""

    metadata: ListMetadata = ListMetadata()
    items: list[msgspec.Raw] | None = None


class WatchLine(msgspec.Struct, frozen=True):
    """One line of a watch: its object is decoded by type, for an error is no object of the kind that is watched."""

    type: str
    object: msgspec.Raw


class Bookmark(Part, frozen=True):
    """How far a watch has come; its object is otherwise empty."""

    metadata: Metadata = Metadata()


class StatusDetails(Part, frozen=True):
    """More about a refusal."""

    name: Text = None
    kind: Text = None
    retry_after_seconds: int | None = None


class Status(Part, frozen=True):
    """How the server answers when it refuses."""

    status: Text = None
    message: Text = None
    reason: Text = None
    code: int | None = None
    details: StatusDetails | None = None
