"""The plan of a preemption by priority: on which node, whom to stop, and who loses a nomination for it.

Decides for one waiting ask. A node is a candidate when the ask would fit there, with every filter, without all work
that stands strictly below it; then as many as possible are given back, and of all nodes the one with the least harm is
taken. Never takes more than needed, never plans what `nominate` could not carry out. Invariant: searching changes
nothing but the memory of loops that it reports.

Given back first: 1. whose budget would be violated, 2. higher priority, 3. who would rather not, 4. who would lose more
run time, 5. started earlier, 6. arrived earlier.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core import claims
from fairlead.core.budgets import violated
from fairlead.core.idle import payer
from fairlead.core.lifecycle import State
from fairlead.core.promises import is_promised
from fairlead.policy.limits import may_run
from fairlead.policy.overdue import is_stuck
from fairlead.policy.protection import is_spared, look_again, overdrawn, protected_ms, within
from fairlead.policy.stoppable import leaves_for_others, rank_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from fairlead.core.applications import Ask
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.core.trackers import Ceiling
    from fairlead.policy.standing import Rank, Reach
    from fairlead.policy.stoppable import Group, Level, Need, Stoppable

NODES_MAX = 64
"""Nodes looked at closely for one ask once there is a plan; up to so many nodes the plan is the best of all."""
Book = dict[str, int]
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

    def is_best_above(self, place: tuple[int, ...]) -> bool:
        """Whether no plan whose highest victim is above this rank can be better."""
        broken, highest = self.harm[:2]
        return broken == 0 and highest <= place


class Bound:
    """Something that the ask has to fit into beside what stays: a node, or a queue's maximum."""

    __slots__ = ("left", "place")

    def __init__(self, place: Node | Queue, left: Book) -> None:
        self.place = place
        self.left = left
        """What is over; below 0: missing."""

    @property
    def is_kept(self) -> bool:
        """Whether nothing is missing."""
        return all(amount >= 0 for amount in self.left.values())

    def holds(self, ask: Ask) -> bool:
        """Whether this ask, running or nominated, takes its room from here."""
        return self.place in payer(ask).lineage or self.place in (ask.node, ask.held_on)

    def add(self, ask: Ask, sign: int) -> None:
        """The ask gives its room back (1) or takes it (-1)."""
        left = self.left
        for name, amount in ask.items:
            if name in left:
                left[name] += sign * amount

    def lets(self, ask: Ask) -> bool:
        """Whether the ask could take its room again without anything being missing."""
        left = self.left
        return all(amount <= left[name] for name, amount in ask.items if name in left)


