"""The cluster: all partitions, their timers, and the check of every invariant.

Decides what a configuration makes of the queue trees and what a due timer does. Never schedules. Invariant: `check`
passes after every act.
"""

from __future__ import annotations

from fairlead.core.applications import NO_PRIORITY
from fairlead.core.decisions import Configured, Decision
from fairlead.core.lifecycle import State, Step
from fairlead.core.partition import ENDED_KEPT_MS, Partition
from fairlead.core.queues import Queue, QueueState
from fairlead.core.specs import ClusterSpec, PartitionSpec, QueueSpec
from fairlead.core.timers import Timer, Timers


class Cluster:
    """The books of everything."""

    def __init__(self) -> None:
        self.partitions: dict[str, Partition] = {}
        self.timers = Timers()
        self.out: list[Decision] = []
        self.now_ms = 0
        self.started_ms = 0
        self.checksum = ""
        self.text = ""
        self._seq = 0

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
        """Make the trees what the file says, as one step. Queues that are not in it drain; others keep their books."""
        for part in spec.partitions:
            partition = self.partitions.get(part.name)
            if partition is None:
                self._new_partition(part)
            else:
                self._update_partition(partition, part)
        named = {part.name for part in spec.partitions}
        for name in [n for n in self.partitions if n not in named]:
            self._drain_tree(self.partitions[name].root)
            self.partitions[name].draining = True
        self.checksum, self.text = spec.checksum, spec.text
        self.out.append(Configured(spec.checksum))

    def _new_partition(self, spec: PartitionSpec) -> None:
        root = Queue("root", None, self.next_seq(), leaf=False, managed=True)
        partition = Partition(spec, root, self.timers, self.out, self.next_seq, self.now_ms)
        self.partitions[spec.name] = partition
        root.configure(spec.root)
        root.max_applications = spec.root.max_applications
        self._apply_children(root, spec.root)

    def _update_partition(self, partition: Partition, spec: PartitionSpec) -> None:
        partition.spec = spec
        partition.draining = False
        partition.nodes.resort(spec.node_sort)
        partition.root.configure(spec.root)
        self._apply_children(partition.root, spec.root)
        recount_priorities(partition.root)
        partition.reshare()
        partition.books_version += 1
        partition.wake_all()

    def _apply_children(self, queue: Queue, spec: QueueSpec) -> None:
        wanted = {child.name.lower(): child for child in spec.queues}
        for name, child_spec in wanted.items():
            is_leaf = not child_spec.parent and not child_spec.queues
            child = queue.children.get(name)
            if child is None:
                child = Queue(name, queue, self.next_seq(), leaf=is_leaf, managed=True)
            elif child.is_leaf != is_leaf and not child.applications and not child.children:
                child.is_leaf = is_leaf
            child.configure(child_spec)
            child.state = QueueState.ACTIVE
            if not child.is_leaf and child.template is None:
                child.template = queue.template
            self._apply_children(child, child_spec)
        for name, child in queue.children.items():
            if name not in wanted and child.managed:
                self._drain_tree(child)

    def _drain_tree(self, queue: Queue) -> None:
        for below in queue.walk():
            if below.managed:
                below.state = QueueState.DRAINING

    def clean_queues(self) -> None:
        """Remove queues that drain or were made on the way, once they are empty; children before parents."""
        for partition in self.partitions.values():
            for queue in reversed(list(partition.root.walk())):
                leaving = queue.state is QueueState.DRAINING or not queue.managed
                if leaving and queue.parent and not queue.children and not queue.applications:
                    del queue.parent.children[queue.name]
                    queue.entry = None

    # -- timers ---------------------------------------------------------------------------------------------------

    def fire_due(self, now_ms: int) -> None:
        """Fire every timer that is due by `now_ms`, each at its own time, in order."""
        while (timer := self.timers.pop_due(now_ms)) is not None:
            self.set_time(max(timer.due_ms, self.now_ms))
            partition = self.partitions.get(timer.partition)
            if partition is not None:
                _fire(partition, timer)

    # -- the check ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Assert every invariant of the books."""
        from fairlead.core.checks import check_partition

        for partition in self.partitions.values():
            check_partition(partition)


def _fire(partition: Partition, timer: Timer) -> None:
    if timer.kind == "ended":
        oldest = partition.now_ms - ENDED_KEPT_MS
        for kept in (partition.ended, partition.rejected):
            for key in [k for k, a in kept.items() if a.id == timer.subject and (a.finished_ms or 0) <= oldest]:
                kept[key].advance(Step.EXPIRE, partition.now_ms)
                del kept[key]
        return
    app = partition.applications.get(timer.subject)
    if app is None or app.timer_epoch != timer.epoch:
        return
    if app.state is State.COMPLETING:
        partition.advance(app, Step.COMPLETE)
    elif app.state is State.STARTING:
        partition.advance(app, Step.RUN)


def recount_priorities(queue: Queue) -> int:
    """Work out from scratch what each queue reports, children first; returns what `queue` itself reports."""
    counts: dict[int, int] = {}
    below = [app.priority for app in queue.applications.values()]
    below += [recount_priorities(child) for child in queue.children.values()]
    for priority in below:
        if priority != NO_PRIORITY:
            counts[priority] = counts.get(priority, 0) + 1
    queue.priority_counts = counts
    queue.raw_priority = max(counts, default=NO_PRIORITY)
    queue.reported = queue.adjust(queue.raw_priority)
    queue.touch()
    return queue.reported
