"""token create, list, revoke."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_create_prints_the_token_alone(service: Any, run: Callable[..., Any]) -> None:
    """So that it can go into a variable."""
    service.on("POST", "/tokens", {"id": "1", "token": "s3cret", "name": "laptop"})
    assert run("token", "create", "--name", "laptop").stdout == "s3cret\n"
    assert service.sent("POST", "/tokens") == [{"name": "laptop", "scope": "administer"}]


def test_list_shows_no_secret(service: Any, run: Callable[..., Any]) -> None:
    """Only what is kept of it."""
    service.on("GET", "/tokens", {"tokens": [{"id": "1", "name": "laptop", "user": "ann", "created_at_ms": 1000}]})
    assert run("token", "list").stdout.splitlines()[1].split()[:3] == ["1", "laptop", "ann"]


def test_revoke_deletes(service: Any, run: Callable[..., Any]) -> None:
    """By its id."""
    service.on("DELETE", "/tokens/1", {})
    assert run("token", "revoke", "1").stdout == "1 revoked\n"
