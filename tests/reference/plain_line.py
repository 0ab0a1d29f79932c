"""What waits and what runs, added up anew each time: sums, the order of the line, and whether there is room.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from reference.plain_beside import ALONE, Company, Kept, Places, is_shut_out
from reference.plain_wishes import NO_WISHES, Liking, Wishes

Amount = dict[str, int]
NEVER = 1 << 62
NOT_DUE = 99
"""As the distance to the guarantee that an ask is within: it is within none."""


@dataclass(frozen=True)
class Task:
    """What is asked for, and how long it runs when nothing stops it."""

    key: str
    amount: tuple[tuple[str, int], ...]
    priority: int
    run_ms: int
    meek: bool = False
    """It stops nothing."""
    idle: bool = False
    grace_ms: int = 0
    """It goes on for so long once it is told to stop."""
    zone: str = ""
    """It runs on nodes of this zone alone; nothing: on any."""
    required: str = ""
    """It runs on this node alone, be that drained; by guarantee it takes it from others."""
    port: int = 0
    """No node has two with the same."""
    apart: str = ""
    """Nor two with the same of these."""
    unwilling: bool = False
    """It would not be stopped."""
    least_ms: int = 0
    """It is no victim before it has run for so long."""
    team: str = ""
    """What budgets go by."""
    retries: int | None = None
    """How often it is tried again, whatever ended it; None: its owner asks for it again when it was stopped."""
    backoff_ms: int = 0
    fails: bool = False
    """Each of its runs fails."""
    limit_ms: int | None = None
    """It runs no longer than that; None: nobody knows how long."""
    begin_ms: int = 0
    """It is not in line before."""
    kind: str = ""
    """What others want to be with, and it is spread by."""
    company: Company = ALONE
    wishes: Wishes = NO_WISHES


@dataclass(frozen=True)
class Job:
    """Tasks that come together."""

    at_ms: int
    name: str
    queue: str
    user: str
    tasks: tuple[Task, ...]
    gang: bool = False


@dataclass(frozen=True)
class Queue:
    """One queue below the root; a path of several parts is below another one."""

    most: Amount | None = None
    users: Amount | None = None
    """What each user may have here at most."""
    due: Amount | None = None
    """What it is guaranteed."""
    offset: int = 0
    is_fence: bool = False
    """Outside, its work counts for the offset alone."""
    is_fair: bool = False
    """Of equal priority first goes what is of the job that uses the smaller share."""
    is_group: bool = False
    """Idle work of the queues below borrows here."""
    stays: str = ""
    """`fence`: its work stops nothing outside; `disabled`: nothing stops its work."""
    least_ms: int = 0
    """Its work is no victim before it has run for so long."""
    losses: int | None = None
    """So much of its work is stopped for other work within an hour at most."""
    wait_ms: int = 0
    """What waited so long has its turn kept; 0: nothing has."""
    is_easy: bool = False
    """What is held back by such a turn may start where it does not delay it."""
    jobs: int = 0
    """So many jobs run in it and below at most; 0: all."""
    user_jobs: int = 0
    """So many of each user."""
    delay_ms: int = 0
    """What waits in it has nothing stopped by guarantee before that."""
    quota_ms: int = 0
    """So long after its maximum was lowered it gives back what it has too much; 0: as one above says, or never."""
    ignores_priority: bool = False
    """In its order that comes first, and priorities after it."""


@dataclass(frozen=True)
class Budget:
    """How much of the work of a team has to stay, or may be away."""

    team: str
    stay: int = 0
    away: int | None = None


@dataclass(eq=False)
class Work:
    """A task, or a placeholder for one, that waits or runs under a key."""

    key: str
    gang: Gang
    task: Task
    number: int
    made_ms: int
    is_holder: bool = False
    tries: int = 1
    node: str = ""
    start_ms: int = 0
    started: int = 0
    began: int = 0
    """When what has its room since got it: itself, or its placeholder."""
    began_due: bool = False
    """Within a guarantee."""
    end_ms: int = NEVER
    leaving: bool = False
    gave_way: bool = False
    """It is leaving for another gang's sake."""
    told: int = 0
    told_ms: int = 0
    leaves_ms: int = NEVER
    takes_over: bool = False
    """Its placeholder has not left yet: it is no victim before it has."""
    kept_on: str = ""
    """Room is kept for it there, since so many others got room kept."""
    gathers: bool = False
    """Room gathers there, since it waited too long."""
    kept_since: int = 0
    reserved: str = ""
    """This node is set aside for it."""
    reserved_ms: int = 0
    """Since then."""
    has_made_room: bool = False
    """Work was told to stop for it, on the node that is set aside for it."""
    tried_ms: int = -NEVER
    """When it tried last to have work stopped."""
    rests: bool = False
    """Then it was too large, and has been since: it goes on trying in vain, also where a limit is in its way."""
    awaits: tuple[Work, ...] = ()
    """What has to leave before it starts."""

    @property
    def name(self) -> str:
        """All that it was tried as before is the same work."""
        return self.key if self.task.retries is None else self.task.key

    @property
    def is_retried(self) -> bool:
        """It goes ahead of its like that was not tried before."""
        return self.tries > 1 and self.task.retries is not None


