"""A cluster as a place: its pods are the jobs; and the routes that only it has: probes, refusals of what kubectl does.

Decides nothing. Everything happens in the event loop in which the controller runs, so that between two of its turns the
books stand still. Invariant: routes only read; whatever takes long is answered in a process of its own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import unquote

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Event
from fairlead.insight.forecast import Expected
from fairlead.insight.scorecard import Scorecard
from fairlead.journal.format import EVENT, SCHEDULE
from fairlead.kubernetes.control_loop import ControlLoop, Told
from fairlead.kubernetes.controller import Controller
from fairlead.kubernetes.informer import Informer
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.runtime.books import Entry
from fairlead.runtime.measures import Measures
from fairlead.scheduler import Scheduler
from fairlead.service import history_events, views
from fairlead.service.history_events import HistoryEvent, frame, live
from fairlead.service.http import pages
from fairlead.service.http.app import get_health
from fairlead.service.http.shaped import ShapedRoute, content, shown
from fairlead.service.kubernetes.gate import ClusterGate
from fairlead.service.kubernetes.history_pods import PodHistory
from fairlead.service.kubernetes.kube_figures import kube_figures
from fairlead.service.kubernetes.pods import ANYBODY, ClusterMoment, our_pods, state_of
from fairlead.service.place import Place, now_ms, place_of
from fairlead.service.yunikorn.history import HistoryRecords
from fairlead.wire import cluster as wire
from fairlead.wire.cluster import Health
from fairlead.wire.jobs import JobDetails

T = TypeVar("T")
log = logging.getLogger("fairlead.service")
LARGE = 1_000
"""With more nodes and pods together than this, views of everything are made on a copy."""
STUCK_S = 60.0
"""A scheduler that has not had a turn for so long does not live any more."""
GAP = "a scheduler on a cluster keeps no events; /ws/v1/events/batch has the newest records"


def _entry(at_ms: int, event: Event | None, decisions: Sequence[Decision]) -> Entry:
    """As a journal would have it; None: a run of scheduling."""
    return Entry(0, at_ms, SCHEDULE, {}, decisions) if event is None else Entry(0, at_ms, EVENT, event, decisions)


@dataclass(slots=True, kw_only=True)
class ClusterPlace(Place):
    """One controller, as far as routes look at it."""

    has_pods: ClassVar[bool] = True
    controller: Controller
    gate: ClusterGate = field(default_factory=ClusterGate)
    pod_history: PodHistory = field(default_factory=lambda: PodHistory(now_ms()))
    _records: HistoryRecords | None = None

    def __post_init__(self) -> None:
        """Note what happens from the beginning of each control loop on."""
        self.controller.when_rebuilt = self._begin

    def catch_up(self, early: Sequence[Told]) -> None:
        """A control loop may be at work already, or about to be: what it told so far (`early`) counts, too."""
        control_loop = self.controller.control_loop
        if control_loop is None:
            return
        if not control_loop.ready:
            control_loop.when_rebuilt = self._begin
            return
        # What was there before noted it until now.
        control_loop.listeners.clear()
        note = self._begin(control_loop)
        for told in early:
            note(told)

    def _begin(self, control_loop: ControlLoop) -> Callable[[Told], None]:
        driver = control_loop.driver
        records = self._records = HistoryRecords(lambda: driver.scheduler)
        self.pod_history.begin_with(driver)

        def note(told: Told) -> None:
            records.offer([_entry(told.at_ms, *each) for each in told.entries])
            self.pod_history.note(told, driver)
            self.pages.changes.advance(self.pod_history.seq)

        control_loop.listeners.append(note)
        return note

    # -- the protocol -------------------------------------------------------------------------------------------------

    def routers(self) -> list[APIRouter]:
        """Probes, the way to the pages, and refusals of what changes something."""
        return ROUTERS

    def caller(self, request: Request) -> Caller:
        """By a token of the cluster; anybody where everybody may read."""
        try:
            return self.gate.caller(request.scope)
        except Refusal:
            if self.open_reads:
                return ANYBODY
            raise

    async def read(self, ask: Callable[[Any], T], caller: Caller | None = None) -> T:
        """In the event loop, so it must be quick."""
        return ask(ClusterMoment(self.control_loop.driver, caller or ANYBODY, self.pod_history.runtimes))

    @property
    def history_records(self) -> HistoryRecords:
        """Of this control loop."""
        if self._records is None:
            raise Refusal("unavailable", self.standing())
        return self._records

    def problems(self) -> list[str]:
        """As sentences."""
        queue_file = self.controller.queue_file
        found = queue_file.problems() if queue_file is not None else []
        loop = self.controller.control_loop
        if loop is not None:
            found.extend(loop.problems())
        if (idle := self._idle_s()) > STUCK_S:
            found.append(f"the scheduler has not had a turn for {idle:.0f} s")
        return found

    def failing(self) -> bool:
        """The scheduler has no turns any more."""
        return self._idle_s() > STUCK_S

    def _idle_s(self) -> float:
        control_loop = self.controller.control_loop
        return control_loop.idle_s() if control_loop is not None else 0.0

    def faults(self) -> int:
        """A fault ends the process."""
        return 0

    async def info(self, caller: Caller) -> wire.Service:
        """With how its start went."""
        controller = self.controller
        cluster = wire.Cluster(
            scheduler_name=controller.options.scheduler_name,
            identity=controller.identity,
            server=controller.access.server,
            leads=controller.election is None or controller.election.leads,
            start_ms=msgspec.convert(self.control_loop.timings, wire.Start, from_attributes=True),
            pods=sum(1 for _ in our_pods(self.informer)),
            nodes=len(self.informer.around.nodes),
        )
        return wire.Service(
            version=self.version,
            user=caller.user,
            is_admin=False,
            started_at_ms=self.started_at_ms,
            partition_total=views.partition_total(self.scheduler),
            problems=self.problems(),
            cluster=cluster,
        )

    async def details(self, key: str, caller: Caller) -> JobDetails:
        """Also of a pod that ended, as long as no other has its name."""
        namespace, _, name = unquote(key).rpartition("/")
        namespace = namespace or "default"
        ended = self.pod_history.ended.get(f"{namespace}/{name}")
        if ended is not None and self.informer.pod_store.named(namespace, name) is None:
            return ended
        return await self.read(lambda moment: moment.details(key), caller)

    async def events(self, caller: Caller, after: tuple[int, int] | None) -> AsyncGenerator[bytes, None]:
        """From now on; what happened before is not kept here."""
        del caller
        self.control_loop  # noqa: B018 - it is refused while there is none
        book = self.pod_history
        line = book.readers.join(history_events.BEHIND)
        try:
            yield b"retry: 1000\n\n"
            if after is not None:
                yield frame(HistoryEvent(book.seq, 10**9, now_ms(), "gap", "", {"why": GAP}))
                yield history_events.notice("caught-up", (book.seq, 10**9), "what follows happens from now on")
            async for piece in live(line, lambda _event, _owner: True):
                yield piece
        finally:
            book.readers.leave(line)

    def card(self) -> Scorecard:
        """Since this process began."""
        return self.pod_history.card

    def expect(self, made_ms: int, plain: Expected) -> Expected:
        """What somebody was told is a promise."""
        return self.pod_history.card.promise(made_ms, plain)

    def figures(self, moment: Any) -> tuple[list[Metric], Measures]:
        """With those of the control loop."""
        del moment
        return list(self.own_figures()), self.control_loop.measures.copy()

    def own_figures(self) -> Iterator[Metric]:
        """Of a process that stands by only that it does."""
        controller, control_loop = self.controller, self.controller.control_loop
        leads = controller.election is None or controller.election.leads
        yield GaugeMetricFamily("fairlead_healthy", "1 if all is well.", value=int(not self.problems()))
        yield GaugeMetricFamily("fairlead_kubernetes_leads", "1 if this process schedules.", value=int(leads))
        if control_loop is None or not control_loop.ready:
            return
        states = GaugeMetricFamily("fairlead_kubernetes_pods", "Pods of this scheduler by state.", labels=("state",))
        counts = Counter(state_of(known) for known in our_pods(control_loop.driver.informer))
        for state in ("waiting", "running", "stopping"):
            states.add_metric((state,), counts[state])
        yield states
        waits = len(control_loop.driver.scheduler.cluster.partitions[self.informer.partition].applications)
        yield GaugeMetricFamily("fairlead_kubernetes_applications", "Applications in the books.", value=waits)
        for name, text, value in (
            ("bound", "Pods bound.", control_loop.bound),
            ("refused", "Placements that were refused.", control_loop.refused),
            ("turns", "Turns of the scheduler.", control_loop.turns),
        ):
            yield CounterMetricFamily(f"fairlead_kubernetes_{name}", text, value=value)
        start = GaugeMetricFamily(
            "fairlead_kubernetes_start_seconds", "How long the parts of the start took.", labels=("part",)
        )
        timings = control_loop.timings
        parts = {f"list {kind}": took for kind, took in timings.listed.items()}
        parts |= {"rebuilt": timings.rebuilt, "first decision": timings.first_decided}
        for part, took_ms in (parts | {"first bind": timings.first_bound}).items():
            start.add_metric((part,), took_ms / 1000)
        yield start
        yield from kube_figures(control_loop)

    def before_books(self) -> list[Metric] | None:
        """Of a process that stands by, or reads the cluster."""
        control_loop = self.controller.control_loop
        return None if control_loop is not None and control_loop.ready else list(self.own_figures())

    def is_large(self) -> bool:
        """Whether going over everything would keep the controller from going on for a while."""
        informer = self.informer
        return len(informer.around.nodes) + len(informer.pod_store.by_uid) > LARGE

    def encode(self, content: Any) -> bytes:
        """With pods by namespace and name instead of by their identity."""
        control_loop, written = self.controller.control_loop, msgspec.json.encode(content)
        if control_loop is None:
            return written
        return control_loop.driver.informer.pod_store.with_names(written.decode()).encode()

    def end_streams(self) -> None:
        """Before the end, or nobody would ever be done."""
        self.streams.close()
        self.pages.changes.close()
        self.pod_history.readers.close()

    # -- what only a cluster has --------------------------------------------------------------------------------------

    @property
    def control_loop(self) -> ControlLoop:
        """The control loop under way. Raises `Refusal` when there is none."""
        control_loop = self.controller.control_loop
        if control_loop is None or not control_loop.ready:
            raise Refusal("unavailable", self.standing())
        return control_loop

    def standing(self) -> str:
        """Why there is nothing to see here yet, as a sentence."""
        election, control_loop = self.controller.election, self.controller.control_loop
        if control_loop is None and election is not None:
            whom = f"{election.leader} leads; ask there" if election.leader else "nobody leads at the moment; try again"
            return f"this process stands by for the lease: {whom}"
        problem = next(control_loop.problems(), "") if control_loop is not None else ""
        return f"the cluster is being read; {problem or 'try again in some seconds'}"

    @property
    def informer(self) -> Informer:
        """What is known of the cluster. Raises `Refusal`."""
        return self.control_loop.driver.informer

    @property
    def scheduler(self) -> Scheduler:
        """To look at. Raises `Refusal`."""
        return self.control_loop.driver.scheduler


# -- routes that only a cluster has -------------------------------------------------------------------------------


probes = APIRouter(tags=["service"], route_class=ShapedRoute)
last = APIRouter(prefix="/api/v1")
"""What is asked of a machine and cannot be asked of a cluster."""
NOT_HERE = "a cluster is changed through its API server, not here: kubectl delete, cordon, patch or apply does it"
READ_ELSEWHERE = {
    "budgets": "`kubectl get poddisruptionbudgets -A` shows the disruption budgets of a cluster",
    "gpus": "`fairlead nodes` shows what nodes have and what is taken; resource claims say who has which device",
    "occupants": "`fairlead nodes` and `fairlead ls` show who is on the nodes of a cluster",
    "priority-classes": "`kubectl get priorityclasses` shows the priority classes of a cluster",
    "quotas": "`kubectl get resourcequotas -A` shows the quotas by which a cluster admits pods",
    "tokens": "a cluster has its own tokens: `kubectl create token ACCOUNT` makes one",
    "unknown-runs": "what runs on a cluster, its API server knows: `kubectl get pods -A` shows it",
    "windows": "no node of a cluster is kept free for a time: `kubectl cordon NODE` does it at once",
}
"""What a machine answers by itself, and where it is on a cluster."""
ClusterOf = Annotated[ClusterPlace, Depends(place_of)]

probes.get("/livez", operation_id="getLiveness")(get_health)


@probes.get("/readyz", responses={503: content(Health, "Not everything of the cluster is known yet.")})
async def get_readiness(place: ClusterOf) -> Health | Response:
    """Whether everything of the cluster is known, or another process leads and this one stands by."""
    ready = place.controller.ready
    return shown(Health(status="ok" if ready else "starting", problems=place.problems()), 200 if ready else 503)


@last.get("/jobs/{key}/logs", include_in_schema=False)
async def get_job_logs(key: str) -> Response:
    """What a pod wrote."""
    namespace, _, name = unquote(key).rpartition("/")
    where = "" if namespace in ("", "default") else f" -n {namespace}"
    raise Refusal("not-found", f"a cluster keeps what its pods write: `kubectl logs {name}{where}` shows it")


@last.get("/config", include_in_schema=False)
@last.get("/config/{what}", include_in_schema=False)
async def read_configuration_elsewhere(place: ClusterOf, what: str = "") -> Response:
    """The queue file, which others keep."""
    del what
    queue_file = place.controller.queue_file
    source = queue_file.source if queue_file is not None else "a queue file"
    objects = "and from objects (`kubectl get queues.fairlead.io`)"
    raise Refusal(
        "not-found", f"the queues here come from {source}, {objects}; `fairlead queues` shows what is in force"
    )


@last.get("/{what}", include_in_schema=False)
async def read_elsewhere(what: str) -> Response:
    """Whatever else is asked of a machine alone."""
    nothing = f"nothing can be read at /api/v1/{what}; /api/v1/openapi.json lists what there is"
    raise Refusal("not-found", READ_ELSEWHERE.get(what, nothing))


@last.api_route("/{what:path}", methods=["POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
async def not_here(what: str) -> Response:
    """Whatever would change something."""
    del what
    raise Refusal("method-not-allowed", NOT_HERE)


ROUTERS = [probes, pages.router, pages.front, last]
