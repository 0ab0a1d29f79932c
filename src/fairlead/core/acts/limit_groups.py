"""The group that an application counts for, and the limits that follow from it.

Decides when the group of an application is settled, and what changes when the file's limits do. Never decides whether
an ask waits (`policy.eligibility.limits` does). Invariant: an application of which something runs keeps its group until
a limit of that group is dropped in one of its queues.
"""

from __future__ import annotations

from fairlead.core.books.applications import Application
from fairlead.core.books.partition import Partition
from fairlead.core.books.user_limits import UNGROUPED, Trackers


def come_under_limits(partition: Partition, app: Application) -> None:
    """An application that has nothing begins to wait or to run: the limits that hold by now are worked out afresh."""
    if not app.tracked and not app.pending_count:
        partition.trackers.leave(app)
        partition.trackers.join(app)


def decide_groups(partition: Partition) -> None:
    """A scheduling run came to every waiting application: from now on each keeps the group that it counts for."""
    for app in list(partition.unseen):
        if app.pending_count:
            decide_group(partition, app)
        else:
            del partition.unseen[app]  # It waits no longer, and nothing of it runs: there was nothing to come to.


def decide_group(partition: Partition, app: Application) -> None:
    """From now on the application keeps the group that it counts for, even if that is none."""
    app.limit_group = app.allowance.group if app.allowance is not None else UNGROUPED
    partition.unseen.pop(app, None)


def limits_changed(partition: Partition) -> None:
    """The limits are what the partition's `spec` says from now on; what is in use counts under the new ones. That an
    application counts for no group stands, but where no scheduling run has come to it since.
    """
    before, after = partition.trackers, Trackers(partition.spec.root)
    if not before.limits and not after.limits:
        return
    partition.trackers = after
    for app in partition.applications.values():
        group = app.limit_group
        if group and not before.group_limits(app, group) <= after.group_limits(app, group):
            app.limit_group = None  # A limit of it was dropped.
        if app.limit_group is None and app.pending_count:
            partition.unseen[app] = None
        else:
            partition.unseen.pop(app, None)
        app.allowance = None
        after.join(app)
        for batch in app.batches.values():
            app.refile(batch)  # In no line yet: after a reload all is put in line anew.
