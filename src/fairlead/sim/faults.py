"""Faults: nodes that are lost and come back.

Decides when, from a list or from a seed with mean times between failures and to repair. Never decides what becomes of
the work that ran there. Times count from the begin of the simulation. Invariant: for one seed always the same faults,
in order of time; a drawn node is lost only while it is there and comes back only while it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random

from fairlead.sim.rows import Row, csv_rows, made_of

LOST, BACK = "lost", "back"


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A node is `lost`, or comes `back` with all its capacity."""

    at_ms: int
    node: str
    what: str


class FaultError(ValueError):
    """A list of faults that makes no sense."""


def drawn(nodes: Sequence[str], seed: int, mtbf_ms: int, mttr_ms: int) -> Iterator[Fault]:
    """Faults without end: each node by itself works and is away for exponentially distributed times.

    `mtbf_ms` is the mean time from coming (back) to the next loss, `mttr_ms` the mean time away; both at least 1.
    """
    if mtbf_ms < 1 or mttr_ms < 1:
        raise FaultError("the mean times between failures and to repair must be 1 ms or more")
    random = Random(seed)
    due = [(_time(random, mtbf_ms), number, LOST) for number in range(len(nodes))]
    heapify(due)
    while due:
        at_ms, number, what = heappop(due)
        yield Fault(at_ms, nodes[number], what)
        after = (mttr_ms, BACK) if what == LOST else (mtbf_ms, LOST)
        heappush(due, (at_ms + _time(random, after[0]), number, after[1]))


def _time(random: Random, mean_ms: int) -> int:
    return max(1, round(random.expovariate(1 / mean_ms)))


def read_faults(path: str) -> list[Fault]:
    """The faults of a CSV file `time,node,what` (time in seconds, what `lost` or `back`), in order of time.

    Raises `TraceError` with file and line.
    """

    def fault(row: Row) -> Fault:
        if row.get("what") not in (LOST, BACK):
            raise row.error("what", f"must be {LOST} or {BACK}")
        return Fault(row.time_ms("time"), row.text("node"), row.get("what"))

    return sorted(made_of(csv_rows(path, ("time", "node", "what")), fault))


def known_only(faults: Iterable[Fault], nodes: Iterable[str]) -> list[Fault]:
    """The faults as they are; raises `FaultError` for a node that does not exist."""
    names = set(nodes)
    checked = list(faults)
    for fault in checked:
        if fault.node not in names:
            raise FaultError(f"there is no node {fault.node} that could be {fault.what}")
    return checked
