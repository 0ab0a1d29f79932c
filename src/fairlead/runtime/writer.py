"""The turn of the single writer: take what waits, enter it, schedule, commit once, and only then answer and act.

Decides how much goes into one turn, and what happens when the journal or the program fails. Never touches processes
itself (the place does) and never decides who runs (the scheduler does). Invariant: an answer is given and an act is
ordered only for entries that are durable; a failed turn leaves the books as the journal has them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from fairlead.core.model.decisions import Allocated, Evict
from fairlead.journal import codec
from fairlead.journal.format import EVENT, FAILURES, NOTE
from fairlead.journal.store import Journal
from fairlead.runtime import books
from fairlead.runtime.inbox import Command, Inbox, Read, W, Waiting, fail, give
from fairlead.runtime.lines import SERVICE
from fairlead.runtime.measures import Measures
from fairlead.runtime.process import Clock
from fairlead.runtime.refusals import InternalFault, Refusal, Unavailable
from fairlead.runtime.snapshots import Snapshots
from fairlead.scheduler import Scheduler
from fairlead.wire.cluster import Recovery

log = logging.getLogger("fairlead.runtime")

TURN_MS = 10
"""So long a turn takes commands, and then questions: whatever one user brings, others wait for little more."""
PLACE_AT_ONCE = 512
"""Allocations in one turn at most."""
IDLE_MS = 60_000
STOPPING = "the service is stopping; try again when it is back"
RETRY_MS = 1_000
"""Between two tries to write a journal that refused."""


class Subscriber(Protocol):
    """Somebody who wants every entry once it is durable."""

    def offer(self, entries: Sequence[books.Entry]) -> None:
        """Take them; called by the writer, so it must return at once and raise nothing."""


class Runtime:
    """One journal, one scheduler, one place, one thread that may change them."""

    def __init__(
        self,
        journal_path: Path,
        place: books.Place,
        *,
        version: str = "",
        pid: int = 0,
        accept_loss: str = "",
        make_clock: Callable[[int], Clock] = Clock,
        may_copy: bool = True,
    ) -> None:
        """Open the journal and bring the books back. Raises `JournalError` or `RecoveryError` with a sentence.

        `accept_loss`: the name of a loss that may be given up. `make_clock(not_before_ms)`: the clock; the machine's.
        `may_copy`: whether a copy of this process may write snapshots down while everything goes on.
        """
        self.journal = Journal(journal_path, accept_loss=accept_loss)
        self.books = books.Books(place)
        self.measures = Measures()
        self.sick = ""
        """Why nothing can be recorded at the moment, as a sentence; empty when all is well."""
        self.halted = ""
        """Why scheduling is off for the moment: a fault in it."""
        self.failure: BaseException | None = None
        """What ended the writer for good."""
        self._who = (version, pid)
        self._inbox = Inbox()
        self._again: list[Command] = []
        self._taken: list[Waiting] = []
        """What was taken from the inbox in this step, answered or not."""
        self._subscribers: tuple[Subscriber, ...] = ()
        self._dirty = True
        self._no_schedule_before_ms = 0
        self._snapshots = Snapshots(self.journal, self.books, self.measures.snapshots, by_copies=may_copy)
        try:
            self.recovered = self._recover()
        except BaseException:
            self.journal.close()
            raise
        self.clock = make_clock(self.books.last_ms)
        self._thread = threading.Thread(target=self._live, name="fairlead-writer", daemon=True)
        self.ended = threading.Event()

    # --- for everybody ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take turns."""
        version, pid = self._who
        self.do(lambda turn: turn.note(books.ServiceStarted(version=version, pid=pid)), must=True)
        self._thread.start()

    def do(self, act: Callable[[books.Turn], Any], *, must: bool = False, user: int | None = SERVICE) -> Future[Any]:
        """Have `act` done with the books, when it is this user's turn. The future holds its result once it is durable,
        or a `Refusal`.
        """
        command = Command(act, must=must, user=user)
        if self.sick and not must:
            command.future.set_exception(Unavailable(self.sick))
        elif not self._inbox.put(command):
            command.future.set_exception(Unavailable(STOPPING))
        return command.future

    def read(self, ask: Callable[[Scheduler], Any], *, user: int | None = SERVICE) -> Future[Any]:
        """Have `ask(scheduler)` answered between two turns. It must return values, never the objects it was shown."""
        question = Read(ask, user=user)
        if not self._inbox.put(question):
            question.future.set_exception(Unavailable(STOPPING))
        return question.future

    def subscribe(self, subscriber: Subscriber) -> None:
        """From now on it is offered every durable entry. Called by one thread."""
        self._subscribers = (*self._subscribers, subscriber)

    def close(self, timeout: float = 30.0) -> None:
        """Finish what was taken, write a snapshot, let go of the journal. What runs goes on."""
        self._inbox.close()
        if self._thread.is_alive():
            self._thread.join(timeout)
        self.books.place.close()

    # --- the writer's thread -----------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            while self.step(self.wait_ms()):
                pass
            self._leave()
        except FAILURES as failure:
            # A disk that does not let the journal be opened again is no fault in the program: a sentence says it all.
            self.failure = failure
            log.critical("the service cannot go on: %s", failure)
        except BaseException as failure:
            self.failure = failure
            log.critical("the service cannot go on: %s", failure, exc_info=failure)
        finally:
            self._inbox.close()
            self.ended.set()
            self._refuse_the_rest()
            self._snapshots.give_up()
            self.journal.close()

    def step(self, wait_ms: int) -> bool:
        """Take what waits, or comes within this time, and have a turn; False: it was told to leave.

        For the writer's thread, or what takes its place.
        """
        self._inbox.wait(wait_ms)
        self._turn(self._in_time(self._inbox.commands()))
        for question in self._in_time(self._inbox.reads()):
            self._answer(question)
        self._taken.clear()
        if not self.sick:
            self._snapshots.look(self.clock.now())
        return not (self._inbox.is_closed and self._inbox.is_empty)

    def _in_time(self, items: Iterator[W]) -> Iterator[W]:
        """One of them, and more while there is time."""
        end = self.clock.now() + TURN_MS
        for item in items:
            self._taken.append(item)
            yield item
            if self.clock.now() >= end:
                return

    def wait_ms(self) -> int:
        """How long nothing is due if nothing comes."""
        return RETRY_MS if self.sick else min(self._schedule_in_ms(), self._snapshots.wait_ms)

    def _schedule_in_ms(self) -> int:
        now = self.clock.now()
        if self._dirty:
            return max(self._no_schedule_before_ms - now, 0)
        due = self.books.scheduler.next_wakeup_ms()
        return IDLE_MS if due is None else min(max(due - now, self._no_schedule_before_ms - now, 1), IDLE_MS)

    def _turn(self, wanted: Iterable[Command]) -> None:
        if self.sick:
            came = list(wanted)
            if not self._journal_works(came):
                return
            wanted = self._kept_back([c for c in came if c.must])
        commands: list[Command] = []
        turn = books.Turn(self.books, self.journal, self.clock.now())
        began = time.perf_counter()
        outcomes: list[tuple[Any, Refusal | None]] = []
        try:
            for command in wanted:
                commands.append(command)
                outcomes.append(self._attempt(command, turn))
            self.books.place.settle(turn)
        except FAILURES as failure:
            self._journal_failed(failure, commands)
            return
        except Exception as fault:
            self._isolate(fault, [*commands, *self._kept_back([])])
            return
        try:
            self._schedule(turn)
            self._commit(turn)
        except FAILURES as failure:
            self._journal_failed(failure, commands)
            return
        except Exception as fault:
            self._halt(fault, commands)
            return
        self._settle(commands, outcomes)
        if turn.entries:
            self.measures.turns.add(time.perf_counter() - began)
            self.measures.records += len(turn.entries)
            self._publish(turn.entries)

    def _kept_back(self, came: list[Command]) -> Iterator[Command]:
        """What waited for the journal, and what came meanwhile; what is not taken goes on waiting."""
        self._again += came
        while self._again:
            yield self._again.pop(0)

    @staticmethod
    def _attempt(command: Command, turn: books.Turn) -> tuple[Any, Refusal | None]:
        before = len(turn.entries)
        try:
            return command.act(turn), None
        except Refusal as refusal:
            if len(turn.entries) > before:
                raise RuntimeError(f"a request was refused half way: {refusal}") from refusal
            return None, refusal

    def _schedule(self, turn: books.Turn) -> None:
        self._dirty = self._dirty or _concerns_scheduler(turn.entries)
        due = self.books.scheduler.next_wakeup_ms()
        if turn.now_ms < self._no_schedule_before_ms or not (self._dirty or (due is not None and due <= turn.now_ms)):
            return
        began = time.perf_counter()
        decisions = turn.schedule(PLACE_AT_ONCE)
        placed = sum(isinstance(d, Allocated) for d in decisions)
        self.measures.scheduled(time.perf_counter() - began, placed, sum(isinstance(d, Evict) for d in decisions))
        entered = len(turn.entries)
        self.books.place.settle(turn)
        self._dirty = placed >= PLACE_AT_ONCE or _concerns_scheduler(turn.entries[entered:])
        self.halted = ""

    def _commit(self, turn: books.Turn) -> None:
        if not turn.entries:
            return
        began = time.perf_counter()
        self.journal.commit()
        self.measures.commits.add(time.perf_counter() - began)

    def _settle(self, commands: list[Command], outcomes: list[tuple[Any, Refusal | None]]) -> None:
        for command, (result, refusal) in zip(commands, outcomes, strict=True):
            if refusal is None:
                give(command.future, result)
            else:
                self.measures.refused += 1
                fail(command.future, refusal)

    def _publish(self, entries: Sequence[books.Entry]) -> None:
        for subscriber in self._subscribers:
            subscriber.offer(entries)
        try:
            self.books.place.act(entries)
        except Exception as fault:
            self.measures.faults += 1
            log.error("a fault in the program while acting: %s", fault, exc_info=fault)

    def _answer(self, question: Read) -> None:
        try:
            give(question.future, question.ask(self.books.scheduler))
        except Exception as fault:
            fail(question.future, fault)

    # --- when something fails ----------------------------------------------------------------------------------------

    def _journal_failed(self, failure: Exception, commands: list[Command]) -> None:
        """Nothing of this turn is durable: take it back, refuse it, keep what the machine reported, try again later."""
        if not self.sick:
            log.error("the journal cannot be written: %s; nothing is taken in until it can, what runs goes on", failure)
        self.sick = f"the journal cannot be written ({failure}); free space on its disk, what runs goes on meanwhile"
        self.measures.journal_failures += 1
        self._again = [c for c in commands if c.must] + self._again
        for command in commands:
            if not command.must:
                fail(command.future, Unavailable(self.sick))
        self._rebuild()

    def _journal_works(self, commands: list[Command]) -> bool:
        """Try a note that changes nothing. Until it is durable, what must be recorded is kept, the rest refused."""
        for command in commands:
            if not command.must:
                fail(command.future, Unavailable(self.sick))
        note = books.JournalResumed(pid=self._who[1])
        try:
            self.journal.append(self.clock.now(), NOTE, codec.encode(note), b"")
            self.journal.commit()
        except FAILURES as failure:
            log.debug("the journal still cannot be written: %s", failure)
            self.journal.rollback()
            self._again += [c for c in commands if c.must]
            return False
        log.warning("the journal can be written again")
        self.sick = ""
        return True

    def _isolate(self, fault: Exception, commands: list[Command]) -> None:
        """One command hit a fault in the program: put the books back and do the others without it."""
        self.measures.faults += 1
        log.error("a fault in the program: %s", fault, exc_info=fault)
        self._rebuild()
        if len(commands) > 1:
            for command in commands:
                self._turn([command])
        elif commands:
            fail(
                commands[0].future,
                InternalFault(f"a fault in the service stopped this request, nothing was done: {fault}"),
            )

    def _halt(self, fault: Exception, commands: list[Command]) -> None:
        """Scheduling itself hit a fault: put the books back, enter the commands without scheduling, try again later."""
        self.measures.faults += 1
        self.halted = f"scheduling stopped on a fault in the program ({fault}); what runs goes on"
        log.error("%s", self.halted, exc_info=fault)
        self._rebuild()
        already = self._no_schedule_before_ms > self.clock.now()
        self._no_schedule_before_ms = self.clock.now() + 10 * RETRY_MS
        if not already:
            self._turn(commands)
        else:
            for command in commands:
                fail(command.future, InternalFault(self.halted))

    def _rebuild(self) -> None:
        """Bring the books back to what the journal has."""
        self.journal.rollback()
        self._recover()
        self._dirty = True

    def _recover(self) -> Recovery:
        began = time.perf_counter()
        recovery = self.journal.load_for_recovery()
        snapshot = recovery.snapshot
        try:
            self.books.load(snapshot.state if snapshot else None)
        except Exception as fault:
            seq = snapshot.seq if snapshot else 0
            raise books.unreadable(f"the snapshot after record {seq} of {self.journal.path}", fault) from fault
        for record in recovery.records:
            try:
                self.books.replay(record.seq, record.at_ms, record.kind, record.payload, record.outcome)
            except codec.CodecError as fault:
                raise books.unreadable(f"record {record.seq} of {self.journal.path}", fault) from fault
        self._snapshots.found(snapshot)
        passed = (time.perf_counter() - began) * 1000
        notes = [*self.journal.opening.sentences(), *recovery.passed_over]
        known = snapshot is not None
        return Recovery(from_snapshot=known, records=recovery.count, milliseconds=passed, notes=notes)

    def _refuse_the_rest(self) -> None:
        gone = Unavailable("the service has stopped; try again when it is back")
        for waiting in (*self._taken, *self._again, *self._inbox.commands(), *self._inbox.reads()):
            fail(waiting.future, gone)

    def _leave(self) -> None:
        pid = self._who[1]
        self._turn([Command(lambda turn: turn.note(books.ServiceStopped(pid=pid)), must=True)])
        if not self.sick:
            self._snapshots.write(self.clock.now())


def _concerns_scheduler(entries: Sequence[books.Entry]) -> bool:
    """Whether any of them told the scheduler something; what is only noted changes nothing for it."""
    return any(entry.kind == EVENT for entry in entries)
