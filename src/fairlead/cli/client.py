"""A small client of the service's HTTP interface, over its Unix socket or TCP.

Decides how a request is sent, when it is sent again (only if it can do no harm), and how an answer that says no becomes
one sentence. Never prints, never keeps a connection between calls. Invariant: a submission carries an idempotency key,
so that sending it again cannot submit twice.
"""

from __future__ import annotations

import errno
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from fairlead.cli.address import Address
from fairlead.cli.failures import REFUSED, SERVICE_ERROR, UNREACHABLE, Failure

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

API = "/api/v1"
_PAUSES_S = (0.1, 0.4, 1.0)
"""Waits before the second, third and fourth attempt of a call that may be repeated."""
_CHUNK = 65_536
_PAGE = 1000
_T = TypeVar("_T")


class Unreachable(Failure):
    """Nothing answers; `started` says whether the request may have arrived all the same."""

    def __init__(self, message: str, started: bool = False) -> None:
        super().__init__(message, UNREACHABLE)
        self.started = started


class Refusal(Failure):
    """The service answered with an error."""

    def __init__(self, http_status: int, code: str, message: str, field: str | None, details: list[Any]) -> None:
        place = f"{field}: " if field and field not in message else ""
        status = SERVICE_ERROR if http_status >= 500 else REFUSED
        lines = [_detail_line(d) for d in details]
        # A single problem is the message already.
        super().__init__(place + message, status, lines if len(lines) > 1 or not _says(message, details) else ())
        self.http_status, self.code, self.field = http_status, code, field


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event. `data` is the decoded JSON, or the text if it is none."""

    id: str
    type: str
    data: Any


@dataclass(frozen=True, slots=True)
class LogPart:
    """A piece of a job's output; `next` is the offset after it, `more` whether the piece was cut short."""

    content: bytes
    next: int


def _says(message: str, details: list[Any]) -> bool:
    """Whether the message has all that the only detail says; a place in a file is more than that."""
    [detail] = details or [None]
    return isinstance(detail, dict) and not detail.get("line") and str(detail.get("message", "")) in message


def _detail_line(detail: Any) -> str:
    if not isinstance(detail, dict):
        return str(detail)
    place = ":".join(str(detail[k]) for k in ("line", "column") if detail.get(k) is not None)
    path = detail.get("path") or detail.get("field") or ""
    weight = "warning" if detail.get("severity") == "warning" else ""
    return ": ".join(str(part) for part in (place, path, weight, detail.get("message", "")) if part)


