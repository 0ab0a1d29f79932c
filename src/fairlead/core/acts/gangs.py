"""Gangs: placeholders that keep room for the real asks of their task group, and the swap of one for the other.

Decides what a swap, its confirmation, its failure and the end of waiting for a gang mean in the books. Never chooses
which placeholder an ask replaces (`policy.place.gang`). Invariant: an ask under way to a placeholder's place is neither
waiting nor allocated, and it and its placeholder point at each other until the placeholder is gone; a task group stands
in for real asks while it has more placeholders than were replaced or lost.
"""

from __future__ import annotations

from fairlead.core.acts import allocations, application_steps, reserve_turn, waiting_asks
from fairlead.core.books import application_limits
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, creation_ms
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.retries import GAVE_WAY
from fairlead.core.books.timers import PLACEHOLDERS
from fairlead.core.model.decisions import Allocated, Released
from fairlead.core.model.events import Cause
from fairlead.core.model.lifecycle import State, Step
from fairlead.core.model.resources import Resources, add_to, fits_in
from fairlead.core.model.specs import TAG_APP_CREATION_TIME, ApplicationSpec

DEFAULT_TIMEOUT_MS = 15 * 60_000
"""How long placeholders wait for their gang unless the application says otherwise."""
TIMED_OUT = "ResourceReservationTimeout"


def timeout_ms(spec: ApplicationSpec, now_ms: int) -> int:
    """How long the placeholders of an application submitted now may wait, in milliseconds, at least 1.

    A creation time in the tags (Unix seconds) counts as the begin, so that a restart does not start it anew.
    """
    own = spec.placeholder_timeout_ms if spec.placeholder_timeout_ms > 0 else DEFAULT_TIMEOUT_MS
    return max(creation_ms(spec.tags.get(TAG_APP_CREATION_TIME), now_ms) + own - now_ms, 1)


# -- placeholders -------------------------------------------------------------------------------------------------


def placeholder_withdrawn(partition: Partition, ask: Ask) -> None:
    """A placeholder is gone and was not replaced; the last of a group lets its real asks go on as plain ones."""
    app, group = ask.app, ask.app.task_group(ask.spec.task_group)
    group.timed_out += 1
    if not group.stands_in:
        reserve_turn.look_at_late(partition, app.queue)
    if app.awaited_by and not any(other.spec.placeholder for other in app.asks.values()):
        part_ways(app)


def placeholder_placed(partition: Partition, ask: Ask) -> None:
    """A placeholder has a node: it can be replaced, and the time in which its gang must come runs."""
    app = ask.app
    app.task_group(ask.spec.task_group).standing[ask] = None
    look_again(partition, app)
    if app.gives_way_to is not None:
        part_ways(app)  # It was reported: the gang holds room again.
    if partition.timers.due_ms(partition.name, app.id, PLACEHOLDERS) is None:
        partition.timers.set(partition.now_ms + app.placeholder_timeout_ms, partition.name, app.id, PLACEHOLDERS)
    if app.state is State.ACCEPTED:
        if is_whole(app):
            application_steps.begin(partition, app)
        else:
            application_steps.join_accepted(app)


def is_whole(app: Application) -> bool:
    """Whether its placeholders hold what it said together; without those told to go, or a member would be missing."""
    together = app.spec.placeholder_ask
    if not together or any(app.placeholders.get(name, 0) < amount for name, amount in together.items):
        return False  # Of a large gang not each is added up whenever one more has a node.
    book: dict[str, int] = {}
    for ask in app.standing():
        add_to(book, ask.items)
    return together == Resources(book)


def placeholder_ended(partition: Partition, ask: Ask) -> None:
    """A placeholder has left its node, not to be replaced: an ask under way to it waits again."""
    ask.app.task_group(ask.spec.task_group).standing.pop(ask, None)
    if ask.replaces is not None:
        wait_again(partition, ask.replaces)
    placeholder_withdrawn(partition, ask)


def look_again(partition: Partition, app: Application) -> None:
    """Something changed on which replacements of this application depend."""
    if app.placeholder_count and app.pending_count and any(batch.task_group for batch in app.batches.values()):
        partition.swappable.setdefault(app.queue, {})[app] = None


