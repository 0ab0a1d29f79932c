"""Orders about work: another queue for an application, another priority or a reservation for what waits.

Decides from the books whether an order makes sense, and refuses it with a reason when it does not. Which user may give
it is the caller's business. Never takes anything back to make a move
fit. Invariant: a move takes no queue over its maximum, nor over the applications it may run. Limits of users and groups
may be exceeded by it; then nothing new starts until they are met.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.acts import allocations, reserve_turn, waiting_asks, windows
from fairlead.core.acts.move import move
from fairlead.core.acts.resize import relabel, resize
from fairlead.core.books.application_limits import begun
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import group_of, payer
from fairlead.core.books.nominations import queue_short_of_kept
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import RECOVERY_QUEUE, Queue
from fairlead.core.model.conditions import MET
from fairlead.core.model.decisions import ApplicationMoved, AskChanged, AskRejected, MoveRejected, PriorityChanged
from fairlead.core.model.events import ChangeAsk, LabelAsk, MoveApplication, ReserveAsk, SetPriority
from fairlead.core.model.lifecycle import LIVE
from fairlead.core.model.matching import flaw
from fairlead.core.model.reasons import Reason, Refused
from fairlead.core.model.resources import Book, add_to, amount_flaw, fits_in
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN
from fairlead.policy.eligibility.limits import applications_at_max, queue_full, queue_promised
from fairlead.policy.events.admission import why_not_larger
from fairlead.policy.queue_choice.placement import gang_obstacle


def move_application(partition: Partition, event: MoveApplication) -> None:
    """Put an application into another leaf, or say why it stays."""
    app, target = partition.applications.get(event.id), partition.root.find(event.queue)
    refused: Reason | None
    if app is None:
        refused = Refused(f"failed to find application {event.id}")
    elif target is None:
        refused = Refused(f"there is no queue {event.queue}; give the whole path of a leaf, such as root.team")
    elif (refused := _obstacle(partition, app, target)) is None:
        old = app.queue.path
        move(partition, app, target)
        windows.keep_free(partition, app.allocated_asks())
        partition.out.append(ApplicationMoved(app.id, old, target.path, event.who, partition.name))
    if refused is not None:
        partition.out.append(MoveRejected(event.id, refused, partition.name))


def _obstacle(partition: Partition, app: Application, target: Queue) -> Reason | None:
    if target is app.queue:
        return Refused(f"application {app.id} is in {target.path} already")
    if not target.is_leaf:
        return Refused(f"queue {target.path} is a parent; applications are in leaves")
    if (draining := target.draining) is not None:
        return Refused(f"queue {draining.path} is draining and takes nothing new")
    if target.path == RECOVERY_QUEUE:
        return Refused(f"queue {target.path} is for recovery only")
    if app.swapping:
        return Refused(f"placeholders of application {app.id} are being replaced; try again when that is done")
    return gang_obstacle(target, app.spec) or _too_many(app, target) or _too_much(partition, app, target)


def _too_many(app: Application, target: Queue) -> Reason | None:
    """A queue that the application does not count for yet and that runs as many as it may, or is to."""
    if app.state not in LIVE and app.id not in app.queue.allocating_accepted:
        return None
    for queue in target.lineage:
        most = queue.max_applications
        if queue not in app.queue.lineage and most and begun(queue, app) >= most:
            return applications_at_max(queue, app)
    return None


def _too_much(partition: Partition, app: Application, target: Queue) -> Reason | None:
    """A queue that has no room for what the application runs and does not count there yet, beside what is promised.
    Idle work counts in its resource group and above.
    """
    running, group = app.allocated_asks(), group_of(target)
    for queue in target.lineage:
        more: Book = {}
        for ask in running:
            counts = queue in (group if ask.spec.idle else target).lineage
            if counts and queue not in payer(ask).lineage:
                add_to(more, ask.items)
        amounts = tuple(sorted(more.items()))
        if queue.lacks(amounts):
            return queue_full(queue, amounts)
        if queue_short_of_kept(partition, queue, amounts) is queue:
            return queue_promised(partition, queue, amounts)
    return None


# -- what waits ---------------------------------------------------------------------------------------------------


def _waiting(partition: Partition, event: SetPriority | ReserveAsk) -> list[Ask]:
    """The waiting asks that an order is about: one, or where it names no key all of the application."""
    app = partition.applications.get(event.application)
    asks = [] if app is None else app.waiting_asks() if not event.key else [app.asks.get(event.key)]
    return [ask for ask in asks if ask is not None and ask.pending]


def set_priority(partition: Partition, event: SetPriority) -> None:
    """A waiting ask (or all of an application) gets another priority, and so do placeholders that have nodes, which
    stand for work that waits, and what is on its way to the place of one. What runs is left as it is.
    """
    waiting = _waiting(partition, event)
    app = partition.applications.get(event.application)
    standing = [ask for ask in (*app.standing(), *app.under_way()) if event.key in ("", ask.key)] if app else []
    held = partition.held_asks.named(event.application, event.key)
    bad = ""
    if not PRIORITY_MIN <= event.priority <= PRIORITY_MAX:
        bad = f"priority {event.priority} is not a 32-bit integer"
    elif not (waiting or standing or held):
        bad = f"nothing waits under {event.application}/{event.key}: only waiting work can change its priority"
    if bad:
        partition.out.append(AskRejected(event.application, event.key, Refused(bad), partition.name))
        return
    by = (event.who, event.why)
    for ask_to_come in held:
        old = ask_to_come.change_priority(event.priority)
        key = ask_to_come.spec.key
        if partition.applications[event.application].spec.at_once and ask_to_come.conditions.met(partition.now_ms):
            partition.held_asks.await_turn(event.application, ask_to_come)
        partition.out.append(PriorityChanged(event.application, key, old, event.priority, *by, partition.name))
    for ask in (*waiting, *standing):
        old = ask.priority
        if ask.pending:
            waiting_asks.change_priority(partition, ask, event.priority)
        else:
            allocations.change_priority(partition, ask, event.priority)
        partition.out.append(PriorityChanged(event.application, ask.key, old, event.priority, *by, partition.name))


def change_ask(partition: Partition, event: ChangeAsk) -> None:
    """Give an ask another size while it waits, or another time limit, also while it runs."""
    bad = why_not_change(partition, event)
    if bad is not None:
        partition.out.append(AskRejected(event.application, event.key, bad, partition.name))
        return
    held = partition.held_asks.get(event.application, event.key)
    ask = partition.find_ask(event.application, event.key)
    if held is not None:
        if not fits_in(event.resources.items, held.spec.resources.as_dict()):
            # A further attempt is not asked about its quotas when it enters; one that has grown is.
            held.spec = replace(held.spec, conditions=MET)
        held.spec = replace(held.spec, resources=event.resources, time_limit_ms=event.time_limit_ms)
    elif ask is not None:
        if event.time_limit_ms != ask.spec.time_limit_ms:
            ask.spec = replace(ask.spec, time_limit_ms=event.time_limit_ms)
            partition.books_version += 1  # It may run into a window now, or no longer.
        if ask.node is None:
            resize(partition, ask, replace(ask.spec, resources=event.resources))
        windows.keep_free(partition, (ask,))
    said = (event.resources, event.time_limit_ms, event.who, event.why, partition.name)
    partition.out.append(AskChanged(event.application, event.key, *said))


def label_ask(partition: Partition, event: LabelAsk) -> None:
    """An ask that waits, runs or is held is described anew. Unknown ones are passed over: it may have ended."""
    known = partition.find_ask(event.application, event.key) or partition.held_asks.get(event.application, event.key)
    if known is None:
        return
    willing, least_ms = event.allow_preempt_self, event.min_runtime_ms
    spec = replace(
        known.spec,
        labels=event.labels,
        where=event.where,
        images=event.images,
        allow_preempt_self=known.spec.allow_preempt_self if willing is None else willing,
        min_runtime_ms=known.spec.min_runtime_ms if least_ms is None else least_ms,
    )
    if spec == known.spec:
        return
    if bad := flaw(event.where):
        partition.out.append(AskRejected(event.application, event.key, Refused(bad), partition.name))
    elif isinstance(known, Ask):
        relabel(partition, known, spec)
    else:
        known.spec = spec
        partition.held_asks.version += 1


def why_not_change(partition: Partition, event: ChangeAsk, path: str = "") -> Reason | None:
    """Why an ask cannot be changed like this, or None. `path`: once it is in that queue; empty: in its own."""
    name = f"{event.application}/{event.key}"
    held = partition.held_asks.get(event.application, event.key)
    ask = partition.find_ask(event.application, event.key)
    if held is None and ask is None:
        return Refused(f"there is no ask {name}")
    flaw = "it would be nothing" if not event.resources else amount_flaw(event.resources)
    if event.time_limit_ms is not None and event.time_limit_ms < 0:
        flaw = f"time_limit_ms is {event.time_limit_ms}; it cannot be below 0"
    if flaw:
        return Refused(f"{name} cannot ask for that: {flaw}")
    if held is not None or ask is None:
        return None
    if not ask.pending and event.resources != ask.spec.resources:
        return Refused(f"{name} does not wait any more: only what waits can ask for another amount")
    if ask.spec.placeholder or (ask.spec.task_group and ask.pending):
        return Refused(f"{name} is part of a gang, whose members are as they were submitted")
    return why_not_larger(partition.admission, ask, event.resources.items, path) if ask.pending else None


def reserve_ask(partition: Partition, event: ReserveAsk) -> None:
    """Switch the reservation of a waiting ask on or off (an empty key: of all that the application waits for)."""
    waiting = _waiting(partition, event)
    bad = _why_not_reserve(partition, event, waiting)
    if bad:
        partition.out.append(AskRejected(event.application, event.key, Refused(bad), partition.name))
        return
    for ask in waiting:
        known = partition.reserving.get(ask)
        if not event.on:
            if known is not None:
                reserve_turn.end(partition, ask, event.who, event.why)
        elif known is None:
            reserve_turn.begin(partition, ask, event.who, event.why)


def _why_not_reserve(partition: Partition, event: ReserveAsk, waiting: list[Ask]) -> str:
    name = f"{event.application}/{event.key}" if event.key else event.application
    if not waiting:
        return f"nothing waits under {name}: only waiting work can have a reservation"
    if any(ask.spec.idle for ask in waiting):
        return f"{name} is idle work, which runs on what others leave over: it cannot have a reservation"
    has = [ask for ask in waiting if partition.reserving.get(ask) is not None]
    if event.on and len(has) == len(waiting):
        return f"{name} has a reservation already"
    if not event.on and not has:
        return f"{name} has no reservation"
    return ""
