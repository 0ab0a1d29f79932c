"""A state directory on a disk that is read-only, full, or was damaged: the start says what, where and what to do."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.nursery import Nursery
from testbed.unix_socket import Unix, wait_until_served

pytestmark = [pytest.mark.thorough, pytest.mark.real, pytest.mark.timeout(120)]


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small file system of its own."""
    with tempfile.TemporaryDirectory(prefix="fl", dir="/tmp") as name:
        path = Path(name) / "disk"
        path.mkdir()
        options = "size=32m,nr_inodes=300"
        if (
            os.geteuid()
            or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], check=False).returncode
        ):
            pytest.skip("only root can mount a small disk")
        try:
            yield path
        finally:
            subprocess.run(["umount", "-l", path], check=True)


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


class Service:
    """A service whose state is on that disk."""

    def __init__(self, nursery: Nursery, disk: Path) -> None:
        self.nursery, self.state = nursery, disk / "state"
        self.socket, self.log = disk.parent / "s", disk.parent / "log"

    def start(self):  # type: ignore[no-untyped-def]
        words = ("--state", str(self.state), "--socket", str(self.socket), "--no-tcp", "--keep-free", "0")
        return self.nursery.start("up", *words, log=self.log)

    def refused(self) -> str:
        """What a start that is refused says: one sentence, no traceback."""
        self.log.write_text("")
        assert self.start().wait(50) == 1
        said = self.log.read_text()
        assert "Traceback" not in said
        last = said.splitlines()[-1]
        assert last.startswith("fairlead: ")
        return last

    def ready(self):  # type: ignore[no-untyped-def]
        started = self.start()
        wait_until_served(self.socket, lambda: None if started.poll() is None else self.log.read_text())
        return started

    def call(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        connection = Unix(self.socket)
        try:
            connection.request(method, f"/api/v1{path}", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def service(nursery: Nursery, disk: Path) -> Service:
    return Service(nursery, disk)


def test_a_read_only_disk_is_said(service: Service, disk: Path) -> None:
    """Whether there is a state on it or not; nothing is lost, and it starts when the disk can be written again."""
    remount(disk, "ro")
    assert "read-only" in service.refused().lower()
    remount(disk, "rw")
    killed = service.ready()
    killed.kill()
    killed.wait(50)
    remount(disk, "ro")
    assert "read-only" in service.refused().lower()
    remount(disk, "rw")
    started = service.ready()
    started.terminate()
    assert started.wait(50) == 0


def test_a_disk_without_an_inode_left_is_said(service: Service, disk: Path) -> None:
    """A start needs some files."""
    for number in range(1000):
        try:
            (disk / f"f{number}").touch()
        except OSError:
            break
    assert "No space left on device" in service.refused()
    assert str(service.state) in service.refused()


@pytest.mark.parametrize("keep", [0, 1, 99, 4096, 5000, 0.5, 0.9])
def test_a_truncated_database_is_said(service: Service, keep: float) -> None:
    """Wherever it was cut; what there is is left as it is."""
    started = service.ready()
    for _ in range(20):
        assert service.call("POST", "/jobs", '{"jobs": [{"command": ["/bin/true"], "hold": true}]}')[0] == 201
    started.terminate()
    started.wait(50)
    path = service.state / "journal.db"
    whole = path.read_bytes()
    cut = whole[: int(keep * len(whole)) if isinstance(keep, float) else keep]
    path.write_bytes(cut)
    said = service.refused()
    assert str(path) in said
    assert "backup" in said
    assert path.read_bytes() == cut
    path.write_bytes(whole)
    service.ready().kill()


def test_the_state_directory_vanishes(service: Service) -> None:
    """The service says so, and takes in nothing that would be lost; no traceback."""
    started = service.ready()
    assert service.call("POST", "/jobs", '{"jobs": [{"command": ["/bin/true"]}]}')[0] == 201
    subprocess.run(["rm", "-rf", service.state], check=True)
    status, answer = service.call("POST", "/jobs", '{"jobs": [{"command": ["/bin/true"]}]}')
    assert (status, b"cannot be used: No such file or directory" in answer) == (507, True)
    assert b"cannot be used" in service.call("GET", "/info")[1]
    assert service.call("GET", "/jobs")[0] == 200
    started.terminate()
    started.wait(40)
    assert "Traceback" not in service.log.read_text()
