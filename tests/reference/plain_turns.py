"""Turns that are kept for what waited too long (`wait.max`): which, what waits for them, and where room gathers.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from reference.plain_beside import Places
from reference.plain_idle import Idle
from reference.plain_line import NEVER, Gang, Work


class Turns(Idle):
    """What waited too long, and what waits for it."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.turns: dict[Work, str] = {}
        """What has its turn kept, with the queue whose limit of its user is in its way; nothing: none is."""
        self.leaves: list[str] = []
        """Those with any, in the order in which they began to have some."""
        self.late_ms: dict[str, int] = {}
        """By leaf when it is looked at next."""
        self.to_look: set[str] = set()
        """Leaves that are looked at in the next turn."""

    def _wait_ms(self, work: Work) -> int:
        return self.queues[work.gang.job.queue].wait_ms

    def _watch(self, work: Work) -> None:
        """It begins to wait."""
        if self._wait_ms(work) and not work.task.idle:
            path, due_ms = work.gang.job.queue, work.made_ms + self._wait_ms(work)
            self.late_ms[path] = min(self.late_ms.get(path, NEVER), max(due_ms, self.now_ms))

    def _watch_all(self) -> None:
        """Queues may have another `wait.max`, or none, or other limits."""
        for path in [path for path in self.late_ms if not self.queues[path].wait_ms]:
            del self.late_ms[path]
        for work in [w for w, limit in self.turns.items() if limit or not self._wait_ms(w)]:
            self._ends_turn(work)
        for work in self.waiting:
            self._watch(work)

    def _turns_in(self, leaf: str) -> list[Work]:
        return [w for w in self.turns if w.gang.job.queue == leaf]

    def _waits_for_turn(self, work: Work) -> bool:
        """Whether it is behind one whose turn is kept: all idle work of its group is."""
        if work.task.idle:
            group = self._group(work.gang.job.queue)
            return any(self._within(group, first.gang) and self._concerns(first, work) for first in self.turns)
        return any(self._is_behind(first, work) for first in self._turns_in(work.gang.job.queue))

    def _concerns(self, first: Work, work: Work) -> bool:
        """Whether the one with a turn could use what the other would take."""
        limit = self.turns[first]
        return not limit or (self._within(limit, work.gang) and work.gang.job.user == first.gang.job.user)

    def _is_behind(self, first: Work, work: Work) -> bool:
        if first is work or not self._concerns(first, work):
            return False
        if work.gang is first.gang and self._in_line(work) < self._in_line(first):
            return False
        if work.task.priority != first.task.priority:
            return work.task.priority < first.task.priority
        return self._in_line(work) > self._in_line(first)

    def _in_line(self, work: Work) -> tuple[int, bool, int, int]:
        return (-work.task.priority, not work.is_retried, work.made_ms, work.number)

    def _keep_turns(self) -> bool:
        """Before each start: give turns that are due, and gather room for those that have one. Whether a place was
        given up for one, after which another limit may be in the way.
        """
        for work, limit in list(self.turns.items()):
            self.turns[work] = self._limit_in_the_way(work, limit)
            if self.turns[work] != limit:
                self.to_look.add(work.gang.job.queue)
        while self.to_look:
            path = next(each for each in self.queues if each in self.to_look)
            self.to_look.remove(path)
            self._give_turns(path)
        made = [work for work in self._with_turns() if self._is_bounded() and self._make_place(work)]
        for work in self._with_turns():
            self._gather(work)
        return bool(made)

    def _with_turns(self) -> list[Work]:
        """Leaf by leaf, in the order in which these began to have any."""
        return [w for leaf in self.leaves for w in self._turns_in(leaf)]

    def _limit_in_the_way(self, work: Work, before: str = "") -> str:
        """The queue whose limit of its user does not let it start: its job or its amount; the same one as before if
        that does not, still.
        """
        lineage = list(self._lineage(work.gang.job.queue))
        waits = not self._runs_already(work.gang)
        closed = [p for p in lineage if waits and not self._places_in(p, work)[0]]
        by_user = [p for p in lineage if waits and not self._places_in(p, work)[1]]
        full = [p for p in lineage if not self._is_allowed_in(p, work)]
        if before in (*by_user, *full):
            return before
        return [*(by_user if not closed else []), *full, ""][0]

    def _is_allowed_in(self, path: str, work: Work) -> bool:
        limits, user = (path in self.queues and self.queues[path].users) or {}, work.gang.job.user
        return all(self._used(path, n, user) + value <= limits.get(n, NEVER) for n, value in work.task.amount)

    def _give_turns(self, path: str) -> None:
        """One for each limit that is in the way, and one for what is held back by none."""
        wait_ms = self.queues[path].wait_ms
        kept = self._turns_in(path)
        waiting = [w for w in self.waiting if w.gang.job.queue == path and not w.task.idle and wait_ms]
        is_looked_for = not kept or self._has_limits()
        for later in [w for w in waiting if w.made_ms + wait_ms > self.now_ms and is_looked_for]:
            self._watch(later)
        late = [w for w in waiting if w.made_ms + wait_ms <= self.now_ms and w not in kept and is_looked_for]
        found = [(self._limit_in_the_way(w, self.turns.get(w, "")), w) for w in (*kept, *late)]
        limits: list[tuple[str, str]] = []
        for limit, work in sorted(found, key=lambda each: (not each[0], each[1] not in kept, *_age(each[1]))):
            whose = (limit, work.gang.job.user if limit else "")
            if not self._could_ever_run(work) or whose in limits or (not limit and self._is_behind_limited(work)):
                self._ends_turn(work)
            else:
                limits.append(whose)
                self.turns.setdefault(work, limit)
                self.leaves += [path] if path not in self.leaves else []

    def _is_behind_limited(self, work: Work) -> bool:
        """Whether one holds it back that waits for a limit of its user."""
        return any(self.turns[w] and self._is_behind(w, work) for w in self._turns_in(work.gang.job.queue))

    def _has_limits(self) -> bool:
        return any(queue.users or queue.user_jobs for queue in self.queues.values())

    def _ends_turn(self, work: Work) -> None:
        """It starts, or could not any more."""
        if self.turns.pop(work, None) is not None:
            self.to_look.add(leaf := work.gang.job.queue)
            self.leaves = [each for each in self.leaves if each != leaf or self._turns_in(leaf)]
            if work.gathers:
                work.kept_on, work.gathers = "", False

    def _could_ever_run(self, work: Work) -> bool:
        maxima = [self._most(path) for path in self._lineage(work.gang.job.queue) if path != "root"]
        if any(value > most.get(name, value) for most in maxima for name, value in work.task.amount):
            return False
        return any(self._fits(work, node, amount) for node, amount in self.nodes.items())

    # -- a place among the jobs that run ------------------------------------------------------------------------------

    def _make_place(self, work: Work) -> bool:
        """The last that came of the jobs that have a place and only wait for turns gives it up, while that may help."""
        leaves = {w.gang.job.queue for w in self.turns}
        given_up = 0
        while work.gang.waits_for is None and (closed := self._closed_for(work)):
            path, user = closed
            others = {w.gang for w in self.waiting if w.gang.job.queue in leaves and self._within(path, w.gang)}
            counted = [
                g for g in others if self._runs_already(g) and (not user or (g.is_counted and g.job.user == user))
            ]
            waiting = [gang for gang in counted if self._only_waits_for_turns(gang)]
            if not waiting:
                break
            stand = {w.gang for w in self.running}
            last = max(waiting, key=lambda gang: (gang not in stand, gang.number))
            if last in stand:
                # Gangs that are not whole, where there are no others.
                if all(gang.standing for gang in waiting):
                    self._gives_back(last)
                    given_up += 1
                break
            last.has_begun = last.is_counted = False
            given_up += 1
        return given_up > 0

    def _closed_for(self, work: Work) -> tuple[str, str] | None:
        """Where its job has no place, nor gets one: the first queue from the root down, else the first limit of its
        user from the leaf up.
        """
        if self._runs_already(work.gang):
            return None
        lineage = list(self._lineage(work.gang.job.queue))
        closed = [(p, "") for p in lineage[::-1] if not self._places_in(p, work)[0]]
        closed += [(p, work.gang.job.user) for p in lineage if not self._places_in(p, work)[1]]
        return closed[0] if closed else None

    def _only_waits_for_turns(self, gang: Gang) -> bool:
        """Whether nothing of it runs but placeholders of a gang that is not whole, and all that waits of it waits for a
        turn that is kept; so would what stands.
        """
        of_gang, runs = [w for w in self.waiting if w.gang is gang], [w for w in self.running if w.gang is gang]
        if any(not w.is_holder for w in runs) or any(w.kept_on for w in of_gang):
            return False
        if runs and (gang.is_open or not all(self._waits_for_turn(w) for w in gang.standing)):
            return False
        return all(self._waits_for_turn(w) for w in of_gang)

    def _gives_back(self, gang: Gang) -> None:
        """All that stands of it is told to go, and comes again by itself."""
        raise NotImplementedError

    # -- room that gathers --------------------------------------------------------------------------------------------

    def _gather(self, work: Work) -> None:
        if work.kept_on and not work.gathers and self._something_awaited(work):
            return
        if work.kept_on and not (work.gathers or not self._something_awaited(work)):
            return
        wanted = self._is_worth_it(work)
        if work.kept_on:
            if not wanted or not self._is_of_use(work, work.kept_on) or self._misses(work, work.kept_on):
                work.kept_on, work.gathers = "", False
        elif wanted and (node := self._node_for(work)) and self._is_of_use(work, node):
            self._gathers_on(work, node)

    def _is_of_use(self, work: Work, node: str) -> bool:
        """Whether it could hold it, and not just work on other nodes keeps it off."""
        if not self._could_be(work, node):
            return False
        if not self._fits(work, node, self._free(node, lambda w: w is not work)):
            return True
        return not self._is_kept_off(work, node, lambda w: w is not work, [w for w in self.running if w.node == node])

    def _could_be(self, work: Work, node: str) -> bool:
        """Whether it could hold it beside what stands of its gang, which stays until that is whole."""
        own = [each for each in work.gang.standing if work.is_holder and each.node == node]
        left = {n: most - sum(dict(w.task.amount).get(n, 0) for w in own) for n, most in self.nodes[node].items()}
        return self._fits(work, node, left)

    def _misses(self, work: Work, node: str) -> bool:
        """Whether what it wants to be with is not there, and it is none of that itself."""
        if work.task.company.beside in ("", work.task.kind):
            return False
        places = Places(list(self.nodes), self.zones, self._is_named)
        return not places.is_beside(work.task, node, [(w.task, w.node) for w in self.running])

    def _lets_gathered_go(self, gang: Gang) -> None:
        """For a moment its tasks wait in their queue: room gathers anew for what is below them there."""
        top = max(task.priority for task in gang.job.tasks)
        for work in self._turns_in(gang.job.queue):
            if work.gathers and work.task.priority < top:
                work.kept_on, work.gathers = "", False

    def _gathers_on(self, work: Work, node: str) -> None:
        work.kept_on, work.gathers, work.kept_since, work.awaits = node, True, next(self.numbers), ()

    def _something_awaited(self, work: Work) -> bool:
        return any(each in self.running for each in work.awaits) or self._waits_above(work)

    def _is_worth_it(self, work: Work) -> bool:
        """Nothing in its queue is above it, and that queue has room."""
        if work.gang.waits_for is not None or not self._may_begin(work) or self._waits_for_turn(work):
            return False
        if not all(self._is_allowed_in(path, work) for path in self._lineage(work.gang.job.queue)):
            return False
        leaf = work.gang.job.queue
        in_leaf = [w for w in self.waiting if w.gang.job.queue == leaf and not w.task.idle]
        if any(w.task.priority > work.task.priority for w in in_leaf):
            return False
        full = next((path for path in self._lineage(leaf) if path != "root" and self._is_full(path, work)), None)
        is_passed = work.kept_on != "" and bool(self._said(leaf, "is_easy"))
        return is_passed or full != leaf

    def _node_for(self, work: Work) -> str:
        """Where there is room now, else where it lacks least."""
        if not any(self._is_full(path, work) for path in self._lineage(work.gang.job.queue)):
            fits = [n for n in self._open_to(work) if self._has_room(work, n, lambda w: w is not work)]
            if fits:
                return self._first_of(work, fits)
        could_be = [n for n in self._open_to(work) if self._could_be(work, n)]
        suitable = [n for n in could_be if not self._is_kept_off(work, n, lambda w: w is not work)]
        return min(suitable, key=lambda n: (self._shortage(work, n), self._fullness(n), n), default="")

    def _open_to(self, work: Work) -> list[str]:
        """Nodes that are not set aside for others."""
        return list(self.nodes)

    def _shortage(self, work: Work, node: str) -> float:
        free = self._free(node, lambda w: w is not work)
        return sum(max(value - free.get(name, 0), 0) / value for name, value in sorted(work.task.amount))


def _age(work: Work) -> tuple[int, int]:
    return (work.made_ms, work.number)
