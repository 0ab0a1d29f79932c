"""How much memory is left on this machine, measured.

Decides which of the kernel's figures counts: what can still be used without swapping, and not more than the control
groups above this service leave. Never decides what follows (`pressure` does). Invariant: with a budget, only what the
jobs themselves use counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairlead.local.hierarchies import Hierarchies
from fairlead.local.pressure import Memory

NO_LIMIT = 1 << 62
LIMITS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Versions 2 and 1 of the control groups: the bound, what is used of it, and the part of that which is given back."""


def of_budget(budget: int, used: Iterable[int]) -> Memory:
    """What jobs have left of a budget of so many bytes that is theirs."""
    return Memory(budget, max(0, budget - sum(used)))


def of_machine(hierarchies: Hierarchies, proc: Path = Path("/proc")) -> Memory | None:
    """What the machine has left, or the tightest control group above this service; None if nobody can tell."""
    figures = _meminfo(proc)
    total, available = figures.get("MemTotal"), figures.get("MemAvailable")
    if total is None or available is None:
        return None
    memory = Memory(total, available, _stalled(proc))
    for directory in hierarchies.upwards("memory"):
        group = _of_group(directory)
        if group is not None and group.total < total and group.available < memory.available:
            memory = Memory(group.total, group.available, memory.stalled)
    return memory


def _meminfo(proc: Path) -> dict[str, int]:
    try:
        lines = (proc / "meminfo").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdecimal():
            found[name] = int(words[0]) * 1024
    return found


def _of_group(directory: Path) -> Memory | None:
    for bound, usage, cache in LIMITS:
        most, used = _number(directory / bound), _number(directory / usage)
        if most is not None and used is not None and most < NO_LIMIT:
            # File pages that nobody used lately are given back before anything else happens.
            return Memory(most, max(0, most - used + _field(directory / "memory.stat", cache)))
    return None


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _field(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    values = (line.partition(" ")[2] for line in lines if line.startswith(f"{name} "))
    return next((int(value) for value in values if value.isdecimal()), 0)


def _stalled(proc: Path) -> float | None:
    """`some avg10` of the kernel's own account of processes that wait for memory."""
    try:
        lines = (proc / "pressure" / "memory").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("some "):
            for word in line.split():
                name, _, value = word.partition("=")
                if name == "avg10":
                    return float(value)
    return None