# -- gangs that hold each other -----------------------------------------------------------------------------------


def give_way(later: Application, first: Application) -> None:
    """`later`, and what waits for it, gets no placeholders until `first` is whole or gone (`place.gang_deadlock`)."""
    for app in (*later.awaited_by, later):
        app.gives_way_to = first
        application_limits.look_again(app)
        first.awaited_by.append(app)
    later.awaited_by = []


def give_back(partition: Partition, app: Application, on_behalf_of: str, text: str) -> None:
    """Its placeholders are told to go so that others get through; they come back when they are gone."""
    for ask in app.standing():
        allocations.evict(partition, ask, Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of, GAVE_WAY, text)


def part_ways(app: Application) -> None:
    """The application is whole or gone, or no gang any more: nothing waits for it, and it waits for nothing."""
    for later in app.awaited_by:
        later.gives_way_to = None
        application_limits.look_again(later)
    app.awaited_by = []
    first, app.gives_way_to = app.gives_way_to, None
    if first is not None:
        first.awaited_by.remove(app)


# -- the swap -----------------------------------------------------------------------------------------------------


def begin_swap(partition: Partition, ask: Ask, placeholder: Ask, node: Node) -> None:
    """`ask` is going to take the place of `placeholder`, there or on another node with room: it waits no longer, and
    runs when it is confirmed that the placeholder, which is told to go, is gone (`end_swap`).
    """
    app = ask.app
    waiting_asks.take_out(partition, ask)  # Should the swap fail, others may be stopped for it again.
    ask.replaces, placeholder.replaces = placeholder, ask
    app.swapping += 1
    if node is not placeholder.node:
        ask.bound_for = node
        node.hold(ask)
        partition.nodes.touch(node)
    text = f"replacing allocationKey: {ask.key}"
    allocations.evict(partition, placeholder, Cause.PLACEHOLDER_REPLACED, ask.key, "placeholder", text)


def can_start(partition: Partition, placeholder: Ask) -> bool:
    """Whether what takes the place of this placeholder has room where it goes, and still suits: another node may have
    become smaller or fuller since, and what started beside it, on either, may take its port, or keep it away.
    """
    ask = placeholder.replaces
    if ask is None or placeholder.node is None:
        return False
    node = ask.bound_for or placeholder.node
    fits = fits_in(ask.items, node.available) if ask.bound_for is not None else fits_in_place(ask, placeholder, node)
    return fits and partition.nodes.suits(ask, node, (placeholder,))


def fits_in_place(ask: Ask, placeholder: Ask, node: Node) -> bool:
    """Whether the node of a placeholder has room for an ask once that is gone: it may have become smaller."""
    left = dict(node.available)
    add_to(left, placeholder.items)
    return fits_in(ask.items, left)


def end_swap(partition: Partition, placeholder: Ask) -> None:
    """The placeholder is gone and the ask that replaces it runs."""
    ask, app = placeholder.replaces, placeholder.app
    assert ask is not None
    node = ask.bound_for or placeholder.node
    assert node is not None
    first = app.allocations == app.placeholder_count
    _part(partition, ask)
    allocations.end_allocation(partition, placeholder, replaced=True)
    group = app.task_group(placeholder.spec.task_group)
    group.replaced += 1
    if not group.stands_in:
        reserve_turn.look_at_late(partition, app.queue)
    app.queue.add_allocated(ask.items)
    ask.stood_in_ms = placeholder.created_ms
    allocations.settle_on(partition, ask, node)
    # It is no new use of room.
    ask.started_seq, ask.started_owed = placeholder.started_seq, placeholder.started_owed
    partition.out.append(Allocated(app.id, ask.key, node.id, partition.name))
    alone = not app.placeholder_count and not app.pending_count
    if app.state in (State.COMPLETING, State.STARTING) or (app.state is State.ACCEPTED and (alone or not first)):
        application_steps.advance(partition, app, Step.RUN)


def wait_again(partition: Partition, ask: Ask) -> None:
    """The swap comes to nothing (its placeholder or its node is lost): the ask waits again."""
    _part(partition, ask)
    waiting_asks.enqueue(partition, ask)


