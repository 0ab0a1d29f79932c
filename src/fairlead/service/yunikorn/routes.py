"""Routes of /ws/v1 about clusters, partitions, queues, nodes and the configuration.

Decides statuses and error texts as Apache YuniKorn's REST interface does. Never changes anything. Over TCP it wants a
token like everything else, unless the service was told to let everybody read.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError, Problem, check_text, load_text
from fairlead.config.show import as_tree, as_yaml
from fairlead.core.books.queues import Queue
from fairlead.core.model.names import QUEUE_NAME_RULE, is_queue_name
from fairlead.core.model.specs import ClusterSpec
from fairlead.scheduler import Scheduler
from fairlead.service.place import Moment, Place, PlaceOf, ReaderOf
from fairlead.service.queue_texts import usable
from fairlead.service.yunikorn import node_shapes, shapes, transport
from fairlead.service.yunikorn.describe import described, text
from fairlead.service.yunikorn.readers import Sees, partition_of, read

router = APIRouter(prefix="/ws/v1", tags=["yunikorn"])


def build_of(place: Place) -> dict[str, str]:
    """What this program is."""
    return {"buildVersion": place.version, "buildDate": "", "isPluginVersion": "false"}


def cluster_list(place: Place, scheduler: Scheduler) -> list[dict[str, Any]]:
    """One entry a partition."""
    parts = scheduler.cluster.partitions.values()
    return [shapes.cluster(part, place.started_at_ms, build_of(place)) for part in parts]


def partition_list(place: Place, scheduler: Scheduler) -> list[dict[str, Any]]:
    """All partitions."""
    return [shapes.partition(part, place.started_at_ms) for part in scheduler.cluster.partitions.values()]


@router.get("/clusters", response_class=Response, responses=described("One entry a partition."))
async def clusters(place: PlaceOf, who: ReaderOf) -> Response:
    """The clusters."""
    return await read(place, who, lambda moment: cluster_list(place, moment.scheduler))


@router.get("/partitions", response_class=Response, responses=described("All partitions."))
async def partitions(place: PlaceOf, who: ReaderOf) -> Response:
    """The partitions with their totals."""
    return await read(place, who, lambda moment: partition_list(place, moment.scheduler))


@router.get(
    "/partition/{partition}/placementrules", response_class=Response, responses=described("Its rules, in order.")
)
async def placement_rules(partition: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The placement rules of a partition."""
    return await read(
        place, who, lambda moment: shapes.rules(partition_of(moment.scheduler, partition).spec.placement_rules)
    )


# -- queues -------------------------------------------------------------------------------------------------------


def queue_path(given: str) -> str:
    """The path of a queue as it stands in a URL. Raises `Refusal` when it cannot be one."""
    path = transport.unescaped(given)
    if not all(is_queue_name(part) for part in path.split(".")):
        raise transport.wrong(QUEUE_NAME_RULE)
    return path


def queue_of(scheduler: Scheduler, partition: str, given: str) -> Queue:
    """A queue. Raises `Refusal`: no such partition, no name, no such queue."""
    part = partition_of(scheduler, partition)
    queue = part.root.find(queue_path(given))
    if queue is None:
        raise transport.missing("Queue not found")
    return queue


@router.get("/partition/{partition}/queues", response_class=Response, responses=described("The whole tree.", False))
async def queues(partition: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The queue tree of a partition."""

    def ask(moment: Moment) -> dict[str, Any]:
        part = partition_of(moment.scheduler, partition)
        return shapes.queue(part.root, subtree=True, partition_name=part.name)

    return await read(place, who, ask)


@router.get("/partition/{partition}/queue/{queue}", response_class=Response, responses=described("A queue.", False))
async def queue(
    partition: str,
    queue: str,
    place: PlaceOf,
    who: ReaderOf,
    subtree: Annotated[str | None, Query(description="If it is there, whatever its value: with all below.")] = None,
) -> Response:
    """One queue; `?subtree` shows those below it too."""

    def ask(moment: Moment) -> dict[str, Any]:
        return shapes.queue(queue_of(moment.scheduler, partition, queue), subtree=subtree is not None)

    return await read(place, who, ask)


# -- nodes --------------------------------------------------------------------------------------------------------


def without_others(node: dict[str, Any], may_see: Sees) -> dict[str, Any]:
    """A node without the applications that the reader may not see."""
    running = [each for each in node.pop("allocations", ()) if may_see(each["applicationId"])]
    reserved = [key for key in node.pop("reservations", ()) if may_see(key)]
    return node | ({"allocations": running} if running else {}) | ({"reservations": reserved} if reserved else {})


@router.get("/partition/{partition}/nodes", response_class=Response, responses=described("Its nodes."))
async def nodes(partition: str, place: PlaceOf, who: ReaderOf) -> Response:
    """The nodes of a partition with what runs on them."""

    def ask(moment: Moment) -> list[dict[str, Any]]:
        part = partition_of(moment.scheduler, partition)
        shown = [node_shapes.node(node, part.name) for node in part.nodes.nodes.values()]
        return [without_others(node, moment.sees) for node in shown]

    return await read(place, who, ask)


@router.get("/partition/{partition}/node/{node}", response_class=Response, responses=described("A node.", False))
async def node(partition: str, node: str, place: PlaceOf, who: ReaderOf) -> Response:
    """One node with what runs on it."""

    def ask(moment: Moment) -> dict[str, Any]:
        part = partition_of(moment.scheduler, partition)
        found = part.nodes.nodes.get(transport.whole(node))
        if found is None:
            raise transport.missing("Node not found")
        return without_others(node_shapes.node(found, part.name), moment.sees)

    return await read(place, who, ask)


# -- configuration ------------------------------------------------------------------------------------------------


def spec_in_force(given: tuple[str, ClusterSpec]) -> ClusterSpec:
    """The declared configuration with the places of its text, as far as there is a text."""
    written, declared = given
    return load_text(written, keep_broken_rules=True) if written else declared


def declared(scheduler: Scheduler) -> tuple[str, ClusterSpec]:
    """Text and specs of what is in force."""
    cluster = scheduler.cluster
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
    given = await place.read(lambda moment: declared(moment.scheduler))
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
    found = [problem for problem in check_text(written) if problem.severity == "error"]
    if not found:
        try:
            usable(written)
        except ConfigurationError as error:
            found = list(error.errors)
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
