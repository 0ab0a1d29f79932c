"""What a run writes, from the pipe that it writes to into files that stay bounded.

Decides what is kept: the beginning, and the newest of the rest. Never makes a run wait for a full disk, and never fails
it. Invariant: the files of one output hold no more than its bound (and a line); what is not in them is named there; a
byte that stands in the log stays at its place.

The first half of the bound goes to the log. What comes then goes to two files beside it in turn (`stdout.log.1`,
`stdout.log.2`), of a quarter each: when both are full, the older begins anew. At the end of the run they follow in the
log, behind a line that says how much was left out between.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import os
from collections.abc import Callable

from .run_files import Record

PIECE = 65_536
LEAST_TAIL = 2048
"""Bytes of one of the two files, at least."""
PATIENCE_S = 30.0
"""When nothing of the run is left, its pipe is at its end; something that could not be killed may hold it open."""


def start_thread(work: Callable[[], None]) -> None:
    """Begin it beside. Raises OSError, not Python's RuntimeError, where the kernel has no more threads or memory."""
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError as problem:
        raise OSError(errno.EAGAIN, str(problem)) from None


class Output:
    """One of the two outputs of a run."""

    def __init__(self, directory: str, name: str, run: Record) -> None:
        """Make the pipe, for the user that the run runs as: it may be opened again, as /dev/stdout."""
        self.path = os.path.join(directory, name)
        self.run = run
        self.most_tail = max(run["output_bytes"] // 4, LEAST_TAIL)
        self.room = 2 * self.most_tail if run["output_bytes"] else None
        """How much more goes into the file that is written; None: whatever comes."""
        self.out, self.end = os.pipe()
        if run["uid"] is not None:
            os.fchown(self.end, run["uid"], run["gid"])
        self.log = self.file = -1
        self.tails: list[str] = []
        """The files beside the log, the newer last."""
        self.left_out = 0
        self.lost = 0
        """Bytes that found no room on the disk since some last did."""
        self.over = _thread.allocate_lock()

    def begin(self) -> None:
        """Make the log and copy into it what comes, in a thread. Raises OSError."""
        try:
            self.log = self.file = self._make(self.path)
        except OSError as problem:
            raise OSError(problem.errno, f"the log file {self.path} cannot be made: {problem.strerror}") from None
        self.over.acquire()
        start_thread(self._copy)

    def let_go(self) -> None:
        """Only the run writes to the pipe from now on, so that its end is seen."""
        os.close(self.end)

    def finish(self) -> int:
        """Wait until all that was written is in the files; how many bytes at the end found no room."""
        self.over.acquire(timeout=PATIENCE_S)
        return self.lost

    def _make(self, path: str) -> int:
        """Only where no file is, in a directory of the service: no link of another user is ever followed."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if self.run["uid"] is not None:
            os.fchown(fd, self.run["uid"], self.run["gid"])
        return fd

    def _copy(self) -> None:
        try:
            while piece := os.read(self.out, PIECE):
                while piece:
                    if self.room == 0 and not self._next_tail():
                        self.lost += len(piece)
                        break
                    part = piece if self.room is None else piece[: self.room]
                    self._write(part)
                    piece = piece[len(part) :]
            if self.tails:
                self._append_tails()
            self._write(b"")
        finally:
            self.over.release()

    def _write(self, piece: bytes) -> None:
        """What does not fit on the disk is left out, and the next that does begins with a line that says so."""
        if self.lost and self._say(f"{self.lost} bytes are missing here: the disk was full"):
            self.lost = 0
        if not self.lost:
            done = _put(self.file, piece)
            self.lost = len(piece) - done
            self.room = None if self.room is None else self.room - done
        else:
            self.lost += len(piece)

    def _say(self, sentence: str) -> bool:
        """A line of our own into the file that is written."""
        line = f"\n[fairlead: {sentence}]\n".encode()
        return _put(self.file, line) == len(line)

    def _next_tail(self) -> bool:
        """Begin another file beside the log, the older of two anew. False: there is no room for a file."""
        path = f"{self.path}.1" if not self.tails or self.tails[-1].endswith("2") else f"{self.path}.2"
        try:
            if path in self.tails:
                if not self.left_out:
                    names = " and ".join(sorted(map(os.path.basename, self.tails)))
                    _put(self.log, f"\n[fairlead: longer than its bound: the newest is in {names}]\n".encode())
                self.left_out += os.stat(path).st_size
                os.unlink(path)
                self.tails.remove(path)
            fresh = self._make(path)
        except OSError:
            return False
        if self.file != self.log:
            os.close(self.file)
        self.tails.append(path)
        self.file, self.room = fresh, self.most_tail
        return True

    def _append_tails(self) -> None:
        """The rest follows in the log; where there is no room for that, it stays beside it."""
        if self.file != self.log:
            os.close(self.file)
        self.file, self.room = self.log, None
        if self.left_out:
            self._say(f"{self.left_out} bytes were left out here")
        for path in self.tails:
            with contextlib.suppress(OSError), open(path, "rb") as tail:
                while piece := tail.read(PIECE):
                    if _put(self.log, piece) < len(piece):
                        self._say(f"the rest is in {os.path.basename(path)}: the disk was full")
                        return
                os.unlink(path)


def _put(fd: int, content: bytes) -> int:
    """Write as much as there is room for; how much that was."""
    done = 0
    with contextlib.suppress(OSError):
        while done < len(content):
            done += os.write(fd, content[done:])
    return done
