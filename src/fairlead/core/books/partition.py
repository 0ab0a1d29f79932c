"""One partition's books: its queues, nodes and applications, and what is remembered beside them.

Decides where each fact stands. Never changes two of them together: that is an act (`core.acts`), and each act says what
became so by appending decisions to `out`, in order. Invariant: every total is the sum of its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fairlead.core.books.above_guarantee import AboveGuarantee
from fairlead.core.books.admission import Admission
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Shape, ShapeKey
from fairlead.core.books.eviction_history import Disruption
from fairlead.core.books.held_asks import HeldAsks
from fairlead.core.books.idle_work import IdleWork
from fairlead.core.books.nodes import NodeTable
from fairlead.core.books.nominations import Nominations
from fairlead.core.books.queue_reservations import Reserving
from fairlead.core.books.queues import Queue
from fairlead.core.books.timers import Timers
from fairlead.core.books.user_limits import Trackers
from fairlead.core.model.decisions import Decision
from fairlead.core.model.specs import PartitionSpec


@dataclass(slots=True)
class Partition:
    """The books of one partition. `now_ms` is set by the front door before every act."""

    spec: PartitionSpec
    root: Queue
    timers: Timers
    out: list[Decision]
    next_seq: Callable[[], int]
    now_ms: int = 0
    name: str = field(init=False)
    """As in the file."""
    nodes: NodeTable = field(init=False)
    applications: dict[str, Application] = field(default_factory=dict)
    ended: dict[str, Application] = field(default_factory=dict)
    """Completed and failed applications by `id-<seconds of their end>`, oldest first."""
    rejected: dict[str, Application] = field(default_factory=dict)
    shapes: dict[ShapeKey, Shape] = field(default_factory=dict)
    reservations: int = 0
    nominations: Nominations = field(default_factory=Nominations)
    """What is kept for asks for which work was stopped, or that waited too long."""
    disruption: Disruption = field(default_factory=Disruption)
    """What is remembered of work that was stopped for other work."""
    held_asks: HeldAsks = field(default_factory=HeldAsks)
    """Attempts that enter when their back-off is over."""
    idle: IdleWork = field(default_factory=IdleWork)
    """Asks that run on what others leave over."""
    reserving: Reserving = field(default_factory=Reserving)
    """Asks whose turn is kept, so that others of their queue wait."""
    above_guarantee: AboveGuarantee = field(default_factory=AboveGuarantee)
    """By how much queues are above their guarantees."""
    uncounted: dict[Application, None] = field(default_factory=dict)
    """Applications in queues where they may have to rest (`policy.eligibility.backoff`)."""
    rested_at: tuple[int, int] | None = None
    """The state of things in which a run found nothing to do; never needed, only quicker."""
    swappable: dict[Queue, dict[Application, None]] = field(default_factory=dict)
    """By leaf, applications with placeholders in which some ask may replace one, as far as known."""
    homeless: dict[Application, None] = field(default_factory=dict)
    """Applications with an ask that may replace a placeholder only on another node, and found none with room."""
    homeless_at: int = 0
    """The count of gains (`NodeTable.gains`) up to which that was so."""
    allocation_count: int = 0
    released_count: int = 0
    books_version: int = 0
    """Grows with every change of what runs, is held, or may be stopped, and whenever what waits changes or goes."""
    tightened: int = 0
    """How many of these changes took room and made none."""
    news: int = 0
    """How many events and timers there were."""
    started_seq: int = 0
    """When work started last, in the numbers that asks get as they come."""
    changed_seq: int = 0
    """When the last of them came that changed something and was more than new work, in the same numbers."""
    shares_stale: bool = False
    """Nodes came, went or changed since shares were measured: one look at the tree serves all of them."""
    admission: Admission = field(default_factory=Admission)
    """Priority classes and quotas by class; the cluster gives all its partitions the same."""
    keeps_history: bool = True
    """Ended applications, and what each consumed, are kept for a while; a simulation has its own record."""

    trackers: Trackers = field(init=False)  # The limits of users and groups.
    unseen: dict[Application, None] = field(default_factory=dict)
    """Applications that wait and that no scheduling run has come to yet: their group is not decided for good."""

    def __post_init__(self) -> None:
        self.name = self.spec.name
        self.nodes = NodeTable(self.spec.node_sort)
        self.nodes.in_use = self.root.allocated
        self.trackers = Trackers(self.spec.root)

    @property
    def room_stamp(self) -> int:
        """Changes when room is made, or work comes that others may take room from, not when ordinary work starts."""
        return self.books_version - self.tightened

    def note_event(self, before: int) -> None:
        """An event or timer is carried out. If `books_version`, which was `before`, is another one, it has changed
        something; else all that waits, and what it may have stopped, is as it was.
        """
        self.news += 1
        if self.books_version != before:
            self.note_change()

    def note_change(self) -> None:
        """Something is otherwise, by more than new work, which takes room and makes none: nothing is young."""
        if self.started_seq > self.changed_seq:
            self.books_version += 1  # What was may be stopped now.
            self.nodes.reserved_again |= self.nodes.spares_young
            self.nodes.spares_young.clear()
        self.changed_seq = self.next_seq()

    def note_arrival(self) -> None:
        """New work has come: nothing is spared any more because it was stopped for the same ask before."""
        if self.disruption.spared_at == self.disruption.news:
            self.books_version += 1  # What was may be stopped now.
        self.disruption.news += 1

    def is_young(self, running: Ask, preemptor: Ask) -> bool:
        """Whether this work started while `preemptor` waited, and nothing but new work has come since: so it is no
        victim of it. What an ask cannot have in its turn it does not take back from what had its turn later.
        """
        return running.started_seq > self.changed_seq and running.started_seq > preemptor.seq

    # -- asks -----------------------------------------------------------------------------------------------------

    def find_ask(self, application: str, key: str) -> Ask | None:
        """The ask of this application and key, whether it waits or runs; None: there is none, or it is held."""
        app = self.applications.get(application)
        return app.asks.get(key) if app is not None else None
