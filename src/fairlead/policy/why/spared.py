"""Spared: why nothing is stopped for an ask that waits for room.

Decides what keeps an ask from having anything stopped; else, of each piece of running work whose end would make room
for it, the first thing that spares it. Never searches, and never changes anything: what it finds is remembered nowhere.
Invariant: no plan for the ask takes what is said to be spared here. What needs one node (a daemon set) has rules of its
own, by which it is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fairlead.core.books.asks import NEVER_MS, Ask
from fairlead.core.books.idle_work import group_of, payer
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import limit_short_of_kept
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Items, lacks
from fairlead.policy.eligibility.attempt_times import due_ms
from fairlead.policy.eligibility.gang_size import is_of_gang_too_large
from fairlead.policy.eligibility.limits import full_ceiling
from fairlead.policy.order.effective_priority import below, standing_by_queue, weaker_than
from fairlead.policy.order.effective_priority import search_root as fence_of
from fairlead.policy.order.victim_index import Stoppable
from fairlead.policy.preemption.gang_room import GangRoom
from fairlead.policy.preemption.guarantee import (
    entitled_at_most,
    guarantee_leaves_room,
    is_guaranteed,
    lets_go,
    seen_ahead,
)
from fairlead.policy.preemption.plan import Search
from fairlead.policy.preemption.protection import in_time, spared_until_ms
from fairlead.policy.preemption.victims import Survey, candidates, idle_candidates, search_root


class Keeps(StrEnum):
    """What keeps an ask from having anything stopped."""

    OFF = "off"
    """Preemption is switched off in its partition."""
    IDLE = "idle"
    """It is idle work."""
    NEVER = "never"
    """Its priority class, or it itself, says so."""
    LIMIT = "limit"
    """A limit of its user or group is in its way, or has promised what is left; for that idle work alone is stopped."""
    NO_GUARANTEE = "no-guarantee"
    """No queue on its way is guaranteed any of what it needs (by guarantee)."""
    BEYOND_GUARANTEE = "beyond-guarantee"
    """With it its queue would use more than it is guaranteed (by guarantee)."""
    DELAY = "delay"
    """It has not waited for its queue's `preemption.delay` (by guarantee)."""
    GANG = "gang"
    """Its gang could not be whole even if all went that may."""


class Spares(StrEnum):
    """What keeps running work from being stopped for an ask."""

    TOLD = "told"
    """It was told to stop already."""
    CLOSED = "closed"
    """A queue with `preemption.policy` fences the ask in, or keeps its work."""
    PRIORITY = "priority"
    """It has the same or a higher priority, as seen where their queues meet (by guarantee: a higher one)."""
    OWN_GANG = "own-gang"
    """It is of the same gang."""
    OWN_QUEUE = "own-queue"
    """It is of the same queue (by guarantee)."""
    GUARANTEED = "guaranteed"
    """Its queue would be below its guarantee."""
    LARGE = "large"
    """It is more than the ask's own queue has left of its guarantee (by guarantee)."""
    NODE = "node"
    """It can run on its node alone (by guarantee)."""
    YOUNG = "young"
    """It started in its turn while the ask waited."""
    RUNTIME = "runtime"
    """It has not run for as long as it may at least."""
    AGAIN = "again"
    """It was stopped for the same ask before, and nothing new has come since."""
    EVICTIONS = "evictions"
    """Its queue lost as much within the hour as it may."""
    WINDOW = "window"
    """Once it left, the ask would run into a window."""
    OTHER = "other"
    """It has nothing of what the ask needs."""


@dataclass(frozen=True, slots=True)
class NothingStopped:
    """Why nothing is stopped for an ask."""

    because: Keeps | None
    """What keeps the ask itself from it; None: see `spared`."""
    queue: str = ""
    """A queue that is full: what runs there alone would make room. Empty: what runs on nodes that the ask can use."""
    running: int = 0
    """So much runs there."""
    spared: Mapping[Spares, int] = field(default_factory=dict)
    """How much of that each thing spares; the rest may go, but makes no room for the ask."""
    until_ms: int | None = None
    """From when on something of it is otherwise, as far as time alone decides; None: at no time."""
    again_ms: int | None = None
    """When it is tried again to stop what may go (by guarantee); what it says was so when that was tried last."""


