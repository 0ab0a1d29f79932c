"""The book of works: what everybody asked to have run on this machine, and what became of it.

Decides the state of each piece of work, by one table, from the records of `records` and the scheduler's decisions.
Never starts or stops anything, reads no clock and no file. Invariant: the same records and decisions in the same
order give the same book (`dump` is equal), so the book is rebuilt from the journal after a crash.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from fairlead.core.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationMoved,
    ApplicationRejected,
    AskRejected,
    Decision,
    Evict,
    PriorityChanged,
    Released,
    ReservationSwitched,
    Reserved,
    Retried,
)
from fairlead.core.events import Cause
from fairlead.core.resources import Resources
from fairlead.core.specs import DEFAULT_PARTITION
from fairlead.local.records import (
    AttemptEnded,
    MemoryShort,
    WorkCancelRequested,
    WorkCheckpointed,
    WorkEnded,
    WorkPressed,
    WorkRecord,
    WorkRefused,
    WorkStarted,
    WorkSubmitted,
    WorkWaits,
    run_key,
    work_of,
)
from fairlead.local.work import (
    ON_THE_MACHINE,
    SHOWN,
    TRANSITIONS,
    Attempt,
    HistoryEntry,
    State,
    Work,
    WorksError,
    ending,
    setting_changed,
)
from fairlead.runtime.configuring import QueuesReconfigured

KEEP_ENDED = 100_000
"""So many ended works stay in the book; older ones are found in the journal alone."""


class Works:
    """All works by key, in the order of submission."""

    def __init__(self, keep_ended: int = KEEP_ENDED) -> None:
        self.keep_ended = keep_ended
        self.next_number = 1
        self.dropped: list[str] = []
        """Runs of works that left the book since somebody last looked (and emptied this)."""
        self.memory_short: MemoryShort | None = None
        """The machine runs short of memory since this was noted; None: it has enough."""
        self._works: dict[str, Work] = {}
        self._live: dict[str, Work] = {}
        self._ended: list[tuple[int, int]] = []
        """A heap of (when it ended, number of the key)."""
        self._requests: dict[tuple[int, str], tuple[str, list[str]]] = {}

    # --- reading -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._works)

    def __iter__(self) -> Iterator[Work]:
        return iter(self._works.values())

    def get(self, key: str) -> Work | None:
        """The work of this key, or None."""
        return self._works.get(key)

    def live(self) -> Iterable[Work]:
        """Those that wait or run, in the order of submission."""
        return self._live.values()

    @property
    def live_count(self) -> int:
        """How many wait or run."""
        return len(self._live)

    def request(self, uid: int, request: str) -> tuple[str, tuple[str, ...]] | None:
        """The digest and the keys of a submission that its user had given this name, or None."""
        found = self._requests.get((uid, request))
        return (found[0], tuple(found[1])) if found else None

    def skip_to(self, number: int) -> None:
        """Give out no key below `number` (runs of that name exist already)."""
        self.next_number = max(self.next_number, number)

    # --- records and decisions -----------------------------------------------------------------------------------

    def apply(self, record: WorkRecord | QueuesReconfigured, at_ms: int) -> None:
        """Enter one record. Raises `WorksError` if it cannot be."""
        match record:
            case WorkSubmitted():
                self._submitted(record, at_ms)
            case WorkRefused():
                self._explained(record, at_ms)
            case WorkWaits():
                self._waits(record, at_ms)
            case WorkStarted():
                self._started(record, at_ms)
            case WorkCancelRequested():
                self._cancel(record, at_ms)
            case WorkCheckpointed():
                work = self._known(record.key)
                work.checkpoint_at_ms = at_ms
                work.remember_last(at_ms, "checkpoint", "what it did so far is saved")
            case WorkPressed():
                self._pressed(record, at_ms)
            case MemoryShort():
                self.memory_short = record if record.short else None
            case AttemptEnded():
                self._again(record, at_ms)
            case WorkEnded():
                self._over(record, at_ms)
            case QueuesReconfigured():
                self._reconfigured(record, at_ms)

    def follow(self, decisions: Iterable[Decision], at_ms: int) -> None:
        """Enter what the scheduler decided, in its order; what concerns no work here is passed over."""
        for decision in decisions:
            match decision:
                case Allocated():
                    self._allocated(decision, at_ms)
                case Evict():
                    self._evict(decision, at_ms)
                case Released():
                    self._released(decision, at_ms)
                case ApplicationAccepted() if work := self._live.get(decision.id):
                    work.queue = decision.queue
                    work.remember(at_ms, "placed", f"in {decision.queue}" + (f" by {work.rule}" if work.rule else ""))
                case ApplicationMoved() if work := self._live.get(decision.id):
                    work.queue = decision.new
                    work.remember(
                        at_ms, "moved", f"from {decision.old} to {decision.new} by {decision.who or 'nobody'}"
                    )
                case Retried():
                    self._retried(decision, at_ms)
                case ReservationSwitched() | PriorityChanged() | Reserved():
                    if work := self._live.get(work_of(decision.key)):
                        _while_it_waits(work, decision, at_ms)
                case AskRejected() if work_of(decision.key) in self._live:
                    self._refused(work_of(decision.key), decision.reason.sentence(), at_ms)
                case ApplicationRejected() if decision.id in self._live:
                    self._refused(decision.id, decision.reason.sentence(), at_ms)

    def _submitted(self, record: WorkSubmitted, at_ms: int) -> None:
        spec = record.work
        if spec.key in self._works:
            raise WorksError(f"work {spec.key} was submitted before")
        work = Work(spec=spec, submitted_at_ms=at_ms, priority=spec.priority, queue=spec.queue, request=record.request)
        work.rule = record.rule
        work.remember(at_ms, "submitted", f"by {spec.user}")
        self._works[spec.key] = self._live[spec.key] = work
        self.next_number = max(self.next_number, int(spec.key) + 1)
        if record.request:
            self._requests.setdefault((spec.uid, record.request), (record.digest, []))[1].append(spec.key)

    def _allocated(self, decision: Allocated, at_ms: int) -> None:
        work = self._live.get(work_of(decision.key))
        if work is None:
            return
        if work.released:
            work.placed_ahead = decision.node
            work.remember(at_ms, "allocated", f"on {decision.node}, for its next attempt")
            return
        self._move(work.key, "allocated")
        work.node, work.allocated_at_ms = decision.node, at_ms
        work.attempt += 1
        work.waits_for = ""
        work.remember(at_ms, "allocated", f"on {decision.node}")

    def _started(self, record: WorkStarted, at_ms: int) -> None:
        work = self._move(record.key, "started")
        work.pid, work.gpus = record.pid, record.gpus
        work.started_at_ms = record.started_at_ms if record.started_at_ms is not None else at_ms
        work.remember(at_ms, "started", f"process {record.pid}" if record.pid else "")

    def _cancel(self, record: WorkCancelRequested, at_ms: int) -> None:
        waited = self._known(record.key).state is State.WAITING
        work = self._move(record.key, "cancel")
        work.cancelled_by = record.who
        if waited:
            self._close(work, at_ms, "cancelled", f"by {record.who}, while it waited")
        else:
            work.remember(at_ms, "stopping", f"cancelled by {record.who}")

    def _evict(self, decision: Evict, at_ms: int) -> None:
        if work_of(decision.key) not in self._live:
            return
        work = self._move(work_of(decision.key), "evict")
        work.evict_cause, work.evicted_for = str(decision.cause), work_of(decision.on_behalf_of)
        work.evict_rule = decision.rule
        makes_room = f" to make room for {self._named(work.evicted_for)}" if work.evicted_for else ""
        rule = f" (rule: {decision.rule})" if decision.rule else ""
        if decision.violates:
            rule += f", against the disruption budget {' and '.join(decision.violates)}: there was no other choice"
        work.remember(at_ms, "evicting", f"told to stop{makes_room}{rule}")
        if (other := self._live.get(work.evicted_for)) is not None:
            other.remember(at_ms, "makes stop", f"{self._named(work.key)}, on {decision.node}{rule}")

    def _released(self, decision: Released, at_ms: int) -> None:
        """The scheduler gave a place back that nobody here had returned: the work must go."""
        work = self._live.get(work_of(decision.key))
        if work is None or work.state not in ON_THE_MACHINE:
            return
        self._move(work.key, "evict")
        work.released, work.evict_cause = True, str(decision.cause)
        work.remember(at_ms, "evicting", decision.message or f"its place on {decision.node} is gone")

    def _pressed(self, record: WorkPressed, at_ms: int) -> None:
        work = self._move(record.key, "evict")
        # Idle work goes back to its queue whoever had it stopped; what has a retry says itself when it is tried again.
        goes_back = work.spec.idle and work.spec.retry is None
        cause = Cause.PREEMPTED_BY_SCHEDULER if goes_back else Cause.INTERRUPTED
        work.evict_cause, work.stop_grace_ms = str(cause), record.grace_ms
        work.note = record.sentence
        work.remember(at_ms, "evicting", record.sentence)

    def _again(self, record: AttemptEnded, at_ms: int) -> None:
        """An attempt is over and the next one waits, or has a place already."""
        work = self._move(record.key, "again")
        ended_at_ms = record.ended_at_ms if record.ended_at_ms is not None else at_ms
        begun = record.started_at_ms if record.started_at_ms is not None else work.started_at_ms
        how, why = ending(record), work.note
        if record.state == State.EVICTED:
            how = f"evicted, {why or how}"
        amounts = (record.exit_code, record.signal, record.cpu_ms, record.peak_memory_bytes)
        why_stopped = (work.evicted_for, work.evict_rule)
        over = Attempt(work.attempt, State(record.state), work.node, begun, ended_at_ms, *amounts, how, *why_stopped)
        work.start_over(over)
        work.remember(ended_at_ms, record.state, f"attempt {over.number}: {how}")
        if work.placed_ahead:
            self._move(work.key, "allocated")
            work.node, work.allocated_at_ms, work.placed_ahead = work.placed_ahead, at_ms, ""
            work.attempt += 1

    def _retried(self, decision: Retried, at_ms: int) -> None:
        """The scheduler tries it again, at once or after a back-off."""
        work = self._live.get(work_of(decision.new_key))
        if work is None:
            return
        work.ask, work.retry_due_ms = decision.new_key, decision.due_ms
        wait_s = (decision.due_ms - at_ms) / 1000
        when = f"after a back-off of {wait_s:g} s" if wait_s > 0 else "at once"
        work.remember(at_ms, "retry", f"attempt {decision.attempt} enters {when}")

    def _named(self, key: str) -> str:
        """A work as others may know it: its key, and whose it is."""
        work = self._works.get(key)
        return f"{key} of {work.spec.user} in {work.queue}, priority {work.priority}" if work is not None else key

    def _explained(self, record: WorkRefused, at_ms: int) -> None:
        """It is not taken in; or it was not, and this is why in words that say what to do."""
        work = self._known(record.key)
        work.refusal_code = record.code
        if work.state is not State.REJECTED:
            self._refused(record.key, record.sentence, at_ms)
            return
        work.error = record.sentence
        last = work.history[-1]
        work.history[-1] = HistoryEntry(last.at_ms, last.what, record.sentence)

    def _waits(self, record: WorkWaits, at_ms: int) -> None:
        work = self._known(record.key)
        if work.state is not State.WAITING:
            raise WorksError(f"work {record.key} is {work.state}: it does not wait")
        work.waits_for, work.waits_noted_ms = f"{record.code} {record.subject}", at_ms
        work.remember(at_ms, "waits", record.sentence)

    def _reconfigured(self, record: QueuesReconfigured, at_ms: int) -> None:
        """What changed in the queues of each live work, and above them, becomes part of its story."""
        by_queue: dict[str, list[str]] = {}
        for difference in record.differences:
            if difference.partition == DEFAULT_PARTITION:
                by_queue.setdefault(difference.queue, []).append(setting_changed(difference))
        for work in self._live.values():
            names = work.queue.split(".")
            paths = [".".join(names[: i + 1]) for i in range(len(names))]
            found = [sentence for path in paths for sentence in by_queue.get(path, ())]
            if found:
                more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
                said = "; ".join(found[:SHOWN]) + more
                work.remember(at_ms, "configured", f"version {record.version} by {record.who or 'nobody'}: {said}")

    def _refused(self, key: str, text: str, at_ms: int) -> None:
        work = self._move(key, "refused")
        work.error = text
        self._close(work, at_ms, "rejected", text)

    def _over(self, record: WorkEnded, at_ms: int) -> None:
        work = self._move(record.key, f"ended:{record.state}")
        record_note = record.note or work.note
        for name in ("exit_code", "signal", "cpu_ms", "peak_memory_bytes", "gpus", "error", "no_retry"):
            setattr(work, name, getattr(record, name))
        work.note = record_note
        if record.started_at_ms is not None:
            work.started_at_ms = record.started_at_ms
        how = f"{ending(record)}; not tried again: {record.no_retry}" if record.no_retry else ending(record)
        self._close(work, record.ended_at_ms if record.ended_at_ms is not None else at_ms, record.state, how)

    # --- small parts -----------------------------------------------------------------------------------------------

    def _known(self, key: str) -> Work:
        work = self._works.get(key)
        if work is None:
            raise WorksError(f"there is no work {key}")
        return work

    def _move(self, key: str, what: str) -> Work:
        work = self._known(key)
        state = TRANSITIONS.get((work.state, what))
        if state is None:
            raise WorksError(f"work {key} is {work.state}: {what!r} cannot happen to it")
        work.state = state
        return work

    def _close(self, work: Work, ended_at_ms: int, what: str, detail: str) -> None:
        work.ended_at_ms = ended_at_ms
        work.remember(ended_at_ms, what, detail)
        del self._live[work.key]
        heapq.heappush(self._ended, (ended_at_ms, int(work.key)))
        while len(self._ended) > self.keep_ended:
            self._drop(str(heapq.heappop(self._ended)[1]))

    def _drop(self, key: str) -> None:
        work = self._works.pop(key)
        self.dropped += [run_key(key, number) for number in work.runs]
        if work.request:
            keys = self._requests[(work.spec.uid, work.request)][1]
            keys.remove(key)
            if not keys:
                del self._requests[(work.spec.uid, work.request)]

    # --- the whole of it ---------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """The whole book as plain values, JSON-ready."""
        return {
            "next_number": self.next_number,
            "memory_short": msgspec.to_builtins(self.memory_short),
            "works": [msgspec.to_builtins(work, enc_hook=_plain) for work in self._works.values()],
            "requests": [[uid, name, digest, list(keys)] for (uid, name), (digest, keys) in self._requests.items()],
        }

    @classmethod
    def load(cls, state: dict[str, Any], keep_ended: int = KEEP_ENDED) -> Works:
        """The book that `dump` described."""
        book = cls(keep_ended)
        book.next_number = state["next_number"]
        book.memory_short = msgspec.convert(state.get("memory_short"), MemoryShort | None)
        for plain in state["works"]:
            work = msgspec.convert(plain, Work, dec_hook=_unplain)
            book._works[work.key] = work
            if work.ended:
                book._ended.append((work.ended_at_ms or 0, int(work.key)))
            else:
                book._live[work.key] = work
        heapq.heapify(book._ended)
        book._requests = {(uid, name): (digest, list(keys)) for uid, name, digest, keys in state["requests"]}
        return book


def _while_it_waits(work: Work, decision: ReservationSwitched | PriorityChanged | Reserved, at_ms: int) -> None:
    """What was decided about a work that has no place yet becomes part of its story."""
    if isinstance(decision, Reserved):
        work.remember(at_ms, "reserved", f"space on {decision.node} is held for it")
        return
    if isinstance(decision, PriorityChanged):
        work.priority = decision.new
        what, said = "priority", f"{decision.old} to {decision.new} by {decision.who or 'nobody'}"
    else:
        work.reserved = decision.on
        by = f" by {decision.who}" if decision.who else ""
        what, said = "reservation", f"switched {'on' if decision.on else 'off'}{by}"
    why = getattr(decision, "why", "")
    work.remember(at_ms, what, f"{said}: {why}" if why else said)


def _plain(value: Any) -> Any:
    if isinstance(value, Resources):
        return value.as_dict()
    raise NotImplementedError(f"no plain form for {type(value).__name__}")


def _unplain(kind: type, value: Any) -> Any:
    if kind is Resources:
        return Resources(value)
    raise NotImplementedError(f"no plain form for {kind.__name__}")
