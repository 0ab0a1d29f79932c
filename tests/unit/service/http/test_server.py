"""A service stays reachable over its Unix sockets, whoever removes their files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.service.http.connections import Connections
from fairlead.service.http.server import Server
from fairlead.service.http.sockets import on_unix


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def directory() -> Iterator[Path]:
    """Its path is short enough for a socket."""
    made = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    yield made
    shutil.rmtree(made)


async def there(path: Path) -> None:
    async with asyncio.timeout(20):
        while not path.is_socket():
            await asyncio.sleep(0.01)


async def answer(path: Path) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    said = await reader.read()
    writer.close()
    return said


async def course(path: Path) -> None:
    for_all, for_one = path / "s", path / "s.pages"
    sockets = [on_unix(for_all), on_unix(for_one)]
    for_one.chmod(0o600)
    server = Server(application, lambda: None, Connections(100, of_user=10, own_uid=os.geteuid()))  # type: ignore[arg-type]
    serving = asyncio.create_task(server.serve(sockets=sockets))
    keeping = asyncio.create_task(server.keep_reachable(sockets, 0.01))
    while not server.started:
        await asyncio.sleep(0.01)
    for_all.unlink()
    await there(for_all)
    assert (await answer(for_all)).startswith(b"HTTP/1.1 200")
    shutil.rmtree(path)
    await asyncio.sleep(0.05)
    assert not path.exists()
    path.mkdir()
    await there(for_all)
    await there(for_one)
    assert (await answer(for_one)).startswith(b"HTTP/1.1 200")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (for_all, for_one)] == [0o666, 0o600]
    for_one.unlink()
    for_one.write_text("somebody's")
    await asyncio.sleep(0.05)
    assert for_one.read_text() == "somebody's"
    server.stop()
    await serving
    keeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await keeping
    assert [each.name for each in path.iterdir()] == ["s.pages"]


def test_a_socket_that_was_removed_is_made_anew(directory: Path) -> None:
    """With a user's last log-out `$XDG_RUNTIME_DIR` goes: the service went on, and nobody reached it any more."""
    asyncio.run(course(directory))
