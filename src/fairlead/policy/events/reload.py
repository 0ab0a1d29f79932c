"""Reload: whether a queue file can take effect on what runs now.

Decides yes, or no with everything that is wrong at once. Never changes anything: it is the dry run before
`core.acts.reconfigure.configure`. Invariant: what passes here is applied completely.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.core.acts.reconfigure import in_the_way
from fairlead.core.books.cluster import Cluster
from fairlead.core.model.names import QUEUE_NAME, QUEUE_NAME_RULE
from fairlead.core.model.reasons import Refused
from fairlead.core.model.specs import ClusterSpec, QueueSpec
from fairlead.policy.queue_choice.acl import access_list_problem
from fairlead.policy.queue_choice.rules import RuleError, build_rules


def why_not(cluster: Cluster, spec: ClusterSpec) -> Refused | None:
    """Why the file cannot be applied, all reasons in one; None when it can."""
    problems = [*_problems(spec), *cluster.admission.file_problems(spec), *in_the_way(cluster, spec)]
    return Refused("; ".join(problems)) if problems else None


def _problems(spec: ClusterSpec) -> Iterator[str]:
    seen: set[str] = set()
    for part in spec.partitions:
        if part.name.lower() in seen:
            yield f"duplicate partition name found with name {part.name}"
        seen.add(part.name.lower())
        try:
            build_rules(part.placement_rules)
        except RuleError as error:
            yield f"partition {part.name}: {error}"
        yield from _queue_problems(part.root, "root")
    if not spec.partitions:
        yield "the configuration has no partition"


def _queue_problems(queue: QueueSpec, path: str) -> Iterator[str]:
    for text in (queue.admin_acl, queue.submit_acl):
        if problem := access_list_problem(text):
            yield f"queue {path}: {problem}"
    seen: set[str] = set()
    for child in queue.queues:
        if not QUEUE_NAME.fullmatch(child.name):
            yield f"queue {path}: '{child.name}': {QUEUE_NAME_RULE}"
        elif child.name.lower() in seen:
            yield f"queue {path}: duplicate child name found with name '{child.name}'"
        seen.add(child.name.lower())
        yield from _queue_problems(child, f"{path}.{child.name.lower()}")
