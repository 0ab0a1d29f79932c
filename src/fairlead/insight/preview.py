"""Preview: what a new queue file would change, before it is applied.

Decides nothing: it applies the file to a copy of the state, by the same code that would apply it in earnest, and
compares. The scheduler that it is given stays as it is. Invariant: a file that the preview says is refused is refused,
and the queues that it names are those that change.

What would start or wait is seen by one scheduling run on a copy with the old file and one with the new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

from fairlead.core.books.admission import BUDGET, CLASS, QUOTA
from fairlead.core.books.cluster import Cluster
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.decisions import (
    Allocated,
    ConfigurationRejected,
    Decision,
    DeclarationChanged,
    Evict,
    QueueChanged,
)
from fairlead.core.model.events import Configure
from fairlead.core.model.plain import TAG, to_plain
from fairlead.core.model.reasons import Reason
from fairlead.core.model.specs import ClusterSpec
from fairlead.scheduler import Scheduler

RUN_AT_MOST = 10_000
"""Allocations that the two runs make at most."""
COMPARED_AT_MOST = 2_000
"""Waiting asks whose reasons are compared, a partition."""
NAMED_AT_MOST = 50


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that the file says otherwise; plain values, None where nothing is set."""

    what: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class QueueDiff:
    """One queue that changes: it is `added`, `changed`, `restarted`, `draining` (it has work) or `removed` (it has
    none).
    """

    partition: str
    queue: str
    kind: str
    changes: tuple[Change, ...] = ()
    applications: int = 0
    """How many it has now, with all below it."""


@dataclass(frozen=True, slots=True)
class DeclaredDiff:
    """One priority class, quota or budget (`what`) that is `added`, `changed` or `removed`."""

    what: str
    name: str
    kind: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A queue, user or group that would use more than the new file lets it (that alone takes nothing back)."""

    partition: str
    queue: str
    what: str
    """`max` or `maxapplications`."""
    used: dict[str, int]
    limit: dict[str, int]
    who: str = ""
    """`user NAME` or `group NAME` whose limit in that queue it is; empty: the queue's own."""
    applications: tuple[tuple[str, str], ...] = ()
    """What uses it: application and user, at most `NAMED_AT_MOST`."""
    count: int = 0
    """How many applications use it."""


@dataclass(frozen=True, slots=True)
class AskDiff:
    """One ask whose fate changes. `reason`: why it would wait."""

    partition: str
    application: str
    key: str
    reason: Reason | None = None
    user: str = ""
    instead_of: Reason | None = None
    """Why it waits with the old file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDiff:
    """Everything a new queue file would change. `refused` set: nothing, it would be refused for this reason."""

    refused: Reason | None = None
    partitions_added: tuple[str, ...] = ()
    partitions_removed: tuple[str, ...] = ()
    declared: tuple[DeclaredDiff, ...] = ()
    """Priority classes, quotas by class and disruption budgets that differ."""
    settings: dict[str, tuple[Change, ...]] = field(default_factory=dict)
    """By partition: placement rules, order of nodes, preemption and other settings that differ."""
    queues: tuple[QueueDiff, ...] = ()
    over: tuple[OverLimit, ...] = ()
    """Queues that are within their limits now and would not be."""
    would_wait: tuple[AskDiff, ...] = ()
    """Asks that would start now and would not with the new file."""
    would_wait_for_else: tuple[AskDiff, ...] = ()
    """Asks that would wait with both files, for different reasons (of the first `COMPARED_AT_MOST` that wait)."""
    would_start: tuple[AskDiff, ...] = ()
    """Asks that would wait now and start with the new file."""
    would_be_evicted: tuple[AskDiff, ...] = ()
    """Allocations that only the new file would take back at once."""
    would_fail: tuple[tuple[str, str], ...] = ()
    """Partition and application, for the applications of removed partitions."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all would change."""
        return self == ConfigDiff()


def preview(scheduler: Scheduler, new: ClusterSpec) -> ConfigDiff:
    """What `new` would change in `scheduler` now. Takes the time of two restarts from a snapshot and two runs."""
    return preview_of(scheduler.dump(), new)


def preview_of(state: dict[str, Any], new: ClusterSpec) -> ConfigDiff:
    """`preview` of a dumped state, so that it can be made away from the scheduler that runs."""
    before, after = Scheduler.load(state), Scheduler.load(state)
    now_ms = before.cluster.now_ms
    decisions = after.handle(Configure(new), now_ms)
    for decision in decisions:
        if isinstance(decision, ConfigurationRejected):
            return ConfigDiff(refused=decision.reason)
    old_parts, new_parts = before.cluster.partitions, after.cluster.partitions
    both = [name for name in old_parts if name in new_parts]
    declared = tuple(_declared(before.cluster, decisions, after.cluster))
    queues = [diff for name in both for diff in _queue_diffs(old_parts[name], new_parts[name], decisions)]
    over = [found for name in both for found in _newly_over(old_parts[name], new_parts[name])]
    settings = {name: tuple(_settings(old_parts[name], new_parts[name])) for name in both}
    waits, starts, evicted = _fates(before, after, both, now_ms)
    otherwise = [diff for name in both for diff in _other_reasons(before, after, name)]
    return ConfigDiff(
        partitions_added=tuple(name for name in new_parts if name not in old_parts),
        partitions_removed=tuple(name for name in old_parts if name not in new_parts),
        declared=declared,
        settings={name: changes for name, changes in settings.items() if changes},
        queues=tuple(queues),
        over=tuple(over),
        would_wait=waits,
        would_wait_for_else=tuple(otherwise),
        would_start=starts,
        would_be_evicted=evicted,
        would_fail=tuple((n, app) for n, part in old_parts.items() if n not in new_parts for app in part.applications),
    )


