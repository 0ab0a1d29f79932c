"""Lives: what each step of an application's life means in the books of its partition.

Decides counters, timers and lists that follow from a step, and which step follows when something of an application
ends. Never places, stops or orders anything. Invariant: a queue counts as running exactly its applications that are
running.
"""

from __future__ import annotations

from fairlead.core.acts import gangs, queue_removal, waiting_asks
from fairlead.core.books import application_limits
from fairlead.core.books.applications import Application
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import APPLICATION, OF_APPLICATIONS, PLACEHOLDERS
from fairlead.core.model.decisions import ApplicationChanged
from fairlead.core.model.lifecycle import ENDED, LIVE, State, Step
from fairlead.core.model.specs import TAG_STATE_AWARE_DISABLE

ENDED_TIMER = "ended"
STAYS_MS = {State.COMPLETING: 30_000, State.STARTING: 5 * 60_000}
"""How long an application is in a state that it leaves by itself."""
ENDED_KEPT_MS = 72 * 3_600_000
ENDED_KEPT_MAX = 10_000
"""How many ended applications are kept at most, however young (the journal has them all)."""


def admit(partition: Partition, app: Application) -> None:
    """Take an application into its queue."""
    app.placeholder_timeout_ms = gangs.timeout_ms(app.spec, partition.now_ms)
    partition.applications[app.id] = app
    app.queue.applications[app.id] = app
    partition.trackers.join(app)


def advance(partition: Partition, app: Application, step: Step, cause: str = "") -> None:
    """Take one step of an application's life, with what it means for counters and timers."""
    before = app.advance(step, partition.now_ms)
    after = app.state
    if after is before:
        return
    if (change := (after in LIVE) - (before in LIVE)) != 0:
        app.queue.count_running(change)
    if after in LIVE or after is State.COMPLETING:
        leave_accepted(app)
    partition.timers.cancel(partition.name, app.id, APPLICATION)
    gangs.part_ways(app)
    if after in STAYS_MS:
        partition.timers.set(partition.now_ms + STAYS_MS[after], partition.name, app.id, APPLICATION)
    partition.out.append(ApplicationChanged(app.id, str(after), cause or str(step), partition.name))
    if after in ENDED:
        _end(partition, app)
    elif app.pending_count:
        application_limits.look_again(app)
        for batch in app.batches.values():
            batch.demand.tried = -1  # It runs, whole or not: its placeholders may have work stopped as others may.


def join_accepted(app: Application) -> None:
    """An accepted application got its first (placeholder) allocation: it counts against `maxapplications`."""
    for queue in app.queue.lineage:
        queue.allocating_accepted[app.id] = None
    if app.pending_count:
        # Its own place is counted now: the gate is open for it, whatever it was waiting for.
        application_limits.look_again(app)


def leave_accepted(app: Application) -> None:
    """It is not, or no longer, an application that has a place to run for its placeholders alone."""
    if app.id in app.queue.allocating_accepted:
        for queue in app.queue.lineage:
            del queue.allocating_accepted[app.id]
        app.queue.open_gates()


def _end(partition: Partition, app: Application) -> None:
    for ask in app.waiting_asks():
        waiting_asks.drop_ask(partition, ask)
    forget(partition, app)
    app.finished_ms = partition.now_ms
    partition.ended[f"{app.id}-{app.seq}"] = app
    keep_ended(partition)


def keep_ended(partition: Partition) -> None:
    """Keep an ended application for a while, and not too many of them; none where no history is kept."""
    if not partition.keeps_history:
        partition.ended.clear()
        partition.rejected.clear()
        return
    for kept in (partition.ended, partition.rejected):
        while len(kept) > ENDED_KEPT_MAX:
            del kept[next(iter(kept))]
    partition.timers.set_earlier(partition.now_ms + ENDED_KEPT_MS, partition.name, "", ENDED_TIMER)


def drop_old(partition: Partition) -> None:
    """Forget the ended applications that were kept long enough, and see to it that the next one is forgotten too."""
    for kept in (partition.ended, partition.rejected):
        for key, app in list(kept.items()):
            due_ms = (app.finished_ms or 0) + ENDED_KEPT_MS
            if due_ms > partition.now_ms:
                partition.timers.set_earlier(due_ms, partition.name, "", ENDED_TIMER)
                break
            app.advance(Step.EXPIRE, partition.now_ms)
            del kept[key]
            if app.id not in partition.applications:
                partition.out.append(ApplicationChanged(app.id, str(State.EXPIRED), str(Step.EXPIRE), partition.name))


