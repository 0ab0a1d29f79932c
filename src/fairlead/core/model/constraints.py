"""Constraints: where an ask may run, beyond the amounts it needs. Frozen values, in Kubernetes' words.

Decides the vocabulary of node selectors, taints, affinity, spread and host ports. Never looks at a node: whether one is
suitable is worked out in `core.model.matching`. Invariant: two asks with equal constraints may run on the same nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

HOSTNAME = "kubernetes.io/hostname"
"""Every node has this attribute: its id, unless it was registered with another name here; but one that was registered
with its `NODE_NAME`, as those of a cluster are, has what labels it has, and where this is none of them, not this one.
"""
NODE_NAME = "metadata.name"
"""Every node has this attribute, named as Kubernetes names the field: its id, whatever else it says by that name."""
CORDONED = "node.kubernetes.io/unschedulable"
"""The key of the taint of a node that takes new work no more, but for what tolerates that."""
VOLUME_LIMIT = "volume-limit.fairlead.io/"
"""Before the name of a driver: an attribute of nodes, how many of its volumes can be attached there at once."""
DEVICES = "devices.fairlead.io/"
"""Before what some ask needs of devices: an attribute of nodes that have that much left at this moment."""

WEIGHT_MIN, WEIGHT_MAX = -(2**31), 2**31 - 1
WEIGHT_OF_REQUIRED = 1
"""With this, running work would rather have with it the work that it required to be with, as kube-scheduler has it
(`hardPodAffinityWeight`) unless it is told otherwise.
"""

OPERATORS = IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
EFFECTS = NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on labels or attributes; `values` is empty for `Exists` and `DoesNotExist`, one for `Gt`, `Lt`."""

    key: str
    operator: str = IN
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Taint:
    """A node keeps away whatever does not tolerate this."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Toleration:
    """Which taints an ask puts up with. `Exists` with an empty key tolerates all; an empty effect means every one.

    By `Gt` and `Lt` those whose value is an integer above or below its own.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Work with these labels on a node with the same value of `topology_key`: wanted there, or not."""

    selector: tuple[Requirement, ...]
    topology_key: str = HOSTNAME


@dataclass(frozen=True, slots=True)
class SpreadTerm:
    """Work with these labels differs by at most `max_skew` between the values of `topology_key`."""

    selector: tuple[Requirement, ...]
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    only_selected: bool = True
    """Nodes that the selector and the node terms of the ask do not name count for nothing."""
    only_tolerated: bool = False
    """Nor do nodes with a taint that the ask does not tolerate."""


@dataclass(frozen=True, slots=True)
class PreferredNodes:
    """Nodes with these attributes rather than others."""

    weight: int
    term: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class PreferredWork:
    """Where work of a term is rather than elsewhere; with a weight below 0 rather not."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """All of it for one ask; the empty value allows every node without a taint."""

    selector: tuple[Requirement, ...] = ()
    """On the node's attributes; all must hold."""
    node_terms: tuple[tuple[Requirement, ...], ...] = ()
    """On the node's attributes; at least one term must hold as a whole (nothing given: no condition)."""
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    """Also in the other direction: running work with such a term keeps matching newcomers away."""
    spread: tuple[SpreadTerm, ...] = ()
    ports: tuple[str, ...] = ()
    """Host ports as `protocol/ip/port`, such as `TCP/0.0.0.0/8080`; two on one node must not collide."""
    volumes: tuple[str, ...] = ()
    """Volumes that are attached to its node, as `name@driver`; a node may limit how many of a driver."""
    devices: str = ""
    """What it needs of devices, by the name with which `DEVICES` marks the nodes that have it."""
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    """These and the next two choose among the nodes on which it may run; they keep it off none."""
    preferred_work: tuple[PreferredWork, ...] = ()
    preferred_spread: tuple[SpreadTerm, ...] = ()

    @property
    def prefers(self) -> bool:
        """Whether it would rather run on some nodes than on others."""
        return bool(self.preferred_nodes or self.preferred_work or self.preferred_spread)

    @property
    def minds_work(self) -> bool:
        """Whether something of other work but the room that it takes decides where it may run."""
        return bool(self.affinity or self.anti_affinity or self.spread or self.ports or self.volumes or self.devices)


ANYWHERE = Constraints()
