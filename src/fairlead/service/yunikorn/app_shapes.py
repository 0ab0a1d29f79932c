"""Applications, requests, allocations and the nodes that these are on, in the JSON shapes of Apache YuniKorn's /ws/v1.

Decides names, units, what is left out, the buckets of utilisation, and when two asks of one read share the reason why
they wait. Never filters by user. Invariant: what ended is found in the figures of its application: resource seconds,
placeholders, the most that was used at once; every node that has a resource is in exactly one of its ten buckets.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fairlead.core.books.usage_history import PLACEHOLDER, PREEMPTED, USED
from fairlead.core.model.lifecycle import State
from fairlead.core.model.reasons import NextInLine, Reason
from fairlead.core.model.resources import pruned
from fairlead.core.model.specs import TAG_FOREIGN, AskSpec
from fairlead.policy.why.alike import Alike, alike
from fairlead.policy.why.waiting import why_waiting
from fairlead.service.yunikorn.shapes import MS, NEVER_STARTED_MS, RM_ID, Plain, filled, percentages

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition


def application(app: Application, part: Partition, why: Why) -> Plain:
    """An application."""
    waiting, running = app.waiting_asks(), app.allocated_asks()
    log = [filled({"time": at * MS, "applicationState": state.value}) for at, state in app.state_log]
    resting = app.rest_ends_ms(part.now_ms)
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


def _either(one: Ask) -> Plain:
    """What requests and allocations both show."""
    return {
        "allocationKey": one.key,
        "allocationTags": dict(one.spec.tags),
        "resource": dict(one.items),
        "priority": str(one.priority),
        "applicationId": one.app.id,
        "placeholder": one.spec.placeholder,
        "taskGroupName": one.spec.task_group,
        "originator": one.spec.originator,
    }


def ask(one: Ask, why: Why) -> Plain:
    """A request that waits."""
    shown = {
        "requestTime": one.created_ms * MS,
        "requiredNodeId": one.required_node,
        "allocationLog": why.log(one),
        "triggeredPreemption": one.preempt_triggered,
        "schedulingAttempted": why.attempted(one),
        "triggeredScaleUp": False,
    }
    return filled(_either(one) | shown, "allocationKey")


def allocation(one: Ask) -> Plain:
    """An ask that has a node. Its time is when the ask was created, as YuniKorn shows it.

    The time of its request is when the placeholder was created that it replaced, if it replaced one.
    """
    requested_ms = one.created_ms if one.stood_in_ms is None else one.stood_in_ms
    shown = {
        "requestTime": requested_ms * MS,
        "allocationTime": one.created_ms * MS,
        "allocationDelay": (one.created_ms - requested_ms) * MS,
        "nodeId": one.node.id if one.node is not None else "",
        "placeholderUsed": one.stood_in_ms is not None,
        "preempted": one.evict_cause is not None and one.evict_cause.value == "PREEMPTED_BY_SCHEDULER",
    }
    return filled(_either(one) | shown, "allocationKey")


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


# -- nodes --------------------------------------------------------------------------------------------------------

BUCKETS = tuple(f"{low}-{low + 10}%" for low in range(0, 100, 10))


def node(one: Node, partition_name: str) -> Plain:
    """A node with what runs on it."""
    own = one.spec.attributes
    attributes = {**own, "si/node-partition": f"[{RM_ID}]{partition_name}"}
    shown = {
        "nodeID": one.id,
        "hostName": own.get("si.io/hostname") or own.get("hostname", ""),
        "rackName": own.get("si.io/rackname", ""),
        "attributes": attributes,
        "capacity": pruned(one.total),
        "allocated": pruned(one.allocated),
        "occupied": pruned(one.occupied),
        "available": pruned(one.available),
        "utilized": percentages(one.allocated, one.total),
        "allocations": [allocation(each) for each in one.allocations],
        "foreignAllocations": [foreign(spec, at_ms) for spec, at_ms in one.foreign.values()],
        "schedulable": one.takes_new,
        "isReserved": bool(one.reservations),
        "reservations": [each.key for each in one.reservations],
    }
    return filled(shown, "nodeID", "schedulable", "isReserved")


def utilizations(part: Partition) -> Plain:
    """How many nodes use how much, for each resource that some node has."""
    nodes = list(part.nodes.nodes.values())
    names = sorted({name for one in nodes for name, amount in one.total.items() if amount > 0})
    return {
        "clusterId": RM_ID,
        "partition": part.name,
        "utilizations": [{"type": name, "utilization": _buckets(nodes, name)} for name in names],
    }


def bucket_of(allocated: int, total: int) -> int:
    """The bucket of a share: 0 for up to 10 %, 9 for everything above 90 %."""
    tenths = -(-allocated * 10 // total)
    return min(max(tenths - 1, 0), 9)


def _buckets(nodes: list[Node], name: str) -> list[Plain]:
    found: list[list[str]] = [[] for _ in BUCKETS]
    for one in nodes:
        total = one.total.get(name, 0)
        if total > 0:
            found[bucket_of(one.allocated.get(name, 0), total)].append(one.id)
    return [
        filled({"bucketName": label, "numOfNodes": len(ids), "nodeNames": ids})
        for label, ids in zip(BUCKETS, found, strict=True)
    ]


# -- why asks wait ------------------------------------------------------------------------------------------------

ABOUT_NODES = frozenset(
    {"too-big-for-every-node", "no-node-has-room", "required-node-unknown", "reserved-node-too-full", "node-reserved"}
)
"""Reasons that are known only after nodes were looked at."""


class Why:
    """The reasons of one read, looked up once for all that wait for the same."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._found: dict[Alike, Reason] = {}

    def of(self, ask: Ask) -> Reason:
        """Why a waiting ask waits."""
        key = alike(self._partition, ask)
        if key is None or ask.held_on is not None:
            return why_waiting(self._partition, ask)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = why_waiting(self._partition, ask)
        return found

    def log(self, ask: Ask) -> list[dict[str, Any]]:
        """The allocation log: the reason of this moment, or nothing for what comes next."""
        reason = self.of(ask)
        if isinstance(reason, NextInLine):
            return []
        return [{"message": reason.sentence(), "lastOccurrence": self._partition.now_ms * 1_000_000, "count": 1}]

    def attempted(self, ask: Ask) -> bool:
        """Whether nodes were looked at for it."""
        return ask.attempted or self.of(ask).code in ABOUT_NODES
