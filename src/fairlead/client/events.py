"""Server-sent events from bytes, by the rules of the HTML standard.

Decides where an event ends. Never reads a socket. Comments (heartbeats) are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class ServerEvent(msgspec.Struct, frozen=True):
    """One event. `id`: to go on after it; `data`: the decoded JSON, or the text if it is none."""

    id: str
    type: str
    data: Any


class EventReader:
    """Makes events of what is received."""

    def __init__(self) -> None:
        self._rest = b""
        self._id, self._type, self._lines = "", "", list[str]()

    def feed(self, content: bytes) -> Iterator[ServerEvent]:
        """The events that are whole now."""
        *lines, self._rest = (self._rest + content).split(b"\n")
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
