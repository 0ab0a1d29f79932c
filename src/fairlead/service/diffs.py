"""What a new queue file would change, in the shapes of the wire.

Decides how many jobs are named. Never compares anything itself (`fairlead.insight.preview`
does). Invariant: where not all jobs are named, their number is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.core.model.reasons import Reason
from fairlead.insight.preview import AskDiff, ConfigDiff, OverLimit
from fairlead.wire import configuration as wire
from fairlead.wire.jobs import Reason as Shown
from fairlead.wire.jobs import reason

Known = Mapping[str, tuple[str, str, str]]
"""Of each live job the user, the name and the queue."""
NAMED = 200
"""Jobs named in each part, at most."""


def view(diff: ConfigDiff, known: Known, base: Mapping[str, Any]) -> wire.ConfigDifference:
    """The whole of it; `base`: what it was compared with."""
    return wire.ConfigDifference(
        **base,
        refused=_reason(diff.refused),
        empty=diff.is_empty,
        partitions_added=list(diff.partitions_added),
        partitions_removed=list(diff.partitions_removed),
        declared=msgspec.convert(list(diff.declared), list[wire.DeclarationDifference], from_attributes=True),
        settings=[
            wire.Setting(partition=name, what=change.what, old=change.old, new=change.new)
            for name, changes in diff.settings.items()
            for change in changes
        ],
        queues=[
            wire.QueueDifference(
                partition=q.partition, queue=q.queue, kind=q.kind, jobs=q.applications, changes=_changes(q.changes)
            )
            for q in diff.queues
        ],
        over=[_over(each, known) for each in diff.over],
        would_wait=_jobs(diff.would_wait, known),
        would_wait_for_else=_jobs(diff.would_wait_for_else, known),
        would_start=_jobs(diff.would_start, known),
        would_be_stopped=_jobs(diff.would_be_evicted, known),
        would_fail=wire.NamedJobs(
            count=len(diff.would_fail), jobs=[_named(app, known, "") for _, app in diff.would_fail[:NAMED]]
        ),
    )


def _changes(changes: Iterable[Any]) -> list[wire.Change]:
    return msgspec.convert(list(changes), list[wire.Change], from_attributes=True)


def _over(over: OverLimit, known: Known) -> wire.OverLimit:
    return wire.OverLimit(
        partition=over.partition,
        queue=over.queue,
        who=over.who,
        what=over.what,
        used=over.used,
        limit=over.limit,
        count=over.count,
        jobs=[_named(app, known, user) for app, user in over.applications],
    )


def _jobs(asks: Sequence[AskDiff], known: Known) -> wire.NamedJobs:
    rows = [
        _named(ask.application, known, ask.user, reason=_reason(ask.reason), instead_of=_reason(ask.instead_of))
        for ask in asks[:NAMED]
    ]
    return wire.NamedJobs(count=len(asks), jobs=rows)


def _reason(said: Reason | None) -> Shown | None:
    return reason(said.as_dict()) if said is not None else None


def _named(key: str, known: Known, user: str, **reasons: Shown | None) -> wire.NamedJob:
    found = known.get(key, (user, "", ""))
    return wire.NamedJob(key=key, user=found[0], name=found[1], queue=found[2], **reasons)