def on_timer(partition: Partition, app: Application) -> None:
    """An application has been in a state for as long as it is in it by itself."""
    if app.state is State.COMPLETING and app.placeholder_count:
        app.closing = True
        gangs.release_placeholders(partition, app)
    elif app.state in STAYS_MS:
        advance(partition, app, Step.COMPLETE if app.state is State.COMPLETING else Step.RUN)


def forget(partition: Partition, app: Application) -> None:
    """Take an application out of its queue and of the list; its asks and allocations are gone already."""
    del partition.applications[app.id]
    del app.queue.applications[app.id]
    app.stamp = 0  # Its entry in the line of its leaf counts no longer, and goes with the next that are tidied up.
    queue_removal.clean_if_leaving(partition, app.queue)
    leave_accepted(app)
    gangs.part_ways(app)
    partition.unseen.pop(app, None)
    partition.held_asks.drop(app.id)
    partition.trackers.leave(app)
    if app.state in LIVE:
        app.queue.count_running(-1)
    for kind in OF_APPLICATIONS:
        partition.timers.cancel(partition.name, app.id, kind)


def begin(partition: Partition, app: Application) -> None:
    """An accepted application begins to run. Its tag, else the partition, says whether it is `Starting` before."""
    tag = app.spec.tags.get(TAG_STATE_AWARE_DISABLE)
    is_state_aware = partition.spec.state_aware if tag is None else tag.lower() == "false"
    advance(partition, app, Step.START if is_state_aware else Step.RUN)


def complete_if_idle(partition: Partition, app: Application, real_gone: bool = False) -> None:
    """Something of the application ended: take the step of its life that follows from what is left. With nothing that
    waits or runs it is about to complete; where a real allocation is gone placeholders alone do not keep it.
    """
    app.untrack_if_empty()
    if not app.placeholder_count:
        partition.timers.cancel(partition.name, app.id, PLACEHOLDERS)
    after = _awaited(app)
    if after is not None:
        if not app.allocations:
            app.untrack()
            leave_accepted(app)
        advance(partition, app, after)
        if app.allocations > app.placeholder_count or (app.state is State.ACCEPTED and gangs.is_whole(app)):
            begin(partition, app)  # It starts over, and something of it, or all of a gang, has started meanwhile.
        return
    if app.pending_count or app.swapping or partition.held_asks.has(app.id):
        give_place_back(partition, app)
        return
    idle = not app.allocations or (real_gone and app.allocations == app.placeholder_count)
    if idle and app.state in (State.ACCEPTED, State.STARTING, State.RUNNING):
        advance(partition, app, Step.COMPLETE)
        # Where placeholders are left it does not wait: with the last of them it is over.
        app.closing = bool(app.allocations)


def give_place_back(partition: Partition, app: Application) -> None:
    """Where nothing of it runs, and it has no ordinary work to offer, or is a gang that gave way, it waits for a place:
    what is tried again may be held back for an hour, and idle work may wait for ever; others run there meanwhile.
    """
    if app.allocations or app.swapping:
        return
    if app.gives_way_to is not None or (app.state in LIVE and not app.has_ordinary_work()):
        wait_for_place(partition, app)


def wait_for_place(partition: Partition, app: Application) -> None:
    """An application of which nothing runs waits for a place as if it had not run."""
    app.untrack()
    if app.state in LIVE:
        advance(partition, app, Step.REQUEUE)
    else:
        leave_accepted(app)
        application_limits.look_again(app)


def _awaited(app: Application) -> Step | None:
    """The step that was waiting for the last allocation to go, if it is gone."""
    if app.state is State.RESUMING:  # It waits for what it was told to give back alone: other asks may start meanwhile.
        return None if any(ask.evict_cause is not None for ask in app.asks.values()) else Step.RUN
    if app.allocations:
        return None
    if app.state is State.FAILING:
        return Step.FAIL
    return Step.COMPLETE if app.closing else None
