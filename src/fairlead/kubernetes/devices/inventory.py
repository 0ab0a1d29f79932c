"""The inventory: the devices that drivers have published, and which of them each node reaches.

Decides which slices count (the newest generation of a pool), and what keeps a device from being used at all. Never
knows who has a device. Invariant: what `pools` gives depends on the slices and the node alone, and is worked out anew
only when one of them changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairlead.core.model.constraints import IN, NODE_NAME, Requirement
from fairlead.kubernetes import device_objects as objects
from fairlead.kubernetes.devices.selectors import Looks, SelectorError
from fairlead.kubernetes.objects import NodeSelector
from fairlead.kubernetes.storage import Terms, suits
from fairlead.kubernetes.translate import constraints

Key = tuple[str, str, str]
"""Driver, pool and name of a device."""
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"


@dataclass(slots=True, eq=False)
class Device:
    """A device that some nodes reach."""

    key: Key
    given: objects.Device
    selector: NodeSelector | None
    """Which nodes reach it, as its slice says; None: `node` alone, or every one."""
    node: str
    unusable: str
    """The field that is not understood, for which it is given to nobody; mostly nothing."""
    answers: dict[str, bool | str] = field(default_factory=dict)
    """What expressions say of it; a text: why one fails."""
    looks: Looks | None = None

    def attribute(self, name: str) -> tuple[str, object] | None:
        """An attribute by its full name, with its type; None: it has none of that name."""
        found = self.given.attributes or {}
        domain, _, rest = name.partition("/")
        given = found.get(name) or (found.get(rest) if domain == self.key[0] else None)
        if given is None:
            return None
        values = (
            ("string", given.string), ("int", given.int_), ("bool", given.bool_), ("version", given.version),
        )  # fmt: skip
        return next(((kind, value) for kind, value in values if value is not None), None)

    def says(self, expression: str) -> bool | str:
        """Whether an expression is true of it; a text says why that cannot be told."""
        known = self.answers.get(expression)
        if known is None:
            try:
                self.looks = self.looks or Looks(self.key[0], self.given)
                known = self.looks.matches(expression)
            except SelectorError as e:
                known = str(e)
            self.answers[expression] = known
        return known


@dataclass(frozen=True, slots=True)
class Pool:
    """The devices of one pool that a node reaches."""

    driver: str
    name: str
    devices: tuple[Device, ...]
    flaw: str = ""
    """Why nothing of it is given, as a sentence; mostly nothing."""


@dataclass(frozen=True, slots=True)
class Whole:
    """What the slices of a pool are together, whichever node reaches them."""

    generation: int
    flaw: str


@dataclass(slots=True)
class Slice:
    """A slice as it was published, with its devices."""

    spec: objects.SliceSpec
    devices: tuple[Device, ...]


class Inventory:
    """All slices of a cluster."""

    def __init__(self) -> None:
        self._of_node: dict[str, dict[str, Slice]] = {}
        """Slices of one node's own devices, by node and name."""
        self._shared: dict[str, Slice] = {}
        """All others."""
        self._where: dict[str, str] = {}
        """The node of a slice, by its name; empty: it is one of the others."""
        self._of_pool: dict[tuple[str, str], dict[str, None]] = {}
        """Names of slices by driver and pool."""
        self._pools: dict[str, tuple[Pool, ...]] = {}
        self._whole: dict[tuple[str, str], Whole] = {}

    def put(self, given: objects.ResourceSlice) -> tuple[str, ...] | None:
        """A slice is new or has changed: gives back the nodes for which that means something; None: perhaps all."""
        name, spec = given.metadata.name, given.spec
        before = self.drop(name)
        node = spec.node_name or ""
        self._where[name] = node
        self._of_pool.setdefault((spec.driver, spec.pool.name), {})[name] = None
        found = Slice(spec, tuple(_device(spec, device) for device in spec.devices or ()))
        if node:
            self._of_node.setdefault(node, {})[name] = found
        else:
            self._shared[name] = found
        return self._changed((spec.driver, spec.pool.name), node, before)

    def drop(self, name: str) -> tuple[str, ...] | None:
        """A slice is gone: as `put`."""
        node = self._where.pop(name, None)
        if node is None:
            return ()
        slices = self._of_node[node] if node else self._shared
        spec = slices.pop(name).spec
        if node and not slices:
            del self._of_node[node]
        of_pool = self._of_pool[spec.driver, spec.pool.name]
        del of_pool[name]
        if not of_pool:
            del self._of_pool[spec.driver, spec.pool.name]
        return self._changed((spec.driver, spec.pool.name), node, ())

    def _changed(self, pool: tuple[str, str], node: str, before: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Of the pool a slice has changed, on this node; `before`: the nodes for which something changed already."""
        self._whole.pop(pool, None)
        nodes = dict.fromkeys((node, *(self._where[name] for name in self._of_pool.get(pool, ()))))
        if before is None or "" in nodes:
            self._pools.clear()
            return None
        for each in (nodes := {**nodes, **dict.fromkeys(before)}):
            self._pools.pop(each, None)
        return tuple(nodes)

    def moved(self, node: str) -> None:
        """A node is gone, or has other labels: it may reach other devices."""
        self._pools.pop(node, None)

    def reaching(self, keys: Iterable[Key]) -> tuple[str, ...] | None:
        """The nodes that reach one of these devices; None: perhaps all."""
        pools = dict.fromkeys(key[:2] for key in keys)
        nodes = dict.fromkeys(self._where[name] for pool in pools for name in self._of_pool.get(pool, ()))
        return None if "" in nodes else tuple(nodes)

    def pools(self, node: str, attributes: Mapping[str, str]) -> tuple[Pool, ...]:
        """What a node with these attributes reaches, by driver and name of the pool."""
        found = self._pools.get(node)
        if found is None:
            found = self._pools[node] = tuple(self._gather(node, attributes))
        return found

    def _gather(self, node: str, attributes: Mapping[str, str]) -> Iterable[Pool]:
        by_pool: dict[tuple[str, str], list[tuple[str, Slice, tuple[Device, ...]]]] = {}
        for name, each in (*self._of_node.get(node, {}).items(), *self._shared.items()):
            reached = each.devices if each.spec.node_name else _reached(each, attributes)
            if reached or _reaches(each.spec, attributes):
                by_pool.setdefault((each.spec.driver, each.spec.pool.name), []).append((name, each, reached))
        for key, slices in sorted(by_pool.items()):
            whole = self._whole.get(key)
            if whole is None:
                whole = self._whole[key] = self._together(*key)
            current = sorted((n, d) for n, e, d in slices if e.spec.pool.generation == whole.generation)
            if current:
                yield Pool(*key, tuple(device for _, reached in current for device in reached), whole.flaw)

    def _together(self, driver: str, pool: str) -> Whole:
        """What a pool is, by all of its slices: a driver that publishes it anew does so slice by slice."""
        found = [self._slice(name) for name in self._of_pool[driver, pool]]
        newest = max(each.spec.pool.generation for each in found)
        current = [each for each in found if each.spec.pool.generation == newest]
        names = [device.key for each in current for device in each.devices]
        if len(current) != current[0].spec.pool.resource_slice_count:
            return Whole(newest, f"pool {driver}/{pool} is being updated")
        return Whole(
            newest, f"two devices of pool {driver}/{pool} have one name" if len(names) > len(set(names)) else ""
        )

    def _slice(self, name: str) -> Slice:
        node = self._where[name]
        return (self._of_node[node] if node else self._shared)[name]


def _device(spec: objects.SliceSpec, given: objects.Device) -> Device:
    own = spec if not spec.per_device_node_selection else given
    unusable = ""
    for field_name, value in (
        ("consumesCounters", given.consumes_counters),
        ("bindingConditions", given.binding_conditions),
        ("allowMultipleAllocations", given.allow_multiple_allocations),
        ("nodeAllocatableResourceMappings", given.node_allocatable_resource_mappings),
    ):
        if value:
            unusable = unusable or field_name
    key = (spec.driver, spec.pool.name, given.name)
    return Device(key, given, own.node_selector, own.node_name or "", unusable)


def _reached(each: Slice, attributes: Mapping[str, str]) -> tuple[Device, ...]:
    """The devices of a slice that is not one node's own which a node with these attributes reaches."""
    spec = each.spec
    if not spec.per_device_node_selection:
        return each.devices if _reaches(spec, attributes) else ()
    return tuple(device for device in each.devices if _reaches(device.given, attributes))


def _reaches(given: objects.SliceSpec | objects.Device, attributes: Mapping[str, str]) -> bool:
    if given.node_name:
        return attributes.get(NODE_NAME) == given.node_name
    if given.all_nodes:
        return True
    return given.node_selector is not None and suits(terms_of(given.node_selector), attributes)


def terms_of(selector: NodeSelector | None) -> Terms | None:
    """The terms of which one must hold for a node; None: they cannot be read."""
    try:
        return tuple(constraints.node_terms(selector))
    except constraints.ConstraintError:
        return None


def nodes_for(devices: Iterable[Device]) -> list[dict[str, object]] | None:
    """The one term of a node selector under which these devices can be used, in the API's words; None: anywhere."""
    fields: list[object] = []
    labels: list[object] = []
    for device in devices:
        if device.node:
            return [{"matchFields": [{"key": "metadata.name", "operator": IN, "values": [device.node]}]}]
        for term in (device.selector.node_selector_terms if device.selector is not None else None) or ():
            for into, conditions in ((fields, term.match_fields), (labels, term.match_expressions)):
                for c in conditions or ():
                    said = {"key": c.key, "operator": c.operator, **({"values": c.values} if c.values else {})}
                    if said not in into:
                        into.append(said)
    found: dict[str, object] = {}
    if fields:
        found["matchFields"] = fields
    if labels:
        found["matchExpressions"] = labels
    return [found] if found else None


def on_node(node: str) -> Terms:
    """The term that names one node."""
    return ((Requirement(NODE_NAME, IN, (node,)),),)
