"""Figures for Prometheus under the names of Apache YuniKorn.

Decides names, labels and types as YuniKorn's page of metrics has them. Never counts anything itself. Invariant: one
scrape is one moment of the books; a queue that is in several partitions is shown once, with the sums.

The text is written here and not by prometheus-client: that ends the name of each counter with `_total` in the line of
its type, and the counters of a queue (`yunikorn_root_queue_container`) have other names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.runtime.measures import BOUNDS, Latency, Measures
from fairlead.service.yunikorn.app_shapes import bucket_of

if TYPE_CHECKING:
    from fairlead.scheduler import Scheduler
    from fairlead.service.yunikorn.history import HistoryRecords

Labels = tuple[tuple[str, str], ...]
Samples = list[tuple[str, Labels, float]]
SHARES = ("[0,10%]", *(f"({low}%,{low + 10}%]" for low in range(10, 100, 10)))
STATES = ("new", "accepted", "running", "resuming", "failing", "completing", "failed", "completed", "rejected")
AMOUNTS = ("guaranteed", "max", "allocated", "pending", "preempting")


def formatted(name: str) -> str:
    """A name as metrics may have it: every other character becomes `_`, and a digit does not come first."""
    clean = re.sub(r"[^a-zA-Z0-9_:]", "_", name)
    return f"_{clean}" if clean[:1].isdigit() else clean


def gather(scheduler: Scheduler, history_records: HistoryRecords) -> dict[str, Any]:
    """What the books have, copied between two turns."""
    partitions = list(scheduler.cluster.partitions.values())
    queues: dict[str, Counter[tuple[str, str]]] = {}
    states: dict[str, Counter[str]] = {}
    overall: Counter[str] = Counter()
    shares: dict[str, list[int]] = {}
    nodes: Counter[str] = Counter()
    for part in partitions:
        for queue in part.root.walk():
            figures = queues.setdefault(queue.path, Counter())
            for kind in AMOUNTS:
                figures.update({(kind, name): value for name, value in (getattr(queue, kind) or {}).items()})
            figures["maxRunningApps", "apps"] += queue.max_applications
            below = states.setdefault(queue.path, Counter())
            below.update(app.state.value.lower() for app in queue.applications.values())
        for app in (*part.applications.values(), *part.ended.values(), *part.rejected.values()):
            overall[app.state.value.lower()] += 1
        for node in part.nodes.nodes.values():
            nodes["active" if node.schedulable else "draining"] += 1
            for name, total in node.total.items():
                if total > 0:
                    shares.setdefault(name, [0] * 10)[bucket_of(node.allocated.get(name, 0), total)] += 1
    return {
        "queues": queues,
        "states": states,
        "overall": overall,
        "shares": shares,
        "nodes": nodes,
        "allocated": sum(part.allocation_count for part in partitions),
        "released": sum(part.released_count for part in partitions),
        "counts": Counter(history_records.counts),
        "by_queue": Counter(history_records.by_queue),
        "events": (history_records.ring.told, history_records.ring.kept),
    }


def render(books: Mapping[str, Any], measures: Measures) -> bytes:
    """The text of one scrape."""
    lines: list[str] = []
    for family in (*_scheduler(books, measures), *_queues(books), *_events(books)):
        lines += _family(*family)
    return ("\n".join(lines) + "\n").encode()


Family = tuple[str, str, str, Samples]
"""Name, type, help, samples (each with what its name has after the family's)."""


def _scheduler(books: Mapping[str, Any], measures: Measures) -> Iterable[Family]:
    counts = books["counts"]
    attempts = {
        "allocated": books["allocated"],
        "rejected": counts["ask-rejected"],
        "error": measures.faults,
        "released": books["released"],
    }
    yield (
        "yunikorn_scheduler_container_allocation_attempt_total",
        "counter",
        "Attempts to allocate, by what became of them.",
        _by("state", attempts),
    )
    results = {"new": counts["submitted"], "accepted": counts["accepted"], "rejected": counts["rejected"]}
    yield (
        "yunikorn_scheduler_application_submission_total",
        "counter",
        "Applications submitted since the service started.",
        _by("result", results),
    )
    shown = {s: books["overall"][s] for s in ("running", "resuming", "failing", "completing", "completed", "failed")}
    yield "yunikorn_scheduler_application_total", "gauge", "Applications by state.", _by("state", shown)
    nodes = {state: books["nodes"][state] for state in ("active", "failed", "draining", "decommissioned")}
    yield "yunikorn_scheduler_node", "gauge", "Nodes by state.", _by("state", nodes)
    for name in ("scheduling_latency", "scheduling_cycle"):
        text = "A run of scheduling, in seconds (whatever the name says)."
        yield f"yunikorn_scheduler_{name}_milliseconds", "histogram", text, _histogram(measures.scheduling)
    for resource, found in sorted(books["shares"].items()):
        samples = _by("range", dict(zip(SHARES, found, strict=True)))
        name = f"yunikorn_scheduler_{formatted(resource)}_node_usage_total"
        yield name, "gauge", f"Nodes by how much {resource} of theirs is in use.", samples


def _queues(books: Mapping[str, Any]) -> Iterable[Family]:
    apps: Samples = []
    ended: Samples = []
    amounts: Samples = []
    for path, counted in books["states"].items():
        apps += [("", (("queue", path), ("state", state)), counted[state]) for state in STATES]
    for (path, state), value in sorted(books["by_queue"].items()):
        if state in ("completed", "failed"):
            ended.append(("", (("queue", path), ("state", state)), value))
    for path, figures in books["queues"].items():
        for (kind, resource), value in sorted(figures.items()):
            amounts.append(("", (("queue", path), ("resource", resource), ("state", kind)), value))
    yield "yunikorn_queue_app", "gauge", "Applications of a queue by state.", apps
    yield "yunikorn_queue_app_total", "counter", "Applications of a queue that ended since the service started.", ended
    yield "yunikorn_queue_resource", "gauge", "vcore in thousandths, memory in bytes.", amounts
    for path in books["queues"]:
        counts = {state: books["by_queue"][path, state] for state in ("allocated", "released")}
        name = f"yunikorn_{formatted(path)}_queue_container"
        yield name, "counter", "Allocations of a queue since the service started.", _by("state", counts)


def _events(books: Mapping[str, Any]) -> Iterable[Family]:
    told, kept = books["events"]
    for name, value in (
        ("created", told),
        ("channeled", told),
        ("not_channeled", 0),
        ("processed", told),
        ("stored", told),
        ("not_stored", 0),
        ("collected", kept),
    ):
        yield f"yunikorn_event_total_{name}", "gauge", "Event records.", [("", (), value)]


# -- the text format ----------------------------------------------------------------------------------------------


def _by(label: str, values: Mapping[str, float]) -> Samples:
    return [("", ((label, value),), amount) for value, amount in values.items()]


def _histogram(latency: Latency) -> Samples:
    total, samples = 0, []
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), latency.buckets, strict=True):
        total += count
        samples.append(("_bucket", (("le", bound),), float(total)))
    return [*samples, ("_sum", (), latency.total_seconds), ("_count", (), float(latency.count))]


def _family(name: str, kind: str, text: str, samples: Samples) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for suffix, labels, value in samples:
        inner = ",".join(f'{label}="{_escaped(shown)}"' for label, shown in labels)
        lines.append(f"{name}{suffix}{{{inner}}} {_number(value)}" if inner else f"{name}{suffix} {_number(value)}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
