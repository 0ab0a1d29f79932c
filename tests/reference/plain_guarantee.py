"""Preemption by guarantee: what a queue is guaranteed it takes back from those that have more than theirs.

Written from the seven laws of YuniKorn and the decisions about them in the plainest way: every node is tried, and what
queues would use if some work were gone is added up anew each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reference.plain_idle import Idle
from reference.plain_line import Amount, Work
from reference.plain_quota import Quotas

TRIES_EVERY_MS = 15_000


@dataclass
class Supposed:
    """What queues would use without some work, and with other work that is charged to the queue of the ask."""

    gone: list[Work] = field(default_factory=list)
    charged: list[Work] = field(default_factory=list)

    def with_(self, victim: Work, *, charged: bool) -> Supposed:
        """The same without this one too; idle work is in no guarantee."""
        if victim.task.idle:
            return self
        return Supposed([*self.gone, victim], [*self.charged, victim] if charged else self.charged)


class ByGuarantee(Quotas):
    """The rule `guarantee`."""

    def _looks(self) -> list[int]:
        tries = [self._tries_ms(work) for work in self.waiting if self._may_try(work)]
        return [*super()._looks(), *(at_ms for at_ms in tries if at_ms > self.now_ms)]

    def _expires(self) -> None:
        """That something may try is more than new work: nothing is young any more."""
        super()._expires()
        for work in [w for w in self.waiting if w.rests]:
            work.tried_ms += max(self.now_ms - 1 - work.tried_ms, 0) // TRIES_EVERY_MS * TRIES_EVERY_MS
            work.rests = self._fits_nowhere(work)
        if any(self._may_try(work) and self._tries_ms(work) == self.now_ms for work in self.waiting):
            self.changed = next(self.numbers)

    # -- when ---------------------------------------------------------------------------------------------------------

    def _tries_ms(self, work: Work) -> int:
        delay_ms = self._said_of(work.gang.job.queue).delay_ms
        return max(work.made_ms + delay_ms, work.tried_ms + TRIES_EVERY_MS)

    def _may_try(self, work: Work) -> bool:
        has_due = any(self._said_of(path).due for path in self._lineage(work.gang.job.queue))
        is_out = work.task.idle or work.task.meek or work.task.required or self._has_promise(work) or work.has_made_room
        return has_due and not is_out

    def _fits_nowhere(self, work: Work) -> bool:
        """Whether no open node could, or some maximum, if nothing else ran."""
        sizes = [self._most(path) for path in self._lineage(work.gang.job.queue) if path != "root"]
        if any(value > most.get(name, value) for most in sizes for name, value in work.task.amount):
            return True
        nodes = [amount for node, amount in self.nodes.items() if node not in self.drained]
        return not any(all(value <= node.get(name, 0) for name, value in work.task.amount) for node in nodes)

    def _is_within_due(self, work: Work) -> bool:
        return Idle._is_within_due(self, work)

    def _makes_room(self, work: Work, *, is_full: bool) -> bool:
        if not self._may_try(work) or self._tries_ms(work) > self.now_ms:
            return False
        work.tried_ms, work.rests = self.now_ms, self._fits_nowhere(work)
        found = None if work.rests or self._is_too_large(work) else self._found_for(work, is_full=is_full)
        if found is None:
            return False
        node, victims = found
        for other in [w for w in self.waiting if w.reserved == node and w is not work and not w.has_made_room]:
            self._lets_go(other)
        for victim in victims:
            self._tell(victim, work.key)
            self.pairs = {**self.pairs, (work.name, victim.name): self.news}
            self.lost = [*self.lost, (self.now_ms, victim.gang.job.queue)]
        if work.reserved != node:
            work.reserved, work.reserved_ms = node, self.now_ms
        work.has_made_room, work.awaits = True, tuple(victims)
        return True

    # -- what queues would use ----------------------------------------------------------------------------------------

    def _to_come(self, work: Work) -> list[Work]:
        """Others for which work was stopped, idle work too."""
        return [w for w in self.waiting if (w.has_made_room or self._has_promise(w)) and w is not work]

    def _would_use(self, path: str, name: str, work: Work, supposed: Supposed) -> int:
        used = self._used(path, name, leaving=False, idle=False) - self._amount_in(path, name, supposed.gone)
        if self._within(path, work.gang):
            used += self._amount_in(path, name, self._to_come(work))
            used += sum(dict(each.task.amount).get(name, 0) for each in supposed.charged)
        return used

    def _amount_in(self, path: str, name: str, works: Sequence[Work]) -> int:
        found = (w for w in works if self._within(path, w.gang) and not w.task.idle)
        return sum(dict(w.task.amount).get(name, 0) for w in found)

    def _remaining(self, path: str, work: Work, supposed: Supposed) -> Amount:
        """What is left of the guarantees from the root down to a queue, below 0 where it has more; nothing: there is
        no guarantee. In the queue of the ask its own counts for what it names, and one above says nothing then.
        """
        above = self._remaining(path.rpartition(".")[0], work, supposed) if path != "root" else {}
        leaf, due = work.gang.job.queue, self._said_of(path).due
        if not due:
            return above
        if path != leaf and self._within(path, work.gang) and self._said_of(leaf).due:
            return {}
        own = {name: value - self._would_use(path, name, work, supposed) for name, value in due.items()}
        if path == leaf:
            return above | own
        return above | {name: min(left, above.get(name, left)) for name, left in own.items()}

    def _entitled(self, work: Work, supposed: Supposed) -> Amount:
        return self._remaining(work.gang.job.queue, work, supposed)

    # -- whom ---------------------------------------------------------------------------------------------------------

    def _found_for(self, work: Work, *, is_full: bool) -> tuple[str, list[Work]] | None:
        """The node, and what has to stop."""
        leaf, as_it_is = work.gang.job.queue, Supposed()
        own = self._said_of(leaf).due or {}
        if any(n in own and self._would_use(leaf, n, work, as_it_is) + v > own[n] for n, v in work.task.amount):
            return None
        if node := self._shares(work):
            return node, []
        found = sorted(self._candidates(work), key=_preference)
        if not found or not self._could_be_within(work, found):
            return None
        most = self._beyond_losses(found)
        nodes = self._open_for(work)
        with_room = [node for node in nodes if is_full and self._has_room(work, node, lambda w: w is not work)]
        choices = [(victims, node) for node in nodes for victims in self._sets_on(work, node, found, most)]
        choices = [([], with_room[0])] if with_room else choices
        if not choices:
            return None
        victims, node = min(choices, key=lambda each: (_is_reluctant(each[0]), len(each[0]), each[1]))
        enough = self._as_many_as_it_takes(work, node, victims)
        if enough is None:
            others = self._as_many([*victims, *(w for w in found if w not in victims)], most)[len(victims) :]
            enough = self._as_many_as_it_takes(work, node, [*victims, *self._more(work, victims, others)])
        return (node, self._spares_idle(work, node, enough)) if enough else None

    def _sets_on(self, work: Work, node: str, found: list[Work], most: dict[str, int]) -> list[list[Work]]:
        """What makes it fit there; where the first use up what their queues may lose, one alone."""
        here = [w for w in found if w.node == node]
        sets = [self._victims_on(work, node, self._as_many(here, most))]
        if sets == [None] and self._as_many(here, most) != here:
            sets = [self._victims_on(work, node, self._as_many([one], most)) for one in here]
        return [each for each in sets if each is not None][:1]

    def _open_for(self, work: Work) -> list[str]:
        """Nodes that could take it and are not set aside for others."""
        others = {w.reserved for w in self.waiting if w is not work and not self._loses_node(w, work)}
        return [n for n, amount in sorted(self.nodes.items()) if n not in others and self._fits(work, n, amount)]

    def _loses_node(self, other: Work, work: Work) -> bool:
        """Whether it had its node for an hour without having anything stopped, and is of a lower priority."""
        is_late = other.reserved_ms + 3_600_000 <= self.now_ms
        is_firm = other.has_made_room or other.task.required
        return is_late and not is_firm and other.task.priority < work.task.priority

    def _candidates(self, work: Work) -> list[Work]:
        found = []
        for victim in self.running:
            leaf = victim.gang.job.queue
            is_bound = victim.leaving or victim.takes_over or victim.task.required
            if not is_bound and victim.task.idle and self._reaches_idle(work, victim):
                found += [victim] if self._may_go_now(victim, work) else []
            if is_bound or victim.task.idle or leaf == work.gang.job.queue:
                continue
            left = self._remaining(leaf, work, Supposed())
            is_above = not left or any(value < 0 for value in left.values())
            if is_above and self._reaches_down(work, victim) and self._may_go_now(victim, work):
                found.append(victim)
        return found

    def _reaches_down(self, work: Work, victim: Work) -> bool:
        """Whether no fence and no full queue is in between, and the other one is not above it by priority."""
        for path in self._lineage(work.gang.job.queue):
            if self._within(path, victim.gang):
                break
            above = [p for p in self._lineage(path) if p != "root"]
            used = {name: self._used(path, name) + value for name, value in work.task.amount}
            if any(used[name] > most for p in above for name, most in self._most(p).items() if name in used):
                return False
        return self._may_take_from(work, victim) and not self._is_above(victim, work)

    def _reaches_idle(self, work: Work, victim: Work) -> bool:
        """Wherever it counts where something may be stopped, be it in the queue of the ask."""
        for path in self._lineage(work.gang.job.queue):
            if self._counts(path, victim):
                return self._may_take_from(work, victim)
            above = [p for p in self._lineage(path) if p != "root"]
            used = {name: self._used(path, name) + value for name, value in work.task.amount}
            if any(used[name] > most for p in above for name, most in self._most(p).items() if name in used):
                return False
        return False

    def _may_go_now(self, victim: Work, work: Work) -> bool:
        """It is not spared: for what it ran, as what started while the ask waited, or as it was stopped for it."""
        if self._is_new(victim):
            self._looks_again(victim.start_ms + self._least_ms(victim))
            return False
        is_young = victim.began > work.number and victim.began > self.changed
        return not is_young and self.pairs.get((work.name, victim.name)) != self.news

    def _could_be_within(self, work: Work, found: list[Work]) -> bool:
        left = self._entitled(work, Supposed())
        if not left:
            return False
        if _fits_in(work, left):
            return True
        left = self._entitled(work, Supposed(found, [work]))
        return not _is_short(work, left)

    def _lets_go_of(self, victim: Work, work: Work, supposed: Supposed) -> bool:
        """Whether its queue has more than its guarantee of something that the ask needs, and keeps that without it."""
        if victim.task.idle:
            return True
        left = self._remaining(victim.gang.job.queue, work, supposed)
        if left and not _is_short(work, left):
            return False
        left = self._remaining(victim.gang.job.queue, work, supposed.with_(victim, charged=False))
        return not any(left.get(name, 0) > 0 for name, _ in victim.task.amount)

    def _is_entitled_to(self, victim: Work, work: Work, supposed: Supposed) -> bool:
        left = self._entitled(work, supposed.with_(victim, charged=False))
        return victim.task.idle or (bool(left) and _fits_in(victim, left))

    def _victims_on(self, work: Work, node: str, here: list[Work]) -> list[Work] | None:
        """Those of this work there that make it fit, first those that lessen what is missing."""
        head, tail, supposed = list[Work](), list[Work](), Supposed()
        for victim in here:
            if not self._lets_go_of(victim, work, supposed):
                continue
            if not self._is_entitled_to(victim, work, supposed):
                break
            missing = self._missing(work, node, head)
            if any(missing.get(name, 0) > 0 for name, _ in victim.task.amount):
                head.append(victim)
                supposed = supposed.with_(victim, charged=True)
            else:
                tail.append(victim)
        taken, supposed = list[Work](), Supposed()
        for victim in (*head, *tail):
            if not self._lets_go_of(victim, work, supposed):
                continue
            if not self._is_entitled_to(victim, work, supposed):
                break
            taken.append(victim)
            supposed = supposed.with_(victim, charged=True)
            if self._has_room(work, node, lambda w: w is not work, taken):
                return taken
        return None

    def _missing(self, work: Work, node: str, gone: list[Work]) -> Amount:
        free = self._free(node, lambda w: w is not work)
        for each in gone:
            for name, value in each.task.amount:
                free[name] += value
        return {name: value - free.get(name, 0) for name, value in work.task.amount}

    def _more(self, work: Work, chosen: list[Work], others: list[Work]) -> list[Work]:
        """Victims anywhere, for a maximum that has no room still: as long as they change what the ask's queue has."""
        supposed, more = Supposed(gone=list(chosen)), list[Work]()
        before = self._entitled(work, supposed)
        for victim in others:
            if not self._lets_go_of(victim, work, supposed):
                continue
            if not self._is_entitled_to(victim, work, supposed):
                break
            supposed = supposed.with_(victim, charged=True)
            after = self._entitled(work, supposed)
            if self._counts_under_maximum(victim, work) if victim.task.idle else after != before:
                more.append(victim)
            before = after
        return more

    def _counts_under_maximum(self, victim: Work, work: Work) -> bool:
        lineage = [path for path in self._lineage(work.gang.job.queue) if path != "root"]
        return any(self.queues[path].most and self._counts(path, victim) for path in lineage)

    def _spares_idle(self, work: Work, node: str, victims: list[Work]) -> list[Work]:
        """Idle work that is not needed beside the others stays, the highest of it first."""
        idle = [w for w in victims if w.task.idle]
        for spared in sorted(idle, key=lambda w: (-w.task.priority, w.start_ms, w.number)):
            rest = [w for w in victims if w is not spared]
            lacks = any(self._lacks(path, work, rest) for path in self._lineage(work.gang.job.queue))
            if self._has_room(work, node, lambda w: w is not work, rest) and not lacks:
                victims = rest
        return victims

    def _as_many_as_it_takes(self, work: Work, node: str, victims: list[Work]) -> list[Work] | None:
        """The first of these after which it can be placed; those elsewhere only once it fits on its node."""
        taken: list[Work] = []
        for victim in victims:
            if victim.node != node and not self._has_room(work, node, lambda w: w is not work, taken):
                continue
            taken.append(victim)
            lacks = any(self._lacks(path, work, taken) for path in self._lineage(work.gang.job.queue))
            if self._has_room(work, node, lambda w: w is not work, taken) and not lacks:
                return taken
        return None

    # -- room that is made for others ---------------------------------------------------------------------------------

    def _shares(self, work: Work) -> str:
        """The first node where it fits beside those for which work was stopped, once that has left."""
        to_come = self._to_come(work)
        left = self._entitled(work, Supposed())
        if not to_come or not left or not _fits_in(work, left) or _wants_more_than_room(work):
            return ""
        for path in self._lineage(work.gang.job.queue):
            if not self._has_room_in(path, work, to_come):
                return ""
        nodes = sorted({w.reserved for w in to_come if w.reserved})
        return next((node for node in nodes if self._has_room_beside(work, node)), "")

    def _has_room_in(self, path: str, work: Work, to_come: list[Work]) -> bool:
        users, user = self._said_of(path).users or {}, work.gang.job.user
        own = [w for w in to_come if w.gang.job.user == user]
        for name, value in work.task.amount:
            used = self._used(path, name, leaving=False) + self._amount_in(path, name, to_come)
            if used + value > self._most(path).get(name, 1 << 62):
                return False
            if self._used(path, name, user) + self._amount_in(path, name, own) + value > users.get(name, 1 << 62):
                return False
        return True

    def _has_room_beside(self, work: Work, node: str) -> bool:
        holders = [w for w in self.waiting if w.reserved == node and w is not work]
        if node in self.drained or not all(w.has_made_room and not _wants_more_than_room(w) for w in holders):
            return False
        if any(holder.task.required for holder in holders):
            return False
        leaving = [w for w in self.running if w.node == node and w.leaving]
        missing = self._missing(work, node, leaving)
        for holder in holders:
            for name, value in holder.task.amount:
                missing[name] = missing.get(name, 0) + value
        return all(value <= 0 for value in missing.values()) and self._suits(work, node)


def _fits_in(work: Work, left: Amount) -> bool:
    return all(value <= left.get(name, value) for name, value in work.task.amount)


def _is_short(work: Work, left: Amount) -> bool:
    return any(left.get(name, 0) < 0 for name, _ in work.task.amount)


def _wants_more_than_room(work: Work) -> bool:
    wanted = work.task.company
    return bool(work.task.port or work.task.apart or wanted.beside or wanted.skew)


def _preference(victim: Work) -> tuple[bool, bool, int, int]:
    return (not victim.task.idle, victim.task.unwilling, -victim.made_ms, -victim.number)


def _is_reluctant(victims: list[Work]) -> bool:
    return any(victim.task.unwilling and not victim.task.idle for victim in victims)
