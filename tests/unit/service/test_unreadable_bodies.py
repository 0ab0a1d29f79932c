"""Bodies that are no JSON at all, as fuzzing found them: refused with what is wrong, never a failure of the service."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "memory.n", "a[3]", "...", ".", "[0]", "a..b"])
def test_a_name_may_hold_any_sign(served: Any, name: str) -> None:
    """It was taken for several steps of a path, and the service failed."""
    body = {"jobs": [{"command": ["true"], "resources": {"cpu": 1, name: [3]}}]}
    answer = served.call("POST", "/api/v1/jobs", body, "alice")
    assert (answer.status, answer.error["code"]) == (422, "invalid")
    assert answer.error["field"] == f"jobs[0].resources.{name}"
    assert answer.error["detail"] == f"jobs[0].resources.{name}: must be a number, not a list"


LIKE_PLACES = ["`key` in", "`key` in `$.x`", " - at `$.x[...]`", "a` - at `$.jobs[7].x", "` - at `key` in `$"]


@pytest.mark.parametrize("name", LIKE_PLACES)
def test_a_name_may_read_like_a_place(served: Any, name: str) -> None:
    """It was taken for the place of what is wrong, and the service failed."""
    for body in (
        {name: 1},
        {"jobs": [{"command": ["true"], name: 1}]},
        {"jobs": [{"command": ["true"], "env": {name: 1}}]},
    ):
        answer = served.call("POST", "/api/v1/jobs", body, "alice")
        assert (answer.status, answer.error["code"]) == (422, "invalid")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"name": "\xff"}', "the body is not valid JSON: 'utf-8' codec can't decode byte 0xff"),
        (b'{"name": "\xd7"}', "the body is not valid JSON: 'utf-8' codec can't decode byte 0xd7"),
        (b'{"nam\xff": "x"}', "the body is not valid JSON"),
        (rb'{"\ud800": 1, "name": "\ud800"}', r"the body has half of a character, '\ud800'; write it whole"),
    ],
)
def test_what_is_not_utf_8_is_refused(served: Any, body: bytes, said: str) -> None:
    """400, with the byte."""
    answer = served.raw("POST", "/api/v1/tokens", body, "alice")
    assert (answer.status, answer.error["code"]) == (400, "malformed")
    assert said in answer.error["detail"]
