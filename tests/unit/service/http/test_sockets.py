"""`fairlead.service.http.sockets`: a socket file that stays does no harm, nor does what a killed service left."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead.service.http import sockets
from fairlead.service.http.sockets import ListenError, on_tcp, on_unix, remove_socket


def test_a_socket_that_the_disk_keeps_stops_nothing(tmp_path: Path) -> None:
    """The service ended with a traceback where its folder had become read-only; the next start replaces the file."""
    gone, kept = tmp_path / "gone", Path("/proc/version")
    gone.touch()
    for path in (gone, kept):
        remove_socket(path, path.lstat().st_ino)
    assert not gone.exists()
    assert kept.exists()


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_what_is_no_name_is_no_address(host: str) -> None:
    """It is said so, by no traceback."""
    with pytest.raises(ListenError, match="is no address to listen on"):
        on_tcp(host, 0)


@contextmanager
def held(listening: socket.socket, seconds: float) -> Iterator[None]:
    """A child that a killed service left has its socket still, for so long, and answers nothing."""
    child = subprocess.Popen(["sleep", f"{seconds}"], pass_fds=(listening.fileno(),))
    listening.close()
    try:
        yield
    finally:
        child.kill()
        child.wait()


def test_what_a_killed_service_left_behind_keeps_no_address_for_long(tmp_path: Path) -> None:
    """Neither its Unix socket nor its port."""
    path = tmp_path / "s"
    with held(on_unix(path), 0.4):
        on_unix(path).close()
    first = on_tcp("127.0.0.1", 0)
    port = first.getsockname()[1]
    with held(first, 0.4):
        on_tcp("127.0.0.1", port).close()


def test_an_address_that_stays_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "GONE_S", 0.3)
    path = tmp_path / "s"
    with held(on_unix(path), 60), pytest.raises(ListenError, match=r"answers on .* already"):
        on_unix(path)
    path.unlink()
    listening = on_tcp("127.0.0.1", 0)
    with pytest.raises(ListenError, match="is another service running"):
        on_tcp("127.0.0.1", listening.getsockname()[1])
    listening.close()


def test_a_service_that_answers_is_told_at_once(tmp_path: Path) -> None:
    """Nobody waits for it to be gone."""
    path = tmp_path / "s"
    listening = on_unix(path)
    listening.setblocking(True)

    def answer() -> None:
        taken, _ = listening.accept()
        with taken:
            taken.recv(100)
            taken.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    thread = threading.Thread(target=answer)
    thread.start()
    began = time.monotonic()
    with pytest.raises(ListenError, match="already"):
        on_unix(path)
    assert time.monotonic() - began < sockets.GONE_S / 2
    thread.join()
    listening.close()