@dataclass(eq=False)
class Gang:
    """A job that came: its place among jobs, and for a gang what stands, in the order in which it began to."""

    job: Job
    number: int
    is_open: bool
    standing: list[Work] = field(default_factory=list)
    waits_for: Gang | None = None
    tries: Counter[str] = field(default_factory=Counter)
    has_begun: bool = False
    """Something of it has started, and it has had ordinary work in line, or some that runs, ever since; and has not
    given way.
    """
    is_counted: bool = False
    """It counts for its user. What was stopped, so that nothing of it ran or waited for a moment, does not before it
    starts again, though it needs no place.
    """


class Line:
    """What waits and what runs on which nodes, in which queues."""

    def __init__(
        self,
        nodes: dict[str, Amount],
        queues: dict[str, Queue],
        *,
        pack: bool,
        zones: dict[str, str] | None = None,
        budgets: Sequence[Budget] = (),
    ) -> None:
        self.nodes, self.queues, self.pack = dict(nodes), queues, pack
        self.zones, self.budgets = zones or {}, budgets
        self.disliked: frozenset[str] = frozenset()
        """Nodes that nothing goes to where another one does as well."""
        self.drained: set[str] = set()
        self.is_resized = False
        """Some node has not the size any more that it had."""
        self.is_by_rank = True
        """What goes before takes room that is kept for weaker ones."""
        self.counts_dues = True
        """Guarantees count for rank (`both`)."""
        self.now_ms = 0
        self.numbers = count(1)
        self.changed = 0
        """When something happened last that was more than new work."""
        self.held: list[tuple[int, Work]] = []
        """What waits for its back-off, and until when."""
        self.waiting: list[Work] = []
        self.running: list[Work] = []

    def _said(self, path: str, name: str) -> object:
        """What a queue says, or the nearest above it that says anything."""
        says = (getattr(self.queues[each], name) for each in self._lineage(path) if each in self.queues)
        return next((value for value in says if value not in (None, 0, "")), None)

    # -- sums ---------------------------------------------------------------------------------------------------------

    def _lineage(self, path: str) -> Iterator[str]:
        """From the leaf to the root."""
        while path:
            yield path
            path = path.rpartition(".")[0]

    def _within(self, path: str, gang: Gang) -> bool:
        return path == "root" or gang.job.queue == path or gang.job.queue.startswith(f"{path}.")

    def _counts(self, path: str, work: Work) -> bool:
        """Whether it is in the books of a queue: idle work is in those of its group and above alone."""
        counted = self._group(work.gang.job.queue) if work.task.idle else work.gang.job.queue
        return path == "root" or f"{counted}.".startswith(f"{path}.")

    def _group(self, leaf: str) -> str:
        """Where idle work of a leaf borrows: the nearest queue above that says so, else the root."""
        above = list(self._lineage(leaf))[1:-1]
        return next((path for path in above if self.queues[path].is_group), "root")

    def _used(self, path: str, name: str, user: str = "", *, leaving: bool = True, idle: bool = True) -> int:
        if user:
            found = (w for w in self.running if self._within(path, w.gang) and user == w.gang.job.user)
        else:
            found = (w for w in self.running if self._counts(path, w))
        found = (w for w in found if (leaving or not w.leaving) and (idle or not w.task.idle))
        return sum(dict(w.task.amount).get(name, 0) for w in found)

    def _kept(self, path: str, name: str, but: Work, user: str = "") -> int:
        kept = (w for w in self.waiting if w.kept_on and w is not but and self._keeps_in(path, w))
        found = (w for w in kept if self._within(path, w.gang) and user in ("", w.gang.job.user))
        return sum(dict(w.task.amount).get(name, 0) for w in found)

    def _keeps_in(self, path: str, work: Work) -> bool:
        """Whether what is kept for it counts in a queue: for all nodes together only where the single ones do not say
        enough, and not where room just gathers.
        """
        return path != "root" or (not work.gathers and self._is_overdrawn())

    def _is_overdrawn(self) -> bool:
        """Whether more runs on some node than it has."""
        return self.is_resized and any(min(self._free(node, lambda w: False).values()) < 0 for node in self.nodes)

    def _most(self, path: str) -> Amount:
        if path == "root":
            total: Counter[str] = Counter()
            for amount in self.nodes.values():
                total.update(amount)
            return dict(total)
        return self.queues[path].most or {}

    def _free(self, node: str, counts: Callable[[Work], bool]) -> Amount:
        """What is neither in use on a node nor kept there for those that count."""
        free = dict(self.nodes[node])
        kept = [w for w in self.waiting if w.kept_on == node and counts(w)]
        for work in (*(w for w in self.running if w.node == node), *kept):
            for name, value in work.task.amount:
                free[name] -= value
        return free

    # -- rank ---------------------------------------------------------------------------------------------------------

    def _seen(self, work: Work, place: str) -> int:
        """The priority as it counts in a queue on its way to the root."""
        seen = work.task.priority
        for path in self._lineage(work.gang.job.queue):
            if path == place:
                break
            seen = self.queues[path].offset + (0 if self.queues[path].is_fence else seen)
        return seen

    def _rank(self, work: Work) -> tuple[int, int]:
        return self._seen(work, "root"), work.task.priority

    def _due(self, path: str) -> Amount:
        """What a queue is guaranteed, where that counts for rank."""
        return (self.counts_dues and path in self.queues and self.queues[path].due) or {}

    def _distance(self, work: Work, *, beside_kept: bool = False) -> int:
        """How far up the nearest guarantee is that it is within, as it is within all on its way; a guarantee of nothing
        that it needs is none.
        """
        found = NOT_DUE
        for distance, path in enumerate(self._lineage(work.gang.job.queue)):
            due = self._due(path)
            for name, value in work.task.amount:
                if name in due:
                    found = min(found, distance)
                    kept = self._kept(path, name, work) if beside_kept else 0
                    if self._used(path, name, leaving=False, idle=False) + kept + value > due[name]:
                        return NOT_DUE
        return found

    def _strength(self, work: Work) -> tuple[int, int]:
        """Of what waits, against all else that does: the smaller is the stronger."""
        return self._distance(work), -self._seen(work, "root")

    def _is_stronger(self, work: Work, other: Work) -> bool:
        """Of two that wait."""
        mine, its = self._distance(work), self._distance(other)
        return mine < its if mine != its else self._is_above(work, other)

    def _is_above(self, work: Work, other: Work) -> bool:
        """By priority, where their queues meet."""
        meet = next(path for path in self._lineage(work.gang.job.queue) if self._within(path, other.gang))
        return self._seen(work, meet) > self._seen(other, meet)

    def _may_take_from(self, work: Work, other: Work) -> bool:
        """Whether queues let the one have the other stopped, whatever the priorities."""
        own = self._lineage(work.gang.job.queue)
        fence = next(path for path in own if path == "root" or self.queues[path].stays == "fence")
        return self._within(fence, other.gang) and self._said(other.gang.job.queue, "stays") != "disabled"

    # -- order --------------------------------------------------------------------------------------------------------

    def _share(self, path: str) -> float:
        due = self._most("root")
        for above in reversed(list(self._lineage(path))):
            due |= self._most(above)
        due |= (path in self.queues and self.queues[path].due) or {}
        parts = [
            self._used(path, name) / most if most else float(self._used(path, name) > 0) for name, most in due.items()
        ]
        return max(parts, default=0.0)

    def _place_in_line(self, work: Work) -> tuple[object, ...]:
        """Two are compared where their queues meet; in one queue by priority, job and age."""
        level = []
        for path in list(self._lineage(work.gang.job.queue))[:-1]:
            adjusted = self._seen(work, path.rpartition(".")[0])
            waits = sum(v for w in self.waiting if self._within(path, w.gang) for _, v in w.task.amount)
            level.append((-adjusted, self._share(path), -waits, list(self.queues).index(path)))
        age = (work.gang.job.at_ms, work.gang.number), (work.made_ms, work.number)
        own = (-work.task.priority, not work.is_retried, self._shares_of(work.gang), *age)
        return (*self._strength(work), *reversed(level), own)

    def _shares_of(self, gang: Gang) -> tuple[float, ...]:
        """What a job uses of what its queue is guaranteed, the largest first; of what it is not, all."""
        queue = self.queues[gang.job.queue]
        if not queue.is_fair:
            return ()
        used: Counter[str] = Counter()
        for work in self.running:
            used.update(dict(work.task.amount) if work.gang is gang and not work.is_holder else {})
        return tuple(sorted((used[name] / ((queue.due or {}).get(name) or 1) for name in used), reverse=True))

    def _fullness(self, node: str) -> float:
        total, used = self.nodes[node], 0.0
        free = dict(total)
        for work in self.running:
            for name, value in work.task.amount if work.node == node else ():
                free[name] -= value
        for name in sorted(total):
            used += (1.0 - free[name] / total[name]) * 1.0
        usage = used / float(len(total))
        return 1.0 - usage if self.pack else usage

    # -- room ---------------------------------------------------------------------------------------------------------

    def _fits(self, work: Work, node: str, free: Amount) -> bool:
        return self._takes(work, node) and all(value <= free.get(name, 0) for name, value in work.task.amount)

    def _has_room(self, work: Work, node: str, counts: Callable[[Work], bool], gone: Sequence[Work] = ()) -> bool:
        """Whether it could start there beside all that runs but `gone`, and what is kept for those that count."""
        free = self._free(node, counts)
        for each in gone:
            for name, value in each.task.amount if each.node == node else ():
                free[name] += value
        return self._fits(work, node, free) and not self._is_kept_off(work, node, counts, gone)

    def _is_kept_off(self, work: Work, node: str, counts: Callable[[Work], bool], gone: Sequence[Work] = ()) -> bool:
        """Whether something there, or for which room is kept, has its port or keeps it away. Where room only gathers
        nothing else is kept.
        """
        there = [w for w in self.running if w.node == node and w not in gone]
        there += [w for w in self.waiting if w.kept_on == node and not w.gathers and counts(w)]
        return any(keeps_off(work.task, other.task) for other in there) or self._is_shut_out(work, node, counts, gone)

    def _is_shut_out(self, work: Work, node: str, counts: Callable[[Work], bool], gone: Sequence[Work] = ()) -> bool:
        """Whether it would be with others than it wants to, or keep one from starting for which room is kept."""
        runs = [(w.task, w.node) for w in self.running if w not in gone]
        promised = [w for w in self.waiting if w.kept_on and not w.gathers and counts(w)]
        kept = [Kept(w.task, w.kept_on, [(v.task, v.node) for v in w.awaits if v in self.running]) for w in promised]
        places = Places(list(self.nodes), self.zones, self._is_named)
        return is_shut_out(work.task, node, runs, kept, places)

    def _is_named(self, task: Task, node: str) -> bool:
        return task.zone in ("", self.zones.get(node))

    def _takes(self, work: Work, node: str) -> bool:
        return (node not in self.drained or work.task.required == node) and self._suits(work, node)

    def _suits(self, work: Work, node: str) -> bool:
        return work.task.required in ("", node) and self._is_named(work.task, node)

    def _is_limited(self, work: Work) -> bool:
        return any(path in self.queues and self.queues[path].users for path in self._lineage(work.gang.job.queue))

    def _is_allowed(self, work: Work, yielding: Sequence[Work] = (), gone: Sequence[Work] = ()) -> bool:
        """By the limits of its user, if these had no room kept any more, and those had ended."""
        for path in self._lineage(work.gang.job.queue):
            limits = self.queues[path].users if path in self.queues else None
            for name, value in work.task.amount if limits else ():
                assert limits is not None
                if name in limits:
                    user = work.gang.job.user
                    given = [w for w in yielding if w.gang.job.user == user and self._within(path, w.gang)]
                    given += [w for w in gone if w.gang.job.user == user and self._within(path, w.gang)]
                    kept = self._kept(path, name, work, user) - sum(dict(w.task.amount).get(name, 0) for w in given)
                    if self._used(path, name, user) + kept + value > limits[name]:
                        return False
        return True

    def _is_under_full_limit(self, running: Work, work: Work) -> bool:
        """Whether running work uses some of a limit that has no room for the other one."""
        user = work.gang.job.user
        for path in self._lineage(work.gang.job.queue) if running.gang.job.user == user else ():
            limits = (path in self.queues and self.queues[path].users) or {}
            is_full = any(n in limits and self._used(path, n, user) + v > limits[n] for n, v in work.task.amount)
            if is_full and self._within(path, running.gang):
                return True
        return False

    # -- jobs that run ------------------------------------------------------------------------------------------------

    def _is_bounded(self) -> bool:
        """Whether any queue runs so many jobs at most."""
        return any(queue.jobs or queue.user_jobs for queue in self.queues.values())

    def _runs_already(self, gang: Gang) -> bool:
        """Whether a job has a place among those that run."""
        if any(w.gang is gang for w in self.running):
            return True
        ordinary = (w for w in self.waiting if w.gang is gang and not (w.task.idle or w.is_retried))
        gang.has_begun = gang.has_begun and gang.waits_for is None and any(ordinary)
        gang.is_counted = gang.is_counted and gang.has_begun
        return gang.has_begun

    def _may_begin(self, work: Work, yielding: Sequence[Work] = ()) -> bool:
        """Whether its job has a place among those that run, or gets one, if these had no room kept any more."""
        if not self._is_bounded() or self._runs_already(work.gang):
            return True
        return all(self._has_place_in(path, work, yielding) for path in self._lineage(work.gang.job.queue))

    def _has_place_in(self, path: str, work: Work, yielding: Sequence[Work] = ()) -> bool:
        """Whether one queue has a place left for its job, which does not run, and for one more job of its user."""
        return all(self._places_in(path, work, yielding))

    def _places_in(self, path: str, work: Work, yielding: Sequence[Work] = ()) -> tuple[bool, bool]:
        """Both of them."""
        gang, said = work.gang, self.queues[path] if path in self.queues else Queue()
        if not (said.jobs or said.user_jobs):
            return True, True
        kept = {w.gang for w in self.waiting if w.kept_on and w not in yielding}
        here = {w.gang for w in (*self.running, *self.waiting) if w.gang is not gang and self._within(path, w.gang)}
        begun = [each for each in here if each in kept or self._runs_already(each)]
        own = [g for g in begun if g.job.user == gang.job.user and (g.is_counted or not self._runs_already(g))]
        has_place = not said.jobs or len(begun) < said.jobs
        return has_place, not said.user_jobs or len(own) < said.user_jobs

    def _is_full(self, path: str, work: Work) -> bool:
        """Whether a maximum has no room as it is."""
        most = self._most(path)
        return any(name in most and self._used(path, name) + v > most[name] for name, v in work.task.amount)

    def _lacks(self, path: str, work: Work, gone: list[Work]) -> bool:
        """Whether a maximum has no room, once all is gone that was told to stop, and these."""
        most = self._most(path)
        for name, value in work.task.amount:
            counted = [w for w in gone if (w.node and not w.leaving) or (w.kept_on and self._keeps_in(path, w))]
            given = sum(dict(w.task.amount).get(name, 0) for w in counted if self._counts(path, w))
            used = self._used(path, name, leaving=False) + self._kept(path, name, work) - given
            if name in most and used + value > most[name]:
                return True
        return False

    def _waits_above(self, work: Work) -> bool:
        """Whether the nearest maximum without room gets some from what was told to stop."""
        full = next((path for path in self._lineage(work.gang.job.queue) if self._is_full(path, work)), None)
        return full is not None and any(w.leaving and self._counts(full, w) for w in self.running)

    def _goes_before(self, other: Work, work: Work) -> bool:
        """Of two for which room is kept on a node."""
        is_earlier = other.kept_since < work.kept_since and not self._is_stronger(work, other)
        return other is not work and (is_earlier or self._is_stronger(other, work))

    def _room_for(self, work: Work) -> str:
        """The first node in order with room for it, where no queue or limit is in the way."""
        # It takes its room beside what is kept for those that go before it, while what leaves for the others is in the
        # books still; room that gathers is in the way of none for which work was stopped.
        kept = [w for w in self.waiting if w.kept_on and w is not work] if work.kept_on else []
        behind = [w for w in kept if not self._goes_before(w, work) or (w.gathers and not work.gathers)]
        if not self._is_allowed(work, behind) or not self._may_begin(work):
            return ""
        lineage = list(self._lineage(work.gang.job.queue))
        if any(self._is_full(path, work) or self._lacks(path, work, behind) for path in lineage):
            return ""
        if work.kept_on and self._has_room(work, work.kept_on, lambda w: self._goes_before(w, work)):
            return work.kept_on
        if work.kept_on:
            # What is kept for weaker ones is not in its way, wherever that is.
            weaker = [w for w in self.waiting if w.kept_on and w is not work and self._is_stronger(work, w)]
            nodes = dict.fromkeys(w.kept_on for w in weaker)
            if there := [n for n in nodes if self._has_room(work, n, lambda w: w is not work and w not in weaker)]:
                return self._first_of(work, there)
        fits = [n for n in self.nodes if self._has_room(work, n, lambda w: w is not work or w.gathers)]
        return self._first_of(work, fits)

    def _first_of(self, work: Work, nodes: list[str]) -> str:
        """Where it is liked most, and likes to be; of those the first in order."""
        runs = [(w.task, w.node) for w in self.running]
        liked = Liking(work.task, runs, self.zones, list(self.nodes)).best_of(nodes, self.disliked)
        return min(liked, key=lambda n: (self._fullness(n), n), default="")


def keeps_off(one: Task, other: Task) -> bool:
    """Whether two cannot be on one node."""
    return (one.port != 0 and one.port == other.port) or (one.apart != "" and one.apart == other.apart)
