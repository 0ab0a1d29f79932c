"""The cluster store: nodes and policies, everything that pods are placed among.

Decides which events follow from a change of a node, a class, a budget or a namespace. Never looks at pods. Invariant:
`nodes` are exactly those that the scheduler knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from fairlead.core.model import events
from fairlead.core.model.constraints import CORDONED, VOLUME_LIMIT
from fairlead.core.model.specs import NodeSpec
from fairlead.kubernetes import kinds
from fairlead.kubernetes.node_objects import NodeWithImages
from fairlead.kubernetes.objects import (
    LabelSelector,
    Namespace,
    Node,
    PodDisruptionBudget,
    PriorityClass,
)
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.storage_objects import CSINode
from fairlead.kubernetes.translate.amounts import AmountError
from fairlead.kubernetes.translate.cluster import budget_of, class_of, images_of, min_runtime_ms, node_of
from fairlead.kubernetes.translate.constraints import ConstraintError, selects
from fairlead.kubernetes.translate.identity import MIN_RUNTIME

log = logging.getLogger("fairlead.kubernetes")
NO_DURATION = "is no duration such as 90s or 10m and protects nobody; correct it"


class ClusterStore:
    """What is known beside the pods."""

    def __init__(self, partition: str, lose_node: Callable[[str], None]) -> None:
        """`lose_node` is told of each node that is gone; the scheduler tells of its own pods there by itself."""
        self.nodes: dict[str, NodeSpec] = {}
        """As the scheduler has them."""
        self._node_uids: dict[str, str] = {}
        self._marks: dict[str, dict[str, dict[str, str]]] = {}
        """By node and prefix: attributes that it has beside its labels."""
        self.classes: dict[str, PriorityClass] = {}
        self.namespaces: dict[str, Namespace] = {}
        self._partition = partition
        self._lose_node = lose_node
        self._budgets: dict[str, None] = {}
        """Those that bound something, by namespace and name."""

    def take(self, change: Change) -> Iterator[events.Event]:
        """The events that follow from a change of anything but a pod."""
        if isinstance(change, Changed):
            thing = change.object
            if isinstance(thing, Node):
                yield from self._node(thing)
            elif isinstance(thing, PriorityClass):
                self.classes[thing.metadata.name] = thing
                if min_runtime_ms(thing) is None:
                    text = (thing.metadata.annotations or {})[MIN_RUNTIME][:60]
                    log.warning("priority class %s: %s '%s' %s", thing.metadata.name, MIN_RUNTIME, text, NO_DURATION)
                if not thing.metadata.name.startswith("system-"):
                    yield events.SetPriorityClass(class_of(thing))
            elif isinstance(thing, PodDisruptionBudget):
                yield from self._budget(thing)
            elif isinstance(thing, CSINode):
                drivers = [(d.name, d.allocatable.count) for d in thing.spec.drivers or () if d.allocatable is not None]
                limits = {VOLUME_LIMIT + driver: str(count) for driver, count in drivers if count is not None}
                yield from self.marked(thing.metadata.name, VOLUME_LIMIT, limits)
            elif isinstance(thing, Namespace):
                self.namespaces[thing.metadata.name] = thing
        elif isinstance(change, Deleted):
            yield from self._deleted(change)

    def _deleted(self, change: Deleted) -> Iterator[events.Event]:
        if change.kind is kinds.NODES:
            if change.name in self.nodes and self._node_uids[change.name] == change.uid:
                del self.nodes[change.name], self._node_uids[change.name]
                self._lose_node(change.name)
                yield events.RemoveNode(change.name, self._partition)
        elif change.kind is kinds.PRIORITY_CLASSES:
            if self.classes.pop(change.name, None) is not None and not change.name.startswith("system-"):
                yield events.RemovePriorityClass(change.name)
        elif change.kind is kinds.BUDGETS:
            name = f"{change.namespace or 'default'}/{change.name}"
            if name in self._budgets:
                del self._budgets[name]
                yield events.RemoveBudget(name)
        elif change.kind is kinds.NAMESPACES:
            self.namespaces.pop(change.name, None)
        elif change.kind is kinds.CSI_NODES:
            yield from self.marked(change.name, VOLUME_LIMIT, {})

    def marked(self, node: str, prefix: str, marks: dict[str, str]) -> Iterator[events.Event]:
        """A node has these attributes beside its labels from now on, and no others with this prefix."""
        of_node = {**self._marks.pop(node, {}), prefix: marks}
        self._marks[node] = {key: value for key, value in of_node.items() if value}
        if not self._marks[node]:
            del self._marks[node]
        known = self.nodes.get(node)
        if known is None:
            return
        others = {key: value for key, value in known.attributes.items() if not key.startswith(prefix)}
        attributes = {**others, **marks}
        if attributes != known.attributes:
            self.nodes[node] = replace(known, attributes=attributes)
            yield events.LabelNode(node, attributes, known.taints, self._partition)

    def _node(self, node: Node) -> Iterator[events.Event]:
        name, uid = node.metadata.name, node.metadata.uid or ""
        try:
            marks = {key: value for of_prefix in self._marks.get(name, {}).values() for key, value in of_prefix.items()}
            spec = node_of(node, self._partition, marks)
        except AmountError as e:
            log.warning("node %s is left as it was: %s", name, e)
            return
        if name in self.nodes and self._node_uids[name] != uid:
            # It was replaced, and its end was missed.
            del self.nodes[name]
            self._lose_node(name)
            yield events.RemoveNode(name, self._partition)
        old = self.nodes.get(name)
        self.nodes[name], self._node_uids[name] = spec, uid
        if old is None:
            yield events.AddNode(spec)
        if isinstance(node, NodeWithImages):
            yield events.ReportImages(name, images_of(node), self._partition)
        if old is None:
            return
        if spec.capacity != old.capacity:
            yield events.UpdateNode(name, spec.capacity, self._partition)
        if spec.attributes != old.attributes or spec.taints != old.taints:
            yield events.LabelNode(name, spec.attributes, spec.taints, self._partition)
        if spec.schedulable != old.schedulable:
            order = events.UndrainNode if spec.schedulable else events.DrainNode
            yield order(name, self._partition)

    def _budget(self, given: PodDisruptionBudget) -> Iterator[events.Event]:
        try:
            budget = budget_of(given)
        except ConstraintError as e:
            log.warning("budget %s/%s is passed over: %s", given.metadata.namespace, given.metadata.name, e)
            return
        if budget is None:
            name = f"{given.metadata.namespace or 'default'}/{given.metadata.name}"
            if name in self._budgets:
                del self._budgets[name]
                yield events.RemoveBudget(name)
        else:
            # Also where it says the same: its controller may have counted anew, and the scheduler has less left since.
            self._budgets[budget.name] = None
            yield events.SetBudget(budget)

    def is_open(self, node: str) -> bool:
        """Whether a node is there and takes new work."""
        known = self.nodes.get(node)
        return known is not None and known.schedulable and all(taint.key != CORDONED for taint in known.taints)

    # -- namespaces -----------------------------------------------------------------------------------------------

    def lacks_namespace(self, name: str) -> bool:
        """Whether it is not known yet: namespaces and pods are watched apart."""
        return bool(self.namespaces) and name not in self.namespaces

    def namespace_notes(self, name: str) -> Mapping[str, str]:
        """The annotations of a namespace."""
        known = self.namespaces.get(name)
        return (known.metadata.annotations if known is not None else None) or {}

    def namespaces_of(self, selector: LabelSelector) -> tuple[str, ...]:
        """The names of the namespaces that a selector selects, sorted."""
        return tuple(sorted(n for n, s in self.namespaces.items() if selects(selector, s.metadata.labels or {})))
