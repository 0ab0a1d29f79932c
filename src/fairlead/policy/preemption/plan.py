"""The plan of a preemption by priority: on which node, what to stop, and which nominations go for it.

Decides for one waiting ask. A node is a candidate when the ask would fit there, with every filter, without all work
that stands strictly below it; then as many as possible are given back, and of all nodes the one with the least harm is
taken. Never takes more than needed, never plans what `nominate` could not carry out. Invariant: searching changes
nothing but the memory of loops that it reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from fairlead.core.books import nominations
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.lifecycle import State
from fairlead.policy.eligibility.limits import full_ceiling, may_run
from fairlead.policy.order.effective_priority import rank
from fairlead.policy.order.victim_index import Level, Stoppable
from fairlead.policy.preemption.bound import Bound, all_let
from fairlead.policy.preemption.candidates import NONE_LATER, Candidates, lost_ms
from fairlead.policy.preemption.protection import is_full_too_long, look_again, may_stop_others, overdrawn, within
from fairlead.policy.preemption.victims import by_node

NODES_MAX = 64
"""Nodes looked at closely for one ask once there is a plan; up to so many nodes the plan is the best of all."""
TOGETHER_MAX = 16
"""So many of what guarantees pass over on one node are tried with lower work; all others by themselves."""
Harm = tuple[int, tuple[int, ...], int, int, int, int, int, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """Stop `victims` on `node`, take their nomination from `cleared`, and hold the space for `ask`."""

    ask: Ask
    node: Node
    victims: tuple[Ask, ...]
    leaving: tuple[Ask, ...]
    """Work on the node that was told to stop before and whose space is counted on."""
    cleared: tuple[Ask, ...]
    violates: dict[Ask, tuple[str, ...]]
    """For each victim the budgets that have nothing left for it."""
    harm: Harm
    """Order of plans, see `Search._harm`."""


class Search:
    """What is worked out once for all nodes when one ask looks for a plan."""

    def __init__(self, partition: Partition, ask: Ask, weaker: list[Ask]) -> None:
        self.partition, self.ask = partition, ask
        self.weaker = weaker
        """Nominated asks whose space it may take."""
        self.may_stop = may_stop_others(partition, ask)
        nomination = ask.nomination
        self._keeps_hold = nomination is not None and not (nomination.gathers or nomination.is_stuck)
        """It holds space that it will not give up unless something has to stop for it elsewhere. Room that only gathers
        it does: what started meanwhile in room that it could have had it would stop later.
        """
        given_up = weaker if nomination is None else [*weaker, ask]
        self._waits_above = nominations.gets_room_above(partition, ask)
        self._weaker_on = by_node(given_up)
        self._bounds = self._binding_bounds(tuple(given_up))
        above = [bound for bound in self._bounds if bound.place is not partition.root]
        # Under those room can be made on any node; what all nodes lack has to come free on this one.
        self.candidates = Candidates(partition, ask, above)
        limited = bool(given_up) and (ask.app.allowance is not None or ask.app.state is State.ACCEPTED)
        self.plain = ask.shape is not None and partition.nodes.only_room_counts(ask.shape)
        choosy = bool(partition.nominations) and not self.plain
        self._far_matter = bool(self._bounds) or limited or choosy
        """Whether nominations on other nodes may be in the way too: because of a queue or limit, or to keep apart."""

    # -- limits and queues ----------------------------------------------------------------------------------------

    def _binding_bounds(self, given_up: tuple[Ask, ...]) -> list[Bound]:
        """The maxima from the leaf to the root for which work, or a nomination, has to go.

        Each with what it leaves once all that was told to stop is gone, and these nominations.
        """
        bounds = []
        for queue in self.ask.app.queue.lineage:
            is_root = queue.parent is None
            most = self.partition.nodes.total if is_root else queue.max
            if most is None:
                continue
            kept = nominations.kept_under(self.partition, queue)
            kept_for_others = nominations.kept_under(self.partition, queue, given_up)
            left, is_full = {}, False
            for name, amount in self.ask.items:
                if is_root or name in most:
                    used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0)
                    room = most.get(name, 0) - used - amount
                    left[name] = room - kept_for_others.get(name, 0)
                    is_full = is_full or room < kept.get(name, 0)
            if is_full:
                bounds.append(Bound(queue, left))
        return bounds

    # -- nodes ----------------------------------------------------------------------------------------------------

    def best(self, table: Stoppable) -> Plan | None:
        """The plan with the least harm, or None.

        Nodes on which work is overdue come last: what is stopped there may not leave either.
        """
        partition, ask = self.partition, self.ask
        if full_ceiling(ask.app, ask.items) is not None:
            return None
        if nominations.limit_short_of_kept(partition, ask, tuple(self.weaker)) is not None:
            return None
        avoided = {a.node: None for a in partition.disruption.overdue if a.node is not None}
        return self._best_but_on(avoided, False, table) or (
            self._best_but_on(avoided, True, table) if avoided else None
        )

    def _best_but_on(self, avoided: Collection[Node], wanted: bool, table: Stoppable) -> Plan | None:
        """The best plan on nodes that are avoided, or on those that are not."""
        looked_at = 0
        found: Plan | None = None
        for place, level in self._levels(table):
            for node in level:
                if (node in avoided) is not wanted:
                    continue
                if found is not None and looked_at >= NODES_MAX:
                    break
                looked_at += 1
                if found is not None and self._is_no_better(node, place, found.harm):
                    continue
                plan = self.on_node(node)
                if plan is not None and (found is None or plan.harm < found.harm):
                    found = plan
            if found is not None and (found.harm[:2] <= (0, place) or looked_at >= NODES_MAX):
                break  # No plan whose highest victim is above this rank can be better.
        return found

    def _is_no_better(self, node: Node, place: tuple[int, ...], harm: Harm) -> bool:
        """Whether no plan on a node of this level has less harm than this, without one: at best a single victim goes,
        that of the rank of the level which loses the least.
        """
        if not place or self.candidates.above:
            return False
        top = [victim for victim in node.allocations if rank(victim.app.queue, victim.priority) == place]
        lost = min((lost_ms(victim, self.partition.now_ms) for victim in top), default=NONE_LATER)
        start = max((victim.allocated_ms or 0 for victim in top), default=0)
        return harm <= (0, place, max(place[0], 0), 1, 0, lost, -start, node.id)

    def _levels(self, table: Stoppable) -> Iterator[Level]:
        """The nodes worth a look, the least harm first. The space of nominations that may go counts as free."""
        if self.ask.required_node:
            node = self.partition.nodes.nodes.get(self.ask.required_node)
            yield (), iter([node] if node is not None else [])
            return
        table.keep_up(self.partition)
        needs = table.needs(self.ask.items, self._weaker_on)
        for bound in self._bounds:
            for name, left in bound.left.items():
                if left < 0:
                    needs.append(table.need_within(name, -left, bound.place))  # type: ignore[arg-type]
        levels = table.by_level(self.candidates.reach, needs, self.candidates.guards())
        yield next(levels)
        if self.may_stop:
            yield from levels

    def on_node(self, node: Node) -> Plan | None:
        """The plan for this node, or None when the ask would not fit there."""
        ask = self.ask
        if not node.takes(ask) or node.reservations or not node.fits_total(ask.items):
            return None
        if self.candidates.has_history:
            until_ms = self.partition.disruption.barred_until(ask, node, self.partition.now_ms)
            if until_ms is not None:
                look_again(self.partition, until_ms)
                return None
        given_up = self._weaker_on.get(node, [])
        weaker = [a for a in given_up if a is not ask]
        leaving = self.candidates.leaving(node)
        if leaving and self._node_bound(node, given_up, ()).is_kept and self._suits(node, ()):
            leaving = ()  # It has no need to wait for that, and may want to be with it.
        bounds = [self._node_bound(node, given_up, leaving), *self._bounds]
        chosen = self._choose(node, bounds, leaving)
        if chosen is None:
            return None
        bounds = [bound.copy(chosen) for bound in bounds]
        cleared = self._clear(node, bounds, (*leaving, *chosen), self.weaker if self._far_matter else weaker)
        victims = tuple(sorted(chosen, key=lambda v: (*rank(v.app.queue, v.priority), -(v.allocated_ms or 0), -v.seq)))
        if not victims and (self._keeps_hold or not (cleared or (self.may_stop and (leaving or self._waits_above)))):
            return None
        if is_full_too_long(self.partition, ask, node, victims):
            self.candidates.is_late = True
            return None
        violates = self.candidates.violates(victims)
        return Plan(ask, node, victims, leaving, cleared, violates, self._harm(node, victims, cleared, violates))

    def _node_bound(self, node: Node, given_up: Iterable[Ask], leaving: Iterable[Ask]) -> Bound:
        left = {name: node.free.get(name, 0) - amount for name, amount in self.ask.items if amount > 0}
        return Bound(node, left).copy((*given_up, *leaving))

    def _choose(self, node: Node, bounds: list[Bound], leaving: tuple[Ask, ...]) -> dict[Ask, None] | None:
        """What to stop on this node; nothing is fine, None when that does not help.

        Work that is within a guarantee of the ask's own queues goes only for an ask that is within it then: any other
        could lose the room to a third, from which the guarantee takes it back for the first.
        """
        # It may want to be with work that it could stop: where it fits beside that, none goes.
        if all(bound.is_kept for bound in bounds) and self._suits(node, leaving):
            return {}
        if not self.may_stop:
            return None
        chosen = self._chosen(node, bounds, leaving, among_own=False)
        own = self.candidates.own_guarantees()
        if chosen is None and own:
            chosen = self._chosen(node, [*bounds, *own], leaving, among_own=True)
        return chosen

    def _chosen(
        self, node: Node, bounds: list[Bound], leaving: tuple[Ask, ...], among_own: bool
    ) -> dict[Ask, None] | None:
        """The same, with work that is within a guarantee of the ask's own queues, or without."""
        candidates, passed_over = self.candidates.on(node, among_own)
        chosen = self._reprieved(node, bounds, leaving, candidates)
        most: dict[Queue, int] = {}
        while chosen and (over := overdrawn(self.partition, chosen)):
            # These queues would lose more than they may: only so many of their lowest are candidates at all.
            most |= over
            fewer = within(most, reversed(candidates))
            chosen = self._reprieved(node, bounds, leaving, fewer[::-1])
            passed_over = [*passed_over, *(v for v in candidates if v not in fewer)]
        if chosen is not None or not passed_over:
            return chosen
        work = dict.fromkeys(candidates, True) | dict.fromkeys(passed_over, False)
        return self._with_one_of(work, node, bounds, leaving, among_own)

    def _with_one_of(
        self, work: dict[Ask, bool], node: Node, bounds: list[Bound], leaving: tuple[Ask, ...], among_own: bool
    ) -> dict[Ask, None] | None:
        """The first of this work that was passed over (False) and is enough, by itself or with lower work, else with
        any: all of that together uses up what its queue may lose. Where only room counts, one of a leaf stands for all
        of its size.
        """
        if not all(bound.copy(work).is_kept for bound in bounds):
            return None
        in_order = self.candidates.lowest_first(work)
        only_room = self._only_room_counts(node)
        for with_higher in (False, True):
            tried: set[tuple[object, ...]] = set()
            for place, victim in enumerate(in_order):
                alike = (victim.app.queue, victim.items) if only_room else (victim,)
                if work[victim] or alike in tried or (with_higher and len(tried) == TOGETHER_MAX):
                    continue
                tried.add(alike)
                others = in_order[:place] if len(tried) <= TOGETHER_MAX else []
                others += in_order[place + 1 :] if with_higher else []
                beside = self.candidates.beside(victim, others, among_own)
                chosen = self._reprieved(node, bounds, leaving, [*beside[:1], *beside[:0:-1]])
                if chosen:
                    return chosen
        return None

    def _reprieved(
        self, node: Node, bounds: list[Bound], leaving: tuple[Ask, ...], candidates: list[Ask]
    ) -> dict[Ask, None] | None:
        """Take all candidates, then give back each without which it still fits; None when it never does."""
        bounds = [bound.copy(candidates) for bound in bounds]
        chosen = dict.fromkeys(candidates)
        if not all(bound.is_kept for bound in bounds) or not self._suits(node, (*leaving, *chosen)):
            return None
        for spared in candidates:
            held = [bound for bound in bounds if bound.holds(spared)]
            del chosen[spared]
            if all_let(held, spared) and self._suits(node, (*leaving, *chosen)):
                for bound in held:
                    bound.add(spared, -1)
            else:
                chosen[spared] = None
        return chosen

    def _suits(self, node: Node, gone: Collection[Ask]) -> bool:
        """Whether the node suits it, room apart; nothing that is promised to weaker asks is in the way."""
        return self._only_room_counts(node) or self.partition.nodes.suits(self.ask, node, (*gone, *self.weaker))

    def _only_room_counts(self, node: Node) -> bool:
        return self.plain and not node.keeps_away

    def _clear(self, node: Node, bounds: list[Bound], gone: Collection[Ask], weaker: list[Ask]) -> tuple[Ask, ...]:
        """The nominated asks that have to go: all weaker ones, save those that fit beside it, the highest first."""
        cleared: list[Ask] = []
        root, of_nodes = self.partition.root, nominations.kept_of_nodes(self.partition)
        yielding = dict.fromkeys(weaker)
        for nominee in sorted(weaker, key=lambda a: (*(-v for v in rank(a.app.queue, a.priority)), a.seq)):
            held = [b for b in bounds if b.holds(nominee) and (b.place is not root or nominee in of_nodes)]
            del yielding[nominee]
            if (
                all_let(held, nominee)
                and nominations.limit_short_of_kept(self.partition, self.ask, tuple(yielding)) is None
                and may_run(self.ask.app, Counter(a.app for a in yielding))
                and (self.plain or self.partition.nodes.suits(self.ask, node, (*gone, *yielding)))
            ):
                for bound in held:
                    bound.add(nominee, -1)
            else:
                yielding[nominee] = None
                cleared.append(nominee)
        return tuple(cleared)

    # -- harm -----------------------------------------------------------------------------------------------------

    def _harm(
        self, node: Node, victims: tuple[Ask, ...], cleared: tuple[Ask, ...], violates: dict[Ask, tuple[str, ...]]
    ) -> Harm:
        """Order of plans: 1. fewest victims beyond a budget, 2. lowest highest victim, 3. smaller sum of priorities,
        4. fewest victims, 5. fewest nominations taken away, 6. least run time lost and 7. latest start, of the highest
        victims, 8. node id.

        The sum takes priorities as they are seen at the root, those below 0 as 0: one more victim is never less harm.
        """
        broken = sum(1 for names in violates.values() if names)
        ranks = [rank(v.app.queue, v.priority) for v in victims]
        highest: tuple[int, ...] = max(ranks, default=())
        top = [v for v, place in zip(victims, ranks, strict=True) if place == highest]
        lost = max((lost_ms(v, self.partition.now_ms) for v in top), default=0)
        start = min((v.allocated_ms or 0 for v in top), default=0)
        total = sum(max(at_root, 0) for at_root, _ in ranks)
        return (broken, highest, total, len(victims), len(cleared), lost, -start, node.id)
