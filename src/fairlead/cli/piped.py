"""What is piped into `fairlead run`, on its way to the job.

Decides when there is such input, and hands it to the job through a named pipe, which is the standard input of the job.
Never keeps any of it, and never reads a terminal. Invariant: the bytes go from this process to the job directly, so
that a restart of the service loses and doubles none; the job reads the end of its input when this process is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import termios
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.client.address import Address

_PIECE = 65_536
_OF_SEVERAL = ("array", "idle", "terminal", "stdin")
"""Fields of a job whose standard input cannot be one pipe: it has another, or would be read a second time."""


def source_of(address: Address, body: dict[str, Any]) -> int | None:
    """The descriptor with the input for this job; None: it has none, as where the service is on another machine."""
    if not address.socket or any(body.get(name) for name in _OF_SEVERAL) or body.get("retry", {}).get("limit"):
        return None
    try:
        number = sys.stdin.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return None
    return number if stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode) else None


def is_left_unread() -> bool:
    """Whether something was piped in. What a job that has no such input leaves there is for nobody."""
    try:
        of = os.fstat(0)
        if stat.S_ISREG(of.st_mode):
            return os.lseek(0, 0, os.SEEK_CUR) < of.st_size
        return stat.S_ISFIFO(of.st_mode) and any(fcntl.ioctl(0, termios.FIONREAD, bytes(4)))
    except OSError:
        return False


@contextlib.contextmanager
def passed_on(source: int) -> Iterator[str]:
    """The name of the pipe for what is read from this descriptor; it is there until the block is left, also because the
    terminal is gone: a job that opened it then would wait for ever for somebody to write.
    """
    import shutil
    import signal
    import tempfile
    import threading

    from fairlead.wire.streams import PIPED

    directory = tempfile.mkdtemp(prefix=PIPED[1:])
    path = f"{directory}/stdin"
    os.mkfifo(path, 0o600)
    threading.Thread(target=_copy, args=(source, path), daemon=True).start()

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    ends = [number for number in (signal.SIGHUP, signal.SIGTERM) if signal.getsignal(number) is signal.SIG_DFL]
    for number in ends:
        signal.signal(number, leave)
    try:
        yield path
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        for number in ends:
            signal.signal(number, signal.SIG_DFL)


def _copy(source: int, path: str) -> None:
    """Until the input ends, or the job reads no more."""
    with contextlib.suppress(OSError):
        target = os.open(path, os.O_WRONLY)
        try:
            while content := os.read(source, _PIECE):
                while content:
                    content = content[os.write(target, content) :]
        finally:
            os.close(target)
