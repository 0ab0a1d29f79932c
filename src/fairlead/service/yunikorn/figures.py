"""Figures for Prometheus under the names of Apache YuniKorn.

Decides names, labels and types as YuniKorn's page of metrics has them. Never counts anything itself. Invariant: one
scrape is one moment of the books; a queue that is in several partitions is shown once, with the sums.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import HistogramMetricFamily, Metric

from fairlead.insight.line import pending
from fairlead.runtime.measures import BOUNDS, Latency, Measures
from fairlead.service.yunikorn.app_shapes import bucket_of

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.scheduler import Scheduler
    from fairlead.service.yunikorn.history import HistoryRecords

Samples = Iterable[tuple[dict[str, str], float]]
SHARES = ("[0,10%]", *(f"({low}%,{low + 10}%]" for low in range(10, 100, 10)))
STATES = ("new", "accepted", "running", "resuming", "failing", "completing", "failed", "completed", "rejected")
AMOUNTS = ("guaranteed", "max", "allocated", "pending", "preempting")
CONTAINERS = "_queue_container"
"""How the name of a queue's counter of allocations ends: YuniKorn's counters do not all end in `_total`."""


def formatted(name: str) -> str:
    """A name as metrics may have it: every other character becomes `_`, and a digit does not come first."""
    clean = re.sub(r"[^a-zA-Z0-9_:]", "_", name)
    return f"_{clean}" if clean[:1].isdigit() else clean


def families(scheduler: Scheduler, history: HistoryRecords, measures: Measures) -> Iterator[Metric]:
    """What the books, the records and the measures say; called between two turns."""
    parts = list(scheduler.cluster.partitions.values())
    yield from _of_scheduler(parts, history.counts, measures)
    yield from _of_nodes(parts)
    yield from _of_queues(parts, history.by_queue)
    told, kept = history.ring.told, history.ring.kept
    events = {"created": told, "channeled": told, "not_channeled": 0, "processed": told}
    for name, value in (events | {"stored": told, "not_stored": 0, "collected": kept}).items():
        yield _family(f"yunikorn_event_total_{name}", "gauge", "Event records.", [({}, value)])


def _of_scheduler(parts: list[Partition], counts: Mapping[str, int], measures: Measures) -> Iterator[Metric]:
    attempts = {
        "allocated": sum(part.allocation_count for part in parts),
        "rejected": counts["ask-rejected"],
        "error": measures.faults,
        "released": sum(part.released_count for part in parts),
    }
    name, text = "container_allocation_attempt_total", "Attempts to allocate, by what became of them."
    yield _family(f"yunikorn_scheduler_{name}", "counter", text, _by("state", attempts))
    results = {"new": counts["submitted"], "accepted": counts["accepted"], "rejected": counts["rejected"]}
    name, text = "application_submission_total", "Applications submitted since the service started."
    yield _family(f"yunikorn_scheduler_{name}", "counter", text, _by("result", results))
    apps = (a for p in parts for kept in (p.applications, p.ended, p.rejected) for a in kept.values())
    states = Counter(app.state.value.lower() for app in apps)
    shown = {s: states[s] for s in ("running", "resuming", "failing", "completing", "completed", "failed")}
    yield _family("yunikorn_scheduler_application_total", "gauge", "Applications by state.", _by("state", shown))
    for name in ("scheduling_latency", "scheduling_cycle"):
        text = "A run of scheduling, in seconds (whatever the name says)."
        yield histogram(f"yunikorn_scheduler_{name}_milliseconds", text, measures.scheduling)


def _of_nodes(parts: list[Partition]) -> Iterator[Metric]:
    nodes = [node for part in parts for node in part.nodes.nodes.values()]
    found = Counter("active" if node.takes_new else "draining" for node in nodes)
    states = {state: found[state] for state in ("active", "failed", "draining", "decommissioned")}
    yield _family("yunikorn_scheduler_node", "gauge", "Nodes by state.", _by("state", states))
    shares: dict[str, list[int]] = {}
    for node in nodes:
        for name, total in node.total.items():
            if total > 0:
                shares.setdefault(name, [0] * 10)[bucket_of(node.allocated.get(name, 0), total)] += 1
    for resource, counts in sorted(shares.items()):
        name, text = f"{formatted(resource)}_node_usage_total", f"Nodes by how much {resource} of theirs is in use."
        samples = _by("range", dict(zip(SHARES, counts, strict=True)))
        yield _family(f"yunikorn_scheduler_{name}", "gauge", text, samples)


def _of_queues(parts: list[Partition], by_queue: Counter[tuple[str, str]]) -> Iterator[Metric]:
    amounts: dict[str, Counter[tuple[str, str]]] = {}
    states: dict[str, Counter[str]] = {}
    for queue, (waits, _) in (each for part in parts for each in pending(part).items()):
        figures = amounts.setdefault(queue.path, Counter())
        for kind in AMOUNTS:
            amount = waits if kind == "pending" else getattr(queue, kind) or {}
            figures.update({(kind, name): value for name, value in amount.items()})
        figures["maxRunningApps", "apps"] += queue.max_applications
        below = states.setdefault(queue.path, Counter())
        below.update(app.state.value.lower() for app in queue.applications.values())
    apps = [({"queue": path, "state": s}, counted[s]) for path, counted in states.items() for s in STATES]
    yield _family("yunikorn_queue_app", "gauge", "Applications of a queue by state.", apps)
    over = [({"queue": p, "state": s}, n) for (p, s), n in sorted(by_queue.items()) if s in ("completed", "failed")]
    text = "Applications of a queue that ended since the service started."
    yield _family("yunikorn_queue_app_total", "counter", text, over)
    rows = ((path, *each) for path, figures in amounts.items() for each in sorted(figures.items()))
    shown = [({"queue": path, "resource": name, "state": kind}, value) for path, (kind, name), value in rows]
    yield _family("yunikorn_queue_resource", "gauge", "vcore in thousandths, memory in bytes.", shown)
    containers: dict[str, Counter[str]] = {}
    for path in amounts:
        # Queues whose names differ in characters alone that metrics may not have are shown once, with the sum.
        counts = containers.setdefault(formatted(path), Counter())
        counts.update({state: by_queue[path, state] for state in ("allocated", "released")})
    for name, counts in containers.items():
        text = "Allocations of a queue since the service started."
        yield _family(f"yunikorn_{name}{CONTAINERS}", "counter", text, _by("state", counts))


def _by(label: str, values: Mapping[str, float]) -> Samples:
    return [({label: value}, amount) for value, amount in values.items()]


def _family(name: str, kind: str, text: str, samples: Samples) -> Metric:
    found = Metric(name, text, kind)
    for labels, value in samples:
        found.add_sample(name, labels, value)
    return found


def histogram(name: str, text: str, latency: Latency) -> Metric:
    """How long something took, with the bounds that are measured."""
    total, buckets = 0, []
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), latency.buckets, strict=True):
        total += count
        buckets.append((bound, total))
    family = HistogramMetricFamily(name, text)
    family.add_metric((), buckets, latency.total_seconds)
    return family
