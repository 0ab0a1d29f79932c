"""Words for the shell to complete: keys of jobs and names of queues, asked from the service.

Decides nothing. Never complains and never makes the user wait: without a quick answer there is nothing to complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.client.address import find_address
from fairlead.client.errors import ClientError
from fairlead.client.sync import LIVE, Client
from fairlead.places import client_config

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from fairlead.wire.cluster import Queue

_TIMEOUT_S = 0.5
_MOST = 200


def keys(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Keys of jobs that have not ended, with name and queue beside them."""
    return _quietly(
        ctx,
        lambda client: [
            (job.key, f"{job.name} {job.queue} {job.state}".strip())
            for job in client.jobs(state=sorted(LIVE), limit=_MOST)
            if job.key.startswith(incomplete)
        ],
    )


def queues(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Paths of leaf queues."""
    return _quietly(
        ctx,
        lambda client: [
            (queue.path, f"{queue.waiting} waiting")
            for root in client.queues()
            for queue, _ in with_depth(root)
            if queue.leaf and queue.path.startswith(incomplete)
        ],
    )


def nodes(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of nodes."""
    return _quietly(ctx, lambda client: [(n.id, "") for n in client.nodes() if n.id.startswith(incomplete)])


def contexts(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of contexts."""
    from click.shell_completion import CompletionItem

    try:
        from pathlib import Path

        from fairlead.client.contexts import read_contexts

        named = read_contexts(Path(client_config())).named
    except ClientError:
        return []
    return [
        CompletionItem(name, help=str(each.address())) for name, each in named.items() if name.startswith(incomplete)
    ]


def with_depth(queue: Queue, depth: int = 0) -> Iterator[tuple[Queue, int]]:
    """A queue and all below it, parents first, each with how deep it is."""
    yield queue, depth
    for child in queue.children:
        yield from with_depth(child, depth + 1)


def _quietly(ctx: click.Context, ask: Callable[[Client], list[tuple[str, str]]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    try:
        given = {name: ctx.params.get(name) for name in ("socket", "url", "context", "ca")}
        address = find_address(**given)
        found = ask(Client(address, timeout_s=_TIMEOUT_S))
    except ClientError:
        return []
    return [CompletionItem(value, help=about or None) for value, about in found]
