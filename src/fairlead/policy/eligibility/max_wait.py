"""Turns: what has a reservation in its queue, what is held back by it, and what is kept for those that waited too long.

Decides which ask gets a reservation by itself (the oldest of a queue that waited for `wait.max`, one per queue at a
time), on which node room gathers for that one, and what gives up its place to run for it. Never places an ask.
Invariant: what is held back is in no line, and is looked at again when the reservation ends.

For an ask that waited too long the free room of one node is kept too, so that other queues cannot fill it for ever:
of all nodes the one where it can start first. While something of a higher priority waits in its queue, it is not.
"""

from __future__ import annotations

from fairlead.core.acts import application_steps, gangs, nominate, reserve_node, reserve_turn
from fairlead.core.books import nominations
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, line_group
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.books.volume_limits import is_beyond
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.lifecycle import LIVE, State
from fairlead.core.model.matching import is_selected, is_tolerated
from fairlead.core.model.quantities import duration_exactly
from fairlead.core.model.resources import fits_in, lacks, take_from
from fairlead.policy.eligibility.limits import closed_gate, full_ceiling, limit_of_user, may_run
from fairlead.policy.eligibility.start_estimates import expected_start, never_suits


def waits_for_turn(partition: Partition, ask: Ask) -> bool:
    """Whether another ask of its queue has a reservation that this one has to wait for."""
    return bool(partition.reserving.of) and partition.reserving.holder(ask) is not None


def is_free_to_start(partition: Partition, ask: Ask) -> bool:
    """Whether nothing but room is in its way: its application may run and does not rest, no placeholders stand in for
    it, and no other ask has its turn kept before.
    """
    app = ask.app
    if app.stands_in(line_group(ask)) or app.rests(partition.now_ms) or not may_run(app):
        return False
    return not waits_for_turn(partition, ask)


# -- waiting too long ---------------------------------------------------------------------------------------------


def keep_turns(partition: Partition) -> None:
    """Before each run: give reservations that are due, and gather room for those that waited too long."""
    book = partition.reserving
    changed: dict[Queue, None] = {}
    for ask, reservation in book.every():
        if reservation.by_itself and (limit := _limit(partition, ask)) is not reservation.limit:
            reservation.limit = limit
            partition.books_version += 1
            changed[ask.app.queue] = None
    book.overdue |= changed
    while book.overdue:
        leaf = min(book.overdue, key=lambda queue: queue.seq)
        del book.overdue[leaf]
        _give_turn(partition, leaf)
    for leaf in changed:  # Once it is known which turns are kept still.
        reserve_turn.reordered(partition, leaf)
    # Ordinary work that starts makes no room, but it may close a gate, also one that was opened here.
    news, room_stamp = partition.news, partition.room_stamp
    if book.places_made != (news, room_stamp, _gates_closed(partition)):
        for ask, _ in list(book.every()):
            _make_place(partition, ask)
        book.places_made = (news, room_stamp, _gates_closed(partition))
    for ask, reservation in list(book.every()):
        if reservation.by_itself:
            _gather_room(partition, ask)


def _limit(partition: Partition, ask: Ask) -> Ceiling | None:
    """The limit of its user or group that its turn waits for. It stays the same while it is in the way: what is kept
    for others, which that turn does not hold back, may fill another one, and would be lost as soon as that counted.
    """
    reservation = partition.reserving.get(ask)
    return limit_of_user(ask, reservation.limit if reservation is not None else None)


def _gates_closed(partition: Partition) -> list[Queue | Ceiling | None]:
    """What keeps the applications from running that have their turns kept, one by one."""
    return [closed_gate(ask.app) for ask, _ in partition.reserving.every()]


def _give_turn(partition: Partition, leaf: Queue) -> None:
    """The oldest ask of the leaf that waited as long as it may gets a reservation, if none there has one for that; of
    what a limit of its user or group holds back, the oldest for each such limit. What one of these holds back waits for
    that limit too: with a turn of its own it would have everything else wait for it.
    """
    most, book = leaf.properties.wait_max_ms, partition.reserving
    kept = {ask: None for ask, reservation in book.of.get(leaf, {}).items() if reservation.by_itself}
    is_looked_for = most and (not kept or partition.trackers.limits)
    late = _overdue(partition, leaf, partition.now_ms - most) if is_looked_for else ()
    limits: list[Ceiling | None] = []
    for ask in sorted((*kept, *late), key=lambda ask: (_limit(partition, ask) is None, ask not in kept, *_age(ask))):
        limit = _limit(partition, ask)
        if ask in kept and not (most and could_ever_run(partition, ask)):
            reserve_turn.end(partition, ask, why="it fits nowhere, however empty")
        elif limit in limits or (limit is None and book.holds_back_under_limit(ask)):
            reserve_turn.end(partition, ask, why="it waits for another one that has its turn kept")
        else:
            limits.append(limit)
            if ask not in kept:
                why = f"it has waited for {duration_exactly(most)}, the wait.max of its queue"
                reserve_turn.begin(partition, ask, "", why, limit=limit, by_itself=True)


