"""Which bounds are written where, on each rung of the ladder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fairlead.local.devices import UNIFIED, Hierarchies, Place, read_hierarchies
from fairlead.local.means import PROBE, SERVICE_LEAF, Means, _clear, probe, stand_before_jobs
from fairlead.local.runs import RunSpec

RUN = RunSpec(key="a", command=("true",), vcore=1500, memory=1 << 30)


def bounds(means: Means, run: RunSpec = RUN, *, most_vcore: int = 8000) -> dict[str, dict[str, str]]:
    """Group directory: the settings in it, in order."""
    plan = means.groups_for(run, "g", most_vcore=most_vcore, processes=100)
    return {group["path"]: {name: value for name, value, _ in group["settings"]} for group in plan}


def test_version_2_with_all_controllers(tmp_path: Path) -> None:
    """One group with every bound; swap is no way round the memory bound, and a run is killed whole."""
    means = Means(unified=tmp_path, controllers=frozenset({"cpu", "memory", "pids"}), kills=True)
    assert bounds(means) == {
        f"{tmp_path}/g": {
            "memory.max": str(1 << 30),
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "cpu.max": "150000 100000",
            "pids.max": "100",
        }
    }


def test_version_2_without_controllers(tmp_path: Path) -> None:
    """The group is made all the same: it kills the whole tree."""
    assert bounds(Means(unified=tmp_path, kills=True)) == {f"{tmp_path}/g": {}}


def test_version_2_and_version_1_share_the_job(tmp_path: Path) -> None:
    """Each bound stands where its controller is."""
    means = Means(unified=tmp_path / "u", controllers=frozenset({"pids"}), older={"memory": tmp_path / "m"})
    assert bounds(means) == {
        f"{tmp_path}/u/g": {"pids.max": "100"},
        f"{tmp_path}/m/g": {"memory.limit_in_bytes": str(1 << 30), "memory.memsw.limit_in_bytes": str(1 << 30)},
    }


def test_version_1_with_joint_mounts(tmp_path: Path) -> None:
    """Controllers that are mounted together, or linked to, make one group."""
    (tmp_path / "cpu,cpuacct").mkdir()
    (tmp_path / "cpu").symlink_to("cpu,cpuacct")
    means = Means(older={"cpu": tmp_path / "cpu", "cpuacct": tmp_path / "cpu,cpuacct", "freezer": tmp_path / "f"})
    assert bounds(means) == {
        f"{tmp_path}/cpu,cpuacct/g": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
        f"{tmp_path}/f/g": {},
    }


def test_nothing_is_made_where_nothing_is_offered() -> None:
    """Without control groups there is no plan."""
    assert bounds(Means()) == {}


def test_no_bound_where_none_is_asked_for(tmp_path: Path) -> None:
    """0 is no limit, and the whole machine is no limit either; the number of processes has a default."""
    means = Means(unified=tmp_path, controllers=frozenset({"cpu", "memory", "pids"}))
    free = RunSpec(key="a", command=("true",))
    assert bounds(means, free) == {f"{tmp_path}/g": {"pids.max": "100"}}
    assert "cpu.max" not in bounds(means, most_vcore=1500)[f"{tmp_path}/g"]
    named = RunSpec(key="a", command=("true",), processes=7)
    assert bounds(means, named) == {f"{tmp_path}/g": {"pids.max": "7"}}


def test_the_smallest_share_is_one_the_kernel_takes(tmp_path: Path) -> None:
    """The kernel takes no quota below a millisecond."""
    means = Means(unified=tmp_path, controllers=frozenset({"cpu"}))
    tiny = RunSpec(key="a", command=("true",), vcore=1)
    assert bounds(means, tiny) == {f"{tmp_path}/g": {"cpu.max": "1000 100000"}}


@pytest.mark.real
def test_what_was_probed_is_gone() -> None:
    """The probe finds something or nothing, and leaves nothing behind."""
    hierarchies = read_hierarchies()
    means = probe(hierarchies)
    assert means.root == (os.geteuid() == 0)
    assert means.orphans_return
    bases = {place.own for place in hierarchies.places.values()}
    # Other processes may be probing at this moment: what is left of this one's probe carries its number.
    assert not [base for base in sorted(bases) if (base / f"{PROBE}{os.getpid()}").exists()]


@pytest.mark.real
def test_what_a_killed_process_left_of_its_probe_is_in_nobodys_way() -> None:
    """It had the number that this one has now, or one that is free."""
    hierarchies = read_hierarchies()
    means = probe(hierarchies)
    gone = subprocess.Popen(["true"])
    gone.wait()
    groups = [means.unified] if means.unified is not None else []
    left = [base / f"{PROBE}{pid}" for base in (*groups, *means.older.values()) for pid in (os.getpid(), gone.pid)]
    for group in left:
        group.mkdir(exist_ok=True)
    assert probe(hierarchies) == means
    assert not [group for group in left if group.exists()]


def test_what_another_process_looks_at_is_left_alone(tmp_path: Path) -> None:
    """And what is no such group."""
    for name in (f"{PROBE}{os.getppid()}", f"{PROBE}x", f"{PROBE}{os.getpid()}", "other"):
        (tmp_path / name).mkdir()
    _clear(tmp_path, f"{PROBE}{os.getpid()}")
    assert {path.name for path in tmp_path.iterdir()} == {f"{PROBE}{os.getppid()}", f"{PROBE}x", "other"}


@pytest.mark.real
def test_a_directory_that_is_no_control_group_is_not_taken_for_one(tmp_path: Path) -> None:
    """A mount that does not do what control groups do offers nothing."""
    tmp_path.chmod(0o555)
    plain = Place(tmp_path, tmp_path)
    means = probe(Hierarchies({UNIFIED: plain, "memory": plain}))
    assert not means.controllers
    assert not means.kills
    tmp_path.chmod(0o755)


def test_capabilities_are_honest() -> None:
    """What no controller bounds is not called enforced, and says what would change it."""
    bare = {each.name: each for each in Means(orphans_return=False).capabilities(0)}
    assert not any(each.enforced for name, each in bare.items() if name != "work outlives the service")
    assert "systemd-run" in bare["memory limit"].how
    unit = Means(inside_unit="fairlead.service").capabilities(0)
    assert "KillMode=process" in next(each.how for each in unit if each.name == "work outlives the service")


def test_the_service_goes_before_all_jobs_together(tmp_path: Path) -> None:
    """In version 2 where it has a group of its own; in version 1 it moves into one, and jobs have theirs beside it."""
    newer, older = tmp_path / "new", tmp_path / "old"
    for directory in (newer / SERVICE_LEAF, older):
        directory.mkdir(parents=True)
    unified = Hierarchies({UNIFIED: Place(newer, newer / SERVICE_LEAF)})
    assert stand_before_jobs(unified)
    assert (newer / SERVICE_LEAF / "cpu.weight").read_text() == "10000"

    for own in (older, older / SERVICE_LEAF):
        assert stand_before_jobs(Hierarchies({"cpu": Place(older, own)}))
        assert (older / SERVICE_LEAF / "cpu.shares").read_text() == "102400"
        assert (older / SERVICE_LEAF / "cgroup.procs").read_text() == str(os.getpid())
    assert not stand_before_jobs(Hierarchies({UNIFIED: Place(newer, newer)})), "jobs are not beside it there"
    assert not stand_before_jobs(Hierarchies())
