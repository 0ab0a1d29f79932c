"""What a user declares: queues, partitions, applications, asks, nodes. Frozen values, no behaviour.

Decides the vocabulary that crosses the front door. Never holds running state. The configuration reader builds the
queue side of it; the journal stores all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import ANYWHERE, Constraints, Requirement, Taint
from fairlead.core.model.resources import NOTHING, Limits, Resources

DEFAULT_PARTITION = "default"

PRIORITY_MIN = -(2**31)
PRIORITY_MAX = 2**31 - 1

TAG_REQUIRED_NODE = "yunikorn.apache.org/requiredNode"
TAG_CREATION_TIME = "creationTime"
TAG_START_TIME = "startTime"
"""Of what is reported as running: since when it does, in Unix seconds."""
TAG_APP_CREATION_TIME = "yunikorn.apache.org/creationTime"
TAG_FOREIGN = "foreign"
TAG_STATE_AWARE_DISABLE = "application.stateaware.disable"
TAG_FORCE_CREATE = "application.create.force"
TAG_GANG_COMES_AGAIN = "application.gang.comesagain"
"""Of an application whose owner submits its gang once more, whenever it did not come together in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSpec:
    """One entry of `limits`: what the named users and groups may use at most, in this queue and below."""

    limit: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: Limits | None = None
    max_applications: int = 0
    """0 is unlimited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSpec:
    """`childtemplate`: what a dynamic leaf below this parent is made with."""

    guaranteed: Limits | None = None
    max: Limits | None = None
    max_applications: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSpec:
    """One queue of the file with its children, validated. Names as written; the runtime lower-cases them."""

    name: str
    parent: bool = False
    guaranteed: Limits | None = None
    max: Limits | None = None
    max_applications: int = 0
    """Running applications at most; 0 is unlimited."""
    properties: Mapping[str, str] = field(default_factory=dict)
    admin_acl: str = ""
    submit_acl: str = ""
    child_template: TemplateSpec | None = None
    limits: tuple[LimitSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSpec:
    """Who a placement rule is for."""

    type: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpec:
    """One placement rule; `parent` is the rule that makes the path above it."""

    name: str
    create: bool = False
    value: str = ""
    filter: FilterSpec | None = None
    parent: RuleSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSortSpec:
    """How nodes are ordered: `fair` (emptiest first) or `binpacking` (fullest first), with weights by resource."""

    policy: str = "fair"
    weights: Mapping[str, float] = field(default_factory=lambda: {"vcore": 1.0, "memory": 1.0})


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionSpec:
    """Switches of preemption. `rule` is an addition: `guarantee` (YuniKorn's laws), `priority`, or `both`."""

    enabled: bool = True
    quota_enabled: bool = False
    rule: str = "guarantee"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec:
    """One partition: a root queue and the rules that hold for all of it."""

    name: str = DEFAULT_PARTITION
    root: QueueSpec = field(default_factory=lambda: QueueSpec(name="root", parent=True, submit_acl="*"))
    placement_rules: tuple[RuleSpec, ...] = ()
    node_sort: NodeSortSpec = field(default_factory=NodeSortSpec)
    preemption: PreemptionSpec = field(default_factory=PreemptionSpec)
    user_group_resolver: str = ""
    state_aware: bool = False
    """Addition: applications go through `Starting` unless their tag `application.stateaware.disable` says "true"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassSpec:
    """A name for a priority, resolved when work is admitted (Kubernetes' PriorityClass)."""

    name: str
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
    """Or `Never`: goes ahead of lower priorities but causes nothing to stop."""
    description: str = ""
    limited: bool = False
    """It may not be used where no quota names it."""
    min_runtime_ms: int = 0
    """Its work is no victim before it has run for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpec:
    """A disruption budget: how much of the work with these labels must stay. Exactly one of the two bounds is set."""

    name: str
    selector: tuple[Requirement, ...] = ()
    min_available: int | str | None = None
    """A number of works, or a part of them such as `50%`."""
    max_unavailable: int | str | None = None
    namespace: str = ""
    left: int | None = None
    """How much of it may be stopped now, where the place counts that; less what was told to stop since. None: it is
    counted here.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSpec:
    """A quota by priority class: what all admitted work of a queue and below that matches the scopes may ask for."""

    name: str
    queue: str
    resources: Limits
    scopes: tuple[Requirement, ...] = ()
    """On the name of the priority class (`Requirement.key` is `PriorityClass`); all must hold. None: all work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpec:
    """A time in which nodes are kept free: nothing starts that would still run when it begins."""

    name: str
    starts_ms: int
    """When it begins; one that comes again: for the first time."""
    length_ms: int
    every_ms: int = 0
    """It comes again so long after it began; 0: it does not."""
    nodes: tuple[str, ...] = ()
    """Names of nodes; none: all of them."""
    queues: tuple[str, ...] = ()
    """Whole paths of queues whose work, and that below, it does not keep away."""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """The same for the work of users and of groups."""
    stop_running: bool = False
    """What still runs when it begins, and is not of theirs, is told to stop."""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A whole queue file, validated. `text` and `checksum` are what it was read from."""

    partitions: tuple[PartitionSpec, ...] = (PartitionSpec(),)
    priority_classes: tuple[PriorityClassSpec, ...] = ()
    budgets: tuple[BudgetSpec, ...] = ()
    quotas: tuple[QuotaSpec, ...] = ()
    checksum: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSpec:
    """What a user submits. `groups` empty means one group named as the user."""

    id: str
    queue: str = ""
    user: str = "nobody"
    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    partition: str = DEFAULT_PARTITION
    placeholder_ask: Resources = NOTHING
    """The whole gang's size; nothing for an application without a gang."""
    gang_style: str = "Soft"
    placeholder_timeout_ms: int = 0
    """How long placeholders may wait for their gang; 0 means fifteen minutes."""
    at_once: int = 0
    """So many of its asks are in line or run at a time, at most; the others are held until it is their turn. 0: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySpec:
    """What happens when work is broken off or fails: it enters again as a new attempt, linked to the first."""

    limit: int
    """Further attempts at most, after the first."""
    backoff_ms: int = 0
    """The new attempt waits so long before it enters; doubled for each further one, at most an hour."""
    never_on: tuple[int, ...] = ()
    """Exit codes after which there is no further attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSpec:
    """One request for resources of an application. `key` is unique in its application; `node` set: already placed."""

    application: str
    key: str
    resources: Resources
    priority: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    task_group: str = ""
    placeholder: bool = False
    originator: bool = False
    allow_preempt_self: bool = True
    """May be taken as a victim (a hint: those that say no are taken last)."""
    allow_preempt_other: bool = True
    """May cause others to be preempted."""
    grace_ms: int | None = None
    """Time between being asked to stop and being killed; None: the default of the place it runs in."""
    time_limit_ms: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """What budgets, affinity and spread select by."""
    where: Constraints = ANYWHERE
    images: tuple[str, ...] = ()
    """What it runs, each as often as it does, sorted: of suitable nodes those are better that have it already."""
    priority_class: str = ""
    """Its name; admission puts the class's value in the place of `priority`."""
    priority_resolved: bool = False
    """Somebody else resolved the priority (an API server): 0 is 0, and no default takes its place."""
    min_runtime_ms: int = 0
    """It is no victim before it has run for so long; admission puts the class's value here."""
    idle: bool = False
    """Runs on what others leave over, beyond its queue's maximum, and gives it back."""
    retry: RetrySpec | None = None
    attempt: int = 1
    first_key: str = ""
    """The key of the first attempt when this is a further one; else nothing."""
    requeues: int = 0
    """How many of the attempts before were stopped to wait again; they do not count as tries."""
    conditions: Conditions | None = None
    """What has to come about before it is in line; None: nothing."""

    @property
    def tries(self) -> int:
        """How often it was tried, this attempt included; what was requeued does not count."""
        return self.attempt - self.requeues

    @property
    def retried(self) -> bool:
        """Whether it goes ahead as a retry. What was requeued, idle work that was stopped, and placeholders come back
        without.
        """
        return self.tries > 1 and (self.retry is not None or not (self.idle or self.placeholder))

    def __post_init__(self) -> None:
        # One object stands for "anywhere", however it was read: that is asked for often.
        if self.where is not ANYWHERE and self.where == ANYWHERE:
            object.__setattr__(self, "where", ANYWHERE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A place to run. Amounts of 0 count as not there."""

    id: str
    capacity: Resources
    attributes: Mapping[str, str] = field(default_factory=dict)
    partition: str = DEFAULT_PARTITION
    schedulable: bool = True
    taints: tuple[Taint, ...] = ()