def _overdue(partition: Partition, leaf: Queue, latest_ms: int) -> list[Ask]:
    """The oldest ask of each batch without a reservation, and those for which room is kept, if they were made by then,
    may run, and would fit if nothing else ran; for the next one that is to wait so long there is a timer.
    """
    found: list[Ask] = []
    later: list[int] = []
    waiting = [batch.asks for app in leaf.applications.values() for batch in app.batches.values()]
    waiting += [[ask] for ask in partition.nominations if ask.batch is None and ask.app.queue is leaf]
    kept = partition.reserving.of.get(leaf, {})
    for alike in waiting:
        later += [ask.created_ms for ask in alike if ask.created_ms > latest_ms]
        # What has a reservation from somebody does not stand in for its equals.
        oldest = min((ask for ask in alike if ask not in kept), key=_age, default=None)
        if oldest is None or oldest.created_ms > latest_ms or oldest.app.stands_in(line_group(oldest)):
            continue  # What placeholders stand in for is looked at when that is over (`reserve_turn.look_at_late`).
        if could_ever_run(partition, oldest):
            found.append(oldest)
    if later:
        due_ms = min(later) + leaf.properties.wait_max_ms
        partition.timers.set_earlier(due_ms, partition.name, leaf.path, reserve_turn.TIMER)
    return found


def _age(ask: Ask) -> tuple[int, int]:
    return (ask.created_ms, ask.seq)


def could_ever_run(partition: Partition, ask: Ask) -> bool:
    """Whether it would fit if nothing else ran: under every maximum and limit, and on a node that takes such work. What
    requires a node starts there though it is drained.
    """
    maxima = [queue.max for queue in ask.app.queue.lineage[:-1]] + [ceiling.max for ceiling in ask.app.ceilings]
    if any(lacks(most, {}, ask.items) for most in maxima):
        return False
    nodes = partition.nodes.nodes.values()
    return any(node.takes(ask) and _could_hold(node, ask) and not is_beyond(ask.where, node) for node in nodes)


def _could_take(node: Node, ask: Ask) -> bool:
    """Whether room may gather for it there: not on a node that is drained, nor where what stands of its own gang would
    have to go, which stays until that is whole.
    """
    if not (node.schedulable and _could_hold(node, ask)):
        return False
    has_begun = ask.spec.placeholder and ask.app.placeholder_count
    return not has_begun or _fits_beside_own(node, ask)


def _fits_beside_own(node: Node, ask: Ask) -> bool:
    left = dict(node.total)
    for other in node.allocations:
        if other.app is ask.app and other.spec.placeholder and other.evict_cause is None:
            take_from(left, other.items)
    return fits_in(ask.items, left)


def _could_hold(node: Node, ask: Ask) -> bool:
    if ask.required_node not in ("", node.id):
        return False
    if ask.where is not ANYWHERE and not is_selected(ask.where, node.labels):
        return False  # It is not for this node, or a window is ahead.
    if node.keeps_away and not is_tolerated(node.spec.taints, ask.where.tolerations):
        return False
    return node.fits_total(ask.items)


# -- a place to run -------------------------------------------------------------------------------------------------


def _make_place(partition: Partition, holder: Ask) -> None:
    """What has its turn kept may need a place to run that others have which only wait for such turns: as many of them
    as it takes wait for a place again, the last that came first; of gangs that are not whole, which give their
    placeholders back before, only where no others are. Else each would wait for the other for ever.
    """
    app = holder.app
    while app.gives_way_to is None and (closed := closed_gate(app)) is not None:
        # What waits for a turn is in a leaf where one is kept; a limit may be of several leaves.
        counted = (other for leaf in partition.reserving.of for other in leaf.applications.values())
        waiting = [each for each in counted if _counts(each, closed) and _only_waits_for_turns(partition, each)]
        if not waiting:
            return
        other = max(waiting, key=lambda each: (not each.allocations, each.seq))
        if other.allocations:
            if all(each.standing() for each in waiting):
                text = f"given back so that {holder.key} gets a place to run: each waited for the other"
                gangs.give_back(partition, other, f"{app.id}/{holder.key}", text)
            return
        application_steps.wait_for_place(partition, other)
        partition.books_version += 1  # What is in the way of a turn, and what that holds back, may be another now.


