"""Preview: what a new queue file would change, before it is applied.

Decides nothing: it applies the file to a copy of the state, by the same code that would apply it in earnest, and
compares. The scheduler that it is given stays as it is. Invariant: a file that the preview says is refused is refused,
and the queues that it names are those that change.

What would start or wait is seen by one scheduling run on a copy with the old file and one with the new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import islice
from typing import Any

from msgspec.structs import replace

from fairlead.core.books.admission import BUDGET, CLASS, QUOTA
from fairlead.core.books.applications import Application
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
from fairlead.core.model.lifecycle import State
from fairlead.core.model.plain import TAG, to_plain
from fairlead.core.model.reasons import Reason
from fairlead.core.model.specs import ClusterSpec
from fairlead.insight.verdict import shown
from fairlead.scheduler import Scheduler
from fairlead.wire.configuration import (
    Change,
    ConfigDifference,
    DeclarationDifference,
    NamedJob,
    NamedJobs,
    OverLimit,
    QueueDifference,
    Setting,
)
from fairlead.wire.fields import with_cpu

RUN_AT_MOST = 10_000
"""Allocations that the two runs make at most."""
COMPARED_AT_MOST = 2_000
"""Waiting asks whose reasons are compared, a partition."""
NAMED_AT_MOST = 200
"""Jobs named in each part."""
NAMED_OVER = 50
"""Jobs named that use what a queue or somebody would be over."""

Naming = Callable[[str, str], NamedJob]
"""How the job of an application and its user is named."""


def preview_of(
    state: dict[str, Any],
    new: ClusterSpec,
    name: Naming = lambda key, user: NamedJob(key=key, user=user),
) -> ConfigDifference:
    """What `new` would change in a dumped state: it can be worked out away from the scheduler that runs.

    Takes the time of two restarts from a snapshot and two runs. It says nothing of what it was compared with.
    """
    before, after = Scheduler.load(state), Scheduler.load(state)
    now_ms = before.cluster.now_ms
    decisions = after.handle(Configure(new), now_ms)
    for decision in decisions:
        if isinstance(decision, ConfigurationRejected):
            return ConfigDifference(refused=shown(decision.reason))
    old_parts, new_parts = before.cluster.partitions, after.cluster.partitions
    both = [part for part in old_parts if part in new_parts]
    removed = [part for part in old_parts if part not in new_parts]
    waits, starts, stopped = _fates(before, after, both, name)
    found = ConfigDifference(
        partitions_added=[part for part in new_parts if part not in old_parts],
        partitions_removed=removed,
        declared=list(_declared(before.cluster, decisions, after.cluster)),
        settings=[change for part in both for change in _settings(old_parts[part], new_parts[part])],
        queues=[diff for part in both for diff in _queue_diffs(old_parts[part], new_parts[part], decisions)],
        over=[over for part in both for over in _newly_over(old_parts[part], new_parts[part], name)],
        would_wait=waits,
        would_wait_for_else=_jobs([job for part in both for job in _other_reasons(before, after, part, name)]),
        would_start=starts,
        would_be_stopped=stopped,
        would_fail=_jobs(
            [name(a.id, a.user) for part in removed for a in old_parts[part].applications.values() if _live(a)]
        ),
    )
    return replace(found, empty=replace(found, empty=True) == ConfigDifference())


# -- what is declared for the whole cluster -----------------------------------------------------------------------


def _declared(old: Cluster, decisions: Iterable[Decision], new: Cluster) -> Iterator[DeclarationDifference]:
    was, now = _specs(old), _specs(new)
    for d in decisions:
        if isinstance(d, DeclarationChanged):
            before, after = was.get((d.kind, d.name)), now.get((d.kind, d.name))
            yield DeclarationDifference(d.kind, d.name, d.change, list(_spec_changes(before, after)))


def _specs(cluster: Cluster) -> dict[tuple[str, str], Any]:
    return {(kind, spec.name): spec for kind in (CLASS, QUOTA, BUDGET) for spec in cluster.admission.of(kind)}


def _spec_changes(old: Any, new: Any) -> Iterator[Change]:
    for f in fields(new if new is not None else old) if new is not None or old is not None else ():
        sides = [None if spec is None else getattr(spec, f.name) for spec in (old, new)]
        plain = [without_tags(to_plain(side)) for side in sides]
        if f.name != "name" and sides[0] != sides[1] and any(each not in (None, "", [], {}, False) for each in plain):
            yield Change(f.name, *map(with_cpu, plain))


# -- queues -------------------------------------------------------------------------------------------------------


def _queue_diffs(old: Partition, new: Partition, decisions: Iterable[Decision]) -> Iterator[QueueDifference]:
    said = {d.queue: d.change for d in decisions if isinstance(d, QueueChanged) and d.partition == new.name}
    for queue in new.root.walk():
        was = old.root.find(queue.path)
        count = sum(_live(app) for below in queue.walk() for app in below.applications.values())
        kind = said.get(queue.path, "changed")
        if kind == "draining" and not _keeps(queue):
            kind = "removed"
        changes = list(_changes(old, was, new, queue))
        if kind != "changed" or changes:
            yield QueueDifference(new.name, queue.path, kind, count, changes)
    for path, kind in said.items():
        if kind == "removed":
            yield QueueDifference(new.name, path, kind, 0, [])


def _live(app: Application) -> bool:
    """Whether it has something to do yet: for a while the books keep what has ended."""
    return app.state is not State.COMPLETING


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
            yield Change(what, with_cpu(old.get(what)), with_cpu(new.get(what)))


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
    own = partition.trackers.limits.get(path)
    if own is None:
        return None
    named = [(f"user {name}", limit) for name, limit in own.users.items()]
    named += [(f"group {name}", limit) for name, limit in own.groups.items()]
    plain = {name: without_tags(to_plain(limit)) for name, limit in named}
    return {
        name: {what: limit[what] for what in ("max_resources", "max_applications") if what in limit}
        for name, limit in plain.items()
    }


def without_tags(plain: Any) -> Any:
    """A plain value without the names of its types, and without what is not set: as people read it."""
    if isinstance(plain, list):
        return [without_tags(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.get(TAG) in ("Resources", "Limits", "map"):
        return {name: without_tags(value) for name, value in plain["of"].items()}
    clean = {name: without_tags(value) for name, value in plain.items() if name != TAG}
    return {name: value for name, value in clean.items() if value not in (None, "", [], {}, 0)}


def _settings(old: Partition, new: Partition) -> Iterator[Setting]:
    for f in fields(new.spec):
        was, now = getattr(old.spec, f.name), getattr(new.spec, f.name)
        if f.name not in ("name", "root") and was != now:
            old_plain, new_plain = (with_cpu(without_tags(to_plain(side))) for side in (was, now))
            yield Setting(f.name, old_plain, new_plain, new.name)


def _newly_over(old: Partition, new: Partition, name: Naming) -> Iterator[OverLimit]:
    def over(path: str, who: str, excess: Excess, known: Excess, apps: list[Application]) -> Iterator[OverLimit]:
        named = [name(app.id, app.user) for app in apps[:NAMED_OVER]]
        for what, (used, limit) in excess.items():
            if what not in known:
                yield OverLimit(new.name, path, who, what, with_cpu(used), with_cpu(limit), len(apps), named)

    for queue in new.root.walk():
        was, excess = old.root.find(queue.path), _excess(queue)
        apps = [a for q in queue.walk() for a in q.applications.values() if a.allocations] if excess else []
        yield from over(queue.path, "", excess, {} if was is None else _excess(was), apps)
    ceilings = old.trackers.ceilings
    for key, ceiling in new.trackers.ceilings.items():
        apps = [new.applications[app] for app in ceiling.applications if app in new.applications]
        known = _ceiling_excess(ceilings[key]) if key in ceilings else {}
        yield from over(ceiling.queue, f"{ceiling.kind} {ceiling.name}", _ceiling_excess(ceiling), known, apps)


Excess = dict[str, tuple[dict[str, int], dict[str, int]]]


def _excess(queue: Queue) -> Excess:
    most = queue.max if queue.max is not None and queue.parent is not None else {}
    return _beyond(queue.allocated, most, queue.running, queue.max_applications)


def _ceiling_excess(ceiling: Ceiling) -> Excess:
    return _beyond(ceiling.allocated, ceiling.max or {}, len(ceiling.applications), ceiling.max_applications)


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


def _fates(before: Scheduler, after: Scheduler, both: list[str], name: Naming) -> tuple[NamedJobs, ...]:
    """What would wait, start and be stopped with the new file and not with the old one."""
    now_ms = before.cluster.now_ms
    old, new = before.schedule(now_ms, RUN_AT_MOST), after.schedule(now_ms, RUN_AT_MOST)
    waits, starts, stopped = [], [], []
    for part in both:
        known = before.cluster.partitions[part].applications
        old_placed, new_placed = _named(old, Allocated, known), _named(new, Allocated, known)
        waits += [
            replace(name(app, known[app].user), reason=shown(after.why(app, key, part)))
            for app, key in old_placed
            if (app, key) not in new_placed
        ]
        starts += [name(app, known[app].user) for app, key in new_placed if (app, key) not in old_placed]
        old_gone, new_gone = _named(old, Evict, known), _named(new, Evict, known)
        stopped += [name(app, known[app].user) for app, key in new_gone if (app, key) not in old_gone]
    return _jobs(waits), _jobs(starts), _jobs(stopped)


def _jobs(found: list[NamedJob]) -> NamedJobs:
    return NamedJobs(len(found), found[:NAMED_AT_MOST])


def _other_reasons(before: Scheduler, after: Scheduler, part: str, name: Naming) -> Iterator[NamedJob]:
    """What waits in both, and for something else; both have just been scheduled."""
    apps = after.cluster.partitions[part].applications
    waiting = ((app, ask) for app in apps.values() if app.pending_count for ask in app.waiting_asks())
    for app, ask in islice(waiting, COMPARED_AT_MOST):
        old, new = before.why(app.id, ask.key, part), after.why(app.id, ask.key, part)
        if old is not None and new is not None and _subject(old) != _subject(new):
            yield replace(name(app.id, app.user), reason=shown(new), instead_of=shown(old))


def _subject(reason: Reason) -> tuple[str, str]:
    """What a reason is about, without its numbers."""
    return reason.code, str(getattr(reason, "queue", ""))


def _named(
    decisions: Iterable[Decision], kind: type[Allocated] | type[Evict], known: dict[str, Any]
) -> dict[tuple[str, str], None]:
    return {(d.application, d.key): None for d in decisions if isinstance(d, kind) and d.application in known}
