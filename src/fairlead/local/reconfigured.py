"""Changes of the queues, in the stories of the jobs in them.

Decides which changes of a new configuration touch a job, and in which words that is said. Never changes anything.
Invariant: a job is told of its own queue and those above it, and of no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from fairlead.core.model.quantities import format_exactly
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local.job import Job
from fairlead.runtime.configurations import QueueDifference, QueuesReconfigured

SHOWN = 4
"""Changes of one configuration in the story of a job."""


def remember(jobs: Iterable[Job], record: QueuesReconfigured, at_ms: int) -> None:
    """What changed in the queues of each of these jobs, and above them, becomes part of its story."""
    by_queue: dict[str, list[str]] = {}
    for difference in record.differences:
        if difference.partition == DEFAULT_PARTITION:
            by_queue.setdefault(difference.queue, []).append(_changed(difference))
    for job in jobs:
        names = job.queue.split(".")
        paths = [".".join(names[: i + 1]) for i in range(len(names))]
        found = [sentence for path in paths for sentence in by_queue.get(path, ())]
        if found:
            more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            said = "; ".join(found[:SHOWN]) + more
            job.remember(at_ms, "configured", f"version {record.version} by {record.who or 'nobody'}: {said}")


def _changed(difference: QueueDifference) -> str:
    """What is set otherwise in a queue, in words."""
    old, new = (_setting(value) for value in (difference.old, difference.new))
    return f"{difference.what} of {difference.queue} from {old} to {new}"


def _setting(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict) and all(isinstance(amount, int) for amount in value.values()):
        return format_exactly(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