def _counts(app: Application, closed: Queue | Ceiling) -> bool:
    """Whether an application has one of the places there."""
    if closed in app.ceilings:
        return app.tracked
    return closed in app.queue.lineage and (app.state in LIVE or app.id in app.queue.allocating_accepted)


def _only_waits_for_turns(partition: Partition, app: Application) -> bool:
    """Whether nothing of an application runs but placeholders of a gang that is not whole, and all that it has in line
    waits for a turn that is kept; so would what of it stands now.
    """
    if app.allocations > app.placeholder_count or app.swapping or not app.batches:
        return False
    if app.allocations and (
        app.state is not State.ACCEPTED or not all(waits_for_turn(partition, a) for a in app.standing())
    ):
        return False
    if sum(map(len, app.batches.values())) < sum(app.by_priority.values()):
        return False  # Room is kept for some of it.
    return all(waits_for_turn(partition, batch.head) for batch in app.batches.values())


# -- room on one node ---------------------------------------------------------------------------------------------


def gathers_room(partition: Partition, ask: Ask) -> bool:
    """Whether room on a node is kept for this ask because it waited too long, not because others were stopped."""
    nomination = ask.nomination
    if nomination is not None and not nomination.gathers and nominations.something_leaves(partition, ask):
        return False
    reservation = partition.reserving.get(ask)
    return reservation is not None and reservation.by_itself


def _gather_room(partition: Partition, ask: Ask) -> None:
    if ask.held_on is not None and not gathers_room(partition, ask):
        return
    wanted, aside, held = _is_worth_it(partition, ask), ask.reserved_on, ask.held_on
    kept = aside or held
    if wanted and kept is not None:
        wanted = _could_take(kept, ask) and not never_suits(partition, ask, kept)
        wanted = wanted and not _is_kept_off(partition, ask, kept)
    if aside is not None:
        if wanted:
            # A node that is set aside keeps no room under the maxima above, which others would fill for ever.
            leaving = tuple(a for a in partition.disruption.leave_by if a.evicted_for is ask)
            reserve_node.unreserve(partition, ask)
            nominate.nominate(partition, ask, aside, leaving, gathers=not leaving)
    elif held is not None:
        if not wanted:
            nominate.lose(partition, ask)
    elif wanted:
        node = _node_for(partition, ask)
        if node is not None and _could_take(node, ask) and not _is_kept_off(partition, ask, node):
            nominate.nominate(partition, ask, node, (), gathers=True)


def _is_kept_off(partition: Partition, ask: Ask, node: Node) -> bool:
    """Whether the node has the room, and work that runs elsewhere keeps the ask off: more room would not help it, and
    would be kept from others as long as such work comes.
    """
    return node.room_for(ask) and not partition.nodes.suits(ask, node, tuple(node.allocations))


def _is_worth_it(partition: Partition, ask: Ask) -> bool:
    """Whether room would be used: its own queue must have it, and nothing there may come before it.

    That a queue above is full is no reason: what is held counts there as used, so that it empties for this ask.
    """
    leaf = ask.app.queue
    if leaf.raw_priority > ask.priority or not is_free_to_start(partition, ask):
        return False
    if full_ceiling(ask.app, ask.items) is not None:
        return False
    # What passed it by `backfill: easy` ends in time: for that it does not give up the room that gathers.
    is_passed = ask.held_on is not None and leaf.properties.easy_backfill
    return is_passed or leaf.short_of_room(ask.items) is not leaf


def _node_for(partition: Partition, ask: Ask) -> Node | None:
    """The node where it can start first by what is known of the work that runs; else the one that lacks least."""
    found = expected_start(partition, ask)
    if found is not None:
        return found.node
    nodes = partition.nodes
    suitable = [n for n in nodes.nodes.values() if _could_take(n, ask) and not n.reservations and nodes.suits(ask, n)]
    return min(suitable, key=lambda n: (n.shortage(ask.items), n.score(), n.id), default=None)
