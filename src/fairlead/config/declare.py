"""The keys of a queue file, level by level, and the declared value each level becomes.

Decides which keys exist and what type each has. Never compares one value with another (that is `check_*`). To add a
key: a row in its table, a field in the value it builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.config.admission import ADMISSION_KEYS, AdmissionDeclaration
from fairlead.config.decode import (
    Findings,
    Reader,
    list_of,
    or_none,
    read_count,
    read_float_map,
    read_limits,
    read_record,
    read_text,
    read_text_map,
    read_texts,
    read_truth,
)
from fairlead.config.yamltree import Node
from fairlead.core.specs import FilterSpec, LimitSpec, NodeSortSpec, PreemptionSpec, QueueSpec, RuleSpec, TemplateSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDeclaration:
    """One entry of `partitions` as written, before the root queue is found or made."""

    path: str
    name: str
    queues: tuple[QueueSpec, ...] | None
    """None when the key is missing or empty."""
    rules: tuple[RuleSpec, ...]
    limits: tuple[LimitSpec, ...]
    preemption: PreemptionSpec
    node_sort: NodeSortSpec
    resolver: str
    state_aware: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The whole file as written."""

    partitions: tuple[PartitionDeclaration, ...]
    admission: AdmissionDeclaration
    checksum: str


def _record(keys: Mapping[str, Reader]) -> Reader:
    def read(found: Findings, node: Node, path: str) -> dict[str, Any]:
        return read_record(found, node, path, keys)

    return read


def _limit(found: Findings, node: Node, path: str) -> LimitSpec:
    given = read_record(found, node, path, LIMIT_KEYS)
    return LimitSpec(
        limit=given.get("limit", ""),
        users=given.get("users", ()),
        groups=given.get("groups", ()),
        max_resources=given.get("maxresources"),
        max_applications=given.get("maxapplications", 0),
    )


def _template(found: Findings, node: Node, path: str) -> TemplateSpec:
    given = read_record(found, node, path, TEMPLATE_KEYS)
    resources = given.get("resources", {})
    properties: dict[str, str] = given.get("properties", {})
    return TemplateSpec(
        guaranteed=resources.get("guaranteed"),
        max=resources.get("max"),
        max_applications=given.get("maxapplications", 0),
        properties={k: v for k, v in properties.items() if k.strip() and v.strip()},
    )


def _queue(found: Findings, node: Node, path: str) -> QueueSpec:
    given = read_record(found, node, path, QUEUE_KEYS)
    resources = given.get("resources", {})
    return QueueSpec(
        name=given.get("name", ""),
        parent=given.get("parent", False),
        guaranteed=resources.get("guaranteed"),
        max=resources.get("max"),
        max_applications=given.get("maxapplications", 0),
        properties=given.get("properties", {}),
        admin_acl=given.get("adminacl", ""),
        submit_acl=given.get("submitacl", ""),
        child_template=given.get("childtemplate"),
        limits=given.get("limits", ()),
        queues=given.get("queues", ()),
    )


def _filter(found: Findings, node: Node, path: str) -> FilterSpec:
    given = read_record(found, node, path, FILTER_KEYS)
    return FilterSpec(type=given.get("type", ""), users=given.get("users", ()), groups=given.get("groups", ()))


def _rule(found: Findings, node: Node, path: str) -> RuleSpec:
    given = read_record(found, node, path, RULE_KEYS)
    return RuleSpec(
        name=given.get("name", ""),
        create=given.get("create", False),
        value=given.get("value", ""),
        filter=given.get("filter"),
        parent=given.get("parent"),
    )


def _preemption(found: Findings, node: Node, path: str) -> PreemptionSpec:
    given = read_record(found, node, path, PREEMPTION_KEYS)
    enabled, quota = given.get("enabled"), given.get("quotapreemptionenabled")
    return PreemptionSpec(
        enabled=True if enabled is None else enabled, quota_enabled=bool(quota), rule=given.get("rule") or "guarantee"
    )


def _node_sort(found: Findings, node: Node, path: str) -> NodeSortSpec:
    given = read_record(found, node, path, NODE_SORT_KEYS)
    weights = given.get("resourceweights")
    policy = given.get("type") or NodeSortSpec().policy
    return NodeSortSpec(policy=policy, weights=weights) if weights else NodeSortSpec(policy=policy)


def _partition(found: Findings, node: Node, path: str) -> PartitionDeclaration:
    given = read_record(found, node, path, PARTITION_KEYS)
    return PartitionDeclaration(
        path=path,
        name=given.get("name", ""),
        queues=given.get("queues"),
        rules=given.get("placementrules", ()),
        limits=given.get("limits", ()),
        preemption=given.get("preemption") or PreemptionSpec(),
        node_sort=given.get("nodesortpolicy") or NodeSortSpec(),
        resolver=given.get("usergroupresolver", {}).get("type", ""),
        state_aware=given.get("stateaware", False),
    )


def declared(found: Findings, root: Node) -> Declaration:
    """Read the whole tree; what is wrong is in `found`, and its default in the result."""
    found.places[""] = root
    given = read_record(found, root, "", FILE_KEYS)
    return Declaration(
        partitions=given.get("partitions", ()),
        admission=AdmissionDeclaration.of(given),
        checksum=given.get("checksum", ""),
    )


RESOURCE_KEYS: dict[str, Reader] = {
    "guaranteed": read_limits,
    "max": read_limits,
}
LIMIT_KEYS: dict[str, Reader] = {
    "limit": read_text,
    "users": read_texts,
    "groups": read_texts,
    "maxresources": read_limits,
    "maxapplications": read_count,
}
TEMPLATE_KEYS: dict[str, Reader] = {
    "maxapplications": read_count,
    "properties": read_text_map,
    "resources": _record(RESOURCE_KEYS),
}
QUEUE_KEYS: dict[str, Reader] = {
    "name": read_text,
    "parent": read_truth,
    "resources": _record(RESOURCE_KEYS),
    "maxapplications": read_count,
    "properties": read_text_map,
    "adminacl": read_text,
    "submitacl": read_text,
    "childtemplate": or_none(_template),
    "queues": list_of(_queue, "queues"),
    "limits": list_of(_limit, "limits"),
}
FILTER_KEYS: dict[str, Reader] = {"type": read_text, "users": read_texts, "groups": read_texts}
RULE_KEYS: dict[str, Reader] = {
    "name": read_text,
    "create": read_truth,
    "filter": or_none(_filter),
    "parent": or_none(_rule),
    "value": read_text,
}
PREEMPTION_KEYS: dict[str, Reader] = {
    "enabled": or_none(read_truth),
    "quotapreemptionenabled": or_none(read_truth),
    "rule": read_text,
}
NODE_SORT_KEYS: dict[str, Reader] = {"type": read_text, "resourceweights": read_float_map}
RESOLVER_KEYS: dict[str, Reader] = {"type": read_text}
PARTITION_KEYS: dict[str, Reader] = {
    "name": read_text,
    "queues": or_none(list_of(_queue, "queues")),
    "placementrules": list_of(_rule, "placement rules"),
    "limits": list_of(_limit, "limits"),
    "preemption": or_none(_preemption),
    "nodesortpolicy": or_none(_node_sort),
    "usergroupresolver": _record(RESOLVER_KEYS),
    "stateaware": read_truth,
}
FILE_KEYS: dict[str, Reader] = {
    "partitions": list_of(_partition, "partitions"),
    **ADMISSION_KEYS,
    "checksum": read_text,
}
