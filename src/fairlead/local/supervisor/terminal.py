"""The terminal of a run, and those who sit at it.

Decides who sees what is written and what becomes of what is typed. Never ends the run, and never makes it wait for
somebody who reads slowly. Invariant: the terminal is there as long as the run is, whoever comes and goes; what is
written goes into the log too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import select
import socket
import struct
import termios
import time

from . import frames
from .output import Output, start_thread
from .run_files import TERMINAL, Record

PIECE = 65_536
SEATS = 8
"""Users at one terminal, at once."""
REMEMBERED = 16_384
"""Bytes of what was written last that who comes is shown first."""
UNREAD = 2**20
"""Bytes that somebody may be behind; who is farther behind loses the seat."""
SILENT_S = 120.0
"""Who says nothing for so long is gone: a user sends a sign of life every now and then."""
_TTY_MODE = 0o620


class _Seat:
    """Somebody at the terminal."""

    def __init__(self, connection: socket.socket, shown: bytes) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.pieces = frames.Pieces()
        self.unsent = frames.piece(frames.OUTPUT, shown) if shown else b""
        self.heard = time.monotonic()

    def send(self) -> bool:
        """Send what can be sent. False: nobody is there any more."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.connection.send(self.unsent[:PIECE]) :]
        except BlockingIOError:
            return len(self.unsent) <= UNREAD
        except OSError:
            return False
        return True


class Terminal:
    """One terminal, and the thread that serves it."""

    def __init__(self, directory: str, run: Record, log: Output) -> None:
        """Make it, for the user that the run runs as. `log`: where what is written goes. Raises OSError."""
        self.log = log
        self.master, self.end = os.openpty()
        os.set_blocking(self.master, False)
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        if run["uid"] is not None:
            os.fchown(self.end, run["uid"], _tty_group(run["gid"]))
        os.fchmod(self.end, _TTY_MODE)
        self.directory = directory
        self.seats: dict[int, _Seat] = {}
        self.typed = b""
        self.shown = b""

    def begin(self) -> None:
        """Serve it, in a thread. Only who has claimed the run does: another one's door must stay. Raises OSError."""
        self.door = _listen(self.directory)
        start_thread(self._serve)

    def let_go(self) -> None:
        """Only the run has the terminal from now on, so that its end is seen."""
        os.close(self.end)

    def _serve(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            for seat in self.seats.values():
                seat.unsent += frames.piece(frames.END)
                seat.connection.setblocking(True)
                seat.connection.settimeout(1.0)
                seat.send()
                seat.connection.close()
            self.door.close()
            self.log.let_go()

    def _turn(self) -> bool:
        """Wait until something comes, and handle it. False: the run has closed its terminal."""
        poll = select.poll()
        poll.register(self.master, select.POLLIN | (select.POLLOUT if self.typed else 0))
        poll.register(self.door, select.POLLIN)
        for number, seat in self.seats.items():
            # Who types faster than the run reads waits.
            poll.register(number, (0 if self.typed else select.POLLIN) | (select.POLLOUT if seat.unsent else 0))
        ready = dict(poll.poll(SILENT_S * 250))
        if self.master in ready and not self._run_says(ready[self.master]):
            return False
        if self.door.fileno() in ready:
            self._come_in()
        now = time.monotonic()
        for number, seat in list(self.seats.items()):
            spoke = ready.get(number, 0) & ~select.POLLOUT
            if (spoke and not self._user_says(seat, now)) or not seat.send() or now - seat.heard > SILENT_S:
                self.seats.pop(number).connection.close()
        return True

    def _run_says(self, what: int) -> bool:
        if what & select.POLLOUT:
            self._type()
        if not what & ~select.POLLOUT:
            return True
        try:
            said = os.read(self.master, PIECE)
        except BlockingIOError:
            return True
        except OSError as problem:
            if problem.errno == errno.EIO:  # No process has it open any more.
                return False
            raise
        if not said:
            return False
        with contextlib.suppress(OSError):
            os.write(self.log.end, said)
        self.shown = (self.shown + said)[-REMEMBERED:]
        for seat in self.seats.values():
            seat.unsent += frames.piece(frames.OUTPUT, said)
        return True

    def _type(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.typed = self.typed[os.write(self.master, self.typed[:PIECE]) :]

    def _come_in(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self.door.accept()
            if len(self.seats) >= SEATS:
                said = f"{SEATS} are at this terminal already, as many as can be"
                connection.sendall(frames.piece(frames.REFUSED, said.encode()))
                connection.close()
                return
            self.seats[connection.fileno()] = _Seat(connection, self.shown)

    def _user_says(self, seat: _Seat, now: float) -> bool:
        try:
            said = seat.connection.recv(PIECE)
            if not said:
                return False
            seat.heard = now
            for letter, content in seat.pieces.feed(said):
                if letter == frames.INPUT:
                    self.typed += content
                elif letter == frames.SIZE:
                    rows, columns = frames.read_size(content)
                    fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        except BlockingIOError:
            return True
        except (OSError, frames.Garbled):
            return False
        self._type()
        return True


def _tty_group(otherwise: int) -> int:
    try:
        return grp.getgrnam("tty").gr_gid
    except KeyError:
        return otherwise


def _listen(directory: str) -> socket.socket:
    """A socket in the directory of the run, for the service alone. Its path may be longer than sockets can have."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    inside = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A supervisor before this one, killed before it had claimed the run, may have left one.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, TERMINAL))
        door.bind(f"/proc/self/fd/{inside}/{TERMINAL}")
        door.listen(SEATS)
    finally:
        os.close(inside)
    door.setblocking(False)
    return door
