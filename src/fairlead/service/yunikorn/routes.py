"""Routes of /ws/v1 about clusters, partitions, queues, nodes, applications, usage and the configuration.

Decides statuses and error texts as Apache YuniKorn's REST interface does. Never changes anything. Over TCP it wants a
token like everything else, unless the service was told to let everybody read; a reader who is no administrator finds
own applications and own usage alone (`reads`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from fairlead.config import Problem, load_text, problems_of
from fairlead.config.show import as_tree, as_yaml
from fairlead.core.books.applications import Application
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.lifecycle import State
from fairlead.core.model.names import GROUP_NAME, QUEUE_NAME_RULE, QUEUE_PATH, USER_NAME
from fairlead.core.model.specs import ClusterSpec
from fairlead.insight.usage import usage_groups, usage_users
from fairlead.service.place import Moment, PlaceOf, ReaderOf
from fairlead.service.yunikorn import app_shapes, shapes, transport
from fairlead.service.yunikorn.app_shapes import Why
from fairlead.service.yunikorn.reads import Sees, described, partition_of, reads, sees_all, text

router = APIRouter(prefix="/ws/v1", tags=["yunikorn"])
Plain = dict[str, Any]
Status = Annotated[str | None, Query(description="Only active ones in this state.")]
OF_PARTITION = "/partition/{partition}"
OF_QUEUE = "/partition/{partition}/queue/{queue}"

ACTIVE = (State.NEW, State.ACCEPTED, State.STARTING, State.RUNNING, State.COMPLETING, State.FAILING, State.RESUMING)


@reads(router, "/clusters", "One entry a partition.")
def clusters(moment: Moment, place: PlaceOf) -> list[Plain]:
    """The clusters."""
    build = {"buildVersion": place.version, "buildDate": "", "isPluginVersion": "false"}
    parts = moment.scheduler.cluster.partitions.values()
    return [shapes.cluster(part, place.started_at_ms, build) for part in parts]


@reads(router, "/partitions", "All partitions.")
def partitions(moment: Moment, place: PlaceOf) -> list[Plain]:
    """The partitions with their totals."""
    return [shapes.partition(part, place.started_at_ms) for part in moment.scheduler.cluster.partitions.values()]


@reads(router, f"{OF_PARTITION}/placementrules", "Its rules, in order.")
def placement_rules(moment: Moment, partition: str) -> list[Plain]:
    """The placement rules of a partition."""
    return shapes.rules(partition_of(moment, partition).spec.placement_rules)


# -- queues -------------------------------------------------------------------------------------------------------


def queue_path(given: str) -> str:
    """The path of a queue as it stands in a URL. Raises `Refusal` when it cannot be one."""
    path = transport.unescaped(given)
    if not QUEUE_PATH.fullmatch(path):
        raise transport.wrong(QUEUE_NAME_RULE)
    return path


def queue_of(moment: Moment, partition: str, given: str) -> Queue:
    """A queue. Raises `Refusal`: no such partition, no name, no such queue."""
    part = partition_of(moment, partition)
    queue = part.root.find(queue_path(given))
    if queue is None:
        raise transport.missing("Queue not found")
    return queue


@reads(router, f"{OF_PARTITION}/queues", "The whole tree.", many=False)
def queues(moment: Moment, partition: str) -> Plain:
    """The queue tree of a partition."""
    part = partition_of(moment, partition)
    return _without_names(shapes.queue(part, part.root, subtree=True, partition_name=part.name), moment.sees)


@reads(router, OF_QUEUE, "A queue.", many=False)
def queue(
    moment: Moment,
    partition: str,
    queue: str,
    subtree: Annotated[str | None, Query(description="If it is there, whatever its value: with all below.")] = None,
) -> Plain:
    """One queue; `?subtree` shows those below it too."""
    part, found = partition_of(moment, partition), queue_of(moment, partition, queue)
    return _without_names(shapes.queue(part, found, subtree=subtree is not None), moment.sees)


# -- nodes --------------------------------------------------------------------------------------------------------


def _node(node: Node, part: Partition, may_see: Sees) -> Plain:
    """A node without the applications that the reader may not see."""
    shown = app_shapes.node(node, part.name)
    running = [each for each in shown.pop("allocations", ()) if may_see(each["applicationId"])]
    reserved = [each.key for each in node.reservations if may_see(each.app.id)]
    shown.pop("reservations", None)
    return shown | ({"allocations": running} if running else {}) | ({"reservations": reserved} if reserved else {})


@reads(router, f"{OF_PARTITION}/nodes", "Its nodes.")
def nodes(moment: Moment, partition: str) -> list[Plain]:
    """The nodes of a partition with what runs on them."""
    part = partition_of(moment, partition)
    return [_node(node, part, moment.sees) for node in part.nodes.nodes.values()]


@reads(router, f"{OF_PARTITION}/node/{{node}}", "A node.", many=False)
def node(moment: Moment, partition: str, node: str) -> Plain:
    """One node with what runs on it."""
    part = partition_of(moment, partition)
    found = part.nodes.nodes.get(transport.whole(node))
    if found is None:
        raise transport.missing("Node not found")
    return _node(found, part, moment.sees)


# -- applications -------------------------------------------------------------------------------------------------


def _listed(found: Iterable[Application], part: Partition, may_see: Sees, status: str | None = None) -> list[Plain]:
    known = [state.value.lower() for state in ACTIVE]
    if status and status.lower() not in known:
        raise transport.wrong(f"Only following active statuses are allowed: {', '.join(known)}")
    kept = [a for a in found if may_see(a.id) and (not status or a.state.value.lower() == status.lower())]
    return app_shapes.applications(kept, part)


def _one(app: Application | None, part: Partition, may_see: Sees) -> Plain:
    if app is None or not may_see(app.id):
        raise transport.missing("Application not found")
    return app_shapes.application(app, part, Why(part))


@reads(router, f"{OF_PARTITION}/applications/{{state}}", "Its applications.")
def applications(moment: Moment, partition: str, state: str, status: Status = None) -> list[Plain]:
    """The applications of a partition: active (all, or of one status), rejected, completed."""
    part = partition_of(moment, partition)
    kept = {"active": part.applications, "rejected": part.rejected, "completed": part.ended}.get(state.lower())
    if kept is None:
        raise transport.wrong("Only following application states are allowed: active, rejected, completed")
    return _listed(kept.values(), part, moment.sees, status if kept is part.applications else None)


@reads(router, f"{OF_PARTITION}/application/{{application}}", "An application.", many=False)
def application(moment: Moment, partition: str, application: str) -> Plain:
    """One active application."""
    part = partition_of(moment, partition)
    return _one(part.applications.get(transport.whole(application)), part, moment.sees)


@reads(router, f"{OF_QUEUE}/applications", "Its applications.")
def queue_applications(moment: Moment, partition: str, queue: str) -> list[Plain]:
    """The applications of a leaf."""
    queue_path(queue)
    found = queue_of(moment, partition, queue)
    return _listed(found.applications.values(), partition_of(moment, partition), moment.sees)


@reads(router, f"{OF_QUEUE}/applications/{{state}}", "Its applications.")
def queue_applications_by_state(
    moment: Moment, partition: str, queue: str, state: str, status: Status = None
) -> list[Plain]:
    """The applications of a leaf; the only state there is `active`, which `status` narrows."""
    found = queue_of(moment, partition, queue)
    if state.lower() != "active":
        raise transport.wrong("Only following application states are allowed: active")
    return _listed(found.applications.values(), partition_of(moment, partition), moment.sees, status)


@reads(router, f"{OF_QUEUE}/application/{{application}}", "An application.", many=False)
def queue_application(moment: Moment, partition: str, queue: str, application: str) -> Plain:
    """One active application of a leaf."""
    found = queue_of(moment, partition, queue).applications.get(transport.whole(application))
    return _one(found, partition_of(moment, partition), moment.sees)


# -- usage --------------------------------------------------------------------------------------------------------


def _users(moment: Moment, partition: str, who: ReaderOf) -> list[Plain]:
    rows = usage_users(partition_of(moment, partition))
    return [row for row in rows if who is None or sees_all(who) or row["userName"] == who.user]


@reads(router, f"{OF_PARTITION}/usage/users", "What each user uses, queue by queue.")
def users(moment: Moment, partition: str, who: ReaderOf) -> list[Plain]:
    """The usage of all users; of himself, for a reader who is no administrator."""
    return _users(moment, partition, who)


@reads(router, f"{OF_PARTITION}/usage/user/{{user}}", "What a user uses.", many=False)
def user(moment: Moment, partition: str, user: str, who: ReaderOf) -> Plain:
    """The usage of one user."""
    rows, name = _users(moment, partition, who), transport.unescaped(user)
    if USER_NAME.fullmatch(name) is None:
        raise transport.wrong("Invalid user name")
    for row in rows:
        if row["userName"] == name:
            return row
    raise transport.missing("User not found")


@reads(router, f"{OF_PARTITION}/usage/groups", "What each group uses, queue by queue.")
def groups(moment: Moment, partition: str) -> list[Plain]:
    """The usage of all groups that have limits."""
    return [_without_names(row, moment.sees) for row in usage_groups(partition_of(moment, partition))]


@reads(router, f"{OF_PARTITION}/usage/group/{{group}}", "What a group uses.", many=False)
def group(moment: Moment, partition: str, group: str) -> Plain:
    """The usage of one group."""
    part, name = partition_of(moment, partition), transport.unescaped(group)
    if GROUP_NAME.fullmatch(name) is None:
        raise transport.wrong("Invalid group name")
    for row in usage_groups(part):
        if row["groupName"] == name:
            return _without_names(row, moment.sees)
    raise transport.missing("Group not found")


NAMES = frozenset({"applications", "runningApplications", "allocatingAcceptedApps"})
"""What a group's usage or a queue says of single applications."""


