"""The way of the pages' process to the service."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead.service.http.sockets import Tcp
from fairlead.service.identity import PAGES
from fairlead.service.pages import Pages

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nicegui") is None, reason="needs fairlead[web]")


async def test_without_a_socket_beside_them_nothing_is_left_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that was killed left a folder there for ever."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ExitStack() as stack:
        pages = Pages()
        pages.listen(Tcp(), 0, None, stack)
        assert list(tmp_path.iterdir()) == []

        def knock(command: list[str], stdin: int, pass_fds: list[int]) -> subprocess.Popen[bytes]:
            """In place of the pages, connect to where they are to ask."""
            program = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
            where = command[command.index("--service") + 1]
            return popen([sys.executable, "-c", program, where], stdin=stdin, pass_fds=pass_fds)

        popen = subprocess.Popen
        monkeypatch.setattr(subprocess, "Popen", knock)
        process = await asyncio.to_thread(pages._start)
        assert await asyncio.to_thread(process.wait) == 0
        assert process.stdin is not None
        process.stdin.close()
        came, _ = pages.inside[0].accept()
        with came:
            assert came.family == socket.AF_UNIX
            assert str(came.getsockname()).endswith(PAGES)
    assert list(tmp_path.iterdir()) == []
