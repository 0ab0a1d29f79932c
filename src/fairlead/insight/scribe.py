"""The scribe: turns what happens into event records (`insight.records`), and keeps the few notes that this needs.

Decides the order of the records of one entry. Never changes the books; it looks at them only when it begins (what is
there already), for the group that an application counts for, and for what holds new work back. Invariant: its notes name
every live application with its asks, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core import decisions as d
from fairlead.core import events as e
from fairlead.core.events import Cause
from fairlead.core.resources import Book, Items, Resources
from fairlead.core.specs import TAG_FOREIGN, AskSpec
from fairlead.insight.held import Obstacle, obstacle_of
from fairlead.insight.queue_records import queue_records
from fairlead.insight.records import Change, Detail, Record, Type, amounts

if TYPE_CHECKING:
    from fairlead.core.applications import Application
    from fairlead.core.decisions import Decision
    from fairlead.core.partition import Partition
    from fairlead.core.specs import PartitionSpec
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
    Cause.PREEMPTED_BY_SCHEDULER: Detail.ALLOC_PREEMPT,
    Cause.TIMEOUT: Detail.ALLOC_TIMEOUT,
    Cause.PLACEHOLDER_REPLACED: Detail.ALLOC_REPLACED,
}
SILENT = frozenset({Cause.PREEMPTED_BY_SCHEDULER, Cause.TIMEOUT, Cause.PLACEHOLDER_REPLACED})
"""Causes whose releases the scheduler does not echo: they confirm its own orders."""


class AskNote:
    """An ask as the records need it. `node` is empty while it waits."""

    __slots__ = ("held", "items", "key", "node")

    def __init__(self, key: str, items: Items, node: str = "") -> None:
        self.key, self.items, self.node = key, items, node
        self.held: Obstacle | None = None
        """What was said to hold it back."""


class AppNote:
    """An application as the records need it."""

    __slots__ = ("asks", "group", "held", "id", "partition", "queue", "user")

    def __init__(self, id_: str, partition: str, queue: str, user: str) -> None:
        self.id, self.partition, self.queue, self.user = id_, partition, queue, user
        self.group = ""
        """The group it was linked with; empty: none (yet)."""
        self.asks: dict[str, AskNote] = {}
        self.held: Obstacle | None = None


class Scribe:
    """Takes events with their decisions, in order, and gives records."""

    def __init__(self, scheduler: Scheduler | None = None) -> None:
        """`scheduler`: the books as they are before the first entry that is told; None: they are empty."""
        self.apps: dict[str, AppNote] = {}
        self.capacities: dict[tuple[str, str], Items] = {}
        self.specs: dict[str, PartitionSpec] = {}
        self.dynamic: set[tuple[str, str]] = set()
        self._fresh: list[tuple[AppNote, AskNote]] = []
        if scheduler is not None:
            for partition in scheduler.cluster.partitions.values():
                self._begin_with(partition)

    def _begin_with(self, partition: Partition) -> None:
        self.specs[partition.name] = partition.spec
        self.dynamic |= {(partition.name, q.path) for q in partition.root.walk() if not q.managed}
        for node in partition.nodes.nodes.values():
            self.capacities[partition.name, node.id] = tuple(node.total.items())
        for app in partition.applications.values():
            note = self.apps[app.id] = AppNote(app.id, partition.name, app.queue.path, app.user)
            note.group = app.allowance.group if app.allowance is not None and app.tracked else ""
            note.asks = {a.key: AskNote(a.key, a.items, a.node.id if a.node else "") for a in app.asks.values()}

    # -- one entry ------------------------------------------------------------------------------------------------

    def write(self, at_ms: int, event: e.Event | None, decisions: Sequence[Decision], books: Scheduler) -> list[Record]:
        """The records of one entry. `event` is None for a run of scheduling."""
        out: list[Record] = []
        before = _BEFORE.get(type(event))
        asked = before(self, at_ms, event, decisions, out) if before is not None else None
        for decision in decisions:
            told = _DECISIONS.get(type(decision))
            if told is not None:
                told(self, at_ms, decision, out, event, books)
        for app, ask in asked or ():
            out.append(_app(at_ms, Change.ADD, Detail.APP_REQUEST, app.id, ask.key, ask.items))
        after = _AFTER.get(type(event))
        if after is not None:
            after(self, at_ms, event, decisions, out)
        return out

    def look_at_new(self, at_ms: int, books: Scheduler) -> list[Record]:
        """What holds back the asks that arrived since the last call and wait still. Call it between two turns."""
        fresh, self._fresh = self._fresh, []
        out: list[Record] = []
        for app, ask in fresh:
            if ask.node or app.asks.get(ask.key) is not ask:
                continue
            partition = books.cluster.partitions.get(app.partition)
            live = partition.applications.get(app.id) if partition is not None else None
            waiting = live.asks.get(ask.key) if live is not None else None
            found = obstacle_of(waiting) if waiting is not None and waiting.pending else None
            if found is None:
                continue
            if found.stops_application:
                if app.held is None:
                    app.held = found
                    out.append(Record(at_ms, Type.APP, Change.NONE, found.begins, app.id, owner=app.id))
            else:
                ask.held = found
                out.append(_request(at_ms, app, ask, found.text))
        return out

    # -- before the decisions -------------------------------------------------------------------------------------

    def _application(
        self, at_ms: int, event: e.AddApplication, decisions: Sequence[Decision], out: list[Record]
    ) -> None:
        spec = event.application
        if spec.id in self.apps:
            return
        self.apps[spec.id] = AppNote(spec.id, spec.partition, "", spec.user)
        out.append(_app(at_ms, Change.ADD, Detail.APP_NEW, spec.id))

    def _asks(
        self, at_ms: int, event: e.AddAsks, decisions: Sequence[Decision], out: list[Record]
    ) -> list[tuple[AppNote, AskNote]]:
        refused = {(x.application, x.key) for x in decisions if isinstance(x, d.AskRejected)}
        new: list[tuple[AppNote, AskNote]] = []
        for spec in event.asks:
            app = self.apps.get(spec.application)
            if app is None or TAG_FOREIGN in spec.tags or (spec.application, spec.key) in refused:
                continue
            known = app.asks.get(spec.key)
            if known is not None:
                self._resized(at_ms, app, known, spec, out)
            elif not spec.placeholder or spec.task_group:
                note = app.asks[spec.key] = AskNote(spec.key, spec.resources.items)
                if not spec.node:
                    new.append((app, note))
        self._fresh += new
        return new

    def _resized(self, at_ms: int, app: AppNote, ask: AskNote, spec: AskSpec, out: list[Record]) -> None:
        if ask.node and ask.items != spec.resources.items:
            self._usage(at_ms, Change.REMOVE, app, ask.items, out)
            self._usage(at_ms, Change.ADD, app, spec.resources.items, out)
        ask.items = spec.resources.items

    def _release(self, at_ms: int, event: e.Release, decisions: Sequence[Decision], out: list[Record]) -> None:
        app = self.apps.get(event.application)
        if app is None:
            return
        ended = [app.asks[event.key]] if event.key in app.asks else [] if event.key else list(app.asks.values())
        cancelled = Detail.REQUEST_TIMEOUT if event.cause is Cause.TIMEOUT else Detail.REQUEST_CANCEL
        for ask in ended:
            if not ask.node:
                self._drop(at_ms, app, ask, cancelled, out)
            elif event.cause in SILENT:
                self._end(at_ms, app, ask, ENDS[event.cause], out)

    # -- decisions ------------------------------------------------------------------------------------------------

    def _allocated(self, at_ms: int, x: d.Allocated, out: list[Record], event: Any, books: Scheduler) -> None:
        app = self.apps.get(x.application)
        ask = app.asks.get(x.key) if app is not None else None
        if app is None or ask is None:
            return
        if app.held is not None:
            out.append(Record(at_ms, Type.APP, Change.NONE, app.held.ends, app.id, owner=app.id))
            app.held = None
        if ask.held is not None:
            out.append(_request(at_ms, app, ask, ask.held.over(ask.key)))
            ask.held = None
        ask.node = x.node
        out.append(_app(at_ms, Change.ADD, Detail.APP_ALLOC, app.id, ask.key, ask.items))
        out.append(Record(at_ms, Type.NODE, Change.ADD, Detail.NODE_ALLOC, x.node, ask.key, "", ask.items, app.id))
        if not app.group:
            self._link(at_ms, app, out, books)
        self._usage(at_ms, Change.ADD, app, ask.items, out)

    def _link(self, at_ms: int, app: AppNote, out: list[Record], books: Scheduler) -> None:
        partition = books.cluster.partitions.get(app.partition)
        live: Application | None = partition.applications.get(app.id) if partition is not None else None
        if live is None or live.allowance is None or not live.allowance.group:
            return
        app.group = live.allowance.group
        out.append(Record(at_ms, Type.USERGROUP, Change.SET, Detail.UG_APP_LINK, app.group, app.id, owner=app.id))

    def _usage(self, at_ms: int, change: Change, app: AppNote, items: Items, out: list[Record]) -> None:
        out.append(
            Record(at_ms, Type.USERGROUP, change, Detail.UG_USER_RESOURCE, app.user, app.queue, "", items, app.id)
        )
        if app.group:
            out.append(
                Record(at_ms, Type.USERGROUP, change, Detail.UG_GROUP_RESOURCE, app.group, app.queue, "", items, app.id)
            )

    def _end(self, at_ms: int, app: AppNote, ask: AskNote, detail: Detail, out: list[Record]) -> None:
        """An allocation is gone."""
        del app.asks[ask.key]
        out.append(_app(at_ms, Change.REMOVE, detail, app.id, ask.key, ask.items))
        out.append(Record(at_ms, Type.NODE, Change.REMOVE, Detail.NODE_ALLOC, ask.node, ask.key, "", ask.items, app.id))
        self._usage(at_ms, Change.REMOVE, app, ask.items, out)

    def _drop(self, at_ms: int, app: AppNote, ask: AskNote, detail: Detail, out: list[Record]) -> None:
        """A waiting ask is gone."""
        del app.asks[ask.key]
        out.append(_app(at_ms, Change.REMOVE, detail, app.id, ask.key, ask.items))

    def _released(self, at_ms: int, x: d.Released, out: list[Record], event: Any, books: Scheduler) -> None:
        app = self.apps.get(x.application)
        ask = app.asks.get(x.key) if app is not None else None
        if app is None or ask is None:
            return
        if not ask.node:
            timed_out = x.cause is Cause.TIMEOUT
            self._drop(at_ms, app, ask, Detail.REQUEST_TIMEOUT if timed_out else Detail.REQUEST_CANCEL, out)
            return
        lost = isinstance(event, e.RemoveNode) and event.id == x.node and x.cause is Cause.STOPPED_BY_RM
        self._end(at_ms, app, ask, Detail.ALLOC_NODEREMOVED if lost else ENDS[x.cause], out)

    def _evict(self, at_ms: int, x: d.Evict, out: list[Record], event: Any, books: Scheduler) -> None:
        app = self.apps.get(x.application)
        ask = app.asks.get(x.key) if app is not None else None
        if app is None or ask is None:
            return
        if x.rule == "quota":
            out.append(_request(at_ms, app, ask, f"Preempted by Quota change enforcement process in {app.queue}"))
        elif x.cause is Cause.PREEMPTED_BY_SCHEDULER:
            other, _, key = x.on_behalf_of.rpartition("/")
            by = self.apps.get(other or key)
            text = f"Preempted by {key} from application {other or key} in {by.queue if by is not None else ''}"
            out.append(_request(at_ms, app, ask, text))
        elif x.on_behalf_of and x.cause is Cause.TIMEOUT and x.rule == "placeholder":
            wanted = app.asks.get(x.on_behalf_of)
            if wanted is not None:
                text = (
                    f"Request '{wanted.key}' in application '{app.id}': resources {amounts(wanted.items)} do not match "
                    f"the placeholder's {amounts(ask.items)}, allocation '{ask.key}'"
                )
                out.append(_request(at_ms, app, wanted, text))

    def _reserved(self, at_ms: int, x: d.Reserved | d.Unreserved, out: list[Record], event: Any, books: Any) -> None:
        app = self.apps.get(x.application)
        ask = app.asks.get(x.key) if app is not None else None
        change = Change.ADD if isinstance(x, d.Reserved) else Change.REMOVE
        items = ask.items if ask is not None else ()
        out.append(Record(at_ms, Type.NODE, change, Detail.NODE_RESERVATION, x.node, x.key, "", items, x.application))

    def _accepted(self, at_ms: int, x: d.ApplicationAccepted, out: list[Record], event: Any, books: Scheduler) -> None:
        app = self.apps.get(x.id)
        if app is not None:
            app.queue = x.queue
            out.append(_queue_app(at_ms, Change.ADD, app))

    def _rejected(self, at_ms: int, x: d.ApplicationRejected, out: list[Record], event: Any, books: Scheduler) -> None:
        out.append(Record(at_ms, Type.APP, Change.SET, Detail.APP_REJECT, x.id, "", x.reason.sentence(), owner=x.id))
        note = self.apps.get(x.id)
        if note is not None and not note.queue:
            del self.apps[x.id]

    def _changed(self, at_ms: int, x: d.ApplicationChanged, out: list[Record], event: Any, books: Scheduler) -> None:
        app = self.apps.get(x.id)
        if app is not None and x.state in GONE:
            for ask in list(app.asks.values()):
                if not ask.node:
                    self._drop(at_ms, app, ask, Detail.REQUEST_CANCEL, out)
        detail = STATES.get(x.state)
        if detail is not None:
            info = "" if x.cause.endswith("Application") else x.cause
            out.append(Record(at_ms, Type.APP, Change.SET, detail, x.id, "", info, owner=x.id))
        if app is not None and x.state in GONE:
            if app.group:
                out.append(
                    Record(at_ms, Type.USERGROUP, Change.REMOVE, Detail.UG_APP_LINK, app.group, app.id, owner=app.id)
                )
            out.append(_queue_app(at_ms, Change.REMOVE, app))
            out.append(_app(at_ms, Change.REMOVE, Detail.NONE, app.id))
            del self.apps[app.id]

    def _moved(self, at_ms: int, x: d.ApplicationMoved, out: list[Record], event: Any, books: Scheduler) -> None:
        app = self.apps.get(x.id)
        if app is None:
            return
        has = Resources(_total(ask.items for ask in app.asks.values() if ask.node)).items
        if has:
            self._usage(at_ms, Change.REMOVE, app, has, out)
        out.append(_queue_app(at_ms, Change.REMOVE, app))
        app.queue = x.new
        out.append(_queue_app(at_ms, Change.ADD, app))
        if has:
            self._usage(at_ms, Change.ADD, app, has, out)

    def _queue(self, at_ms: int, x: d.QueueChanged, out: list[Record], event: Any, books: Scheduler) -> None:
        key = (x.partition, x.queue)
        if x.change == "added" and not isinstance(event, e.Configure):
            self.dynamic.add(key)
        change = {"added": Change.ADD, "removed": Change.REMOVE}.get(x.change)
        if change is not None:
            detail = Detail.QUEUE_DYNAMIC if key in self.dynamic else Detail.NONE
            out.append(Record(at_ms, Type.QUEUE, change, detail, x.queue))
        if x.change == "removed":
            self.dynamic.discard(key)

    def _quota(self, at_ms: int, x: d.QuotaEnforced, out: list[Record], event: Any, books: Scheduler) -> None:
        partition = books.cluster.partitions.get(x.partition)
        queue = partition.root.find(x.queue) if partition is not None else None
        most = tuple(sorted((queue.max or {}).items())) if queue is not None else ()
        text = f"Quota preemption: {amounts(x.excess.items)} to give back, {x.victims} allocations told to stop"
        out.append(Record(at_ms, Type.QUEUE, Change.SET, Detail.QUEUE_PREEMPTION, x.queue, "", text, most))

    # -- nodes and configuration ----------------------------------------------------------------------------------

    def _node_in(self, at_ms: int, event: e.AddNode, decisions: Sequence[Decision], out: list[Record]) -> None:
        if not any(isinstance(x, d.NodeAccepted) for x in decisions):
            return
        node = event.node
        self._set_schedulable(at_ms, node.id, node.schedulable, out)
        out.append(
            Record(
                at_ms,
                Type.NODE,
                Change.ADD,
                Detail.NONE,
                node.id,
                "",
                "Node added to the scheduler",
                node.capacity.items,
            )
        )
        self._set_capacity(at_ms, node.partition, node.id, node.capacity.items, out)

    def _node_changed(self, at_ms: int, event: e.UpdateNode, decisions: Sequence[Decision], out: list[Record]) -> None:
        if any(isinstance(x, d.NodeRejected) for x in decisions):
            return
        items = event.capacity.items
        out.append(Record(at_ms, Type.NODE, Change.SET, Detail.NODE_CAPACITY, event.id, amount=items))
        self._set_capacity(at_ms, event.partition, event.id, items, out)

    def _node_open(
        self, at_ms: int, event: e.DrainNode | e.UndrainNode, decisions: Sequence[Decision], out: list[Record]
    ) -> None:
        if not any(isinstance(x, d.NodeRejected) for x in decisions):
            self._set_schedulable(at_ms, event.id, isinstance(event, e.UndrainNode), out)

    def _node_out(self, at_ms: int, event: e.RemoveNode, decisions: Sequence[Decision], out: list[Record]) -> None:
        if any(isinstance(x, d.NodeRejected) for x in decisions):
            return
        items = self.capacities.get((event.partition, event.id), ())
        text = "Node removed from the scheduler"
        out.append(Record(at_ms, Type.NODE, Change.REMOVE, Detail.NODE_DECOMMISSION, event.id, "", text, items))
        self._set_capacity(at_ms, event.partition, event.id, None, out)

    def _set_schedulable(self, at_ms: int, node: str, is_open: bool, out: list[Record]) -> None:
        text = f"schedulable: {'true' if is_open else 'false'}"
        out.append(Record(at_ms, Type.NODE, Change.SET, Detail.NODE_SCHEDULABLE, node, "", text))

    def _set_capacity(self, at_ms: int, partition: str, node: str, items: Items | None, out: list[Record]) -> None:
        """A node has this much now (None: it is gone); the root's maximum follows."""
        if items is None:
            self.capacities.pop((partition, node), None)
        else:
            self.capacities[partition, node] = items
        total = _total(items for (of, _), items in self.capacities.items() if of == partition)
        amount = Resources(total).items
        out.append(Record(at_ms, Type.QUEUE, Change.SET, Detail.QUEUE_MAX, "root", amount=amount))

    def _configured(self, at_ms: int, event: e.Configure, decisions: Sequence[Decision], out: list[Record]) -> None:
        if not any(isinstance(x, d.Configured) for x in decisions):
            return
        for spec in event.spec.partitions:
            out += queue_records(at_ms, self.specs.get(spec.name), spec)
        self.specs = {spec.name: spec for spec in event.spec.partitions}
        self.apps = {key: app for key, app in self.apps.items() if app.partition in self.specs}
        kept = {partition for partition, _ in self.capacities} & set(self.specs)
        self.capacities = {key: items for key, items in self.capacities.items() if key[0] in kept}


