"""Moving an application to another queue: whether it may, by what runs in both.

Decides from the books whether the target takes it; who may order it is the caller's business (`acl.may_administer` of
both queues). Never takes anything back to make it fit. Invariant: a move takes no queue over its maximum, nor over the
applications it may run. Limits of users and groups may be exceeded by it; then nothing new starts until they are met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts.move import move, running_amounts
from fairlead.core.books.queues import RECOVERY_QUEUE, QueueState
from fairlead.core.model.decisions import ApplicationMoved, MoveRejected
from fairlead.core.model.lifecycle import LIVE
from fairlead.core.model.reasons import ApplicationsAtMax, QueueFull, Reason, Refused
from fairlead.policy.queue_choice.placement import gang_obstacle

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.events import MoveApplication


def move_application(partition: Partition, event: MoveApplication) -> None:
    """Put an application into another leaf, or say why it stays."""
    app = partition.applications.get(event.id)
    if app is None:
        _refuse(partition, event, Refused(f"failed to find application {event.id}"))
        return
    target = partition.root.find(event.queue)
    if target is None:
        text = f"there is no queue {event.queue}; give the whole path of a leaf, such as root.team"
        _refuse(partition, event, Refused(text))
        return
    refused = _obstacle(app, target)
    if refused is not None:
        _refuse(partition, event, refused)
        return
    old = app.queue.path
    move(partition, app, target)
    partition.out.append(ApplicationMoved(app.id, old, target.path, event.who, partition.name))


def _refuse(partition: Partition, event: MoveApplication, reason: Reason) -> None:
    partition.out.append(MoveRejected(event.id, reason, partition.name))


def _obstacle(app: Application, target: Queue) -> Reason | None:
    if target is app.queue:
        return Refused(f"application {app.id} is in {target.path} already")
    if not target.is_leaf:
        return Refused(f"queue {target.path} is a parent; applications are in leaves")
    if target.state is QueueState.DRAINING:
        return Refused(f"queue {target.path} is draining and takes nothing new")
    if target.path == RECOVERY_QUEUE:
        return Refused(f"queue {target.path} is for recovery only")
    if app.swapping:
        return Refused(f"placeholders of application {app.id} are being replaced; try again when that is done")
    return gang_obstacle(target, app.spec) or _too_many(app, target) or _too_much(app, target)


def _too_many(app: Application, target: Queue) -> Reason | None:
    """A queue that the application does not count for yet and that runs as many as it may."""
    if app.state not in LIVE and app.id not in app.queue.allocating_accepted:
        return None
    for queue in target.lineage:
        count = queue.running + len(queue.allocating_accepted)
        if queue not in app.queue.lineage and queue.max_applications and count >= queue.max_applications:
            return ApplicationsAtMax(queue.path, count, queue.max_applications)
    return None


def _too_much(app: Application, target: Queue) -> Reason | None:
    """A queue that does not hold what the application runs yet and has no room for it."""
    amounts = running_amounts(app)
    for queue in target.lineage:
        if queue in app.queue.lineage or queue.max is None:
            continue
        room = {name: most - queue.allocated.get(name, 0) for name, most in queue.max.items()}
        short = {name: left for name, left in room.items() if amounts.get(name, 0) > max(left, 0)}
        if short:
            needed = {name: amounts[name] for name in short}
            return QueueFull(queue.path, needed, short, {name: queue.max[name] for name in short})
    return None