def why_nothing_stops(partition: Partition, ask: Ask) -> NothingStopped | None:
    """Why nothing is stopped for this ask, which waits for room; None: something was, nothing runs there, or it needs
    one node.
    """
    if ask.nomination is not None or ask.preempt_triggered or ask.required_node:
        return None
    full, nodes = payer(ask).short_of_room(ask.items), partition.nodes.every()
    if full is not None:
        work = [a for node in nodes for a in node.allocations if full in payer(a).lineage]
    else:
        work = [a for node in nodes if _could_use(partition, ask, node) for a in node.allocations]
    if not work:
        return None
    looked = looked_at(partition, ask)
    because, until_ms = looked.keeps()
    if because is not None:
        return NothingStopped(because, until_ms=until_ms)
    spared = Counter(why for a in work if (why := looked.spares(a)) is not None)
    left = len(work) - spared.total()
    if left and ask.app.queue.by_rank and GangRoom(partition, Stoppable()).is_in_vain(ask, 0):
        return NothingStopped(Keeps.GANG)
    where, by_each = full.path if full is not None else "", {why: spared[why] for why in Spares if spared[why]}
    return NothingStopped(None, where, len(work), by_each, looked.until_ms, looked.again_ms() if left else None)


def _could_use(partition: Partition, ask: Ask, node: Node) -> bool:
    """Whether the ask could run on the node if nothing else did there."""
    is_large_enough = node.takes(ask) and node.fits_total(ask.items)
    return is_large_enough and partition.nodes.terrain.misfit_here(ask.where, node, node.allocations) is None


def looked_at(partition: Partition, ask: Ask) -> LookedAt:
    """To ask of single pieces of work, as the partition is."""
    return (_ByRank if ask.app.queue.by_rank else _ByGuarantee)(partition, ask)


class LookedAt:
    """An ask that waits, and what both rules have in common."""

    def __init__(self, partition: Partition, ask: Ask) -> None:
        self.partition, self.ask = partition, ask
        self.until_ms: int | None = None
        """When the first of the work that is spared for a time is so no longer."""
        self._fence = fence_of(ask.app.queue)
        self._names = {name for name, amount in ask.items if amount > 0}
        self._may_take_idle = bool(partition.idle.running) and is_guaranteed(partition, ask)
        """Whether idle work of other groups gives way, too, whatever its priority."""

    def keeps(self) -> tuple[Keeps | None, int | None]:
        """What keeps the ask from having anything stopped, and until when that alone does."""
        partition, ask = self.partition, self.ask
        if ask.spec.idle:
            return Keeps.IDLE, None
        if not partition.spec.preemption.enabled:
            return Keeps.OFF, None
        if not ask.spec.allow_preempt_other:
            return Keeps.NEVER, None
        if full_ceiling(ask.app, ask.items) is not None:
            return Keeps.LIMIT, None
        return (Keeps.GANG if is_of_gang_too_large(partition, ask) else None), None

    def again_ms(self) -> int | None:
        """When it tries again to have work stopped; None: as soon as anything changes."""
        return None

    def spares(self, running: Ask) -> Spares | None:
        """The first thing that spares this work; None: it may be stopped."""
        if running.evict_cause is not None:
            return Spares.TOLD
        if running.spec.idle and group_of(self.ask.app.queue) in payer(running).lineage:
            # It gives way by each rule.
            return Spares.YOUNG if self.partition.is_young(running, self.ask) else None
        if (why := self._spares(running)) is not None and not (running.spec.idle and self._may_take_idle):
            return why
        if not any(name in self._names for name, _ in running.items):
            return Spares.OTHER
        return self._for_a_time(running)

    def _spares(self, running: Ask) -> Spares | None:
        """By what stands above what."""
        raise NotImplementedError

    def _for_a_time(self, running: Ask) -> Spares | None:
        partition, ask = self.partition, self.ask
        if (until_ms := spared_until_ms(partition, running)) is not None:
            return self._until(until_ms, Spares.RUNTIME)
        if partition.disruption.was_stopped_for(ask, running):
            return Spares.AGAIN
        for queue in running.app.queue.lineage:
            if queue.properties.preemption_evictions_max is not None:
                left, again_ms = partition.disruption.evictions_left(queue, partition.now_ms)
                if not left:
                    return self._until(again_ms, Spares.EVICTIONS)
        return None if in_time(partition, ask, [running]) else Spares.WINDOW

    def is_closed(self, leaf: Queue) -> bool:
        """Whether `preemption.policy` keeps the ask from the work of a leaf, whatever its priority."""
        return leaf.properties.preemption_policy == "disabled" or self._fence not in leaf.lineage

    def _until(self, until_ms: int | None, why: Spares) -> Spares:
        if until_ms is not None:
            self.until_ms = min(self.until_ms or until_ms, until_ms)
        return why


