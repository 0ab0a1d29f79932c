"""Which jobs a list has: by queue, user, name and tag, several of each, with globs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.service.place import JobFilter

if TYPE_CHECKING:
    from conftest import Served


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("name=f-a*", "ab"),
        ("name=f-a?", "b"),
        ("name=f-a1&name=f-c", "bc"),
        ("name=f-[ac]", ""),
        ("name=f-*&tag=project=apollo", "ac"),
        ("name=f-*&tag=project=a*&tag=stage", "c"),
        ("name=f-*&tag=project=apollo&tag=project=gemini", "abc"),
        ("name=f-*&tag=pro*=gem*", "b"),
        ("name=f-*&tag=nothing", ""),
        ("name=f-*&queue=root.batch", "b"),
        ("name=f-*&queue=batch", "b"),
        ("name=f-*&queue=ROOT.Batch&queue=root.default", "abc"),
        ("name=f-*&queue=root.b*", "b"),
        ("name=f-*&queue=root", "abc"),
        ("name=f-*&user=al*", "abc"),
        ("name=f-*&user=bob", ""),
    ],
)
def test_filters(served: Served, query: str, keys: str) -> None:
    """Of several of one kind one is enough; of tags each name has to be there."""
    known = {row["name"]: row["key"] for row in served.call("GET", "/api/v1/jobs?name=f-*").json["jobs"]}
    if not known:
        served.submit("/bin/true", who="alice", name="f-a", hold=True, tags={"project": "apollo"})
        served.submit("/bin/true", who="alice", name="f-a1", hold=True, tags={"project": "gemini"}, queue="root.batch")
        served.submit("/bin/true", who="alice", name="f-c", hold=True, tags={"project": "apollo", "stage": "2"})
    found = served.call("GET", f"/api/v1/jobs?{query}").json["jobs"]
    assert "".join({"f-a": "a", "f-a1": "b", "f-c": "c"}[row["name"]] for row in found) == keys


def test_what_may_be_given_once_still_may_not_twice(served: Served) -> None:
    """Elsewhere only one of the two would count."""
    assert served.call("GET", "/api/v1/usage?user=a&user=b").error["field"] == "user"
    assert served.call("GET", "/api/v1/jobs?limit=1&limit=2").error["field"] == "limit"


def test_a_filter_that_there_is_not_is_refused(served: Served) -> None:
    """All jobs would be taken for those that were asked for."""
    said = served.call("GET", "/api/v1/jobs?users=alice").error
    assert (said["status"], said["field"]) == (422, "users")
    assert said["detail"].startswith("'users' is no parameter of this path")
    assert served.call("GET", "/healthz?again=1").status == 200


def test_an_empty_filter_passes_all() -> None:
    """And a queue is never taken for one whose name only begins alike."""
    assert JobFilter().passes("running", "root.a", "ann", "x")
    assert JobFilter(queues=("root.a",)).passes("running", "root.a.b", "ann", "x")
    assert not JobFilter(queues=("root.a",)).passes("running", "root.ab", "ann", "x")


@pytest.mark.parametrize("sort", ["name", "user", "queue", "tag"])
def test_a_short_pattern_is_no_long_work(served: Served, sort: str) -> None:
    """Each star may stand for much; to try all ways would keep everybody waiting for ever."""
    served.submit("/bin/true", who="alice", name="a" * 200, hold=True, tags={"a" * 60: "a" * 200})
    pattern = "*a" * 40 + "*b"
    asked = f"{pattern}={pattern}" if sort == "tag" else pattern
    assert served.call("GET", f"/api/v1/jobs?{sort}={asked}", who="alice").json["total"] == 0
    assert served.call("GET", f"/api/v1/jobs?name={'*a' * 40}*", who="alice").json["total"] >= 1


@given(st.text("ab.*?", max_size=8), st.text("ab.", max_size=10))
def test_a_star_stands_for_any_text(pattern: str, name: str) -> None:
    """As everywhere else."""
    assert JobFilter(names=(pattern,)).passes("waiting", "root.a", "ann", name) == fnmatchcase(name, pattern)


def test_a_filter_has_so_many_values(served: Served) -> None:
    """Each is compared with each job."""
    answer = served.call("GET", "/api/v1/jobs?" + "&".join(f"name=n{i}" for i in range(101)), who="alice")
    assert (answer.status, answer.error["field"]) == (422, "name")
    assert "at most 100" in answer.error["detail"]
