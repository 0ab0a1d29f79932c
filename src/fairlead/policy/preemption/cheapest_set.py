"""The cheapest set: of work that may be stopped, what together meets every need with the least harm.

Decides which of the candidates go, however many needs they have to meet at once (room on a node, under the maximum of a
queue, under a limit). Never decides what may be stopped, nor stops it. Invariant: a set meets every need or is empty,
and where all sets are compared none is cheaper.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from math import comb

from fairlead.core.books.asks import Ask
from fairlead.core.model.resources import Book
from fairlead.policy.preemption.victims import fewest

Need = tuple[Book, dict["Ask", None]]
"""So much is missing, and the work whose end would free some of it."""
COMBINATIONS_MAX = 2_000
"""So many sets of victims are compared at most for one node; beyond, the largest contributions are taken first."""


def harm(victims: tuple[Ask, ...]) -> tuple[int, int, int, int]:
    """Order of plans: 1. fewest, 2. lowest highest priority, 3. lower sum, 4. shortest longest run lost."""
    priorities = [v.priority for v in victims]
    earliest_ms = min((v.allocated_ms or 0 for v in victims), default=0)
    return (len(victims), max(priorities, default=0), sum(priorities), -earliest_ms)


def standing(victim: Ask) -> tuple[int, int, int]:
    """Order of single victims: 1. lower priority, 2. shorter run lost, 3. the newest."""
    return (victim.priority, -(victim.allocated_ms or 0), -victim.seq)


def cheapest(needs: list[Need], candidates: list[Ask]) -> tuple[Ask, ...]:
    """The victims with the least harm that together meet every need.

    Exact while there are few sets to compare; beyond, what frees most of what is missing goes first, and what is
    not needed in the end is spared. Nothing when all together are not enough, or when nothing is missing.
    """
    needs = [need for need in needs if need[0]]
    if not needs:
        return ()
    useful = [v for v in candidates if _contribution(v, needs)]
    useful.sort(key=standing)
    if not covers(useful, needs):
        return ()
    least = max(fewest(missing, [v for v in useful if v in pool]) for missing, pool in needs)
    looked_at = 0
    for size in range(least, len(useful)):
        looked_at += comb(len(useful), size)
        if looked_at > COMBINATIONS_MAX:
            return _greedy(useful, needs)
        fitting = [s for s in combinations(useful, size) if covers(s, needs)]
        if fitting:
            return min(fitting, key=harm)
    return tuple(useful)


def _greedy(useful: list[Ask], needs: list[Need]) -> tuple[Ask, ...]:
    order = sorted(useful, key=lambda v: (-_contribution(v, needs), standing(v)))
    chosen: list[Ask] = []
    for victim in order:
        chosen.append(victim)
        if covers(chosen, needs):
            break
    for spared in sorted(chosen, key=standing, reverse=True):
        without = [v for v in chosen if v is not spared]
        if covers(without, needs):
            chosen = without
    return tuple(sorted(chosen, key=standing))


def _contribution(victim: Ask, needs: list[Need]) -> float:
    """How much of what is missing its end frees, in parts of that, summed up."""
    part = 0.0
    for missing, pool in needs:
        for name, amount in victim.items if victim in pool else ():
            if name in missing:
                part += min(amount / missing[name], 1.0)
    return part


def covers(victims: Collection[Ask], needs: list[Need]) -> bool:
    """Whether their ends together free all that is missing, each need by itself."""
    return all(
        sum(amount for v in victims if v in pool for each, amount in v.items if each == name) >= lack
        for missing, pool in needs
        for name, lack in missing.items()
    )
