"""The simulator and one that shares no code with it: the same work on the same nodes at the same times.

Some workloads; 40 by `make compare-simulators`.
"""

from __future__ import annotations

import pytest
from reference.compared_simulators import BY_GUARANTEE, compared

WITH_LIMITS = (32768, 33280, 98304, 131584)
"""Kinds of worlds where it is known how long work lasts at most."""
IDLE = (33554432018, 33816576012, 33816832001, 33816832004, 33816832005, 34340864537, 34341122167)
"""By guarantee, with idle work."""
KEPT = (512032, 1536006, 2560006, 262656016, 262656019, 525824008, 33817088033)
"""By guarantee, with kept turns."""
LARGE = (2361505010, 1966080306)
"""By guarantee, where something is too large or too much."""
LATER = (33024000, 131584002, 132608000, 213504000)
"""Of such worlds."""


@pytest.mark.thorough
@pytest.mark.parametrize("number", [100, 105, 107, 108, 115, 118, 120, 122])
def test_both_start_and_stop_the_same_work(number: int) -> None:
    """With gangs, maximums, limits of users and preemption, by `priority` and `both`, with offsets and without."""
    tally = compared(range(number, number + 1))
    assert not tally.different, "\n".join(tally.different)
    assert tally.runs > 70
    assert tally.evicted > 5


MORE = [1, 2, 4, 8, 16, 32, 64, 128, 255, 256, 512, 608, 1536, 2576, 4096, 4608, 8192, 12288, 16384, 16896]


@pytest.mark.thorough
@pytest.mark.parametrize("more", [*MORE, *WITH_LIMITS, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24])
def test_so_they_do_with_more_in_it(more: int) -> None:
    """Zones, least run times, lost nodes, budgets and bounds on evictions, bounds on jobs that run, orders of an
    administrator of two kinds, retries; all of it; ports and work that keeps apart; kept turns, orders beside them,
    gangs, and limits of users and jobs; work that wants to be with other work, is spread, and both; work that
    is put on hold, also beside kept turns; windows, kept turns beside them, and work that begins later; backfill past
    kept turns; bounds of memory and limits above leaves; work for one node; idle work that borrows below the root;
    queues in which jobs share; work that would rather be on some nodes than on others.
    """
    tally = compared(range(1000 * more + 2, 1000 * more + 3))
    assert not tally.different, "\n".join(tally.different)
    assert tally.runs > 20


@pytest.mark.thorough
@pytest.mark.parametrize(
    "number",
    [131072002, 131072006, 393216001, 393216004, 917504002, 917760002, 1441792002, 2490368003, *LARGE, *IDLE, *KEPT],
)
def test_so_they_do_by_guarantee(number: int) -> None:
    """YuniKorn's walk with nodes that are set aside, preemption off and on, work that requires one node, ports beside
    it, lowered maximums, and small work that shares what is made free. 131072006: a placeholder that could not start
    kept what was behind it from its turn. 2361505010: what names nodes had more stopped for it than it takes.
    33554432018: a node was set aside for what idle work could make room for. 33816576012: work was stopped by guarantee
    before idle work made room for what came before. 33816832004: an equal for which idle work was stopped uses what
    their queue is guaranteed. 33816832001: it made room for what was behind a gang that let another one go on.
    33816832005: it stayed on the node that was set aside for the second of two alike. 1966080306: what is too large
    goes on trying in vain, also where a limit is in its way. 34341122167: what requires a node takes room there
    that is kept for what idle work was stopped for. 2560006: a turn that ended took the node of an older one.
    262656019: no room was made beside what was kept for another under a maximum.
    """
    tally = compared(range(BY_GUARANTEE + number, BY_GUARANTEE + number + 1))
    assert not tally.different, "\n".join(tally.different)
    assert tally.runs > 20


@pytest.mark.thorough
@pytest.mark.parametrize(
    "number",
    [
        27,
        62,
        134,
        529,
        8021,
        16217,
        127022,
        608020,
        654022,
        769004,
        1007017,
        1007056,
        8192005,
        12288058,
        7342592231,
        16795136504,
        17957384884,
        1184322455,
        *LATER,
    ],
)
def test_they_agree_where_they_once_did_not(number: int) -> None:
    """27: that an application was completed was news. 62: room of work told to stop counted beside the member of a gang
    that gets it. 134: a gang gave way for room of its own that was leaving for other work. 529: another one no longer
    waited for a gang of which a member was told to stop. 8021: nobody looked again when a queue might lose one more.
    16217: what was kept for a later one under a limit. 127022: idle work held a place while nothing of it ran. 608020:
    a weaker one took room of all nodes that a stronger one waited for. 654022: what waited too long took room that was
    kept for another one above. 769004: room that gathered for a later one was in the way. 1007017: room that gathered
    was given up for room of all nodes, to which it adds none. 1007056: work was stopped for what waits for the turn of
    its equal. 8192005: what left for work of a spread counted for it. 12288058: what was promised to it was in its own
    way. 7342592231: idle work was left alone where all that a node had gathered for the ask. 33024000: members of a
    gang that keep apart were counted on one node. 131584002: what had passed a turn within a guarantee was stopped for
    what was not. 16795136504: what had its turn kept did not get the node that it prefers. 132608000: what takes the
    place of a placeholder was thought to last as long as that might. 17957384884: room for which work was stopped was
    used until a later start. 1184322455: what was told to stop was taken off twice. 213504000: what passed a turn
    in time took the room that gathered for that.
    """
    tally = compared(range(number, number + 1))
    assert not tally.different, "\n".join(tally.different)
