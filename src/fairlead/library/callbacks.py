"""What a resource manager is called with: the responses, the calls, and which decision goes into which.

Decides the words of the way back alone; never when a call is made. Invariant: every decision goes into exactly one
call, and the calls keep the order of the decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Protocol

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    Decision,
    Evict,
    NodeAccepted,
    NodeRejected,
    Released,
    Retried,
)


@dataclass(frozen=True, slots=True)
class ApplicationResponse:
    """What became of applications."""

    accepted: tuple[ApplicationAccepted, ...] = ()
    rejected: tuple[ApplicationRejected, ...] = ()
    updated: tuple[ApplicationChanged, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocationResponse:
    """What became of asks and allocations."""

    new: tuple[Allocated, ...] = ()
    """Start these."""
    evict: tuple[Evict, ...] = ()
    """Stop these, and confirm each with a `Release` of the same cause."""
    released: tuple[Released, ...] = ()
    """These are no longer in the books; there is nothing to confirm."""
    retried: tuple[Retried, ...] = ()
    """These come back as an ask with another key, which nobody has to submit."""
    rejected: tuple[AskRejected, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeResponse:
    """What became of nodes."""

    accepted: tuple[NodeAccepted, ...] = ()
    rejected: tuple[NodeRejected, ...] = ()


class ResourceManagerCallbacks(Protocol):
    """What a resource manager is called with. An exception is reported and changes nothing of what was decided."""

    def update_application(self, response: ApplicationResponse) -> None:
        """Applications were accepted or rejected, or have a new state."""

    def update_allocation(self, response: AllocationResponse) -> None:
        """Start, stop, or take note of allocations."""

    def update_node(self, response: NodeResponse) -> None:
        """Nodes were accepted, or an order about one was refused."""

    def send_event(self, at_ms: int, decision: Decision) -> None:
        """Anything else that is worth knowing (space is held, a priority changed); there is nothing to do."""


class SilentCallbacks(ResourceManagerCallbacks):
    """Callbacks that do nothing: a base for those who need only some of them."""


Call = Callable[[], None]

_RESPONSES: dict[type, tuple[str, type, str]] = {
    ApplicationAccepted: ("update_application", ApplicationResponse, "accepted"),
    ApplicationRejected: ("update_application", ApplicationResponse, "rejected"),
    ApplicationChanged: ("update_application", ApplicationResponse, "updated"),
    Allocated: ("update_allocation", AllocationResponse, "new"),
    Evict: ("update_allocation", AllocationResponse, "evict"),
    Released: ("update_allocation", AllocationResponse, "released"),
    Retried: ("update_allocation", AllocationResponse, "retried"),
    AskRejected: ("update_allocation", AllocationResponse, "rejected"),
    NodeAccepted: ("update_node", NodeResponse, "accepted"),
    NodeRejected: ("update_node", NodeResponse, "rejected"),
}
"""Decision: the callback, its response, and the field it goes to. All others are sent as events."""

_CALLBACKS = ("update_application", "update_allocation", "update_node", "send_event")


def check_callbacks(callbacks: object) -> None:
    """TypeError for what lacks a callback: a decision that nobody can be told of would be lost."""
    lacking = [name for name in _CALLBACKS if not callable(getattr(callbacks, name, None))]
    if lacking:
        names = " and ".join(filter(None, (", ".join(lacking[:-1]), lacking[-1])))
        raise TypeError(f"the callbacks lack {names}: derive their class from fairlead.SilentCallbacks")


def _callback_of(decision: Decision) -> str:
    row = _RESPONSES.get(type(decision))
    return row[0] if row else "send_event"


def calls_for(callbacks: ResourceManagerCallbacks, at_ms: int, decisions: Iterable[Decision]) -> Iterator[Call]:
    """The calls that deliver these decisions in order: neighbours for the same callback go together."""
    for name, group in groupby(decisions, key=_callback_of):
        if name == "send_event":
            for decision in group:
                yield partial(callbacks.send_event, at_ms, decision)
            continue
        fields: dict[str, list[Decision]] = {}
        response: type = ApplicationResponse
        for decision in group:
            _, response, field = _RESPONSES[type(decision)]
            fields.setdefault(field, []).append(decision)
        yield partial(getattr(callbacks, name), response(**{f: tuple(ds) for f, ds in fields.items()}))
