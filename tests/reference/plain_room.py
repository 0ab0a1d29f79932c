"""Room that is made: what has to stop for an ask, and which gangs give back what they hold; every node is tried.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from reference.plain_beside import ALONE
from reference.plain_line import NEVER, NOT_DUE, Amount, Gang, Line, Work, keeps_off

HOUR_MS = 3_600_000
TOGETHER = 16
"""So many of those that were passed over are tried together with higher work."""


@dataclass
class Plan:
    """What stops on a node, what was told before, and what loses the room that is kept for it."""

    node: str
    victims: list[Work]
    leaving: list[Work]
    cleared: list[Work]
    is_loss: bool = True
    """What stops is lost to its queues."""
    others: Sequence[Work] = ()
    """Idle work of other groups: it is lost in any case."""


def _copies(size: tuple[tuple[str, int], ...], nodes: dict[str, Amount], is_apart: bool) -> int:
    """How often this size fits on all of these together, or once on each."""
    found = [min(max(left.get(name, 0), 0) // value for name, value in size) for left in nodes.values()]
    return sum(min(each, 1) if is_apart else each for each in found)


def _stand(sizes: list[tuple[tuple[str, int], ...]], nodes: dict[str, Amount], is_apart: bool) -> bool:
    """Whether all of these have room beside each other, each on one node."""
    if not sizes:
        return True
    for node, left in nodes.items():
        if all(value <= left.get(name, 0) for name, value in sizes[0]):
            rest = {name: value - dict(sizes[0]).get(name, 0) for name, value in left.items()}
            others = {n: amount for n, amount in nodes.items() if n != node}
            if _stand(sizes[1:], others if is_apart else others | {node: rest}, is_apart):
                return True
    return False


def _sizes(works: list[Work]) -> list[tuple[tuple[str, int], ...]]:
    return list(dict.fromkeys(work.task.amount for work in works))


class Room(Line):
    """Who has to go for what waits."""

    reach = NOT_DUE
    """How far up the guarantee is that the ask is within, beside what is kept, for which room is looked for now."""
    spared_ms = NEVER
    """Until when the first of what was looked at is spared."""
    news = 0
    """How much new work and other room has come so far."""
    pairs: Mapping[tuple[str, str], int] = MappingProxyType({})
    """For what was stopped for what, how much had come then: it is not again before more has."""
    lost: Sequence[tuple[int, str]] = ()
    """When work was stopped for other work, and its queue then."""

    def _may_go(self, victim: Work, work: Work) -> bool:
        """Lower work, but none that got its turn after `work` had its own in vain and nothing changed since."""
        is_young = victim.began > work.number and (victim.began > self.changed or victim.began_due)
        if victim.leaving or is_young or not self._stands_below(victim, work):
            return False
        if self._is_new(victim):
            self._looks_again(victim.start_ms + self._least_ms(victim))
        return not self._is_new(victim) and self.pairs.get((work.name, victim.name)) != self.news

    def _looks_again(self, at_ms: int) -> None:
        """Something that was looked at is spared until then."""
        self.spared_ms = min(self.spared_ms, at_ms)

    def _is_new(self, victim: Work) -> bool:
        """Whether it has not run for as long as it may at least."""
        return self._least_ms(victim) > 0 and victim.start_ms + self._least_ms(victim) > self.now_ms

    def _least_ms(self, work: Work) -> int:
        said = self._said(work.gang.job.queue, "least_ms")
        return max(work.task.least_ms, said if isinstance(said, int) else 0)

    def _stands_below(self, other: Work, work: Work) -> bool:
        if other.takes_over or not self._may_take_from(work, other):
            return False
        meet = next(path for path in self._lineage(work.gang.job.queue) if self._within(path, other.gang))
        # Above the guarantee that it is within, it takes back what others have above theirs.
        level = list(self._lineage(work.gang.job.queue)).index(meet)
        return level > self.reach or self._is_above(work, other)

    def _importance(self, work: Work) -> tuple[int, ...]:
        at_root, own = self._rank(work)
        return (-at_root, -own, work.start_ms, work.number)

    def _plan(self, work: Work) -> Plan | None:
        """On which node, and what has to stop: of all nodes the one with the least harm."""
        weaker = [w for w in self.waiting if w.kept_on and self._is_stronger(work, w)]
        if not self._is_allowed(work, weaker) or not self._may_begin(work, weaker):
            return None
        if self._is_too_large(work) and not weaker:
            return None
        self.reach = self._distance(work, beside_kept=True)
        found = [plan for node in self.nodes if (plan := self._plan_on(work, node, weaker)) is not None]
        best = min(found, key=self._harm, default=None)
        costs = best is not None and (best.victims or any(not w.gathers for w in best.cleared))
        if costs and work.is_holder and (not work.kept_on or work.gathers):
            return best if self._could_be_whole(work.gang) else None
        return best

    def _could_be_whole(self, gang: Gang) -> bool:
        """Whether all members of a gang that wait could have room without what stands below one of them: those of each
        size on the nodes, and all of them by the sum of those, and in queues and limits.
        """
        members = [w for w in self.waiting if w.gang is gang and w.is_holder]
        unkept = [w for w in members if not w.kept_on or w.gathers]
        tops = [
            max((w for w in unkept if w.task.amount == size), key=lambda w: w.task.priority) for size in _sizes(unkept)
        ]
        kept = [w for w in self.waiting if w.kept_on]
        own = [w for w in kept if w.gathers and w.gang is gang]
        yielding = [*own, *(w for w in kept if w not in own and any(self._is_stronger(top, w) for top in tops))]
        below = [w for w in self.running if w.leaving or w.task.idle or any(self._reaches(top, w) for top in tops)]
        free = {node: self._free(node, lambda w: w not in yielding) for node in self.nodes}
        for gone in below:
            for name, value in gone.task.amount:
                free[gone.node][name] += value
        # All of one gang wants the same nodes, or each another one.
        is_apart = bool(members[0].task.port or members[0].task.apart)
        own = [w for w in (*self.running, *self.waiting) if w.gang is gang and (w.node or w.kept_on) and not w.gathers]
        taken = {w.node or w.kept_on for w in own} if is_apart else set()
        free = {node: left for node, left in free.items() if node not in taken}
        free = {node: left for node, left in free.items() if self._takes(members[0], node)}
        for size in _sizes(unkept):
            if _copies(size, free, is_apart) < sum(w.task.amount == size for w in unkept):
                return False
        if not _stand(
            sorted((w.task.amount for w in unkept), key=lambda size: (-max(v for _, v in size), size)), free, is_apart
        ):
            return False
        names = {name for w in members for name, _ in w.task.amount}
        for path in [path for path in self._lineage(gang.job.queue) if path != "root"]:
            users, stays = self.queues[path].users or {}, [w for w in self.running if w not in below]
            for name in names:
                needed = self._needed(members, name)
                gives = [w for w in self.running if w.task.idle and w.gang.job.user == gang.job.user]
                back = sum(dict(w.task.amount).get(name, 0) for w in gives if self._within(path, w.gang))
                if name in users and self._used(path, name, gang.job.user) - back + needed > users[name]:
                    return False
                if name in self._most(path) and self._given(path, name, stays) + needed > self._most(path)[name]:
                    return False
        return True

    def _is_too_large(self, work: Work) -> bool:
        """Whether it is a placeholder of a gang that could not be whole if nothing else ran: in its queues, or on nodes
        as far as its own size says.
        """
        if not work.is_holder or work.gang.is_open:
            return False
        total: Counter[str] = Counter()
        for task in work.gang.job.tasks:
            total.update(dict(task.amount))
        for path in self._lineage(work.gang.job.queue):
            users = (path in self.queues and self.queues[path].users) or {}
            for name, value in total.items():
                if value > self._most(path).get(name, value) or value > users.get(name, value):
                    return True
        if not all(name in self._most("root") for name in total):
            return True
        count = sum(task.amount == work.task.amount for task in work.gang.job.tasks)
        suiting = {node: amount for node, amount in self.nodes.items() if self._suits(work, node)}
        return _copies(work.task.amount, suiting, bool(work.task.port or work.task.apart)) < count

    def _needed(self, members: list[Work], name: str) -> int:
        return sum(dict(w.task.amount).get(name, 0) for w in members)

    def _reaches(self, work: Work, other: Work) -> bool:
        self.reach = self._distance(work, beside_kept=True)
        return self._stands_below(other, work)

    def _harm(self, plan: Plan) -> tuple[object, ...]:
        victims = plan.victims
        top: tuple[int, ...] = max((self._rank(w) for w in victims), default=())
        start = min((w.start_ms for w in victims if self._rank(w) == top), default=0)
        total = sum(max(self._seen(w, "root"), 0) for w in victims)
        broken = len(self._beyond_budgets(victims))
        return (broken, top, total, len(victims), len(plan.cleared), -start, plan.node)

    def _plan_on(self, work: Work, node: str, weaker: list[Work]) -> Plan | None:
        if not self._fits(work, node, self.nodes[node]):
            return None
        short = [path for path in self._lineage(work.gang.job.queue) if self._lacks(path, work, [])]
        leaving = self._in_time(work, [w for w in self.running if w.leaving and w.node == node], node)

        def fits(gone: list[Work], yielding: list[Work]) -> bool:
            has_room = self._has_room(work, node, lambda w: w is not work and w not in yielding, gone)
            return has_room and not any(self._lacks(path, work, [*gone, *yielding]) for path in short)

        if leaving and self._has_room(work, node, lambda w: w is not work and w not in weaker):
            leaving = []
        victims: list[Work] = []
        if not fits(leaving, weaker):
            is_meek = work.task.meek or self._is_too_large(work)
            found = None if is_meek else self._victims(work, node, short, leaving, weaker, among_own=False)
            if found is None and not is_meek and any(self._beyond_own(work).values()):
                found = self._victims(work, node, short, leaving, weaker, among_own=True)
            if found is None:
                return None
            victims = found
        if self._is_full_too_long(work, node, victims):
            return None
        cleared = weaker
        for spared in sorted(cleared, key=lambda w: (*(-seen for seen in self._rank(w)), w.number)):
            fewer = [w for w in cleared if w is not spared]
            rest = [w for w in weaker if w in fewer]
            if fits([*leaving, *victims], rest) and self._is_allowed(work, rest) and self._may_begin(work, rest):
                cleared = fewer
        is_meek = work.task.meek or self._is_too_large(work)
        waits = not is_meek and (leaving or self._waits_above(work))
        if not victims and not (cleared or waits):
            return None
        return Plan(node, sorted(victims, key=self._importance, reverse=True), leaving, cleared)

    def _victims(
        self, work: Work, node: str, short: list[str], leaving: list[Work], weaker: list[Work], *, among_own: bool
    ) -> list[Work] | None:
        """What has to go on the node, the lowest last; None where that is not enough. `among_own`: also work that is
        within a guarantee of the ask's own queues, if the ask is within it once that has gone.
        """
        own = {path: left for path, left in self._beyond_own(work).items() if among_own}
        is_choosy = bool(work.task.zone or work.task.port or work.task.apart) or work.task.company != ALONE

        def fits(gone: list[Work]) -> bool:
            if not self._has_room(work, node, lambda w: w is not work and w not in weaker, (*leaving, *gone)):
                return False
            if any(self._lacks(path, work, [*leaving, *gone, *weaker]) for path in short):
                return False
            busy = [w for w in gone if not w.task.idle]
            return all(left + self._given(path, name, busy) >= 0 for path in own for name, left in own[path].items())

        def fewest(found: list[Work]) -> list[Work] | None:
            if not fits(found):
                return None
            for spared in list(found):
                fewer = [w for w in found if w is not spared]
                found = fewer if fits(fewer) else found
            return found

        found = [w for w in self._in_time(work, self.running, node) if w.node == node and self._may_go(w, work)]
        above = [path for path in short if path != "root"]
        found += [w for w in self._elsewhere(work, node, above, weaker, among_own=among_own) if w not in found]
        found.sort(key=self._importance, reverse=True)
        kept = self._let_go(found, work, among_own=among_own)
        broken = self._beyond_budgets(kept)
        highest_first = kept[::-1]
        back = sorted(highest_first, key=lambda w: w not in broken)
        chosen = fewest(back)
        most: dict[str, int] = {}
        while chosen and (over := self._beyond_losses(chosen)):
            most |= over
            back = self._as_many(back[::-1], most)[::-1]
            chosen = fewest(back)
        kept = back
        if chosen is not None or len(kept) == len(found) or not (is_choosy or fits(found)):
            return chosen
        # All of the lower work together uses up what its queue may lose: one that was passed over goes first.
        found.sort(key=lambda w: bool(self._beyond_budgets([w])))
        for with_higher in (False, True):
            tried: list[tuple[object, ...]] = []
            for place, victim in enumerate(found):
                # Where more than room counts, none stands for another.
                alike = (victim,) if is_choosy else (victim.gang.job.queue, victim.task.amount)
                if victim in kept or alike in tried or (with_higher and len(tried) == TOGETHER):
                    continue
                tried.append(alike)
                others = found[:place] if len(tried) <= TOGETHER else []
                others = [*others, *(found[place + 1 :] if with_higher else [])]
                beside = self._let_go([victim, *others], work, among_own=among_own)
                beside = self._as_many(beside, self._beyond_losses(beside))
                if beside[:1] == [victim] and (chosen := fewest([victim, *beside[:0:-1]])):
                    return chosen
        return None

    def _in_time(self, work: Work, found: Iterable[Work], node: str) -> list[Work]:
        """Those after whose grace it may still start on the node."""
        raise NotImplementedError

    def _is_full_too_long(self, work: Work, node: str, victims: list[Work]) -> bool:
        """Whether a maximum has room only with what was told to stop before, and leaves too late for it."""
        told = [w for w in self.running if w.leaving]
        soon = self._in_time(work, told, node)
        if soon == told:
            return False
        for path in self._lineage(work.gang.job.queue):
            for name, value in work.task.amount:
                used = self._used(path, name) - self._given(path, name, [*soon, *victims])
                if used + value > self._most(path).get(name, NEVER):
                    return True
        return False

    def _given(self, path: str, name: str, gone: list[Work]) -> int:
        return sum(dict(w.task.amount).get(name, 0) for w in gone if self._counts(path, w))

    def _own_dues(self, work: Work) -> dict[str, dict[str, int]]:
        """For each guarantee on its way what it leaves beside the ask, of what that needs."""
        found = {}
        for path in self._lineage(work.gang.job.queue):
            if due := self._due(path):
                needs = [(name, value) for name, value in work.task.amount if name in due]
                found[path] = {n: due[n] - self._used(path, n, leaving=False, idle=False) - value for n, value in needs}
        return found

    def _beyond_own(self, work: Work) -> dict[str, dict[str, int]]:
        """Those within which it is not, where they are about something that it needs."""
        return {path: left for path, left in self._own_dues(work).items() if left and min(left.values()) < 0}

    def _let_go(self, found: list[Work], work: Work, *, among_own: bool) -> list[Work]:
        """As many of the first of these as may go without leaving a queue below its guarantee."""
        is_within = {p for p, left in self._own_dues(work).items() if left and (among_own or min(left.values()) >= 0)}
        kept: list[Work] = []
        for victim in found:
            busy = [w for w in kept if not w.task.idle]
            dues = {
                path: due
                for path in ([] if victim.task.idle else self._lineage(victim.gang.job.queue))
                if path not in is_within and (due := self._due(path))
            }
            if all(
                value <= self._used(path, name, leaving=False, idle=False) - due[name] - self._given(path, name, busy)
                for path, due in dues.items()
                for name, value in victim.task.amount
                if name in due
            ):
                kept.append(victim)
        return kept

    def _elsewhere(self, work: Work, node: str, short: list[str], weaker: list[Work], *, among_own: bool) -> list[Work]:
        """Work on any node that makes room under these maximums: the least important, and no more than it takes."""
        chosen: list[Work] = []
        holds = [w for w in self.running if any(self._counts(path, w) for path in short) and self._may_go(w, work)]
        holds = self._in_time(work, holds, node)
        holds.sort(key=self._importance, reverse=True)
        holds = self._as_many(holds, self._beyond_losses(holds))
        for victim in self._let_go(holds, work, among_own=among_own):
            lacking = [path for path in short if self._lacks(path, work, [*chosen, *weaker])]
            if not lacking:
                break
            if any(self._counts(path, victim) for path in lacking):
                chosen.append(victim)
        return chosen

    # -- budgets ------------------------------------------------------------------------------------------------------

    def _beyond_budgets(self, victims: list[Work]) -> list[Work]:
        """Those for which a budget has nothing left, taken in this order."""
        found = []
        for budget in self.budgets:
            held = [work for _, work in self.held]
            of_team = [w for w in (*self.waiting, *self.running, *held) if w.task.team == budget.team]
            of_team = [w for w in of_team if not w.is_holder]
            stay = budget.stay if budget.away is None else max(len(of_team) - budget.away, 0)
            left = sum(w.node != "" and not w.leaving for w in of_team) - stay
            found += [w for w in victims if w.task.team == budget.team and not w.is_holder][max(left, 0) :]
        return found

    def _losses_left(self, path: str, at_ms: int) -> int | None:
        most = self._said(path, "losses") if path != "root" else None
        if not isinstance(most, int):
            return None
        lost = (f"{leaf}.".startswith(f"{path}.") for then, leaf in self.lost if at_ms < then + HOUR_MS)
        return max(most - sum(lost), 0)

    def _beyond_losses(self, victims: list[Work]) -> dict[str, int]:
        """The queues that would lose more than they may, with how much that is."""
        hit = Counter(path for victim in victims for path in self._lineage(victim.gang.job.queue))
        left = {path: self._losses_left(path, self.now_ms) for path in hit}
        over = {path: most for path, most in left.items() if most is not None and most < hit[path]}
        for path in over:
            for at_ms, leaf in self.lost:
                if f"{leaf}.".startswith(f"{path}.") and self.now_ms < at_ms + HOUR_MS:
                    self._looks_again(at_ms + HOUR_MS)
        return over

    def _as_many(self, victims: list[Work], most: dict[str, int]) -> list[Work]:
        """As many of the first of these as their queues may lose."""
        kept: list[Work] = []
        for victim in victims:
            lost = Counter(path for each in (*kept, victim) for path in self._lineage(each.gang.job.queue))
            if all(lost[path] <= most[path] for path in self._lineage(victim.gang.job.queue) if path in most):
                kept.append(victim)
        return kept

    # -- gangs that hold each other -----------------------------------------------------------------------------------

    def _part_ways(self, older: Gang) -> None:
        for work in self.waiting:
            if work.gang.waits_for is older:
                work.gang.waits_for = None

    def _fits_alone(self, gang: Gang) -> bool:
        return self._would_be_whole(gang, gang.standing, self._placed_of(gang))

    def _is_whole_without(self, older: Gang, giving: list[Gang]) -> bool:
        stay = [work for work in self.running if not any(work in gang.standing for gang in giving)]
        others = [w for w in self.waiting if w.kept_on and w.gang is not older and w.gang not in giving]
        aside = {w.reserved for w in self.waiting if w.gang is not older and w.gang not in giving}
        return self._would_be_whole(older, stay, [*others, *self._placed_of(older)], aside)

    def _placed_of(self, gang: Gang) -> list[Work]:
        """Those of it for which work was stopped: they have their room."""
        return [w for w in self.waiting if w.gang is gang and w.kept_on and not w.gathers]

    def _would_be_whole(
        self, gang: Gang, stay: list[Work], kept: list[Work], aside: Collection[str] = frozenset()
    ) -> bool:
        """Whether the rest of it finds room beside these and what is kept, on nodes that are not set aside."""
        lacking = [w for w in self.waiting if w.gang is gang]
        for path in self._lineage(gang.job.queue):
            here = [w for w in (*stay, *lacking) if self._counts(path, w) and not w.leaving]
            own = [w for w in (*stay, *lacking) if self._within(path, w.gang) and w.gang.job.user == gang.job.user]
            users = self.queues[path].users if path in self.queues else None
            for works, most in ((here, self._most(path)), (own, users or {})):
                for name, value in most.items():
                    if path != "root" and sum(dict(w.task.amount).get(name, 0) for w in works) > value:
                        return False
        free = {node: dict(amount) for node, amount in self.nodes.items()}
        for work in (*stay, *kept):
            for name, value in work.task.amount:
                free[work.node or work.kept_on][name] -= value
        there = [(w.node or w.kept_on, w) for w in (*stay, *kept)]
        for work in [w for w in lacking if w not in kept]:
            kept_off = {node for node, other in there if keeps_off(work.task, other.task)}
            usable = (n for n in self.nodes if n not in kept_off and n not in aside)
            node = next((n for n in usable if self._fits(work, n, free[n])), None)
            if node is None:
                return False
            there.append((node, work))
            for name, value in work.task.amount:
                free[node][name] -= value
        return True
