"""The explainer: it goes round the pods that wait, and has each told why.

Decides when a pod is told what, and whether a further node would help it: what a queue or a limit has left is counted
for as many pods as it has room for, as in YuniKorn. Never decides why a pod waits, and sends nothing. Invariant: a pod
is told nothing twice within `AGAIN_MS` but another kind of reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Obstacle
from fairlead.core.books.idle_work import payer
from fairlead.core.model.resources import Book, add_to, lacks
from fairlead.kubernetes.acts import Act, Explain, Record
from fairlead.kubernetes.bodies import BEHIND, WORDS
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.pod_store import Books, KnownPod

AT_ONCE = 10
"""Pods looked at in one turn."""
PACE_MS = 100
SETTLE_MS = 1_000
"""A pod is told nothing before it has waited so long: most wait for no longer."""
AGAIN_MS = 60_000
"""With the same kind of reason a pod is told new numbers at most this often."""


class Claimed:
    """Room that queues and limits have left, as it is claimed by pods that wait for a node, one after the other."""

    def __init__(self) -> None:
        self._of: dict[Obstacle, Book] = {}
        """What is in use and claimed there; in use: when it was first asked about."""

    def has_room(self, ask: Ask) -> bool:
        """Whether what is above an ask, but for the sum of all nodes, has room for it beside those before it; then it
        claims that.
        """
        queues = (queue for queue in payer(ask).lineage if queue.parent is not None)
        above: list[Obstacle] = [each for each in (*queues, *ask.app.ceilings) if each.max is not None]
        books = [self._of.setdefault(each, dict(each.allocated)) for each in above]
        if any(lacks(each.max, book, ask.items) for each, book in zip(above, books, strict=True)):
            return False
        for book in books:
            add_to(book, ask.items)
        return True


class Explainer:
    """Goes round the waiting pods."""

    def __init__(self, driver: Driver, say: Callable[[Act], None]) -> None:
        self._driver, self._say = driver, say
        self._round: deque[str] = deque()
        self._claimed = Claimed()
        self._next_gathering_ms = self._due_ms = 0
        self.tellings = 0
        """How often a pod was told why it waits, for another reason than before."""
        self._told: dict[str, tuple[str, str, int]] = {}
        self._since: dict[str, int] = {}
        """When each waiting pod was first seen waiting."""
        self._fresh: list[str] = []
        """Those that were first seen at the last look."""

    @property
    def has_more(self) -> bool:
        """Whether there are pods to look at."""
        return bool(self._round) or bool(self._driver.informer.waiting)

    @property
    def told(self) -> Collection[str]:
        """Waiting pods that were told why, by identity."""
        return self._told.keys()

    def unsaid(self, uid: str) -> None:
        """What the pod was to be told did not come to the server: it is told anew, wherever it waits."""
        self._told.pop(uid, None)
        self._round.append(uid)

    def overtaken(self, uid: str) -> None:
        """Something else is said of the pod from now on: should it wait in line again, it is told why anew."""
        self._told.pop(uid, None)

    @property
    def pace_s(self) -> float:
        """When to come back, in seconds."""
        return PACE_MS / 1000 if self._round else SETTLE_MS / 1000

    def go_on(self, now_ms: int) -> None:
        """Look at the next few pods."""
        if now_ms < self._due_ms:
            return
        self._due_ms = now_ms + PACE_MS
        if now_ms >= self._next_gathering_ms:
            self._next_gathering_ms = now_ms + SETTLE_MS
            self._gather(now_ms)
        for _ in range(min(AT_ONCE, len(self._round))):
            self._look_at(self._round.popleft(), now_ms)

    def _gather(self, now_ms: int) -> None:
        """Begin a round with all that have waited for long enough. While one goes on, which takes minutes with many,
        those that are new come first: they were told nothing yet.
        """
        informer = self._driver.informer
        uids = informer.pod_store.by_uid
        fresh = [uid for uid in informer.waiting if uid not in self._since]
        if not self._round:
            self._since = {uid: self._since[uid] for uid in informer.waiting if uid in self._since}
            self._claimed = Claimed()
            self._told = {uid: told for uid, told in self._told.items() if uid in informer.waiting}
            self._tell_gangs()
        first = [uid for uid in (self._fresh if self._round else self._since) if uid in informer.waiting]
        self._round = deque((*sorted(first, key=lambda uid: -uids[uid].spec.priority), *self._round))
        self._since.update(dict.fromkeys(fresh, now_ms))
        self._fresh = fresh

    def _tell_gangs(self) -> None:
        """Members that their gang holds back are told how far it has come, once that stays as it is."""
        informer = self._driver.informer
        for application in [name for name, gang in informer.gangs.declared.items() if gang.take_news()]:
            for member in informer.pod_store.members(application):
                if member.books is Books.OUT and informer.gangs.holds_back(member) and not member.flaw:
                    self._tell_outside(member)

    def _look_at(self, uid: str, now_ms: int) -> None:
        informer = self._driver.informer
        known = informer.pod_store.by_uid.get(uid)
        if known is None:
            return
        if known.books is not Books.WAITING:
            self._tell_outside(known)
            return
        if now_ms - self._since.get(uid, now_ms) < SETTLE_MS:
            return
        if known.name.stands_for is not None and not informer.workloads.speaks(known):
            return
        reason = self._driver.scheduler.why(known.application, uid, informer.partition)
        if reason is None:
            return
        code, text = reason.code, informer.pod_store.with_names(reason.sentence())
        if code not in WORDS and known.name.stands_for is None and self._is_behind(known.application, uid):
            code, text = BEHIND, f"{text}; what its queue or a limit has left is for those that wait before it"
        told = self._told.get(uid)
        if told is not None and told[0] == code and (told[1] == text or now_ms - told[2] < AGAIN_MS):
            return
        self._told[uid] = (code, text, now_ms)
        self._say(Explain(known.name, code, text))
        if told is None or told[0] != code:
            # New numbers change the condition; only another kind of reason is an event.
            self.tellings += 1
            self._say(Record(known.name, "FailedScheduling", text, warning=True))

    def _tell_outside(self, known: KnownPod) -> None:
        """A pod that does not wait in the books, and may not have been told why.

        One that is being bound is told nothing: that would be written after the binding.
        """
        informer = self._driver.informer
        waits = known.books is Books.OUT or informer.volume_binder.waits(known)
        if waits and not (known.bound or known.leaving) and (found := informer.reader.in_its_way(known)) is not None:
            self._say(Explain(known.name, *found))

    def _is_behind(self, application: str, uid: str) -> bool:
        """Whether others that wait for a node claim what is left above it; where it is nominated, room is coming."""
        ask = self._driver.scheduler.cluster.partitions[self._driver.informer.partition].find_ask(application, uid)
        return ask is not None and not self._claimed.has_room(ask) and ask.nomination is None
