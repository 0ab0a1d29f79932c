"""The control loop: from the first list of everything to the loss of the right to act.

Decides when changes are taken, when scheduling runs, and when the binder gets its orders. Never decides who runs. All
of it happens in one event loop, one turn after the other: there is nothing to lock. Invariant: nothing is scheduled
before everything that was there at the start has been taken.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import Event
from fairlead.core.model.specs import ClusterSpec
from fairlead.kubernetes import kinds
from fairlead.kubernetes.acts import Explain
from fairlead.kubernetes.binder import BindDelayed, Binder, BindFailed, PlaceholderRefused, Report, Returned, Unsaid
from fairlead.kubernetes.client import ApiError, Client, Forbidden, Unreachable
from fairlead.kubernetes.devices import device_binder
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.explainer import Explainer
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.latencies import Latencies
from fairlead.kubernetes.pod_store import News
from fairlead.kubernetes.reflector import Change, Changed, Reflector, Synced
from fairlead.kubernetes.translate import identity
from fairlead.runtime.measures import Measures

log = logging.getLogger("fairlead.kubernetes")

WATCHED = (
    kinds.CSI_NODES, kinds.NODES, kinds.NAMESPACES, kinds.PRIORITY_CLASSES, kinds.BUDGETS, kinds.STORAGE_CLASSES,
    kinds.VOLUMES, kinds.CLAIMS, *device_binder.WATCHED, kinds.LIMIT_RANGES, kinds.RUNTIME_CLASSES,
    kinds.JOBS, kinds.JOB_SETS, kinds.POD_GROUPS, kinds.VOLCANO_GROUPS, kinds.PODS,
)  # fmt: skip
DISCOVER_S = 30.0
"""How often it is looked whether the server has one of the optional kinds by now."""
TAKE_AT_ONCE = 500
"""Changes taken in one turn, so that scheduling is never far behind."""
TAKE_S = 1.0
"""And for no longer, so that the lease is renewed: a job of 10,000 pods that asks for its room takes seconds."""
BEGIN_AT_ONCE = 100
"""Steps of a beginning in one turn, so that the lease is renewed meanwhile."""
PLACE_AT_ONCE = 100
"""Allocations in one turn, so that changes and answers are never far behind."""
IN_FLIGHT = 2_000
"""With so many pods being bound or stopped, nothing more is placed until some are done."""
AGAIN_S = (1.0, 60.0)
"""The first and the longest pause of a pod whose placement was refused."""
LONGEST_SLEEP_S = 5.0
UNAUTHORIZED = 401


@dataclass(slots=True)
class Timings:
    """How long the parts of a start took, in milliseconds since its begin."""

    listed: dict[str, int] = field(default_factory=dict)
    rebuilt: int = 0
    """All that was there is in the books."""
    first_decided: int = 0
    """The first turn that placed something has been thought through."""
    first_bound: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What happened in one turn: which pods came and left, and what was decided."""

    at_ms: int
    decisions: tuple[Decision, ...]
    news: tuple[News, ...]
    entries: tuple[tuple[Event | None, Sequence[Decision]], ...] = ()
    """The decisions with the events that they follow from; None: a run of scheduling."""


StartOrder = tuple[int, str, bool, int]


def _order_of_start(change: Change) -> StartOrder:
    """By kind, pods last; those by creation, which is known to the second, and within a second as they were first seen.

    Of one second placeholders come after the others: the first pod of an application declares its gang. Changes of one
    object stay in their order.
    """
    if change.kind is not kinds.PODS:
        return WATCHED.index(change.kind), "", False, 0
    if not isinstance(change, Changed):
        return len(WATCHED), "~", False, 0
    pod = change.object
    seen = int(identity.arrival_of(pod) or 0)
    return len(WATCHED), pod.metadata.creation_timestamp or "", identity.is_placeholder(pod), seen


