"""Dynamic queues: those that placement makes on the way, and the limits that applications bring for them.

Decides whether a path can be made, what the new queues start with, and what the namespace tags of an application change
in its queue. Never touches a queue of the file. Invariant: the last queue of a made path is a leaf, all above are not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fairlead.core.acts import infeasible, queue_removal, room_changes
from fairlead.core.books.guarantees import find_guarantees, forget_owed
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import RECOVERY_QUEUE, Queue
from fairlead.core.model.resources import INT64_MAX, INT64_MIN, Limits
from fairlead.core.model.specs import TemplateSpec

TAG_QUOTA = "namespace.resourcequota"
TAG_GUARANTEED = "namespace.resourceguaranteed"
TAG_MAX_APPLICATIONS = "namespace.resourcemaxapps"

DEPTH_MAX = 64
"""Levels of a path that placement makes, at most: applications name it, and every allocation walks it."""

_UINT64_MAX = 2**64 - 1
_TAG_LENGTH_MAX = 100_000


class CannotCreate(ValueError):
    """A path that cannot be made; the text says why."""


def nearest(root: Queue, path: str) -> tuple[Queue, list[str]]:
    """The last queue on a path that exists, and the names that are missing below it. `path` begins at the root."""
    queue, missing = root, path.lower().split(".")[1:]
    while missing and missing[0] in queue.children:
        queue, missing = queue.children[missing[0]], missing[1:]
    return queue, missing


def check_creatable(partition: Partition, path: str) -> tuple[Queue, list[str]]:
    """`nearest`, for a path whose missing queues can be made. Raises `CannotCreate` if they cannot."""
    queue, missing = nearest(partition.root, path)
    if not missing:
        return queue, []
    if queue.is_leaf:
        raise CannotCreate(f"creation of queue {path} failed parent is already a leaf: {queue.path}")
    if (draining := queue.draining) is not None:
        text = f"cannot add a child queue when queue is marked for deletion: {draining.path}"
        raise CannotCreate(f"dynamic queue creation failed: \n{text}")
    if f"{path.lower()}.".startswith(f"{RECOVERY_QUEUE}."):
        raise CannotCreate(f"dynamic queue creation failed: \ndynamic queue cannot be {RECOVERY_QUEUE}")
    if len(queue.lineage) + len(missing) > DEPTH_MAX:
        raise CannotCreate(f"queue {path[:200]} would be more than {DEPTH_MAX} levels deep; use a shorter path")
    return queue, missing


def create_path(partition: Partition, path: str) -> Queue:
    """Make the queues that are missing on a path, the last of them a leaf. Raises `CannotCreate`; then none is made.

    The recovery queue, for applications that are taken in whatever the rules say, has no limits.
    """
    if path == RECOVERY_QUEUE:
        return _create(partition, partition.root, RECOVERY_QUEUE.partition(".")[2], None, leaf=True)
    queue, missing = check_creatable(partition, path)
    for at, name in enumerate(missing):
        queue = _create(partition, queue, name, queue.template, leaf=at + 1 == len(missing))
    return queue


def _create(partition: Partition, parent: Queue, name: str, template: TemplateSpec | None, *, leaf: bool) -> Queue:
    queue = Queue(name, parent, partition.next_seq(), leaf=leaf, managed=False)
    queue.configure_dynamic(template)
    find_guarantees(queue, partition.spec.preemption.rule == "both")
    queue_removal.queue_changed(partition, queue, "added")
    return queue


def apply_namespace_tags(partition: Partition, queue: Queue, tags: Mapping[str, str]) -> None:
    """Take over the limits that an application's tags state for its dynamic leaf; the names of `tags` are lower case.

    When one of quota and guarantee is stated, the other is cleared. What cannot be read, or is not above zero, changes
    nothing.
    """
    if queue.managed or queue.path == RECOVERY_QUEUE:
        return
    before = (queue.max_applications, queue.max, queue.guaranteed)
    queue.max_applications = _positive_count(tags.get(TAG_MAX_APPLICATIONS, "")) or queue.max_applications
    queue.max, queue.guaranteed = stated_limits(tags) or (queue.max, queue.guaranteed)
    if (queue.max_applications, queue.max, queue.guaranteed) != before:
        _limits_changed(partition, queue)


def stated_limits(tags: Mapping[str, str]) -> tuple[dict[str, int] | None, dict[str, int] | None] | None:
    """The maximum and the guarantee that tags state for a dynamic leaf; None: they state neither."""
    quota, guaranteed = (_limits(tags.get(tag, "")) for tag in (TAG_QUOTA, TAG_GUARANTEED))
    return None if quota is None and guaranteed is None else (quota, guaranteed)


def _limits_changed(partition: Partition, leaf: Queue) -> None:
    """Shares are measured anew, and what waited for the old limits is looked at again."""
    find_guarantees(leaf, partition.spec.preemption.rule == "both")
    for app in leaf.applications.values():
        forget_owed(app)
    partition.note_change()  # It is more than the new work that it came with.
    leaf.share_terms = None
    leaf.touch()
    room_changes.wake_leaf(leaf)
    if leaf in partition.reserving.bounded:
        partition.reserving.overdue[leaf] = None  # What was too large for it may have its turn kept now.
    leaf.loosened()
    leaf.open_gates()
    infeasible.raised(leaf, partition.now_ms)
    partition.books_version += 1


def _positive_count(text: str) -> int:
    count = int(text) if len(text) <= 20 and text.isascii() and text.isdigit() else 0
    return count if count <= _UINT64_MAX else 0


def _limits(text: str) -> dict[str, int] | None:
    """The limit in `{"resources": {"vcore": {"value": 10000}}}`; None when it is none, or not above zero."""
    if not text or len(text) > _TAG_LENGTH_MAX:
        return None
    try:
        limits = Limits({name: _value(quantity) for name, quantity in json.loads(text)["resources"].items()})
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):  # No JSON, or not of this form.
        return None
    return limits.as_dict() if limits.is_set else None


def _value(quantity: Any) -> int:
    value = quantity.get("value", 0)
    if not isinstance(value, int) or isinstance(value, bool) or not INT64_MIN <= value <= INT64_MAX:
        raise ValueError("no amount")
    return value
