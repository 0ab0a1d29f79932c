"""Routes about limits: who may use how much of what, and who uses how much.

Decides what everybody may see: totals of users and groups, since on a shared machine each pays for what the others
use; never whose single jobs they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from fairlead.core.partition import Partition
from fairlead.core.specs import DEFAULT_PARTITION, LimitSpec
from fairlead.core.trackers import ANYBODY
from fairlead.insight.usage import usage_groups, usage_users
from fairlead.scheduler import Scheduler
from fairlead.service.desk import CallerOf, DeskOf, plain
from fairlead.service.errors import documented

router = APIRouter(prefix="/api/v1", tags=["usage"])
Plain = dict[str, Any]
NameQuery = Annotated[str | None, Query(max_length=256, description="Only of this one.")]


class UsageRow(BaseModel):
    """What one user or group uses of one queue and those below it."""

    kind: str
    name: str
    queue: str
    used: dict[str, int]
    running: int
    max: dict[str, int] | None = Field(description="What he may use there; null: no limit of his.")
    max_running: int | None


class Usage(BaseModel):
    """Who uses what."""

    usage: list[UsageRow]


class LimitUse(BaseModel):
    """Somebody to whom a limit applies."""

    name: str
    used: dict[str, int]
    running: int


class LimitRow(BaseModel):
    """A limit on a user or a group in one queue and those below it; `*`: each user, or all other groups together."""

    queue: str
    kind: str
    name: str
    limit: str
    max: dict[str, int] | None
    max_running: int | None
    using: list[LimitUse]


class Limits(BaseModel):
    """All limits of the queue file."""

    limits: list[LimitRow]


@router.get("/usage", response_model=Usage, responses=documented())
async def get_usage(desk: DeskOf, caller: CallerOf, user: NameQuery = None, group: NameQuery = None) -> Response:
    """What each user and each group with limits uses of every queue, beside what each may use."""
    del caller

    def ask(scheduler: Scheduler, _: Any) -> list[Plain]:
        partition = scheduler.cluster.partitions[DEFAULT_PARTITION]
        found: list[Plain] = []
        if group is None:
            found += [row for row in _rows("user", "userName", usage_users(partition)) if user in (None, row["name"])]
        if user is None:
            found += [
                row for row in _rows("group", "groupName", usage_groups(partition)) if group in (None, row["name"])
            ]
        return found

    return plain({"usage": await desk.read(ask)})


def _rows(kind: str, name: str, trees: list[Plain]) -> Iterator[Plain]:
    """One row a queue, parents first."""
    for tree in trees:
        waiting = [tree["queues"]]
        while waiting:
            level = waiting.pop(0)
            waiting = [*level.get("children", ()), *waiting]
            yield {
                "kind": kind,
                "name": tree[name],
                "queue": level["queuePath"],
                "used": level.get("resourceUsage", {}),
                "running": len(level.get("runningApplications", ())),
                "max": level.get("maxResources"),
                "max_running": level.get("maxApplications") or None,
            }


@router.get("/limits", response_model=Limits, responses=documented())
async def list_limits(desk: DeskOf, caller: CallerOf) -> Response:
    """Every limit of the queue file on users and groups, with those who use some of it now."""
    del caller
    rows = await desk.read(lambda s, _: list(_limit_rows(s.cluster.partitions[DEFAULT_PARTITION])))
    return plain({"limits": rows})


def _limit_rows(partition: Partition) -> Iterator[Plain]:
    if partition.trackers is None:
        return
    for path, own in partition.trackers.limits.items():
        for kind, named in (("user", own.users), ("group", own.groups)):
            for name, limit in named.items():
                yield _limit_row(partition, path, kind, name, limit, frozenset(named))


def _limit_row(partition: Partition, path: str, kind: str, name: str, limit: LimitSpec, named: frozenset[str]) -> Plain:
    ceilings = partition.trackers.ceilings if partition.trackers is not None else {}
    using = [
        {
            "name": each.name,
            "used": {n: v for n, v in sorted(each.used.items()) if v},
            "running": len(each.applications),
        }
        for (its_kind, its_name, queue), each in sorted(ceilings.items(), key=lambda item: item[0])
        if its_kind == kind
        and queue == path
        and (its_name == name or (kind == "user" and name == ANYBODY and its_name not in named))
        and each.applications
    ]
    most = limit.max_resources
    return {
        "queue": path,
        "kind": kind,
        "name": name,
        "limit": limit.limit,
        "max": most.as_dict() if most is not None and most.is_set else None,
        "max_running": limit.max_applications or None,
        "using": using,
    }
