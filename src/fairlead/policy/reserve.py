"""Reserve: a node set aside for an ask that has waited long enough, so that it fills up for nobody else.

Decides which ask in turn gets a node set aside and which node, and places those who have one before anybody else. An
ordinary ask reserves once it is older than `DELAY_MS`, on the node that it would fill most; an ask with a required node
reserves that node at once and takes it from ordinary asks. Never evicts by itself. Invariant: a node is set aside for
one ordinary ask or for any number of asks that require it, and each ask has at most one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core import claims
from fairlead.core.claims import RESERVATION_MS
from fairlead.core.lifecycle import State
from fairlead.core.resources import fits_in
from fairlead.policy.expected import never_suits
from fairlead.policy.headroom import is_held_back
from fairlead.policy.limits import closed_gate
from fairlead.policy.ordering import walk_key
from fairlead.policy.required_node import preempt_on_required_node
from fairlead.policy.turns import waits_for_turn

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Ask, Batch
    from fairlead.core.demand import Demand
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.resources import Items

DELAY_MS = 2_000
TIMER = "reserve"
LineKey = tuple[int, int, int]


def is_on(partition: Partition) -> bool:
    """Whether nodes are set aside at all: where preemption goes by priority, space is held only for preemptors."""
    return partition.spec.preemption.rule == "guarantee"


# -- setting a node aside -----------------------------------------------------------------------------------------


class Seekers:
    """The asks of one visit to an application that found no node and are due to have one set aside, kept in turn.

    Asks of one batch can stand on both sides of another batch's; who comes later must not reserve before the others
    were looked at.
    """

    __slots__ = ("_due", "_partition")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._due: list[tuple[LineKey, Ask, Batch]] = []

    def missed(self, batch: Batch) -> None:
        """There is no node for this batch: its first ask that is due and has none set aside wants one."""
        shape = batch.demand.shape
        assert shape is not None
        if not shape.unfit or shape.blocked_by_root or not (shape.may_reserve or shape.required_node):
            return
        ask = _first_due(self._partition, batch)
        if ask is not None:
            self._due.append((ask.line_key, ask, batch))

    def reserve_up_to(self, key: LineKey | None) -> bool:
        """Set a node aside for the first of them that stands at `key` or before (None: the end); True when done."""
        if not self._due:
            return False
        self._due.sort(key=_place_in_line)
        while self._due and (key is None or self._due[0][0] <= key):
            _, ask, batch = self._due.pop(0)
            if reserve_for(self._partition, ask, batch.demand):
                return True
        return False


def _place_in_line(due: tuple[LineKey, Ask, Batch]) -> LineKey:
    return due[0]


def reserve_for(partition: Partition, ask: Ask, demand: Demand) -> bool:
    """Set a node aside for an ask that found none just now; True when it was done.

    What is above the nodes (a full queue, a limit) must not be in the way: an ask that could not use the node does not
    get it.
    """
    shape = demand.shape
    assert shape is not None
    if not is_on(partition) or is_held_back(partition, demand, ask):
        return False
    if shape.required_node:
        node = partition.nodes.nodes.get(shape.required_node)
        if node is None or not node.fits_total(shape.items) or any(not a.required_node for a in node.reservations):
            shape.may_reserve = False
            return False
    else:
        node = tightest(partition, ask) if shape.may_reserve else None
        if node is None:
            shape.may_reserve = False
            return False
    ask.attempted = True
    claims.reserve(partition, ask, node)
    return True


def _first_due(partition: Partition, batch: Batch) -> Ask | None:
    """The first waiting ask of the batch without a node that is old enough for one."""
    latest = partition.now_ms if batch.asks[0].required_node else partition.now_ms - DELAY_MS
    for ask in batch.asks:
        if ask.created_ms > latest:
            return None
        if ask.pending and ask.reserved_on is None and ask.held_on is None:
            return None if waits_for_turn(partition, ask) else ask
    return None


def tightest(partition: Partition, ask: Ask) -> Node | None:
    """Of the open nodes that suit the ask when empty the one that it would fill most: smallest `slack`, then order."""
    nodes, items = partition.nodes, ask.items
    best: tuple[float, float, str] | None = None
    found = None
    for node in nodes.nodes.values():
        if node.reservations or not node.schedulable or not node.fits_total(items):
            continue
        left = slack(items, node)
        if best is not None and left > best[0]:
            continue
        key = (left, nodes.score(node), node.id)
        if (best is None or key < best) and nodes.suits(ask, node):
            best, found = key, node
    return found


def slack(items: Items, node: Node) -> float:
    """How much of what is free on a node an amount would leave, summed over its resources as parts of the free.

    0 for a resource that is asked for to the last bit or more, 1 for one that is not asked for.
    """
    wanted, left = dict(items), 0.0
    for name, free in node.free.items():
        if name not in wanted:
            left += 1.0
        elif wanted[name] < free:
            left += (free - wanted[name]) / free
    return left


def clear_for(partition: Partition, node: Node) -> None:
    """An ask that requires this node has its turn: ordinary asks for which it was set aside lose it."""
    for ask in [a for a in node.reservations if not a.required_node]:
        claims.unreserve(partition, ask)
        ask.app.queue.touch_app(ask.app)


# -- when to look again -------------------------------------------------------------------------------------------


def watch_ages(partition: Partition, app: Application) -> None:
    """An application is parked: see to it that it is looked at when one of its asks may have a node set aside.

    Asks that are old enough seek one from now on; for the first that is younger there is a timer.
    """
    if not is_on(partition):
        return
    due_ms: int | None = None
    for batch in app.batches:
        if app.stands_in(batch.task_group) or waits_for_turn(partition, batch.asks[0]):
            continue
        latest = partition.now_ms if batch.asks[0].required_node else partition.now_ms - DELAY_MS
        for ask in batch.asks:
            if not ask.pending or ask.reserved_on is not None or ask.held_on is not None:
                continue
            if waits_for_turn(partition, ask):
                break
            if ask.created_ms <= latest:
                batch.demand.seek(app)
            elif due_ms is None or ask.created_ms + DELAY_MS < due_ms:
                due_ms = ask.created_ms + DELAY_MS
            break
    if due_ms is not None and (app.reserve_due_ms is None or due_ms < app.reserve_due_ms):
        app.reserve_due_ms = due_ms
        partition.timers.set(due_ms, partition.name, app.id, 0, TIMER)


def on_timer(partition: Partition, app_id: str) -> None:
    """Some ask of the application may be old enough now: put it back in line."""
    app = partition.applications.get(app_id)
    if app is not None and app.reserve_due_ms is not None and app.reserve_due_ms <= partition.now_ms:
        app.reserve_due_ms = None
        if app.pending_count:
            app.queue.touch_app(app)


def on_expiry(partition: Partition, app_id: str) -> None:
    """Some reservation of the application is old: try it again, which gives it up if it still cannot be used."""
    app = partition.applications.get(app_id)
    if app is not None and partition.reservations:
        partition.nodes.reserved_again |= {a: None for a in app.asks.values() if a.reserved_on is not None}


# -- using it -----------------------------------------------------------------------------------------------------


def place_reserved(partition: Partition) -> Ask | None:
    """Place the first ask in walk order with a reserved node that fits there, or elsewhere; None when none does.

    Of one application, first all asks are tried on their own nodes, then on others. Only those are tried for which
    something changed since the last time.
    """
    again = partition.nodes.reserved_again
    if not again:
        return None
    by_app: dict[Application, list[Ask]] = {}
    for ask in list(again):
        if ask.reserved_on is None or not ask.pending:
            del again[ask]
        else:
            by_app.setdefault(ask.app, []).append(ask)
    for app in sorted(by_app, key=walk_key) if len(by_app) > 1 else by_app:
        asks = sorted(by_app[app], key=lambda a: a.line_key)
        placed = _place_one_of(partition, app, asks)
        if placed is not None:
            return placed
        for ask in asks:
            again.pop(ask, None)
    return None


def _place_one_of(partition: Partition, app: Application, asks: list[Ask]) -> Ask | None:
    gate = closed_gate(app) if app.state is State.ACCEPTED else None
    if gate is not None:
        for ask in asks:
            claims.watch(partition, ask, gate)
            _give_up_if_old(partition, ask)
        return None
    free_to_go = []
    for ask in asks:
        node, demand = ask.reserved_on, app.demand_of(ask)
        assert node is not None
        claims.watch(partition, ask, demand)
        if waits_for_turn(partition, ask):
            claims.unreserve(partition, ask)
            continue
        if is_held_back(partition, demand, ask):
            _give_up_if_old(partition, ask)
            continue
        suits = partition.nodes.suits(ask, node)
        if suits and fits_in(ask.items, node.free):
            ask.attempted = True
            partition.place(ask, node)
            return ask
        if ask.required_node:
            preempt_on_required_node(partition, ask, node)
            if not suits:
                _wait_until_it_suits(partition, ask, demand)
        else:
            free_to_go.append((ask, demand))
    for ask, demand in free_to_go:
        shape = ask.shape
        assert shape is not None
        node = None if shape.unfit else partition.nodes.first_for(shape)
        if node is not None:
            ask.attempted = True
            partition.place(ask, node)
            return ask
        if ask.reserved_on is not None and never_suits(partition, ask, ask.reserved_on):
            claims.unreserve(partition, ask)
            continue
        _wait_until_it_suits(partition, ask, demand)
    return None


def _wait_until_it_suits(partition: Partition, ask: Ask, demand: Demand) -> None:
    """No node takes the ask: have it tried again when one may."""
    shape = ask.shape
    assert shape is not None
    if not shape.unfit:
        partition.nodes.mark_unfit(shape)
    demand.wait_for_node()


def _give_up_if_old(partition: Partition, ask: Ask) -> None:
    """A node that was set aside an hour ago and cannot be used because of what is above it goes back."""
    node = ask.reserved_on
    if node is not None and node.reservations[ask] + RESERVATION_MS <= partition.now_ms:
        claims.unreserve(partition, ask)
