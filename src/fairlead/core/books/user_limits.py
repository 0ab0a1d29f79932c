"""Trackers: what each user and each group may use of a queue and everything below it, and what is used of that.

Decides which limits hold for an application (its user's, and those of the one group it counts for) and keeps what is
used of each. Never decides whether an ask waits; that is `fairlead.policy.eligibility.limits`. Invariant: a ceiling's
use is the sum of the allocations of the live applications that count for it, and its `applications` are the tracked
ones of them.

Only queues that the file gives limits have ceilings, so a partition without limits keeps nothing here, and an
application that no limit names pays nothing. Trackers belong to one partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.books.demand import Obstacle
from fairlead.core.model.resources import Items, add_to, negative

if TYPE_CHECKING:
    from fairlead.core.books import Application, Queue
    from fairlead.core.model.specs import LimitSpec, QueueSpec

ANYBODY = "*"
"""As a user: a limit that each user without an own one has alone. As a group: one shared by all the rest."""
UNGROUPED = ""
"""The group of an application for which it is decided that it counts for none."""


@dataclass(slots=True)
class QueueLimits:
    """The limits of one queue by name, in the order of the file."""

    users: dict[str, LimitSpec] = field(default_factory=dict)
    groups: dict[str, LimitSpec] = field(default_factory=dict)


class Ceiling(Obstacle):
    """What one user, or one group, may use of one queue and all below it, and what of that is in use."""

    __slots__ = ("applications", "holders", "kind", "name", "queue")

    def __init__(self, kind: str, name: str, queue: str, limit: LimitSpec) -> None:
        super().__init__()
        self.kind = kind
        """`user` or `group`."""
        self.name = name
        """Of the user or group; for the wildcard of users it is the user's own name, for that of groups it is `*`."""
        self.queue = queue
        """Full path."""
        most = limit.max_resources
        self.max = most.as_dict() if most is not None and most.is_set else None
        self.max_applications = limit.max_applications
        self.applications: dict[str, None] = {}
        """Applications that count against `max_applications`."""
        self.holders = 0
        """Allowances that refer to it; the trackers drop it at 0."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Under which the trackers have it."""
        return self.kind, self.name, self.queue

    def count_applications(self) -> int:
        """How many applications of the user or group have something that runs."""
        return len(self.applications)

    def counts(self, app: Application) -> bool:
        """Whether this is one of them."""
        return app.id in self.applications


class Allowance:
    """All ceilings over the applications of one user (and group) in one leaf: the user's first, from the leaf up."""

    __slots__ = ("applications", "ceilings", "group", "key")

    def __init__(self, key: tuple[str, str, str], ceilings: tuple[Ceiling, ...]) -> None:
        self.key = key
        self.group = key[2]
        self.ceilings = ceilings
        self.applications = 0
        """Live applications that have it; the trackers drop it at 0."""

    def short_of_room(self, items: Items) -> Ceiling | None:
        """The first ceiling that has no room for this amount."""
        for ceiling in self.ceilings:
            if ceiling.lacks(items):
                return ceiling
        return None

    def add(self, app: str, items: Items) -> None:
        """This much more is in use by `app`. No check: the caller made sure, or is forced to."""
        for ceiling in self.ceilings:
            add_to(ceiling.allocated, items)
            ceiling.applications[app] = None

    def take(self, items: Items) -> None:
        """This much is free again; what waits for it is woken."""
        less = negative(items)
        for ceiling in self.ceilings:
            add_to(ceiling.allocated, less)
            ceiling.wake_waiting()

    def strike_off(self, app: str) -> None:
        """`app` does not count as running any longer; what waits to run is woken."""
        for ceiling in self.ceilings:
            if app in ceiling.applications:
                del ceiling.applications[app]
                ceiling.open_gate()


