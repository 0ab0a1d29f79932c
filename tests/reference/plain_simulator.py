"""A simulator written from the rules in the plainest way: rank, preemption by priority, limits and gangs.

It keeps no order, no heap and no memory of what it looked at: all that waits is sorted anew for each placement, sums
are added up whenever they are needed, and every node is tried. So it is slow and easy to believe. It shares no code
with the production simulator and scheduler, which have to start and stop the same work on the same nodes at the same
times. It knows the rules `priority` and `both`: queues with maximums, limits of users, bounds on jobs, guarantees,
offsets and fences, gangs by placeholders, idle work, grace, least run times, budgets, bounds on evictions, retries,
kept turns, zones, ports, work that keeps apart, wants to be with other work or is spread; work on hold, or that begins
later; time limits, windows and backfill past kept turns; lost, drained and resized nodes, and orders of an
administrator. The rule `guarantee` is in `plain_walk`, `plain_daemons`, `plain_quota` and `plain_guarantee`, which
stand on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reference.plain_backfill import Backfill
from reference.plain_line import NEVER, NOT_DUE, Amount, Budget, Gang, Job, Queue, Task, Work
from reference.plain_room import HOUR_MS
from reference.plain_windows import Window


@dataclass(frozen=True)
class Order:
    """One of these: another configuration; a node has another size, or is drained, or is not any more; what waits of a
    job has another priority, or it is moved to another queue, or on hold, or released; a window is declared, or
    withdrawn.
    """

    at_ms: int
    queues: dict[str, Queue] | None = None
    pack: bool = False
    rule: str = ""
    node: str = ""
    size: Amount | None = None
    job: str = ""
    priority: int = 0
    queue: str = ""
    is_hold: bool | None = None
    """True: on hold; False: released."""
    window: Window | None = None
    withdrawn: str = ""


@dataclass(frozen=True)
class Ran:
    """One run of a task."""

    key: str
    node: str
    start_ms: int
    end_ms: int
    evicted: bool


class PlainSimulator(Backfill):
    """One simulation."""

    def __init__(
        self,
        nodes: dict[str, Amount],
        queues: dict[str, Queue],
        jobs: list[Job],
        *,
        pack: bool,
        zones: dict[str, str] | None = None,
        budgets: Sequence[Budget] = (),
        faults: Sequence[tuple[int, str]] = (),
        orders: Sequence[Order] = (),
    ) -> None:
        super().__init__(nodes, queues, pack=pack, zones=zones, budgets=budgets)
        self.jobs = jobs
        self.faults = faults
        """When which node is lost, or comes back."""
        self.orders = orders
        self.all_nodes = nodes
        self.told: list[Work] = []
        """Told to stop in this call, in order."""
        self.whole: list[Gang] = []
        self.gave_way: dict[tuple[Gang, Gang], tuple[int, int, int]] = {}
        """Of what gave way to which: how often, with which capacity, and when last."""
        self.capacity = 0
        """How often there was other room so far."""
        self.ran: list[Ran] = []
        self.evicted: list[tuple[int, str, str]] = []
        """When, what, and for what."""

    def run(self) -> None:
        """From the first job to the last end."""
        jobs, faults, orders = list(self.jobs), list(self.faults), list(self.orders)
        while jobs or faults or orders or self.held or self._goes_on():
            ends = [min(work.end_ms, work.leaves_ms) for work in self.running] + [job.at_ms for job in jobs[:1]]
            ends += [self.spared_ms] if self.spared_ms < NEVER else []
            ends += [at_ms for at_ms, _ in self.held]
            ends += [*self.late_ms.values(), self.look_ms]
            ends += self._looks()
            ends += [order.at_ms for order in orders[:1]]
            self.now_ms = min([*ends, *(at_ms for at_ms, _ in faults[:1])])
            while orders and orders[0].at_ms == self.now_ms:
                self._obeys(orders.pop(0))
            if self.look_ms == self.now_ms:
                self._look_at_windows()
            self._expires()
            if self.spared_ms == self.now_ms:
                self.spared_ms, self.changed = NEVER, next(self.numbers)
            for path in [path for path, at_ms in self.late_ms.items() if at_ms == self.now_ms]:
                del self.late_ms[path]
                self.to_look.add(path)
                self.changed = next(self.numbers)
            self._enters()
            over = {w: w.started for w in self.running if w.end_ms == self.now_ms}
            stopped = {w: w.told for w in self.running if w.leaves_ms == self.now_ms and w not in over}
            for work in sorted(over | stopped, key=(over | stopped).__getitem__):
                self._leaves(work, evicted=work in stopped)
                if work in stopped or (work.task.fails and work.task.retries is not None):
                    self._comes_back(work)
            while faults and faults[0][0] == self.now_ms:
                self._strikes(faults.pop(0)[1])
            while jobs and jobs[0].at_ms == self.now_ms:
                self._comes(jobs.pop(0))
            self._settle()

    def _goes_on(self) -> bool:
        """Whether anything runs that ends, or what waits may do something by itself soon."""
        return any(not work.is_holder for work in self.running) or self._may_follow()

    def _looks(self) -> list[int]:
        """When what waits may do more than it could, though nothing happens."""
        return []

    def _expires(self) -> None:
        """What was kept for long enough is so no more."""

    def _comes(self, job: Job) -> None:
        if job.gang and self._is_refused(job):
            return
        gang = Gang(job, next(self.numbers), is_open=not job.gang)
        for task in job.tasks:
            key = f"{task.key}~" if job.gang else task.key
            if task.begin_ms > self.now_ms:
                self.held.append((task.begin_ms, Work(key, gang, task, 0, 0)))
            else:
                self._asks(gang, task, key)

    def _is_refused(self, job: Job) -> bool:
        """Whether a gang is larger than the maximum of a queue on its way; nodes may come."""
        total: Counter[str] = Counter()
        for task in job.tasks:
            total.update(dict(task.amount))
        most = [self._most(path) for path in self._lineage(job.queue) if path != "root"]
        return any(value > each.get(name, value) for name, value in total.items() for each in most)

    def _asks(self, gang: Gang, task: Task, key: str) -> None:
        self.news += 1
        self.waiting.append(Work(key, gang, task, next(self.numbers), self.now_ms, is_holder=not gang.is_open))
        self._watch(self.waiting[-1])

    def _leaves(self, work: Work, *, evicted: bool) -> None:
        self.running.remove(work)
        self.changed = next(self.numbers)
        if not any(other.gang is work.gang for other in (*self.running, *self.waiting)):
            work.gang.is_counted = False
        if work in work.gang.standing:
            work.gang.standing.remove(work)
        if not work.is_holder:
            self.ran.append(Ran(work.task.key, work.node, work.start_ms, self.now_ms, evicted))

    def _strikes(self, node: str) -> None:
        """The node is lost with what runs there, or is back."""
        self.to_look |= {path for path, queue in self.queues.items() if queue.wait_ms}
        self.news += 1
        self.capacity += 1
        self.changed = next(self.numbers)
        if node not in self.nodes:
            self.nodes[node] = self.all_nodes[node]
            return
        lost = sorted((w for w in self.running if w.node == node), key=lambda w: w.started)
        del self.nodes[node]
        self.drained.discard(node)
        for work in self.waiting:
            work.kept_on = "" if work.kept_on == node else work.kept_on
        for work in lost:
            self._leaves(work, evicted=False)
        # What the scheduler tries again itself, and placeholders, are asked for again at once.
        for work in sorted(lost, key=lambda w: (not self._comes_by_itself(w), not w.is_holder)):
            self._comes_back(work)
        self.changed = next(self.numbers)

    def _obeys(self, order: Order) -> None:
        """What an administrator says."""
        if order.node and order.node not in self.nodes:
            return
        if order.window is not None or order.withdrawn:
            self.windows.pop(order.withdrawn, None)
            self.windows |= {} if order.window is None else {order.window.name: order.window}
            self._look_at_windows()
            self._stops_told()
            return
        self.changed = next(self.numbers)
        self.to_look |= {path for path, queue in self.queues.items() if queue.wait_ms and not order.job}
        is_other_room = bool(order.queues or (order.node and order.size != self.nodes[order.node]))
        self.news += is_other_room
        self.capacity += is_other_room
        if order.queues is not None:
            self.queues, self.pack, self.counts_dues = order.queues, order.pack, order.rule == "both"
            for work in self.running:
                self._forget_due(work)
            self._watch_all()
        if order.size:
            self.nodes[order.node], self.is_resized = order.size, True
            for work in [w for w in self.waiting if w.kept_on == order.node]:
                work.kept_on = work.kept_on if self._holds(order.node, work) else ""
        elif order.node:
            self.drained ^= {order.node}
            for work in self.waiting:
                work.kept_on = "" if work.kept_on == order.node and order.node in self.drained else work.kept_on
        if order.is_hold is not None:
            (self._puts_on_hold if order.is_hold else self._releases)(order.job)
            return
        backing_off = (w for _, w in self.held)
        of_job = [*self.waiting, *self.on_hold, *self.running, *backing_off]
        of_job = [w for w in of_job if w.gang.job.name == order.job]
        if order.queue and of_job and self._may_move(of_job[0].gang, order.queue):
            gang = of_job[0].gang
            for work in of_job:
                self._ends_turn(work)
                work.kept_on = ""
            gang.job = replace(gang.job, queue=order.queue)
            for work in of_job:
                self._forget_due(work)
                if work in self.waiting:
                    self._watch(work)
            self._keeps_free_what_moved([w for w in of_job if w in self.running])
            self._stops_told()
        for work in of_job if not order.queue else ():
            if not work.node or work.is_holder:
                work.task = replace(work.task, priority=order.priority)

    def _holds(self, node: str, work: Work) -> bool:
        return all(value <= self.nodes[node].get(name, 0) for name, value in work.task.amount)

    def _forget_due(self, work: Work) -> None:
        """What started within a guarantee that is no more did not start so."""
        dues = [self._due(path) for path in self._lineage(work.gang.job.queue)]
        work.began_due = work.began_due and any(name in due for due in dues for name, _ in work.task.amount)

    def _may_move(self, gang: Gang, queue: str) -> bool:
        """Whether the other queue may hold it, and has room for what runs of it."""
        own = list(self._lineage(gang.job.queue))
        if queue == own[0] or (gang.job.gang and self._is_refused(replace(gang.job, queue=queue))):
            return False
        for path in self._lineage(queue):
            others = {w.gang for w in (*self.running, *self.waiting) if self._within(path, w.gang)} - {gang}
            begun = [g for g in others if self._runs_already(g) or any(w.kept_on and w.gang is g for w in self.waiting)]
            jobs = self.queues[path].jobs if path in self.queues else 0
            if path not in own and jobs and self._runs_already(gang) and len(begun) >= jobs:
                return False
            more: Counter[str] = Counter()
            for work in self.running:
                if work.gang is gang and path not in own and not work.task.idle:
                    more.update(dict(work.task.amount))
            kept = {name: sum(dict(w.task.amount).get(name, 0) for w in self._kept_in(path)) for name in more}
            leaving = {name: self._used(path, name) - self._used(path, name, leaving=False) for name in more}
            for name, value in more.items():
                used, most = self._used(path, name), self._most(path).get(name, NEVER)
                if used + value > most or used - leaving[name] + kept[name] + value > most:
                    return False
        return True

    def _kept_in(self, path: str) -> list[Work]:
        return [w for w in self.waiting if w.kept_on and self._within(path, w.gang)]

    def _settle(self) -> None:
        """Turn after turn until nothing more follows."""
        while True:
            self.is_first, self.has_moved = True, False
            while self._turn() or self._lets_pass() or self._takes_what_is_left() or self._give_way():
                pass
            taken_over = [work for work in self.running if work.takes_over]
            followed = bool(self.told or self.whole or taken_over)
            for work in taken_over:
                work.takes_over, self.changed = False, next(self.numbers)
                self.to_look |= {work.gang.job.queue} if self._wait_ms(work) else set()
            for gang in self.whole:
                self._open(gang)
            self.whole = []
            self._stops_told()
            if not followed:
                return

    def _stops_told(self) -> None:
        """What was told to stop does so when its grace is over."""
        told, self.told = self.told, []
        for work in told:
            work.told = next(self.numbers)
            if work.task.grace_ms and not work.is_holder:
                work.leaves_ms = self.now_ms + work.task.grace_ms
                continue
            self._leaves(work, evicted=True)
            self._comes_back(work)

    def _open(self, gang: Gang) -> None:
        """The tasks take the places of their placeholders."""
        gang.is_open = True
        self.news += 1
        gang.waits_for = None
        self._lets_gathered_go(gang)
        places = list(gang.standing)
        for task in gang.job.tasks:
            work = Work(task.key, gang, task, next(self.numbers), self.now_ms)
            self._watch(work)
            holder = next((each for each in places if each.task.amount == task.amount), None)
            if holder is None:
                self.waiting.append(work)
                continue
            places.remove(holder)
            gang.standing.remove(holder)
            self.running.remove(holder)
            work.node, work.takes_over = holder.node, True
            work.began, work.began_due = holder.began, holder.began_due
            self._runs(work)

    def _runs(self, work: Work) -> None:
        work.start_ms, work.started = self.now_ms, next(self.numbers)
        self.last_ms = self.last_ms if work.is_holder else self.now_ms
        work.began = work.began or work.started
        work.gang.has_begun = work.gang.is_counted = True
        work.end_ms = NEVER if work.is_holder else self.now_ms + work.task.run_ms
        work.kept_on = ""
        self.running.append(work)

    def _comes_back(self, work: Work) -> None:
        """What was stopped is asked for again, as it was at first."""
        gang = work.gang
        task = next(each for each in gang.job.tasks if each.key == work.task.key)
        if work.is_holder and gang.is_open:
            return
        if not work.is_holder and task.retries is not None:
            if work.tries <= task.retries:
                task = replace(task, priority=work.task.priority)
                fresh = Work(task.key, gang, task, 0, 0, tries=work.tries + 1)
                self.held.append((self.now_ms + (task.backoff_ms << (work.tries - 1)), fresh))
                if not task.backoff_ms:
                    self._enter(self.held.pop()[1])
            return
        if work.is_holder:
            again = f"{work.key}~"
        else:
            gang.tries[work.task.key] += 1
            again = f"{work.task.key}#{gang.tries[work.task.key] + 1}"
        if self._comes_by_itself(work):
            task = replace(task, priority=work.task.priority)
        self.news += not self._comes_by_itself(work)
        self.waiting.append(Work(again, gang, task, next(self.numbers), self.now_ms, is_holder=work.is_holder))
        self._watch(self.waiting[-1])

    def _comes_by_itself(self, work: Work) -> bool:
        """Whether the scheduler tries it again, and not its owner."""
        if work.is_holder or work.task.retries is None:
            return work.leaving and (work.gave_way if work.is_holder else work.task.idle)
        return work.tries <= work.task.retries

    def _enters(self) -> None:
        """What was held back long enough is in line."""
        for at_ms, work in [each for each in self.held if each[0] == self.now_ms]:
            self.changed = next(self.numbers)
            self.held.remove((at_ms, work))
            self.news += at_ms == work.task.begin_ms
            self._enter(work)

    def _enter(self, work: Work) -> None:
        work.number, work.made_ms = next(self.numbers), self.now_ms
        self.waiting.append(work)
        self._watch(work)

    def _turn(self) -> bool:
        """The first in line that can do anything does it."""
        if self.is_first:
            self.has_moved, self.is_first = self._keep_turns(), False
        for gang in {work.gang for work in self.waiting} if self._is_bounded() else ():
            self._runs_already(gang)  # That it does no longer is noted before it may be so again.
        for work in [w for w in self.waiting if w.kept_on]:
            if not work.gathers and not self._room_for(work) and not self._something_leaves(work):
                work.kept_on = ""
        passed: dict[str, tuple[Work, str]] = {}
        for work in sorted((w for w in self.waiting if not w.task.idle), key=self._place_in_line):
            if work.gang.waits_for is not None or self._is_behind_holders(work):
                continue
            if self._waits_for_turn(work) and not work.kept_on:
                continue
            node = self._room_for(work)
            if node and not work.kept_on and (work.gang.job.queue in passed or self._lets_another_go_on(work)):
                passed.setdefault(work.gang.job.queue, (work, node))
                continue
            if node:
                # Nothing weaker passes what let another gang go on.
                before = [each for each in passed.values() if self._is_stronger(each[0], work)]
                first = min(before, key=lambda each: self._place_among_gangs(each[0]), default=(work, node))
                self._placed(*first)
                return True
            plan = None if work.kept_on and not work.gathers else self._plan_of(work)
            if plan is not None:
                for nominee in plan.cleared:
                    nominee.kept_on = ""
                for victim in plan.victims:
                    self._tell(victim, work.key)
                    if plan.is_loss or victim in plan.others:
                        self.lost = [*self.lost, (self.now_ms, victim.gang.job.queue)]
                        self.pairs = {**self.pairs, (work.name, victim.name): self.news}
                work.kept_on, work.kept_since, work.gathers = plan.node, next(self.numbers), False
                work.awaits = (*plan.victims, *plan.leaving)
                self.has_moved = True
                return True
        if passed:
            self._placed(*min(passed.values(), key=lambda each: self._place_among_gangs(each[0])))
        self.is_first = self.is_first or self.has_moved
        return bool(passed) or self.has_moved

    def _takes_what_is_left(self) -> bool:
        """The first idle work that can start does."""
        for work in sorted((w for w in self.waiting if w.task.idle), key=_place_of_idle):
            if not self._waits_for_turn(work) and (node := self._room_for_idle(work)):
                self._placed(work, node)
                return True
        return False

    def _is_behind_holders(self, work: Work) -> bool:
        """While placeholders of its size leave for others of its gang, it waits."""
        of_gang = (w for w in self.running if w.takes_over and w.gang is work.gang)
        return any(w.task.amount == work.task.amount for w in of_gang)

    def _place_among_gangs(self, each: Work) -> tuple[int, int, bool, int, int]:
        gang = each.gang
        has_begun = any(w.is_holder and w.gang is gang for w in self.running)
        return (*self._strength(each), not has_begun, gang.job.at_ms, gang.number)

    def _lets_another_go_on(self, work: Work) -> bool:
        """Whether it is a placeholder, and a gang of another queue has begun, is not below it and can have more now."""
        begun, place = {w.gang for w in self.running if w.is_holder}, self._place_among_gangs
        others = (
            w for w in self.waiting if w.is_holder and w.gang in begun and w.gang.job.queue != work.gang.job.queue
        )
        others = (w for w in others if (not w.kept_on or w.gathers) and not self._waits_for_turn(w))
        others = (w for w in others if w.gang.waits_for is None and not self._is_stronger(work, w))
        before = [w for w in others if place(w) < place(work)]
        return work.is_holder and any(self._room_for(other) for other in before)

    def _something_leaves(self, work: Work) -> bool:
        return any(each in self.running for each in work.awaits) or self._waits_above(work)

    def _tell(self, victim: Work, for_whom: str) -> None:
        victim.leaving, victim.told_ms = True, self.now_ms
        if victim in victim.gang.standing:
            victim.gang.standing.remove(victim)
        self.told.append(victim)
        if not victim.is_holder:
            self.evicted.append((self.now_ms, victim.task.key, for_whom.partition("~")[0].partition("#")[0]))

    def _placed(self, work: Work, node: str, *, passes: bool = False) -> None:
        """It starts; what `passes` a turn leaves the room that gathers for that in time."""
        work.node, work.began_due = node, self._distance(work) < NOT_DUE and not work.task.idle
        self.waiting.remove(work)
        self.is_first = True
        self._runs(work)
        self._ends_turn(work)
        nominees = sorted((w for w in self.waiting if w.kept_on == node), key=lambda w: w.kept_since)
        passes = passes or not self.is_by_rank
        while nominees and not passes and min(self._left_on(node).values()) < 0:
            weakest = nominees[0]
            for other in nominees[1:]:
                weakest = weakest if self._is_stronger(other, weakest) else other
            weakest.kept_on = ""
            nominees.remove(weakest)
        if work.is_holder:
            work.gang.standing.append(work)
            if len(work.gang.standing) == len(work.gang.job.tasks):
                self.whole.append(work.gang)
                self._part_ways(work.gang)

    def _left_on(self, node: str) -> Amount:
        """What is left beside all that is kept there, once all has left that was told to."""
        left = self._free(node, lambda w: True)
        for work in self.running:
            for name, value in work.task.amount if work.leaving and work.node == node else ():
                left[name] += value
        return left

    def _give_way(self) -> bool:
        """The first that can be whole with what later ones hold takes it from as few of them as it needs."""
        gangs = sorted({w.gang for w in self.waiting if w.is_holder}, key=self._place_of_gang)
        freed = False
        for first in gangs:
            awaiting = [g for g in gangs if g.waits_for is first]
            if awaiting and not self._fits_alone(first):
                self._part_ways(first)
                freed = True
        # One for whose last members room is kept is whole as soon as that is free.
        lacking = {w.gang for w in self.waiting if w.is_holder and (not w.kept_on or w.gathers)}
        waiting = [gang for gang in gangs if gang.standing and gang.waits_for is None and gang in lacking]
        if len(waiting) < 2 or any(w.is_holder and w.gang.waits_for in waiting for w in self.running):
            return freed
        for first in waiting:
            if any(self._waits_for_turn(w) for w in self.waiting if w.is_holder and w.gang is first):
                continue  # Room would be of no use to it.
            giving: list[Gang] = []
            for later in reversed(waiting):
                if later is first or (gangs.index(later) < gangs.index(first) and self._fits_alone(later)):
                    continue
                if self._stays(later, first):
                    continue
                giving.append(later)
                if self._is_whole_without(first, giving):
                    break
            else:
                continue
            for spared in list(giving):
                fewer = [gang for gang in giving if gang is not spared]
                if fewer and self._is_whole_without(first, fewer):
                    giving = fewer
            for later in giving:
                times, capacity, _ = self.gave_way.get((later, first), (0, self.capacity, 0))
                times = times + 1 if capacity == self.capacity else 1
                self.gave_way[later, first] = (times, self.capacity, self.now_ms)
                for gang in (*(g for g in gangs if g.waits_for is later), later):
                    gang.waits_for = first
                for work in self.waiting:
                    work.kept_on = "" if work.gang is later else work.kept_on
                self._gives_back(later)
            return True
        return freed

    def _gives_back(self, gang: Gang) -> None:
        sizes = [task.amount for task in gang.job.tasks]  # Each size is a group, the first that came first.
        for work in sorted(gang.standing, key=lambda w: (sizes.index(w.task.amount), w.number)):
            self._tell(work, "")
            work.gave_way = True

    def _stays(self, later: Gang, first: Gang) -> bool:
        """Whether it gave way to the other one twice within an hour, with as much capacity."""
        times, capacity, last_ms = self.gave_way.get((later, first), (0, 0, 0))
        if times < 2 or capacity != self.capacity:
            return False
        if last_ms + HOUR_MS <= self.now_ms:
            del self.gave_way[later, first]
            return False
        self._looks_again(last_ms + HOUR_MS)
        return True

    def _place_of_gang(self, gang: Gang) -> tuple[int, int, int]:
        lacking = [w for w in self.waiting if w.gang is gang and w.is_holder]
        return (-max(self._seen(w, "root") for w in lacking), gang.job.at_ms, gang.number)


def _place_of_idle(work: Work) -> tuple[bool, int, int, int]:
    return (not work.is_retried, -work.task.priority, work.made_ms, work.number)
