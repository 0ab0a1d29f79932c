"""Intake: what each event from outside means for the books.

Decides whether an event makes sense, refuses it with a reason when it does not, and carries it out with the acts of the
partition. Never schedules. Invariant: a refused event changes nothing but what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fairlead.core.acts import allocations, application_steps, foreign, gangs, waiting_asks, windows
from fairlead.core.acts.resize import resize
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.books.retries import flaw_of_times
from fairlead.core.model import events
from fairlead.core.model.conditions import MET
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.decisions import (
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    MoveRejected,
    NodeRejected,
)
from fairlead.core.model.events import Cause
from fairlead.core.model.lifecycle import State, Step
from fairlead.core.model.matching import flaw
from fairlead.core.model.reasons import Refused
from fairlead.core.model.resources import amount_flaw
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN, TAG_FOREIGN, ApplicationSpec, AskSpec
from fairlead.policy.events import held, node_events, orders, recovery, retry
from fairlead.policy.events.admission import admit, as_reported, why_not_larger
from fairlead.policy.queue_choice.placement import place_application, resolve_user

# -- applications -------------------------------------------------------------------------------------------------


def add_application(partition: Partition, event: events.AddApplication) -> None:
    """An application is submitted: it gets a queue, or a reason why not."""
    spec = event.application
    text = "" if spec.id else "an application has no id"
    if spec.id in partition.applications:
        text = f"adding application {spec.id} to partition {partition.name}, but application already existed"
    if text:
        partition.out.append(ApplicationRejected(spec.id, Refused(text), partition.name))
        return
    if bad := amount_flaw(spec.placeholder_ask):
        _reject(partition, spec, Refused(f"application {spec.id} cannot be a gang of that size: {bad}"))
        return
    resolved = resolve_user(spec)
    spec = spec if isinstance(resolved, Refused) else resolved
    queue = resolved if isinstance(resolved, Refused) else place_application(partition, resolved)
    if isinstance(queue, Refused):
        _reject(partition, spec, queue)
        return
    app = Application(spec, queue, partition.next_seq(), partition.now_ms)
    application_steps.admit(partition, app)
    partition.out.append(ApplicationAccepted(spec.id, queue.path, partition.name))


def _reject(partition: Partition, spec: ApplicationSpec, reason: Refused) -> None:
    """The application is kept with the reason for a while, so that one can ask why."""
    app = Application(spec, partition.root, partition.next_seq(), partition.now_ms)
    app.rejected, app.message = reason, reason.sentence()
    app.advance(Step.REJECT, partition.now_ms)
    app.finished_ms = partition.now_ms
    partition.rejected.pop(spec.id, None)  # They are kept in order of time.
    partition.rejected[spec.id] = app
    application_steps.keep_ended(partition)
    partition.out.append(ApplicationRejected(spec.id, reason, partition.name))


def remove_application(partition: Partition, event: events.RemoveApplication) -> None:
    """An application is taken out with all it has; it does not go to the completed ones."""
    app = partition.applications.get(event.id)
    if app is None:
        return
    for ask in app.allocated_asks():
        allocations.release(partition, ask, Cause.STOPPED_BY_RM, f"Application {app.id} Removed")
    for ask in app.waiting_asks():
        waiting_asks.drop_ask(partition, ask)
    application_steps.forget(partition, app)
    partition.out.append(ApplicationChanged(app.id, "Removed", "removed", partition.name))


# -- asks and allocations -----------------------------------------------------------------------------------------


def add_asks(partition: Partition, event: events.AddAsks) -> None:
    """Each ask by itself: a bad one is refused, the others go on."""
    for spec in event.asks:
        if TAG_FOREIGN in spec.tags:
            _foreign(partition, spec)
        else:
            _ask(partition, spec)


def _ask(partition: Partition, spec: AskSpec) -> None:
    refused = _refuse_ask(partition, spec)
    if refused:
        partition.out.append(AskRejected(spec.application, spec.key, Refused(refused), partition.name))
        return
    app = partition.applications[spec.application]
    if spec.node and (waits := partition.held_asks.get(app.id, spec.key)) is not None:
        # It runs, whatever it was to wait for.
        held.withdraw(partition, app, spec.key)
        spec = replace(waits.spec, resources=spec.resources, node=spec.node, conditions=None)
    known = app.asks.get(spec.key)
    if known is None:
        if spec.placeholder and not spec.task_group:
            return
        admitted = _admitted(partition, app, spec)
        if admitted is not None:
            _new_ask(partition, app, admitted)
        return
    if known.spec.resources != spec.resources:
        waits_on = known.node is None and not spec.node  # What runs is as large as it is.
        if waits_on and (too_large := why_not_larger(partition.admission, known, spec.resources.items)) is not None:
            partition.out.append(AskRejected(spec.application, spec.key, too_large, partition.name))
            return
        partition.note_change()
        resize(partition, known, spec)
    if spec.node and known.node is None:
        _restore(partition, known, spec.node)


def _admitted(partition: Partition, app: Application, spec: AskSpec) -> AskSpec | None:
    """The new ask with its class resolved; None when it was refused."""
    admission = partition.admission
    if not spec.priority_class and not admission.is_asked:
        return spec
    if spec.node:
        return as_reported(admission, spec)
    admitted = admit(admission, app.queue.path, spec, app, enters=not _is_to_wait(app, spec))
    if isinstance(admitted, AskSpec):
        return admitted
    partition.out.append(AskRejected(spec.application, spec.key, admitted, partition.name))
    return None


def _new_ask(partition: Partition, app: Application, spec: AskSpec) -> None:
    if app.state is State.NEW or app.state is State.COMPLETING:
        application_steps.advance(partition, app, Step.RUN)
    if spec.node:
        _restore(partition, Ask(app, spec, partition.next_seq(), partition.now_ms), spec.node)
    elif _is_to_wait(app, spec):
        conditions = spec.conditions or MET
        held.hold(partition, app, replace(spec, conditions=conditions), conditions)
        application_steps.complete_if_idle(partition, app)
        held.enter_if_met(partition, app, spec.key)
    else:
        waiting_asks.new_ask(partition, app, spec)
        application_steps.give_place_back(partition, app)


def _is_to_wait(app: Application, spec: AskSpec) -> bool:
    """Whether a new ask is held until its conditions are met, or its turn comes."""
    return spec.conditions is not None or (app.is_full and not (spec.placeholder or spec.task_group))


def _restore(partition: Partition, ask: Ask, node_id: str) -> None:
    """What is reported as running is taken over; where a taint of the node, or a window, lets nothing of it run, it has
    to go, and so where its application fails.
    """
    partition.note_change()
    node = partition.nodes.nodes[node_id]
    allocations.restore(partition, ask, node)
    node_events.evict_intolerant(partition, node, (ask,))
    windows.keep_free(partition, (ask,))
    if ask.app.state is State.FAILING:
        gangs.give_up_all(partition, ask.app)


def _refuse_ask(partition: Partition, spec: AskSpec) -> str:
    """Why this ask cannot be taken in, or nothing."""
    app = partition.applications.get(spec.application)
    if app is None:
        return f"failed to find application {spec.application}"
    if app.state is State.FAILING and not spec.node and spec.key not in app.asks:
        return f"application {app.id} is failing and takes nothing new"
    if spec.node and spec.node not in partition.nodes.nodes:
        return f"failed to find node {spec.node}"
    if not spec.key:
        return f"an ask of {spec.application} has no key: without one an order is about all of it"
    if not spec.resources.items:
        return "allocation contains no resources"
    for _, amount in spec.resources.items:
        if amount < 0:
            return "allocation contains negative resources"
    if not PRIORITY_MIN <= spec.priority <= PRIORITY_MAX:
        return f"priority {spec.priority} is not a 32-bit integer"
    if not spec.node and partition.held_asks.get(spec.application, spec.key) is not None:
        return f"{spec.key} waits already, for its conditions; change these instead"
    if spec.conditions is not None and (spec.placeholder or spec.task_group):
        return f"a gang waits as a whole: leave out the conditions, or task group {spec.task_group}"
    if spec.idle and spec.task_group:
        return f"idle work cannot be a gang: leave out idle, or task group {spec.task_group}"
    bad = amount_flaw(spec.resources) or flaw_of_times(spec)
    return bad or (flaw(spec.where) if spec.where is not ANYWHERE else "")


def _foreign(partition: Partition, spec: AskSpec) -> None:
    """Work of another scheduler: it uses a node, and stands beside ours."""
    node, bad = partition.nodes.nodes.get(spec.node), amount_flaw(spec.resources)
    if node is None:
        bad = f"failed to find node {spec.node}" if spec.node else "node ID is empty"
        bad = f"{bad} for allocation {spec.key}"
    if node is None or bad:
        partition.out.append(AskRejected("", spec.key, Refused(bad), partition.name))
        return
    if spec.where is not ANYWHERE and (bad := flaw(spec.where)):
        partition.out.append(AskRejected("", spec.key, Refused(bad), partition.name))
        spec = replace(spec, where=ANYWHERE)
    foreign.report(partition, node, spec)


def release(partition: Partition, event: events.Release) -> None:
    """An allocation or ask is no more. Unknown ones are ignored: the end may be reported twice."""
    if not event.application:
        foreign.end(partition, event.key)
        return
    app = partition.applications.get(event.application)
    if app is None:
        return
    again = None
    if event.key:
        found = app.asks.get(event.key)
        if found is None and not held.withdraw(partition, app, event.key):
            return
        if found is not None and found.node is not None:
            again = retry.try_again(partition, found, event.cause, event.exit_code)
        ended = [found] if found is not None else []
    else:
        ended = app.allocated_asks()
        held.withdraw_all(partition, app)
    real_gone = False
    for ask in ended:
        real_gone = real_gone or (ask.node is not None and not ask.spec.placeholder)
        _release_one(partition, ask, event.cause)
    if not event.key:
        app.closing = app.state is State.COMPLETING
        for ask in app.waiting_asks():
            waiting_asks.drop_ask(partition, ask)
    if app.spec.at_once:
        if again is not None:
            held.enter_if_met(partition, app, again.key)
        # What has its turn goes on in the place of its application.
        held.enter_next(partition, app)
    application_steps.complete_if_idle(partition, app, real_gone)
    if again is not None:
        # It has given back its place among those that run, if nothing else of it does, and waits for one as others do.
        held.enter_if_met(partition, app, again.key)


def _release_one(partition: Partition, ask: Ask, cause: Cause) -> None:
    if ask.pending:
        waiting_asks.drop_ask(partition, ask)
    elif ask.node is None:
        gangs.give_up(partition, ask)
    elif cause is Cause.PLACEHOLDER_REPLACED and gangs.can_start(partition, ask):
        gangs.end_swap(partition, ask)
    else:
        message = "allocation remove as per RM request" if cause is Cause.STOPPED_BY_RM else ""
        allocations.release(partition, ask, cause, message)


# -- which event goes where ---------------------------------------------------------------------------------------

HANDLERS: dict[type[Any], Callable[[Partition, Any], None]] = {
    events.AddNode: node_events.add_node,
    **dict.fromkeys(node_events.ABOUT_NODES, node_events.about_node),
    events.AddApplication: add_application,
    events.RemoveApplication: remove_application,
    events.AddAsks: add_asks,
    events.Release: release,
    events.Checkpoint: retry.checkpoint,
    events.ChangeAsk: orders.change_ask,
    events.LabelAsk: orders.label_ask,
    events.SetConditions: held.set_conditions,
    events.SetAtOnce: held.set_at_once,
    events.SetPriority: orders.set_priority,
    events.ReserveAsk: orders.reserve_ask,
    events.Leaving: recovery.leaving,
    events.Nominated: recovery.nominated,
    events.MoveApplication: orders.move_application,
}


def partition_of(event: Any) -> str:
    """The name of the partition that an event is about."""
    if isinstance(event, events.AddNode):
        event = event.node
    elif isinstance(event, events.AddApplication):
        event = event.application
    name: str = event.partition
    return name


def refuse_unknown_partition(event: Any, name: str, out: list[Any]) -> None:
    """Say for each part of an event that its partition is not there."""
    missing = f"failed to find partition {name} for"
    if isinstance(event, events.AddNode):
        out.append(NodeRejected(event.node.id, Refused(f"{missing} new node {event.node.id}"), name))
    elif isinstance(event, events.AddApplication):
        text = f"Failed to add application {event.application.id} to partition {name}, partition doesn't exist"
        out.append(ApplicationRejected(event.application.id, Refused(text), name))
    elif isinstance(event, events.AddAsks):
        for spec in event.asks:
            text = f"Failed to find partition {name}, for application {spec.application} and allocation {spec.key}"
            out.append(AskRejected(spec.application, spec.key, Refused(text), name))
    elif isinstance(event, events.MoveApplication):
        out.append(MoveRejected(event.id, Refused(f"{missing} application {event.id}"), name))
    elif type(event) in node_events.ABOUT_NODES:
        out.append(NodeRejected(event.id, Refused(f"{missing} node {event.id}"), name))
    elif isinstance(event, events.SetAtOnce):
        out.append(AskRejected(event.application, "", Refused(f"{missing} application {event.application}"), name))
    elif isinstance(event, events.ChangeAsk | events.SetConditions | events.SetPriority | events.ReserveAsk):
        reason = Refused(f"{missing} application {event.application}")
        out.append(AskRejected(event.application, event.key, reason, name))
