"""Figures for Prometheus: the service's own, and the same moment under the names of Apache YuniKorn.

Decides names and labels of its own. Never labels by work or user, so that the number of series is bounded by queues,
nodes and resources. Invariant: one scrape is one moment of the books, in both halves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from fairlead.core.books import node as books
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.runtime.measures import Measures
from fairlead.service import views
from fairlead.service.place import Moment, Place
from fairlead.service.yunikorn.figures import CONTAINERS, families, histogram
from fairlead.wire.cluster import Queue

AMOUNTS = ("allocated", "idle", "pending", "max", "guaranteed")


class _Moment(Collector):
    """What one scrape shows."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def of_machine(jobs: Jobs, measures: Measures, journal_seq: int, readers: int, *, healthy: bool) -> list[Metric]:
    """What only a machine has: its jobs, its journal, its readers."""
    return [
        _jobs(Counter(job.state.value for job in jobs)),
        *_measures(measures),
        GaugeMetricFamily("fairlead_journal_last_seq", "Newest durable record.", value=journal_seq),
        GaugeMetricFamily("fairlead_event_readers", "Open event streams.", value=readers),
        GaugeMetricFamily("fairlead_healthy", "1 if records can be written and scheduling runs.", value=int(healthy)),
    ]


def of_scheduling(measures: Measures) -> list[Metric]:
    """What every scheduler does."""
    return [
        CounterMetricFamily("fairlead_allocations", "Asks that got a node.", value=measures.allocations),
        CounterMetricFamily("fairlead_evictions", "Orders of the scheduler to stop work.", value=measures.evictions),
        histogram("fairlead_scheduling_seconds", "A run of scheduling.", measures.scheduling),
    ]


def exposed(families: Iterable[Metric]) -> bytes:
    """The text of these families."""
    registry = CollectorRegistry()
    registry.register(_Moment(families))
    # The library ends the name of each counter with `_total` where it says its type.
    return bytes(generate_latest(registry)).replace(f"{CONTAINERS}_total ".encode(), f"{CONTAINERS} ".encode())


def _queues(trees: list[Queue]) -> list[Metric]:
    one = ("partition", "queue")
    amount = GaugeMetricFamily(
        "fairlead_queue_resource",
        "cpu in cores, memory in bytes; idle: what its idle jobs use beside allocated.",
        labels=(*one, "kind", "resource"),
    )
    running = GaugeMetricFamily("fairlead_queue_running_applications", "Running applications.", labels=one)
    waiting = GaugeMetricFamily("fairlead_queue_waiting", "Jobs waiting in or below it.", labels=one)
    priority = GaugeMetricFamily("fairlead_queue_priority", "Highest priority waiting below; absent: none.", labels=one)
    left = list(trees)
    while left:
        queue = left.pop(0)
        left += queue.children
        labels = (queue.partition, queue.path)
        for kind in AMOUNTS:
            for name, value in (getattr(queue, kind) or {}).items():
                amount.add_metric((*labels, kind, name), value)
        running.add_metric(labels, queue.running_applications)
        waiting.add_metric(labels, queue.waiting)
        if queue.priority is not None:
            priority.add_metric(labels, queue.priority)
    return [amount, running, waiting, priority]


def _nodes(nodes: list[books.Node]) -> list[Metric]:
    amount = GaugeMetricFamily(
        "fairlead_node_resource", "cpu in cores, memory in bytes.", labels=("node", "kind", "resource")
    )
    is_open = GaugeMetricFamily("fairlead_node_schedulable", "1 if it takes new work.", labels=("node",))
    for node in map(views.node_view, nodes):
        for kind in ("capacity", "allocated", "free"):
            for name, value in getattr(node, kind).items():
                amount.add_metric((node.id, kind, name), value)
        is_open.add_metric((node.id,), int(node.schedulable))
    return [amount, is_open]


def _jobs(counts: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily("fairlead_jobs", "Jobs in the book by state.", labels=("state",))
    for state in State:
        family.add_metric((state.value,), counts.get(state.value, 0))
    return family


def _measures(measures: Measures) -> list[Metric]:
    counters = (
        ("fairlead_journal_records", "Records written.", measures.records),
        ("fairlead_journal_failures", "Commits that failed.", measures.journal_failures),
        ("fairlead_requests_refused", "Requests that the books refused.", measures.refused),
        ("fairlead_faults", "Faults in the program that were isolated.", measures.faults),
    )
    latencies = (
        ("fairlead_turn_seconds", "A turn of the writer that wrote something.", measures.turns),
        ("fairlead_commit_seconds", "A durable commit of the journal.", measures.commits),
        ("fairlead_snapshot_seconds", "How long the books stood still for a snapshot.", measures.snapshots),
    )
    found: list[Metric] = [CounterMetricFamily(name, text, value=value) for name, text, value in counters]
    found += [histogram(name, text, latency) for name, text, latency in latencies]
    return found


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def scrape(place: Place) -> bytes:
    """The text of one scrape. Raises `Refusal` when the service is stopping."""
    if (few := place.before_books()) is not None:
        return exposed(few)

    def ask(moment: Moment) -> bytes:
        own, measures = place.figures(moment)
        books = [*_queues(views.queue_views(moment.scheduler)), *_nodes(views.nodes(moment.scheduler))]
        theirs = families(moment.scheduler, place.history_records, measures)
        return exposed([*books, *of_scheduling(measures), *own, *theirs])

    return await place.shown(ask, encode=bytes)
