"""All processes of one run: told, measured, and ended to the last one.

Decides how nothing is left behind. Never decides when. Invariant: a tree is found whole, whatever sessions, groups and
parents its processes have chosen.

The supervisor has made itself the one to whom orphans below it return, so its descendants are the tree. The control
groups and the marker in the environment say the same by other means, for a tree whose supervisor is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Sequence

from . import cgroups, kernel

ROUNDS_OF_STOPPING = 20
MOST_OVER_LIMIT = 1.02


def send(pids: Iterable[int], what: int) -> None:
    """Send a signal to each of these; those that are gone are passed over."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, what)


def below(supervisor: int) -> list[int]:
    """The living processes below the supervisor."""
    return [each.pid for each in kernel.descendants(supervisor) if each.state not in "ZX"]


def ask_to_end(supervisor: int, plan: cgroups.Plan) -> None:
    """SIGTERM to every process of the tree; those that are suspended are woken, so that they can obey."""
    tell(supervisor, plan, signal.SIGTERM)
    tell(supervisor, plan, signal.SIGCONT)


def hang_up(supervisor: int, but: set[int]) -> None:
    """SIGHUP to all that is left, once that ignores SIGTERM as an interactive shell does; never twice (`but`).

    Not before: a shell that hangs up passes it on to what it has begun, which may still be obeying SIGTERM.
    """
    left = [each for each in kernel.descendants(supervisor) if each.state not in "ZX"]
    if all(each.ignored & 1 << (signal.SIGTERM - 1) for each in left):
        fresh = {each.pid for each in left} - but
        send(fresh, signal.SIGHUP)
        but |= fresh


def tell(supervisor: int, plan: cgroups.Plan, what: int, *, but: int = 0) -> None:
    """Send a signal to every process of the tree, `but` to one of them."""
    send(sorted({*below(supervisor), *cgroups.members(plan)} - {but}), what)


def suspend(supervisor: int, plan: cgroups.Plan) -> None:
    """Let the whole tree stand still: frozen by its control groups, else every process by SIGSTOP."""
    if not cgroups.freeze(plan, frozen=True):
        _stop_all(supervisor)


def resume(supervisor: int, plan: cgroups.Plan) -> None:
    """Let the whole tree go on. Without control groups that wakes what the work itself had stopped, too."""
    if not cgroups.freeze(plan, frozen=False):
        send(below(supervisor), signal.SIGCONT)


def _stop_all(supervisor: int) -> set[int]:
    """Suspend the tree until no new process shows up; those that were suspended."""
    suspended: set[int] = set()
    for _ in range(ROUNDS_OF_STOPPING):
        fresh = set(below(supervisor)) - suspended
        if not fresh:
            break
        send(fresh, signal.SIGSTOP)
        suspended |= fresh
    return suspended


def kill(supervisor: int, plan: cgroups.Plan) -> None:
    """SIGKILL to every process of the tree.

    Without control groups a tree that forks as fast as it is killed could win; so it is first suspended until no new
    process shows up, then killed.
    """
    cgroups.kill(plan)
    send(_stop_all(supervisor), signal.SIGKILL)


def end_orphans(marker: str, plan: cgroups.Plan, *, patience_s: float = 10.0) -> bool:
    """Kill the tree of a supervisor that is gone. False: something of it is still alive after that time."""
    deadline = time.monotonic() + patience_s
    while True:
        cgroups.kill(plan)
        left = kernel.marked([marker]).get(marker, [])
        send(left, signal.SIGSTOP)
        send(left, signal.SIGKILL)
        if not left and not cgroups.members(plan):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)


def memory_bytes(supervisor: int, plan: cgroups.Plan) -> int:
    """Memory of the tree now. Without a control group the sum over its processes; shared pages count repeatedly."""
    counted = cgroups.memory_bytes(plan)
    if counted is not None:
        return counted
    return sum(each.memory for each in kernel.nearby_descendants(supervisor))


def peak_memory(supervisor: int, plan: cgroups.Plan, before: int) -> int:
    """The greater of the tree's memory now and the peak before. Exact where the cheap sum is above that."""
    now = memory_bytes(supervisor, plan)
    if now > before and cgroups.memory_bytes(plan) is None:
        now = _exact_memory(kernel.nearby_descendants(supervisor))
    return max(before, now)


def cpu_ms(supervisor: int, plan: cgroups.Plan) -> int:
    """CPU time of the tree so far. Without a control group that of living processes and of those waited for."""
    counted = cgroups.cpu_ms(plan)
    if counted is not None:
        return counted
    itself = kernel.process(supervisor)
    ticks = itself.reaped_ticks if itself is not None else 0
    ticks += sum(each.own_ticks + each.reaped_ticks for each in kernel.nearby_descendants(supervisor))
    return int(ticks * kernel.TICK_MS)


def exceeds_memory(supervisor: int, limit: int) -> int | None:
    """The tree's memory if it is more than the limit by over 2 %, else None. For machines without a memory controller.

    The cheap sum counts shared pages for each sharer, so it can only be too high: only when it is over the limit is
    the exact sum taken.
    """
    most = int(limit * MOST_OVER_LIMIT)
    found = kernel.nearby_descendants(supervisor)
    if sum(each.memory for each in found) <= most:
        return None
    exact = _exact_memory(found)
    return exact if exact > most else None


def _exact_memory(found: Sequence[kernel.Process]) -> int:
    total = 0
    for each in found:
        divided = kernel.shared_memory_once(each.pid)
        total += each.memory if divided is None else divided
    return total
