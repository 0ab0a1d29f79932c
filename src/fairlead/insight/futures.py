"""Futures: one possible course of what is to come, played on a copy by the scheduler itself.

Decides how it is played: everything that runs ends after a time that is given, work may come, what is stopped for
others comes back, everything else is the scheduler's doing. Where time is short it is broken off. Never draws anything,
never a second model of scheduling. Invariant: what was not seen is not made up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.acts.gangs import TIMED_OUT
from fairlead.core.books.timers import ATTEMPT, BACKOFF
from fairlead.core.model.conditions import Outcome
from fairlead.core.model.decisions import Allocated, ApplicationChanged, Decision, Evict, Retried
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Event, Release, RemoveApplication
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import NOTHING
from fairlead.core.model.specs import TAG_GANG_COMES_AGAIN
from fairlead.insight.runtimes import WORK, Gangs, made_anew
from fairlead.insight.trial import Name, leaving
from fairlead.policy.events.held import following
from fairlead.virtual_time import Due, VirtualTime

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.model.specs import AskSpec
    from fairlead.insight.arrivals import Arrival
    from fairlead.scheduler import Scheduler

HORIZON_MS = 30 * 24 * 3_600_000
EVENTS_MAX = 200_000
"""Ends of work and timers that one future is played through at most."""
MANY = 200
COARSE = 64
"""With more than `MANY` that wait, ends that are this part of the time from now apart count as one: 1.6 % of a wait.
So do attempts, and rests of an application, for which nothing is found, after the first `VAIN_EXACT` of them, however
much waits.
"""
VAIN_EXACT = 256
NEW = "~new"
"""How the names of applications begin that come in a future."""
AGAIN = "#again-"
"""What stands in the key of work that was stopped in a future and came back, before a number: it is an attempt."""

IsOver = Callable[[], bool]
NEVER: IsOver = lambda: False  # noqa: E731 - it says what it is


class Played(NamedTuple):
    """What one future showed."""

    starts: dict[Name, int]
    seen_ms: int | None
    """Where it was broken off: what has no start here starts later than this. None: it was not."""


def play_on(
    scheduler: Scheduler,
    draw: Callable[[Ask, int], int],
    wanted: Iterable[Name],
    horizon_ms: int = HORIZON_MS,
    events: Sequence[Event] = (),
    is_over: IsOver = NEVER,
    comes: Iterator[tuple[int, Arrival]] | None = None,
    not_well: Collection[str] = (),
) -> Played:
    """Let one future happen to this very scheduler until all of `wanted` started, or `is_over`; when each ask starts.

    `comes`: work that comes meanwhile, and when, in order of time. `not_well`: applications of which a part has ended
    otherwise than well. Call it on a copy only.
    """
    return _Future(scheduler, draw, wanted, horizon_ms, comes, not_well).run(events, is_over)


class _Future(VirtualTime):
    """One future being played.

    What is told to stop stops at once. Stopped for others it comes back, as in a simulation: by its own retry if it has
    one, else its owner submits it again at once; a job of a cluster that needs so many pods at least, and has fewer
    then, stops and comes again as a whole. It begins anew and takes the time that it would have taken. So does a
    placeholder, whose gang stands whole only with all of them. Where the time of a gang is over its work comes instead,
    and each starts by itself; or it comes again at once, where its owner does so.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        draw: Callable[[Ask, int], int],
        wanted: Iterable[Name],
        horizon_ms: int,
        comes: Iterator[tuple[int, Arrival]] | None = None,
        not_well: Collection[str] = (),
    ) -> None:
        super().__init__(scheduler, scheduler.cluster.now_ms)
        self.draw = draw
        self.gangs = Gangs(scheduler)
        self.left = dict.fromkeys(wanted)
        self.starts: dict[Name, int] = {}
        self.made = self.now_ms
        self.until = self.now_ms + horizon_ms
        self.comes, self.not_well = comes, not_well
        self.came = 0
        self._ends_of: dict[Name, Due] = {}
        self._takes: dict[Name, int] = {}
        """Of what runs, or was stopped and waits again: how long it takes in all."""
        self._first: dict[Name, Name] = {}
        """Of what came back: what it was called before all of this."""
        self._placeholders: dict[tuple[str, str], dict[str, AskSpec]] = {}
        """Of each gang that was not whole yet, by what they were called before all of this."""
        self._again = 0
        self._in_vain = False
        """Nothing was decided when time went on last."""
        self._vain = 0
        """How often that was so."""
        for name, partition in scheduler.cluster.partitions.items():
            for app in partition.applications.values():
                if app.spec.placeholder_ask:
                    self._note_placeholders(name, (ask.spec for ask in app.asks.values()))

    def run(self, events: Sequence[Event], is_over: IsOver) -> Played:
        for stopped in sorted(leaving(self.scheduler), key=lambda each: each.cause is not Cause.PREEMPTED_BY_SCHEDULER):
            self._stops(stopped)
            if self.follow():
                self.settle()
        for name, partition in self.scheduler.cluster.partitions.items():
            for node in partition.nodes.nodes.values():
                for ask in node.allocations:
                    since = self.now_ms if ask.allocated_ms is None else ask.allocated_ms
                    self._will_end(name, ask, self.now_ms - since)
        for event in events:
            self._happens(event)
        for standing in self.gangs.standing():
            self._happens(standing.work())
        self._next_comes()
        self.settle()
        for _ in range(EVENTS_MAX):
            moment = self._next()
            if not self.left or moment is None or moment > self.until:
                return Played(self.starts, None)
            if is_over():
                return Played(self.starts, self.now_ms)
            together_until = moment + (max(moment - self.made, 0) // COARSE if len(self.left) > MANY else 0)
            self.now_ms, self._in_vain = max(moment, self.now_ms), True
            self.happen(together_until)
            self.settle()
        return Played(self.starts, self.now_ms if self.left else None)

    def _next_comes(self) -> None:
        """The next work that is to come has its time."""
        at_ms, arrival = next(self.comes, (0, None)) if self.comes is not None else (0, None)
        if arrival is not None and at_ms <= self.until:
            self.later(at_ms, partial(self._comes, arrival))

    def _comes(self, arrival: Arrival) -> None:
        self.came += 1
        for event in arrival.again(f"{NEW}-{self.came}"):
            self._happens(event)
        self._next_comes()

    def _next(self) -> int | None:
        # A timer alone can start nothing for ever: without work that ends the future stands still in the end.
        wakes_ms, timers = self.scheduler.next_wakeup_ms(), self.scheduler.cluster.timers
        self._vain += self._in_vain
        if wakes_ms is not None and self._vain > VAIN_EXACT and self._in_vain and wakes_ms == timers.next_due_ms():
            # What rests, or tries to preempt, and finds nothing does so over and over: the longer that lasts the more
            # seldom.
            others = (timer.due_ms for timer in timers.pending() if timer.kind not in (ATTEMPT, BACKOFF))
            wakes_ms = max(wakes_ms, min((self.now_ms + (self.now_ms - self.made) // COARSE, *others)))
        return min((ms for ms in (self.due_ms, wakes_ms) if ms is not None), default=None)

    def _happens(self, event: Event) -> None:
        """Where something follows at once, what that makes possible comes before what happens next."""
        self.handle(event)
        if self.follow():
            self.settle()

    def handle(self, event: Event) -> list[Decision]:
        """As virtual time does; which placeholders come is noted."""
        if isinstance(event, AddAsks):
            self._note_placeholders(event.partition, event.asks)
        return super().handle(event)

    def _note_placeholders(self, partition: str, asks: Iterable[AskSpec]) -> None:
        for spec in asks:
            if spec.placeholder:
                _, app, key = self._first.get(name := (partition, spec.application, spec.key), name)
                self._placeholders.setdefault((partition, app), {})[key] = made_anew(spec, key)

    def take(self, decisions: list[Decision]) -> None:
        super().take(decisions)
        self._in_vain = self._in_vain and not decisions
        for number, each in enumerate(decisions):
            if isinstance(each, Allocated):
                self._started(each, partial(islice, decisions, number, None))
            elif isinstance(each, Retried):
                self._comes_back((each.partition, each.application, each.key), each.new_key)
            elif isinstance(each, ApplicationChanged) and each.cause == TIMED_OUT:
                self._given_up(each.partition, each.id)

    def stop(self, order: Evict) -> None:
        self._stops(Release(order.application, order.key, order.cause, order.partition))

    def _stops(self, told: Release) -> None:
        """It stops, and comes back if it was stopped for others."""
        name = (told.partition, told.application, told.key)
        app = self._application(told.partition, told.application)
        ask = app.asks.get(told.key) if app is not None else None
        self._ends_not(name)
        if told.cause is Cause.PREEMPTED_BY_SCHEDULER and app is not None and ask is not None and _loses_all(app, ask):
            self._comes_as_a_whole(told.partition, app)
            return
        is_retried = any(isinstance(each, Retried) for each in self.handle(told))
        if ask is None or is_retried or (ask.spec.retry is not None and not ask.spec.placeholder):
            return
        if ask.spec.placeholder and self.gangs.has_stood(told.partition, told.application):
            # Its work has come, and waits for room by itself now.
            return
        if told.cause is Cause.PREEMPTED_BY_SCHEDULER:
            self._again += 1
            key = f"{told.key.partition(AGAIN)[0]}{AGAIN}{self._again}"
            self._comes_back(name, key)
            group = ask.spec.task_group if ask.spec.placeholder else ""
            self.handle(AddAsks((replace(made_anew(ask.spec, key), task_group=group),), told.partition))

    def _ends_not(self, name: Name) -> None:
        end = self._ends_of.pop(name, None)
        if end is not None:
            end.call_off()

    def _comes_as_a_whole(self, part: str, app: Application) -> None:
        """All work of a job stops and waits for the room of all of it; it takes as long as before."""
        asks = []
        for ask in [each for each in app.asks.values() if not each.spec.placeholder]:
            name = (part, app.id, ask.key)
            self._ends_not(name)
            self._again += 1
            key = f"{ask.key.partition(AGAIN)[0]}{AGAIN}{self._again}"
            self._comes_back(name, f"{key}{WORK}")
            self._first[part, app.id, key] = self._first[part, app.id, f"{key}{WORK}"]
            asks.append(replace(made_anew(ask.spec, key), placeholder=True))
        total = sum((ask.resources for ask in asks), NOTHING)
        spec = replace(app.spec, placeholder_ask=total, gang_style="Hard")
        self.gangs.falls_apart(part, app.id)
        self.handle(RemoveApplication(app.id, part))
        self.then(lambda: [self.handle(event) for event in (AddApplication(spec), AddAsks(tuple(asks), part))])

    def _comes_back(self, name: Name, new_key: str) -> None:
        """Under another key, and takes as long as before."""
        self._first[*name[:2], new_key] = self._first.pop(name, name)
        if (takes_ms := self._takes.pop(name, None)) is not None:
            self._takes[*name[:2], new_key] = takes_ms

    def _started(self, placed: Allocated, then: Callable[[], Iterator[Decision]]) -> None:
        """Note it; where a gang stands whole now, its owner brings the work, also of what is told to stop `then`."""
        app = self._application(placed.partition, placed.application)
        ask = app.asks.get(placed.key) if app is not None else None
        if app is None or ask is None:
            return
        if not ask.spec.placeholder:
            self._note((placed.partition, app.id, ask.key))
            self.then(partial(self._tell, placed.partition, app.id, ask.key, Outcome.STARTED))
            self._will_end(placed.partition, ask, 0)
        elif (gang := self.gangs.complete(placed.partition, app, then)) is not None:
            self._placeholders.pop((placed.partition, app.id), None)
            for key in gang.placeholders:
                self._note((placed.partition, app.id, key))
            self.then(partial(self.handle, gang.work()))

    def _given_up(self, part: str, app_id: str) -> None:
        """The gang did not come together in its time: its work goes on one by one, or it comes again as a whole."""
        app, placeholders = self._application(part, app_id), self._placeholders.pop((part, app_id), {})
        if app is None:
            return
        if app.state is State.RESUMING:
            work = []
            for key, spec in placeholders.items():
                new_key = f"{key}{WORK}"
                self._first[part, app_id, new_key] = (part, app_id, key)
                work.append(replace(spec, key=new_key, placeholder=False, task_group=""))
            self.then(partial(self.handle, AddAsks(tuple(work), part)))
        elif TAG_GANG_COMES_AGAIN in app.spec.tags:
            asks = tuple(placeholders.values())
            events = (RemoveApplication(app_id, part), AddApplication(app.spec), AddAsks(asks, part))
            # What is told to stop does so before.
            self.then(lambda: self.then(lambda: [self.handle(event) for event in events]))

    def _application(self, part: str, app_id: str) -> Application | None:
        """None: it has ended, or went with its partition, which a supposed queue file has no more."""
        there = self.scheduler.cluster.partitions.get(part)
        return there.applications.get(app_id) if there is not None else None

    def _note(self, name: Name) -> None:
        name = self._first.get(name, name)
        self.left.pop(name, None)
        self.starts.setdefault(name, self.now_ms)

    def _will_end(self, partition: str, ask: Ask, elapsed_ms: int) -> None:
        if ask.spec.placeholder:
            return
        name = (partition, ask.app.id, ask.key)
        takes_ms = self._takes[name] if name in self._takes else self.draw(ask, elapsed_ms)
        self._takes[name] = takes_ms
        end = partial(self._ends, Release(ask.app.id, ask.key, Cause.FINISHED, partition))
        self._ends_of[name] = self.later(self.now_ms + max(takes_ms - elapsed_ms, 0), end)

    def _ends(self, event: Release) -> None:
        """It ends, and well: those enter that waited for it, and with the last of an application those for that."""
        partition = self.scheduler.cluster.partitions.get(event.partition)
        if partition is None:
            # It went with its partition, which a supposed queue file has no more.
            return
        self._happens(event)
        app = partition.applications.get(event.application)
        is_last = app is None or not (app.asks or partition.held_asks.has(app.id))
        self._tell(event.partition, event.application if is_last else "", event.key, Outcome.OK)

    def _tell(self, partition: str, application: str, key: str, outcome: Outcome) -> None:
        """Those that wait for an application, and for one ask of it (its first attempt names it)."""
        for awaited in dict.fromkeys((key.partition("#")[0], application)):
            is_bad = outcome is Outcome.OK and awaited in self.not_well
            became = Outcome.NOT_OK if is_bad else outcome
            for event in following(self.scheduler.cluster.partitions[partition], awaited, became):
                self._happens(event)


def _loses_all(app: Application, stopped: Ask) -> bool:
    """Whether a job goes on with no fewer than so many, and has fewer without this one."""
    least = app.spec.tags.get(TAG_GANG_COMES_AGAIN, "")
    if stopped.spec.placeholder or not least.isdecimal():
        return False
    work = (ask for ask in app.asks.values() if not ask.spec.placeholder and ask is not stopped)
    return sum(ask.node is not None and ask.evict_cause is None for ask in work) < int(least)
