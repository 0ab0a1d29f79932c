"""Steps that name an ask or allocation by its key alone: which one is meant, and what the step says of it.

Decides which ask a key stands for and refuses a key that stands for none, or for several. Never changes anything.
Invariant: a step is about exactly one ask or allocation that is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.events import Cause, Event, Release, ReserveAsk, SetPriority
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.sim.additions import FinishStep, GoneStep, InterruptStep, KeyStep, ReserveStep, SetPriorityStep
from fairlead.sim.words import ScenarioError

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.scheduler import Scheduler

WHO = "scenario"
"""Who orders what a step says an administrator orders."""


def event_of(scheduler: Scheduler, step: KeyStep) -> Event:
    """The event that the step stands for. Raises `ScenarioError` when there is nothing that it could be about."""
    ask = named(scheduler, step)
    app = ask.app.id
    match step:
        case ReserveStep():
            return ReserveAsk(app, ask.key, step.on, WHO)
        case SetPriorityStep():
            return SetPriority(app, ask.key, step.priority, WHO)
        case FinishStep():
            return Release(app, _running(ask).key, Cause.FINISHED, exit_code=step.exit_code)
        case InterruptStep():
            return Release(app, _running(ask).key, Cause.INTERRUPTED)
        case GoneStep() if ask.evict_cause is not None:
            return Release(app, ask.key, ask.evict_cause)
    raise ScenarioError(f"{ask.key} was not told to stop; 'gone' is for what was")


def named(scheduler: Scheduler, step: KeyStep) -> Ask:
    """The ask or allocation with the step's key. Raises `ScenarioError` unless there is exactly one."""
    found = _with_key(scheduler.cluster.partitions.get(DEFAULT_PARTITION), step)
    if len(found) == 1:
        return found[0]
    of_app = f" of application {step.app}" if step.app else ""
    if not found:
        raise ScenarioError(f"nothing with the key {step.key}{of_app} waits or runs")
    apps = ", ".join(a.app.id for a in found)
    raise ScenarioError(f"the key {step.key} is that of {len(found)} asks (applications {apps}); say which with 'app'")


def key_of(scheduler: Scheduler, name: str) -> str:
    """The key in `application/key` or `key`, as an eviction names whom it makes room for."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    at = name.find("/")
    while partition is not None and at >= 0:
        app = partition.applications.get(name[:at])
        if app is not None and name[at + 1 :] in app.asks:
            return name[at + 1 :]
        at = name.find("/", at + 1)
    return name


def _with_key(partition: Partition | None, step: KeyStep) -> list[Ask]:
    if partition is None:
        return []
    apps = partition.applications.values()
    return [app.asks[step.key] for app in apps if step.key in app.asks and step.app in ("", app.id)]


def _running(ask: Ask) -> Ask:
    if ask.node is None:
        raise ScenarioError(f"{ask.key} waits; only what runs can finish or be interrupted")
    return ask
