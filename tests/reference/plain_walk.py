"""YuniKorn's walk: which ask is next where rank does not decide, and nodes that are set aside for what waited.

Written from the rules in the plainest way: for each placement the whole tree is gone through anew, queue by queue in
order, in each leaf its applications in order, of each its asks. Idle work has no turn: it takes what is left, and gives
it back to what has. What waits for a turn that is kept has none itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reference.plain_beside import Places
from reference.plain_line import NEVER, Gang, Queue, Work
from reference.plain_room import HOUR_MS, Plan
from reference.plain_simulator import Order, PlainSimulator

RESERVE_AFTER_MS = 2_000
"""What waits so long may have a node set aside."""
NOTHING_SAID = Queue()


class Walk(PlainSimulator):
    """The rule `guarantee` where nothing is stopped."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.counts_dues = self.is_by_rank = False
        self.let_go_on: tuple[Work, str] | None = None
        """The first placeholder of this walk that let another gang go on, and where it would have started."""
        self.acted_ms = 0
        """When anything was done last, or ended."""

    def _goes_on(self) -> bool:
        looks = self._looks()
        return super()._goes_on() or min(looks, default=NEVER) <= self.acted_ms + HOUR_MS

    def _looks(self) -> list[int]:
        looks = [work.made_ms + RESERVE_AFTER_MS for work in self.waiting if not work.task.idle]
        kept = [work.reserved_ms for work in self.waiting if work.reserved]
        looks += [at_ms + ((self.now_ms - at_ms) // HOUR_MS + 1) * HOUR_MS for at_ms in kept]
        return [at_ms for at_ms in looks if at_ms > self.now_ms]

    def _expires(self) -> None:
        """Each hour a node goes back if the ask has no use for it because of what is above."""
        for work in self.waiting:
            kept_ms = self.now_ms - work.reserved_ms
            if work.reserved and kept_ms and kept_ms % HOUR_MS == 0 and not self._may_start(work):
                self._lets_go(work)

    def _turn(self) -> bool:
        for gang in {work.gang for work in self.waiting} if self._is_bounded() else ():
            self._runs_already(gang)
        self.let_go_on, self.has_moved = None, False
        if not self.nodes:
            return False  # Nothing has its turn, nor tries to have work stopped.
        if self._takes_kept():
            self.acted_ms = self.now_ms
            return True
        before = self._kept_for_turns()
        is_open_to_more = self._keep_turns() or before != self._kept_for_turns()
        self.has_moved = self.has_moved or is_open_to_more
        self._drops_useless()
        if self._takes_kept() or self._takes_reserved() or self._takes_back_first() or self._below("root"):
            self.acted_ms = self.now_ms
            return True
        if self.let_go_on is not None:
            self._placed(*self.let_go_on)
        return self.has_moved or self.let_go_on is not None

    def _kept_for_turns(self) -> list[tuple[object, ...]]:
        return [(w, limit, w.kept_on, w.reserved) for w, limit in self.turns.items()]

    def _give_turns(self, path: str) -> None:
        """No node is set aside for what waits for a turn."""
        super()._give_turns(path)
        of_leaf = (w for w in self.waiting if w.reserved and w.gang.job.queue == path)
        for work in [w for w in of_leaf if self._waits_for_turn(w)]:
            self._lets_go(work)
            self.has_moved = True

    def _gather(self, work: Work) -> None:
        """Room gathers on the node that is set aside for it, if there is one, and so in the queues above."""
        node = work.reserved
        if not node:
            super()._gather(work)
        elif self._is_worth_it(work) and self._is_of_use(work, node) and not self._misses(work, node):
            leaving = tuple(w for w in work.awaits if w in self.running)
            self._lets_go(work)
            self._gathers_on(work, node)
            work.gathers, work.awaits = not leaving, leaving

    def _open_to(self, work: Work) -> list[str]:
        taken = {w.reserved for w in self.waiting if w is not work}
        return [node for node in self.nodes if node not in taken]

    def _room_for_idle(self, work: Work) -> str:
        """Where no node is set aside."""
        taken = self._set_aside()
        fits = [n for n in self.nodes if n not in taken and self._has_room(work, n, lambda w: True)]
        return self._first_of(work, fits) if super()._room_for_idle(work) else ""

    def _set_aside(self) -> set[str]:
        return {w.reserved for w in self.waiting}

    # -- room that is kept for what takes it back from idle work -------------------------------------------------------

    def _takes_kept(self) -> bool:
        """The first for which room is kept that can start does; where nothing leaves any more that it waits for, it is
        in line again.
        """
        for work in sorted((w for w in self.waiting if w.kept_on), key=lambda w: w.kept_since):
            wanted = self._room_of_kept(work)
            if wanted and (node := self._stays_on(work, wanted)):
                self._placed(work, node)
                return True
            if not wanted and not work.gathers and not self._something_leaves(work):
                work.kept_on, self.has_moved = "", True
        return False

    def _goes_before(self, other: Work, work: Work) -> bool:
        return other is not work and other.kept_since < work.kept_since

    def _room_of_kept(self, work: Work) -> str:
        kept = [w for w in self.waiting if w.kept_on and w is not work]
        behind = [w for w in kept if not self._goes_before(w, work) or (w.gathers and not work.gathers)]
        if not self._is_allowed(work, behind) or not self._may_begin(work):
            return ""
        lineage = list(self._lineage(work.gang.job.queue))
        if any(self._is_full(path, work) or self._lacks(path, work, behind) for path in lineage):
            return ""
        if self._has_room(work, work.kept_on, lambda w: self._goes_before(w, work)):
            return work.kept_on
        gathering = [w for w in kept if w.gathers]
        if not work.gathers and any(self._lacks(path, work, gathering) for path in lineage):
            return ""
        taken = self._set_aside()
        fits = [n for n in self.nodes if n not in taken and self._has_room(work, n, lambda w: w is not work)]
        return self._first_of(work, fits)

    def _has_promise(self, work: Work) -> bool:
        """Whether work was stopped for it, and room is kept where that leaves."""
        return work.kept_on != "" and not work.gathers

    def _takes_back(self, work: Work) -> bool:
        """Idle work is told to stop for it, or what leaves is kept for it."""
        if work.has_made_room and work.reserved:
            return False
        plan = self._idle_plan(work)
        if plan is None:
            return False
        self._lets_go(work)
        for victim in plan.victims:
            self._tell(victim, work.key)
            if victim in plan.others:
                self.lost = [*self.lost, (self.now_ms, victim.gang.job.queue)]
                self.pairs = {**self.pairs, (work.name, victim.name): self.news}
        work.kept_on, work.kept_since, work.gathers = plan.node, next(self.numbers), False
        work.awaits = (*plan.victims, *plan.leaving)
        self.has_moved = True
        return True

    def _takes_back_first(self) -> bool:
        """Idle work makes room for what has its turn kept before anything is done for others."""
        for leaf in self._leaves_below("root") if self.turns else ():
            for work in [w for gang in self._jobs_of(leaf) for w in self._asks_of(gang) if w in self.turns]:
                may_claim = work.gang.waits_for is None and not self._waits_for_turn(work) and self._may_begin(work)
                if may_claim and not self._room_for(work) and self._takes_back(work):
                    return True
        return False

    def _is_within_due(self, work: Work) -> bool:
        """Preemption is off: other groups give nothing back."""
        return False

    def _idle_plan_on(self, work: Work, node: str, own: list[Work], others: list[Work]) -> Plan | None:
        is_taken = any(w.reserved == node and w is not work for w in self.waiting)
        return None if is_taken else super()._idle_plan_on(work, node, own, others)

    def _with_a_turn(self) -> list[Work]:
        """What has a turn: idle work has none, nor has what has room kept for it."""
        return [w for w in self.waiting if not (w.task.idle or self._has_promise(w))]

    # -- the order ----------------------------------------------------------------------------------------------------

    def _said_of(self, path: str) -> Queue:
        return self.queues.get(path, NOTHING_SAID)

    def _children(self, path: str) -> list[str]:
        """Those below it in which anything waits, in order."""
        waiting = [w for w in self._with_a_turn() if self._within(path, w.gang)]
        below = {each for each in self.queues if each.rpartition(".")[0] == path}
        return sorted((q for q in below if any(self._within(q, w.gang) for w in waiting)), key=self._place_of_queue)

    def _place_of_queue(self, path: str) -> tuple[object, ...]:
        waiting, parent = [w for w in self.waiting if self._within(path, w.gang)], path.rpartition(".")[0]
        priority = -max(self._seen(w, parent) for w in waiting if not w.task.idle)
        pending = sum(value for w in waiting for _, value in w.task.amount)
        share, last = self._share(path), (-pending, list(self.queues).index(path))
        first = (share, priority) if self._said_of(parent).ignores_priority else (priority, share)
        return (*first, *last)

    def _jobs_of(self, leaf: str) -> list[Gang]:
        waiting = {w.gang for w in self._with_a_turn() if w.gang.job.queue == leaf}
        return sorted(waiting, key=self._place_of_job)

    def _place_of_job(self, gang: Gang) -> tuple[object, ...]:
        queue, asks = self._said_of(gang.job.queue), self._asks_of(gang)
        is_ahead = asks[0].is_retried
        all_of_it = [w.task.priority for w in self.waiting if w.gang is gang and not w.task.idle]
        priority = -asks[0].task.priority if is_ahead else -max(all_of_it)
        shares = self._usage(gang) if queue.is_fair and not is_ahead else ()
        first: tuple[object, ...] = (priority, shares)
        if queue.ignores_priority and not is_ahead:
            first = (shares, priority) if queue.is_fair else (gang.job.at_ms, gang.number, priority)
        return (not is_ahead, *first, gang.job.at_ms, gang.number)

    def _usage(self, gang: Gang) -> tuple[float, ...]:
        """Its shares of what its queue is guaranteed, the largest first; of what is not guaranteed the amounts."""
        used: Counter[str] = Counter()
        for work in self.running:
            if work.gang is gang and not work.is_holder:
                used.update(dict(work.task.amount))
        due = self._said_of(gang.job.queue).due or {}
        return tuple(sorted((value / due.get(name, 1) for name, value in used.items()), reverse=True))

    def _asks_of(self, gang: Gang) -> list[Work]:
        return sorted((w for w in self._with_a_turn() if w.gang is gang), key=_place_in_job)

    # -- the walk -----------------------------------------------------------------------------------------------------

    def _below(self, path: str) -> bool:
        """The first that can do anything does it."""
        if path in {work.gang.job.queue for work in self._with_a_turn()}:
            return self._in_leaf(path)
        return any(self._below(child) for child in self._children(path))

    def _in_line_of(self, leaf: str) -> Iterator[Work]:
        behind = any(work.takes_over for work in self.running)
        for gang in self._jobs_of(leaf):
            for work in self._asks_of(gang) if gang.waits_for is None else ():
                if self._waits_for_turn(work):
                    continue
                if not (behind and self._is_behind_holders(work)) and self._may_begin(work):
                    yield work

    def _in_leaf(self, leaf: str) -> bool:
        for work in self._in_line_of(leaf):
            if not self._is_allowed(work):
                if self._takes_back(work):
                    return True
                continue
            node = self._room_for(work)
            if node and self._lets_another_go_on(work):
                self.let_go_on = self.let_go_on or (work, node)
                return False
            if node:
                self._placed(work, node)
                return True
            if self._takes_back(work):
                return True
            is_full = self._is_full_above(work)
            if not is_full and self._sets_aside(work):
                return True
            if self._makes_room(work, is_full=is_full):
                return True
        return False

    def _makes_room(self, work: Work, *, is_full: bool) -> bool:
        """Whether work was told to stop for it; `is_full`: a maximum is in its way."""
        return False

    def _is_full_above(self, work: Work) -> bool:
        lineage = list(self._lineage(work.gang.job.queue))
        is_kept = any(w.kept_on for w in self.waiting)
        return any(self._is_full(path, work) or (is_kept and self._lacks(path, work, [])) for path in lineage)

    def _may_start(self, work: Work) -> bool:
        """Whether nothing above the nodes is in its way."""
        return self._is_allowed(work) and self._may_begin(work) and not self._is_full_above(work)

    def _room_for(self, work: Work) -> str:
        if not self._may_start(work):
            return ""
        taken = {w.reserved for w in self.waiting}
        fits = [n for n in self.nodes if n not in taken and self._has_room(work, n, lambda w: True)]
        return self._first_of(work, fits)

    # -- nodes that are set aside -------------------------------------------------------------------------------------

    def _takes_reserved(self) -> bool:
        """The first with a node of its own that can start there, or elsewhere; of one job there before elsewhere."""
        for leaf in self._leaves_below("root"):
            for gang in self._jobs_of(leaf):
                ready = [w for w in self._asks_of(gang) if w.reserved and gang.waits_for is None]
                ready = [w for w in ready if self._may_start(w) and not self._waits_for_turn(w)]
                found = [(w, w.reserved) for w in ready if self._has_room(w, w.reserved, lambda w: True)]
                found += [(w, node) for w in ready if (node := self._room_for(w))]
                for work, wanted in found:
                    if node := self._stays_on(work, wanted):
                        self._placed(work, node)
                        return True
        return False

    def _stays_on(self, work: Work, node: str) -> str:
        """Where it starts, if it has room there."""
        return node

    def _leaves_below(self, path: str) -> Iterator[str]:
        children = self._children(path)
        if not children:
            yield path
        for child in children:
            yield from self._leaves_below(child)

    def _sets_aside(self, work: Work) -> bool:
        """The open node that it would fill most is set aside for it."""
        if work.reserved or work.kept_on or work.made_ms + RESERVE_AFTER_MS > self.now_ms:
            return False
        taken = {w.reserved for w in self.waiting}
        could_be = [n for n, amount in self.nodes.items() if n not in taken and self._fits(work, n, amount)]
        suitable = [n for n in could_be if not self._is_kept_off(work, n, lambda w: True)]
        work.reserved = min(suitable, key=lambda n: (self._left_beside(work, n), self._fullness(n), n), default="")
        work.reserved_ms = self.now_ms
        return work.reserved != ""

    def _drops_useless(self) -> None:
        """A node is not kept for what wants to be with work that has ended there."""
        for work in [w for w in self.waiting if w.reserved and w.task.company.beside and self._may_start(w)]:
            if self._is_useless(work, work.reserved):
                self._lets_go(work)
                self.has_moved = True

    def _is_useless(self, work: Work, node: str) -> bool:
        """Whether nothing that it wants to be with is there, and it is none of that itself."""
        places = Places(list(self.nodes), self.zones, self._is_named)
        is_first = work.task.company.beside in ("", work.task.kind)
        return not is_first and not places.is_beside(work.task, node, [(w.task, w.node) for w in self.running])

    def _lets_go(self, work: Work) -> None:
        """No node is set aside for it any more."""
        work.reserved, work.has_made_room = "", False

    def _left_beside(self, work: Work, node: str) -> float:
        """How much of what is free there it would leave, as a sum of parts."""
        free, asked = self._free(node, lambda w: True), dict(work.task.amount)
        return sum(max(left - asked.get(name, 0), 0) / left for name, left in sorted(free.items()) if left > 0)

    def _placed(self, work: Work, node: str, *, passes: bool = False) -> None:
        self._lets_go(work)
        super()._placed(work, node, passes=passes)

    def _strikes(self, node: str) -> None:
        super()._strikes(node)
        self._gives_nodes_back()

    def _obeys(self, order: Order) -> None:
        before = {work: work.gang.job.queue for work in self.waiting}
        super()._obeys(order)
        self.counts_dues = False
        for work in [w for w in self.waiting if before.get(w) != w.gang.job.queue]:
            self._lets_go(work)
        self._gives_nodes_back()

    def _leaves(self, work: Work, *, evicted: bool) -> None:
        super()._leaves(work, evicted=evicted)
        self.acted_ms = self.now_ms

    def _puts_on_hold(self, job: str) -> None:
        super()._puts_on_hold(job)
        for work in [w for w in self.on_hold if w.gang.job.name == job]:
            self._lets_go(work)
            work.tried_ms = -NEVER

    def _gives_nodes_back(self) -> None:
        """What is gone or drained, or became too small, is set aside for none."""
        for work in [w for w in self.waiting if w.reserved]:
            node = work.reserved
            if node not in self.nodes or node in self.drained or not self._holds(node, work):
                self._lets_go(work)

    # -- gangs that hold each other -----------------------------------------------------------------------------------

    def _give_way(self) -> bool:
        freed = super()._give_way()
        for work in [w for w in self.waiting if w.gang.waits_for is not None]:
            self._lets_go(work)
        return freed


def _place_in_job(work: Work) -> tuple[int, bool, int, int]:
    return (-work.task.priority, not work.is_retried, work.made_ms, work.number)
