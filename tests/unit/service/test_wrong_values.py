"""What an error says of a value that is as long as a request."""

from __future__ import annotations

import json

import pytest

from fairlead.runtime import Refusal
from fairlead.service.http.errors import from_refusal


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/ws/v1/queues"])
def test_a_long_value_is_shown_by_its_ends(path: str) -> None:
    """It was repeated whole, twice where it had a place."""
    said = f"there is no queue '{'9' * 5000}'"
    details = ({"field": "jobs[0].queue", "message": said}, {"field": "jobs[1].queue"})
    refusal = Refusal("invalid", said, field="jobs[0].queue", details=details)
    body = json.loads(from_refusal(refusal, path).body)
    assert len(json.dumps(body)) < 1_000
    assert body.get("detail", body.get("message")) == f"there is no queue '{'9' * 79}...{'9' * 39}'"
