"""Where the control groups of this machine are mounted and where in them this process lives.

Decides how the kernel's two descriptions (mounts, own groups) are put together into directories. Never writes.
Invariant: a directory that is returned exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
