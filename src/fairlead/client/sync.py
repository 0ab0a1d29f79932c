"""The client for programs without an event loop, and for the command line.

Decides when a call is sent again: only if it can do no harm. Never keeps a connection between calls. Invariant: a
submission carries an idempotency key, so that sending it again cannot submit twice.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fairlead.client import http
from fairlead.client.address import Address
from fairlead.client.errors import Unreachable
from fairlead.client.http import Answer, Call, EventReader, ServerEvent
from fairlead.client.paging import page_of, things_of
from fairlead.client.routes import Routes, Stream

if TYPE_CHECKING:
    from fairlead.client.terminals import Terminal
    from fairlead.wire.jobs import JobDetails

T = TypeVar("T")
PAUSES_S = (0.1, 0.4, 1.0)
"""Waits before the second, third and fourth attempt of a call that may be repeated."""
LIVE = frozenset({"waiting", "running", "suspended", "stopping"})
"""States of a job that has not ended."""
_LOOKS_S = (0.05, 0.1, 0.2, 0.4)
_CHUNK = 65_536


class Client(Routes):
    """Calls on one service. Without an address: that of the environment, the configuration, or the usual place."""

    # -- what takes time ---------------------------------------------------------------------------------------------

    def log(
        self,
        key: str,
        stream: Stream = "stdout",
        *,
        offset: int = 0,
        limit: int | None = None,
        attempt: int | None = None,
    ) -> bytes:
        """What a job wrote so far from byte `offset` on (below 0: counted from the end), at most `limit`.

        It is that of its newest attempt, or of another one.
        """
        return b"".join(self._pieces(self._log(key, stream, offset, limit, attempt, follow=False), self.timeout_s))

    def follow(
        self, key: str, stream: Stream = "stdout", *, offset: int = 0, attempt: int | None = None
    ) -> Iterator[bytes]:
        """What a job writes, from byte `offset` on (below 0: from the end), until it (or that attempt) has ended."""
        return self._pieces(self._log(key, stream, offset, None, attempt, follow=True), None)

    def events(
        self,
        *,
        after: str = "",
        since: int | None = None,
        timeout_s: float | None = None,
        opened: Callable[[], None] = lambda: None,
    ) -> Iterator[ServerEvent]:
        """What happens from now on, after the event `after`, or since record `since`; ends when the service closes.

        `timeout_s`: the longest silence (heartbeats count) before the stream is taken for dead. `opened` is called
        once, when the stream has begun: whatever happens after that is told.
        """
        reader, is_open = EventReader(), False
        for piece in self._pieces(self._events(after, since), timeout_s):
            if not is_open:
                is_open = True
                opened()
            yield from reader.feed(piece)

    def wait(self, key: str, *, timeout_s: float | None = None) -> JobDetails:
        """The job once it has ended. Raises `TimeoutError` if it has not by then."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pauses = iter(_LOOKS_S)
        while (job := self.job(key)).state in LIVE:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{key} is {job.state} after {timeout_s:g} s")
            time.sleep(next(pauses, 0.5))
        return job

    @contextmanager
    def terminal(self, key: str) -> Iterator[Terminal]:
        """Sit at the terminal of a job that runs, until the block ends; the terminal and the job go on."""
        from fairlead.client.terminals import Terminal

        with self._connected(None) as connection:
            yield Terminal(connection, self.address, key)

    # -- transport ---------------------------------------------------------------------------------------------------

    def send(self, call: Call[T], shape: Any) -> T:
        """The answer to a call. Sent again when the connection broke, if that can do no harm."""
        started = False
        for pause in (*PAUSES_S, None):
            try:
                content = b"".join(self._pieces(call, self.timeout_s + call.takes_s))
                answer: T = http.decoded(content, shape, self.address)
                return answer
            except Unreachable as error:
                # That nothing answers any more does not take back what an earlier attempt may have brought there.
                started = error.started = started or error.started
                if pause is None or not (call.repeat and started):
                    raise
                time.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def things(self, call: Call[T], shape: Any) -> Iterator[T]:
        """All things of a list, page by page."""
        left, after = call.most, None
        while left is None or left > 0:
            page: Any = self.send(page_of(call, after, left), shape)
            yield from things_of(page)
            left, after = None if left is None else left - len(things_of(page)), page.next
            if after is None:
                return

    def _pieces(self, call: Call[Any], timeout_s: float | None) -> Iterator[bytes]:
        """The content of an answer as it arrives."""
        answer = Answer()
        with self._connected(timeout_s) as connection, self._unbroken(timeout_s):
            with suppress(BrokenPipeError):  # What is too large for the service it does not read to the end.
                connection.sendall(http.request(call, self.address))
            while not answer.complete:
                if piece := answer.feed(connection.recv(_CHUNK)):
                    yield piece
        answer.check(self.address)

    @contextmanager
    def _unbroken(self, timeout_s: float | None) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise Unreachable(f"the service at {self.address} did not answer in {timeout_s:g} s", True) from None
        except (OSError, http.CutShort) as error:
            raise broken(error, self.address) from None

    @contextmanager
    def _connected(self, timeout_s: float | None) -> Iterator[socket.socket]:
        """`timeout_s`: for each piece of what comes; None: there is no end to it, but to the connecting there is."""
        address = self.address
        try:
            connection = _connect(address, self.timeout_s)
            connection.settimeout(timeout_s)
        except OSError as error:
            raise out_of_reach(error, address) from None
        with connection:
            yield connection


def _connect(address: Address, timeout_s: float | None) -> socket.socket:
    if not address.socket:
        connection = socket.create_connection((address.host, address.port), timeout=timeout_s)
        return _secured(connection, address) if address.scheme == "https" else connection
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(address.socket)
    except OSError:
        connection.close()
        raise
    return connection


def _secured(connection: socket.socket, address: Address) -> socket.socket:
    import ssl

    from fairlead.client.trust import trusting, untrusted

    try:
        return trusting(address).wrap_socket(connection, server_hostname=address.host)
    except ssl.SSLError as error:
        connection.close()
        raise untrusted(error, address) from None
    except BaseException:
        connection.close()
        raise


def broken(error: Exception, address: Address) -> Unreachable:
    """What is said of a connection that ended too soon."""
    shown = (error.strerror if isinstance(error, OSError) else "") or str(error) or "it ended in the middle"
    return Unreachable(f"the connection to the service at {address} broke: {shown}. Is it still running?", True)


def out_of_reach(error: OSError, address: Address) -> Unreachable:
    """What is said where nothing could be connected to."""
    why = _problem(error, address)
    return Unreachable(
        f"cannot reach the service at {address}: {why}. Start it with `fairlead up`, or set {address.variable}."
    )


def _problem(error: OSError, address: Address) -> str:
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(error, PermissionError):
        return "you are not allowed to use it"
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, socket.gaierror):
        return f"there is no host named {address.host}"
    if "too long" in str(error) or error.errno == errno.ENAMETOOLONG:
        return "the path is too long for a socket (at most 107 bytes)"
    return error.strerror or str(error)
