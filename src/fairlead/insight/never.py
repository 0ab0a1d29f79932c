"""Never: whether an ask could not run even if nothing else did, told from its size alone.

Decides by three comparisons: its amounts with each node, with each maximum on the way of its queue, and with the limits
of its user and group. Never tries anything: it costs one look at each node (`unblock` finds out the rest, when somebody
asks). Invariant: what is said to be impossible is so as long as nodes, queues and limits stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.wire.fields import with_cpu
from fairlead.wire.jobs import Reason

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.resources import Items
    from fairlead.scheduler import Scheduler

CODE = "never-as-it-is"


def never(scheduler: Scheduler, application: str, key: str, partition: str = DEFAULT_PARTITION) -> Reason | None:
    """Why this ask can never run as it is, and what would have to be otherwise; None: nothing says so."""
    part = scheduler.cluster.partitions[partition]
    app = part.applications.get(application)
    if app is None:
        return None
    ask, held = app.asks.get(key), part.held_asks.get(application, key)
    spec = ask.spec if ask is not None else held.spec if held is not None else None
    if spec is None or (ask is not None and not ask.pending):
        return None
    items = ask.items if ask is not None else spec.resources.items
    found = [*_of_nodes(part, items), *_of_queues(app, items, idle=spec.idle), *_of_limits(app, items)]
    if not found:
        return None
    said = "; and ".join(f"{obstacle}: {remedy}" for obstacle, remedy in found)
    return Reason(
        code=CODE, sentence=said, values={"needed": with_cpu(dict(items)), "obstacles": [each for each, _ in found]}
    )


def _of_nodes(part: Partition, items: Items) -> Iterator[tuple[str, str]]:
    """None where nodes have yet to come."""
    nodes = part.nodes.nodes.values()
    if not nodes or any(node.fits_total(items) for node in nodes):
        return
    largest = {name: max(node.total.get(name, 0) for node in nodes) for name, _ in items}
    short = {name: amount for name, amount in items if amount > largest[name]}
    # Where each amount by itself is to be had, it is all of them together that no node has.
    needed = short or dict(items)
    has = {name: largest[name] for name in needed}
    which = "the only node has" if len(nodes) == 1 else "no node has more than"
    together = "" if short else " together"
    yield (
        f"it needs {format_amounts(needed, up=True)} on one node, and {which} {format_amounts(has)}{together}",
        "ask for less, or a larger node has to come",
    )


def _of_queues(app: Application, items: Items, *, idle: bool) -> Iterator[tuple[str, str]]:
    """Idle work counts against no maximum below its resource group, and is left to the search."""
    for queue in () if idle else app.queue.lineage[:-1]:
        if short := _above(items, queue.max):
            yield (
                f"it needs {_said(items, short)}, and queue {queue.path} may use {format_amounts(short)} at most",
                "ask for less, submit to another queue, or an administrator raises the maximum",
            )


def _of_limits(app: Application, items: Items) -> Iterator[tuple[str, str]]:
    for ceiling in app.ceilings:
        if short := _above(items, ceiling.max):
            whose = f"{ceiling.kind} {ceiling.name} may use {format_amounts(short)} of {ceiling.queue} at most"
            yield f"it needs {_said(items, short)}, and {whose}", "ask for less, or an administrator raises the limit"


def _above(items: Items, most: Mapping[str, int] | None) -> dict[str, int]:
    """The bounds that the amounts are above."""
    bounds = most or {}
    return {name: bounds[name] for name, amount in items if name in bounds and amount > bounds[name]}


def _said(items: Items, names: Mapping[str, int]) -> str:
    return format_amounts({name: amount for name, amount in items if name in names}, up=True)
