"""The queue tree: what each queue may use, uses and waits for.

Decides how usage, waiting work, running applications and priorities bubble up, and what room a queue has left. Never
orders queues and never places anything. Invariant: what a queue has allocated and pending is the sum of its children
(or of its applications); `reported` is the highest priority that waits below, after fence and offset.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fairlead.core.books.applications import NO_PRIORITY
from fairlead.core.books.asks import Batch
from fairlead.core.books.guarantees import note_owed
from fairlead.core.books.queue_line import QueueLine
from fairlead.core.model.properties import QueueProperties, inherited
from fairlead.core.model.resources import Book, Items, lacks, negative, take_from
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN, QueueSpec, TemplateSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.core.books.applications import Application

RECOVERY_QUEUE = "root.@recovery@"


class QueueState(StrEnum):
    """Whether a queue takes part."""

    ACTIVE = "Active"
    DRAINING = "Draining"


class Queue(QueueLine):
    """One queue with its books. Names and paths are lower case."""

    __slots__ = (
        "admin_acl",
        "allocating_accepted",
        "by_rank",
        "guaranteed",
        "idle",
        "managed",
        "name",
        "order_moves",
        "owed_below",
        "owes",
        "path",
        "pending_sum",
        "preempting",
        "priority_counts",
        "properties",
        "quota_due_ms",
        "raw_priority",
        "reported",
        "resting",
        "running",
        "seq",
        "share_terms",
        "shifts_priority",
        "state",
        "submit_acl",
        "template",
        "under_guarantee",
    )

    def __init__(self, name: str, parent: Queue | None, seq: int, *, leaf: bool, managed: bool) -> None:
        super().__init__(parent, leaf=leaf)
        self.name = name.lower()
        self.path: str = self.name if parent is None else f"{parent.path}.{self.name}"
        self.seq = seq
        self.managed = managed
        self.state = QueueState.ACTIVE
        # What it may use.
        self.guaranteed: dict[str, int] | None = None
        self.set_properties({})
        self.template: TemplateSpec | None = None
        self.admin_acl = ""
        self.submit_acl = ""
        # What it uses, besides `allocated`.
        self.pending_sum = 0
        """What waits here and below, summed up over all resources: by that it counts for the order among siblings."""
        self.preempting: Book = {}
        self.idle: Book = {}
        """What of `allocated` is idle work that was not told to stop for others: it counts for no guarantee."""
        self.running = 0
        self.quota_due_ms: int | None = None
        """When it has to be within its maximum (`core.acts.quota_clocks`); None: it is, or nothing makes it."""
        self.allocating_accepted: dict[str, None] = {}
        self.resting: dict[Batch, None] = {}
        """Batches that make no attempt to preempt while a maximum here or above is too small (`acts.infeasible`)."""
        # Priorities: how many applications (leaf) or children (parent) report each value.
        self.priority_counts: dict[int, int] = {}
        self.raw_priority = NO_PRIORITY
        self.reported = NO_PRIORITY
        # Kept orders (`policy.order.pick`), and what waits for room here.
        self.by_rank: bool = parent.by_rank if parent is not None else False
        """Whether asks have their turn by rank (`preemption.rule` is `priority` or `both`), not by YuniKorn's walk."""
        self.shifts_priority = False
        """Of the root: somewhere priorities are fenced or get an offset, or did, and do not count as they are."""
        self.owes = False
        """A queue here or below has a guarantee, or had one, and guarantees count for the rank (rule `both`)."""
        self.under_guarantee = False
        """It or a queue above has a guarantee, and guarantees count for the rank."""
        self.owed_below: dict[Queue, None] = {}
        """Children for which `guarantees.may_be_owed` holds."""
        self.share_terms: tuple[tuple[str, int], ...] | None = None
        if parent is not None:
            parent.children[self.name] = self

    # -- the tree -------------------------------------------------------------------------------------------------

    @property
    def is_leaving(self) -> bool:
        """Whether it is removed as soon as it is empty: it drains, or was made by placement."""
        return self.state is QueueState.DRAINING or not self.managed

    @property
    def draining(self) -> Queue | None:
        """The nearest queue, from here up, that drains: nothing new comes in below it."""
        return next((queue for queue in self.lineage if queue.state is QueueState.DRAINING), None)

    def walk(self) -> Iterator[Queue]:
        """This queue and all below, parents first, children in order of creation."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def find(self, path: str) -> Queue | None:
        """The queue with this full path (any case), below or at this root."""
        first, *below = path.lower().split(".")
        queue: Queue | None = self if first == self.name else None
        for part in below:
            queue = queue.children.get(part) if queue is not None else None
        return queue

    # -- configuration --------------------------------------------------------------------------------------------

    def configure(self, spec: QueueSpec) -> None:
        """What the file says of this queue, and what it has from its parent. The root never has limits of its own."""
        self.managed = True
        own = {k: str(v) for k, v in spec.properties.items()}
        raw = inherited(self.parent.properties.raw, own) if self.parent is not None else own
        self._apply(raw, spec)
        self.template = _without_blanks(spec.child_template)
        if self.template is None and self.parent is not None:
            self.template = self.parent.template
        self.admin_acl, self.submit_acl = spec.admin_acl, spec.submit_acl

    def configure_dynamic(self, template: TemplateSpec | None) -> None:
        """Set up a queue that a placement rule made: a leaf takes the template whole, a parent only passes it on."""
        if self.is_leaf and template is not None:
            self._apply(dict(template.properties), template)
        else:
            self._apply({}, TemplateSpec())
            self.template = template

    def _apply(self, raw: Mapping[str, str], spec: QueueSpec | TemplateSpec) -> None:
        self.set_properties(raw)
        self.max_applications = spec.max_applications
        if self.parent is not None:
            self.max = spec.max.as_dict() if spec.max is not None and spec.max.is_set else None
            due = spec.guaranteed
            self.guaranteed = due.as_dict() if due is not None and due.is_set else None
        self.share_terms = None

    def set_properties(self, raw: Mapping[str, str]) -> None:
        """Its properties are these from now on."""
        self.properties = QueueProperties.of(raw, self.is_leaf)
        if self.properties.priority_fence or self.properties.priority_offset:
            self.lineage[-1].shifts_priority = True
        self.order_moves = self.properties.sort_policy == "fair" or self.properties.backoff_threshold > 0
        """Of a leaf: what its applications use counts for their order, or they may have to rest."""

    # -- room -----------------------------------------------------------------------------------------------------

    def headroom(self) -> dict[str, int] | None:
        """What is left under every maximum from here to the root; None: unlimited. May be negative."""
        room: dict[str, int] | None = None
        for queue in reversed(self.lineage):
            if queue.max is None:
                continue
            room = {} if room is None else room
            for name, most in queue.max.items():
                left = most - queue.allocated.get(name, 0)
                room[name] = min(left, room.get(name, left))
        return room

    def short_of_room(self, items: Items) -> Queue | None:
        """The first queue from here up to (not including) the root whose maximum has no room for this amount."""
        for queue in self.lineage:
            limit = queue.max
            if limit is not None and queue.parent is not None and lacks(limit, queue.allocated, items):
                return queue
        return None

    def fair_max(self) -> dict[str, int]:
        """What the share of this queue is measured against where it has no guarantee.

        The root's is the sum of the nodes; a child takes its parent's and overwrites it with its own maximum, type by
        type, even upwards. Empty without nodes.
        """
        if self.parent is None:
            return dict(self.max or {})
        fair = self.parent.fair_max()
        if fair and self.max is not None:
            fair.update(self.max)
        return fair

    # -- usage ----------------------------------------------------------------------------------------------------

    def add_pending(self, items: Items, sign: int = 1) -> None:
        """Work of this size waits from now on, here and up to the root (sign -1: it waits no longer)."""
        total = sign * sum([amount for _, amount in items])
        for queue in self.lineage:
            queue.pending_sum += total
            if not queue.touched:
                queue.touch()

    def add_allocated(self, items: Items, waited: bool = False) -> None:
        """This much more is in use, here and up to the root, and `waited` until now (the hot path of an allocation, so
        in one pass). No check: the caller made sure, or is forced to.
        """
        total = 0
        if waited:
            for _, amount in items:
                total += amount
        for queue in self.lineage:
            used = queue.allocated
            queue.pending_sum -= total
            for name, amount in items:
                if name in used:
                    used[name] += amount
                else:
                    used[name] = amount
            if not queue.touched and queue.parent is not None:
                queue.touched = True
                queue.parent.changed_children.append(queue)
            if queue.owes and queue.guaranteed is not None:
                note_owed(queue)

    def take_allocated(self, items: Items) -> None:
        """This much is free again; what waits for room under one of these maxima is woken when it fits."""
        for queue in self.lineage:
            book = queue.allocated
            for name, amount in items:
                book[name] -= amount
            if not queue.touched:
                queue.touch()
            if queue.owes and queue.guaranteed is not None:
                note_owed(queue)
        self.loosened()

    def add_part(self, items: Items, sign: int, is_leaving: bool) -> None:
        """This much of what is in use counts for no guarantee (sign -1: it is gone, or does again): it was told to stop
        (`is_leaving`), or is idle work that was not.
        """
        less = negative(items) if sign > 0 else items
        for queue in self.lineage:
            take_from(queue.preempting if is_leaving else queue.idle, less)
            if queue.owes and queue.guaranteed is not None:
                note_owed(queue)

    def count_applications(self) -> int:
        """How many applications run here and below, or have a place for their placeholders."""
        return self.running + len(self.allocating_accepted)

    def counts(self, app: Application) -> bool:
        """Whether an application that is accepted only has a place for its placeholders."""
        return app.id in self.allocating_accepted

    def loosened(self) -> None:
        """Room was made in this queue and above: what waits for it is looked at again."""
        for queue in self.lineage:
            if queue.full or queue.waiting or queue.reserved:
                queue.wake_waiting()

    def count_running(self, change: int) -> None:
        """One application more (1) or less (-1) runs here and above."""
        for queue in self.lineage:
            queue.running = max(queue.running + change, 0)
        if change < 0:
            self.open_gates()

    def open_gates(self) -> None:
        """Applications may run again: wake what waits behind `maxapplications`, here and above."""
        for queue in self.lineage:
            queue.open_gate()

    # -- priorities -----------------------------------------------------------------------------------------------

    def adjust(self, priority: int) -> int:
        """What this queue reports upward for a waiting priority: its offset when fenced, else offset + priority. That
        stays within 32 bits in YuniKorn's walk, where the smallest says that nothing waits; where rank decides it is
        not cut, or priorities would be equal for turns that are not for preemption.
        """
        if priority == NO_PRIORITY or (priority == PRIORITY_MIN and not self.by_rank):
            return priority
        offset = self.properties.priority_offset
        if self.properties.priority_fence:
            return offset
        seen = offset + priority
        return seen if self.by_rank else min(PRIORITY_MAX, max(PRIORITY_MIN, seen))

    def change_priority(self, old: int, new: int) -> None:
        """An application (or child) here reports `new` instead of `old`; go up only while something changes."""
        queue: Queue | None = self
        while queue is not None and old != new:
            counts = queue.priority_counts
            if old != NO_PRIORITY:
                left = counts[old] - 1
                if left:
                    counts[old] = left
                else:
                    del counts[old]
            if new != NO_PRIORITY:
                counts[new] = counts.get(new, 0) + 1
            raw = queue.raw_priority
            if new > raw:
                raw = new
            elif old == raw and old not in counts:
                raw = max(counts, default=NO_PRIORITY)
            if raw == queue.raw_priority:
                return
            began_or_ended = NO_PRIORITY in (raw, queue.raw_priority)
            queue.raw_priority = raw
            if began_or_ended and queue.lineage[-1].owes:
                note_owed(queue)
            old, new = queue.reported, queue.adjust(raw)
            queue.reported = new
            if old != new:
                queue.touch()
            queue = queue.parent

    def __repr__(self) -> str:
        return f"<Queue {self.path}>"


def _without_blanks(template: TemplateSpec | None) -> TemplateSpec | None:
    """A template without the properties that have no name or no value; one that then says nothing is none."""
    if template is None:
        return None
    kept = {name: value for name, value in template.properties.items() if name.strip() and value.strip()}
    if not kept and template.guaranteed is None and template.max is None and not template.max_applications:
        return None
    return replace(template, properties=kept)
