"""HTTP/1.1 without a connection: a request as bytes, an answer from bytes.

Decides what is sent for a call and what an answer means. Never opens a socket, so that both clients share it.
Invariant: an answer that was cut short is an error, never a shorter answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from httptools import HttpParserError, HttpResponseParser

from fairlead.client.address import Address
from fairlead.client.errors import ClientError, Misconfigured, NoService, Refused, ServiceFailed

API = "/api/v1"
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_making = threading.Lock()


T = TypeVar("T")


class Call(msgspec.Struct, Generic[T], frozen=True):
    """One request, which is answered with a `T`. Query values of None are left out."""

    method: str
    path: str
    query: Mapping[str, Any] = {}
    body: Any = None
    headers: Mapping[str, str] = {}
    repeat: bool = True
    """Whether it may be sent again when the connection broke: it can do no harm."""
    most: int | None = None
    """Of a list: at most so many things."""
    takes_s: float = 0.0
    """What the answer may take by itself; it is waited for so much longer than for any other."""


def request(call: Call[Any], address: Address) -> bytes:
    """What is sent for a call. Raises `Misconfigured` for what cannot be sent."""
    given = {name: value for name, value in call.query.items() if value is not None}
    asked = urlencode(given, doseq=True, errors="surrogatepass")
    target = f"{address.prefix}{API}{call.path}" + (f"?{asked}" if asked else "")
    content = b"" if call.body is None else encoded(call.body)
    headers = {"Host": address.authority, "Accept": "application/json", "Connection": "close", **call.headers}
    if address.token:
        headers["Authorization"] = f"Bearer {address.token}"
    if call.body is not None:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    for name, value in headers.items():
        if not value.isprintable():  # With a line break in it, it would be more than one header.
            what = "the token" if name == "Authorization" else name
            raise Misconfigured(f"{what} has a control character in it, such as a line break; give it as it was made")
    lines = [f"{call.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + content


def encoded(body: Any) -> bytes:
    """A body as JSON. Raises `Misconfigured` for what JSON cannot say, such as text that is no Unicode."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        shown = error.object[max(0, error.start - 20) : error.start + 1]
        raise Misconfigured(f"{shown!r} has half of a surrogate pair at its end; only UTF-8 text can be sent") from None
    except TypeError as error:
        raise Misconfigured(f"{error}; what is sent is made of texts, numbers, lists and mappings") from None


class CutShort(Exception):
    """The connection ended before the answer did."""


class Answer:
    """An answer as it arrives. `begun`: status and headers are there; `complete`: nothing more comes."""

    def __init__(self) -> None:
        self.begun = self.complete = False
        self.headers: dict[str, str] = {}
        self._parser = HttpResponseParser(self)
        self._content: list[bytes] = []
        self._refused: list[bytes] = []

    def feed(self, data: bytes) -> bytes:
        """Take what was received (empty: the end); the content in it, which of an error is kept for `check`.

        Raises `CutShort` or `NoService`.
        """
        if not data and not self.complete:
            if not self.begun or {"content-length", "transfer-encoding"} & self.headers.keys():
                raise CutShort
            self.complete = True
        try:
            self._parser.feed_data(data) if data else None
        except HttpParserError as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # Ctrl-C met the parser in the middle of a call.
                raise KeyboardInterrupt from None
            raise NoService(f"what answers does not speak HTTP: {error}") from None
        content = b"".join(self._content)
        self._content.clear()
        if self.begun and self.status >= 400:
            self._refused.append(content)
            return b""
        return content

    def check(self, address: Address) -> None:
        """Raise what an answer with an error says."""
        if self.status >= 400:
            raise failure(self.status, b"".join(self._refused), address)

    @property
    def status(self) -> int:
        """The status."""
        return int(self._parser.get_status_code())

    # -- what the parser calls -----------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """All headers."""
        self.begun = True

    def on_body(self, content: bytes) -> None:
        """A piece of the content."""
        self._content.append(content)

    def on_message_complete(self) -> None:
        """The end."""
        self.complete = True


def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    """What reads a shape. Made once, by one thread: two at once, both filling what msgspec keeps of a type, would crash
    the process.
    """
    with _making:
        if shape not in _DECODERS:
            _DECODERS[shape] = msgspec.json.Decoder(shape)
        return _DECODERS[shape]


def decoded(content: bytes, shape: Any, address: Address) -> Any:
    """The answer in its shape. Raises `NoService`."""
    try:
        return _decoder(shape).decode(content)
    except msgspec.ValidationError as error:
        raise NoService(f"the service at {address} is of another version: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoService(f"what answers at {address} is no Fairlead service: its answer is not JSON") from None


def failure(status: int, content: bytes, address: Address) -> ClientError:
    """What an answer with an error says."""
    from fairlead.wire.cluster import Problem

    try:
        problem: Problem = _decoder(Problem).decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NoService(f"what answers at {address} said {status} without a reason; is it a Fairlead service?")
    if status == 401 and not address.socket and not address.token and "FAIRLEAD_TOKEN" not in problem.detail:
        detail = f"{problem.detail.rstrip('.')}. Set FAIRLEAD_TOKEN to a token made with `fairlead token create`."
        problem = msgspec.structs.replace(problem, detail=detail)
    return ServiceFailed(problem) if status >= 500 else Refused(problem)


# -- server-sent events, by the rules of the HTML standard ---------------------------------------------------------


class ServerEvent(msgspec.Struct, frozen=True):
    """One event. `id`: to go on after it; `data`: the decoded JSON, or the text if it is none."""

    id: str
    type: str
    data: Any


class EventReader:
    """Makes events of what is received."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """What came of a line that is not whole."""
        self._id, self._type, self._lines = "", "", list[str]()

    def feed(self, content: bytes) -> Iterator[ServerEvent]:
        """The events that are whole now."""
        *lines, rest = content.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest = []
        self._rest.append(rest)
        for line in lines:
            if (event := self._line(line.decode("utf-8", "replace").rstrip("\r"))) is not None:
                yield event

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            event = (
                ServerEvent(self._id, self._type or "message", _data("\n".join(self._lines))) if self._lines else None
            )
            self._type, self._lines = "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._lines.append(value)
        elif name == "event":
            self._type = value
        elif name == "id":
            self._id = value
        return None


def _data(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
