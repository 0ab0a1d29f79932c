"""What the API server says: its objects as typed values, with the fields that a scheduler needs and no others.

Decides how an object of the API is read and what is left out. Never interprets a field. Invariant: every field that the
server may leave out has a default here, and every one that it may send as `null` is optional, so that no object of a
real cluster is refused. It sends no `null` for metadata, spec and status: they are parts of the object itself.
"""

from __future__ import annotations

import msgspec

Text = str | None
Amounts = dict[str, str | int | float] | None
Labels = dict[str, str] | None


class Part(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """A part of an object; unknown fields are passed over."""


# -- what all objects have ----------------------------------------------------------------------------------------


class Reference(Part, frozen=True):
    """Another object: who made this one, or what it belongs to."""

    api_version: Text = None
    kind: Text = None
    namespace: Text = None
    name: Text = None
    uid: Text = None
    controller: bool | None = None


class Metadata(Part, frozen=True):
    """Name, identity and version of an object."""

    name: str = ""
    namespace: Text = None
    uid: Text = None
    resource_version: Text = None
    labels: Labels = None
    annotations: Labels = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None
    owner_references: list[Reference] | None = None


class Thing(Part, frozen=True):
    """An object; by itself one of which nothing but its metadata is wanted."""

    metadata: Metadata = Metadata()


# -- pods ---------------------------------------------------------------------------------------------------------


class Needs(Part, frozen=True):
    """What a container or a pod requests and is limited to."""

    requests: Amounts = None
    limits: Amounts = None


class Port(Part, frozen=True):
    """A port of a container."""

    container_port: int | None = None
    host_port: int | None = None
    host_ip: Text = msgspec.field(default=None, name="hostIP")
    protocol: Text = None


class RestartRule(Part, frozen=True):
    """What happens when a container ends in a certain way."""

    action: str = ""


class Container(Part, frozen=True):
    """A container of a pod."""

    name: str = ""
    image: Text = None
    resources: Needs | None = None
    ports: list[Port] | None = None
    restart_policy: Text = None
    """`Always` on an init container: it stays, a sidecar."""
    restart_policy_rules: list[RestartRule] | None = None


class Expression(Part, frozen=True):
    """One condition of a selector."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Part, frozen=True):
    """A condition on labels; both parts must hold. Empty selects everything, absent nothing."""

    match_labels: Labels = None
    match_expressions: list[Expression] | None = None


class NodeTerm(Part, frozen=True):
    """Conditions on a node, all of which must hold."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(Part, frozen=True):
    """At least one of the terms must hold."""

    node_selector_terms: list[NodeTerm] | None = None


class WeightedNodeTerm(Part, frozen=True):
    """Nodes that are preferred to others."""

    weight: int = 0
    preference: NodeTerm = NodeTerm()


class NodeAffinity(Part, frozen=True):
    """Where a pod must run, and where it had rather run."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[WeightedNodeTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodTerm(Part, frozen=True):
    """Pods with these labels in these namespaces, in one domain of the topology."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodTerm(Part, frozen=True):
    """Pods whose company is preferred, or avoided."""

    weight: int = 0
    pod_affinity_term: PodTerm = PodTerm()


class PodAffinity(Part, frozen=True):
    """With which pods a pod must run, or must not; and with which it had rather, or rather not."""

    required: list[PodTerm] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[WeightedPodTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Part, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Part, frozen=True):
    """A taint that a pod puts up with."""

    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None
    toleration_seconds: int | None = None


class Spread(Part, frozen=True):
    """How evenly pods are to be spread over a topology."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: Text = None
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Text = None
    node_taints_policy: Text = None
    match_label_keys: list[str] | None = None


class Gate(Part, frozen=True):
    """While a pod has one it is not to be scheduled."""

    name: str = ""


class ClaimSource(Part, frozen=True):
    """The claim that a volume of a pod stands for."""

    claim_name: str = ""


class PodVolume(Part, frozen=True):
    """A volume of a pod, as far as it is a claim, or one that several pods may not use together."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Part | None = None
    """A claim is made for this pod alone."""
    aws_elastic_block_store: Part | None = None
    gce_persistent_disk: Part | None = None
    iscsi: Part | None = None
    rbd: Part | None = None


class PodResourceClaim(Part, frozen=True):
    """A claim of devices: one that is there, or one that is made for this pod."""

    name: str = ""
    resource_claim_name: Text = None
    resource_claim_template_name: Text = None


class PodSpec(Part, frozen=True):
    """What a pod asks for."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Amounts = None
    resources: Needs | None = None
    """Of the pod as a whole; they stand in for the sum of its containers."""
    node_name: Text = None
    node_selector: Labels = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[Spread] | None = None
    priority: int | None = None
    priority_class_name: Text = None
    preemption_policy: Text = None
    scheduler_name: Text = None
    scheduling_gates: list[Gate] | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    restart_policy: Text = None
    runtime_class_name: Text = None
    volumes: list[PodVolume] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    scheduling_group: Labels = None


class Condition(Part, frozen=True):
    """One thing that is so, or not, about an object."""

    type: str = ""
    status: str = ""
    reason: Text = None
    message: Text = None


class ContainerStatus(Part, frozen=True):
    """What a container has: a resize in place may be under way, or refused."""

    name: str = ""
    resources: Needs | None = None
    """What it runs with."""
    allocated_resources: Amounts = None
    """What its node has granted."""


class ClaimedAmounts(Part, frozen=True):
    """What a pod has of its node by the devices of a claim."""

    resources: Amounts = None


class PodStatus(Part, frozen=True):
    """Where a pod is in its life."""

    phase: Text = None
    reason: Text = None
    conditions: list[Condition] | None = None
    nominated_node_name: Text = None
    start_time: Text = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[PodResourceClaim] | None = None
    """The claims that were made for it."""
    resources: Needs | None = None
    """What it runs with as a whole."""
    allocated_resources: Amounts = None
    """What it was granted as a whole."""
    node_allocatable_resource_claim_statuses: list[ClaimedAmounts] | None = None


class Pod(Thing, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# -- nodes --------------------------------------------------------------------------------------------------------


class Taint(Part, frozen=True):
    """What keeps pods away from a node."""

    key: str
    value: Text = None
    effect: Text = None


class NodeSpec(Part, frozen=True):
    """What is set on a node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(Part, frozen=True):
    """What a node has."""

    allocatable: Amounts = None
    capacity: Amounts = None
    conditions: list[Condition] | None = None
    declared_features: list[str] | None = None
    """What it can do that not every node of its version can."""


class Node(Thing, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# -- policies -----------------------------------------------------------------------------------------------------


class PriorityClass(Thing, frozen=True):
    """A name for a priority."""

    value: int = 0
    global_default: bool | None = None
    description: Text = None
    preemption_policy: Text = None


class BudgetSpec(Part, frozen=True):
    """How much of the selected work must stay."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(Part, frozen=True):
    """What the disruption controller counted."""

    observed_generation: int | None = None
    """Absent: it has not counted yet."""
    disruptions_allowed: int = 0


class PodDisruptionBudget(Thing, frozen=True):
    """A disruption budget."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class Namespace(Thing, frozen=True):
    """A namespace; its labels are what selectors of namespaces look at."""


class ConfigMap(Thing, frozen=True):
    """Named texts."""

    data: Labels = None
