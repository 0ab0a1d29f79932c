"""Words for the shell to complete: keys of jobs and names of queues, asked from the service.

Decides nothing. Never complains and never makes the user wait: without a quick answer there is nothing to complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from fairlead.cli.address import find_address
from fairlead.cli.client import Client
from fairlead.cli.failures import Failure

_TIMEOUT_S = 0.5
_MOST = 200


def keys(ctx: Any, _args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Keys of jobs that have not ended, with name and queue beside them."""
    return _quietly(
        ctx,
        lambda client: [
            (row["key"], f"{row.get('name') or ''} {row.get('queue') or ''} {row['state']}".strip())
            for row in client.jobs({"state": ("running", "waiting")}, _MOST)
            if row["key"].startswith(incomplete)
        ],
    )


def queues(ctx: Any, _args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Paths of leaf queues."""
    return _quietly(
        ctx,
        lambda client: [
            (q["path"], f"{q.get('waiting', 0)} waiting")
            for root in client.get("/queues")["queues"]
            for q in flatten(root)
            if q.get("leaf") and q["path"].startswith(incomplete)
        ],
    )


def nodes(ctx: Any, _args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Names of nodes."""
    return _quietly(
        ctx, lambda client: [(n["id"], "") for n in client.get("/nodes")["nodes"] if n["id"].startswith(incomplete)]
    )


def quoted(key: str) -> str:
    """A key as part of a path."""
    return quote(key, safe="")


def flatten(queue: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A queue and all below it, parents first."""
    yield queue
    for child in queue.get("children") or ():
        yield from flatten(child)


def _quietly(ctx: Any, ask: Callable[[Client], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    given = getattr(ctx, "params", None) or {}
    try:
        return ask(Client(find_address(given.get("socket"), given.get("url")), timeout_s=_TIMEOUT_S))
    except (Failure, KeyError, TypeError):
        return []
