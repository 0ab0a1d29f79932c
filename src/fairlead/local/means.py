"""By what means this machine bounds, measures and ends work: found out by trying, and said openly.

Decides which rung of the ladder each bound stands on: version 2 of the control groups, version 1, a measured watch or a
coarse means, nothing. Never starts work. Invariant: a capability that is called enforced was tried on a process of this
machine when the service started; what is not enforced says why and what would change it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.local.devices import UNIFIED, Hierarchies, Place
from fairlead.local.runs import Capability, RunSpec
from fairlead.local.supervisor import cgroups, kernel

CONTROLLERS = ("cpu", "memory", "pids")
SERVICE_LEAF = "fairlead-service"
PROBE = "fairlead-probe-"
"""Before the number of the process that tries out what it can do in a group of this name."""
WEIGHT_V2, WEIGHT_V1 = "10000", "102400"
"""Of the service on the processor, where a run has 100 and 1024."""
PERIOD_US = 100_000
LEAST_QUOTA_US = 1_000
ADVICE = (
    "start the service as root, or in a group that is delegated to it: "
    "systemd-run --user --scope -p Delegate=yes fairlead up"
)


GPUS = "CUDA_VISIBLE_DEVICES names the devices of a run; work that changes the variable can reach the others"


@dataclass(frozen=True, slots=True)
class Means:
    """What was found. Each directory is one in which groups for runs can be made."""

    unified: Path | None = None
    controllers: frozenset[str] = frozenset()
    """Those of version 2 that bound the groups made in `unified`."""
    kills: bool = False
    """Version 2 kills a whole group in one step."""
    older: Mapping[str, Path] = field(default_factory=dict)
    """Version 1: directory by controller, for those that version 2 does not have."""
    orphans_return: bool = True
    root: bool = False
    inside_unit: str = ""
    """The systemd service that this process is part of, if any."""

    def groups_for(self, run: RunSpec, name: str, *, most_vcore: int, processes: int) -> list[dict[str, Any]]:
        """The groups of one run and the bounds to be set in each, for the supervisor. `processes`: if it names none."""
        count = run.processes or processes
        vcore = run.vcore if run.vcore < most_vcore else 0
        plan: list[dict[str, Any]] = []
        if self.unified is not None:
            settings = _settings_v2(run.memory, vcore, count)
            wanted = [entry for entry in settings if entry[0].partition(".")[0] in self.controllers]
            plan.append({"path": str(self.unified / name), "settings": wanted})
        for controller, settings in _settings_v1(run.memory, vcore, count).items():
            if controller in self.older and (settings or controller in {"freezer", "memory", "cpuacct"}):
                plan.append({"path": str(self.older[controller] / name), "settings": settings})
        return _each_directory_once(plan)

    def bounds(self, controller: str) -> bool:
        """Is there a controller for this?"""
        return controller in self.controllers or controller in self.older

    def capabilities(self, gpus: int) -> list[Capability]:
        """What this machine can enforce and what not, one sentence each."""
        cpu = (
            "only coarsely: a run is bound to as many whole cores as it asked for, the least used ones, and could undo "
            f"that itself; for a real limit {ADVICE}"
        )
        memory = (
            "only by watching: memory is measured four times a second, and what is over its request by more than 2 % "
            f"twice in a row is killed; a sudden burst is not stopped; for a real limit {ADVICE}"
        )
        processes = f"no controller for it, and the limits of a user hold for all his runs together; {ADVICE}"
        found = {
            "cpu limit": self._limit("cpu", cpu),
            "memory limit": self._limit("memory", memory),
            "process limit": self._limit("pids", processes),
            "whole tree killed": self._whole_tree(),
            "gpu visibility": (False, GPUS if gpus else "no GPU was found or declared"),
            "run as submitter": self._submitter(),
            "work outlives the service": self._outlives(),
        }
        return [Capability(name=name, enforced=enforced, how=how) for name, (enforced, how) in found.items()]

    def _limit(self, controller: str, otherwise: str) -> tuple[bool, str]:
        if controller in self.controllers:
            return True, f"control groups version 2 in {self.unified}"
        if controller in self.older:
            return True, f"control groups version 1 in {self.older[controller]}"
        return False, otherwise

    def _whole_tree(self) -> tuple[bool, str]:
        if self.kills:
            return True, f"one write to cgroup.kill in {self.unified}, which takes detached processes too"
        if "freezer" in self.older:
            return True, f"frozen and killed in {self.older['freezer']}, which takes detached processes too"
        if self.orphans_return:
            return True, (
                "detached processes come back to the run's supervisor, which kills until none is left; if the job "
                "killed that, to the service, unless it was started again since"
            )
        return False, "processes are found by a variable in their environment; one that erases it is missed"

    def _submitter(self) -> tuple[bool, str]:
        if self.root:
            return True, "the service is root and drops to the submitter"
        return False, f"the service is not root: all work runs as its own user (uid {os.geteuid()})"

    def _outlives(self) -> tuple[bool, str]:
        if not self.inside_unit:
            return True, "each run has a supervisor in a session of its own; a restarted service adopts it"
        how = f"not when systemd stops {self.inside_unit}, unless its unit says KillMode=process; a crash does no harm"
        return False, how


def _quota(vcore: int) -> str:
    return str(max(LEAST_QUOTA_US, vcore * PERIOD_US // 1000))


def _settings_v2(memory: int, vcore: int, count: int) -> list[list[Any]]:
    settings: list[list[Any]] = []
    if memory:
        settings.append(["memory.max", str(memory), True])
        # Without these two the job could go on in swap, or lose one process and hang. Kernels may lack them.
        settings.append(["memory.swap.max", "0", False])
        settings.append(["memory.oom.group", "1", False])
    if vcore:
        settings.append(["cpu.max", f"{_quota(vcore)} {PERIOD_US}", True])
    if count:
        settings.append(["pids.max", str(count), True])
    return settings


def _settings_v1(memory: int, vcore: int, count: int) -> dict[str, list[list[Any]]]:
    settings: dict[str, list[list[Any]]] = {"memory": [], "cpu": [], "cpuacct": [], "pids": [], "freezer": []}
    if memory:
        settings["memory"].append(["memory.limit_in_bytes", str(memory), True])
        settings["memory"].append(["memory.memsw.limit_in_bytes", str(memory), False])
    if vcore:
        settings["cpu"].append(["cpu.cfs_period_us", str(PERIOD_US), True])
        settings["cpu"].append(["cpu.cfs_quota_us", _quota(vcore), True])
    if count:
        settings["pids"].append(["pids.max", str(count), True])
    return settings


def _each_directory_once(plan: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Version 1 mounts several controllers at one place (cpu,cpuacct), by one name or by a link to it."""
    merged: dict[str, dict[str, Any]] = {}
    for group in plan:
        path = os.path.realpath(group["path"])
        merged.setdefault(path, {"path": path, "settings": []})["settings"].extend(group["settings"])
    return list(merged.values())