def may_go_on(partition: Partition, ask: Ask) -> bool:
    """Whether an ask under way may still run where it goes, with the words and windows that hold now."""
    placeholder = ask.replaces
    assert placeholder is not None
    ask.where = partition.admission.windows.narrow(partition, ask)
    node = ask.bound_for or placeholder.node
    return node is not None and partition.nodes.suits(ask, node, (placeholder,))


def under_way_to(node: Node) -> list[Ask]:
    """The asks that are going to take a placeholder's place and run on this node."""
    coming = [a for a in node.held if a.bound_for is node]
    replacing = (p.replaces for p in node.allocations if p.spec.placeholder)
    return coming + [a for a in replacing if a is not None and a.bound_for is None]


def give_up(partition: Partition, ask: Ask) -> None:
    """The ask under way is withdrawn; its placeholder goes all the same."""
    _part(partition, ask)
    waiting_asks.forget_ask(partition, ask)


def _part(partition: Partition, ask: Ask) -> None:
    placeholder, node = ask.replaces, ask.bound_for
    assert placeholder is not None
    ask.replaces = placeholder.replaces = None
    if placeholder.node is not None:
        partition.disruption.going[placeholder] = None
    ask.app.swapping -= 1
    partition.books_version += 1
    if node is not None:
        ask.bound_for = None
        node.unhold(ask)
        partition.nodes.gained(node)


def leave_node(partition: Partition, node: Node) -> None:
    """A node is about to be removed: what is bound for it waits again, and where only the placeholder is here the swap
    is done. Swaps in place, and those for which there is no room, are called off when their placeholders end.
    """
    for ask in [a for a in node.held if a.bound_for is node]:
        wait_again(partition, ask)
    for placeholder in [a for a in node.allocations if a.spec.placeholder and a.replaces is not None]:
        assert placeholder.replaces is not None
        if placeholder.replaces.bound_for is not None and can_start(partition, placeholder):
            end_swap(partition, placeholder)
            app, text = placeholder.app, f"Node {node.id} Removed"
            partition.out.append(Released(app.id, placeholder.key, node.id, Cause.STOPPED_BY_RM, text, partition.name))
            application_steps.complete_if_idle(partition, app)


# -- the end of waiting -------------------------------------------------------------------------------------------


def time_out(partition: Partition, app: Application) -> None:
    """The placeholders have waited long enough. An application that runs, or starts over already, goes on without them;
    one that never got its gang together loses all it has, and starts over with plain asks (`Soft`) or fails (`Hard`).
    """
    if app.state is not State.ACCEPTED:
        release_placeholders(partition, app)
        return
    fails = app.spec.gang_style == "Hard"
    application_steps.advance(partition, app, Step.FAIL if fails else Step.RESUME, TIMED_OUT)
    for ask in app.under_way():
        give_up(partition, ask)
        _say_dropped(partition, app, ask.key)
    give_up_all(partition, app)
    for ask in app.waiting_asks():
        waiting_asks.drop_ask(partition, ask)
        _say_dropped(partition, app, ask.key)
    if fails:
        for held in partition.held_asks.of(app.id):
            partition.held_asks.take(app.id, held.spec.key)
            _say_dropped(partition, app, held.spec.key)


def give_up_all(partition: Partition, app: Application) -> None:
    """Its gang did not come together in time: what of it has a node is told to go."""
    for ask in app.allocated_asks():
        if ask.evict_cause is None:
            text = "releasing allocations: gang incomplete"
            allocations.evict(partition, ask, Cause.TIMEOUT, rule="placeholder", message=text)


def _say_dropped(partition: Partition, app: Application, key: str) -> None:
    text = "the gang did not come together in time"
    partition.out.append(Released(app.id, key, "", Cause.TIMEOUT, text, partition.name))


def release_placeholders(partition: Partition, app: Application) -> None:
    """Tell every placeholder that nothing replaces to go."""
    for ask in app.standing():
        allocations.evict(partition, ask, Cause.TIMEOUT, rule="placeholder", message="placeholder timeout")
