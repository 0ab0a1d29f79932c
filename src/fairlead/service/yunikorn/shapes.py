"""Clusters, partitions, queues and placement rules in the JSON shapes of Apache YuniKorn's /ws/v1.

Decides names, units and what is left out when empty, as its REST interface does: times in nanoseconds, percentages as
whole numbers, the smallest 32-bit integer for "no priority". Never filters by user: the interface has no users.
Invariant: a field that YuniKorn omits when it is empty is omitted here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.core.books.queues import RECOVERY_QUEUE
from fairlead.core.model.names import EXPRESSION_SIGNS
from fairlead.core.model.resources import pruned
from fairlead.core.model.specs import PRIORITY_MIN, RuleSpec
from fairlead.insight.line import pending

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.resources import Book
    from fairlead.core.model.specs import FilterSpec

Plain = dict[str, Any]
RM_ID = "fairlead"
CLUSTER_NAME = "kubernetes"
MS = 1_000_000
NEVER_STARTED_MS = -62_135_596_800_000
"""The start of an application that never ran: the zero time of Go, in milliseconds."""


def filled(shown: Mapping[str, Any], *always: str) -> Plain:
    """What is not empty, zero, false or None, and `always` the named fields."""
    return {name: value for name, value in shown.items() if name in always or (value not in (None, "", 0) and value)}


def percentages(used: Mapping[str, int], total: Mapping[str, int]) -> dict[str, int]:
    """How much of each amount in `total` is used, in whole per cent."""
    return {name: used.get(name, 0) * 100 // limit for name, limit in sorted(total.items()) if limit > 0}


def cluster(partition: Partition, started_ms: int, build: Mapping[str, str]) -> Plain:
    """One entry of /clusters."""
    return filled(
        {
            "startTime": started_ms * MS,
            "rmBuildInformation": [{"rmId": RM_ID, **build}],
            "partition": partition.name,
            "clusterName": CLUSTER_NAME,
        },
        "partition",
        "clusterName",
    )


def partition(part: Partition, started_ms: int) -> Plain:
    """One entry of /partitions."""
    total, used = pruned(part.nodes.total), pruned(part.root.allocated)
    sort = part.spec.node_sort
    capacity = filled({"capacity": total, "usedCapacity": used, "utilization": percentages(used, total)})
    return filled(
        {
            "clusterId": RM_ID,
            "name": part.name,
            "capacity": capacity,
            "nodeSortingPolicy": filled({"type": sort.policy, "resourceWeights": dict(sort.weights)}),
            "preemptionEnabled": part.spec.preemption.enabled,
            "quotaPreemptionEnabled": part.spec.preemption.quota_enabled,
            "totalNodes": len(part.nodes.nodes),
            "applications": application_counts(part),
            "totalContainers": sum(len(node.allocations) for node in part.nodes.nodes.values()),
            "state": "Active",
            "lastStateTransitionTime": started_ms * MS,
        },
        "clusterId",
        "name",
        "capacity",
        "nodeSortingPolicy",
        "preemptionEnabled",
        "quotaPreemptionEnabled",
        "applications",
    )


def application_counts(part: Partition) -> dict[str, int]:
    """How many applications are in each state, and in total."""
    everybody = [*part.applications.values(), *part.ended.values(), *part.rejected.values()]
    counts = Counter(app.state.value for app in everybody)
    return {**dict(sorted(counts.items())), "total": len(everybody)}


def queue(part: Partition, one: Queue, *, subtree: bool, partition_name: str = "") -> Plain:
    """A queue; with `subtree` those below it too. `partition_name` is shown on the root of /queues only."""
    return _queue(one, pending(part), subtree, partition_name)


def _queue(one: Queue, waits: Mapping[Queue, tuple[Book, int]], subtree: bool, partition_name: str = "") -> Plain:
    """`waits`: what waits in each, added up once for all of them."""
    properties = one.properties
    headroom = one.headroom()
    shown = {
        "queuename": one.path,
        "status": one.state.value,
        "partition": partition_name,
        "pendingResource": pruned(waits[one][0]),
        "maxResource": dict(one.max) if one.max is not None else None,
        "guaranteedResource": dict(one.guaranteed) if one.guaranteed is not None else None,
        "allocatedResource": pruned(one.allocated),
        "preemptingResource": pruned(one.preempting),
        "headroom": dict(sorted(headroom.items())) if headroom is not None else None,
        "isLeaf": one.is_leaf,
        "isManaged": one.managed,
        "properties": dict(properties.raw),
        "parent": one.parent.path if one.parent is not None else None,
        "template": _template(one),
        "children": [_queue(child, waits, subtree=True) for child in one.children.values()] if subtree else None,
        "childNames": [child.path for child in one.children.values()],
        "absUsedCapacity": percentages(one.allocated, one.max) if one.max else None,
        "maxRunningApps": one.max_applications,
        "runningApps": one.running,
        "currentPriority": max(one.reported, PRIORITY_MIN),
        "allocatingAcceptedApps": list(one.allocating_accepted),
        "sortingPolicy": properties.sort_policy if one.is_leaf else "fair",
        "prioritySorting": properties.priority_sorting,
        "preemptionEnabled": properties.preemption_policy != "disabled",
        "isPreemptionFence": properties.preemption_policy == "fence",
        "isPriorityFence": properties.priority_fence,
        "preemptionDelay": go_duration(properties.preemption_delay_ms),
        "quotaPreemptionDelay": go_duration(properties.quota_preemption_delay_ms),
        "priorityOffset": properties.priority_offset,
    }
    return filled(
        shown,
        "queuename",
        "partition",
        "isLeaf",
        "isManaged",
        "currentPriority",
        "prioritySorting",
        "preemptionEnabled",
        "isPreemptionFence",
        "isPriorityFence",
    )


def _template(one: Queue) -> Plain | None:
    template = one.template
    if template is None:
        return None
    return filled(
        {
            "maxApplications": template.max_applications,
            "maxResource": template.max.as_dict() if template.max else None,
            "guaranteedResource": template.guaranteed.as_dict() if template.guaranteed else None,
            "properties": dict(template.properties),
        }
    )


def go_duration(milliseconds: int) -> str:
    """A duration as Go writes it: `30s`, `1m30s`, `500ms`, `0s`."""
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds = f"{rest // 1000}.{rest % 1000:03d}".rstrip("0").rstrip(".")
    return f"{f'{hours}h' if hours else ''}{f'{minutes}m' if hours or minutes else ''}{seconds}s"


# -- placement rules ----------------------------------------------------------------------------------------------

RECOVERY_RULE: Plain = {"name": "recovery", "parameters": {"queue": RECOVERY_QUEUE}}


def rules(specs: Iterable[RuleSpec]) -> list[Plain]:
    """The rules of a partition in their order; the last one, for work that is forced in, is always there."""
    return [*[rule(spec) for spec in specs or (RuleSpec(name="provided"),)], RECOVERY_RULE]


def rule(spec: RuleSpec) -> Plain:
    """One rule with its parents."""
    kind, create = spec.name.lower(), "true" if spec.create else "false"
    parameters = {"create": create}
    if kind == "fixed":
        value = spec.value.lower()
        qualified = value == "root" or value.startswith("root.")
        parameters |= {"queue": value, "qualified": "true" if qualified else "false"}
    elif kind == "tag":
        parameters |= {"tagName": spec.value.lower()}
    return filled(
        {
            "name": kind,
            "parameters": parameters,
            "filter": _filter(spec.filter) if spec.filter is not None else None,
            "parentRule": rule(spec.parent) if spec.parent is not None else None,
        },
        "name",
    )


def _filter(spec: FilterSpec) -> Plain | None:
    if not (spec.type or spec.users or spec.groups):
        return None
    shown: Plain = {"type": "deny" if spec.type.lower() == "deny" else "allow"}
    for names, listed, expression in ((spec.users, "userList", "userExp"), (spec.groups, "groupList", "groupExp")):
        if len(names) == 1 and any(sign in EXPRESSION_SIGNS for sign in names[0]):
            shown[expression] = names[0]
        elif names:
            shown[listed] = sorted(names)
    return shown
