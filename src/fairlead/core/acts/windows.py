"""Windows as time goes on: what waits is told apart anew, and a window opens and closes.

Decides what follows in the books when a window is declared, begins or ends, or when what waits begins to reach into
one. Never decides which ask runs into which window (`core.books.windows`). Invariant: after it, nothing that waits is
narrowed by a window that it does not run into, and no ask keeps a node from which a window keeps it away, nor a turn,
but by an administrator's order.
"""

from __future__ import annotations

from collections.abc import Collection

from fairlead.core.acts import allocations, gangs, nominate, reserve_node, reserve_turn, shapes
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.books.windows import TIMER, covers, lasts_into, occurrence
from fairlead.core.model.decisions import WindowClosed, WindowOpened
from fairlead.core.model.events import Cause
from fairlead.core.model.matching import is_selected
from fairlead.core.model.specs import WindowSpec


def look(partition: Partition) -> None:
    """Something may be otherwise now: windows open and close, and each ask that waits finds its shape."""
    windows, now_ms = partition.admission.windows, partition.now_ms
    partition.timers.cancel(partition.name, "", TIMER)  # What was due may have been of a window that was removed.
    _close(partition)
    for spec in list(windows):
        _open(partition, spec)
    changed = False
    for app in partition.applications.values():
        for ask in app.waiting_asks() if app.pending_count else ():
            if windows.narrow(partition, ask) != ask.where:
                shapes.regroup(partition, ask)
                _give_up_what_is_closed(partition, ask)
                changed = True
            if ask.reserved_on is not None:
                partition.nodes.reserved_again[ask] = None
        if app.swapping:
            _call_off_swaps(partition, app)
    partition.books_version += 1  # What came too near to one may have work stopped now.
    if changed:
        partition.reserving.look_again()
    due_ms = windows.next_ms(now_ms)
    if due_ms is not None:
        partition.timers.set_earlier(due_ms, partition.name, "", TIMER)


def _call_off_swaps(partition: Partition, app: Application) -> None:
    """What is under way to a placeholder's place, and may not start there now, waits again: as on a drained node."""
    for ask in [a for a in app.asks.values() if a.replaces is not None and not a.spec.placeholder]:
        if not gangs.may_go_on(partition, ask):
            gangs.wait_again(partition, ask)


def _close(partition: Partition) -> None:
    windows, now_ms = partition.admission.windows, partition.now_ms
    for (where, name), began_ms in list(windows.opened.items()):
        spec = windows.get(name)
        times = occurrence(spec, now_ms) if spec is not None else None
        if where == partition.name and (times is None or times[0] != began_ms):
            del windows.opened[where, name]
            partition.out.append(WindowClosed(name, times and times[0], where))


def _open(partition: Partition, spec: WindowSpec) -> None:
    """The window opens, if it is time; one that does not come again is dropped when it is over."""
    windows, now_ms = partition.admission.windows, partition.now_ms
    times = occurrence(spec, now_ms)
    if times is None:
        windows.remove(spec.name)
    elif times[0] <= now_ms:
        running = [ask for ask in windows.runs_into(spec, partition, now_ms) if ask.evict_cause is None]
        if spec.stop_running:
            for ask in running:
                _stop(partition, ask, spec)
        if (partition.name, spec.name) not in windows.opened:
            windows.opened[partition.name, spec.name] = times[0]
            stays = () if spec.stop_running else tuple(f"{ask.app.id}/{ask.key}" for ask in running)
            partition.out.append(WindowOpened(spec.name, times[1], stays, partition.name))


def keep_free(partition: Partition, work: Collection[Ask]) -> None:
    """This work runs where it did not, or for others, or longer: what is in the way of an open window has to go."""
    for spec in partition.admission.windows:
        times = occurrence(spec, partition.now_ms) if spec.stop_running else None
        if times is None or times[0] > partition.now_ms:
            continue
        for ask in work:
            is_there = ask.node is not None and covers(spec, ask.node)
            if is_there and ask.evict_cause is None and lasts_into(spec, ask, partition.now_ms):
                _stop(partition, ask, spec)


def _stop(partition: Partition, ask: Ask, spec: WindowSpec) -> None:
    message = f"window {spec.name} has begun" + (f": {spec.why}" if spec.why else "")
    allocations.evict(partition, ask, Cause.PREEMPTED_BY_SCHEDULER, rule="window", message=message)


def _give_up_what_is_closed(partition: Partition, ask: Ask) -> None:
    """Nothing is kept for an ask on a node from which it is kept away now."""
    for node, give_up in ((ask.held_on, nominate.lose), (ask.reserved_on, reserve_node.unreserve)):
        if node is not None and not is_selected(ask.where, node.labels):
            give_up(partition, ask)
    reservation = partition.reserving.get(ask)
    if reservation is None or not reservation.by_itself:
        return
    if not any(is_selected(ask.where, node.labels) for node in partition.nodes.nodes.values()):
        reserve_turn.end(partition, ask, why="a window keeps it from every node")
