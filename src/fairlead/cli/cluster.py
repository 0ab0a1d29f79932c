"""Commands about queues and nodes: queues, nodes, drain, undrain.

Decides how shares and maxima are shown. Never decides who gets what. Invariant: numbers shown are the service's; only
their form is made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from fairlead.cli import completion, render
from fairlead.cli.app import JsonOption, Status, client_command
from fairlead.cli.client import Client
from fairlead.cli.failures import Failure
from fairlead.cli.render import NONE, Column, Screen
from fairlead.core.quantities import people_call

_QUEUE_COLUMNS = (
    Column("QUEUE", least=16),
    Column("STATE", drop=3),
    Column("PRIORITY", right=True),
    Column("RUNNING", right=True),
    Column("WAITING", right=True),
    Column("FULL", drop=4),
    Column("ALLOCATED", least=16),
    Column("PENDING", least=12, drop=2),
    Column("MAX", least=16),
    Column("GUARANTEED", least=12, drop=1),
)
_BAR = 10
NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", autocompletion=completion.nodes)]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    client_command(app, "queues", examples="fairlead queues\nfairlead queues root.research")(queues)
    client_command(app, "nodes")(nodes)
    client_command(app, "drain", examples="fairlead drain gpu-1")(drain)
    client_command(app, "undrain", examples="fairlead undrain gpu-1")(undrain)


def queues(
    client: Client,
    queue: Annotated[
        str | None,
        typer.Argument(metavar="[QUEUE]", help="Only this queue and those below it.", autocompletion=completion.queues),
    ] = None,
    json: JsonOption = False,
) -> Status:
    """Show the queues: who runs and waits, use, limits.

    PRIORITY is that of the first work waiting in or below the queue, with offsets and fences; a dash if nothing waits.
    FULL is the resource that is closest to its maximum.
    """
    roots = client.get("/queues")["queues"]
    if queue is not None:
        roots = [found for root in roots for found in completion.flatten(root) if found["path"] == queue]
        if not roots:
            raise Failure(f"there is no queue {queue}; `fairlead queues` lists them", 4)
    if json:
        render.write_json(roots)
        return None
    print_queues(Screen.of(), roots)
    return None


def print_queues(screen: Screen, roots: list[dict[str, Any]]) -> None:
    """A table of queues: indented by depth in a terminal, full paths elsewhere."""
    rows = [queue_cells(q, depth if screen.width is not None else None) for r in roots for q, depth in with_depth(r)]
    render.table(screen, _QUEUE_COLUMNS, rows, {"draining": "yellow", "Draining": "yellow"})


def with_depth(queue: dict[str, Any], depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """A queue and all below it, each with how deep it is."""
    yield queue, depth
    for child in queue.get("children") or ():
        yield from with_depth(child, depth + 1)


def queue_cells(queue: dict[str, Any], depth: int | None) -> tuple[str, ...]:
    """One row; `depth` None means the full path instead of an indented name."""
    path = queue["path"]
    part, name = fullest(queue)
    priority = queue.get("priority")
    return (
        path if depth is None else "  " * depth + path.rsplit(".", 1)[-1],
        queue.get("state") or "",
        NONE if priority is None else str(priority),
        _running(queue),
        str(queue.get("waiting", "")),
        f"{render.bar(part, _BAR)} {name}" if name else "",
        in_use(queue),
        render.amounts(queue.get("pending") or {}),
        render.amounts(queue.get("max") or {}),
        render.amounts(queue.get("guaranteed") or {}),
    )


def in_use(queue: dict[str, Any]) -> str:
    """What a queue uses, and what its idle work uses beside that."""
    idle = queue.get("idle") or {}
    return render.amounts(queue.get("allocated") or {}) + (f" + idle {render.amounts(idle)}" if idle else "")


def _running(queue: dict[str, Any]) -> str:
    most = queue.get("max_apps") or 0
    return f"{queue.get('running_apps', 0)}" + (f"/{most}" if most else "")


def fullest(queue: dict[str, Any]) -> tuple[float, str]:
    """How full the queue is by the resource closest to its maximum, and which that is; no maximum gives 0 and ''."""
    used, most = queue.get("allocated") or {}, queue.get("max") or {}
    parts = [(used.get(name, 0) / limit, name) for name, limit in most.items() if limit > 0]
    part, name = max(parts, default=(0.0, ""))
    return part, people_call(name)


def nodes(client: Client, json: JsonOption = False) -> Status:
    """Show the nodes: what they have, what is taken."""
    found = client.get("/nodes")["nodes"]
    if json:
        render.write_json(found)
        return None
    columns = (
        Column("NODE", least=12),
        Column("OPEN"),
        Column("RUNNING", right=True),
        Column("ALLOCATED", least=20),
        Column("FREE", least=20),
        Column("CAPACITY", least=20),
        *((Column("ATTRIBUTES", least=20), Column("TAINTS", least=12)) if any(any(marks(n)) for n in found) else ()),
    )
    rows = [(*_node_cells(n), *marks(n)) for n in found]
    render.table(Screen.of(), columns, [row[: len(columns)] for row in rows], {"no": "yellow"})
    return None


def _node_cells(node: dict[str, Any]) -> tuple[str, ...]:
    return (
        node["id"],
        "yes" if node.get("schedulable") else "no",
        str(node.get("running", "")),
        *(render.amounts(node.get(name) or {}) for name in ("allocated", "free", "capacity")),
    )


_OF_ITSELF = frozenset({"hostname", "kubernetes.io/hostname"})
"""What every node says without being told to."""


def marks(node: dict[str, Any]) -> tuple[str, str]:
    """What a node was given by `label`: its attributes and its taints."""
    own = {name: value for name, value in (node.get("attributes") or {}).items() if name not in _OF_ITSELF}
    taints = (f"{t['key']}{'=' if t['value'] else ''}{t['value']}:{t['effect']}" for t in node.get("taints") or ())
    return ", ".join(f"{name}={value}" for name, value in sorted(own.items())), ", ".join(sorted(taints))


def drain(client: Client, node: NodeArgument) -> Status:
    """Take no new work on a node; what runs there goes on."""
    client.post(f"/nodes/{completion.quoted(node)}/drain")
    print(render.plain(f"{node} takes no new work"))
    return None


def undrain(client: Client, node: NodeArgument) -> Status:
    """Let a drained node take work again."""
    client.post(f"/nodes/{completion.quoted(node)}/undrain")
    print(render.plain(f"{node} takes work"))
    return None