# -- what is declared for the whole cluster -----------------------------------------------------------------------


def _declared(old: Cluster, decisions: Iterable[Decision], new: Cluster) -> Iterator[DeclaredDiff]:
    was, now = _specs(old), _specs(new)
    for d in decisions:
        if isinstance(d, DeclarationChanged):
            before, after = was.get((d.kind, d.name)), now.get((d.kind, d.name))
            yield DeclaredDiff(d.kind, d.name, d.change, tuple(_spec_changes(before, after)))


def _specs(cluster: Cluster) -> dict[tuple[str, str], Any]:
    admission = cluster.admission
    found: dict[tuple[str, str], Any] = {(CLASS, spec.name): spec for spec in admission.classes}
    found |= {(QUOTA, quota.spec.name): quota.spec for quota in admission.quotas}
    return found | {(BUDGET, spec.name): spec for spec in admission.budgets}


def _spec_changes(old: Any, new: Any) -> Iterator[Change]:
    for f in fields(new if new is not None else old) if new is not None or old is not None else ():
        sides = [None if spec is None else getattr(spec, f.name) for spec in (old, new)]
        shown = [without_tags(to_plain(side)) for side in sides]
        if f.name != "name" and sides[0] != sides[1] and any(each not in (None, "", [], {}, False) for each in shown):
            yield Change(f.name, *shown)


# -- queues -------------------------------------------------------------------------------------------------------


def _queue_diffs(old: Partition, new: Partition, decisions: Iterable[Decision]) -> Iterator[QueueDiff]:
    said = {d.queue: d.change for d in decisions if isinstance(d, QueueChanged) and d.partition == new.name}
    for queue in new.root.walk():
        was = old.root.find(queue.path)
        count = sum(len(below.applications) for below in queue.walk())
        kind = said.get(queue.path, "changed")
        if kind == "draining" and not _keeps(queue):
            kind = "removed"
        changes = tuple(_changes(old, was, new, queue))
        if kind != "changed" or changes:
            yield QueueDiff(new.name, queue.path, kind, changes, count)


def _keeps(queue: Queue) -> bool:
    """Whether anything below keeps the queue from being removed at once."""
    return any(below.applications or not below.is_leaving for below in queue.walk())


def _changes(before: Partition, was: Queue | None, after: Partition, queue: Queue) -> Iterator[Change]:
    """What is set otherwise; of a new queue everything that is set."""
    old = queue_settings(before, was) if was is not None else {}
    new = queue_settings(after, queue)
    told_by_kind = {"state"} if was is not None else {"state", "leaf", "managed"}
    for what in dict.fromkeys([*new, *old]):
        if what not in told_by_kind and old.get(what) != new.get(what):
            yield Change(what, old.get(what), new.get(what))


def queue_settings(partition: Partition, queue: Queue) -> dict[str, Any]:
    """Everything that is set for one queue, as plain values in one order; what is not set is left out."""
    settings = {
        "max": queue.max if queue.parent is not None else None,
        "guaranteed": queue.guaranteed,
        "maxapplications": queue.max_applications or None,
        "submitacl": queue.submit_acl or None,
        "adminacl": queue.admin_acl or None,
        "limits": _limits_of(partition, queue.path),
        "childtemplate": without_tags(to_plain(queue.template)),
        "leaf": queue.is_leaf,
        "managed": queue.managed,
        "state": queue.state.value.lower(),
    }
    settings |= {f"properties.{key}": value for key, value in sorted(queue.properties.raw.items())}
    return {what: dict(v) if isinstance(v, Mapping) else v for what, v in settings.items() if v is not None}


def _limits_of(partition: Partition, path: str) -> dict[str, Any] | None:
    """Each user and group with a limit of his own in a queue, and what it is."""
    own = partition.trackers.limits.get(path) if partition.trackers is not None else None
    if own is None:
        return None
    named = [(f"user {name}", limit) for name, limit in own.users.items()]
    named += [(f"group {name}", limit) for name, limit in own.groups.items()]
    shown = {name: without_tags(to_plain(limit)) for name, limit in named}
    return {
        name: {what: limit[what] for what in ("max_resources", "max_applications") if what in limit}
        for name, limit in shown.items()
    }


