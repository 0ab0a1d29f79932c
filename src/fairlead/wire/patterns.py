"""Patterns in the names of files that a job reads and writes, as Slurm writes them: `%j`, `%x`, `%u`, `%a`, `%A`, `%N`.

Decides what a pattern may hold and what becomes of it. Never touches a file. Invariant: a pattern that passes `checked`
can be expanded for every job.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from fairlead.wire.fields import one_line

_PART = re.compile(r"%(\d*)(.?)")
MEANINGS = {
    "j": "key",
    "x": "name",
    "u": "user",
    "a": "index in its array, or 0",
    "A": "key of its array, or its own",
    "N": "node",
}
_WIDEST = 10


def checked(pattern: str) -> str:
    """A pattern that can be expanded. Raises `ValueError`."""
    one_line(pattern)
    for width, letter in _PART.findall(pattern):
        if (letter not in MEANINGS and letter != "%") or int(width or 0) > _WIDEST:
            known = ", ".join(f"%{each} ({meaning})" for each, meaning in MEANINGS.items())
            raise ValueError(
                f"there is no %{width}{letter} in {pattern!r}; there are {known}, and %% for a percent sign"
            )
    return pattern


def words_of(key: str, name: str, user: str, node: str) -> Mapping[str, str]:
    """What each letter stands for in the patterns of this job; part 7 of the array 12 has the key `12.7`.

    Where it has no node yet, `%N` stays as it is.
    """
    array, _, index = key.partition(".")
    # A name may hold anything; in a path it stays one part of it.
    return {"j": key, "x": name.replace("/", "_"), "u": user, "a": index or "0", "A": array, "N": node or "%N"}


def expand(pattern: str, words: Mapping[str, str]) -> str:
    """The name that a pattern stands for; a number before the letter pads numbers with zeros: `%4j`."""

    def said(found: re.Match[str]) -> str:
        width, letter = found.groups()
        word = words.get(letter, letter)
        return word.zfill(int(width)) if width and word.isdecimal() else word

    return _PART.sub(said, pattern)


def path_of(pattern: str, directory: str, words: Mapping[str, str]) -> str:
    """The file that is meant, from the job's working directory on; empty for an empty pattern."""
    return posixpath.join(directory, expand(pattern, words)) if pattern else ""
