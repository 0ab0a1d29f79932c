"""How mounts and own groups become directories, for the kinds of machines there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.local.devices import UNIFIED, Hierarchies, read_hierarchies


def described(tmp_path: Path, mounts: list[str], groups: list[str], directories: list[str]) -> Hierarchies:
    """The hierarchies of a made-up machine whose mount points lie below `tmp_path`."""
    for each in directories:
        (tmp_path / each).mkdir(parents=True)
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text("".join(line.replace("@", str(tmp_path)) + "\n" for line in mounts))
    (proc / "cgroup").write_text("".join(line + "\n" for line in groups))
    return read_hierarchies(proc)


V2 = "30 23 0:26 / @/cg rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
OTHER = "22 1 8:1 / / rw - ext4 /dev/vda rw"


def test_version_2(tmp_path: Path) -> None:
    """One hierarchy for everything; the own group lies below the mount."""
    found = described(tmp_path, [OTHER, V2], ["0::/user.slice/x.scope"], ["cg/user.slice/x.scope"])
    assert set(found.places) == {UNIFIED}
    assert found.places[UNIFIED].own == tmp_path / "cg/user.slice/x.scope"
    assert list(found.upwards("memory")) == [
        tmp_path / "cg/user.slice/x.scope",
        tmp_path / "cg/user.slice",
        tmp_path / "cg",
    ]


def test_version_1_with_joint_controllers(tmp_path: Path) -> None:
    """Two controllers at one place are found under both names; a named hierarchy under its name."""
    mounts = [
        "31 23 0:27 / @/cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
        "32 23 0:28 / @/cg/systemd rw - cgroup cgroup rw,xattr,name=systemd",
    ]
    groups = ["4:cpu,cpuacct:/a", "1:name=systemd:/b"]
    found = described(tmp_path, mounts, groups, ["cg/cpu,cpuacct/a", "cg/systemd/b"])
    assert found.places["cpu"] == found.places["cpuacct"]
    assert found.places["cpu"].own == tmp_path / "cg/cpu,cpuacct/a"
    assert found.places["name=systemd"].own == tmp_path / "cg/systemd/b"


def test_both_versions_side_by_side(tmp_path: Path) -> None:
    """On a hybrid machine bounds may stand in either, the controller's own hierarchy first."""
    mounts = ["31 23 0:27 / @/cg/memory rw - cgroup cgroup rw,memory", V2.replace("@/cg", "@/cg/unified")]
    found = described(tmp_path, mounts, ["4:memory:/a", "0::/"], ["cg/memory/a", "cg/unified"])
    assert list(found.upwards("memory")) == [tmp_path / "cg/memory/a", tmp_path / "cg/memory", tmp_path / "cg/unified"]


def test_a_container_whose_mount_is_its_own_group(tmp_path: Path) -> None:
    """The path below the mount's root is used; a path of the host that is not visible here means the mount itself."""
    line = "31 23 0:27 /docker/abc @/cg/memory ro - cgroup cgroup rw,memory"
    inside = described(tmp_path, [line], ["4:memory:/docker/abc/sub"], ["cg/memory/sub"])
    assert inside.places["memory"].own == tmp_path / "cg/memory/sub"
    (tmp_path / "proc/cgroup").write_text("4:memory:/elsewhere\n")
    assert read_hierarchies(tmp_path / "proc").places["memory"].own == tmp_path / "cg/memory"


def test_names_with_blanks(tmp_path: Path) -> None:
    """The kernel writes a blank in a mount point as \\040."""
    found = described(tmp_path, [V2.replace("@/cg", "@/c\\040g")], ["0::/"], ["c g"])
    assert found.places[UNIFIED].mount == tmp_path / "c g"


@pytest.mark.parametrize("mounts", [[], [OTHER]])
def test_no_control_groups(tmp_path: Path, mounts: list[str]) -> None:
    """A machine without them has none, and none are searched for."""
    found = described(tmp_path, mounts, [], [])
    assert found == Hierarchies()
    assert list(found.upwards("cpu")) == []
    assert read_hierarchies(tmp_path / "nowhere") == Hierarchies()