def probe(hierarchies: Hierarchies) -> Means:
    """Find out what this machine lets this process do. Makes groups and removes them again; takes some milliseconds."""
    root = os.geteuid() == 0
    name = f"{PROBE}{os.getpid()}"
    unified, controllers, kills = _probe_unified(hierarchies, name, root)
    older: dict[str, Path] = {}
    for controller in (*CONTROLLERS, "cpuacct", "freezer"):
        place = hierarchies.places.get(controller)
        if place is not None and controller not in controllers and _can_hold(_beside(place), name):
            older[controller] = _beside(place)
    if unified is not None:
        older.pop("cpuacct", None)
    if kills:
        older.pop("freezer", None)
    return Means(
        unified=unified,
        controllers=controllers,
        kills=kills,
        older=older,
        orphans_return=_orphans_can_return(),
        root=root,
        inside_unit=_unit(hierarchies),
    )


def _probe_unified(hierarchies: Hierarchies, name: str, root: bool) -> tuple[Path | None, frozenset[str], bool]:
    place = hierarchies.places.get(UNIFIED)
    if place is None:
        return None, frozenset(), False
    usable: list[tuple[Path, frozenset[str]]] = []
    own = _beside(place)
    for base in [own, place.mount] if root and own != place.mount else [own]:
        controllers = _enable(base)
        if _can_hold(base, name):
            usable.append((base, controllers))
            if controllers:
                break
    if not usable:
        return None, frozenset(), False
    base, controllers = max(usable, key=lambda each: len(each[1]))
    return base, controllers, _has_file(base, name, "cgroup.kill")


