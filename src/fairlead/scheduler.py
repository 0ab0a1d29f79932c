"""The front door: events in, decisions out.

Decides nothing by itself: it brings the time forward, applies an event to the books, runs the cycle, and hands out what
followed, in order. Never reads a clock, draws a random number, logs, locks, or touches a file or a socket. Invariant:
`handle` and `schedule` are the only two ways in which state changes, so the same calls give the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fairlead.core.acts import room_changes
from fairlead.core.acts.reconfigure import configure
from fairlead.core.books.cluster import Cluster
from fairlead.core.model.decisions import Allocated, ConfigurationRejected, Decision
from fairlead.core.model.events import AddApplication, AddAsks, Configure, Event
from fairlead.core.model.reasons import Reason
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.core.snapshot.dump import dump_cluster
from fairlead.core.snapshot.load import load_cluster
from fairlead.policy.cycle import Cycle
from fairlead.policy.eligibility.start_estimates import start_to_tell
from fairlead.policy.events.admin_objects import CLUSTER_HANDLERS
from fairlead.policy.events.handlers import HANDLERS, partition_of, refuse_unknown_partition
from fairlead.policy.events.held import enter_freed
from fairlead.policy.events.reload import why_not
from fairlead.policy.events.timer_handlers import fire_due
from fairlead.policy.order.effective_priority import weaker_than
from fairlead.policy.place.allocate import MOVED
from fairlead.policy.why.alike import alike
from fairlead.policy.why.waiting import why_waiting

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition

T = TypeVar("T")
NEW_WORK = (AddApplication, AddAsks)
"""Events that take room and make none."""
MOVES_MAX = 10_000
"""Runs of one call that set a node aside or tell victims to stop; what is left to do then waits for the next call."""


class Scheduler:
    """One cluster's books and the cycle over them."""

    def __init__(self, spec: ClusterSpec | None = None, now_ms: int = 0) -> None:
        self.cluster = Cluster()
        self._cycles: dict[str, Cycle] = {}
        self._answers: dict[Hashable, Any] = {}
        """To questions about the state as it is, as long as nothing changes."""
        self.cluster.set_time(now_ms)
        self.cluster.started_ms = now_ms
        configure(self.cluster, spec or ClusterSpec())
        self.cluster.drain_out()

    def handle(self, event: Event, now_ms: int) -> list[Decision]:
        """Apply one event at `now_ms` (never earlier than any time before). Timers due by then fire first."""
        self._bring_forward(now_ms)
        rule = HANDLERS.get(type(event))
        if rule is None:
            self._handle_whole(event)
            return self.cluster.drain_out()
        name = partition_of(event)
        partition = self.cluster.partitions.get(name)
        if partition is None:
            refuse_unknown_partition(event, name, self.cluster.out)
        else:
            before = partition.books_version
            rule(partition, event)
            enter_freed(partition)
            if isinstance(event, NEW_WORK):
                partition.news += 1
            else:
                partition.note_event(before)
        return self.cluster.drain_out()

    def _handle_whole(self, event: Event) -> None:
        """An event that is about the cluster as a whole."""
        before = {name: partition.books_version for name, partition in self.cluster.partitions.items()}
        if isinstance(event, Configure):
            self._configure(event.spec)
        else:
            CLUSTER_HANDLERS[type(event)](self.cluster, event)
        for name, partition in self.cluster.partitions.items():
            partition.note_event(before.get(name, -1))

    def schedule(self, now_ms: int, limit: int | None = None, *, stop_when_empty: bool = False) -> list[Decision]:
        """Run scheduling at `now_ms` until nothing more can be done or `limit` allocations were made in each partition.

        With several partitions each places at most one ask in a round. Two calls with limits m and n decide what one
        call with m + n would. `stop_when_empty` ends the call after the first round that places nothing, even when it
        set a node aside or told victims to stop: a round at a time, as the recorded scenarios were stepped.
        """
        self._bring_forward(now_ms)
        left, moves = limit, MOVES_MAX
        cycles = [self._cycle_of(partition) for partition in self.cluster.partitions.values()]
        for cycle in cycles:
            if cycle.partition.shares_stale:
                room_changes.reshare(cycle.partition)
        going = True
        while going and (left is None or left > 0):
            going = placed = False
            for cycle in cycles:
                outcome = cycle.run_once(is_step=stop_when_empty)
                if outcome is MOVED:
                    if not stop_when_empty:
                        going = going or moves > 0
                        moves -= 1
                elif outcome is not None:
                    going = placed = True
            if placed and left is not None:
                left -= 1
        if moves < 0:
            self.cluster.timers.set(now_ms + 1, DEFAULT_PARTITION, "", "again")
        return self.cluster.drain_out()

    def _cycle_of(self, partition: Partition) -> Cycle:
        cycle = self._cycles.get(partition.name)
        if cycle is None or cycle.partition is not partition:
            cycle = self._cycles[partition.name] = Cycle(partition)
        return cycle

    def _configure(self, spec: ClusterSpec) -> None:
        """Apply a queue file as one step, or refuse it as a whole."""
        refused = why_not(self.cluster, spec)
        if refused is not None:
            self.cluster.out.append(ConfigurationRejected(refused))
            return
        configure(self.cluster, spec)
        self._cycles.clear()  # What may be stopped may be something else now.

    def _bring_forward(self, now_ms: int) -> None:
        cluster = self.cluster
        self._answers.clear()
        if cluster.timers.may_be_due(now_ms):
            fire_due(cluster, now_ms)
        if now_ms != cluster.now_ms:
            cluster.set_time(now_ms)

    def forget(self) -> None:
        """Drop every memory of what was looked at in vain; it changes nothing but how long the next call takes."""
        for partition in self.cluster.partitions.values():
            room_changes.wake_all(partition)
        self._cycles.clear()

    def forget_ended(self) -> None:
        """Keep nothing of applications that end, from now on: for a caller who has a record of his own.

        No decision about what waits or runs depends on it; only the notice that an ended one has expired does not come.
        """
        self.cluster.keeps_history = False
        for partition in self.cluster.partitions.values():
            partition.keeps_history = False

    def next_wakeup_ms(self) -> int | None:
        """When the next timer is due (then call `schedule`), or None."""
        return self.cluster.timers.next_wakeup_ms()

    def last_timer_ms(self, until_ms: int | None = None) -> int:
        """When the last of the timers that are set now (and due by `until_ms`) is due; 0 if there is none."""
        due = (timer.due_ms for timer in self.cluster.timers.pending())
        return max((each for each in due if until_ms is None or each <= until_ms), default=0)

    def why(self, application: str, key: str, partition: str = DEFAULT_PARTITION) -> Reason | None:
        """Why this ask waits; None if it is unknown or runs."""
        part = self.cluster.partitions.get(partition)
        ask = part.find_ask(application, key) if part is not None else None
        if part is not None and ask is None and (held := part.held_asks.get(application, key)) is not None:
            return held.reason(part.applications[application], part.now_ms)
        if part is None or ask is None or not ask.pending:
            return None
        like = alike(part, ask)
        if like is None:
            return why_waiting(part, ask, self.answer)
        return self.answer(like, lambda: why_waiting(part, ask, self.answer))

    def answer(self, question: Hashable, work_out: Callable[[], T]) -> T:
        """What `work_out` finds in the state as it is, worked out once until the next event or scheduling call.

        All who ask share it: nobody may change it.
        """
        found = self._answers.get(question)
        if found is None:
            found = self._answers[question] = work_out()
        return cast(T, found)

    def expected_start_ms(self, application: str, key: str, partition: str = DEFAULT_PARTITION) -> int | None:
        """When this waiting ask can start at the latest by declared time limits, if nobody else takes the room.

        None if it is unknown or runs, and where nobody can know: work without a limit is in the way, or it waits for
        the turn of another, for placeholders, or for room that is promised to others.
        """
        part = self.cluster.partitions.get(partition)
        ask = part.find_ask(application, key) if part is not None else None
        if part is None or ask is None or not ask.pending:
            return None
        expected = start_to_tell(part, ask, weaker_than(part, ask))
        return expected.start_ms if expected is not None else None

    def dump(self) -> dict[str, Any]:
        """The whole state as plain values (dicts, lists, str, int, bool, None), in one order, JSON-ready."""
        return dump_cluster(self.cluster)

    @classmethod
    def load(cls, state: dict[str, Any]) -> Scheduler:
        """The scheduler that `dump` described; `load(s.dump()).dump() == s.dump()`.

        Raises ValueError when the state was written by a version that this one cannot read.
        """
        scheduler = cls(ClusterSpec(partitions=()), state["now_ms"])
        scheduler.cluster = load_cluster(state)
        return scheduler


def allocations(decisions: list[Decision]) -> int:
    """How many asks were placed."""
    return sum(isinstance(d, Allocated) for d in decisions)
