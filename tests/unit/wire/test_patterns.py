"""Patterns in the names of files."""

from __future__ import annotations

import pytest

from fairlead.wire.patterns import checked, expand, path_of, words_of

WORDS = words_of("17", "a/b", "ann", "")
PART = words_of("12.7", "sweep", "ann", "big")


@pytest.mark.parametrize(
    ("pattern", "alone", "part"),
    [
        ("out.txt", "out.txt", "out.txt"),
        ("%x-%j", "a_b-17", "sweep-12.7"),
        ("%u/%A_%a", "ann/17_0", "ann/12_7"),
        ("%5A-%3a", "00017-000", "00012-007"),
        ("100%%j", "100%j", "100%j"),
        ("%4x", "a_b", "sweep"),
        ("%N.%j", "%N.17", "big.12.7"),
    ],
)
def test_what_they_stand_for(pattern: str, alone: str, part: str) -> None:
    """For a job, and for a part of an array; a number pads numbers."""
    assert checked(pattern) == pattern
    assert (expand(pattern, WORDS), expand(pattern, PART)) == (alone, part)


@pytest.mark.parametrize("pattern", ["%z", "a%", "%99j", "% j", "a\nb", "%5"])
def test_what_is_none_is_refused(pattern: str) -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match=r"%j \(key\)|one line"):
        checked(pattern)


def test_paths_begin_at_the_directory() -> None:
    """Unless they are whole; no pattern is no path."""
    assert path_of("%j.txt", "/home/ann", WORDS) == "/home/ann/17.txt"
    assert path_of("/tmp/%j", "/home/ann", WORDS) == "/tmp/17"
    assert path_of("", "/home/ann", WORDS) == ""
