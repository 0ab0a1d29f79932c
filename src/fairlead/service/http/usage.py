"""Routes about limits: who may use how much of what, and who uses how much.

Decides what everybody may see: totals of users and groups, since on a shared machine each pays for what the others
use; never whose single jobs they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Query

from fairlead.core.books.partition import Partition
from fairlead.core.books.user_limits import ANYBODY
from fairlead.core.model.specs import LimitSpec
from fairlead.insight.usage import usage_groups, usage_users
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.place import Moment, PlaceOf
from fairlead.wire import declarations as wire

router = api("usage")
NameQuery = Annotated[str | None, Query(max_length=256, description="Only of this one.")]
QueueQuery = Annotated[str | None, Query(max_length=1024, description="Only in this queue.")]


@router.get("/usage")
async def list_usage(
    place: PlaceOf,
    page: PagesOf,
    user: NameQuery = None,
    group: NameQuery = None,
    queue: QueueQuery = None,
) -> wire.UsePage | bytes:
    """What each user and each group with limits uses of every queue, beside what each may use; parents first."""

    def ask(moment: Moment) -> wire.UsePage:
        partition = moment.scheduler.cluster.partitions[moment.partition]
        users = _rows("user", "userName", usage_users(partition)) if group is None else ()
        groups = _rows("group", "groupName", usage_groups(partition)) if user is None else ()
        name = user if user is not None else group
        found = [r for r in (*users, *groups) if name in (None, r.name) and queue in (None, r.queue)]
        return page.of(wire.UsePage, found, lambda row: (int(row.kind != "user"), row.name, row.queue))

    return await place.shown(ask)


def _rows(kind: str, name: str, trees: list[dict[str, Any]]) -> Iterator[wire.Use]:
    """One row a queue, parents first."""
    for tree in trees:
        waiting = [tree["queues"]]
        while waiting:
            level = waiting.pop(0)
            waiting = [*level.get("children", ()), *waiting]
            yield wire.Use(
                kind=kind,
                name=tree[name],
                queue=level["queuePath"],
                used=level.get("resourceUsage", {}),
                running=len(level.get("runningApplications", ())),
                max=level.get("maxResources"),
                max_running=level.get("maxApplications") or None,
            )


@router.get("/limits")
async def list_limits(
    place: PlaceOf,
    page: PagesOf,
    user: NameQuery = None,
    group: NameQuery = None,
    queue: QueueQuery = None,
) -> wire.LimitPage | bytes:
    """Every limit of the queue file on users and groups, with those who use some of it now."""

    def ask(moment: Moment) -> wire.LimitPage:
        rows = _limit_rows(moment.scheduler.cluster.partitions[moment.partition])
        kind, name = ("user", user) if user is not None else ("group", group)
        wanted = [r for r in rows if (name is None or (r.kind, r.name) == (kind, name)) and queue in (None, r.queue)]
        return page.of(wire.LimitPage, wanted, lambda row: (row.queue, int(row.kind != "user"), row.name))

    return await place.shown(ask)


def _limit_rows(partition: Partition) -> Iterator[wire.Limit]:
    if partition.trackers is None:
        return
    for path, own in partition.trackers.limits.items():
        for kind, named in (("user", own.users), ("group", own.groups)):
            for name, limit in named.items():
                yield _limit_row(partition, path, kind, name, limit, frozenset(named))


def _limit_row(
    partition: Partition, path: str, kind: str, name: str, limit: LimitSpec, named: frozenset[str]
) -> wire.Limit:
    ceilings = partition.trackers.ceilings if partition.trackers is not None else {}
    using = [
        wire.LimitUse(
            name=each.name,
            used={n: v for n, v in sorted(each.used.items()) if v},
            running=len(each.applications),
        )
        for (its_kind, its_name, queue), each in sorted(ceilings.items(), key=lambda item: item[0])
        if its_kind == kind
        and queue == path
        and (its_name == name or (kind == "user" and name == ANYBODY and its_name not in named))
        and each.applications
    ]
    most = limit.max_resources
    return wire.Limit(
        queue=path,
        kind=kind,
        name=name,
        limit=limit.limit,
        max=most.as_dict() if most is not None and most.is_set else None,
        max_running=limit.max_applications or None,
        using=using,
    )
