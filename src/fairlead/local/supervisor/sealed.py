"""Records that stand in their file twice, each copy with its checksum.

Decides how a record becomes bytes, and whether bytes are what was written. Never reads or writes a file. Invariant:
damage in one place (a flipped bit, a lost sector) leaves a copy whole; what is damaged in both is never taken for
something else.
"""

from __future__ import annotations

import binascii
import json
from typing import Any

_BLANK = b"\0 \n"


class Damaged(ValueError):
    """What is there is not what was written."""


def seal(content: bytes) -> bytes:
    """What a file holds that says `content`: two lines that are equal. There must be no line's end in it."""
    return (b"%08x %s\n" % (binascii.crc32(content), content)) * 2


def unseal(file: bytes) -> bytes:
    """What was sealed; blanks behind it do not count. Raises `Damaged` if neither line is whole."""
    # A line's end that was hit joins two lines, or makes three of them: the lines are also looked for by their length.
    whole = file.rstrip(_BLANK)
    middle = len(whole) // 2
    for line in (*whole.split(b"\n"), whole[:middle], whole[middle + 1 :]):
        if line[:8] == b"%08x" % binascii.crc32(line[9:]) and line[8:9] == b" ":
            return line[9:]
    raise Damaged("its checksum does not hold")


def seal_record(record: dict[str, Any]) -> bytes:
    """A record as the content of a file."""
    return seal(json.dumps(record).encode())


def unseal_record(file: bytes) -> dict[str, Any]:
    """The record that was sealed. Raises `Damaged`."""
    found = json.loads(unseal(file))
    if not isinstance(found, dict):
        raise Damaged("it is no record")
    return found
