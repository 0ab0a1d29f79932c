"""Routes of /ws/v1 about applications, and what users and groups use.

Decides statuses and error texts as Apache YuniKorn's REST interface does. Never changes anything. A reader who is no
administrator finds own applications and own usage alone (`readers`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from fairlead.core.books.applications import Application
from fairlead.core.books.partition import Partition
from fairlead.core.model.lifecycle import State
from fairlead.core.model.names import GROUP_NAME, USER_NAME
from fairlead.insight.usage import usage_groups, usage_users
from fairlead.service.place import Moment, PlaceOf, ReaderOf
from fairlead.service.yunikorn import app_shapes, transport
from fairlead.service.yunikorn.describe import described
from fairlead.service.yunikorn.readers import Sees, partition_of, read, sees_all
from fairlead.service.yunikorn.routes import queue_of, queue_path
from fairlead.service.yunikorn.why import Why

router = APIRouter(prefix="/ws/v1/partition/{partition}", tags=["yunikorn"])
Plain = dict[str, Any]
Status = Annotated[str | None, Query(description="Only active ones in this state.")]

ACTIVE = (State.NEW, State.ACCEPTED, State.STARTING, State.RUNNING, State.COMPLETING, State.FAILING, State.RESUMING)


def _listed(found: Iterable[Application], part: Partition, may_see: Sees, status: str | None = None) -> list[Plain]:
    wanted = _status(status) if status else None
    kept = [a for a in found if may_see(a.id) and (wanted is None or a.state.value.lower() == wanted)]
    return app_shapes.applications(kept, part)


def _status(status: str) -> str:
    known = [state.value.lower() for state in ACTIVE]
    if status.lower() not in known:
        raise transport.wrong(f"Only following active statuses are allowed: {', '.join(known)}")
    return status.lower()


def _one(app: Application | None, part: Partition, may_see: Sees) -> Plain:
    if app is None or not may_see(app.id):
        raise transport.missing("Application not found")
    return app_shapes.application(app, part, Why(part))


# -- of a partition -----------------------------------------------------------------------------------------------


@router.get("/applications/{state}", response_class=Response, responses=described("Its applications."))
async def applications(partition: str, state: str, place: PlaceOf, who: ReaderOf, status: Status = None) -> Response:
    """The applications of a partition: active (all, or of one status), rejected, completed."""

    def ask(moment: Moment) -> list[Plain]:
        part = partition_of(moment.scheduler, partition)
        kept = {"active": part.applications, "rejected": part.rejected, "completed": part.ended}.get(state.lower())
        if kept is None:
            raise transport.wrong("Only following application states are allowed: active, rejected, completed")
        return _listed(kept.values(), part, moment.sees, status if kept is part.applications else None)

    return await read(place, who, ask)


@router.get("/application/{application}", response_class=Response, responses=described("An application.", False))
async def application(partition: str, application: str, place: PlaceOf, who: ReaderOf) -> Response:
    """One active application."""

    def ask(moment: Moment) -> Plain:
        part = partition_of(moment.scheduler, partition)
        return _one(part.applications.get(transport.whole(application)), part, moment.sees)

    return await read(place, who, ask)


# -- of a queue ---------------------------------------------------------------------------------------------------


@router.get("/queue/{queue}/applications", response_class=Response, responses=described("Its applications."))
async def queue_applications(partition: str, queue: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The applications of a leaf."""

    def ask(moment: Moment) -> list[Plain]:
        queue_path(queue)
        part = partition_of(moment.scheduler, partition)
        return _listed(queue_of(moment.scheduler, partition, queue).applications.values(), part, moment.sees)

    return await read(place, who, ask)


@router.get("/queue/{queue}/applications/{state}", response_class=Response, responses=described("Its applications."))
async def queue_applications_by_state(
    partition: str, queue: str, state: str, place: PlaceOf, who: ReaderOf, status: Status = None
) -> Response:
    """The applications of a leaf; the only state there is `active`, which `status` narrows."""

    def ask(moment: Moment) -> list[Plain]:
        part = partition_of(moment.scheduler, partition)
        found = queue_of(moment.scheduler, partition, queue)
        if state.lower() != "active":
            raise transport.wrong("Only following application states are allowed: active")
        return _listed(found.applications.values(), part, moment.sees, status)

    return await read(place, who, ask)


@router.get(
    "/queue/{queue}/application/{application}", response_class=Response, responses=described("An application.", False)
)
async def queue_application(partition: str, queue: str, application: str, place: PlaceOf, who: ReaderOf) -> Response:
    """One active application of a leaf."""

    def ask(moment: Moment) -> Plain:
        part = partition_of(moment.scheduler, partition)
        found = queue_of(moment.scheduler, partition, queue).applications.get(transport.whole(application))
        return _one(found, part, moment.sees)

    return await read(place, who, ask)


# -- usage --------------------------------------------------------------------------------------------------------


@router.get("/usage/users", response_class=Response, responses=described("What each user uses, queue by queue."))
async def users(partition: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The usage of all users; of himself, for a reader who is no administrator."""

    def ask(moment: Moment) -> list[Plain]:
        rows = usage_users(partition_of(moment.scheduler, partition))
        return [row for row in rows if who is None or sees_all(who) or row["userName"] == who.user]

    return await read(place, who, ask)


@router.get("/usage/user/{user}", response_class=Response, responses=described("What a user uses.", False))
async def user(partition: str, user: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The usage of one user."""

    def ask(moment: Moment) -> Plain:
        part = partition_of(moment.scheduler, partition)
        name = transport.unescaped(user)
        if USER_NAME.fullmatch(name) is None:
            raise transport.wrong("Invalid user name")
        for row in usage_users(part):
            if row["userName"] == name and (who is None or sees_all(who) or who.user == name):
                return row
        raise transport.missing("User not found")

    return await read(place, who, ask)


@router.get("/usage/groups", response_class=Response, responses=described("What each group uses, queue by queue."))
async def groups(partition: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The usage of all groups that have limits."""

    def ask(moment: Moment) -> list[Plain]:
        return [_without_others(row, moment.sees) for row in usage_groups(partition_of(moment.scheduler, partition))]

    return await read(place, who, ask)


@router.get("/usage/group/{group}", response_class=Response, responses=described("What a group uses.", False))
async def group(partition: str, group: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The usage of one group."""

    def ask(moment: Moment) -> Plain:
        part = partition_of(moment.scheduler, partition)
        name = transport.unescaped(group)
        if GROUP_NAME.fullmatch(name) is None:
            raise transport.wrong("Invalid group name")
        for row in usage_groups(part):
            if row["groupName"] == name:
                return _without_others(row, moment.sees)
        raise transport.missing("Group not found")

    return await read(place, who, ask)


def _without_others(row: Plain, may_see: Sees) -> Plain:
    """A group's usage without the names of applications that the reader may not see; its sums stay."""
    shown = {name: value for name, value in row.items() if name != "applications"}
    seen = [key for key in row.get("applications", ()) if may_see(key)]
    return (shown | {"applications": seen} if seen else shown) | {"queues": _level(row["queues"], may_see)}


def _level(level: Plain, may_see: Sees) -> Plain:
    shown = {name: value for name, value in level.items() if name not in ("runningApplications", "children")}
    running = [key for key in level.get("runningApplications", ()) if may_see(key)]
    below = [_level(child, may_see) for child in level.get("children", ())]
    return shown | ({"runningApplications": running} if running else {}) | ({"children": below} if below else {})
