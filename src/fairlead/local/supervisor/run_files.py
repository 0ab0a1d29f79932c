"""The files of a run's directory, and how they are written.

Decides the names and the order of durability. Never decides what they say. Invariants: a record is read as it was
written or called damaged (`sealed`), and is there whole or not at all; `claim` is there at most once: whoever made it
is the only one who ever executes the run.

    spec       what to execute; written by the machine, read by the supervisor
    claim      who executes it: supervisor and command by pid and start time; made durable before the command begins
    stop       the wish that it ends, with its grace period; written by the machine
    course     how it is to go on, where `spec` does not say so: its time limit, whether it stands still
    result     how it ended
    script     its text, where the run is a script; written by the machine
    terminal   the socket of its terminal, where it has one
    forgotten  the result of a run that nobody asks about any more; keeps it from being executed again
    stdout.log, stderr.log
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from .sealed import seal_record, unseal_record

SPEC = "spec"
CLAIM = "claim"
STOP = "stop"
COURSE = "course"
RESULT = "result"
SCRIPT = "script"
TERMINAL = "terminal"
FORGOTTEN = "forgotten"
STDOUT = "stdout.log"
STDERR = "stderr.log"
RESERVED_BYTES = {RESULT: 32_768, STOP: 4_096, COURSE: 4_096}
"""Room that is taken for these before the job begins: a full disk can neither swallow its end nor keep it running,
nor let it run on while it is called suspended."""

Record = dict[str, Any]


def now_ms() -> int:
    """The real time in milliseconds."""
    return time.time_ns() // 1_000_000


def read(directory: str, name: str) -> Record | None:
    """One record of the directory; None if it is not there. Raises `Damaged`, OSError."""
    try:
        with open(os.path.join(directory, name), "rb") as file:
            return unseal_record(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None


def exists(directory: str, name: str) -> bool:
    """Is this file of the directory there?"""
    return os.path.lexists(os.path.join(directory, name))


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _put(path: str, content: bytes, *, durable: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, content)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]


def write(directory: str, name: str, record: Record, *, durable: bool = True) -> None:
    """Write one file of the directory in one step: a reader sees the old one or the new one.

    Raises OSError (disk full, no such directory).
    """
    fresh = os.path.join(directory, f".{name}.{os.getpid()}")
    try:
        _put(fresh, seal_record(record), durable=durable)
        os.rename(fresh, os.path.join(directory, name))
    except OSError:
        _remove_quietly(fresh)
        raise
    if durable:
        sync_directory(directory)


def claim(directory: str, record: Record) -> bool:
    """Take the run for this process, durably. False: another one has it. Raises OSError.

    A link fails if the name is taken, and the content is complete before the name exists.
    """
    fresh = os.path.join(directory, f".{CLAIM}.{os.getpid()}")
    try:
        _put(fresh, seal_record(record), durable=True)
        os.link(fresh, os.path.join(directory, CLAIM))
    except FileExistsError:
        return False
    finally:
        _remove_quietly(fresh)
    sync_directory(directory)
    sync_directory(os.path.dirname(os.path.abspath(directory)))
    return True


def reserve(directory: str) -> None:
    """Take the room for what may have to be written on a full disk now. Raises OSError if it is full already."""
    for name, size in RESERVED_BYTES.items():
        # Whole before it has its name: the machine may look for it, to write the wish to stop, at any moment.
        fresh = os.path.join(directory, f".{name}.{os.getpid()}")
        _put(fresh, b" " * size, durable=True)
        os.rename(fresh, _reserved(directory, name))


def write_reserved(directory: str, name: str, record: Record) -> None:
    """As `write`, into the reserved room if there is one: then it needs neither space nor a file more."""
    reserved = _reserved(directory, name)
    try:
        fd = os.open(reserved, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        write(directory, name, record)
        return
    try:
        # The rest stays blank. A shorter file would do, but some file systems need a new block to make it shorter.
        _write_all(fd, seal_record(record).ljust(RESERVED_BYTES[name]))
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(reserved, os.path.join(directory, name))
    sync_directory(directory)


def take_back(directory: str, name: str) -> None:
    """What stands there gives its room to what is written next. Raises OSError."""
    os.rename(os.path.join(directory, name), _reserved(directory, name))


def _reserved(directory: str, name: str) -> str:
    return os.path.join(directory, f"{name}.reserved")


def _remove_quietly(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
