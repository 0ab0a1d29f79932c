"""Answers as plain values, for those who may not see everything.

Decides the names of the fields and what is left out for whom. Never asks anything itself. Invariant: what the asker may
not see is counted, never named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.insight.trial import Name

if TYPE_CHECKING:
    from fairlead.insight.whatif import Difference, Fate, Share

NAMED = 200
"""Asks named in each part, at most."""

Sees = Callable[[Name], bool]


def everything(name: Name) -> bool:
    """For whom everything may be named."""
    del name
    return True


def difference(diff: Difference, sees: Sees = everything) -> dict[str, Any]:
    """What would be otherwise."""
    parts = ("starts", "starts_not", "elsewhere", "evicted", "spared", "ends")
    return {
        "empty": diff.is_empty,
        "refused": [reason.as_dict() for reason in diff.refused],
        "admitted": diff.admitted.as_dict() if diff.admitted is not None else None,
        **{part: _fates(getattr(diff, part), sees) for part in parts},
        "waits": [
            {"application": each.name[1], "key": each.name[2], "reason": each.reason.as_dict()}
            for each in diff.waits
            if sees(each.name)
        ],
        "shares": [_share(share) for share in diff.shares],
        "expected": [shift.as_dict() for shift in diff.expected if sees(shift.name)][:NAMED],
        "unseen": diff.unseen,
    }


def _fates(fates: Sequence[Fate], sees: Sees) -> dict[str, Any]:
    seen = [fate for fate in fates if sees(fate.name)]
    return {
        "count": len(fates),
        "hidden": len(fates) - len(seen),
        "jobs": [
            {
                "partition": fate.name[0],
                "application": fate.name[1],
                "key": fate.name[2],
                "user": fate.user,
                "queue": fate.queue,
                "node": fate.node,
                "on_behalf_of": fate.for_whom,
                "rule": fate.rule,
            }
            for fate in seen[:NAMED]
        ],
    }


def _share(share: Share) -> dict[str, Any]:
    return {
        "partition": share.partition,
        "queue": share.queue,
        "before": dict(share.before),
        "after": dict(share.after),
        "guaranteed": dict(share.guaranteed) if share.guaranteed is not None else None,
        "max": dict(share.max) if share.max is not None else None,
    }
