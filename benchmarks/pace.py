"""What does an event cost early and late in a long simulation? `make bench-simulation`, or with another workload:
`make bench-simulation BENCH_ARGS="--workload tasks.csv --nodes nodes.csv"` (`--tasks N` of a made-up one, `--json`).

Decides how CPU time is set against events: in quarters of all events, once as it was and once against a yardstick, a
fixed piece of work that is done again and again beside it. A busy machine slows both alike, so the second figure is the
one that can be compared. Never slows a run down by more than half a percent. Invariant: quarters hold about equally
many events each, so their costs are equal when the work for an event does not depend on what came before.
"""

from __future__ import annotations

import argparse
import sys
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import pairwise
from statistics import median
from typing import Any

from fairlead.collector import rare_collections
from fairlead.sim.bench import print_rows
from fairlead.sim.engine import Engine
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, spec_of

SAMPLES_MIN = 16
EVENTS_MIN = 10_000
"""With fewer events a quarter is a few hundred of them: which ones it holds says more than the cost of each."""
QUARTERS = 4
LOOKS_MIN = 5
APART_S = 0.2
"""CPU time between two looks at the yardstick at least: it takes about a millisecond."""


def yardstick() -> None:
    """A fixed piece of work of the kind that the scheduler does: small objects, a heap, a dict."""
    heap: list[tuple[int, int, list[int]]] = []
    known: dict[str, list[int]] = {}
    for number in range(1_000):
        thing = known[str(number)] = [number * 7919 % 1009]
        heappush(heap, (thing[0], number, thing))
    while heap:
        place, number, thing = heappop(heap)
        thing[0] = place + 1
        del known[str(number)]


class Pace:
    """Samples of events and CPU time, at most `SAMPLES_MAX` of them."""

    SAMPLES_MAX = 4096

    def __init__(self, measure: Callable[[], None] = yardstick) -> None:
        self._measure = measure
        self._events, self._cpu_s = array("q"), array("d")
        self._looks_s = array("d")
        """CPU time spent on the yardstick by then."""
        self._look_events, self._look_s = array("q"), array("d")
        """When it was looked at, and how long each look took."""
        self._every = self._skipped = 0
        self._looked_s = 0.0
        self._last_s = float("-inf")
        self.kept_most = 0
        """The most things that were kept in memory for what waits, runs, or is due later."""

    def sample(self, events: int, kept: int) -> None:
        """So many events are through by now, and so many things are kept."""
        self.kept_most = max(self.kept_most, kept)
        now_s = time.process_time()
        if now_s - self._last_s >= APART_S:
            self._measure()
            self._last_s = time.process_time()
            self._looked_s += self._last_s - now_s
            self._look_events.append(events)
            self._look_s.append(self._last_s - now_s)
        self._skipped += 1
        if self._skipped <= self._every:
            return
        self._skipped = 0
        if len(self._events) >= self.SAMPLES_MAX:
            self._events, self._cpu_s, self._looks_s = self._events[::2], self._cpu_s[::2], self._looks_s[::2]
            self._every = 2 * self._every + 1
        self._events.append(events)
        self._cpu_s.append(max(now_s, self._last_s))
        self._looks_s.append(self._looked_s)

    def figures(self) -> dict[str, Any] | None:
        """`events`, `us_per_event` and `cost` by quarter, `growth`, and `kept_most`; None where the run was too short.

        `cost` is what an event cost in looks at the yardstick, 1 being the mean of the run; `growth` is the last
        quarter's over the second's (the first fills the machine). Both None where the yardstick was not looked at often
        enough in every quarter.
        """
        events, cpu_s = self._events, self._cpu_s
        if len(events) < SAMPLES_MIN or events[-1] - events[0] < EVENTS_MIN:
            return None
        step = (events[-1] - events[0]) / QUARTERS
        edges = [bisect_left(events, events[0] + round(step * n)) for n in range(QUARTERS)] + [len(events) - 1]
        spent = [(cpu_s[b] - cpu_s[a]) - (self._looks_s[b] - self._looks_s[a]) for a, b in pairwise(edges)]
        came = [events[b] - events[a] for a, b in pairwise(edges)]
        each = [1e6 * s / n if n else 0.0 for s, n in zip(spent, came, strict=True)]
        cost = self._against_yardstick(each, edges)
        return {
            "events": events[-1],
            "us_per_event": [round(us, 2) for us in each],
            "cost_by_quarter": cost,
            "growth": round(cost[-1] / cost[1], 3) if cost is not None and cost[1] else None,
            "kept_most": self.kept_most,
        }

    def _against_yardstick(self, each: list[float], edges: list[int]) -> list[float] | None:
        """What an event cost in looks at the yardstick; of the looks in a quarter the middle one counts."""
        costs = []
        for us, begin, end in zip(each, edges, edges[1:], strict=False):
            among = (bisect_left(self._look_events, self._events[edge]) for edge in (begin, end))
            looks = self._look_s[slice(*among)]
            if len(looks) < LOOKS_MIN or not (look_s := median(looks)):
                return None
            costs.append(us / look_s)
        mean = sum(costs) / len(costs)
        return [round(cost / mean, 3) for cost in costs] if mean else None


def kept(engine: Engine) -> int:
    """How many things are kept for what waits, runs or is due later; the columns grow, this does not."""
    work = len(engine.waiting) + len(engine.running) + len(engine._retries)
    return work + len(engine._queue_of) + len(engine._gangs) + engine.still_due + len(engine.scheduler.cluster.timers)


def row_of(source: Source) -> tuple[dict[str, Any], str]:
    """A workload simulated to its end: the figures, and a line of them."""
    workload, pace = source.open(), Pace()
    engine = Engine(spec_of(Trial(name=source.workload, source=source), workload), workload.nodes, workload.jobs)
    with rare_collections():
        engine.run(progress=lambda _: pace.sample(engine.events, kept(engine)))
    figures = pace.figures()
    row = {"name": f"pace: {workload.name}", "tasks": engine.tasks}
    if figures is None:
        return row, f"{workload.name}: {engine.events:,} events are too few to tell"
    return row | figures, f"{workload.name}: {pace_text(figures)}"


def pace_text(figures: dict[str, Any]) -> str:
    """What an event cost in each quarter of a long run; that should not grow."""
    costs = ", ".join(f"{cost:,.1f}" for cost in figures["us_per_event"])
    against = ""
    if figures["cost_by_quarter"] is not None:
        shares = ", ".join(f"{cost:.2f}" for cost in figures["cost_by_quarter"])
        against = f" (without what else the machine did, 1 being the mean: {shares})"
    return (
        f"{figures['events']:,} events; CPU microseconds for one, by quarter of the run: {costs}{against}; "
        f"at most {figures['kept_most']:,} things kept at once"
    )


def main() -> None:
    """Measure it as the options say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pace")
    parser.add_argument("--workload", default="poisson")
    parser.add_argument("--nodes", default="")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tasks = 100_000 if given.tasks is None and given.workload == "poisson" else given.tasks
    source = Source(workload=given.workload, nodes=given.nodes, tasks=tasks)
    print_rows([row_of(source)], sys.stdout, as_json=given.json)


if __name__ == "__main__":
    main()
