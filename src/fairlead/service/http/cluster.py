"""Routes about queues, nodes, limits, use, the service itself, and the stream of events, on a machine and on a cluster.

Decides what everybody may see: totals of queues, nodes, users and groups, since on a shared machine each pays for what
the others use; never whose single jobs they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import StreamingResponse

from fairlead.core.books.partition import Partition
from fairlead.core.books.user_limits import ANYBODY
from fairlead.core.model.resources import pruned
from fairlead.insight.usage import usage_groups, usage_users
from fairlead.runtime import Refusal
from fairlead.service import views
from fairlead.service.history_events import parse_id
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.place import CallerOf, Moment, PlaceOf
from fairlead.wire import cluster as wire
from fairlead.wire import declarations as declared
from fairlead.wire.fields import with_cpu

router = api("cluster")


@router.get("/queues")
async def list_queues(
    place: PlaceOf,
    page: PagesOf,
    queue: Annotated[str | None, Query(max_length=1024, description="Only this queue and those below it.")] = None,
) -> wire.QueuePage | bytes:
    """The queues with what each may use, uses, and waits for: one tree a partition, by its name."""

    def ask(moment: Moment) -> wire.QueuePage:
        trees = views.queue_views(moment.scheduler)
        path = queue.lower() if queue is not None else None
        found = trees if path is None else [each for tree in trees if (each := _below(tree, path)) is not None]
        return page.of(wire.QueuePage, found, lambda tree: (tree.partition, tree.path))

    return await place.shown(ask)


def _below(tree: wire.Queue, path: str) -> wire.Queue | None:
    """The queue of a path in a tree."""
    if tree.path == path:
        return tree
    return next((found for child in tree.children if (found := _below(child, path)) is not None), None)


def _is_of(wanted: str | None, path: str) -> bool:
    return wanted is None or wanted.lower() == path


@router.get("/nodes")
async def list_nodes(
    place: PlaceOf,
    page: PagesOf,
    schedulable: Annotated[bool | None, Query(description="Only those that take new work, or that do not.")] = None,
) -> wire.NodePage | bytes:
    """The nodes with what each has and what is free, by their names."""

    def ask(moment: Moment) -> wire.NodePage:
        found = (node for node in views.nodes(moment.scheduler) if schedulable in (None, node.schedulable))
        return page.of(wire.NodePage, found, lambda node: node.id, views.node_view)

    return await place.shown(ask)


@router.get("/info")
async def get_info(place: PlaceOf, caller: CallerOf) -> wire.Service:
    """What this service is, and whether all is well."""
    return await place.info(caller)


STREAM: Mapping[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `id` SEQ.INDEX, `event` the type, `data` JSON with seq, at_ms, type, key.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    **documented(429),
}


@router.get("/events", response_class=StreamingResponse, responses=dict(STREAM))
async def stream_events(
    place: PlaceOf,
    caller: CallerOf,
    from_seq: Annotated[
        int | None, Query(alias="from", ge=0, le=2**60, description="Begin with this journal record.")
    ] = None,
    last_event_id: Annotated[str | None, Header(max_length=64, description="Go on after this event.")] = None,
) -> StreamingResponse:
    """What happens, as it happens; first what happened since, when asked, and then `caught-up`. Others' jobs are left
    out.
    """
    after = None
    if last_event_id:
        after = parse_id(last_event_id)
        if after is None:
            raise Refusal("invalid", f"{last_event_id!r} is no id of an event, such as 17.0", field="Last-Event-ID")
    elif from_seq is not None:
        after = (max(from_seq - 1, 0), 10**9)
    pieces = place.events(caller, after)
    first = await anext(pieces)

    async def all_pieces() -> Any:
        try:
            yield first
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(all_pieces(), media_type="text/event-stream", headers=headers)


# -- use and limits -----------------------------------------------------------------------------------------------


usage = api("usage")
NameQuery = Annotated[str | None, Query(max_length=256, description="Only of this one.")]
QueueQuery = Annotated[str | None, Query(max_length=1024, description="Only in this queue.")]


@usage.get("/usage")
async def list_usage(
    place: PlaceOf,
    page: PagesOf,
    user: NameQuery = None,
    group: NameQuery = None,
    queue: QueueQuery = None,
) -> declared.UsePage | bytes:
    """What each user and each group with limits uses of every queue, beside what each may use; parents first."""
    _one_of(user, group)

    def ask(moment: Moment) -> declared.UsePage:
        partition = moment.scheduler.cluster.partitions[moment.partition]
        users = _rows("user", "userName", usage_users(partition)) if group is None else ()
        groups = _rows("group", "groupName", usage_groups(partition)) if user is None else ()
        name = user if user is not None else group
        found = [r for r in (*users, *groups) if name in (None, r.name) and _is_of(queue, r.queue)]
        return page.of(declared.UsePage, found, lambda row: (int(row.kind != "user"), row.name, row.queue))

    return await place.shown(ask)


def _one_of(user: str | None, group: str | None) -> None:
    if user is not None and group is not None:
        sentence = "user and group are both given, and a row is about one; give one of them"
        raise Refusal("invalid", sentence, field="group")


def _rows(kind: str, name: str, trees: list[dict[str, Any]]) -> Iterator[declared.Use]:
    """One row a queue, parents first."""
    for tree in trees:
        waiting = [tree["queues"]]
        while waiting:
            level = waiting.pop(0)
            waiting = [*level.get("children", ()), *waiting]
            yield declared.Use(
                kind=kind,
                name=tree[name],
                queue=level["queuePath"],
                used=with_cpu(level.get("resourceUsage", {})),
                running=len(level.get("runningApplications", ())),
                max=with_cpu(level.get("maxResources")),
                max_running=level.get("maxApplications") or None,
            )


@usage.get("/limits")
async def list_limits(
    place: PlaceOf,
    page: PagesOf,
    user: NameQuery = None,
    group: NameQuery = None,
    queue: QueueQuery = None,
) -> declared.LimitPage | bytes:
    """Every limit of the queue file on users and groups, with those who use some of it now."""
    _one_of(user, group)

    def ask(moment: Moment) -> declared.LimitPage:
        rows = _limit_rows(moment.scheduler.cluster.partitions[moment.partition])
        kind, name = ("user", user) if user is not None else ("group", group)
        wanted = [r for r in rows if (name is None or (r.kind, r.name) == (kind, name)) and _is_of(queue, r.queue)]
        return page.of(declared.LimitPage, wanted, lambda row: (row.queue, int(row.kind != "user"), row.name))

    return await place.shown(ask)


def _limit_rows(partition: Partition) -> Iterator[declared.Limit]:
    trackers = partition.trackers
    in_use = [each for _, each in sorted(trackers.ceilings.items(), key=lambda item: item[0]) if each.applications]
    for path, own in trackers.limits.items():
        for kind, named in (("user", own.users), ("group", own.groups)):
            for name, limit in named.items():
                most, anybody = limit.max_resources, kind == "user" and name == ANYBODY
                using = [
                    declared.LimitUse(
                        name=each.name, used=with_cpu(pruned(each.allocated)), running=len(each.applications)
                    )
                    for each in in_use
                    if (each.kind, each.queue) == (kind, path)
                    and (each.name == name or (anybody and each.name not in named))
                ]
                yield declared.Limit(
                    queue=path,
                    kind=kind,
                    name=name,
                    limit=limit.limit,
                    max=with_cpu(most.as_dict()) if most is not None and most.is_set else None,
                    max_running=limit.max_applications or None,
                    using=using,
                )