class Trackers:
    """The limits of one partition's queues, and the ceilings in use."""

    def __init__(self, root: QueueSpec) -> None:
        self.limits: dict[str, QueueLimits] = {}
        """By full path in lower case; only queues that have limits."""
        self.ceilings: dict[tuple[str, str, str], Ceiling] = {}
        self.allowances: dict[tuple[str, str, str], Allowance] = {}
        self._read(root, "root")

    def _read(self, spec: QueueSpec, path: str) -> None:
        for limit in spec.limits:
            own = self.limits.setdefault(path, QueueLimits())
            own.users |= dict.fromkeys(limit.users, limit)
            own.groups |= dict.fromkeys(limit.groups, limit)
        for child in spec.queues:
            self._read(child, f"{path}.{child.name.lower()}")

    # -- which limits hold ----------------------------------------------------------------------------------------

    def group_for(self, app: Application) -> str:
        """The group that an application counts for, or `UNGROUPED`.

        From its leaf up, at each queue: the first group in the file's order that its user is in, else the wildcard.
        """
        mine = groups_of(app.user, app.spec.groups)
        for _, own in self._limited(app.queue):
            nearest = next((name for name in own.groups if name in mine), ANYBODY)
            if nearest in own.groups:
                return nearest
        return UNGROUPED

    def group_limits(self, app: Application, group: str) -> set[str]:
        """The queues from the application's leaf up that have a limit of this group."""
        return {path for path, own in self._limited(app.queue) if group in own.groups}

    def _limited(self, leaf: Queue) -> list[tuple[str, QueueLimits]]:
        """The queues from the leaf up that have limits."""
        return [(queue.path, self.limits[queue.path]) for queue in leaf.lineage if queue.path in self.limits]

    def _ceilings(self, leaf: Queue, user: str, group: str) -> Iterator[Ceiling]:
        limited = self._limited(leaf)
        over = [("user", user, path, own.users.get(user) or own.users.get(ANYBODY)) for path, own in limited]
        over += [("group", group, path, own.groups.get(group)) for path, own in limited if group != UNGROUPED]
        for kind, name, path, limit in over:
            if limit is not None:
                key = (kind, name, path)
                if key not in self.ceilings:
                    self.ceilings[key] = Ceiling(*key, limit)
                yield self.ceilings[key]

    # -- what counts ----------------------------------------------------------------------------------------------

    def join(self, app: Application) -> None:
        """An application comes under the limits that hold for it, with all that it uses already."""
        if not self.limits:
            return
        group = self.group_for(app) if app.limit_group is None else app.limit_group
        key = (app.queue.path, app.user, group)
        allowance = self.allowances.get(key)
        if allowance is None:
            ceilings = tuple(self._ceilings(app.queue, app.user, group))
            if not ceilings:
                return
            allowance = self.allowances[key] = Allowance(key, ceilings)
            for ceiling in ceilings:
                ceiling.holders += 1
        allowance.applications += 1
        app.allowance = allowance
        if app.tracked:
            for book in (app.allocated, app.placeholders):
                allowance.add(app.id, tuple(book.items()))

    def leave(self, app: Application) -> None:
        """An application no longer counts for anything here (it is gone, or moves: its group is decided anew)."""
        if not self.limits:
            return
        app.limit_group = None
        allowance, app.allowance = app.allowance, None
        if allowance is None:
            return
        for book in (app.allocated, app.placeholders):
            allowance.take(tuple(book.items()))
        allowance.strike_off(app.id)
        allowance.applications -= 1
        if allowance.applications:
            return
        del self.allowances[allowance.key]
        for ceiling in allowance.ceilings:
            ceiling.holders -= 1
            if not ceiling.holders:
                del self.ceilings[ceiling.key]


def same_limit(trackers: Trackers, app: Application, known: Ceiling) -> Ceiling | None:
    """The ceiling over this application that says the same as one of trackers that were before; None: there is none."""
    now = trackers.ceilings.get(known.key)
    if now is None or now not in app.ceilings:
        return None
    return now if (now.max, now.max_applications) == (known.max, known.max_applications) else None


def groups_of(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups that count for a user: those given, else one with the user's own name."""
    return groups or (user,)
