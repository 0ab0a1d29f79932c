"""The status of queues that are objects: what each uses, how much waits there, and whether it is accepted.

Decides what is written and how often. Never changes a queue. Invariant: a status is written only when it says something
else than before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.core.books.applications import NO_PRIORITY
from fairlead.core.model.quantities import format_quantity, people_call
from fairlead.kubernetes import kinds
from fairlead.kubernetes.client import MERGE_PATCH, ApiError, Client, NotFound, Unreachable
from fairlead.kubernetes.translate.queues import ACCEPTED, LEFT_OUT

if TYPE_CHECKING:
    from fairlead.core.books import Queue
    from fairlead.kubernetes.control_loop import ControlLoop
    from fairlead.kubernetes.queue_file import QueueFile
    from fairlead.kubernetes.translate.queues import QueueObject

log = logging.getLogger("fairlead.kubernetes")
EACH_S = 2.0
"""How often it is looked what the queues use."""


async def write_statuses(
    client: Client, queue_file: QueueFile, control_loop: ControlLoop, stamp: Callable[[], str]
) -> None:
    """Keep the statuses true until cancelled."""
    written: dict[str, tuple[str | None, dict[str, Any]]] = {}
    while True:
        await asyncio.sleep(EACH_S)
        if not control_loop.ready:
            continue
        written = {name: before for name, before in written.items() if name in queue_file.objects}
        for name, queue in list(queue_file.objects.items()):
            status = status_of(queue, queue_file, control_loop)
            # One that was made anew has none yet.
            now = queue.metadata.uid, status
            if written.get(name) != now and await _write(client, queue, status, stamp()):
                written[name] = now


async def _write(client: Client, queue: QueueObject, status: dict[str, Any], stamp: str) -> bool:
    (condition,) = status["conditions"]
    # Its time is that of the writing; what is written does not depend on it.
    told = {**status, "conditions": [{**condition, "lastTransitionTime": f"{stamp[:19]}Z"}]}
    name = queue.metadata.name
    change = {"metadata": {"uid": queue.metadata.uid}, "status": told}
    try:
        await client.patch(kinds.QUEUES, name, change, sub="status", content_type=MERGE_PATCH)
    except NotFound:
        return False
    except (ApiError, Unreachable) as problem:
        log.warning("the status of queue %s is not written: %s", name, problem)
        return False
    return True


def status_of(queue: QueueObject, queue_file: QueueFile, control_loop: ControlLoop) -> dict[str, Any]:
    """What a queue's status is to say, but for the time."""
    path, flaw = queue.path, queue_file.flaws.get(queue.metadata.name, "")
    found = None if flaw else _find(control_loop, path)
    accepted = {
        "type": ACCEPTED,
        "status": "True",
        "reason": "InForce",
        "message": f"work may be submitted to {path}",
    }
    if found is None:
        why = flaw or queue_file.error or "it is about to be put in force"
        accepted |= {"status": "False", "reason": LEFT_OUT if flaw else "Pending", "message": why}
    status: dict[str, Any] = {"path": path, "conditions": [accepted]}
    if found is None:
        return status | {"used": None, "running": None, "waiting": None, "priority": None}
    used = {name: amount for name, amount in sorted(found.allocated.items()) if amount}
    return status | {
        "used": {people_call(name): format_quantity(name, amount) for name, amount in used.items()} or None,
        "running": found.running,
        "waiting": _waiting(found),
        "priority": None if found.reported == NO_PRIORITY else found.reported,
    }


def _find(control_loop: ControlLoop, path: str) -> Queue | None:
    informer = control_loop.driver.informer
    queue: Queue | None = control_loop.driver.scheduler.cluster.partitions[informer.partition].root
    for name in path.split(".")[1:]:
        queue = queue.children.get(name) if queue is not None else None
    return queue


def _waiting(queue: Queue) -> int:
    own = sum(app.pending_count for app in queue.applications.values())
    return own + sum(_waiting(child) for child in queue.children.values())
