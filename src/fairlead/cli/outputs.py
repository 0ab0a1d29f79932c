"""Output of jobs on its way to the caller's own: which stream goes where, and what stands before its lines.

Decides nothing about when to look. Never loses or doubles a byte. Invariant: with several writers at once a line is
passed on when it is whole, and alone.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.client.routes import Stream

_PART = 2**20


class Out(Protocol):
    """Where output goes."""

    def write(self, content: bytes, /) -> object:
        """Take a piece of it."""

    def flush(self) -> None:
        """Show it."""


class Prefixed:
    """Output whose lines begin with the key of a job; a line is passed on when it is whole."""

    _lock = threading.Lock()

    def __init__(self, key: str, out: BinaryIO) -> None:
        self._begin, self._out, self._rest = f"{key}: ".encode(), out, b""

    def write(self, content: bytes) -> None:
        """Take a piece of it; an empty one is its end."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        if not content and self._rest:
            lines, self._rest = [self._rest], b""
        with self._lock:
            self._out.write(b"".join(self._begin + line + b"\n" for line in lines))

    def flush(self) -> None:
        """Show it."""
        with self._lock:
            self._out.flush()


class Source(NamedTuple):
    """One output of a job, from where it is to be followed."""

    key: str
    stream: Stream
    out: Out
    offset: int = 0
    attempt: int = 1


def so_far(client: Client, key: str, stream: Stream, attempt: int | None = None) -> Iterator[bytes]:
    """What an attempt has written by now."""
    offset = 0
    while content := client.log(key, stream, offset=offset, limit=_PART, attempt=attempt):
        offset += len(content)
        yield content


def last_lines(contents: Iterator[bytes], tail: int) -> Iterator[bytes]:
    """The last lines of it."""
    kept, rest = deque[bytes](maxlen=tail), b""
    for content in contents:
        *lines, rest = (rest + content).split(b"\n")
        kept.extend(line + b"\n" for line in lines)
    if rest:
        kept.append(rest)
    yield b"".join(kept)


def target(stream: Stream) -> BinaryIO:
    """Where it goes."""
    return (sys.stdout if stream == "stdout" else sys.stderr).buffer


def write(out: Out, content: bytes) -> None:
    """Pass it on at once."""
    out.write(content)
    out.flush()
