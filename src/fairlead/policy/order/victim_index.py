"""Stoppable: for all nodes at once, how little has to be stopped on each so that an ask could fit.

Decides which nodes are worth a closer look, in order of the highest work that would have to go there. Never decides
what is stopped: what it says of a node is the best that can be hoped for, and room alone. Invariant: a node that it
leaves out has no plan, and none of a node is better than the level it is offered at.

What runs and may be stopped (it was not told to yet, nor does its leaf forbid it) is kept as rows of one table: a node,
a leaf, a priority, and how much all of it is together. Only the nodes that changed since the last search are written
anew; their old rows are crossed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from fairlead.core.books.asks import Ask, counts_as_gone
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Items, add_to
from fairlead.policy.order.effective_priority import EVERYBODY, Rank, Reach, rank
from fairlead.policy.order.victim_levels import ROUNDING, Group, Numbers, Rooms, Sorted

Level = tuple[tuple[int, ...], Iterator["Node"]]
"""The rank of the highest work that has to go (nothing: none has to), and the nodes."""
StandsBelow = Callable[["Queue", int], bool]
"""Whether work of a leaf and a priority may go."""
CROSSED_OUT = -1


def leaves_for_others(ask: Ask) -> bool:
    """Whether running work will leave its space soon, so that it gets free (no other ask takes it over as it is)."""
    return counts_as_gone(ask) and ask.replaces is None


@dataclass(frozen=True, slots=True)
class Guards:
    """The guarantees of a partition, but of the `unguarded`: no leaf gives more than they leave."""

    partition: Partition
    unguarded: tuple[Queue, ...] = ()

    def most(self, leaf: Queue, name: str) -> float:
        """How much of a resource work of a leaf may give at most."""
        return self.partition.above_guarantee.least(self.partition, leaf, name, self.unguarded)


@dataclass(slots=True, eq=False)
class Need:
    """So much of one resource is missing; what helps is work on the node, in some queue and below (None: any)."""

    name: str
    missing: Numbers
    scale: float
    within: Queue | None = None


class Stoppable:
    """The table of one partition."""

    def __init__(self) -> None:
        self._version = -1
        """That of the books at the last search."""
        self._forget()

    def _forget(self) -> None:
        self.groups: list[Group] = []
        self._ranks: list[Rank] = []
        """That of each group; it stays as it is until the next configuration, which has a table of its own."""
        self._leaves: dict[Queue, int] = {}
        """The leaves of the groups, each with its number."""
        self._leaf_of = np.empty(0, dtype=np.int64)
        """That of each group."""
        self._below: dict[Queue, list[tuple[int, Queue]]] = {}
        """The leaves of a queue, as far as it was asked."""
        self._most: dict[tuple[str, tuple[Queue, ...]], Numbers] = {}
        """How much of a resource each leaf may give at most where all guarantees count but these, as far as asked."""
        self._group_of: dict[Group, int] = {}
        self._counts: list[int] = []
        """Work of each group, all nodes together."""
        self._work_at: dict[int, int] = {}
        """Work of each priority."""
        self._nodes: list[Node] = []
        self._row: dict[Node, int] = {}
        self.open: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        """Which nodes, by id, take ordinary new work."""
        self._room: dict[str, Numbers] = {}
        """What is free on each node once all that was told to stop is gone; what is held counts as taken."""
        self._spans: list[tuple[int, int]] = []
        self._used = self._live = 0
        self._entry_row = np.empty(64, dtype=np.int64)
        self._entry_group = np.empty(64, dtype=np.int64)
        self._amounts: dict[str, Numbers] = {}
        self._sorted: Sorted | None = None
        self._rooms: Rooms | None = None
        self._on_one_node: dict[tuple[Queue, str], float] = {}
        """How much of a resource is on that node which has most of a queue's work, as far as it was asked."""

    # -- keeping up -----------------------------------------------------------------------------------------------

    def keep_up(self, partition: Partition) -> None:
        """Take over what changed since the last search."""
        nodes = partition.nodes
        changed = nodes.since_search
        if changed or self._version != partition.books_version:
            self._version = partition.books_version
            self._most.clear()
        if changed:
            self._sorted = self._rooms = None
            self._on_one_node.clear()
        known = self._row
        is_long = self._used > 4 * self._live + 1024  # Mostly of rows that are crossed out.
        if is_long or len(known) != len(nodes.nodes) or any(n not in known for n in changed):
            self._forget()
            self._nodes = sorted(nodes.nodes.values(), key=lambda n: n.id)
            self._row = {node: i for i, node in enumerate(self._nodes)}
            self.open = np.zeros(len(self._nodes), dtype=np.bool_)
            self._spans = [(0, 0)] * len(self._nodes)
            for row, node in enumerate(self._nodes):
                self._write(row, node)
        else:
            for node in changed:
                self._write(known[node], node)
        changed.clear()

    def _write(self, row: int, node: Node) -> None:
        self.open[row] = node.is_open
        start, end = self._spans[row]
        for at in range(start, end):
            self._count(int(self._entry_group[at]), -1)
            self._entry_group[at] = CROSSED_OUT
        self._live -= end - start
        free = dict(node.free)
        sums: dict[int, dict[str, int]] = {}
        for ask in node.allocations:
            if leaves_for_others(ask):
                add_to(free, ask.items)
            elif ask.evict_cause is None and ask.app.queue.properties.preemption_policy != "disabled":
                add_to(sums.setdefault(self._group((ask.app.queue, ask.priority)), {}), ask.items)
        for name in free:
            if name not in self._room:
                self._room[name] = np.zeros(len(self._nodes))
        for name, column in self._room.items():
            column[row] = free.get(name, 0)
        start = self._used
        for group, book in sums.items():
            self._append(row, group, book)
        self._spans[row] = (start, self._used)
        self._live += self._used - start

    def _group(self, group: Group) -> int:
        found = self._group_of.get(group)
        if found is None:
            found = self._group_of[group] = len(self.groups)
            self.groups.append(group)
            self._ranks.append(rank(*group))
            if group[0] not in self._leaves:
                self._leaves[group[0]] = len(self._leaves)
                self._below.clear()
            self._leaf_of = np.append(self._leaf_of, self._leaves[group[0]])
            self._counts.append(0)
        return found

    def _count(self, group: int, change: int) -> None:
        self._counts[group] += change
        _, priority = self.groups[group]
        self._work_at[priority] = self._work_at.get(priority, 0) + change
        if not self._work_at[priority]:
            del self._work_at[priority]

    def _append(self, row: int, group: int, book: dict[str, int]) -> None:
        at = self._used
        if at == len(self._entry_row):
            self._entry_row = np.resize(self._entry_row, 2 * at)
            self._entry_group = np.resize(self._entry_group, 2 * at)
            self._amounts = {name: np.resize(column, 2 * at) for name, column in self._amounts.items()}
        self._entry_row[at], self._entry_group[at] = row, group
        for name in book:
            if name not in self._amounts:
                self._amounts[name] = np.zeros(len(self._entry_row))
        for name, column in self._amounts.items():
            column[at] = book.get(name, 0)
        self._count(group, 1)
        self._used += 1

    # -- asking ---------------------------------------------------------------------------------------------------

    def running_groups(self) -> Iterator[Group]:
        """Leaves and priorities of which something runs that may be stopped."""
        return (group for group, count in zip(self.groups, self._counts, strict=True) if count)

    def lowest(self) -> int:
        """The lowest priority of what may be stopped, as it is in its own leaf; `EVERYBODY`: nothing may be."""
        return min(self._work_at, default=EVERYBODY)

    def needs(self, items: Items, given_up: Mapping[Node, Iterable[Ask]]) -> list[Need]:
        """What an ask of this amount misses on each node, as things are. `given_up`: asks that hold space for now."""
        found: list[Need] = []
        for name, amount in items:
            if amount > 0:
                room = self._room.get(name)
                missing = np.full(len(self._nodes), float(amount)) if room is None else amount - room
                for node, holders in given_up.items():
                    missing[self._row[node]] -= sum(v for holder in holders for n, v in holder.items if n == name)
                found.append(Need(name, missing, float(amount)))
        return found

    def need_within(self, name: str, missing: int, queue: Queue) -> Need:
        """So much is missing under the maximum of a queue, whatever the node."""
        return Need(name, np.full(len(self._nodes), float(missing)), float(missing), queue)

    def room_beyond(self, may_go: StandsBelow, given_up: Iterable[Ask]) -> dict[str, Numbers]:
        """What is free on each node, by name, once all goes that may, and what these hold or use there."""
        room = {name: column.copy() for name, column in self._room.items()}
        is_gone = np.array([*(may_go(*group) for group in self.groups), False])
        rows = np.flatnonzero(is_gone[self._entry_group[: self._used]])  # The last one is of what is crossed out.
        for name, column in self._amounts.items():
            np.add.at(room[name], self._entry_row[rows], column[rows])
        for ask in given_up:
            if (node := ask.node or ask.held_on) is not None:
                for name, amount in ask.items:
                    room[name][self._row[node]] += amount
        return room

    def sums(self, may_go: StandsBelow) -> Iterator[tuple[Queue, Items]]:
        """How much all of each leaf and priority is that may go."""
        groups = self._entry_group[: self._used]
        live = groups != CROSSED_OUT
        totals = {
            name: np.bincount(groups[live], column[: self._used][live], len(self.groups))
            for name, column in self._amounts.items()
        }
        for i, group in enumerate(self.groups):
            if self._counts[i] and may_go(*group):
                yield group[0], tuple((name, int(total[i])) for name, total in totals.items())

    def most_on_a_node(self, queue: Queue, name: str) -> float:
        """How much of a resource all work of a queue that may be stopped has on one node, at most."""
        column = self._amounts.get(name)
        if column is None or (queue not in self._leaves and queue.is_leaf):
            return 0.0
        if (queue, name) not in self._on_one_node:
            groups = self._entry_group[: self._used]
            at = np.flatnonzero(groups != CROSSED_OUT)
            leaf, row, amount = self._leaf_of[groups[at]], self._entry_row[at], column[at]
            if queue.is_leaf:
                # For all leaves at once: there may be thousands.
                places, number = np.unique(row * len(self._leaves) + leaf, return_inverse=True)
                most = np.zeros(len(self._leaves))
                np.maximum.at(most, places % len(self._leaves), np.bincount(number, amount))
                self._on_one_node |= {(each, name): float(most[i]) for each, i in self._leaves.items()}
            else:
                within = np.isin(leaf, [i for i, _ in self._leaves_below(queue)])
                sums = np.bincount(row[within], amount[within])
                self._on_one_node[queue, name] = float(sums.max(initial=0.0))
        return self._on_one_node[queue, name]

    def by_level(self, reach: Reach | None, needs: list[Need], guards: Guards | None = None) -> Iterator[Level]:
        """Open nodes on which the needs could be met by what is in reach (None: all that may be stopped), those first
        where the highest that has to go is lowest. `guards`: no leaf gives more than that.

        The first level is of nodes where nothing more has to be stopped. In a level: smallest shortage first, then id.
        """
        slack = [need.scale * ROUNDING for need in needs]
        left = [need.missing.copy() for need in needs]
        shortage = np.zeros(len(self._nodes))
        for need in needs:
            shortage += np.maximum(need.missing, 0.0) / max(need.scale, 1.0)
        open_still = self.open.copy()
        yield (), self._met(open_still, left, slack, shortage)
        helps = [self._helps(need) for need in needs]
        bounds = [self._at_most(need.name, guards)[self._leaf_of] if guards is not None else None for need in needs]
        for place, entries in self._in_order().within(reach):
            rows = self._entry_row[entries]
            for need, rest, helping, bound in zip(needs, left, helps, bounds, strict=True):
                column = self._amounts.get(need.name)
                if column is None:
                    continue
                given = column[entries]
                if bound is not None:
                    given = np.minimum(given, bound[self._entry_group[entries]])
                if helping is not None:
                    # Under a maximum it helps wherever it runs.
                    rest -= given[helping[self._entry_group[entries]]].sum()
                else:
                    np.subtract.at(rest, rows, given)
            yield place, self._met(open_still, left, slack, shortage)

    def _in_order(self) -> Sorted:
        if self._sorted is None:
            self._sorted = Sorted(self.groups, self._ranks, self._counts, self._entry_group[: self._used])
        return self._sorted

    def rooms(self, given_up: Mapping[Node, Iterable[Ask]] | None = None) -> Rooms:
        """What is free once work up to a rank is gone, and what these hold."""
        if self._rooms is None or given_up:
            room = {name: column.copy() for name, column in self._room.items()}
            for node, holders in (given_up or {}).items():
                for name, amount in chain.from_iterable(holder.items for holder in holders):
                    room[name][self._row[node]] += amount
            rooms = Rooms(self._in_order(), room, self._amounts, self._entry_row, self.open)
            if given_up:
                return rooms
            self._rooms = rooms
        return self._rooms

    def _met(
        self, open_still: npt.NDArray[np.bool_], left: list[Numbers], slack: list[float], shortage: Numbers
    ) -> Iterator[Node]:
        met = open_still.copy()
        for rest, margin in zip(left, slack, strict=True):
            met &= rest <= margin
        open_still &= ~met
        rows = np.flatnonzero(met)
        if len(rows) > 1:
            rows = rows[np.argsort(shortage[rows], kind="stable")]
        return map(self._nodes.__getitem__, rows)

    def _at_most(self, name: str, guards: Guards) -> Numbers:
        """For each leaf how much its work may give at most of a resource."""
        own = tuple(queue for queue in guards.unguarded if queue.guaranteed and name in queue.guaranteed)
        most = self._most.get((name, own))
        if most is None:
            if own:
                most = self._at_most(name, Guards(guards.partition)).copy()
                for number, leaf in self._leaves_below(own[-1]):
                    most[number] = guards.most(leaf, name)
            else:
                most = np.fromiter((guards.most(leaf, name) for leaf in self._leaves), dtype=np.float64)
            self._most[name, own] = most
        return most

    def _leaves_below(self, queue: Queue) -> list[tuple[int, Queue]]:
        """The leaves of a queue that have groups, each with its number."""
        found = self._below.get(queue)
        if found is None:
            found = self._below[queue] = [(i, leaf) for leaf, i in self._leaves.items() if queue in leaf.lineage]
        return found

    def _helps(self, need: Need) -> npt.NDArray[np.bool_] | None:
        """For each group whether its work counts for the need; None: all of it does."""
        if need.within is None or need.within.parent is None:
            return None
        return np.array([need.within in leaf.lineage for leaf, _ in self.groups], dtype=np.bool_)