# -- pieces -------------------------------------------------------------------------------------------------------


def _app(at_ms: int, change: Change, detail: Detail, app: str, key: str = "", items: Items = ()) -> Record:
    return Record(at_ms, Type.APP, change, detail, app, key, "", items, app)


def _request(at_ms: int, app: AppNote, ask: AskNote, text: str) -> Record:
    return Record(at_ms, Type.REQUEST, Change.NONE, Detail.NONE, ask.key, app.id, text, ask.items, app.id)


def _queue_app(at_ms: int, change: Change, app: AppNote) -> Record:
    return Record(at_ms, Type.QUEUE, change, Detail.QUEUE_APP, app.queue, app.id, owner=app.id)


def _total(many: Any) -> Book:
    total: Book = {}
    for items in many:
        for name, amount in items:
            total[name] = total.get(name, 0) + amount
    return total


Before = Callable[[Scribe, int, Any, Sequence["Decision"], list[Record]], Any]
_BEFORE: dict[type, Before] = {
    e.AddApplication: Scribe._application,
    e.AddAsks: Scribe._asks,
    e.Release: Scribe._release,
}
_AFTER: dict[type, Before] = {
    e.AddNode: Scribe._node_in,
    e.UpdateNode: Scribe._node_changed,
    e.DrainNode: Scribe._node_open,
    e.UndrainNode: Scribe._node_open,
    e.RemoveNode: Scribe._node_out,
    e.Configure: Scribe._configured,
}
_DECISIONS: dict[type, Callable[..., None]] = {
    d.Allocated: Scribe._allocated,
    d.Released: Scribe._released,
    d.Evict: Scribe._evict,
    d.Reserved: Scribe._reserved,
    d.Unreserved: Scribe._reserved,
    d.ApplicationAccepted: Scribe._accepted,
    d.ApplicationRejected: Scribe._rejected,
    d.ApplicationChanged: Scribe._changed,
    d.ApplicationMoved: Scribe._moved,
    d.QueueChanged: Scribe._queue,
    d.QuotaEnforced: Scribe._quota,
}
