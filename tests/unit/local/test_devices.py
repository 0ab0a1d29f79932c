"""What a machine has, and who gets which part of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead.local.devices import UNIFIED, Hierarchies, Place, choose_cpus, choose_gpus, detect_capacity, detect_gpus

CORES = len(os.sched_getaffinity(0)) * 1000
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def group(tmp_path: Path, **files: str) -> Hierarchies:
    """A service two levels down in version 2; the files stand one level above it. `cpu__max` is cpu.max."""
    own = tmp_path / "a/b"
    own.mkdir(parents=True)
    for name, content in files.items():
        (tmp_path / "a" / name.replace("__", ".")).write_text(content)
    return Hierarchies({UNIFIED: Place(tmp_path, own)})


def test_without_bounds_it_is_the_hardware(tmp_path: Path) -> None:
    """Every core this process may use, and all memory."""
    assert detect_capacity(Hierarchies()) == {"vcore": CORES, "memory": MEMORY}
    unbound = group(tmp_path, cpu__max="max 100000\n", memory__max="max\n")
    assert detect_capacity(unbound) == {"vcore": CORES, "memory": MEMORY}


def test_bounds_of_version_2_hold(tmp_path: Path) -> None:
    """A bound of a group above the service is a bound of the service."""
    bound = group(tmp_path, cpu__max="50000 100000\n", memory__max="1000000\n")
    assert detect_capacity(bound) == {"vcore": 500, "memory": 1_000_000}


def test_bounds_of_version_1_hold(tmp_path: Path) -> None:
    """The same in the files of version 1, where -1 and a huge number mean no bound."""
    files = {"cpu__cfs_quota_us": "25000\n", "cpu__cfs_period_us": "50000\n", "memory__limit_in_bytes": "2000000\n"}
    found = group(tmp_path, **files)
    place = found.places[UNIFIED]
    older = Hierarchies({"cpu": place, "memory": place})
    assert detect_capacity(older) == {"vcore": 500, "memory": 2_000_000}
    (tmp_path / "a/cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "a/memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert detect_capacity(older) == {"vcore": CORES, "memory": MEMORY}


def test_gpus_are_counted(tmp_path: Path) -> None:
    """By the driver's list, else by the device files, of which some are no devices."""
    assert detect_gpus(tmp_path) == ()
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "sda"):
        (tmp_path / "dev" / name).touch()
    assert detect_gpus(tmp_path) == (0, 1)
    for bus in ("0000:01:00.0", "0000:41:00.0", "0000:81:00.0"):
        (tmp_path / "proc/driver/nvidia/gpus" / bus).mkdir(parents=True)
    assert detect_gpus(tmp_path) == (0, 1, 2)


def test_the_lowest_free_gpus() -> None:
    """Whatever order they were declared in."""
    assert choose_gpus(2, [3, 1, 0, 2], [1]) == (0, 2)
    assert choose_gpus(0, [], []) == ()


def test_too_few_gpus() -> None:
    """The figures are in the sentence."""
    with pytest.raises(ValueError, match="asks for 2 GPUs; this machine has 2, and 1 are free"):
        choose_gpus(2, [0, 1], [0])


def test_the_least_used_cores() -> None:
    """As many as the share needs, rounded up; the lowest first among equals."""
    assert choose_cpus(1500, [0, 1, 2, 3], {0: 1000, 2: 500}) == (1, 3)
    assert choose_cpus(200, [4, 5], {}) == (4,)
    assert choose_cpus(9000, [0, 1], {}) == (0, 1)