class ControlLoop:
    """The scheduler at work on one cluster, while it may act."""

    def __init__(
        self,
        client: Client,
        binder: Binder,
        spec: ClusterSpec | None,
        *,
        now_ms: Callable[[], int],
        scheduler_name: str = "fairlead",
        chance: random.Random | None = None,
        images: bool = False,
    ) -> None:
        """`now_ms` never goes back. `chance` is for pauses between tries. `images`: where they are counts."""
        self.driver = Driver(spec, now_ms(), scheduler_name, images)
        self.timings = Timings()
        self.ready = False
        self.turns = 0
        self.bound = 0
        self.refused = 0
        self.measures = Measures()
        self.latencies = Latencies()
        self.listeners: list[Callable[[Told], None]] = []
        """Called at the end of a turn in which something happened; they must be quick and raise nothing."""
        self.when_rebuilt: Callable[[ControlLoop], object] = lambda _: None
        """Called once, when all that was there at the start is in the books and nothing has been decided yet."""
        self._client, self._binder, self._now_ms = client, binder, now_ms
        self._began_ms = self._turned_ms = now_ms()
        self._changes: deque[Change] = deque()
        self._news = asyncio.Event()
        self._missing = dict.fromkeys(WATCHED)
        self._beginning: Iterator[None] | None = None
        """What is left to do before anything is scheduled, once everything is known."""
        self._forbidden: dict[Kind, str] = {}
        """Optional kinds that we may not list, and what the server said."""
        self._pauses: dict[str, int] = {}
        self.explainer = Explainer(self.driver, binder.do)
        self._orders: deque[Callable[[Driver, int], None]] = deque()
        self.reflectors = {
            kind: Reflector(client, kind, self._take_note, chance=chance, read_as=kind.type_with(images))
            for kind in WATCHED
        }

    async def run(self) -> None:
        """List, rebuild, and schedule until cancelled. What goes wrong in a reflector or a turn ends it with that."""
        try:
            async with asyncio.TaskGroup() as duties:
                for kind, reflector in self.reflectors.items():
                    if not kind.optional:
                        duties.create_task(reflector.run(), name=f"watch {kind.title}")
                duties.create_task(self._discover(duties), name="discover")
                duties.create_task(self._steer(), name="steer")
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
        finally:
            await self._binder.stop()

    async def _discover(self, duties: asyncio.TaskGroup) -> None:
        """Watch the optional kinds that the server has, also those that it gets later."""
        left = [kind for kind in WATCHED if kind.optional]
        while True:
            try:
                served = await self._client.served()
                there = [kind for kind in left if kind.group_version in served and await self._may_list(kind)]
            except (ApiError, Unreachable) as problem:
                log.warning("which kinds the server has is not known yet: %s", problem)
                await asyncio.sleep(AGAIN_S[0])
                continue
            for kind in there:
                left.remove(kind)
                duties.create_task(self.reflectors[kind].run(), name=f"watch {kind.title}")
            for kind in [kind for kind in left if kind in self._missing]:
                self._take_note(Synced(kind, served=False))
            await asyncio.sleep(DISCOVER_S)

    async def _may_list(self, kind: Kind) -> bool:
        """Whether the server has an optional kind and shows it to us: what is forbidden is taken as not there."""
        try:
            there = await self._client.serves(kind)
        except Forbidden as refusal:
            if refusal.status == UNAUTHORIZED:
                raise
            if kind not in self._forbidden:
                log.warning("%s: %s; there may be some, and it goes on without", kind.title, refusal)
            self._forbidden[kind] = refusal.message
            return False
        self._forbidden.pop(kind, None)
        return there

    def problems(self) -> Iterator[str]:
        """What cannot be listed, watched or read, as sentences."""
        for kind, reflector in self.reflectors.items():
            if kind in self._missing and reflector.trouble:
                yield f"{kind.title} cannot be listed, and nothing is scheduled before that: {reflector.trouble}"
            elif stuck := reflector.stuck():
                yield stuck
        for kind, why in self._forbidden.items():
            yield f"{kind.title} cannot be listed, and pods are scheduled as if there were none: {why}"
        for kind, reflector in self.reflectors.items():
            for (namespace, name), why in list(reflector.unread.items())[:1]:
                whose = f"{namespace}/{name}" if namespace else name
                more = f" and {len(reflector.unread) - 1} more" if len(reflector.unread) > 1 else ""
                yield f"{whose}{more} of {kind.title} cannot be read, and what was known of it counts: {why}"

    def order(self, act: Callable[[Driver, int], None]) -> None:
        """Have something done with the driver at the beginning of the next turn."""
        self._orders.append(act)
        self._news.set()

    def idle_s(self) -> float:
        """Seconds since the last turn; there is one every few seconds, whether something happens or not."""
        return (self._now_ms() - self._turned_ms) / 1000

    def report(self, report: Report) -> None:
        """What came of a placement."""
        if isinstance(report, Returned):
            self.order(lambda driver, now: driver.returned(report.claim, report.version, now))
            return
        if isinstance(report, BindDelayed):
            self.order(lambda driver, _: driver.bind_delayed(report.uid, report.node, report.why))
            return
        if isinstance(report, PlaceholderRefused):
            self.order(lambda driver, now: driver.placeholder_refused(report.application, report.why, now))
            return
        if isinstance(report, Unsaid):
            self.explainer.unsaid(report.uid)
            return
        if isinstance(report, BindFailed):
            self.refused += 1
            log.info("a placement on %s was refused: %s", report.node, report.why)
            self.order(lambda driver, now: driver.bind_failed(report.uid, report.node, report.why, now))
            self._pause(report.uid)
            return
        self.bound += 1
        self.latencies.bound(report.uid, self._now_ms())
        self._pauses.pop(report.uid, None)
        if not self.timings.first_bound:
            self.timings.first_bound = self._now_ms() - self._began_ms

    def _pause(self, uid: str) -> None:
        times = self._pauses.pop(uid, 0)
        self._pauses[uid] = times + 1
        if len(self._pauses) > 100_000:
            del self._pauses[next(iter(self._pauses))]
        wait = min(AGAIN_S[1], AGAIN_S[0] * 2 ** min(times, 10))
        again: Callable[[Driver, int], None] = lambda driver, now: driver.try_again(uid, now)  # noqa: E731
        asyncio.get_running_loop().call_later(wait, self.order, again)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _take_note(self, change: Change) -> None:
        self._changes.append(change)
        self._news.set()

    async def _steer(self) -> None:
        while True:
            await self._until_something_happens()
            self._news.clear()
            self._turn()
            # Whoever sends and receives has its turn too.
            await asyncio.sleep(0)

    async def _until_something_happens(self) -> None:
        if self._orders or self._beginning is not None or (self._changes and not self._missing):
            return
        wait = LONGEST_SLEEP_S
        if self.ready:
            due = self.driver.scheduler.next_wakeup_ms()
            if due is not None:
                wait = min(wait, max(due - self._now_ms(), 0) / 1000)
            if self.explainer.has_more:
                wait = min(wait, self.explainer.pace_s)
        try:
            async with asyncio.timeout(wait):
                await self._news.wait()
        except TimeoutError:
            return

    def _turn(self) -> None:
        now = self._turned_ms = self._now_ms()
        self.turns += 1
        if self._beginning is not None and not self._go_on_beginning(self._beginning):
            return
        is_told = bool(self._orders or self._changes)
        while self._orders:
            self._orders.popleft()(self.driver, now)
        if self._missing:
            self._gather()
        if not self._missing:
            self._take(now)
            if not self.ready:
                self._begin_if_complete(now)
        if self.ready:
            room = IN_FLIGHT - self._binder.busy
            if room > 0:
                limit = min(PLACE_AT_ONCE, room)
                began = time.perf_counter()
                decided = self.driver.schedule(now, limit)
                self._measure(time.perf_counter() - began)
                if decided and not self.timings.first_decided:
                    self.timings.first_decided = self._now_ms() - self._began_ms
                if decided:
                    # There may be more; and members of a gang that has all its room by now are in line.
                    self._news.set()
            else:
                asyncio.get_running_loop().call_later(0.01, self._news.set)
            for act in self.driver.acts():
                if isinstance(act, Explain):
                    self.explainer.overtaken(act.pod.uid)
                self._binder.do(act)
            self._pause_given_up()
            self.explainer.go_on(now)
            self._tell(now, is_told)

    def _take(self, now_ms: int) -> None:
        """Some of what changed at the API server."""
        until = time.perf_counter() + TAKE_S
        for _ in range(min(len(self._changes), TAKE_AT_ONCE)):
            self.driver.take(self._changes.popleft(), now_ms)
            if time.perf_counter() >= until:
                break

    def _pause_given_up(self) -> None:
        informer = self.driver.informer
        for pauses in (informer.volume_binder.pauses, informer.workloads.pauses):
            for uid in pauses:
                self._pause(uid)
            pauses.clear()

    def _tell(self, now_ms: int, is_told: bool) -> None:
        """`is_told`: the cluster said something, though nothing may have followed."""
        driver = self.driver
        if is_told or driver.entries or driver.informer.news:
            told = Told(now_ms, tuple(driver.decided), tuple(driver.informer.news), tuple(driver.entries))
            self._nothing_is_news()
            for news in told.news:
                uid = news.pod.name.uid
                if news.what != "came":
                    self.latencies.left(uid)
                elif not news.pod.bound:
                    self.latencies.came(uid, now_ms)
            for listener in self.listeners:
                listener(told)

    def _nothing_is_news(self) -> None:
        self.driver.decided.clear()
        self.driver.entries.clear()
        self.driver.informer.news.clear()

    def _measure(self, seconds: float) -> None:
        placed = sum(type(decision) is Allocated for decision in self.driver.decided)
        self.latencies.stopped(self.driver.decided)
        evicted = sum(type(decision) is Evict for decision in self.driver.decided)
        self.measures.scheduled(seconds, placed, evicted)

    def _gather(self) -> None:
        """Wait for the first list of everything, and put it in order: what is needed to read pods, then pods by age.

        A list is in the order of names; work must not come before older work because of its name.
        """
        for change in self._changes:
            if isinstance(change, Synced) and change.kind in self._missing:
                del self._missing[change.kind]
                self.timings.listed[change.kind.title] = self._now_ms() - self._began_ms
        if not self._missing:
            self._changes = deque(sorted(self._changes, key=_order_of_start))

    def _begin_if_complete(self, now_ms: int) -> None:
        if self._changes:
            return
        self.timings.rebuilt = self._now_ms() - self._began_ms
        # What was there already is no news, and nothing that was decided now.
        self._nothing_is_news()
        for uid in self.driver.informer.waiting:
            self.latencies.came(uid, now_ms)
        self.when_rebuilt(self)
        # The turn's own time: the clock has gone on meanwhile, and the turn schedules with that.
        self._beginning = self.driver.beginning(now_ms)
        self._go_on_beginning(self._beginning)

    def _go_on_beginning(self, steps: Iterator[None]) -> bool:
        """Whether it is over by now."""
        if sum(1 for _ in islice(steps, BEGIN_AT_ONCE)) == BEGIN_AT_ONCE:
            return False
        self._beginning, self.ready = None, True
        log.info(
            "everything is known after %d ms: %d pods, %d nodes",
            self.timings.rebuilt,
            len(self.driver.informer.pod_store.by_uid),
            len(self.driver.informer.around.nodes),
        )
        return True
