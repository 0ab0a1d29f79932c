"""Inputs from a seed: those of a corpus, changed at random. For a machine without atheris, and for the quick test.

Never looks at what an input covers, which atheris does. Invariant: the same corpus and number give the same input.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
MOST_BYTES = 16_384
WORDS = [
    *(b"0", b"-1", b"1", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"1e400", b"NaN"),
    *(b"null", b"true", b'""', b"[]", b"{}", b"[[[[", b"}}}}", b"\\ud800", b"\x00", b"\xff", b"\xe2\x80\xae", b"\n"),
    *(b"*", b"%", b"..", b"~", b"&a ", b"*a", b"<<: ", b"- ", b": ", b"|", b"2026-02-30", b"1-1000000000"),
]


def corpus(target: str) -> list[bytes]:
    """The inputs that are kept for a target, by name."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def mutated(inputs: Sequence[bytes], number: int) -> bytes:
    """The input of this number."""
    chance = random.Random(number)
    found = bytearray(chance.choice(inputs))
    for _ in range(1 << chance.randrange(6)):
        at = chance.randrange(len(found) + 1)
        length = min(chance.choice((1, 1, 2, 4, 16, 64)), len(found) - at)
        kind = chance.randrange(7)
        if kind == 0 and length:
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[at : at + length] = b""
        elif kind == 2:
            found[at:at] = found[at : at + length] * chance.choice((1, 2, 50))
        elif kind == 3:
            other = chance.choice(inputs)
            begin = chance.randrange(len(other) + 1)
            found[at : at + length] = other[begin : begin + length * 4]
        elif kind == 4:
            found[at : at + length] = chance.choice(WORDS)
        elif kind == 5:
            found[at:at] = chance.choice(WORDS)
        else:
            found[at:at] = chance.randbytes(length)
    return bytes(found[:MOST_BYTES])