class Search:
    """What is worked out once for all nodes when one ask looks for a plan."""

    def __init__(
        self,
        partition: Partition,
        ask: Ask,
        reach: Reach,
        weaker: list[Ask],
        budgets_left: Book,
        ranks: dict[Group, Rank],
    ) -> None:
        self.partition, self.ask, self.reach = partition, ask, reach
        self.weaker = weaker
        """Nominated asks whose space it may take."""
        self.budgets_left, self.ranks = budgets_left, ranks
        self.may_stop = ask.spec.allow_preempt_other
        self._keeps_hold = ask.held_on is not None and not is_stuck(ask)
        """It holds space that it will not give up unless somebody has to stop for it elsewhere."""
        self._overdrawn = bool(weaker or partition.holds) and claims.is_overdrawn(partition)
        self._freed: dict[Queue | Ceiling, Book] = {}
        given_up = weaker if ask.held_on is None else [*weaker, ask]
        for nominee in given_up:
            sums = (partition.root,) if self._overdrawn and is_promised(partition.nodes, nominee) else ()
            for place in (*partition.disruption.keeps(nominee), *sums):
                book = self._freed.setdefault(place, {})
                for name, amount in nominee.items:
                    book[name] = book.get(name, 0) + amount
        self.has_history = partition.disruption.has_history(ask)
        self._weaker_on: dict[Node, list[Ask]] = {}
        for nominee in given_up:
            assert nominee.held_on is not None
            self._weaker_on.setdefault(nominee.held_on, []).append(nominee)
        self._bounds = self._binding_bounds()
        limited = bool(given_up) and (ask.app.allowance is not None or ask.app.state is State.ACCEPTED)
        self.plain = ask.shape is not None and ask.shape.is_plain and not partition.nodes.terrain.wary
        choosy = bool(partition.holds) and not self.plain
        self._is_common = not (self.has_history or budgets_left or self._bounds or limited or choosy)
        self._far_matter = bool(self._bounds) or limited or choosy
        """Whether nominations on other nodes may be in the way too: because of a queue or limit, or to keep apart."""

    # -- limits and queues ----------------------------------------------------------------------------------------

    def is_within_limits(self) -> bool:
        """Whether the limits of its user and group leave room, beside what nominated asks will need."""
        allowance = self.ask.app.allowance
        if allowance is None:
            return True
        for ceiling in allowance.ceilings:
            kept, freed = self.partition.disruption.kept.get(ceiling, {}), self._freed.get(ceiling, {})
            limit = ceiling.max or {}
            for name, amount in self.ask.items:
                used = ceiling.used.get(name, 0) + kept.get(name, 0) - freed.get(name, 0)
                if name in limit and used + amount > limit[name]:
                    return False
        return True

    def queue_bounds(self) -> list[Bound]:
        """The maxima that matter, for one node to be tried with."""
        return [Bound(bound.place, dict(bound.left)) for bound in self._bounds]

    def _is_common_on(self, node: Node) -> bool:
        """Whether its equals would find the same on a node as long as nothing changes there."""
        return self._is_common and node not in self._weaker_on

    def _binding_bounds(self) -> list[Bound]:
        """The maxima from the leaf to the root for which work, or a nomination, has to go.

        Each with what it leaves once all that was told to stop is gone.
        """
        kept = self.partition.disruption.kept
        bounds = []
        for queue in self.ask.app.queue.lineage:
            is_root = queue.parent is None
            most = self.partition.nodes.total if is_root else queue.max
            if most is None:
                continue
            promised = claims.promised(self.partition, queue) if is_root else kept.get(queue, {})
            freed = self._freed.get(queue, {})
            left = {}
            for name, amount in self.ask.items:
                if amount > 0 and (is_root or name in most):
                    used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0)
                    used += promised.get(name, 0) - freed.get(name, 0)
                    left[name] = most.get(name, 0) - used - amount
            if any(amount - freed.get(name, 0) < 0 for name, amount in left.items()):
                bounds.append(Bound(queue, left))
        return bounds

    # -- nodes ----------------------------------------------------------------------------------------------------

    def best(self, table: Stoppable, known: dict[Node, Plan | None]) -> Plan | None:
        """The plan with the least harm, or None. `known`: what was found out for an equal ask on unchanged nodes.

        Nodes on which work is overdue come last: what is stopped there may not leave either.
        """
        if not self.is_within_limits():
            return None
        avoided = {a.node: None for a in self.partition.disruption.overdue if a.node is not None}
        found = self._best_but_on(avoided, False, table, known)
        return found if found is not None or not avoided else self._best_but_on(avoided, True, table, known)

    def _best_but_on(
        self, avoided: Collection[Node], wanted: bool, table: Stoppable, known: dict[Node, Plan | None]
    ) -> Plan | None:
        """The best plan on nodes that are avoided, or on those that are not."""
        looked_at: set[Node] = set()
        found: Plan | None = None
        for place, level in self._levels(table):
            for node in level:
                if node in looked_at or (node in avoided) is not wanted:
                    continue
                if self.ask.required_node and node.id != self.ask.required_node:
                    continue
                if found is not None and len(looked_at) >= NODES_MAX:
                    break
                looked_at.add(node)
                plan = self._known_on(node, known)
                if plan is not None and (found is None or plan.harm < found.harm):
                    found = plan
            if found is not None and (found.is_best_above(place) or len(looked_at) >= NODES_MAX):
                break
        return found

    def _known_on(self, node: Node, known: dict[Node, Plan | None]) -> Plan | None:
        common = self._is_common_on(node)
        if common and node in known:
            return known[node]
        plan = self.on_node(node)
        if common and (plan is None or not any(_is_capped(v) for v in plan.victims)):
            known[node] = plan
        return plan

    def _levels(self, table: Stoppable) -> Iterator[Level]:
        """The nodes worth a look, the least harm first. The space of nominations that may go counts as free."""
        table.keep_up(self.partition)
        needs: list[Need] = [table.need(name, amount, self._weaker_on) for name, amount in self.ask.items if amount > 0]
        for bound in self._bounds:
            for name, left in bound.left.items():
                if left < 0:
                    assert bound.place is not None
                    needs.append(table.need_within(name, -left, bound.place))  # type: ignore[arg-type]
        levels = table.by_level(self.reach, needs, self.ranks)
        yield next(levels)
        if self.may_stop:
            yield from levels

    def on_node(self, node: Node) -> Plan | None:
        """The plan for this node, or None when the ask would not fit there."""
        ask = self.ask
        if not node.is_open or not node.fits_total(ask.items):
            return None
        if self.has_history and self._is_barred(node):
            return None
        given_up = self._weaker_on.get(node, [])
        weaker = [a for a in given_up if a is not ask]
        leaving = tuple(a for a in node.allocations if leaves_for_others(a))
        bounds = [self._node_bound(node, given_up, leaving), *self.queue_bounds()]
        chosen = self._choose(node, bounds, leaving)
        if chosen is None:
            return None
        cleared = self._clear(node, bounds, (*leaving, *chosen), self.weaker if self._far_matter else weaker)
        victims = tuple(sorted(chosen, key=lambda v: (*self._rank(v), -(v.allocated_ms or 0), -v.seq)))
        if not victims and (self._keeps_hold or not (cleared or (self.may_stop and leaving))):
            return None
        violates = self._violates(victims)
        return Plan(ask, node, victims, leaving, cleared, violates, self._harm(node, victims, cleared, violates))

    def _is_barred(self, node: Node) -> bool:
        until_ms = self.partition.disruption.barred_until(self.ask, node, self.partition.now_ms)
        if until_ms is None:
            return False
        look_again(self.partition, until_ms)
        return True

    def _node_bound(self, node: Node, given_up: Iterable[Ask], leaving: Iterable[Ask]) -> Bound:
        bound = Bound(node, {name: node.free.get(name, 0) - amount for name, amount in self.ask.items if amount > 0})
        for other in (*given_up, *leaving):
            bound.add(other, 1)
        return bound

    def _choose(self, node: Node, bounds: list[Bound], leaving: tuple[Ask, ...]) -> dict[Ask, None] | None:
        """Whom to stop on this node; nobody is fine, None when that does not help."""
        candidates = self._candidates(node) if self.may_stop else []
        chosen = self._reprieved(node, bounds, leaving, candidates)
        over = overdrawn(self.partition, chosen) if chosen else {}
        if not over:
            return chosen
        # A queue would lose more than it may: only so many of its lowest are candidates at all.
        fewer = within(over, reversed(candidates))
        for bound in bounds:
            for victim in chosen or ():
                if bound.holds(victim):
                    bound.add(victim, -1)
        chosen = self._reprieved(node, bounds, leaving, fewer[::-1])
        return None if chosen and overdrawn(self.partition, chosen) else chosen

    def _candidates(self, node: Node) -> list[Ask]:
        """Work on the node that may be stopped, whoever is to be given back first coming first."""
        reach, now = self.reach, self.partition.now_ms
        found = [
            a
            for a in node.allocations
            if a.evict_cause is None
            and a.priority < reach.below(a.app.queue)
            and not ((self.has_history or protected_ms(a)) and is_spared(self.partition, self.ask, a))
        ]
        found.sort(key=lambda a: self._importance(a, now))
        if self.budgets_left and found:
            budgets = self.partition.admission.budgets
            broken = violated(self.budgets_left, ((a, budgets.protecting(a)) for a in found))
            found.sort(key=lambda a: not broken[a])
        return found

    def _importance(self, ask: Ask, now_ms: int) -> tuple[object, ...]:
        at_root, own = self._rank(ask)
        unwilling = ask.spec.originator or not ask.spec.allow_preempt_self
        return (-at_root, -own, not unwilling, -lost_ms(ask, now_ms), ask.allocated_ms or 0, ask.seq)

    def _rank(self, ask: Ask) -> Rank:
        return rank_of(self.ranks, (ask.app.queue, ask.priority))

    def _reprieved(
        self, node: Node, bounds: list[Bound], leaving: tuple[Ask, ...], candidates: list[Ask]
    ) -> dict[Ask, None] | None:
        """Take all candidates, then give back everybody without whom it still fits; None when it never does.

        When it works, the bounds are left as they are once the chosen ones are gone.
        """
        on_all = len(bounds) == 1
        places = {v: bounds if on_all else [bound for bound in bounds if bound.holds(v)] for v in candidates}
        for victim, held in places.items():
            for bound in held:
                bound.add(victim, 1)
        chosen = dict.fromkeys(candidates)
        if not all(bound.is_kept for bound in bounds) or not self._suits(node, (*leaving, *chosen)):
            for victim, held in places.items():
                for bound in held:
                    bound.add(victim, -1)
            return None
        for spared, held in places.items():
            del chosen[spared]
            if all(bound.lets(spared) for bound in held) and self._suits(node, (*leaving, *chosen)):
                for bound in held:
                    bound.add(spared, -1)
            else:
                chosen[spared] = None
        return chosen

    def _suits(self, node: Node, gone: Collection[Ask]) -> bool:
        """Whether the node suits it, room apart; nothing that is promised to weaker asks is in the way."""
        if self.plain:
            return not node.keeps_away or self.partition.nodes.suits(self.ask, node, gone)
        return self.partition.nodes.suits(self.ask, node, (*gone, *self.weaker))

    def _clear(self, node: Node, bounds: list[Bound], gone: Collection[Ask], weaker: list[Ask]) -> tuple[Ask, ...]:
        """The nominated asks that have to go: all weaker ones, save those that fit beside it, the highest first."""
        cleared: list[Ask] = []
        yielding = dict.fromkeys(weaker)
        for nominee in sorted(weaker, key=lambda a: (*(-v for v in self._rank(a)), a.seq)):
            held = [bound for bound in bounds if bound.holds(nominee)]
            if not self._overdrawn:
                held = [bound for bound in held if bound.place is not self.partition.root]
            del yielding[nominee]
            if (
                all(bound.lets(nominee) for bound in held)
                and self._limits_let(nominee, cleared)
                and may_run(self.ask.app, Counter(a.app for a in yielding))
                and (self.plain or self.partition.nodes.suits(self.ask, node, (*gone, *yielding)))
            ):
                for bound in held:
                    bound.add(nominee, -1)
            else:
                yielding[nominee] = None
                cleared.append(nominee)
        return tuple(cleared)

    def _limits_let(self, nominee: Ask, cleared: list[Ask]) -> bool:
        """Whether the limits that both are under have room for the two of them."""
        allowance, mine = nominee.app.allowance, self.ask.app.allowance
        if allowance is None or mine is None:
            return True
        for ceiling in mine.ceilings:
            if ceiling not in allowance.ceilings:
                continue
            limit = ceiling.max or {}
            kept = self.partition.disruption.kept.get(ceiling, {})
            for name, amount in self.ask.items:
                gone = sum(dict(a.items).get(name, 0) for a in cleared)
                if name in limit and ceiling.used.get(name, 0) + kept.get(name, 0) - gone + amount > limit[name]:
                    return False
        return True

    # -- harm -----------------------------------------------------------------------------------------------------

    def _violates(self, victims: tuple[Ask, ...]) -> dict[Ask, tuple[str, ...]]:
        if not self.budgets_left:
            return {}
        budgets = self.partition.admission.budgets
        return violated(self.budgets_left, ((v, budgets.protecting(v)) for v in victims))

    def _harm(
        self,
        node: Node,
        victims: tuple[Ask, ...],
        cleared: tuple[Ask, ...],
        violates: dict[Ask, tuple[str, ...]],
    ) -> Harm:
        """Order of plans: 1. fewest victims beyond a budget, 2. lowest highest victim, 3. smaller sum of priorities,
        4. fewest victims, 5. fewest nominations taken away, 6. least run time lost and 7. latest start, of the highest
        victims, 8. node id.

        The sum takes priorities as they are seen at the root, those below 0 as 0: one more victim is never less harm.
        """
        broken = sum(1 for names in violates.values() if names)
        if not victims:
            return (broken, (), 0, 0, len(cleared), 0, 0, node.id)
        ranks = [self._rank(v) for v in victims]
        highest = max(ranks)
        top = [v for v, place in zip(victims, ranks, strict=True) if place == highest]
        lost = max(lost_ms(v, self.partition.now_ms) for v in top)
        start = min(v.allocated_ms or 0 for v in top)
        total = sum(max(at_root, 0) for at_root, _ in ranks)
        return (broken, highest, total, len(victims), len(cleared), lost, -start, node.id)


def _is_capped(victim: Ask) -> bool:
    """Whether some queue above it counts its evictions."""
    return any(queue.properties.preemption_evictions_max is not None for queue in victim.app.queue.lineage)


def lost_ms(ask: Ask, now_ms: int) -> int:
    """The run time that is lost when the work is stopped now: since it started, or last said that all is saved."""
    return now_ms - max(ask.allocated_ms or 0, ask.checkpoint_ms or 0)
