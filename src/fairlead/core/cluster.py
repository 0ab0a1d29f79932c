"""The cluster: all partitions, their timers, and the check of every invariant.

Decides what a due timer does. Never schedules. Invariant: `check` passes after every act.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.core import gangs, lives
from fairlead.core.admission import Admission
from fairlead.core.decisions import Decision
from fairlead.core.partition import Partition
from fairlead.core.reconfigure import clean_queues, configure
from fairlead.core.specs import ClusterSpec
from fairlead.core.timers import Timer, Timers


class Cluster:
    """The books of everything."""

    def __init__(self) -> None:
        self.partitions: dict[str, Partition] = {}
        self.timers = Timers()
        self.admission = Admission()
        self.out: list[Decision] = []
        self.now_ms = 0
        self.started_ms = 0
        self.checksum = ""
        self.text = ""
        self._seq = 0
        self.on_due: dict[str, Callable[[Partition, str], None]] = {}
        """What a due timer of a kind that the books do not know means for its subject; filled by the front door."""

    def next_seq(self) -> int:
        """The next number in the order of arrival."""
        self._seq += 1
        return self._seq

    @property
    def last_seq(self) -> int:
        """The last number given out."""
        return self._seq

    def restore_seq(self, seq: int) -> None:
        """Go on counting after `seq` (after a restart)."""
        self._seq = seq

    def set_time(self, now_ms: int) -> None:
        """Bring the time forward; it never goes back."""
        if now_ms < self.now_ms:
            raise ValueError(f"time goes back from {self.now_ms} ms to {now_ms} ms")
        self.now_ms = now_ms
        for partition in self.partitions.values():
            partition.now_ms = now_ms

    def drain_out(self) -> list[Decision]:
        """What was decided since the last call."""
        decided = list(self.out)
        self.out.clear()
        return decided

    # -- configuration --------------------------------------------------------------------------------------------

    def configure(self, spec: ClusterSpec) -> None:
        """Make partitions and queues what the file says, as one step (`core.reconfigure`)."""
        configure(self, spec)

    # -- timers ---------------------------------------------------------------------------------------------------

    def fire_due(self, now_ms: int) -> None:
        """Fire every timer that is due by `now_ms`, each at its own time, in order."""
        for name in self.timers.looks_due(now_ms):
            if name in self.partitions:
                self.partitions[name].rested_at = None
        while (timer := self.timers.pop_due(now_ms)) is not None:
            self.set_time(max(timer.due_ms, self.now_ms))
            partition = self.partitions.get(timer.partition)
            if partition is None:
                continue
            partition.news += 1
            rule = self.on_due.get(timer.kind)
            if rule is not None:
                rule(partition, timer.subject)
            else:
                _fire(partition, timer)

    # -- the check ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Assert every invariant of the books."""
        from fairlead.core.checks import check_partition

        for partition in self.partitions.values():
            check_partition(partition)
        self.admission.check(self.partitions.values())


def _fire(partition: Partition, timer: Timer) -> None:
    """The timers of the life of queues and applications, which no rule decides about."""
    if timer.kind == "queues":
        clean_queues(partition)
    elif timer.kind == lives.ENDED_TIMER:
        lives.drop_old(partition)
    elif (app := partition.applications.get(timer.subject)) is not None:
        if timer.kind == gangs.TIMER:
            gangs.time_out(partition, app)
        else:
            lives.on_timer(partition, app)
