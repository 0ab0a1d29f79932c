"""What a new queue file would change, as plain values for the outside.

Decides names and shapes, and how many jobs are named. Never compares anything itself (`fairlead.insight.preview`
does). Invariant: where not all jobs are named, their number is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.insight.preview import AskDiff, ConfigDiff, OverLimit

Plain = dict[str, Any]
Known = Mapping[str, tuple[str, str, str]]
"""Of each live job the user, the name and the queue."""
NAMED = 200
"""Jobs named in each part, at most."""


def view(diff: ConfigDiff, known: Known) -> Plain:
    """The whole of it."""
    return {
        "refused": diff.refused.as_dict() if diff.refused is not None else None,
        "empty": diff.is_empty,
        "partitions_added": list(diff.partitions_added),
        "partitions_removed": list(diff.partitions_removed),
        "declared": [
            {
                "what": each.what,
                "name": each.name,
                "kind": each.kind,
                "changes": [{"what": c.what, "old": c.old, "new": c.new} for c in each.changes],
            }
            for each in diff.declared
        ],
        "settings": [
            {"partition": name, "what": change.what, "old": change.old, "new": change.new}
            for name, changes in diff.settings.items()
            for change in changes
        ],
        "queues": [
            {
                "partition": queue.partition,
                "queue": queue.queue,
                "kind": queue.kind,
                "jobs": queue.applications,
                "changes": [{"what": c.what, "old": c.old, "new": c.new} for c in queue.changes],
            }
            for queue in diff.queues
        ],
        "over": [_over(each, known) for each in diff.over],
        "would_wait": _jobs(diff.would_wait, known),
        "would_wait_for_else": _jobs(diff.would_wait_for_else, known),
        "would_start": _jobs(diff.would_start, known),
        "would_be_stopped": _jobs(diff.would_be_evicted, known),
        "would_fail": {
            "count": len(diff.would_fail),
            "jobs": [_named(app, known, "") for _, app in diff.would_fail[:NAMED]],
        },
    }


def _over(over: OverLimit, known: Known) -> Plain:
    return {
        "partition": over.partition,
        "queue": over.queue,
        "who": over.who,
        "what": over.what,
        "used": over.used,
        "limit": over.limit,
        "count": over.count,
        "jobs": [_named(app, known, user) for app, user in over.applications],
    }


def _jobs(asks: Sequence[AskDiff], known: Known) -> Plain:
    rows = []
    for ask in asks[:NAMED]:
        reasons = {"reason": ask.reason, "instead_of": ask.instead_of}
        shown = {name: reason.as_dict() if reason is not None else None for name, reason in reasons.items()}
        rows.append(_named(ask.application, known, ask.user) | shown)
    return {"count": len(asks), "jobs": rows}


def _named(key: str, known: Known, user: str) -> Plain:
    found = known.get(key, (user, "", ""))
    return {"key": key, "user": found[0], "name": found[1], "queue": found[2]}
