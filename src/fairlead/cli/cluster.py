"""Commands about queues, nodes and use: queues, nodes, drain, undrain, label, usage, limits.

Decides how shares, maxima and limits are shown. Never decides who gets what. Invariant: numbers shown are the
service's; only their form is made here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairlead.cli import completion, render
from fairlead.cli.app import REFUSED, Failure, command, connected, list_output, wrong_usage
from fairlead.cli.completion import with_depth
from fairlead.cli.filters import require_queue
from fairlead.cli.render import NONE, Column, Columns, Screen
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.cluster import Node, Queue
    from fairlead.wire.declarations import Limit, Use

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
_NODE_COLUMNS: Columns[Node] = (
    (Column("NODE", least=12), lambda node: node.id),
    (Column("OPEN"), lambda node: "yes" if node.schedulable else "no"),
    (Column("RUNNING", right=True), lambda node: str(node.running)),
    (Column("ALLOCATED", least=20), lambda node: render.amounts(node.allocated)),
    (Column("FREE", least=20), lambda node: render.amounts(node.free)),
    (Column("CAPACITY", least=20), lambda node: render.amounts(node.capacity)),
    (Column("ATTRIBUTES", least=20), lambda node: marks(node)[0]),
    (Column("TAINTS", least=12), lambda node: marks(node)[1]),
)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL_EXAMPLES = """
fairlead label gpu-1 disk=ssd rack=7
fairlead label gpu-1 rack-
fairlead label gpu-1 --taint broken:NoExecute
fairlead label gpu-1 --untaint broken
"""
_BAR = 10
node_argument = click.argument("node", metavar="NODE", help="Name of the node.", shell_complete=completion.nodes)


@command("queues", examples="fairlead queues\nfairlead queues root.research")
@click.argument(
    "queue",
    required=False,
    metavar="[QUEUE]",
    help="Only this queue and those below it.",
    shell_complete=completion.queues,
)
@list_output
@connected
def queues(client: Client, queue: str | None, output: str) -> None:
    """Show the queues: who runs and waits, use, limits.

    PRIORITY is that of the first work waiting in or below the queue, with offsets and fences; a dash if nothing waits.
    FULL is the resource that is closest to its maximum.
    """
    roots = list(client.queues())
    if queue is not None:
        named = (queue.lower(), f"root.{queue.lower()}")
        roots = [each for root in roots for each, _ in with_depth(root) if each.path in named]
        if not roots:
            require_queue(client, queue)
            raise Failure(f"there is no queue {queue}; `fairlead queues` lists them", REFUSED)
    below = [pair for root in roots for pair in with_depth(root)]
    if not render.write_names([each for each, _ in below], "path", output) and not render.write_value(roots, output):
        screen = Screen.of(wide=output == "wide")
        rows = [queue_cells(each, depth if screen.width is not None else None) for each, depth in below]
        columns: tuple[Column, ...] = _QUEUE_COLUMNS
        if len({each.partition for each in roots}) > 1:
            columns = (Column("PARTITION", least=8), *columns)
            rows = [(each.partition, *row) for (each, _), row in zip(below, rows, strict=True)]
        render.table(screen, columns, rows, {"draining": "yellow", "Draining": "yellow"})


def queue_cells(queue: Queue, depth: int | None) -> tuple[str, ...]:
    """One row; `depth` None means the full path instead of an indented name."""
    path = queue.path
    part, name = fullest(queue)
    priority = queue.priority
    return (
        path if depth is None else "  " * depth + path.rsplit(".", 1)[-1],
        queue.state,
        NONE if priority is None else str(priority),
        _running(queue),
        str(queue.waiting),
        f"{render.bar(part, _BAR)} {name}" if name else "",
        in_use(queue),
        render.amounts(queue.pending),
        render.amounts(queue.max),
        render.amounts(queue.guaranteed),
    )


def in_use(queue: Queue) -> str:
    """What a queue uses, and what its idle work uses beside that."""
    return render.amounts(queue.allocated) + (f" + idle {render.amounts(queue.idle)}" if queue.idle else "")


def _running(queue: Queue) -> str:
    return f"{queue.running_applications}" + (f"/{queue.max_applications}" if queue.max_applications else "")


def fullest(queue: Queue) -> tuple[float, str]:
    """How full the queue is by the resource closest to its maximum, and which that is; no maximum gives 0 and ''."""
    used, most = queue.allocated, queue.max or {}
    parts = [(used.get(name, 0) / limit, name) for name, limit in most.items() if limit > 0]
    return max(parts, default=(0.0, ""))


@command("nodes", examples="fairlead nodes\nfairlead nodes --jobs")
@click.option("--jobs", is_flag=True, help="Show the jobs on them instead: whose, what each has, until when at most.")
@list_output
@connected
def nodes(client: Client, jobs: bool, output: str) -> None:
    """Show the nodes: what they have, what is taken."""
    if jobs:
        from fairlead.cli.occupancy import show_occupants

        show_occupants(client, output)
        return
    found = list(client.nodes())
    marked = any(any(marks(node)) for node in found)
    columns = _NODE_COLUMNS if marked else _NODE_COLUMNS[:-2]
    render.write_list(output, found, columns, name="id", styles={"no": "yellow"})


_OF_ITSELF = frozenset({"hostname", "kubernetes.io/hostname", "metadata.name", "fairlead.io/cluster"})
"""What every node says without being told to; on a cluster the scheduler itself puts the last two there."""


def marks(node: Node) -> tuple[str, str]:
    """What a node was given by `label`: its attributes and its taints."""
    own = {name: value for name, value in node.attributes.items() if name not in _OF_ITSELF}
    taints = (f"{t.key}{'=' if t.value else ''}{t.value}:{t.effect}" for t in node.taints)
    return ", ".join(f"{name}={value}" for name, value in sorted(own.items())), ", ".join(sorted(taints))


@command("drain", examples="fairlead drain gpu-1")
@node_argument
@connected
def drain(client: Client, node: str) -> None:
    """Take no new work on a node; what runs there goes on."""
    client.drain(node)
    print(render.plain(f"{node} takes no new work"))


@command("undrain", examples="fairlead undrain gpu-1")
@node_argument
@connected
def undrain(client: Client, node: str) -> None:
    """Let a drained node take work again."""
    client.undrain(node)
    print(render.plain(f"{node} takes work"))


@command("label", examples=_LABEL_EXAMPLES)
@node_argument
@click.argument("words", nargs=-1, metavar="[NAME=VALUE|NAME-]...", help="An attribute to set, or to take away.")
@click.option(
    "--taint", multiple=True, metavar="KEY[=VALUE]:EFFECT", help=f"Keep work away; EFFECT is {', '.join(EFFECTS)}."
)
@click.option("--untaint", multiple=True, metavar="KEY", help="Take all taints with this key away.")
@connected
def label(client: Client, node: str, words: tuple[str, ...], taint: tuple[str, ...], untaint: tuple[str, ...]) -> None:
    """Give a node attributes and taints.

    Attributes are what --node-selector asks for; taints keep away work that does not tolerate them, and NoExecute also
    stops what runs. What is not named stays as it is.
    """
    if not (words or taint or untaint):
        raise wrong_usage("label: say what to change, such as disk=ssd, disk-, or --taint broken:NoSchedule")
    added = [_taint(text) for text in taint]
    known = next((each for each in client.nodes() if each.id == node), None)
    if known is None:
        raise Failure(f"there is no node {node}; `fairlead nodes` lists them", REFUSED)
    attributes = dict(known.attributes)
    missing = [key for key in untaint if key not in {t.key for t in known.taints}]
    missing += [word[:-1] for word in words if "=" not in word and word[:-1] not in attributes]
    for word in words:
        _apply(attributes, word)
    away = {(t["key"], t["effect"]) for t in added}
    kept = [t for t in known.taints if t.key not in untaint and (t.key, t.effect) not in away]
    now = client.label(node, attributes=attributes, taints=[*kept, *added])
    for name in missing:
        print(render.plain(f"note: {node} had no {name}"), file=sys.stderr)
    own, taints = marks(now)
    print(render.plain(f"{node}: {own or 'no attributes'}; {f'taints {taints}' if taints else 'no taints'}"))


def _apply(attributes: dict[str, str], word: str) -> None:
    name, equals, value = word.partition("=")
    if equals and name:
        attributes[name] = value
    elif not equals and word.endswith("-") and len(word) > 1:
        attributes.pop(word[:-1], None)
    else:
        raise wrong_usage(f"label: {word!r} is neither NAME=VALUE nor NAME-")


def _taint(text: str) -> dict[str, str]:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not key or effect not in EFFECTS:
        raise wrong_usage(f"--taint: {text!r} is not KEY[=VALUE]:EFFECT with one of {', '.join(EFFECTS)}")
    return {"key": key, "value": value, "effect": effect}


# -- use ----------------------------------------------------------------------------------------------------------


_USES: Columns[Use] = (
    (Column("WHO", least=8), lambda use: f"{use.kind} {use.name}"),
    (Column("QUEUE", least=12, keep_end=True), lambda use: use.queue),
    (Column("RUNNING", right=True), lambda use: f"{use.running}" + (f"/{use.max_running}" if use.max_running else "")),
    (Column("USED", least=16), lambda use: render.amounts(use.used)),
    (Column("MAX", least=16), lambda use: render.amounts(use.max)),
)
_LIMITS: Columns[Limit] = (
    (Column("QUEUE", least=12, keep_end=True), lambda limit: limit.queue),
    (Column("FOR", least=8), lambda limit: f"{limit.kind} {limit.name}"),
    (Column("RUNNING", right=True), lambda limit: str(limit.max_running or "")),
    (Column("MAX", least=16), lambda limit: render.amounts(limit.max)),
    (
        Column("IN USE BY", least=16),
        lambda limit: "; ".join(f"{u.name}: {u.running} with {render.amounts(u.used)}" for u in limit.using),
    ),
)


@command("usage", examples="fairlead usage\nfairlead usage --user ann")
@click.option("--user", "-u", metavar="USER", help="Only this user.")
@click.option("--group", "-g", metavar="GROUP", help="Only this group.")
@list_output
@connected
def usage(client: Client, user: str | None, group: str | None, output: str) -> None:
    """Show who uses what, beside what each may use.

    Queue by queue: users who have work or limits, and groups that have limits. A dash under MAX: no limit of theirs in
    that queue.
    """
    render.write_list(output, client.usage(user=user, group=group), _USES)


@command("limits")
@list_output
@connected
def limits(client: Client, output: str) -> None:
    """Show the limits of users and groups.

    All that the queue file sets, and who uses some of each now. `user *` is a limit that each user without one of his
    own has for himself; `group *` is one that all other groups share.
    """
    render.write_list(output, client.limits(), _LIMITS)
