"""What a user and PID namespace would promise a job of a service that is not root: `docs/threats.md`, tried.

Nothing of ours is in one. These are the facts for which it is so; if one of them changes, that page and its decision
do.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

USER = 65_534
INSIDE = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child"]


Inside = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def inside() -> Iterator[Inside]:
    """Starts a shell as the first process of a PID namespace of its own, as a user who is not root."""
    user = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
    with ExitStack() as stack:

        def start(script: str, cwd: str = "/") -> subprocess.Popen[str]:
            words, pipe = [*INSIDE, "sh", "-c", script], subprocess.PIPE
            made: subprocess.Popen[str] = subprocess.Popen(words, cwd=cwd, stdout=pipe, text=True, **user)  # type: ignore[call-overload]
            stack.enter_context(made)
            stack.callback(made.kill)
            return made

        if start("true").wait(20):
            pytest.skip("users may make no namespaces here")
        yield start


def sleeping(seconds: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(entry.name))
    return found


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 50
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def unlike() -> str:
    """How long something sleeps, by which it is found."""
    return f"8{uuid.uuid4().int % 10**8:08}"


def test_nothing_outside_can_be_signalled(inside: Inside) -> None:
    """Its parent has no number there, nor has anything else of its user."""
    mark = unlike()
    outside = inside(f"exec sleep {mark}")
    until(lambda: bool(sleeping(mark)))
    said, _ = inside(f"echo $PPID; kill -9 -1; kill -9 {sleeping(mark)[0]} || echo none").communicate(timeout=50)
    assert said.split() == ["0", "none"]
    assert sleeping(mark)
    outside.kill()


def test_nothing_is_left_when_what_started_it_is_killed(inside: Inside) -> None:
    """Whatever sessions and environments it made, and whoever takes orphans in."""
    mark = unlike()
    started = inside(f"setsid env -i sleep {mark} & sleep {mark}")
    until(lambda: len(sleeping(mark)) >= 2)
    os.kill(started.pid, signal.SIGKILL)
    until(lambda: not sleeping(mark))


def test_the_first_process_ignores_what_it_does_not_handle(inside: Inside) -> None:
    """So each job would need one more process before it: SIGTERM would stop no `sleep`."""
    mark = unlike()
    started = inside(f"exec sleep {mark}")
    until(lambda: bool(sleeping(mark)))
    [first] = sleeping(mark)
    os.kill(first, signal.SIGTERM)
    time.sleep(0.3)
    assert sleeping(mark)
    os.kill(first, signal.SIGKILL)
    started.wait(20)


def test_it_is_still_its_user_to_the_service(inside: Inside, tmp_path: Path) -> None:
    """Over a Unix socket, and to files: where that is the service's own user, it administers the service."""
    tmp_path.chmod(0o777)
    for above in tmp_path.parents[:3]:
        above.chmod(above.stat().st_mode | 0o055)
    secret = tmp_path / "tokens.json"
    secret.write_text("tokens")
    uid = USER if os.geteuid() == 0 else os.geteuid()
    os.chown(secret, uid, -1)
    secret.chmod(0o600)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        (tmp_path / "s").chmod(0o777)
        listening.listen()
        listening.settimeout(50)
        connect = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('s'); s.recv(1)"
        started = inside(f'cat tokens.json; exec /usr/bin/python3 -c "{connect}"', str(tmp_path))
        connection, _ = listening.accept()
        peer = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        connection.close()
    assert peer[1] == uid
    assert started.communicate(timeout=50)[0] == "tokens"


def test_other_owners_are_nobody_there_and_groups_are_lost(inside: Inside) -> None:
    """What is root's shows as nobody's, and nothing can be given to a group."""
    said, _ = inside("stat -c %u / ; cat /proc/self/setgroups").communicate(timeout=50)
    assert said.split() == ["65534", "deny"]
