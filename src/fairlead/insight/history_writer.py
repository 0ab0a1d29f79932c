"""The history writer: turns what happens into event records (`insight.history_records`), with the few notes it needs.

Decides which records an entry (an event, or a run of scheduling, with its decisions) gives, and their order. Never
changes the books; it looks at them only when it begins (what is there already), for the group that an application
counts for, and for what holds new work back. Invariant: its notes name the live applications with their asks, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.model import decisions as d
from fairlead.core.model import events as e
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import Book, Items, Resources, add_to
from fairlead.core.model.specs import TAG_FOREIGN
from fairlead.insight.history_records import (
    Change,
    ClusterHistory,
    Detail,
    Obstacle,
    Record,
    Type,
    amounts,
    obstacle_of,
)

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.decisions import Decision
    from fairlead.scheduler import Scheduler

STATES = {
    "Accepted": Detail.APP_ACCEPTED,
    "Starting": Detail.APP_STARTING,
    "Running": Detail.APP_RUNNING,
    "Completing": Detail.APP_COMPLETING,
    "Completed": Detail.APP_COMPLETED,
    "Failing": Detail.APP_FAILING,
    "Failed": Detail.APP_FAILED,
    "Resuming": Detail.APP_RESUMING,
    "Expired": Detail.APP_EXPIRED,
}
GONE = frozenset({"Completed", "Failed", "Removed"})
"""States in which an application has left its queue."""
ENDS = {
    Cause.STOPPED_BY_RM: Detail.ALLOC_CANCEL,
    Cause.FINISHED: Detail.ALLOC_CANCEL,
    Cause.INTERRUPTED: Detail.ALLOC_CANCEL,
    Cause.REQUEUED: Detail.ALLOC_CANCEL,
    Cause.PREEMPTED_BY_SCHEDULER: Detail.ALLOC_PREEMPT,
    Cause.TIMEOUT: Detail.ALLOC_TIMEOUT,
    Cause.PLACEHOLDER_REPLACED: Detail.ALLOC_REPLACED,
}
SILENT = frozenset({Cause.PREEMPTED_BY_SCHEDULER, Cause.TIMEOUT, Cause.PLACEHOLDER_REPLACED})
"""Causes whose releases the scheduler does not echo: they confirm its own orders."""


@dataclass(slots=True, eq=False)
class AskNote:
    """An ask as the records need it."""

    key: str
    items: Items
    node: str = ""
    """Where it is; empty while it waits."""
    held: Obstacle | None = None
    """What was said to hold it back."""


@dataclass(slots=True, eq=False)
class AppNote:
    """An application as the records need it."""

    id: str
    partition: str
    queue: str
    user: str
    group: str = ""
    """The group it was linked with; empty: none (yet)."""
    asks: dict[str, AskNote] = field(default_factory=dict)
    held: Obstacle | None = None
    """What was said to keep it from running."""


class HistoryWriter:
    """Takes events with their decisions, in order, and gives records."""

    def __init__(self, scheduler: Scheduler) -> None:
        """`scheduler`: the books as they are before the first entry that is told."""
        self.apps: dict[tuple[str, str], AppNote] = {}
        """By partition and id: two partitions may have applications of the same name."""
        self.around = ClusterHistory()
        self._fresh: list[tuple[AppNote, AskNote]] = []
        self._out: list[Record] = []
        self._at_ms = 0
        self._event: Any = None
        self._books = scheduler
        for partition in scheduler.cluster.partitions.values():
            self._begin_with(partition)

    def _begin_with(self, partition: Partition) -> None:
        self.around.begin_with(partition)
        for app in partition.applications.values():
            note = self.apps[partition.name, app.id] = AppNote(app.id, partition.name, app.queue.path, app.user)
            note.group = app.allowance.group if app.allowance is not None and app.tracked else ""
            note.asks = {a.key: AskNote(a.key, a.items, a.node.id if a.node else "") for a in app.asks.values()}

    def write(self, at_ms: int, event: e.Event | None, decisions: Sequence[Decision], books: Scheduler) -> list[Record]:
        """The records of one entry. `event` is None for a run of scheduling; `books` are those after the turn."""
        out = self._out = []
        self._at_ms, self._event, self._books = at_ms, event, books
        before = _EVENTS.get(type(event))
        asked = before(self, event, decisions) if before is not None else None
        for decision in decisions:
            told = _DECISIONS.get(type(decision))
            if told is not None:
                told(self, decision)
        for app, ask in asked or ():
            self._app(app, Change.ADD, Detail.APP_REQUEST, ask)
        out += self.around.of_event(at_ms, event, decisions)
        if isinstance(event, e.Configure):
            self.apps = {key: app for key, app in self.apps.items() if app.partition in self.around.specs}
        return out

    def look_at_new(self, at_ms: int, books: Scheduler) -> list[Record]:
        """What holds back the asks that came since the last call and wait still. Call it between two turns."""
        fresh, self._fresh = self._fresh, []
        out = self._out = []
        self._at_ms = at_ms
        for app, ask in fresh:
            if ask.node or app.asks.get(ask.key) is not ask:
                continue
            partition = books.cluster.partitions.get(app.partition)
            live = partition.applications.get(app.id) if partition is not None else None
            waiting = live.asks.get(ask.key) if live is not None else None
            found = obstacle_of(waiting) if waiting is not None and waiting.pending else None
            if found is None:
                continue
            if not found.stops_application:
                ask.held = found
                self._request(app, ask, found.text)
            elif app.held is None:
                app.held = found
                self._app(app, Change.NONE, found.begins)
        return out

    # -- events: what they say before the decisions do ------------------------------------------------------------

    def _submitted(self, event: e.AddApplication, _: Sequence[Decision]) -> None:
        spec = event.application
        if (spec.partition, spec.id) not in self.apps:
            note = self.apps[spec.partition, spec.id] = AppNote(spec.id, spec.partition, "", spec.user)
            self._app(note, Change.ADD, Detail.APP_NEW)

    def _asked(self, event: e.AddAsks, decisions: Sequence[Decision]) -> list[tuple[AppNote, AskNote]]:
        """New asks that wait; those that bring their node are told as allocations, known ones may have a new size."""
        refused = {(x.application, x.key) for x in decisions if isinstance(x, d.AskRejected)}
        new: list[tuple[AppNote, AskNote]] = []
        for spec in event.asks:
            app = self.apps.get((event.partition, spec.application))
            if app is None or TAG_FOREIGN in spec.tags or (spec.application, spec.key) in refused:
                continue
            known = app.asks.get(spec.key)
            if known is not None:
                self._resize(app, known, spec.resources.items)
            elif not spec.placeholder or spec.task_group:
                note = app.asks[spec.key] = AskNote(spec.key, spec.resources.items)
                if not spec.node:
                    new.append((app, note))
        self._fresh += new
        return new

    def _resize(self, app: AppNote, ask: AskNote, items: Items) -> None:
        old, ask.items = ask.items, items
        if ask.node and old != items:
            self._usage(Change.REMOVE, app, old)
            self._usage(Change.ADD, app, items)

    def _release(self, event: e.Release, _: Sequence[Decision]) -> None:
        app = self.apps.get((event.partition, event.application))
        if app is None:
            return
        ended = [app.asks[event.key]] if event.key in app.asks else [] if event.key else list(app.asks.values())
        for ask in ended:
            if not ask.node:
                self._drop(app, ask, event.cause)
            elif event.cause in SILENT:
                self._end(app, ask, ENDS[event.cause])

    # -- decisions about asks -------------------------------------------------------------------------------------

    def _known(self, x: Any) -> tuple[AppNote, AskNote] | None:
        app = self.apps.get((x.partition, x.application))
        ask = app.asks.get(x.key) if app is not None else None
        return (app, ask) if app is not None and ask is not None else None

    def _allocated(self, x: d.Allocated) -> None:
        known = self._known(x)
        if known is None:
            return
        app, ask = known
        if app.held is not None:
            self._app(app, Change.NONE, app.held.ends)
            app.held = None
        if ask.held is not None:
            self._request(app, ask, ask.held.over(ask.key))
            ask.held = None
        ask.node = x.node
        self._app(app, Change.ADD, Detail.APP_ALLOC, ask)
        self._node(Change.ADD, Detail.NODE_ALLOC, app.id, ask.key, x.node, ask.items)
        if not app.group:
            self._link(app)
        self._usage(Change.ADD, app, ask.items)

    def _link(self, app: AppNote) -> None:
        """With its first allocation an application begins to count for its group, if limits name one."""
        partition = self._books.cluster.partitions.get(app.partition)
        live = partition.applications.get(app.id) if partition is not None else None
        if live is not None and live.allowance is not None and live.allowance.group:
            app.group = live.allowance.group
            self._user_group(Change.SET, Detail.UG_APP_LINK, app.group, app.id, app)

    def _retried(self, x: d.Retried) -> None:
        """A further attempt is an ask that nobody reported: it is known from now on."""
        app = self.apps.get((x.partition, x.application))
        partition = self._books.cluster.partitions.get(app.partition) if app is not None else None
        live = partition.applications.get(x.application) if partition is not None else None
        if app is None or partition is None or live is None:
            return
        coming, ask = partition.held_asks.get(x.application, x.new_key), live.asks.get(x.new_key)
        if coming is not None or ask is not None:
            items = coming.spec.resources.items if coming is not None else ask.items if ask is not None else ()
            note = app.asks[x.new_key] = AskNote(x.new_key, items)
            self._app(app, Change.ADD, Detail.APP_REQUEST, note)

    def _released(self, x: d.Released) -> None:
        known = self._known(x)
        if known is None:
            return
        app, ask = known
        if not ask.node:
            self._drop(app, ask, x.cause)
            return
        event = self._event
        lost = isinstance(event, e.RemoveNode) and event.id == x.node and x.cause is Cause.STOPPED_BY_RM
        self._end(app, ask, Detail.ALLOC_NODEREMOVED if lost else ENDS[x.cause])

    def _evict(self, x: d.Evict) -> None:
        known = self._known(x)
        if known is None:
            return
        app, ask = known
        if x.rule == "quota":
            self._request(app, ask, f"Preempted by Quota change enforcement process in {app.queue}")
        elif x.cause is Cause.PREEMPTED_BY_SCHEDULER:
            other, _, key = x.on_behalf_of.rpartition("/")
            by = self.apps.get((x.partition, other or key))
            queue = by.queue if by is not None else ""
            self._request(app, ask, f"Preempted by {key} from application {other or key} in {queue}")
        elif x.cause is Cause.TIMEOUT and x.on_behalf_of in app.asks:
            wanted = app.asks[x.on_behalf_of]
            text = (
                f"Request '{wanted.key}' in application '{app.id}': resources {amounts(wanted.items)} are not matching "
                f"placeholder {amounts(ask.items)} allocation with ID '{ask.key}'"
            )
            self._request(app, wanted, text)

    def _reserved(self, x: d.Reserved | d.Unreserved) -> None:
        known = self._known(x)
        change = Change.ADD if isinstance(x, d.Reserved) else Change.REMOVE
        items = known[1].items if known is not None else ()
        self._node(change, Detail.NODE_RESERVATION, x.application, x.key, x.node, items)

    # -- decisions about applications and queues ------------------------------------------------------------------

    def _accepted(self, x: d.ApplicationAccepted) -> None:
        app = self.apps.get((x.partition, x.id))
        if app is not None:
            app.queue = x.queue
            self._queue_app(Change.ADD, app)

    def _rejected(self, x: d.ApplicationRejected) -> None:
        text = x.reason.sentence()
        self._out.append(Record(self._at_ms, Type.APP, Change.SET, Detail.APP_REJECT, x.id, "", text, owner=x.id))
        note = self.apps.get((x.partition, x.id))
        if note is not None and not note.queue:
            del self.apps[x.partition, x.id]

    def _changed(self, x: d.ApplicationChanged) -> None:
        app = self.apps.get((x.partition, x.id))
        leaves = app is not None and x.state in GONE
        if app is not None and leaves:
            for ask in [a for a in app.asks.values() if not a.node]:
                self._drop(app, ask, Cause.STOPPED_BY_RM)
        detail = STATES.get(x.state)
        if detail is not None:
            info = "" if x.cause.endswith("Application") else x.cause
            self._out.append(Record(self._at_ms, Type.APP, Change.SET, detail, x.id, "", info, owner=x.id))
        if app is not None and leaves:
            if app.group:
                self._user_group(Change.REMOVE, Detail.UG_APP_LINK, app.group, app.id, app)
            self._queue_app(Change.REMOVE, app)
            self._app(app, Change.REMOVE, Detail.NONE)
            del self.apps[x.partition, app.id]

    def _moved(self, x: d.ApplicationMoved) -> None:
        app = self.apps.get((x.partition, x.id))
        if app is None:
            return
        total: Book = {}
        for ask in app.asks.values():
            if ask.node:
                add_to(total, ask.items)
        has = Resources(total).items
        if has:
            self._usage(Change.REMOVE, app, has)
        self._queue_app(Change.REMOVE, app)
        app.queue = x.new
        self._queue_app(Change.ADD, app)
        if has:
            self._usage(Change.ADD, app, has)

    def _queue(self, x: d.QueueChanged) -> None:
        self._out += self.around.queue(self._at_ms, x, isinstance(self._event, e.Configure))

    def _quota(self, x: d.QuotaEnforced) -> None:
        self._out.append(self.around.quota(self._at_ms, x))

    # -- what ends ------------------------------------------------------------------------------------------------

    def _end(self, app: AppNote, ask: AskNote, detail: Detail) -> None:
        """An allocation is gone."""
        del app.asks[ask.key]
        self._app(app, Change.REMOVE, detail, ask)
        self._node(Change.REMOVE, Detail.NODE_ALLOC, app.id, ask.key, ask.node, ask.items)
        self._usage(Change.REMOVE, app, ask.items)

    def _drop(self, app: AppNote, ask: AskNote, cause: Cause) -> None:
        """A waiting ask is gone."""
        del app.asks[ask.key]
        detail = Detail.REQUEST_TIMEOUT if cause is Cause.TIMEOUT else Detail.REQUEST_CANCEL
        self._app(app, Change.REMOVE, detail, ask)

    # -- records --------------------------------------------------------------------------------------------------

    def _app(self, app: AppNote, change: int, detail: int, ask: AskNote | None = None) -> None:
        key, items = (ask.key, ask.items) if ask is not None else ("", ())
        self._out.append(Record(self._at_ms, Type.APP, change, detail, app.id, key, "", items, app.id))

    def _request(self, app: AppNote, ask: AskNote, text: str) -> None:
        record = Record(self._at_ms, Type.REQUEST, Change.NONE, Detail.NONE, ask.key, app.id, text, ask.items, app.id)
        self._out.append(record)

    def _node(self, change: int, detail: int, app: str, key: str, node: str, items: Items) -> None:
        self._out.append(Record(self._at_ms, Type.NODE, change, detail, node, key, "", items, app))

    def _queue_app(self, change: int, app: AppNote) -> None:
        record = Record(self._at_ms, Type.QUEUE, change, Detail.QUEUE_APP, app.queue, app.id, owner=app.id)
        self._out.append(record)

    def _usage(self, change: int, app: AppNote, items: Items) -> None:
        self._user_group(change, Detail.UG_USER_RESOURCE, app.user, app.queue, app, items)
        if app.group:
            self._user_group(change, Detail.UG_GROUP_RESOURCE, app.group, app.queue, app, items)

    def _user_group(self, change: int, detail: int, name: str, reference: str, app: AppNote, items: Items = ()) -> None:
        self._out.append(Record(self._at_ms, Type.USERGROUP, change, detail, name, reference, "", items, app.id))


_EVENTS: dict[type, Callable[[HistoryWriter, Any, Sequence[Any]], list[tuple[AppNote, AskNote]] | None]] = {
    e.AddApplication: HistoryWriter._submitted,
    e.AddAsks: HistoryWriter._asked,
    e.Release: HistoryWriter._release,
}
_DECISIONS: dict[type, Callable[[HistoryWriter, Any], None]] = {
    d.Allocated: HistoryWriter._allocated,
    d.Released: HistoryWriter._released,
    d.Retried: HistoryWriter._retried,
    d.Evict: HistoryWriter._evict,
    d.Reserved: HistoryWriter._reserved,
    d.Unreserved: HistoryWriter._reserved,
    d.ApplicationAccepted: HistoryWriter._accepted,
    d.ApplicationRejected: HistoryWriter._rejected,
    d.ApplicationChanged: HistoryWriter._changed,
    d.ApplicationMoved: HistoryWriter._moved,
    d.QueueChanged: HistoryWriter._queue,
    d.QuotaEnforced: HistoryWriter._quota,
}