def without_tags(plain: Any) -> Any:
    """A plain value without the names of its types, and without what is not set: as people read it."""
    if isinstance(plain, list):
        return [without_tags(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.get(TAG) in ("Resources", "Limits", "map"):
        return {name: without_tags(value) for name, value in plain["of"].items()}
    shown = {name: without_tags(value) for name, value in plain.items() if name != TAG}
    return {name: value for name, value in shown.items() if value not in (None, "", [], {}, 0)}


def _settings(old: Partition, new: Partition) -> Iterator[Change]:
    for f in fields(new.spec):
        was, now = getattr(old.spec, f.name), getattr(new.spec, f.name)
        if f.name not in ("name", "root") and was != now:
            yield Change(f.name, without_tags(to_plain(was)), without_tags(to_plain(now)))


def _newly_over(old: Partition, new: Partition) -> Iterator[OverLimit]:
    for queue in new.root.walk():
        was = old.root.find(queue.path)
        known = {} if was is None else _excess(was)
        for what, (used, limit) in _excess(queue).items():
            if what not in known:
                apps = [a for q in queue.walk() for a in q.applications.values() if a.allocations]
                named = tuple((a.id, a.user) for a in apps[:NAMED_AT_MOST])
                yield OverLimit(new.name, queue.path, what, used, limit, "", named, len(apps))
    ceilings = old.trackers.ceilings if old.trackers is not None else {}
    for key, ceiling in new.trackers.ceilings.items() if new.trackers is not None else ():
        known = _ceiling_excess(ceilings[key]) if key in ceilings else {}
        for what, (used, limit) in _ceiling_excess(ceiling).items():
            if what not in known:
                apps = [new.applications[app] for app in ceiling.applications if app in new.applications]
                named = tuple((a.id, a.user) for a in apps[:NAMED_AT_MOST])
                who = f"{ceiling.kind} {ceiling.name}"
                yield OverLimit(new.name, ceiling.queue, what, used, limit, who, named, len(apps))


Excess = dict[str, tuple[dict[str, int], dict[str, int]]]


def _excess(queue: Queue) -> Excess:
    most = queue.max if queue.max is not None and queue.parent is not None else {}
    return _beyond(queue.allocated, most, queue.running, queue.max_applications)


def _ceiling_excess(ceiling: Ceiling) -> Excess:
    return _beyond(ceiling.used, ceiling.max or {}, len(ceiling.applications), ceiling.max_applications)


def _beyond(used: Mapping[str, int], most: Mapping[str, int], running: int, at_most: int) -> Excess:
    """What is beyond a maximum, and what beyond a number of applications (0: unlimited)."""
    found: Excess = {}
    over = sorted(name for name, limit in most.items() if used.get(name, 0) > limit)
    if over:
        found["max"] = ({n: used[n] for n in over}, {n: most[n] for n in over})
    if at_most and running > at_most:
        found["maxapplications"] = ({"applications": running}, {"applications": at_most})
    return found


# -- asks ---------------------------------------------------------------------------------------------------------

Fates = tuple[tuple[AskDiff, ...], tuple[AskDiff, ...], tuple[AskDiff, ...]]


def _fates(before: Scheduler, after: Scheduler, both: list[str], now_ms: int) -> Fates:
    """Asks that would wait, start and be evicted with the new file and not with the old one."""
    old, new = before.schedule(now_ms, RUN_AT_MOST), after.schedule(now_ms, RUN_AT_MOST)
    waits, starts, evicted = [], [], []
    for name in both:
        known = before.cluster.partitions[name].applications
        old_placed, new_placed = _named(old, Allocated, known), _named(new, Allocated, known)
        for app, key in old_placed:
            if (app, key) not in new_placed:
                waits.append(AskDiff(name, app, key, after.why(app, key, name), known[app].user))
        starts += [
            AskDiff(name, app, key, user=known[app].user) for app, key in new_placed if (app, key) not in old_placed
        ]
        old_gone, new_gone = _named(old, Evict, known), _named(new, Evict, known)
        evicted += [
            AskDiff(name, app, key, user=known[app].user) for app, key in new_gone if (app, key) not in old_gone
        ]
    return tuple(waits), tuple(starts), tuple(evicted)


def _other_reasons(before: Scheduler, after: Scheduler, name: str) -> Iterator[AskDiff]:
    """Asks that wait in both, and for something else; both have just been scheduled."""
    apps = after.cluster.partitions[name].applications
    waiting = ((app, ask) for app in apps.values() if app.pending_count for ask in app.waiting_asks())
    for app, ask in islice(waiting, COMPARED_AT_MOST):
        old, new = before.why(app.id, ask.key, name), after.why(app.id, ask.key, name)
        if old is not None and new is not None and _subject(old) != _subject(new):
            yield AskDiff(name, app.id, ask.key, new, app.user, old)


def _subject(reason: Reason) -> tuple[str, str]:
    """What a reason is about, without its numbers."""
    return reason.code, str(getattr(reason, "queue", ""))


def _named(
    decisions: Iterable[Decision], kind: type[Allocated] | type[Evict], known: dict[str, Any]
) -> dict[tuple[str, str], None]:
    return {(d.application, d.key): None for d in decisions if isinstance(d, kind) and d.application in known}