class _ByRank(LookedAt):
    """`preemption.rule: priority` and `both`."""

    def __init__(self, partition: Partition, ask: Ask) -> None:
        super().__init__(partition, ask)
        self._candidates = Search(partition, ask, []).candidates

    def keeps(self) -> tuple[Keeps | None, int | None]:
        """And what others that are nominated have to do with it."""
        because, until_ms = super().keeps()
        weaker = tuple(weaker_than(self.partition, self.ask)) if because is None else ()
        if because is None and limit_short_of_kept(self.partition, self.ask, weaker) is not None:
            return Keeps.LIMIT, None
        return because, until_ms

    def _spares(self, running: Ask) -> Spares | None:
        leaf = running.app.queue
        least = self._candidates.reach.below(leaf)
        if running.priority >= least:
            return Spares.CLOSED if self.is_closed(leaf) else Spares.PRIORITY
        if running.app is self.ask.app and self.ask.spec.placeholder:
            return Spares.OWN_GANG
        if self._candidates.is_young(running):
            return Spares.YOUNG
        return None if self._candidates.lets_go(running) else Spares.GUARANTEED


class _ByGuarantee(LookedAt):
    """`preemption.rule: guarantee`."""

    def __init__(self, partition: Partition, ask: Ask) -> None:
        super().__init__(partition, ask)
        self._survey = Survey(partition)
        self._snapshots = seen_ahead(self._survey, ask)
        self._top = search_root(ask)
        self._found = (*idle_candidates(partition, ask), *candidates(self._survey, ask, self._snapshots))
        self._entitled = entitled_at_most(self._snapshots, self._found)
        self._let_go: dict[tuple[Queue, Items], bool] = {}
        self._seen = {queue: at + 1 for queue, at in standing_by_queue(ask.app.queue, ask.priority).items()}

    def keeps(self) -> tuple[Keeps | None, int | None]:
        """And what the guarantee has to do with it."""
        because, _ = super().keeps()
        if because is not None:
            return because, None
        ask, own = self.ask, self._snapshots.ask_queue
        if not own.remaining():
            return Keeps.NO_GUARANTEE, None
        if lacks(own.guaranteed, own.used, ask.items) or not guarantee_leaves_room(self._snapshots, ask, self._found):
            return Keeps.BEYOND_GUARANTEE, None
        due, delay_ms = due_ms(ask), ask.app.queue.properties.preemption_delay_ms
        waits = self.partition.now_ms < ask.created_ms + delay_ms and due < NEVER_MS
        return (Keeps.DELAY, due) if waits else (None, None)

    def again_ms(self) -> int | None:
        """What changed since the last attempt is not looked at before the next one."""
        due = due_ms(self.ask)
        return due if self.partition.now_ms < due < NEVER_MS else None

    def _spares(self, running: Ask) -> Spares | None:
        leaf = running.app.queue
        if leaf.properties.preemption_policy == "disabled" or self._top not in payer(running).lineage:
            return Spares.CLOSED
        if running.spec.idle:
            return Spares.YOUNG if self.partition.is_young(running, self.ask) else None
        if leaf is self.ask.app.queue:
            return Spares.OWN_QUEUE
        alike = (leaf, running.items)
        if alike not in self._let_go:
            self._let_go[alike] = lets_go(self._snapshots, self.ask, running)
            self._snapshots.undo()
        if not self._let_go[alike]:
            return Spares.GUARANTEED
        if running.priority >= below(self._seen, leaf):
            return Spares.PRIORITY
        if running.required_node:
            return Spares.NODE
        if self.partition.is_young(running, self.ask):
            return Spares.YOUNG
        return Spares.LARGE if lacks(self._entitled, {}, running.items) else None