class Client:
    """Calls on one service. Every method raises `Failure` with a sentence and an exit status when it cannot succeed."""

    def __init__(self, address: Address, timeout_s: float = 30.0) -> None:
        self.address, self.timeout_s = address, timeout_s

    # -- calls ---------------------------------------------------------------------------------------------------

    def get(self, path: str, **query: object) -> Any:
        """The decoded answer to a GET; query values of None are left out. Sent again when the connection breaks."""
        return self._json("GET", path, None, query, repeat=True)

    def post(self, path: str, body: object = None, idempotency_key: str = "") -> Any:
        """The answer to a POST. Sent again only with an idempotency key."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._json(
            "POST", path, body if body is not None else {}, {}, repeat=bool(idempotency_key), headers=headers
        )

    def put(self, path: str, body: object) -> Any:
        """The answer to a PUT."""
        return self._json("PUT", path, body, {}, repeat=True)

    def patch(self, path: str, body: object) -> Any:
        """The answer to a PATCH that sets a value, which may be repeated."""
        return self._json("PATCH", path, body, {}, repeat=True)

    def delete(self, path: str) -> Any:
        """The answer to a DELETE."""
        return self._json("DELETE", path, None, {}, repeat=False)

    def jobs(
        self, filters: Mapping[str, str | Sequence[str] | None] | None = None, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Jobs that pass the filters, page by page; at most `limit`."""
        after: object = None
        left = limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(_PAGE, left)
            page = self.get("/jobs", limit=size, after=after, **(filters or {}))
            yield from page["jobs"]
            after = page.get("next")
            if after is None:
                return
            left = None if left is None else left - len(page["jobs"])

    def job(self, key: str) -> dict[str, Any]:
        """Everything about one job."""
        answer: dict[str, Any] = self.get(f"/jobs/{quote(key, safe='')}")
        return answer

    def log_part(
        self, key: str, stream: str, offset: int, limit: int | None = None, attempt: int | None = None
    ) -> LogPart:
        """What the job wrote to `stdout` or `stderr` from byte `offset` on, in its newest attempt or another one."""
        query = {"stream": stream, "offset": offset, "limit": limit, "attempt": attempt}
        with self._exchange("GET", f"/jobs/{quote(key, safe='')}/logs", None, query) as response:
            content = response.read()
            return LogPart(content, int(response.headers.get("X-Offset-Next") or offset + len(content)))

    def follow_log(self, key: str, stream: str, offset: int, attempt: int | None = None) -> Iterator[bytes]:
        """The rest of a job's output as it is written, until the job (or the named attempt) has ended."""
        query = {"stream": stream, "offset": offset, "follow": "true", "attempt": attempt}
        with self._exchange("GET", f"/jobs/{quote(key, safe='')}/logs", None, query, timeout_s=None) as response:
            while chunk := self._receive(response.read1):
                yield chunk

    def events(
        self, last_id: str = "", from_seq: int | None = None, timeout_s: float | None = None
    ) -> Iterator[ServerEvent]:
        """Server-sent events from now on, or after `last_id`, or from record `from_seq`; ends when the service closes.

        `timeout_s`: the longest silence (heartbeats count) before the stream is taken for dead.
        """
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        with self._exchange("GET", "/events", None, {"from": from_seq}, headers, timeout_s=timeout_s) as response:
            yield from read_events(lambda: self._receive(response.readline))

    # -- transport -----------------------------------------------------------------------------------------------

    def _json(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object],
        repeat: bool,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        for pause in (*_PAUSES_S, None):
            try:
                with self._exchange(method, path, body, query, headers) as response:
                    content = self._receive(response.read)
                return _decoded(content, self.address) if content else None
            except Unreachable as error:
                if pause is None or not (repeat and error.started):
                    raise
                time.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    @contextmanager
    def _exchange(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object],
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = -1.0,
    ) -> Iterator[HTTPResponse]:
        timeout = self.timeout_s if timeout_s == -1.0 else timeout_s
        connection = self._connect(timeout)
        try:
            response = self._send(connection, method, path, body, query, headers or {})
            if response.status >= 400:
                raise _refusal(response.status, self._receive(response.read), self.address)
            yield response
        finally:
            connection.close()

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object],
        headers: Mapping[str, str],
    ) -> HTTPResponse:
        import http.client

        asked = urlencode({k: v for k, v in query.items() if v is not None}, doseq=True)
        target = f"{self.address.prefix}{API}{path}" + (f"?{asked}" if asked else "")
        sent = {"Accept": "application/json", **headers}
        if self.address.token:
            sent["Authorization"] = f"Bearer {self.address.token}"
        content = None
        if body is not None:
            content = json.dumps(body, allow_nan=False).encode()
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, target, body=content, headers=sent)
            return connection.getresponse()
        except TimeoutError:
            raise Unreachable(f"the service at {self.address} did not answer in {self.timeout_s:g} s", True) from None
        except BrokenPipeError:
            return self._early_answer(connection)
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from None

    def _early_answer(self, connection: HTTPConnection) -> HTTPResponse:
        """What the service said before it stopped reading a body that is too large for it."""
        import http.client

        try:
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from None

    def _receive(self, read: Callable[[], _T]) -> _T:
        import http.client

        try:
            return read()
        except TimeoutError:
            raise Unreachable(f"the service at {self.address} went silent", True) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> Unreachable:
        shown = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        return Unreachable(
            f"the connection to the service at {self.address} broke: {shown}. Is it still running?", True
        )

    def _connect(self, timeout_s: float | None) -> HTTPConnection:
        import http.client

        address = self.address
        connection: http.client.HTTPConnection
        try:
            if address.socket:
                connection = http.client.HTTPConnection("localhost")
                connection.sock = _unix_socket(address.socket, timeout_s)
                return connection
            kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
            connection = kind(address.host, address.port, timeout=timeout_s)
            connection.connect()
            return connection
        except OSError as error:
            why = _connect_problem(error, address)
            raise Unreachable(
                f"cannot reach the service at {address}: {why}. Start it with `fairlead up`, or set {address.variable}."
            ) from None


def _unix_socket(path: str, timeout_s: float | None) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def _connect_problem(error: OSError, address: Address) -> str:
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


def _decoded(content: bytes, address: Address) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise Failure(
            f"what answers at {address} is no Fairlead service: its answer is not JSON", SERVICE_ERROR
        ) from None


def _refusal(status: int, content: bytes, address: Address) -> Failure:
    try:
        error = json.loads(content)["error"]
        message, code = str(error["message"]), str(error.get("code", ""))
    except (ValueError, KeyError, TypeError):
        return Failure(
            f"what answers at {address} said {status} without a reason; is it a Fairlead service?", SERVICE_ERROR
        )
    if status == 401 and not address.socket and not address.token and "FAIRLEAD_TOKEN" not in message:
        message = f"{message.rstrip('.')}. Set FAIRLEAD_TOKEN to a token made with `fairlead token create`."
    return Refusal(status, code, message, error.get("field"), error.get("details") or [])


def read_events(readline: Callable[[], bytes]) -> Iterator[ServerEvent]:
    """Server-sent events from lines, by the rules of the HTML standard. Comments (heartbeats) are skipped."""
    last_id, kind, lines = "", "", list[str]()
    while raw := readline():
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if lines:
                text = "\n".join(lines)
                try:
                    data = json.loads(text)
                except ValueError:
                    data = text
                yield ServerEvent(last_id, kind or "message", data)
            kind, lines = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            lines.append(value)
        elif name == "event":
            kind = value
        elif name == "id":
            last_id = value
