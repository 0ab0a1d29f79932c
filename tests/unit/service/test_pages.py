"""Pages of lists: whatever comes and goes, what stays is on one page."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testbed.cluster_service import serving

from fairlead.runtime import Refusal
from fairlead.service.http.shaped import Pages
from fairlead.wire.fields import Page


class Things(Page, frozen=True, kw_only=True):
    things: list[int]


Names = st.lists(st.integers(0, 30), unique=True)


@given(begin=Names, changes=st.lists(Names, min_size=1, max_size=6), limit=st.integers(1, 4))
def test_what_stays_is_seen_once(begin: list[int], changes: list[list[int]], limit: int) -> None:
    """Between two pages anything may vanish, the cursor too, and anything may come."""
    versions, seen, after = [begin, *changes], [], None
    for number in range(100):
        found = versions[min(number, len(versions) - 1)]
        page = Pages(limit, after).of(Things, found, lambda name: (str(name), name))
        seen += page.things
        after = page.next
        if after is None:
            break
    stays = set(begin).intersection(*changes)
    assert stays <= set(seen)
    assert len(seen) == len(set(seen))


def test_backwards_each_thing_is_seen_once_too() -> None:
    """From the last to the first."""
    seen, after = list[int](), None
    for _ in range(3):
        page = Pages(2, after).of(Things, [3, 1, 5, 2, 4], lambda n: n, backwards=True)
        seen, after = seen + page.things, page.next
    assert (seen, after) == ([5, 4, 3, 2, 1], None)


@pytest.mark.parametrize("after", ["x", "{}", "[", '"a"', "[[1]]", ""])
def test_what_is_no_cursor_is_refused(after: str) -> None:
    """With the name of the parameter."""
    with pytest.raises(Refusal, match="is no cursor") as refused:
        Pages(10, after).of(Things, [1, 2], lambda number: number)
    assert refused.value.field == "after"


def test_the_last_page_has_no_next() -> None:
    """Not even when it is full."""
    assert Pages(3, None).of(Things, [3, 1, 2], lambda n: n) == Things(things=[1, 2, 3], next=None, total=3)
    assert Pages(2, None).of(Things, [3, 1, 2], lambda n: n) == Things(things=[1, 2], next="2", total=3)


@pytest.mark.timeout(120)
async def test_on_a_cluster_the_next_page_goes_on_where_the_pod_was_that_is_gone() -> None:
    """It used to begin anew, so that a client saw pods twice."""
    async with serving(cpu="64") as service:
        for name in ("a", "b", "c", "d"):
            service.pod(name, "1")
            await service.until(lambda n=name: service.node_of(n), "a place")  # type: ignore[misc]
        first = await service.get("/api/v1/jobs?limit=2")
        keys = [row["key"] for row in first["jobs"]]
        service.server.remove("pods", keys[-1].partition("/")[2], "default")
        gone = keys[-1]
        await service.until(
            lambda: all(str(k.name) != gone for k in service.place.informer.pod_store.by_uid.values()), "its end"
        )
        second = await service.get(f"/api/v1/jobs?limit=2&after={quote(first['next'])}")
        assert {row["key"] for row in second["jobs"]} == {f"default/{n}" for n in "abcd"} - set(keys)
        assert (second["next"], second["total"]) == (None, 3)
