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
