"""How much memory is left, from the kernel's figures."""

from __future__ import annotations

from pathlib import Path

from fairlead.local.devices import Hierarchies, Place, read_hierarchies
from fairlead.local.pressure import Memory, of_budget, of_machine

MEMINFO = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\nHugePages_Total:   0\n"
KI = 1024


def proc(directory: Path, meminfo: str = MEMINFO, pressure: str = "") -> Path:
    (directory / "proc" / "pressure").mkdir(parents=True)
    (directory / "proc" / "meminfo").write_text(meminfo)
    if pressure:
        (directory / "proc" / "pressure" / "memory").write_text(pressure)
    return directory / "proc"


def group(directory: Path, **files: str) -> Hierarchies:
    own = directory / "group"
    own.mkdir()
    for name, text in files.items():
        (own / name.replace("__", ".")).write_text(text)
    return Hierarchies({"memory": Place(own, own)})


def test_what_can_be_used_without_swapping_counts(tmp_path: Path) -> None:
    """Not what is unused: caches are given back."""
    assert of_machine(Hierarchies(), proc(tmp_path)) == Memory(1000 * KI, 600 * KI)


def test_a_control_group_that_leaves_less_counts(tmp_path: Path) -> None:
    """Version 2: the bound less what is used, but for file pages that nobody used lately."""
    files = {"memory__max": f"{500 * KI}\n", "memory__current": f"{450 * KI}\n"}
    found = group(tmp_path, **files, memory__stat=f"anon 5\ninactive_file {100 * KI}\n")
    assert of_machine(found, proc(tmp_path)) == Memory(500 * KI, 150 * KI)


def test_a_control_group_of_version_1_counts_too(tmp_path: Path) -> None:
    """With its own names."""
    own = tmp_path / "group"
    own.mkdir()
    (own / "memory.limit_in_bytes").write_text(f"{500 * KI}\n")
    (own / "memory.usage_in_bytes").write_text(f"{490 * KI}\n")
    (own / "memory.stat").write_text("total_inactive_file 0\n")
    assert of_machine(Hierarchies({"memory": Place(own, own)}), proc(tmp_path)) == Memory(500 * KI, 10 * KI)


def test_a_control_group_without_a_bound_does_not(tmp_path: Path) -> None:
    """`max` is none, and so is a bound above what the machine has."""
    found = group(tmp_path, memory__max="max\n", memory__current="1\n")
    assert of_machine(found, proc(tmp_path)) == Memory(1000 * KI, 600 * KI)


def test_the_kernels_own_account_of_waiting_is_read(tmp_path: Path) -> None:
    """Where the kernel keeps one."""
    text = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=1\n"
    found = of_machine(Hierarchies(), proc(tmp_path, pressure=text))
    assert found is not None
    assert found.stalled == 12.5


def test_a_machine_that_says_nothing_is_not_guessed_at(tmp_path: Path) -> None:
    """Then nobody is stopped."""
    assert of_machine(Hierarchies(), proc(tmp_path, meminfo="")) is None


def test_this_machine_has_memory() -> None:
    """The real figures: some of it is available, and not more than there is."""
    found = of_machine(read_hierarchies())
    assert found is not None
    assert 0 < found.available <= found.total


def test_of_a_budget_only_work_counts() -> None:
    """And it is never less than nothing."""
    assert of_budget(100, [30, 20]) == Memory(100, 50)
    assert of_budget(100, [90, 20]) == Memory(100, 0)
