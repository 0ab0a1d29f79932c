"""Held asks: which asks are kept out of the line until their conditions are met, and when they enter it.

Decides from the conditions, and from how many of an application may be in line or run at once. Whether others ended
well is said from outside (`SetConditions`). Never starts or stops anything. Invariant: an ask whose conditions are met
is in line, was refused with a reason, or its application is full. One that is put on hold gives up its place in line,
and all that was kept for it; its application keeps its age.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.acts import application_steps, waiting_asks
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import HELD
from fairlead.core.model.conditions import MET, Conditions, Outcome
from fairlead.core.model.decisions import AskRejected, AtOnceChanged, ConditionsChanged
from fairlead.core.model.events import SetAtOnce, SetConditions
from fairlead.core.model.lifecycle import State, Step
from fairlead.core.model.reasons import Reason, Refused
from fairlead.core.model.specs import AskSpec
from fairlead.policy.events.admission import as_moved, why_beyond_quota


def hold(partition: Partition, app: Application, spec: AskSpec, conditions: Conditions) -> None:
    """Keep an ask out of the line until its conditions are met. Call `enter_if_met` when the books are in order."""
    partition.held_asks.add(app.id, spec, conditions)
    _set_timer(partition, app)


def enter_if_met(partition: Partition, app: Application, key: str) -> None:
    """A held ask waits in line from now on if its conditions are met, and no more of its application do than may."""
    held = partition.held_asks.get(app.id, key)
    if held is None or not held.conditions.met(partition.now_ms):
        return
    if app.spec.at_once and not held.spec.placeholder:  # A gang that gave way comes back as a whole.
        partition.held_asks.await_turn(app.id, held)
        enter_next(partition, app, is_new=True)
    else:
        _enter(partition, app, held.spec)


def enter_next(partition: Partition, app: Application, *, is_new: bool = False) -> None:
    """Of those that wait for nothing but their turn as many wait in line from now on as may. What enters in place of
    another was admitted with it: quotas are asked where it is new only, or they would refuse all that is left.
    """
    while not app.is_full and (held := partition.held_asks.next_in_turn(app.id, partition.now_ms)) is not None:
        _enter(partition, app, held.spec if is_new else replace(held.spec, conditions=None))


def enter_freed(partition: Partition) -> None:
    """Something ended of applications with a bound: those enter whose turn it is."""
    freed = partition.held_asks.freed
    while freed:
        app = partition.applications.get(freed.popitem()[0])
        if app is not None:
            enter_next(partition, app)


def enter_due(partition: Partition, app: Application) -> None:
    """A time has come that held asks of this application wait for."""
    for held in partition.held_asks.take_due(app.id, partition.now_ms):
        if app.spec.at_once:
            partition.held_asks.await_turn(app.id, held)
        else:
            _enter(partition, app, held.spec)
    enter_next(partition, app, is_new=True)
    _set_timer(partition, app)


def _enter(partition: Partition, app: Application, spec: AskSpec) -> None:
    partition.held_asks.take(app.id, spec.key)
    refused = _why_not_enter(partition, app, spec)
    if refused is not None:
        partition.out.append(AskRejected(app.id, spec.key, refused, partition.name))
        application_steps.complete_if_idle(partition, app)
        return
    if app.state is State.NEW or app.state is State.COMPLETING:
        application_steps.advance(partition, app, Step.RUN)
    waiting_asks.new_ask(partition, app, spec if spec.conditions is None else replace(spec, conditions=None))


def _why_not_enter(partition: Partition, app: Application, spec: AskSpec) -> Reason | None:
    if spec.key in app.asks:
        what = f"attempt {spec.attempt} of {spec.first_key}" if spec.first_key else spec.key
        return Refused(f"{what} cannot enter: an ask of that name is there already")
    if spec.conditions is not None and partition.admission.is_asked:
        # Quotas do not count what is held; so they are asked (again) when it enters. Its class was resolved before.
        return why_beyond_quota(partition.admission, app.queue.path, spec, app)
    return None


def why_no_room(partition: Partition, app: Application, spec: AskSpec, path: str = "") -> Reason | None:
    """Which quota refuses held work if nothing else keeps it out of line; None: none, or it waits for its turn.

    `path`: if it is in that queue; empty: in its own.
    """
    if spec.conditions is None or (app.is_full and not spec.placeholder):
        return None
    return why_beyond_quota(partition.admission, path or app.queue.path, spec, app)


def withdraw(partition: Partition, app: Application, key: str) -> bool:
    """Whether an ask of this key was held: it no longer is."""
    if not partition.held_asks or partition.held_asks.take(app.id, key) is None:
        return False
    _set_timer(partition, app)
    return True


def withdraw_all(partition: Partition, app: Application) -> None:
    """Nothing of this application is held any longer."""
    partition.held_asks.drop(app.id)
    _set_timer(partition, app)


def _set_timer(partition: Partition, app: Application) -> None:
    due_ms = partition.held_asks.next_due_ms(app.id, partition.now_ms)
    if due_ms is None:
        partition.timers.cancel(partition.name, app.id, HELD)
    elif partition.timers.due_ms(partition.name, app.id, HELD) != due_ms:
        partition.timers.set(due_ms, partition.name, app.id, HELD)


def set_conditions(partition: Partition, event: SetConditions) -> None:
    """A waiting or held ask has these conditions from now on."""
    app = partition.applications.get(event.application)
    held = partition.held_asks.get(event.application, event.key)
    ask = app.asks.get(event.key) if app is not None else None
    if app is None or (held is None and (ask is None or not ask.pending)):
        text = f"nothing waits under {event.application}/{event.key}: only what waits can be held or released"
        _refuse(partition, event, text)
        return
    if held is not None:
        old = held.conditions
        partition.held_asks.change(app.id, held, event.conditions)
        _set_timer(partition, app)
    else:
        assert ask is not None
        old = MET
        if event.conditions.met(partition.now_ms):
            return
        if ask.spec.placeholder or ask.spec.task_group:
            text = f"{event.application}/{event.key} is part of a gang, which waits as a whole: it cannot be held"
            _refuse(partition, event, text)
            return
        hold(partition, app, _drop(partition, ask), event.conditions)
        enter_next(partition, app)  # In the place of its application.
        application_steps.complete_if_idle(partition, app)
    said = (event.who, event.why, partition.name)
    partition.out.append(ConditionsChanged(app.id, event.key, old, event.conditions, *said))
    enter_if_met(partition, app, event.key)


def set_at_once(partition: Partition, event: SetAtOnce) -> None:
    """So many of an application are in line or run at a time from now on: those in line that are too many leave it."""
    app = partition.applications.get(event.application)
    bad = "" if app is not None else f"there is no application {event.application}"
    if event.at_once < 0:
        bad = f"{event.at_once} at once cannot be: give a number above 0, or 0 for all"
    if app is None or bad:
        partition.out.append(AskRejected(event.application, "", Refused(bad), partition.name))
        return
    if (short := why_not_so_many(partition, app, event.at_once)) is not None:
        partition.out.append(AskRejected(event.application, "", short, partition.name))
        return
    old, app.spec = app.spec.at_once, replace(app.spec, at_once=event.at_once)
    partition.out.append(AtOnceChanged(app.id, old, event.at_once, event.who, event.why, partition.name))
    if event.at_once and (too_many := len(app.asks) - event.at_once) > 0:
        leaving = [a for a in app.waiting_asks() if not (a.spec.placeholder or a.spec.task_group)][-too_many:]
        specs = [_drop(partition, ask) for ask in leaving]
        # A further attempt was admitted with the first: no quota is asked when it comes back.
        back = [spec if spec.attempt == 1 else replace(spec, conditions=None) for spec in specs]
        partition.held_asks.add_ahead(app.id, back)
        application_steps.complete_if_idle(partition, app)
    enter_next(partition, app)


def why_not_so_many(partition: Partition, app: Application, at_once: int, path: str = "") -> Reason | None:
    """Which quota has no room for those that enter when so many of the application may be at once (0: all).

    `path`: once it is in that queue, and counts there; empty: in its own.
    """
    now_ms, path = partition.now_ms, path or app.queue.path
    quotas = as_moved(partition.admission, app, path).copied()
    waiting = sorted((h for h in partition.held_asks.of(app.id) if h.conditions.met(now_ms)), key=lambda h: h.turn)
    for held in waiting[: max(at_once - len(app.asks), 0)] if at_once else waiting:
        asked = (path, held.spec.priority_class, held.spec.resources.items)
        if held.spec.conditions is not None and (short := quotas.obstacle(*asked, limited=False)) is not None:
            return short
        quotas.add(*asked, 1)
    return None


def following(partition: Partition, application: str, outcome: Outcome, how: str = "") -> list[SetConditions]:
    """What follows for those that wait for an application when this became of it: an event for each."""
    # Sorted: the order in which they were held, of several applications, is not the same after a restart.
    awaiting = partition.held_asks.awaiting(application)
    awaiting.sort(key=lambda each: (partition.applications[each[0]].seq, each[1].seq))
    return [
        SetConditions(waiting, held.spec.key, new, partition=partition.name)
        for waiting, held in awaiting
        if (new := held.conditions.when(application, outcome, how)) != held.conditions
    ]


def _drop(partition: Partition, ask: Ask) -> AskSpec:
    """Take an ask out of the line; as what it comes back: like one that was held from the beginning."""
    waiting_asks.drop_ask(partition, ask)
    return replace(ask.spec, priority=ask.priority, conditions=MET)


def _refuse(partition: Partition, event: SetConditions, why: str) -> None:
    partition.out.append(AskRejected(event.application, event.key, Refused(why), partition.name))
