"""Output of jobs on its way to the caller's own: which stream goes where, and what stands before its lines.

Decides nothing about when to look. Never loses or doubles a byte. Invariant: with several writers at once a line is
passed on when it is whole, and alone.
"""

from __future__ import annotations

import select
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


class _Lines:
    """Pieces as lines; the pieces of one that goes on are put together once, when it ends."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def ended_by(self, content: bytes) -> list[bytes]:
        """The lines that end in this piece, each without its end."""
        first, *others = content.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        lines, self._rest = [b"".join(self._rest), *others[:-1]], [others[-1]]
        return lines

    def rest(self) -> list[bytes]:
        """The line that has no end, if there is one; from now on it begins anew."""
        rest, self._rest = b"".join(self._rest), []
        return [rest] if rest else []


class Prefixed:
    """Output whose lines begin with the key of a job; a line is passed on when it is whole."""

    _lock = threading.Lock()

    def __init__(self, key: str, out: BinaryIO) -> None:
        self._begin, self._out, self._lines = f"{key}: ".encode(), out, _Lines()

    def write(self, content: bytes) -> None:
        """Take a piece of it; an empty one is its end."""
        lines = self._lines.ended_by(content) if content else self._lines.rest()
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
    kept, lines = deque[bytes](maxlen=min(tail, sys.maxsize)), _Lines()
    for content in contents:
        kept.extend(line + b"\n" for line in lines.ended_by(content))
    kept.extend(lines.rest())
    yield b"".join(kept)


def target(stream: Stream) -> BinaryIO:
    """Where it goes."""
    return (sys.stdout if stream == "stdout" else sys.stderr).buffer


def write(out: Out, content: bytes) -> None:
    """Pass it on at once."""
    out.write(content)
    out.flush()


def is_read() -> bool:
    """Whether anybody can still read standard output: it is no pipe whose reader has gone."""
    poll = select.poll()
    poll.register(1, 0)
    return not any(what & select.POLLERR for _, what in poll.poll(0))
