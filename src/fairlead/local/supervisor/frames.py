"""What travels between a terminal's user and the supervisor that holds it: pieces with a letter and a length.

Decides the letters. Never reads or writes. Invariant: whatever way the bytes are cut on their way, the same pieces come
out.
"""

from __future__ import annotations

import struct

INPUT, SIZE, ALIVE = b"i", b"s", b"a"
"""From the user: what is typed; rows and columns; nothing but that somebody is there."""
OUTPUT, END, REFUSED = b"o", b"e", b"r"
"""To the user: what is written; that nothing more comes; a sentence why there is no place."""
LARGEST = 2**20
_HEAD = struct.Struct(">cI")
_SIZE = struct.Struct(">HH")


class Garbled(ValueError):
    """Bytes that are no pieces."""


def piece(letter: bytes, content: bytes = b"") -> bytes:
    """One piece."""
    return _HEAD.pack(letter, len(content)) + content


def size(rows: int, columns: int) -> bytes:
    """The piece that says how large the user's terminal is."""
    return piece(SIZE, _SIZE.pack(max(1, min(rows, 0xFFFF)), max(1, min(columns, 0xFFFF))))


def read_size(content: bytes) -> tuple[int, int]:
    """Rows and columns. Raises `Garbled`."""
    if len(content) != _SIZE.size:
        raise Garbled("a size has four bytes")
    rows, columns = _SIZE.unpack(content)
    return rows, columns


class Pieces:
    """Makes pieces of what arrives."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The pieces that are whole now: letter and content. Raises `Garbled`."""
        self._rest += data
        found, begin = [], 0
        while len(self._rest) - begin >= _HEAD.size:
            letter, length = _HEAD.unpack_from(self._rest, begin)
            if length > LARGEST:
                raise Garbled(f"a piece of {length} bytes")
            end = begin + _HEAD.size + length
            if len(self._rest) < end:
                break
            found.append((letter, bytes(self._rest[begin + _HEAD.size : end])))
            begin = end
        del self._rest[:begin]
        return found