def _without_names(row: Plain, may_see: Sees) -> Plain:
    """It without the names of applications that the reader may not see; its sums stay."""
    kept: Plain = {}
    for name, value in row.items():
        if name in NAMES:
            seen: Any = [key for key in value if may_see(key)]
        elif name == "children":
            seen = [_without_names(child, may_see) for child in value]
        else:
            seen = _without_names(value, may_see) if name == "queues" else value
        if seen or name not in NAMES:
            kept[name] = seen
    return kept


# -- configuration ------------------------------------------------------------------------------------------------


def spec_in_force(given: tuple[str, ClusterSpec]) -> ClusterSpec:
    """The declared configuration with the places of its text, as far as there is a text."""
    written, declared = given
    return load_text(written, keep_broken_rules=True) if written else declared


def declared(moment: Moment) -> tuple[str, ClusterSpec]:
    """Text and specs of what is in force."""
    cluster = moment.scheduler.cluster
    parts = tuple(part.spec for part in cluster.partitions.values())
    return cluster.text, ClusterSpec(partitions=parts, checksum=cluster.checksum)


@router.get(
    "/config",
    response_class=Response,
    responses=text(
        "The queue file in force: YAML, or JSON when exactly that is accepted.", transport.YAML, "application/json"
    ),
)
async def config(request: Request, place: PlaceOf, who: ReaderOf) -> Response:
    """The configuration as it was validated: with the root queue, limits of the partition at the root."""
    del who
    given = await place.read(declared)
    spec = await run_in_threadpool(spec_in_force, given)
    if request.headers.get("accept") == "application/json":
        return transport.answer(as_tree(spec))
    return Response(as_yaml(spec), media_type=transport.YAML)


