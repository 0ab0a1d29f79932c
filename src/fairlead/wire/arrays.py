"""Arrays: which indices their parts have, and how a part is named.

Decides what `1-200:2%8` means, and what is wrong with a text that means nothing. Never knows a job. Invariant: the
indices of an array are in order and each is there once; `12` names an array, `12.7` its part of index 7, `12.5-9` some.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, pairwise
from typing import Annotated, NamedTuple

from fairlead.wire.fields import Shape, said

SHOWN = 60
"""Of a text that is too long to be said whole, so many characters are."""
MOST_PARTS = 100_000
MOST_MIXED = 1000
"""Of an array whose pieces lie between each other: such indices have to be worked out to be counted."""
LARGEST = 10**9
"""No index is larger."""
EXAMPLES = "write 0-15, 1,3,5-7, 1-7:2, or 1-200%8 for at most 8 at a time"
SAME_INDEX = "%a"
"""In the key of a job to wait for: the index of the part that waits, as in `12.%a`."""


class Parts(Shape, frozen=True, kw_only=True):
    """The parts of an array."""

    indices: Annotated[str, said("Such as 1-200, or 1,3,5-7.")]
    at_once: Annotated[int, said("So many in line or running at a time; 0: all, or it has ended.")]
    count: int
    waiting: Annotated[int, said("What is on hold is not among them.")]
    held: Annotated[int, said("On hold.")]
    running: Annotated[int, said("Also what is suspended, or was told to stop.")]
    done: Annotated[int, said("Ended well.")]
    cancelled: int
    failed: Annotated[int, said("Ended otherwise than well, and was not cancelled.")]
    exit_status: Annotated[int, said("The highest of those that ended, as `fairlead wait` says it.")]
    suspended: Annotated[int, said("So many of `running` stand still.")] = 0
    stopping: Annotated[int, said("So many of `running` were told to stop.")] = 0


def in_words(parts: Parts) -> str:
    """`waiting 120, running 8 (suspended 2), done 70, failed 2`; a count of 0 is not said."""
    names = ("waiting", "held", "running", "done", "cancelled", "failed")
    counts = {name: f"{name} {count}" for name in names if (count := getattr(parts, name))}
    if not_on := ", ".join(f"{name} {count}" for name in ("suspended", "stopping") if (count := getattr(parts, name))):
        counts["running"] += f" ({not_on})"
    return ", ".join(counts.values())


class Array(NamedTuple):
    """What `--array` says."""

    indices: tuple[int, ...]
    at_once: int
    """So many parts at a time; 0: all."""


def parse(text: str) -> Array:
    """What an array is to be. Raises ValueError with a sentence."""
    return Array(parse_indices(text.strip().partition("%")[0]), at_once(text))


def at_once(text: str) -> int:
    """How many parts at a time an array is to have; 0: all. Raises ValueError where any of it makes no sense.

    Works out no indices: a request may bring thousands of arrays that are refused for their number.
    """
    indices, percent, most = text.strip().partition("%")
    if percent and (not _is_number(most) or not 0 < int(most) <= MOST_PARTS):
        raise ValueError(f"%{most} in {text!r} is no number of parts at a time; {EXAMPLES}")
    _spans(indices)
    return int(most) if percent else 0


def checked(text: str) -> str:
    """A text that `parse` takes, or none. Raises ValueError."""
    if text:
        at_once(text)
    return text


@lru_cache(maxsize=16)
def parse_indices(text: str) -> tuple[int, ...]:
    """The indices that `1,3,5-7` or `1-7:2` names, in order. Raises ValueError with a sentence."""
    spans = _spans(text)
    if _in_order(spans):
        return tuple(chain.from_iterable(spans))
    return tuple(sorted(set(chain.from_iterable(spans))))


def count(text: str) -> int:
    """How many indices that are; of what is in order without working them out. Raises ValueError with a sentence."""
    spans = _spans(text)
    return sum(map(len, spans)) if _in_order(spans) else len(parse_indices(text))


def _in_order(spans: list[range]) -> bool:
    return all(before[-1] < after[0] for before, after in pairwise(spans))


def _spans(text: str) -> list[range]:
    """The pieces, by where they begin. Raises ValueError."""
    found: list[range] = []
    named, said = 0, text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    for each in text.split(","):
        piece = each.strip()
        bounds, colon, step = piece.partition(":")
        first, dash, last = bounds.partition("-")
        if not (_is_number(first) and (_is_number(last) if dash else not colon) and (_is_number(step) if colon else 1)):
            raise ValueError(f"{piece[:SHOWN] or said!r} names no indices; {EXAMPLES}")
        begin, end, by = int(first), int(last or first), int(step or 1)
        if end < begin:
            raise ValueError(f"{piece} ends before it begins; write {end}-{begin}")
        if by == 0:
            raise ValueError(f"{piece} goes on by 0; {EXAMPLES}")
        if end > LARGEST:
            raise ValueError(f"{end} is larger than any index may be, {LARGEST}")
        found.append(range(begin, end + 1, by))
        named += len(found[-1])  # What is named again counts again: a short text must not mean much work.
        if named > MOST_PARTS:
            raise ValueError(f"{said} has more than {MOST_PARTS} parts; submit several arrays")
    found.sort(key=lambda span: span[0])
    if named > MOST_MIXED and not _in_order(found):
        raise ValueError(f"{said} has pieces that overlap, and more than {MOST_MIXED} parts; write each index once")
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10


def in_short(indices: Iterable[int]) -> str:
    """A short text that names these indices, which are in order: `1-7:2`, or `1,3,5-7`."""
    all_ = list(indices)
    steps = {after - before for before, after in pairwise(all_)}
    if len(all_) > 2 and len(steps) == 1 and steps != {1}:
        return f"{all_[0]}-{all_[-1]}:{steps.pop()}"
    runs: list[list[int]] = []
    for index in all_:
        if runs and index == runs[-1][-1] + 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ",".join("-".join(map(str, run)) for run in runs)


def shown(indices: str, at_once: int) -> str:
    """As it is given to `--array`."""
    return f"{indices}%{at_once}" if at_once else indices


def split(key: str) -> tuple[str, str]:
    """The array and the indices that a key names; without indices: all of it, or it is no array."""
    array, _, indices = key.partition(".")
    return array, indices


def order(key: str) -> tuple[int, int, str]:
    """Keys in the order of submission, an array before its parts in order of their indices."""
    if _is_number(key):  # Most are, and long lists are sorted by this.
        return (int(key), -1, key)
    array, index = split(key)
    return (int(array) if _is_number(array) else 0, int(index) if _is_number(index) else -1, key)
