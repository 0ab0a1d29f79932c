"""Arrays: what `--array` means, and how parts are named."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.arrays import LARGEST, MOST_PARTS, Array, count, in_short, order, parse, parse_indices, shown
from fairlead.wire.jobs import Submission


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0-3", Array((0, 1, 2, 3), 0)),
        ("1,3,5-7", Array((1, 3, 5, 6, 7), 0)),
        ("7,1", Array((1, 7), 0)),
        ("1-7:2", Array((1, 3, 5, 7), 0)),
        ("1-7:2,2%3", Array((1, 2, 3, 5, 7), 3)),
        ("5", Array((5,), 0)),
        (" 1-3,2-4 ", Array((1, 2, 3, 4), 0)),
        (f"{LARGEST}", Array((LARGEST,), 0)),
    ],
)
def test_what_indices_mean(text: str, meant: Array) -> None:
    """In order, each once."""
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5-1", "5-1 ends before it begins; write 1-5"),
        ("x", "'x' names no indices; write 0-15"),
        ("", "'' names no indices"),
        ("1,,2", "names no indices"),
        ("1-", "'1-' names no indices"),
        ("-1", "'-1' names no indices"),
        ("1:2", "'1:2' names no indices"),
        ("1-5:0", "1-5:0 goes on by 0"),
        ("1-5%0", "%0 in '1-5%0' is no number of parts at a time"),
        ("1-5%", "% in '1-5%' is no number"),
        (f"0-{MOST_PARTS}", f"more than {MOST_PARTS} parts; submit several arrays"),
        (f"{LARGEST + 1}", "larger than any index may be"),
        (",".join(["1-50000"] * 3), "more than 100000 parts; submit several arrays"),
        ("1-2000,2-2001", "has pieces that overlap, and more than 1000 parts; write each index once"),
        (",".join(map(str, range(0, 300_000, 2))), "38,40,42... has more than 100000 parts"),
    ],
)
def test_what_means_nothing_says_what_to_write(text: str, said: str) -> None:
    """Where, and what instead."""
    with pytest.raises(ValueError, match=r".*") as problem:
        parse(text)
    assert said in str(problem.value)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_indices_in_short_are_the_same_indices(indices: set[int]) -> None:
    """Whatever they are."""
    found = tuple(sorted(indices))
    assert parse_indices(in_short(found)) == found


def test_indices_in_short_are_short() -> None:
    """Runs, a step where all have it, single ones; with how many at a time."""
    texts = ["1-200", "1-9:2", "1,4", "1-2,4,6-8", "5"]
    assert [in_short(parse_indices(text)) for text in texts] == texts
    assert (shown("1-9", 3), shown("1-9", 0)) == ("1-9%3", "1-9")


def test_keys_are_in_the_order_of_submission() -> None:
    """Parts behind their array, by their indices."""
    assert sorted(["12.10", "2", "12.9", "12", "ns/pod", "13"], key=order) == [
        "ns/pod",
        "2",
        "12",
        "12.9",
        "12.10",
        "13",
    ]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=5))
def test_they_are_counted_as_they_are(pieces: list[tuple[int, int, int]]) -> None:
    """In order or not, also where they are named twice."""
    text = ",".join(f"{begin}-{begin + length}:{step}" for begin, length, step in pieces)
    wanted = sorted({i for begin, length, step in pieces for i in range(begin, begin + length + 1, step)})
    assert list(parse_indices(text)) == wanted
    assert count(text) == len(wanted)


def test_a_request_with_many_arrays_is_read_without_working_out_their_parts() -> None:
    """Each had cost milliseconds on the event loop, and they are refused for their number afterwards."""
    jobs = [{"command": ["true"], "array": f"{i}-50000,50001-99999%5"} for i in range(1, 200)]
    before = parse_indices.cache_info().misses
    drafts = msgspec.json.decode(msgspec.json.encode({"jobs": jobs}), type=Submission).jobs
    assert sum(count(draft.array.partition("%")[0]) for draft in drafts) > 15_000_000
    assert parse_indices.cache_info().misses == before