@router.post(
    "/validate-conf",
    response_class=Response,
    responses=described("Whether it could be used, and if not, why.", False),
    openapi_extra={"requestBody": {"content": {"application/x-yaml": {"schema": {"type": "string"}}}}},
)
async def validate(request: Request, who: ReaderOf) -> Response:
    """Whether a queue file could be used here; the body is its text."""
    del who
    body = await request.body()
    reason = await run_in_threadpool(why_refused, body)
    return transport.answer({"allowed": not reason} | ({"reason": reason} if reason else {}))


def why_refused(body: bytes) -> str:
    """The first thing that is wrong with a queue file and how many more there are, or nothing."""
    try:
        written = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return f"no valid UTF-8 at byte {error.start}"
    found = [problem for problem in problems_of(written) if problem.severity == "error"]
    return _sentence(found[0], len(found) - 1) if found else ""


def _sentence(problem: Problem, more: int) -> str:
    path = f" {problem.path}:" if problem.path else ""
    return f"line {problem.line}:{path} {problem.message}" + (f" (and {more} more)" if more else "")


# -- history ------------------------------------------------------------------------------------------------------


@router.get("/history/apps", response_class=Response, responses=described("One sample a minute, oldest first."))
async def history_apps(place: PlaceOf, who: ReaderOf) -> Response:
    """How many applications were running."""
    del who
    return transport.answer(place.history_samples.applications())


@router.get("/history/containers", response_class=Response, responses=described("One sample a minute, oldest first."))
async def history_containers(place: PlaceOf, who: ReaderOf) -> Response:
    """How many allocations there were."""
    del who
    return transport.answer(place.history_samples.containers())
