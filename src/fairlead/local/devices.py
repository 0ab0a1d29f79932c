"""What this machine has: cores, memory, GPUs; and which of them a run gets.

Decides how much there is to give out (what the kernel lets *this* service use, not what the hardware has) and which
device numbers and cores come first: the lowest free devices, the least used cores. Never starts anything. Invariant: a
device is given to one run at a time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fairlead.local.hierarchies import Hierarchies

NO_LIMIT_V1 = 1 << 62
"""Version 1 has no word for 'no limit', only numbers near the largest one."""


def detect_gpus(root: Path = Path("/")) -> tuple[int, ...]:
    """The device numbers of the NVIDIA GPUs, in the order of their bus addresses, as `nvidia-smi` counts them."""
    known = root / "proc/driver/nvidia/gpus"
    if known.is_dir():
        return tuple(range(len(list(known.iterdir()))))
    devices = root / "dev"
    if not devices.is_dir():
        return ()
    return tuple(range(sum(1 for each in devices.iterdir() if re.fullmatch(r"nvidia\d+", each.name))))


def detect_capacity(hierarchies: Hierarchies) -> dict[str, int]:
    """`vcore` in thousandths and `memory` in bytes, with the bounds of the groups that the service itself lives in."""
    milli = len(os.sched_getaffinity(0)) * 1000
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "vcore": min([milli, *_cpu_bounds(hierarchies)]),
        "memory": min([memory, *_memory_bounds(hierarchies)]),
    }


def _cpu_bounds(hierarchies: Hierarchies) -> Iterable[int]:
    for directory in hierarchies.upwards("cpu"):
        quota, period = _numbers(directory, "cpu.max") or (None, None)
        if quota is None:
            quota = next(iter(_numbers(directory, "cpu.cfs_quota_us") or ()), None)
            period = next(iter(_numbers(directory, "cpu.cfs_period_us") or ()), None)
        if quota is not None and quota > 0 and period:
            yield max(1, quota * 1000 // period)


def _memory_bounds(hierarchies: Hierarchies) -> Iterable[int]:
    for directory in hierarchies.upwards("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            for value in _numbers(directory, name) or ():
                if value is not None and value < NO_LIMIT_V1:
                    yield value


def _numbers(directory: Path, name: str) -> list[int | None] | None:
    """The numbers in a file, None for the word `max`; None if there is no such file."""
    try:
        words = (directory / name).read_text().split()
    except OSError:
        return None
    return [None if word == "max" else int(word) for word in words]


def choose_gpus(count: int, owned: Sequence[int], used: Iterable[int]) -> tuple[int, ...]:
    """The lowest free devices. Raises ValueError, with the figures, if there are too few."""
    taken = set(used)
    free = [number for number in sorted(owned) if number not in taken]
    if count > len(free):
        raise ValueError(f"the run asks for {count} GPUs; this machine has {len(owned)}, and {len(free)} are free")
    return tuple(free[:count])


def choose_cpus(vcore: int, allowed: Iterable[int], load: Mapping[int, int]) -> tuple[int, ...]:
    """The least used cores, as many as `vcore` thousandths need; `load` says how much is on each core already."""
    count = -(-vcore // 1000)
    order = sorted(allowed, key=lambda core: (load.get(core, 0), core))
    return tuple(sorted(order[:count]))
