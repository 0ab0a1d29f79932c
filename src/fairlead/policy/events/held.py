"""Held asks: which asks are kept out of the line until their conditions are met, and when they enter it.

Decides from the conditions alone. Whether others ended well is said from outside (`SetConditions`). Never starts or
stops anything. Invariant: an ask whose conditions are met is in line, or was refused with a reason. One that is put on
hold gives up its place in line, and all that was kept for it; its application keeps its age.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.acts import application_steps, waiting_asks
from fairlead.core.model.conditions import MET
from fairlead.core.model.decisions import AskRejected, ConditionsChanged
from fairlead.core.model.events import SetConditions
from fairlead.core.model.lifecycle import State, Step
from fairlead.core.model.reasons import Reason, Refused
from fairlead.policy.events.admission import admit

if TYPE_CHECKING:
    from fairlead.core.books import Application, Ask, Partition
    from fairlead.core.model.conditions import Conditions, Outcome
    from fairlead.core.model.specs import AskSpec

TIMER = "held"


def hold(partition: Partition, app: Application, spec: AskSpec, conditions: Conditions) -> None:
    """Keep an ask out of the line until its conditions are met. Call `enter_met` when the books are in order."""
    partition.held_asks.add(app.id, spec, conditions)
    _set_timer(partition, app)


def enter_met(partition: Partition, app: Application) -> None:
    """The held asks of this application whose conditions are met wait in line from now on."""
    for spec in partition.held_asks.take_met(app.id, partition.now_ms):
        refused = _why_not_enter(partition, app, spec)
        if refused is not None:
            partition.out.append(AskRejected(app.id, spec.key, refused, partition.name))
            application_steps.complete_if_idle(partition, app)
            continue
        if app.state is State.NEW or app.state is State.COMPLETING:
            application_steps.advance(partition, app, Step.RUN)
        waiting_asks.new_ask(partition, app, spec if spec.conditions is None else replace(spec, conditions=None))
    _set_timer(partition, app)


def _why_not_enter(partition: Partition, app: Application, spec: AskSpec) -> Reason | None:
    if spec.key in app.asks:
        what = f"attempt {spec.attempt} of {spec.first_key}" if spec.first_key else spec.key
        return Refused(f"{what} cannot enter: an ask of that name is there already")
    if spec.conditions is not None and partition.admission.is_asked:
        # Quotas do not count what has never been in line; so they are asked again when it enters.
        admitted = admit(partition.admission, app.queue.path, spec)
        return admitted if isinstance(admitted, Reason) else None
    return None


def _set_timer(partition: Partition, app: Application) -> None:
    due_ms = partition.held_asks.next_due_ms(app.id)
    if due_ms is not None and due_ms > partition.now_ms:
        if partition.timers.due_ms(partition.name, app.id, TIMER) != due_ms:
            partition.timers.set(due_ms, partition.name, app.id, TIMER)
    else:
        partition.timers.cancel(partition.name, app.id, TIMER)


def set_conditions(partition: Partition, event: SetConditions) -> None:
    """A waiting or held ask has these conditions from now on."""
    app = partition.applications.get(event.application)
    held = partition.held_asks.get(event.application, event.key)
    ask = app.asks.get(event.key) if app is not None else None
    if app is None or (held is None and (ask is None or not ask.pending)):
        text = f"nothing waits under {event.application}/{event.key}: only what waits can be held or released"
        _refuse(partition, event, Refused(text))
        return
    if held is not None:
        old = held.conditions
        partition.held_asks.change(app.id, held, event.conditions)
    else:
        assert ask is not None
        old = MET
        if event.conditions.met(partition.now_ms):
            return
        if ask.spec.placeholder or ask.spec.task_group:
            text = f"{event.application}/{event.key} is part of a gang, which waits as a whole: it cannot be held"
            _refuse(partition, event, Refused(text))
            return
        _leave_line(partition, app, ask, event.conditions)
    said = (event.who, event.why, partition.name)
    partition.out.append(ConditionsChanged(app.id, event.key, old, event.conditions, *said))
    enter_met(partition, app)


def following(partition: Partition, application: str, outcome: Outcome, how: str = "") -> list[SetConditions]:
    """What follows for those that wait for an application when this became of it: an event for each."""
    found = []
    for waiting, held in partition.held_asks.awaiting(application):
        new = held.conditions.when(application, outcome, how)
        if new != held.conditions:
            found.append(SetConditions(waiting, held.spec.key, new, partition=partition.name))
    return found


def _leave_line(partition: Partition, app: Application, ask: Ask, conditions: Conditions) -> None:
    spec = ask.spec if ask.spec.priority == ask.priority else replace(ask.spec, priority=ask.priority)
    waiting_asks.drop_ask(partition, ask)
    hold(partition, app, spec, conditions)
    application_steps.complete_if_idle(partition, app)


def _refuse(partition: Partition, event: SetConditions, reason: Reason) -> None:
    partition.out.append(AskRejected(event.application, event.key, reason, partition.name))
