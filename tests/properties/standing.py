"""Effective priorities, worked out from the queue file in the plainest way."""

from __future__ import annotations

from fairlead.core.books.asks import Ask


def standings(left: Ask, right: Ask) -> tuple[int, int]:
    """Both priorities as seen in the lowest queue that both are in."""

    def way(ask: Ask) -> dict[str, int]:
        seen, found = ask.priority, {}
        for queue in ask.app.queue.lineage:
            found[queue.path] = seen
            rules = queue.properties
            seen = rules.priority_offset if rules.priority_fence else seen + rules.priority_offset
        return found

    mine, theirs = way(left), way(right)
    common = next(path for path in mine if path in theirs)
    return mine[common], theirs[common]


def may_be_owed(ask: Ask) -> bool:
    """Whether guarantees count for the rank, and some queue on its way guarantees something of what it asks for.

    Whether it is within that when its turn comes is for the laws of rank (`rank_fit`).
    """
    names = {name for name, amount in ask.items if amount > 0}
    lineage = ask.app.queue.lineage
    return lineage[-1].owes and any(names & {*(queue.guaranteed or {})} for queue in lineage)


def stands_above(left: Ask, right: Ask) -> bool:
    """Whether the one may take the place of the other where rank decides: by priority, or by a guarantee."""
    mine, theirs = standings(left, right)
    return mine > theirs or may_be_owed(left)
