"""Idle work: where it starts, and which of it gives back what it borrowed; every set of it is tried.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from reference.plain_line import Amount, Work
from reference.plain_room import Plan, Room


class Idle(Room):
    """What borrows, and gives back."""

    def _room_for_idle(self, work: Work) -> str:
        """The first node in order with room that nobody is kept; no maximum below its group counts."""
        if not self._is_allowed(work) or not self._may_begin(work):
            return ""
        group = self._group(work.gang.job.queue)
        if any(self._is_full(path, work) or self._lacks(path, work, []) for path in self._lineage(group)):
            return ""
        fits = [n for n in self.nodes if self._has_room(work, n, lambda w: w is not work)]
        return self._first_of(work, fits)

    def _plan_of(self, work: Work) -> Plan | None:
        """Idle work goes first, whatever its priority, where that alone is enough, and the gang can be whole."""
        plan = self._idle_plan(work)
        if plan is None or (plan.victims and work.is_holder and not self._could_be_whole(work.gang)):
            return self._plan(work)
        return plan

    def _idle_plan(self, work: Work) -> Plan | None:
        if not self._may_begin(work) or self._is_too_large(work):
            return None
        group = self._group(work.gang.job.queue)
        below = [path for path in self._lineage(work.gang.job.queue) if not f"{group}.".startswith(f"{path}.")]
        if any(self._is_full(path, work) or self._lacks(path, work, []) for path in below):
            return None
        if not any(w.task.idle for w in self.running):
            return None
        idle = [w for w in self.running if w.task.idle and not w.leaving]
        idle = [w for w in idle if not (w.began > work.number and w.began > self.changed)]
        own = [w for w in idle if self._within(group, w.gang)]
        plan = self._idle_plan_of(work, own, [])
        if plan is None and len(own) < len(idle) and not work.task.meek and self._is_within_due(work):
            others = [w for w in idle if w not in own and self._may_take_from(work, w) and not self._is_spared(w, work)]
            plan = self._idle_plan_of(work, own, others)
        return plan

    def _is_spared(self, victim: Work, work: Work) -> bool:
        if self._is_new(victim):
            self._looks_again(victim.start_ms + self._least_ms(victim))
            return True
        return self.pairs.get((work.name, victim.name)) == self.news

    def _is_within_due(self, work: Work) -> bool:
        """Whether it is within what its queue is guaranteed, beside what runs and is kept there."""
        leaf = work.gang.job.queue
        left = self._left_of_due(work, leaf)
        sizes = dict(work.task.amount)
        return any(name in left for name in sizes) and all(v <= left.get(n, v) for n, v in sizes.items())

    def _left_of_due(self, work: Work, path: str) -> Amount:
        """What guarantees leave from the root down to a queue on its way: a nearer one of its own leaf takes the place
        of those above.
        """
        leaf = work.gang.job.queue
        if path == "root":
            return {}
        above = self._left_of_due(work, path.rpartition(".")[0])
        due = self.queues[path].due
        if not due:
            return above
        if path != leaf and self.queues[leaf].due:
            return {}
        own = {}
        for name, value in due.items():
            own[name] = value - self._used(path, name, leaving=False, idle=False) - self._kept(path, name, work)
        if path == leaf:
            return above | own
        return own | {name: min(value, own.get(name, value)) for name, value in above.items()}

    def _idle_plan_of(self, work: Work, own: list[Work], others: list[Work]) -> Plan | None:
        plans = [plan for node in self.nodes if (plan := self._idle_plan_on(work, node, own, others)) is not None]
        return min(plans, key=lambda p: (*_harm(p.victims), self._fullness(p.node), p.node), default=None)

    def _idle_plan_on(self, work: Work, node: str, own: list[Work], others: list[Work]) -> Plan | None:
        if not self._fits(work, node, self.nodes[node]):
            return None
        above = list(self._lineage(self._group(work.gang.job.queue)))
        idle = self._in_time(work, [*own, *others], node)
        told = self._in_time(work, [w for w in self.running if w.task.idle and w.leaving], node)
        lacks_above = any(self._lacks(path, work, []) for path in above)
        leaves_limit = [w for w in told if self._is_under_full_limit(w, work)]
        gone = list(dict.fromkeys([*(w for w in told if w.node == node), *leaves_limit]))

        def has_all(victims: list[Work]) -> bool:
            has_room = self._has_room(work, node, lambda w: w is not work, (*gone, *victims))
            return has_room and has_room_above(victims)

        def has_room_above(victims: list[Work]) -> bool:
            if any(self._lacks(path, work, victims) for path in above):
                return False
            return self._is_allowed(work, gone=[*told, *victims])

        def has_amounts(victims: list[Work]) -> bool:
            free = self._free(node, lambda w: w is not work)
            for each in (*gone, *victims):
                for name, value in each.task.amount if each.node == node else ():
                    free[name] += value
            return self._fits(work, node, free) and has_room_above(victims)

        is_limited = not self._is_allowed(work, gone=told)
        found = [w for w in idle if w.node == node or lacks_above or is_limited]
        victims = self._cheapest_of(found, others, has_amounts)
        if victims is not None and not has_all(victims):
            # It goes for room; what else is in the way goes too, where the ask could be there without any of it.
            here = [*gone, *(w for w in idle if w.node == node)]
            is_kept_off = self._is_kept_off(work, node, lambda w: w is not work, here)
            victims = None if is_kept_off else self._cheapest_of(found, others, has_all)
        if victims is None or not (victims or gone or self._waits_above(work)):
            return None
        if self._is_full_too_long(work, node, victims):
            return None
        return Plan(node, victims, gone, [], is_loss=False, others=others)

    def _cheapest_of(
        self, found: list[Work], others: list[Work], is_enough: Callable[[list[Work]], bool]
    ) -> list[Work] | None:
        """Of those of other groups no more than their queues may lose within the hour, the newest."""
        most: dict[str, int] = {}
        victims = _cheapest(found, is_enough)
        while victims and (over := self._beyond_losses([w for w in victims if w in others])):
            most |= over
            kept = self._as_many(sorted((w for w in found if w in others), key=_newest), most)
            found = [w for w in found if w in kept or w not in others]
            victims = _cheapest(found, is_enough)
        return victims


def _newest(work: Work) -> tuple[int, int]:
    return (-work.made_ms, -work.number)


def _cheapest(found: list[Work], is_enough: Callable[[list[Work]], bool]) -> list[Work] | None:
    """Of equal harm the one that comes first by priority, run time lost and age."""
    for size in range(len(found) + 1):
        enough = [sorted(some, key=_standing) for some in combinations(found, size) if is_enough(list(some))]
        if enough:
            return min(sorted(enough, key=lambda s: [_standing(w) for w in s]), key=_harm)
    return None


def _standing(work: Work) -> tuple[int, int, int]:
    return (work.task.priority, -work.start_ms, -work.number)


def _harm(victims: list[Work]) -> tuple[int, int, int, int]:
    priorities = [w.task.priority for w in victims]
    start = min((w.start_ms for w in victims), default=0)
    return (len(victims), max(priorities, default=0), sum(priorities), -start)
