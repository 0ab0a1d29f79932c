"""What a queue file may say that the scheduler does not act on yet: refused with its place, never ignored.

Decides which features are still missing. Each has one function in `NOT_YET`; when a feature lands, its function goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairlead.config.decode import child_path
from fairlead.config.places import PlacedPartition, places_of
from fairlead.config.problems import Problem, Stage, in_text_order
from fairlead.config.tree import PlacedQueue
from fairlead.core.properties import (
    BACKOFF,
    PREEMPTION_DELAY,
    PREEMPTION_POLICY,
    QUOTA_PREEMPTION_DELAY,
    QueueProperties,
)
from fairlead.core.specs import ClusterSpec

Finding = tuple[str, str]
"""Path and what is missing there."""


def placement_rules(partition: PlacedPartition) -> Iterator[Finding]:
    """Every rule but a plain `provided`: an application runs in the queue that it names."""
    rules = partition.spec.placement_rules
    for index, rule in enumerate(rules):
        plain = rule.name.lower() == "provided" and not rule.create and rule.filter is None and rule.parent is None
        if not plain:
            yield (
                f"{partition.path}.placementrules[{index}]",
                (
                    f"the placement rule {rule.name}{' with create' if rule.create else ''} is not followed; only "
                    "a plain `provided` is: applications name their queue"
                ),
            )


def _everybody(acl: str) -> bool:
    users, _, groups = acl.partition(" ")
    return acl.strip() == "*" or users == "*" or groups == "*"


def submit_access(partition: PlacedPartition) -> Iterator[Finding]:
    """Leaves that not everybody may submit to: nobody is kept out so far."""
    yield from _closed_leaves(partition.root, False)


def _closed_leaves(queue: PlacedQueue, is_open: bool) -> Iterator[Finding]:
    is_open = is_open or _everybody(queue.spec.submit_acl) or _everybody(queue.spec.admin_acl)
    if is_open:
        return
    if not queue.children:
        yield (
            f"{queue.path}.submitacl",
            f"who may submit to {queue.full_name} is not checked; open it: submitacl: '*' here or above",
        )
    for child in queue.children:
        yield from _closed_leaves(child, is_open)


def admin_access(partition: PlacedPartition) -> Iterator[Finding]:
    """Administrators by queue."""
    for queue in partition.root.walk():
        if queue.spec.admin_acl.strip() not in ("", "*"):
            yield f"{queue.path}.adminacl", "administrators of a queue are not known; remove adminacl"


def user_limits(partition: PlacedPartition) -> Iterator[Finding]:
    """Limits of users and groups."""
    for queue in partition.root.walk():
        for index in range(len(queue.spec.limits)):
            yield f"{queue.limits_path}[{index}]", "limits of users and groups are not enforced; remove the limit"


def child_templates(partition: PlacedPartition) -> Iterator[Finding]:
    """Templates for queues made by placement."""
    for queue in partition.root.walk():
        if queue.spec.child_template is not None:
            yield (
                f"{queue.path}.childtemplate",
                "queues are not made by placement; remove the template",
            )


def quota_preemption(partition: PlacedPartition) -> Iterator[Finding]:
    """Taking back what is above a lowered maximum."""
    if partition.spec.preemption.quota_enabled:
        yield f"{partition.path}.preemption.quotapreemptionenabled", "quota preemption is not done; set it to false"
    for queue, properties in _properties(partition):
        if properties.quota_preemption_delay_ms:
            yield _property(queue, QUOTA_PREEMPTION_DELAY), "quota preemption is not done; remove the property"


def preemption_fences(partition: PlacedPartition) -> Iterator[Finding]:
    """Fences, protection from preemption, and its delay by queue."""
    for queue, properties in _properties(partition):
        if properties.preemption_policy != "default":
            yield (
                _property(queue, PREEMPTION_POLICY),
                (f"the preemption policy {properties.preemption_policy} is not followed; remove the property"),
            )
        if PREEMPTION_DELAY in queue.spec.properties:
            yield _property(queue, PREEMPTION_DELAY), "the delay of preemption is not followed; remove the property"


def back_off(partition: PlacedPartition) -> Iterator[Finding]:
    """Rest for applications whose asks fit nowhere."""
    for queue, properties in _properties(partition):
        if properties.backoff_threshold:
            yield _property(queue, BACKOFF), "applications do not back off; remove the property"


def group_resolver(partition: PlacedPartition) -> Iterator[Finding]:
    """Groups looked up by the scheduler itself."""
    if partition.spec.user_group_resolver:
        yield (
            f"{partition.path}.usergroupresolver",
            "groups are not looked up; they come with the submission. Remove it",
        )


def _properties(partition: PlacedPartition) -> Iterator[tuple[PlacedQueue, QueueProperties]]:
    for queue in partition.root.walk():
        yield queue, QueueProperties.of(queue.spec.properties, leaf=True)


def _property(queue: PlacedQueue, key: str) -> str:
    return child_path(f"{queue.path}.properties", key)


NOT_YET: tuple[Callable[[PlacedPartition], Iterator[Finding]], ...] = (
    placement_rules,
    submit_access,
    admin_access,
    user_limits,
    child_templates,
    quota_preemption,
    preemption_fences,
    back_off,
    group_resolver,
)


def not_yet(spec: ClusterSpec, source: str = "<text>") -> list[Problem]:
    """An error for every place of the configuration that would be ignored, sorted by place; empty when none is."""
    found, partitions = places_of(spec, source)
    for index, partition in enumerate(partitions):
        for feature in NOT_YET:
            for path, message in feature(partition):
                found.add(path, f"not yet: {message}", stage=Stage.BUILD, group=index)
    return in_text_order(found.problems)