def _beside(place: Place) -> Path:
    """Where groups are made: a service that has moved itself one level down makes them where it came from."""
    return place.own.parent if place.own.name == SERVICE_LEAF else place.own


def _enable(base: Path) -> frozenset[str]:
    """Switch the controllers on for groups below `base`; those that are on afterwards.

    A group with processes of its own cannot pass controllers on. If this service is all that is in there, it moves one
    level down.
    """
    wanted = [each for each in CONTROLLERS if each in _words(base / "cgroup.controllers")]
    missing = [each for each in wanted if each not in _words(base / "cgroup.subtree_control")]
    if missing and not _switch_on(base, missing) and _words(base / "cgroup.procs") == [str(os.getpid())]:
        leaf = base / SERVICE_LEAF
        with contextlib.suppress(OSError):
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
            _switch_on(base, missing)
    enabled = _words(base / "cgroup.subtree_control")
    return frozenset(each for each in wanted if each in enabled)


def _switch_on(base: Path, controllers: list[str]) -> bool:
    try:
        (base / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in controllers))
    except OSError:
        return False
    return True


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _can_hold(base: Path, name: str) -> bool:
    """Can a group be made in there, and a process of this user be put into it?"""
    group = base / name
    _clear(base, name)
    try:
        group.mkdir()
    except OSError:
        return False
    try:
        if not (group / "cgroup.procs").exists():
            return False
        with _something_alive() as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            return True
    except OSError:
        return False
    finally:
        cgroups.remove([{"path": str(group)}])


def _clear(base: Path, name: str) -> None:
    """Remove what a process left in there that was killed while it looked: its number is another one's by now, or will
    be, and that one could make no group.
    """
    for group in base.glob(f"{PROBE}*"):
        number = group.name.removeprefix(PROBE)
        with contextlib.suppress(OSError):
            if group.name == name or (number.isdigit() and kernel.process(int(number)) is None):
                group.rmdir()


@contextlib.contextmanager
def _something_alive() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits until it is no longer needed."""
    process = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.communicate()


def _has_file(base: Path, name: str, file: str) -> bool:
    group = base / name
    try:
        group.mkdir()
    except OSError:
        return False
    found = (group / file).exists()
    cgroups.remove([{"path": str(group)}])
    return found


def _orphans_can_return() -> bool:
    try:
        import ctypes
    except ImportError:
        return False
    answer = ctypes.c_int()
    return int(ctypes.CDLL(None).prctl(kernel.PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)) == 0


def stand_before_jobs(hierarchies: Hierarchies) -> bool:
    """Give this process the processor before all jobs together, where they have groups beside its own; whether it has.

    The service needs little, and everybody waits for it: also where jobs take every core, or more than there are.
    """
    if (place := hierarchies.places.get(UNIFIED)) is not None and place.own.name == SERVICE_LEAF:
        with contextlib.suppress(OSError):
            (place.own / "cpu.weight").write_text(WEIGHT_V2)
            return True
    if (place := hierarchies.places.get("cpu")) is not None:
        leaf = place.own if place.own.name == SERVICE_LEAF else place.own / SERVICE_LEAF
        with contextlib.suppress(OSError):
            leaf.mkdir(exist_ok=True)
            (leaf / "cpu.shares").write_text(WEIGHT_V1)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
            return True
    return False


def _unit(hierarchies: Hierarchies) -> str:
    """The systemd service that this process is in."""
    with contextlib.suppress(OSError):
        if Path("/proc/1/comm").read_text().strip() == "systemd":
            own = hierarchies.places.get("name=systemd") or hierarchies.places.get(UNIFIED)
            if own is not None and own.own.name.endswith(".service"):
                return own.own.name
    return ""
