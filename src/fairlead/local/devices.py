"""What this machine has: cores, memory, GPUs, control groups; and which of them a run gets.

Decides how much there is to give out (what the kernel lets *this* service use, not what the hardware has), where the
control groups are mounted and which of them this process lives in, and which device numbers and cores come first: the
lowest free devices, the least used cores. Never starts or writes anything. Invariant: a device is given to one run at a
time; a directory of a control group that is returned exists.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

UNIFIED = "unified"
"""The name under which version 2 is kept beside the controllers of version 1."""


@dataclass(frozen=True, slots=True)
class Place:
    """One mounted hierarchy: where it is mounted, and the directory of the group that this process is in."""

    mount: Path
    own: Path

    def upwards(self) -> Iterator[Path]:
        """The own directory and those above it, up to the mount."""
        directory = self.own
        yield directory
        while directory != self.mount and self.mount in directory.parents:
            directory = directory.parent
            yield directory


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """All hierarchies by controller; version 2 under `unified`."""

    places: Mapping[str, Place] = field(default_factory=dict)

    def upwards(self, controller: str) -> Iterator[Path]:
        """The directories in which bounds of this controller may stand that hold for this process."""
        for name in (controller, UNIFIED):
            if name in self.places:
                yield from self.places[name].upwards()


def read_hierarchies(proc: Path = Path("/proc/self")) -> Hierarchies:
    """The hierarchies as this process sees them; none where the kernel has no control groups."""
    try:
        mounts = (proc / "mountinfo").read_text()
        own = (proc / "cgroup").read_text()
    except OSError:
        return Hierarchies()
    groups: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if controllers else [UNIFIED]:
            groups[name] = path
    places: dict[str, Place] = {}
    for line in mounts.splitlines():
        for name, place in _mounted(line, groups):
            places.setdefault(name, place)
    return Hierarchies(places)


def _mounted(line: str, groups: Mapping[str, str]) -> Iterator[tuple[str, Place]]:
    left, _, right = line.partition(" - ")
    fields, kind = left.split(), right.split()
    if len(fields) < 5 or len(kind) < 3 or kind[0] not in {"cgroup", "cgroup2"}:
        return
    root, mount = _unescaped(fields[3]), Path(_unescaped(fields[4]))
    names = [UNIFIED] if kind[0] == "cgroup2" else kind[2].split(",")
    for name in names:
        if name in groups:
            own = mount / _relative(groups[name], root)
            if own.is_dir():
                yield name, Place(mount, own)
            elif mount.is_dir():
                # A container may see its own path under the host's names; its mount then is its own group.
                yield name, Place(mount, mount)


def _relative(path: str, root: str) -> str:
    if root != "/" and (path == root or path.startswith(root + "/")):
        path = path[len(root) :]
    return path.lstrip("/")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


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
