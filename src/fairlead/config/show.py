"""A loaded configuration as it is shown: in the JSON and YAML forms of YuniKorn's `GET /ws/v1/config`.

Decides names, order and what is left out. Quantities appear as they were written. Shows what is in force: the root is
there even if the file has none, and limits of the partition stand at the root too.
"""

from __future__ import annotations

from typing import Any

import yaml

from fairlead.config import admission
from fairlead.config.decode import Findings, child_path
from fairlead.config.tree import PlacedPartition, PlacedQueue, places_of
from fairlead.core.model.quantities import VCORE
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import ClusterSpec, LimitSpec, RuleSpec, TemplateSpec


class _Shown:
    """Builds the tree of one configuration; knows the places, to show quantities as written."""

    def __init__(self, found: Findings) -> None:
        self.places = found.places

    def quantities(self, limits: Limits | None, path: str) -> dict[str, str]:
        """Amounts as they were written."""
        texts: dict[str, str] = {}
        for name, value in limits or ():
            node = self.places.get(child_path(path, name))
            texts[name] = node.text if node else f"{value}m" if name == VCORE else str(value)
        return texts

    def _resources(self, guaranteed: Limits | None, most: Limits | None, path: str) -> dict[str, Any]:
        return _filled(
            Guaranteed=self.quantities(guaranteed, f"{path}.guaranteed"), Max=self.quantities(most, f"{path}.max")
        )

    def _limit(self, limit: LimitSpec, path: str) -> dict[str, Any]:
        return _filled(
            Limit=limit.limit,
            Users=list(limit.users),
            Groups=list(limit.groups),
            MaxResources=self.quantities(limit.max_resources, f"{path}.maxresources"),
            MaxApplications=limit.max_applications,
        )

    def _limits(self, limits: tuple[LimitSpec, ...], path: str) -> list[dict[str, Any]]:
        return [self._limit(limit, f"{path}[{index}]") for index, limit in enumerate(limits)]

    def _template(self, template: TemplateSpec | None, path: str) -> dict[str, Any]:
        if template is None:
            return {"Resources": {}}
        return _filled(MaxApplications=template.max_applications, Properties=dict(template.properties)) | {
            "Resources": self._resources(template.guaranteed, template.max, f"{path}.resources")
        }

    def queue(self, queue: PlacedQueue) -> dict[str, Any]:
        """One queue with everything below it."""
        spec = queue.spec
        return (
            _filled(Name=spec.name, Parent=spec.parent)
            | {"Resources": self._resources(spec.guaranteed, spec.max, f"{queue.path}.resources")}
            | _filled(MaxApplications=spec.max_applications, Properties=dict(spec.properties))
            | _filled(AdminACL=spec.admin_acl, SubmitACL=spec.submit_acl)
            | {"ChildTemplate": self._template(spec.child_template, f"{queue.path}.childtemplate")}
            | _filled(
                Queues=[self.queue(child) for child in queue.children],
                Limits=self._limits(spec.limits, queue.limits_path),
            )
        )

    def rule(self, rule: RuleSpec) -> dict[str, Any]:
        """One placement rule with its parents."""
        who = rule.filter
        chosen = _filled(Type=who.type, Users=list(who.users), Groups=list(who.groups)) if who else {}
        return (
            _filled(Name=rule.name, Create=rule.create)
            | {"Filter": chosen}
            | _filled(Parent=self.rule(rule.parent) if rule.parent else None, Value=rule.value)
        )

    def partition(self, partition: PlacedPartition) -> dict[str, Any]:
        """One partition; of the switches only what the file says."""
        spec, path = partition.spec, partition.path

        def given(key: str, value: object) -> object:
            return value if f"{path}.{key}" in self.places or not self.places else None

        preemption = {
            "Enabled": given("preemption.enabled", spec.preemption.enabled),
            "QuotaPreemptionEnabled": given("preemption.quotapreemptionenabled", spec.preemption.quota_enabled),
            "Rule": given("preemption.rule", spec.preemption.rule),
        }
        sort = {
            "Type": given("nodesortpolicy.type", spec.node_sort.policy),
            "ResourceWeights": given("nodesortpolicy.resourceweights", dict(spec.node_sort.weights)),
        }
        written = f"{path}.limits" in self.places
        return (
            _filled(
                Name=spec.name,
                Queues=[self.queue(partition.root)],
                PlacementRules=[self.rule(rule) for rule in spec.placement_rules],
                Limits=self._limits(spec.root.limits, f"{path}.limits") if written else [],
            )
            | {
                "Preemption": {key: value for key, value in preemption.items() if value is not None},
                "NodeSortPolicy": {key: value for key, value in sort.items() if value},
                "UserGroupResolver": _filled(type=spec.user_group_resolver),
            }
            | _filled(StateAware=spec.state_aware)
        )


def _filled(**values: Any) -> dict[str, Any]:
    """The entries that are not empty, false or 0."""
    return {name: value for name, value in values.items() if value}


def as_tree(spec: ClusterSpec) -> dict[str, Any]:
    """The JSON form as plain dicts and lists."""
    found, partitions = places_of(spec)
    shown = _Shown(found)
    return {
        "Partitions": [shown.partition(partition) for partition in partitions],
        **admission.shown(spec, shown.quantities),
        "Checksum": spec.checksum,
        "Extra": {},
        "DeadlockDetectionEnabled": False,
        "DeadlockTimeoutSeconds": 0,
    }


def as_yaml(spec: ClusterSpec) -> str:
    """`as_tree` as YAML: keys in lower case, what is empty left out."""
    lowered = _lowered(as_tree(spec), top=True)
    return str(yaml.safe_dump(lowered, sort_keys=False, allow_unicode=True, default_flow_style=False))


_AS_THEY_ARE = {"PriorityClasses", "Quotas", "Budgets"}
"""Lists whose entries are written with Kubernetes' keys."""
_MAPS = {"Guaranteed", "Max", "MaxResources", "Properties", "ResourceWeights", "Extra"}
"""Maps whose keys are names given by the user."""


def _lowered(tree: Any, top: bool = False) -> Any:
    if isinstance(tree, list):
        return [_lowered(entry) for entry in tree]
    if not isinstance(tree, dict):
        return tree
    lowered: dict[str, Any] = {}
    for name, value in tree.items():
        inner = value if name in _MAPS or (top and name in _AS_THEY_ARE) else _lowered(value)
        if top or inner not in ({}, [], None):
            lowered[name.lower()] = inner
    return lowered
