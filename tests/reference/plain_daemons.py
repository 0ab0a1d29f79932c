"""Work that requires one node (a daemon of it): it takes that node from ordinary asks, and has lesser work stopped.

Written from the rules in the plainest way, as a base for the simulator of `plain_guarantee`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from reference.plain_line import Amount, Work
from reference.plain_walk import Walk


class Daemons(Walk):
    """The rule `guarantee` where preemption is off: for what requires its node work is stopped all the same."""

    def _takes(self, work: Work, node: str) -> bool:
        """That its node is drained keeps nothing off that requires it."""
        is_open = work.task.required == node if work.task.required else node not in self.drained
        return is_open and self._suits(work, node)

    def _room_for(self, work: Work) -> str:
        node = work.task.required
        if not node:
            return super()._room_for(work)
        others = [w for w in self.waiting if w.reserved == node and w.task.required and w is not work]
        if node not in self.nodes or others or not self._may_start(work):
            return ""
        return node if self._has_room(work, node, lambda w: True) else ""

    def _sets_aside(self, work: Work) -> bool:
        """Its node is set aside at once for what requires it, and no more for ordinary asks."""
        node = work.task.required
        if not node:
            return super()._sets_aside(work)
        if work.reserved or node not in self.nodes or not self._fits(work, node, self.nodes[node]):
            return False
        if self._is_useless(work, node):
            return False
        holders = [w for w in self.waiting if w.reserved == node and not w.task.required]
        if holders and self._is_kept_off(work, node, lambda w: True):
            return False
        self._takes_node(work, node)
        work.reserved, work.reserved_ms = node, self.now_ms
        return True

    def _takes_node(self, work: Work, node: str) -> None:
        for other in [w for w in self.waiting if w.reserved == node and not w.task.required and w is not work]:
            self._lets_go(other)

    def _placed(self, work: Work, node: str, *, passes: bool = False) -> None:
        if work.task.required and not work.kept_on:
            self._takes_node(work, node)
        super()._placed(work, node, passes=passes)

    def _gives_nodes_back(self) -> None:
        kept = [w for w in self.waiting if w.task.required and w.reserved in self.nodes]
        before = [(w, w.reserved, w.has_made_room) for w in kept if self._holds(w.reserved, w)]
        super()._gives_nodes_back()
        for work, node, has_made_room in before:
            work.reserved, work.has_made_room = node, has_made_room

    # -- room on the node ---------------------------------------------------------------------------------------------

    def _takes_reserved(self) -> bool:
        if super()._takes_reserved():
            return True
        for work in [w for w in self._in_walk() if w.task.required and w.reserved and self._may_start(w)]:
            node = work.reserved
            if self._takes_kept_room(work, node):
                return True
            if work.has_made_room or self._will_fit(work, node):
                continue
            young = [w for w in self.running if w.began > work.number and w.began > self.changed]
            kept = self._kept_there(node)
            victims = self._to_stop(work, node, spared=young)
            for victim in victims or self._to_stop(work, node, kept, young, leaves=False):
                if victim in kept:
                    victim.kept_on = ""
                else:
                    self._tell(victim, work.key)
                work.has_made_room = self.has_moved = True
        return False

    def _kept_there(self, node: str) -> list[Work]:
        return [w for w in self.waiting if w.kept_on == node]

    def _takes_kept_room(self, work: Work, node: str) -> bool:
        """It starts in room that is kept for others that it could have stopped there: of as few as it takes."""
        found = [w for w in self._kept_there(node) if w.task.priority <= work.task.priority]
        found.sort(key=lambda w: (w.task.priority, -w.number))
        for count in range(1, len(found) + 1):
            if self._fits_without(work, node, [], [], found[:count]):
                for each in found[:count]:
                    each.kept_on = ""
                self._placed(work, node)
                return True
        return False

    def _in_walk(self) -> list[Work]:
        gangs = chain.from_iterable(self._jobs_of(leaf) for leaf in self._leaves_below("root"))
        return [work for gang in gangs for work in self._asks_of(gang)]

    def _stays_on(self, work: Work, node: str) -> str:
        """This node; where one that requires it would stop the ask there at once, the next one where none would."""
        if not self._would_be_stopped(work, node):
            return node
        taken = {w.reserved for w in self.waiting}
        fits = [n for n in self.nodes if n not in taken and self._has_room(work, n, lambda w: True)]
        return self._first_of(work, [n for n in fits if not self._would_be_stopped(work, n)])

    def _would_be_stopped(self, work: Work, node: str) -> bool:
        if work.task.required:
            return False
        others = [w for w in self.waiting if w.task.required == node and w.gang.waits_for is None]
        others = [w for w in others if not self._waits_for_turn(w)]
        for other in [w for w in others if self._may_start(w) and not w.has_made_room]:
            newcomers = [work, *(w for w in self._kept_there(node) if w is not work)]
            if not self._will_fit(other, node, newcomers):
                victims = self._to_stop(other, node, newcomers)
                if any(w is work or w.start_ms == self.now_ms for w in victims):
                    return True
        return False

    def _will_fit(self, work: Work, node: str, newcomers: Sequence[Work] = ()) -> bool:
        """As things are, beside the newcomers, or once what was told to stop has left."""
        leaving = [w for w in self.running if w.node == node and w.leaving]
        return any(self._fits_without(work, node, newcomers, gone, []) for gone in ([], leaving))

    def _to_stop(
        self, work: Work, node: str, newcomers: Sequence[Work] = (), spared: Sequence[Work] = (), *, leaves: bool = True
    ) -> list[Work]:
        """The first that go for it, in order, after which it fits; none where all of them are not enough."""
        leaving = [w for w in self.running if w.node == node and w.leaving and leaves]
        found = [w for w in self.running if w.node == node and not (w.leaving or w.takes_over)]
        found = [w for w in (*found, *newcomers) if not w.task.required and w.task.priority <= work.task.priority]
        found = sorted((w for w in found if w not in spared), key=reluctance)
        for count in range(1, len(found) + 1):
            if self._fits_without(work, node, newcomers, leaving, found[:count]):
                return found[:count]
        return []

    def _fits_without(
        self, work: Work, node: str, newcomers: Sequence[Work], leaving: Sequence[Work], gone: Sequence[Work]
    ) -> bool:
        """Whether it fits beside the newcomers without `gone`, and with what is left of what leaves by others that
        require the node and for which it was told to.
        """
        free, left = self._free(node, lambda w: True), dict[str, int]()
        _add(free, [w for w in newcomers if w.kept_on != node], -1)
        _add(left, leaving, 1)
        holders = [w for w in self.waiting if w.reserved == node and w is not work and w.has_made_room]
        _add(left, holders if left else [], -1)
        for name, value in left.items():
            free[name] = free.get(name, 0) + max(value, 0)
        _add(free, gone, 1)
        has_room = all(value <= free.get(name, 0) for name, value in work.task.amount)
        stays = [w for w in (*leaving, *gone) if w.node]
        return has_room and not self._is_kept_off(work, node, lambda w: w not in gone, stays)


def _add(amounts: Amount, works: Sequence[Work], sign: int) -> None:
    for work in works:
        for name, value in work.task.amount:
            amounts[name] = amounts.get(name, 0) + sign * value


def reluctance(work: Work) -> tuple[bool, int, int, int]:
    """Order of what goes for another reason than a guarantee."""
    return (work.task.unwilling, work.task.priority, -work.made_ms, -work.number)
