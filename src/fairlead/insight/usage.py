"""Usage: what each user and each group uses of every queue, and what each may use, as the REST reads show it.

Decides nothing: it adds up what the live applications have, queue by queue up to the root, and puts the limits beside
it. So users are shown in partitions without any limit too, at no cost to scheduling. Groups are shown where they have
limits; only these are tracked. Everything is in order of name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.books.user_limits import ANYBODY
from fairlead.core.model.resources import Book, add_to, pruned

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.core.books.user_limits import QueueLimits
    from fairlead.core.model.specs import LimitSpec

Row = dict[str, Any]


@dataclass(slots=True)
class _Level:
    """One queue of one user's or group's tree."""

    used: Book = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    limit: LimitSpec | None = None


_Tree = dict[str, _Level]


def usage_users(partition: Partition) -> list[Row]:
    """Everybody who has limits of his own, or applications that wait or run."""
    limited = (name for own in _limits(partition).values() for name in own.users if name != ANYBODY)
    apps: dict[str, list[Application]] = {name: [] for name in limited}
    for app in _counting(partition):
        apps.setdefault(app.user, []).append(app)
    return [_user(partition, name, mine) for name, mine in sorted(apps.items())]


def usage_groups(partition: Partition) -> list[Row]:
    """Every group that has limits."""
    apps = _counting(partition)
    names = {name for own in _limits(partition).values() for name in own.groups}
    return [_group(partition, name, apps) for name in sorted(names)]


def _user(partition: Partition, name: str, mine: list[Application]) -> Row:
    tree = _used(mine)
    for path, own in _limits(partition).items():
        if name in own.users:
            _level(tree, path)
    for path, level in tree.items():
        found = _limits(partition).get(path)
        level.limit = None if found is None else found.users.get(name) or found.users.get(ANYBODY)
    groups = dict(sorted((app.id, group) for app in mine if (group := _group_of(app))))
    return {"userName": name, **({"groups": groups} if groups else {}), "queues": _rows(tree)}


def _group(partition: Partition, name: str, apps: list[Application]) -> Row:
    mine = [app for app in apps if _group_of(app) == name]
    tree = _used(mine)
    for path, own in _limits(partition).items():
        if name in own.groups:
            _level(tree, path).limit = own.groups[name]
    tracked = sorted(app.id for app in mine if app.tracked)
    return {"groupName": name, **({"applications": tracked} if tracked else {}), "queues": _rows(tree)}


def _limits(partition: Partition) -> dict[str, QueueLimits]:
    return partition.trackers.limits


def _counting(partition: Partition) -> list[Application]:
    """Applications that a limit would look at: those that wait or run."""
    return [app for app in partition.applications.values() if app.tracked or app.pending_count]


def _group_of(app: Application) -> str:
    return app.allowance.group if app.allowance is not None else ""


def _used(apps: Iterable[Application]) -> _Tree:
    tree: _Tree = {}
    leaves: dict[Queue, list[Application]] = {}
    for app in apps:
        leaves.setdefault(app.queue, []).append(app)
    for leaf, its in leaves.items():
        used: Book = {}
        for app in its:
            for book in (app.allocated, app.placeholders):
                if book:
                    add_to(used, tuple(book.items()))
        running = [app.id for app in its if app.tracked]
        _level(tree, leaf.path)
        for queue in leaf.lineage:
            level = tree[queue.path]
            add_to(level.used, tuple(used.items()))
            level.running += running
    return tree


def _level(tree: _Tree, path: str) -> _Level:
    """The level of a queue, made with all above it where it is new."""
    parts = path.split(".")
    for i in range(1, len(parts)):
        tree.setdefault(".".join(parts[:i]), _Level())
    return tree.setdefault(path, _Level())


def _rows(tree: _Tree) -> Row:
    """The tree as nested rows; empty figures are left out."""
    rows: dict[str, Row] = {}
    for path in sorted(tree, key=lambda p: p.split(".")):
        level = tree[path]
        limit = level.limit
        most = limit.max_resources.as_dict() if limit is not None and limit.max_resources is not None else {}
        optional = {
            "resourceUsage": pruned(level.used),
            "runningApplications": sorted(level.running),
            "maxResources": most,
            "maxApplications": limit.max_applications if limit is not None else 0,
        }
        rows[path] = {"queuePath": path} | {name: value for name, value in optional.items() if value}
        parent = rows.get(path.rpartition(".")[0])
        if parent is not None:
            parent.setdefault("children", []).append(rows[path])
    return rows["root"]
