"""Room that is made: what has to stop for an ask, and which gangs give back what they hold; every node is tried.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reference.plain_line import Gang, Line, Work


@dataclass
class Plan:
    """What stops on a node, what was told before, and who loses the room that is kept for it."""

    node: str
    victims: list[Work]
    leaving: list[Work]
    cleared: list[Work]


class Room(Line):
    """Who has to go for what waits."""

    def _may_go(self, victim: Work, work: Work) -> bool:
        """Lower work, but none that got its turn after `work` had its own in vain and nothing changed since."""
        is_young = victim.started > self.changed and victim.started > work.number
        return not victim.leaving and self._stands_below(victim, work) and not is_young

    def _stands_below(self, other: Work, work: Work) -> bool:
        return self._is_above(work, other) and self._may_take_from(work, other) and not other.takes_over

    def _importance(self, work: Work) -> tuple[int, ...]:
        at_root, own = self._rank(work)
        return (-at_root, -own, work.start_ms, work.number)

    def _plan(self, work: Work) -> Plan | None:
        """On which node, and what has to stop: of all nodes the one with the least harm."""
        weaker = [w for w in self.waiting if w.kept_on and self._is_above(work, w)]
        if not self._is_allowed(work, weaker):
            return None
        found = [plan for node in self.nodes if (plan := self._plan_on(work, node, weaker)) is not None]
        best = min(found, key=self._harm, default=None)
        if best is not None and best.victims and work.is_holder and not work.kept_on:
            return best if self._could_be_whole(work, weaker) else None
        return best

    def _could_be_whole(self, work: Work, weaker: list[Work]) -> bool:
        """Whether all members of its gang that wait, which are alike, could have room without what stands below it."""
        gang, amount = work.gang, dict(work.task.amount)
        rest = [w for w in self.waiting if w.gang is gang and w.is_holder]
        below = [w for w in self.running if w.leaving or self._stands_below(w, work)]
        times = 0
        for node in self.nodes:
            free = self._free(node, lambda w: w not in weaker)
            for gone in below:
                for name, value in gone.task.amount if gone.node == node else ():
                    free[name] += value
            times += max(min(free.get(name, 0) // value for name, value in amount.items()), 0)
        if times < sum(not w.kept_on for w in rest):
            return False
        for path in [path for path in self._lineage(gang.job.queue) if path != "root"]:
            users = self.queues[path].users or {}
            stays = [w for w in self.running if w not in below and self._within(path, w.gang)]
            for name, value in amount.items():
                needed = value * len(rest)
                if name in users and self._used(path, name, gang.job.user) + needed > users[name]:
                    return False
                used = sum(dict(w.task.amount).get(name, 0) for w in stays)
                if name in self._most(path) and used + needed > self._most(path)[name]:
                    return False
        return True

    def _harm(self, plan: Plan) -> tuple[object, ...]:
        victims = plan.victims
        top: tuple[int, ...] = max((self._rank(w) for w in victims), default=())
        start = min((w.start_ms for w in victims if self._rank(w) == top), default=0)
        total = sum(max(self._seen(w, "root"), 0) for w in victims)
        return (top, total, len(victims), len(plan.cleared), -start, plan.node)

    def _plan_on(self, work: Work, node: str, weaker: list[Work]) -> Plan | None:
        if any(value > self.nodes[node].get(name, 0) for name, value in work.task.amount):
            return None
        short = [path for path in self._lineage(work.gang.job.queue) if self._lacks(path, work, [])]
        leaving = [w for w in self.running if w.leaving and w.node == node]

        def fits(gone: list[Work], yielding: list[Work]) -> bool:
            free = self._free(node, lambda w: w is not work and w not in yielding)
            for each in gone:
                for name, value in each.task.amount if each.node == node else ():
                    free[name] += value
            return self._fits(work, free) and not any(self._lacks(path, work, [*gone, *yielding]) for path in short)

        if leaving and self._fits(work, self._free(node, lambda w: w is not work and w not in weaker)):
            leaving = []
        victims: list[Work] = []
        if not fits(leaving, weaker):
            if work.task.meek:
                return None
            victims = [w for w in self.running if w.node == node and self._may_go(w, work)]
            above = [path for path in short if path != "root"]
            victims += [w for w in self._elsewhere(work, above, weaker) if w not in victims]
            victims.sort(key=self._importance)
            if not fits([*leaving, *victims], weaker):
                return None
            for spared in list(victims):
                fewer = [w for w in victims if w is not spared]
                if fits([*leaving, *fewer], weaker):
                    victims = fewer
        cleared = [w for w in weaker if w.kept_on == node or short or self._is_limited(work)]
        for spared in sorted(cleared, key=lambda w: (*(-seen for seen in self._rank(w)), w.number)):
            fewer = [w for w in cleared if w is not spared]
            rest = [w for w in weaker if w in fewer]
            if fits([*leaving, *victims], rest) and self._is_allowed(work, rest):
                cleared = fewer
        waits = not work.task.meek and (leaving or self._waits_above(work))
        if not victims and not (cleared or waits):
            return None
        return Plan(node, victims[::-1], leaving, cleared)

    def _elsewhere(self, work: Work, short: list[str], weaker: list[Work]) -> list[Work]:
        """Work on any node that makes room under these maximums: the least important, and no more than it takes."""
        chosen: list[Work] = []
        for victim in sorted((w for w in self.running if self._may_go(w, work)), key=self._importance, reverse=True):
            lacking = [path for path in short if self._lacks(path, work, [*chosen, *weaker])]
            if not lacking:
                break
            if any(self._within(path, victim.gang) for path in lacking):
                chosen.append(victim)
        return chosen

    # -- gangs that hold each other -----------------------------------------------------------------------------------

    def _let_go(self, older: Gang) -> None:
        for work in self.waiting:
            if work.gang.waits_for is older:
                work.gang.waits_for = None

    def _fits_alone(self, gang: Gang) -> bool:
        return self._would_be_whole(gang, gang.standing, Counter())

    def _is_whole_without(self, older: Gang, giving: list[Gang]) -> bool:
        stay = [work for work in self.running if not any(work in gang.standing for gang in giving)]
        kept: Counter[tuple[str, str]] = Counter()
        for work in self.waiting:
            kept.update({(work.kept_on, name): value for name, value in work.task.amount})
        return self._would_be_whole(older, stay, kept)

    def _would_be_whole(self, gang: Gang, stay: list[Work], kept: Counter[tuple[str, str]]) -> bool:
        """Whether the rest of it finds room beside these and what is kept."""
        lacking = [w for w in self.waiting if w.gang is gang]
        for path in self._lineage(gang.job.queue):
            here = [w for w in (*stay, *lacking) if self._within(path, w.gang)]
            own = [w for w in here if w.gang.job.user == gang.job.user]
            users = self.queues[path].users if path in self.queues else None
            for works, most in ((here, self._most(path)), (own, users or {})):
                for name, value in most.items():
                    if path != "root" and sum(dict(w.task.amount).get(name, 0) for w in works) > value:
                        return False
        free = {n: {k: v - kept[n, k] for k, v in amount.items()} for n, amount in self.nodes.items()}
        for work in stay:
            for name, value in work.task.amount:
                free[work.node][name] -= value
        for work in lacking:
            node = next((n for n in self.nodes if self._fits(work, free[n])), None)
            if node is None:
                return False
            for name, value in work.task.amount:
                free[node][name] -= value
        return True
