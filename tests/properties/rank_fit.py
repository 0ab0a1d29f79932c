"""Rank and room in the plainest words: which waiting ask comes before another, and whether it fits on a node.

Worked out from specs, books and decisions alone; nothing is taken from the policy. Decides what can be said for sure:
where the rules leave two readings (what counts as within a guarantee while work is leaving), neither ask comes first.
Never changes anything. Invariant: `comes_before` is strict, no ask comes before itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from properties.promises import is_drawn, is_named, is_spread, is_tolerated, keep_apart, labels_of
from properties.standing import standings
from reference.constrained import meets

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import (
    Allocated,
    Decision,
    Evict,
    Released,
    ReservationSwitched,
    Reserved,
    Unreserved,
)
from fairlead.core.model.lifecycle import State

Name = tuple[str, str]
Amounts = Mapping[str, int]
WITHIN_NONE = 1_000
"""As the distance to a guarantee: it is within none."""


@dataclass(slots=True)
class Kept:
    """What is kept for which ask, as the decisions told: space on a node, and turns in queues."""

    node: dict[Name, str] = field(default_factory=dict)
    turn: dict[Name, bool] = field(default_factory=dict)
    """Asks whose turn is kept, and whether an administrator ordered it."""
    paid: set[str] = field(default_factory=set)
    """What work was stopped for, or has space kept where stopped work leaves, in the words of `Evict.on_behalf_of`."""
    leaving: dict[Name, str] = field(default_factory=dict)
    """Work that was told to stop and has not ended yet, and its node."""

    def copy(self) -> Kept:
        """The same, to go on from without changing this."""
        return Kept(dict(self.node), dict(self.turn), set(self.paid), dict(self.leaving))

    def only_gathers(self, name: Name) -> bool:
        """Whether space on a node is kept because its turn is: no work was stopped there."""
        return name in self.turn and not {name[1], "/".join(name)} & self.paid

    def take(self, decisions: Iterable[Decision]) -> None:
        """Go on from these decisions."""
        for decision in decisions:
            if isinstance(decision, Reserved):
                self.node[decision.application, decision.key] = decision.node
                if decision.node in self.leaving.values():
                    self.paid.add(f"{decision.application}/{decision.key}")
            elif isinstance(decision, Unreserved | Allocated):
                self.node.pop((decision.application, decision.key), None)
                self.paid -= {decision.key, f"{decision.application}/{decision.key}"}
            elif isinstance(decision, Evict):
                self.paid.add(decision.on_behalf_of)
                self.leaving[decision.application, decision.key] = decision.node
            elif isinstance(decision, Released):
                self.leaving.pop((decision.application, decision.key), None)
            elif isinstance(decision, ReservationSwitched):
                self.turn.pop((decision.application, decision.key), None)
                if decision.on:
                    self.turn[decision.application, decision.key] = bool(decision.who)

    def look(self, part: Partition) -> None:
        """What is nominated, and not only so that room gathers, has room kept where stopped work leaves, on its
        node or in a queue above.
        """
        nominated = [(name, ask.nomination) for name in self.node if (ask := known(part, name)) is not None]
        self.paid |= {"/".join(name) for name, nomination in nominated if nomination and not nomination.gathers}

    def holders(self, part: Partition) -> list[tuple[Ask, str]]:
        """Waiting asks for which space is kept, and the node."""
        return [(ask, node) for name, node in self.node.items() if (ask := known(part, name)) and ask.pending]


def known(part: Partition, name: Name) -> Ask | None:
    """The ask of this name, if it is there."""
    app = part.applications.get(name[0])
    return app.asks.get(name[1]) if app is not None else None


def named(part: Partition, name: str) -> Ask | None:
    """The ask that a decision calls `application/key`, or by the key alone where both are equal."""
    app, _, key = name.rpartition("/")
    return known(part, (app or key, key))


def waiting(part: Partition) -> list[Ask]:
    """Every ask that waits."""
    return [ask for app in part.applications.values() for ask in app.asks.values() if ask.pending]


def is_of_gang(ask: Ask) -> bool:
    """Whether it stands for a member of a gang (other tests watch whether that could be whole)."""
    return ask.spec.placeholder and bool(ask.app.spec.placeholder_ask)


# -- which comes before which ---------------------------------------------------------------------------------------


def comes_before(rule: str, ask: Ask, other: Ask, less: Ask | None = None) -> bool:
    """Whether `ask` has its turn before `other`, for sure; `less` is an allocation that is taken as not there yet.

    Idle work comes after all other, and among itself by its own priority, retried work first (documented with batch
    work). By guarantee the order of the walk is told only inside one leaf.
    """
    if ask.spec.idle or other.spec.idle:
        if ask.spec.idle and other.spec.idle:
            return ask.priority > other.priority and not other.spec.retried
        return other.spec.idle
    if rule == "guarantee":
        return _walks_before(ask, other)
    mine, theirs = standings(ask, other)
    if rule == "both":
        surely, possibly = _within_guarantees(ask, less)
        other_surely, other_possibly = _within_guarantees(other, less)
        if surely != possibly or other_surely != other_possibly:
            return surely < other_possibly
        if surely != other_surely:
            return surely < other_surely
    return mine > theirs


def _walks_before(ask: Ask, other: Ask) -> bool:
    """Inside an application: retried, priority, age. Among those of a leaf: higher priority, unless shares go first."""
    if ask.app is other.app:
        return _line(ask) < _line(other)
    if ask.app.queue is not other.app.queue or not ask.app.queue.properties.priority_sorting:
        return False
    return _first(ask.app) < _first(other.app, but_for=other)


def _line(ask: Ask, by_rank: bool = False) -> tuple[int, int, int, int]:
    """Its place in its application: retried first, or, where rank decides, the higher priority."""
    first = (int(not ask.spec.retried), -ask.priority)
    return (*(first[::-1] if by_rank else first), ask.created_ms, ask.seq)


def _first(app: Application, but_for: Ask | None = None) -> tuple[int, ...]:
    """Where an application stands: where its first waiting ask does, which is retried or not, and has a priority. What
    is retried and has its room promised is no longer in line, and takes nothing ahead with it.
    """
    waiting_asks = [a for a in app.asks.values() if (a.pending or a is but_for) and not a.spec.idle]
    return min((int(not a.spec.retried or a.nomination is not None), -a.priority) for a in waiting_asks)


def _within_guarantees(ask: Ask, less: Ask | None) -> tuple[int, int]:
    """How far up the nearest guarantee is that `ask` is within, as it is within all on its way to the root: surely, and
    possibly; `WITHIN_NONE` if it is not.

    Some queue guarantees something of what it asks for, and in every one that does less is in use. In between lie idle
    work, which is in some books and counts for no guarantee, and work that is leaving.
    """
    surely = possibly = True
    nearest = WITHIN_NONE
    for distance, queue in enumerate(ask.app.queue.lineage):
        used, leaving = dict(queue.allocated), _leaving(queue)
        if less is not None and queue in counted_in(less):
            _add(used, less.items, -1)
        for name, amount in ask.items:
            most = (queue.guaranteed or {}).get(name)
            if most is None or not amount:
                continue
            nearest = min(nearest, distance)
            surely &= used.get(name, 0) + amount <= most
            possibly &= used.get(name, 0) + amount - leaving.get(name, 0) <= most
    return (nearest if surely else WITHIN_NONE, nearest if possibly else WITHIN_NONE)


def counted_in(ask: Ask) -> tuple[Queue, ...]:
    """The queues in whose books an allocation is: from its leaf up, idle work from its resource group up."""
    lineage = ask.app.queue.lineage
    if not ask.spec.idle:
        return lineage
    groups = (at for at, queue in enumerate(lineage) if at and queue.properties.resource_group)
    return lineage[next(groups, -1) :]


def _leaving(queue: Queue) -> dict[str, int]:
    """What idle work below a queue has, and what has been told to stop."""
    found: dict[str, int] = {}
    for leaf in queue.walk():
        for app in leaf.applications.values():
            for ask in app.asks.values():
                if ask.node is not None and (ask.spec.idle or ask.evict_cause is not None):
                    _add(found, ask.items)
    return found


def _add(book: dict[str, int], items: Iterable[tuple[str, int]], times: int = 1) -> None:
    for name, amount in items:
        book[name] = book.get(name, 0) + times * amount


# -- what is in the way before any node is looked at -----------------------------------------------------------------


def may_start(part: Partition, ask: Ask, kept: Kept, now_ms: int) -> bool:
    """Whether nothing but room is in the way of a waiting ask: no gate, no placeholders, no back-off, no kept turn."""
    app = ask.app
    if app.state not in (State.ACCEPTED, State.STARTING, State.RUNNING, State.COMPLETING):
        return False
    if app.backoff_until_ms is not None and app.backoff_until_ms > now_ms:
        return False
    group = "" if ask.spec.placeholder else ask.spec.task_group
    if group and any(a.spec.placeholder and a.spec.task_group == group for a in app.asks.values()):
        return False
    return not (waits_for_turn(part, ask, kept) or (app.state is State.ACCEPTED and _is_gated(part, app, kept)))


def waits_for_turn(part: Partition, ask: Ask, kept: Kept, placed: Ask | None = None) -> bool:
    """Whether the kept turn of another ask holds this one back, by one of the orders that a queue may have.

    `placed` is one that waited until just now.
    """
    by_rank = part.spec.preemption.rule != "guarantee"
    for name, ordered in kept.turn.items():
        holder = known(part, name)
        if holder is None or holder is ask or not (holder.pending or holder is placed):
            continue
        if ask.spec.idle:
            return True
        if holder.app is ask.app and _line(ask, by_rank) < _line(holder, by_rank):
            continue
        if holder.app.queue is ask.app.queue and (
            ask.priority < holder.priority
            or (not ordered and (_line(ask) > _line(holder) or _line(ask)[1:] > _line(holder)[1:]))
        ):
            return True
    return False


def _is_gated(part: Partition, app: Application, kept: Kept) -> bool:
    """Whether as many applications run as may, counting those that are kept a place, in a queue or for its user."""
    promised = {ask.app.id for ask, _ in kept.holders(part) if ask.app.state is State.ACCEPTED} - {app.id}
    for queue in app.queue.lineage:
        below = {a.id for leaf in queue.walk() for a in leaf.applications.values()}
        begun = {*queue.allocating_accepted, *(promised & below)} - {app.id}
        if queue.max_applications and queue.running + len(begun) >= queue.max_applications:
            return True
    for ceiling in app.allowance.ceilings if app.allowance is not None else ():
        begun = {*ceiling.applications, *promised} - {app.id}
        if ceiling.max_applications and len(begun) >= ceiling.max_applications:
            return True
    return False


# -- room -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """The books as they were just before an allocation, and what was kept then."""

    part: Partition
    rule: str
    less: Ask
    """The allocation that is taken as not there yet."""
    kept: Kept
    made: bool = False
    """Work was stopped for it, elsewhere: the room in queues and limits was its own, which a gang leaves alone."""

    def binding(self, ask: Ask) -> list[tuple[Ask, str]]:
        """Others for which space is kept that this ask has to leave alone: those of its own rank or higher.

        So are those whose turn an administrator had kept, and with reservations (by guarantee) all of them; and for a
        member of a gang those for which work was stopped, since the gang may not be whole even so.
        """
        return [
            (holder, node)
            for holder, node in self.kept.holders(self.part)
            if holder is not ask
            and (
                self.rule == "guarantee"
                or self.kept.turn.get((holder.app.id, holder.key))
                or (is_of_gang(ask) and not self.kept.only_gathers((holder.app.id, holder.key)))
                or not comes_before(self.rule, ask, holder, self.less)
            )
        ]

    def fits(self, ask: Ask, node: Node) -> bool:
        """Whether a waiting ask could have been placed on the node, for sure."""
        if not node.schedulable or ask.required_node not in ("", node.id):
            return False
        if any(holder is not ask for holder in node.reservations):
            return False
        binding = self.binding(ask)
        return self._has_room(ask, node, binding) and self._may_use(ask, binding) and self._suits(ask, node, binding)

    def _has_room(self, ask: Ask, node: Node, binding: list[tuple[Ask, str]]) -> bool:
        left = dict(node.available)
        if self.less.node is node:
            _add(left, self.less.items)
        for app in self.part.applications.values():
            for other in app.asks.values():
                if other.bound_for is node:  # It is going to replace a placeholder that stands elsewhere.
                    _add(left, other.items, -1)
        for holder, there in binding:
            if there == node.id:
                _add(left, holder.items, -1)
        return all(amount <= left.get(name, 0) for name, amount in ask.items)

    def _may_use(self, ask: Ask, binding: list[tuple[Ask, str]]) -> bool:
        """Whether maxima of queues, the sum of all nodes, and limits of its user have room beside what is promised."""
        stays = self.made and is_of_gang(ask)
        for queue in counted_in(ask):
            most = self._sum_of_nodes() if queue.parent is None else queue.max
            used = dict(queue.allocated)
            if queue in counted_in(self.less) and not stays:
                _add(used, self.less.items, -1)
            overdrawn = any(v < 0 for n in self.part.nodes.nodes.values() for v in n.available.values())
            for holder, _ in binding if queue.parent is not None or overdrawn else ():
                if queue in holder.app.queue.lineage:
                    _add(used, holder.items)
            if most is not None and any(n in most and used.get(n, 0) + v > most[n] for n, v in ask.items):
                return False
        own = self.less.app.allowance
        for ceiling in ask.app.allowance.ceilings if ask.app.allowance is not None else ():
            used = dict(ceiling.allocated)
            if own is not None and ceiling in own.ceilings and not stays:
                _add(used, self.less.items, -1)
            for holder, _ in binding:
                if holder.app.allowance is not None and ceiling in holder.app.allowance.ceilings:
                    _add(used, holder.items)
            limit = ceiling.max
            if limit is not None and any(n in limit and used.get(n, 0) + v > limit[n] for n, v in ask.items):
                return False
        return True

    def _sum_of_nodes(self) -> dict[str, int]:
        total = {name: 0 for app in self.part.applications.values() for a in app.asks.values() for name, _ in a.items}
        for node in self.part.nodes.nodes.values():
            _add(total, node.total.items())
        return total

    def _suits(self, ask: Ask, node: Node, binding: list[tuple[Ask, str]]) -> bool:
        """Every filter, with what is promised to others counted as running, and without: both have to let it."""
        where, here = ask.spec.where, labels_of(node)
        if where.volumes or ask.where != where:
            return False  # How many can be attached, and what windows keep free, is not worked out here.
        if not is_named(where, here) or not is_tolerated(where, node):
            return False
        nodes = self.part.nodes.nodes
        running = [(a, a.node or a.bound_for) for app in self.part.applications.values() for a in app.asks.values()]
        there = [(a.spec, n) for a, n in running if n is not None and a is not self.less and a is not ask]
        there += [(spec, n) for n in nodes.values() for spec, _ in n.foreign.values()]
        promised = [(a, nodes[n]) for a, n in binding if n in nodes]
        beside = [*there, *((a.spec, n) for a, n in promised)]
        if any(keep_apart(ask.spec, node, other, n) for other, n in beside) or _spoils(ask, promised):
            return False
        for counted in (there, beside):
            labels = [(dict(other.labels), labels_of(n)) for other, n in counted]
            if not (is_drawn(ask, here, labels) and is_spread(ask, node, list(nodes.values()), labels)):
                return False
        return True


def _spoils(ask: Ask, promised: list[tuple[Ask, Node]]) -> bool:
    """Whether it may be that its start shuts out one that is to start: one that wants to be with work like this."""
    labels = dict(ask.spec.labels)
    return any(
        meets(labels, term.selector)
        for holder, _ in promised
        for terms in (holder.spec.where.affinity, holder.spec.where.spread)
        for term in terms
    )
