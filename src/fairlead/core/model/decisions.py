"""What the scheduler orders or reports, in the order it decided. Frozen values; the caller carries them out.

Decides the words of the way out. `Allocated` and `Evict` want an act from outside; all others say what is already so.
An `Evict` is confirmed by a `Release` event with the same cause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.events import Cause
from fairlead.core.model.reasons import Reason
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import DEFAULT_PARTITION

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def _made_often(cls: type[T]) -> type[T]:
    """Frozen to the type checker alone: a dataclass that is frozen when it runs takes four times as long to make."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


class Decision:
    """What the scheduler orders or reports."""

    __slots__ = ()


@_made_often
class Allocated(Decision):
    """Start this: the ask has a node."""

    application: str
    key: str
    node: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class _OfAsk(Decision):
    """What is ordered or reported of an ask or allocation of an application."""

    application: str
    key: str


@dataclass(frozen=True, slots=True)
class _Rejected(Decision):
    """An application or a node is as it was."""

    id: str
    reason: Reason
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class Evict(_OfAsk):
    """Stop this and confirm with `Release`; `on_behalf_of` is the key it makes room for (empty: for none)."""

    node: str
    cause: Cause
    on_behalf_of: str = ""
    rule: str = ""
    """Which rule chose it, e.g. `priority`, `guarantee`, `quota`, `required-node`, `placeholder`."""
    message: str = ""
    violates: tuple[str, ...] = ()
    """Names of the disruption budgets that this goes beyond."""
    partition: str = DEFAULT_PARTITION


@_made_often
class Released(Decision):
    """This is no longer in the books (an echo, nothing to do; on a lost node the work is gone too)."""

    application: str
    key: str
    node: str
    cause: Cause
    message: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class Retried(_OfAsk):
    """An allocation ends and is tried again: the attempt `new_key` enters at `due_ms`, after its back-off."""

    new_key: str
    attempt: int
    due_ms: int
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class Reserved(_OfAsk):
    """A node (or the space that victims leave) is held for this ask."""

    node: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class Unreserved(_OfAsk):
    """It is no longer held."""

    node: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class Overdue(_OfAsk):
    """Work that was told to stop for other work has not left in its time: its room is counted on no more."""

    node: str
    on_behalf_of: str
    """`application/key` of the ask it should have made room for (the key alone where both are equal); or empty."""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class LoopBroken(_OfAsk):
    """A waiting ask would have stopped work again without anything being gained by it: that was not done.

    Either the same `victim` (`application/key`) a second time although nothing new has come, or, with no victim, any
    more work on `node`, where it stopped work `times` times and never got the room; or instead of what did not leave in
    its time (last on `node`), after it had others stopped for that reason `times` times.
    """

    node: str
    victim: str
    times: int
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class ApplicationAccepted(Decision):
    """The application has a queue."""

    id: str
    queue: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class ApplicationRejected(_Rejected):
    """The application was not taken in."""


@dataclass(frozen=True, slots=True)
class ApplicationChanged(Decision):
    """The application has a new state."""

    id: str
    state: str
    cause: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class ApplicationMoved(Decision):
    """The application, with all it has, is in another queue now."""

    id: str
    old: str
    new: str
    who: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class MoveRejected(_Rejected):
    """The application stays where it is."""


@dataclass(frozen=True, slots=True)
class QueueChanged(Decision):
    """A queue was `added`, `removed`, is `draining` (takes nothing new) or `restarted` (takes work again)."""

    queue: str
    change: str
    partition: str


@dataclass(frozen=True, slots=True)
class QuotaEnforced(Decision):
    """A queue was above its lowered maximum: what it had to give back, and how many allocations were told to stop."""

    queue: str
    partition: str
    excess: Resources
    victims: int


@dataclass(frozen=True, slots=True)
class AskRejected(_OfAsk):
    """The ask was not taken in."""

    reason: Reason
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class PriorityChanged(_OfAsk):
    """A waiting ask, or a placeholder, has a new priority."""

    old: int
    new: int
    who: str
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class AtOnceChanged(Decision):
    """Another number of asks of an application are in line or run at a time, at most; 0: all."""

    application: str
    old: int
    new: int
    who: str
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class AskChanged(_OfAsk):
    """An ask has another size or another time limit."""

    resources: Resources
    time_limit_ms: int | None
    who: str
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class ConditionsChanged(_OfAsk):
    """What has to come about before a waiting ask is in line is something else now."""

    old: Conditions
    new: Conditions
    who: str
    """Empty: it follows from what became of others."""
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class ReservationSwitched(_OfAsk):
    """The turn of a waiting ask is kept from now on (`on`), so that those behind it wait; or no longer.

    `who` is empty where it was not ordered: it waited as long as its queue allows, or it waits no longer.
    """

    on: bool
    who: str
    why: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class NodeAccepted(Decision):
    """The node is in."""

    id: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class NodeRejected(_Rejected):
    """The node was not taken in (or an order about it made no sense)."""


@dataclass(frozen=True, slots=True)
class Configured(Decision):
    """A configuration took effect."""

    checksum: str


@dataclass(frozen=True, slots=True)
class ConfigurationRejected(Decision):
    """A configuration was refused as a whole; the old one goes on."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class DeclarationChanged(Decision):
    """A priority class, quota, budget or window was `added`, `changed` or `removed`."""

    kind: str
    """`priority-class`, `quota`, `budget` or `window`."""
    name: str
    change: str
    who: str = ""
    """Empty: the queue file says so."""


@dataclass(frozen=True, slots=True)
class WindowOpened(Decision):
    """A window has begun."""

    name: str
    ends_ms: int
    stays: tuple[str, ...] = ()
    """`application/key` of the work that runs on, though the window is not for it."""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class WindowClosed(Decision):
    """A window is over."""

    name: str
    next_ms: int | None
    """When it begins again; None: it does not."""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class DeclarationRejected(Decision):
    """A priority class, quota, budget or window stays as it is."""

    kind: str
    name: str
    reason: Reason


_kinds = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, Decision)]
DECISIONS: tuple[type[Decision], ...] = tuple(kind for kind in _kinds if kind not in (Decision, _OfAsk, _Rejected))
"""Every kind of them."""
