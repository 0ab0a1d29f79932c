"""Applications, requests and allocations in the JSON shapes of Apache YuniKorn's /ws/v1.

Decides names, units and what is left out. Never filters by user. Invariant: what ended is found in the figures of its
application: resource seconds, placeholders, the most that was used at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fairlead.core.books.usage_history import PLACEHOLDER, PREEMPTED, USED
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import pruned
from fairlead.core.model.specs import TAG_FOREIGN, AskSpec
from fairlead.service.yunikorn.shapes import MS, NEVER_STARTED_MS, Plain, filled
from fairlead.service.yunikorn.why import Why

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition


def application(app: Application, part: Partition, why: Why) -> Plain:
    """An application."""
    waiting, running = app.waiting_asks(), app.allocated_asks()
    log = [filled({"time": at * MS, "applicationState": state.value}) for at, state in app.state_log]
    resting = app.backoff_until_ms if (app.backoff_until_ms or 0) > part.now_ms else None
    shown = {
        "applicationID": app.id,
        "usedResource": pruned(app.allocated),
        "maxUsedResource": most_used(app),
        "pendingResource": pruned(app.pending),
        "partition": part.name,
        "queueName": app.queue.path if app.state is not State.REJECTED else app.spec.queue,
        "submissionTime": app.submitted_ms * MS,
        "finishedTime": app.finished_ms * MS if app.finished_ms is not None else None,
        "requests": [ask(each, why) for each in waiting],
        "allocations": [allocation(each) for each in running],
        "applicationState": app.state.value,
        "user": app.user,
        "groups": list(app.spec.groups) or [app.user],
        "rejectedMessage": app.message if app.state is State.REJECTED else "",
        "stateLog": log,
        "placeholderData": placeholders(app),
        "hasReserved": any(each.reserved_on is not None for each in waiting),
        "reservations": [each.key for each in waiting if each.reserved_on is not None],
        "maxRequestPriority": max((each.priority for each in waiting), default=0),
        "startTime": app.start_ms if app.start_ms is not None else NEVER_STARTED_MS,
        "resourceHistory": resource_history(app),
        "backoffDeadline": rfc3339(resting) if resting is not None else None,
    }
    return filled(shown, "applicationID", "partition", "queueName", "resourceHistory")


def applications(found: Iterable[Application], part: Partition) -> list[Plain]:
    """Applications as a list."""
    why = Why(part)
    return [application(app, part, why) for app in found]


def most_used(app: Application) -> dict[str, int]:
    """The most of each resource that its real allocations had at once."""
    peak = dict(app.consumed.peak) if app.consumed is not None else {}
    for name, amount in app.allocated.items():
        peak[name] = max(amount, peak.get(name, 0))
    return pruned(peak)


def resource_history(app: Application) -> Plain:
    """Amount times seconds of what has ended, by instance type."""
    if app.consumed is None:
        return {}
    names = {"resourceUsage": USED, "preemptedResource": PREEMPTED, "placeholderResource": PLACEHOLDER}
    return filled({name: app.consumed.seconds(bucket) for name, bucket in names.items()})


def placeholders(app: Application) -> list[Plain]:
    """What became of the placeholders of each task group."""
    return [
        filled(
            {
                "taskGroupName": group.name,
                "count": group.count,
                "minResource": dict(group.smallest),
                "replaced": group.replaced,
                "timedout": group.timed_out,
            }
        )
        for group in app.groups.values()
        if group.count
    ]


def rfc3339(at_ms: int) -> str:
    """A time as text."""
    text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def ask(one: Ask, why: Why) -> Plain:
    """A request that waits."""
    shown = {
        "allocationKey": one.key,
        "allocationTags": dict(one.spec.tags),
        "requestTime": one.created_ms * MS,
        "resource": dict(one.items),
        "priority": str(one.priority),
        "requiredNodeId": one.required_node,
        "applicationId": one.app.id,
        "placeholder": one.spec.placeholder,
        "taskGroupName": one.spec.task_group,
        "allocationLog": why.log(one),
        "triggeredPreemption": one.preempt_triggered,
        "originator": one.spec.originator,
        "schedulingAttempted": why.attempted(one),
        "triggeredScaleUp": one.scale_up_reported,
    }
    return filled(shown, "allocationKey")


def allocation(one: Ask) -> Plain:
    """An ask that has a node. Its time is when the ask was created, as YuniKorn shows it.

    The time of its request is when the placeholder was created that it replaced, if it replaced one.
    """
    requested_ms = one.created_ms if one.stood_in_ms is None else one.stood_in_ms
    shown = {
        "allocationKey": one.key,
        "allocationTags": dict(one.spec.tags),
        "requestTime": requested_ms * MS,
        "allocationTime": one.created_ms * MS,
        "allocationDelay": (one.created_ms - requested_ms) * MS,
        "resource": dict(one.items),
        "priority": str(one.priority),
        "nodeId": one.node.id if one.node is not None else "",
        "applicationId": one.app.id,
        "placeholder": one.spec.placeholder,
        "placeholderUsed": one.stood_in_ms is not None,
        "taskGroupName": one.spec.task_group,
        "preempted": one.evict_cause is not None and one.evict_cause.value == "PREEMPTED_BY_SCHEDULER",
        "originator": one.spec.originator,
    }
    return filled(shown, "allocationKey")


def foreign(spec: AskSpec, at_ms: int) -> Plain:
    """An allocation of another scheduler."""
    shown = {
        "allocationKey": spec.key,
        "allocationTags": dict(spec.tags),
        "allocationTime": at_ms * MS,
        "resource": spec.resources.as_dict(),
        "priority": str(spec.priority),
        "nodeId": spec.node,
        "preemptable": spec.tags.get(TAG_FOREIGN) != "static",
    }
    return filled(shown, "allocationKey")
