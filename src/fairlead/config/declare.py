"""The keys of a queue file, level by level, and the declared value each level becomes.

Decides which keys exist and what kind of value each has, and so what editors are told of a queue file. Never compares
one value with another (that is `check_*`). To add a key: a row in its table, a field in the value it builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.config import kinds
from fairlead.config.admission import ADMISSION_KEYS, AdmissionDeclaration
from fairlead.config.decode import Findings
from fairlead.config.yamltree import Node
from fairlead.core.model import specs

NODE_SORTS = ("fair", "binpacking")
PREEMPTION_RULES = ("guarantee", "priority", "both")
RESOLVERS = ("", "os", "ldap", "test")
RULES = ("provided", "user", "fixed", "tag")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDeclaration:
    """One entry of `partitions` as written, before the root queue is found or made."""

    path: str
    name: str = ""
    queues: tuple[specs.QueueSpec, ...] | None = None
    """None when the key is missing or empty."""
    rules: tuple[specs.RuleSpec, ...] = ()
    limits: tuple[specs.LimitSpec, ...] = ()
    preemption: specs.PreemptionSpec = field(default_factory=specs.PreemptionSpec)
    node_sort: specs.NodeSortSpec = field(default_factory=specs.NodeSortSpec)
    resolver: str = ""
    state_aware: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The whole file as written."""

    partitions: tuple[PartitionDeclaration, ...]
    admission: AdmissionDeclaration
    checksum: str


def _queue(*, resources: Mapping[str, Any] = {}, name: str = "", **given: Any) -> specs.QueueSpec:
    return specs.QueueSpec(name=name, **resources, **given)


def _template(
    *, resources: Mapping[str, Any] = {}, properties: Mapping[str, str] = {}, **given: Any
) -> specs.TemplateSpec:
    filled = {key: value for key, value in properties.items() if key.strip() and value.strip()}
    return specs.TemplateSpec(properties=filled, **resources, **given)


def _rule(*, name: str = "", **given: Any) -> specs.RuleSpec:
    return specs.RuleSpec(name=name, **given)


def declared(found: Findings, root: Node) -> Declaration:
    """Read the whole tree; what is wrong is in `found`, and its default in the result."""
    found.places[""] = root
    given = kinds.read_record(found, root, "", FILE_KEYS)
    return Declaration(
        partitions=given.get("partitions", ()),
        admission=AdmissionDeclaration(**{key: given[key] for key in ADMISSION_KEYS if key in given}),
        checksum=given.get("checksum", ""),
    )


def schema() -> kinds.Schema:
    """The JSON schema of a queue file, for editors; what a key's value means together with others is not in it."""
    return kinds.json_schema("file")


RESOURCE_KEYS = {"guaranteed": kinds.AMOUNTS, "max": kinds.AMOUNTS}
_RESOURCES = kinds.record("resources", RESOURCE_KEYS, dict)
LIMIT_KEYS = {
    "limit": kinds.TEXT,
    "users": kinds.TEXTS,
    "groups": kinds.TEXTS,
    "maxresources": kinds.AMOUNTS.as_("max_resources"),
    "maxapplications": kinds.COUNT.as_("max_applications"),
}
_LIMITS = kinds.list_of(kinds.record("limit", LIMIT_KEYS, specs.LimitSpec), "limits")
TEMPLATE_KEYS = {
    "maxapplications": kinds.COUNT.as_("max_applications"),
    "properties": kinds.PROPERTIES,
    "resources": _RESOURCES,
}
QUEUE_KEYS = {
    "name": kinds.TEXT,
    "parent": kinds.TRUTH,
    "resources": _RESOURCES,
    "maxapplications": kinds.COUNT.as_("max_applications"),
    "properties": kinds.PROPERTIES,
    "adminacl": kinds.TEXT.as_("admin_acl"),
    "submitacl": kinds.TEXT.as_("submit_acl"),
    "childtemplate": kinds.record("childtemplate", TEMPLATE_KEYS, _template).or_none.as_("child_template"),
}
_QUEUES = kinds.list_of(kinds.record("queue", QUEUE_KEYS, _queue), "queues")
QUEUE_KEYS |= {"queues": _QUEUES, "limits": _LIMITS}
FILTER_KEYS = {"type": kinds.choice("allow", "deny"), "users": kinds.TEXTS, "groups": kinds.TEXTS}
RULE_KEYS = {
    "name": kinds.choice(*RULES),
    "create": kinds.TRUTH,
    "filter": kinds.record("filter", FILTER_KEYS, specs.FilterSpec).or_none,
}
_RULE = kinds.record("placementrule", RULE_KEYS, _rule)
RULE_KEYS |= {"parent": _RULE.or_none, "value": kinds.TEXT}
PREEMPTION_KEYS = {
    "enabled": kinds.TRUTH.or_none,
    "quotapreemptionenabled": kinds.TRUTH.or_none.as_("quota_enabled"),
    "rule": kinds.choice(*PREEMPTION_RULES).filled,
}
NODE_SORT_KEYS = {
    "type": kinds.choice(*NODE_SORTS).filled.as_("policy"),
    "resourceweights": kinds.FLOAT_MAP.filled.as_("weights"),
}
RESOLVER_KEYS = {"type": kinds.choice(*RESOLVERS)}
PARTITION_KEYS = {
    "name": kinds.TEXT,
    "queues": _QUEUES.or_none,
    "placementrules": kinds.list_of(_RULE, "placement rules").as_("rules"),
    "limits": _LIMITS,
    "preemption": kinds.record("preemption", PREEMPTION_KEYS, specs.PreemptionSpec).or_none,
    "nodesortpolicy": kinds.record("nodesortpolicy", NODE_SORT_KEYS, specs.NodeSortSpec).or_none.as_("node_sort"),
    "usergroupresolver": kinds.record("usergroupresolver", RESOLVER_KEYS, lambda type="": type).as_("resolver"),  # noqa: A006
    "stateaware": kinds.TRUTH.as_("state_aware"),
}
FILE_KEYS: dict[str, kinds.Kind] = {
    "partitions": kinds.list_of(
        kinds.record("partition", PARTITION_KEYS, PartitionDeclaration, placed=True), "partitions"
    ),
    **ADMISSION_KEYS,
    "checksum": kinds.TEXT,
}
FILE = kinds.record("file", FILE_KEYS, dict)
