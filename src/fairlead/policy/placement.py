"""Placement: which queue an application goes to.

Decides the queue from the application's own words and the partition's rules, or says why none takes it. Never changes
the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.queues import Queue, QueueState
from fairlead.core.reasons import Refused

if TYPE_CHECKING:
    from fairlead.core.partition import Partition
    from fairlead.core.specs import ApplicationSpec

DEFAULT_QUEUE = "root.default"


def place_application(partition: Partition, spec: ApplicationSpec) -> Queue | Refused:
    """The leaf for this application, or why it is refused."""
    named = spec.queue
    if named and not named.startswith("root."):
        named = "root." + named.replace(".", "_dot_")
    for path in (named, DEFAULT_QUEUE):
        queue = partition.root.find(path) if path else None
        if queue is not None and queue.is_leaf and queue.state is not QueueState.DRAINING:
            return queue
    return Refused(f"failed to place application {spec.id}: application rejected: no placement rule matched")
