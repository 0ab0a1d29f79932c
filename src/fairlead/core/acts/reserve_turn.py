"""Reservations of a turn that begin and end: what follows in the books and for those held back.

Decides what is given back, woken and said when a turn is kept or no longer is, and when a leaf with `wait.max` is
looked at. Never gives a reservation by itself (`policy.eligibility.max_wait` does). Invariant: what a reservation holds
back has no node set aside for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.core.acts import nominate, reserve_node, room_changes
from fairlead.core.books.queue_reservations import Reservation
from fairlead.core.books.user_limits import same_limit
from fairlead.core.model.decisions import ReservationSwitched

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Ceiling, Partition, Queue

TIMER = "wait"


def begin(
    partition: Partition, ask: Ask, who: str, why: str, *, limit: Ceiling | None = None, by_itself: bool = False
) -> None:
    """Keep the turn of a waiting ask, which this limit of its user or group holds back. Nodes that are set aside for
    those that wait for it now are given back.
    """
    partition.reserving.put(ask, Reservation(partition.now_ms, who, why, by_itself, limit))
    partition.books_version += 1
    partition.out.append(ReservationSwitched(ask.app.id, ask.key, True, who, why, partition.name))
    _give_nodes_back(partition, ask.app.queue)


def _give_nodes_back(partition: Partition, leaf: Queue) -> None:
    """What is held back in this leaf gives back the node that was set aside for it."""
    if partition.reservations:
        for app in leaf.applications.values():
            for ask in app.asks.values():
                if ask.reserved_on is not None and partition.reserving.holder(ask) is not None:
                    reserve_node.unreserve(partition, ask)


def end(partition: Partition, ask: Ask, who: str = "", why: str = "") -> None:
    """The turn of `ask` is kept no longer: all that was held back is looked at again."""
    leaf = ask.app.queue
    reservation = partition.reserving.take(ask)
    if reservation is None:
        return
    partition.books_version += 1
    if ask.nomination is not None and ask.nomination.gathers:
        nominate.lose(partition, ask)
    partition.out.append(ReservationSwitched(ask.app.id, ask.key, False, who, why, partition.name))
    room_changes.wake_leaf(leaf)  # What is held back may be another now.
    if leaf.properties.wait_max_ms:
        partition.reserving.overdue[leaf] = None


def reordered(partition: Partition, leaf: Queue) -> None:
    """What is held back in this leaf may be another now (a priority has changed, or what limits a holder): it gives
    back the node that was set aside for it.
    """
    _give_nodes_back(partition, leaf)
    room_changes.wake_leaf(leaf)


def watch(partition: Partition, ask: Ask) -> None:
    """An ask begins to wait in a leaf with `wait.max`: look at the leaf when it has waited so long."""
    partition.reserving.bounded[ask.app.queue] = None
    due_ms = ask.created_ms + ask.app.queue.properties.wait_max_ms
    partition.timers.set_earlier(max(due_ms, partition.now_ms), partition.name, ask.app.queue.path, TIMER)


def watch_all(partition: Partition) -> None:
    """The file has changed: reservations by waiting end where there is no bound now; where there is one, it counts.
    What waits for a limit that is another one now may have its turn again at once, for one that holds. Call this when
    the limits are those of the file.
    """
    for ask, reservation in list(partition.reserving.every()):
        if (limit := reservation.limit) is not None:
            reservation.limit = same_limit(partition.trackers, ask.app, limit)
        if limit is not None and reservation.limit is None:
            end(partition, ask, why="the limits are others now")
        elif reservation.by_itself and not ask.app.queue.properties.wait_max_ms:
            end(partition, ask, why="its queue has no wait.max any more")
    for leaf in list(partition.reserving.bounded):
        if not leaf.properties.wait_max_ms:
            forget(partition, leaf)
    for app in partition.applications.values():
        for ask in app.waiting_asks() if app.queue.properties.wait_max_ms else ():
            if not ask.spec.idle:
                watch(partition, ask)


def forget(partition: Partition, leaf: Queue) -> None:
    """A queue is removed, or has no `wait.max` any more: nobody has to look at it."""
    partition.reserving.forget(leaf)
    partition.timers.cancel(partition.name, leaf.path, TIMER)


def look_at_late(partition: Partition, leaf: Queue) -> None:
    """No placeholders stand in for some real asks here any more: these may have waited as long as they may."""
    if leaf in partition.reserving.bounded:
        partition.reserving.overdue[leaf] = None


def on_timer(partition: Partition, path: str) -> None:
    """Some ask of this leaf may have waited as long as it may: the next run looks at it."""
    leaf = partition.root.find(path)
    if leaf is not None and leaf.is_leaf:
        partition.reserving.overdue[leaf] = None
        partition.books_version += 1


def load(partition: Partition, state: dict[str, Any]) -> None:
    """What `Reserving.dump` wrote down."""
    for app, key, since_ms, who, why, by_itself, *limit in state["of"]:
        ask = partition.applications[app].asks[key]
        ceiling = partition.trackers.ceilings[tuple(limit[0])] if any(limit) else None
        partition.reserving.put(ask, Reservation(since_ms, who, why, by_itself, ceiling))
    for name in ("overdue", "bounded"):
        found = (partition.root.find(path) for path in state[name])
        getattr(partition.reserving, name).update({leaf: None for leaf in found if leaf is not None})
