"""Commands about priority classes, quotas by class and disruption budgets: list, set and remove each.

Decides how they are written on the command line and shown. Never judges one: the service does. Invariant: what is shown
is what is in force, with where it comes from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.cli import completion, render
from fairlead.cli.app import Group, connected, list_output, wrong_usage
from fairlead.cli.render import Column, Columns
from fairlead.cli.values import parse_amount, parse_duration, parse_pairs
from fairlead.client.sync import Client
from fairlead.core.model.quantities import resource_called
from fairlead.wire.fields import with_cpu

if TYPE_CHECKING:
    from fairlead.wire.declarations import Budget, Condition, PriorityClass, Quota

_T = TypeVar("_T")
name_argument = click.argument("name", metavar="NAME", help="Its name.")
_SOURCES = {"built-in": "built in", "file": "queue file", "api": "API"}


priority_class = Group("priority-class", help="List and change priority classes.")
quota = Group("quota", help="List and change quotas by priority class.")
budget = Group("budget", help="List and change disruption budgets.")


def condition(row: Condition) -> str:
    """A condition on the class or a label in words."""
    values = ", ".join(row.values)
    key = "" if row.key == "PriorityClass" else f"{row.key} "
    match row.operator:
        case "In":
            return f"{key}{'= ' if key else ''}{values}"
        case "NotIn":
            return f"{key}not {values}"
        case "Exists":
            return f"{key}set" if key else "any"
    return f"{key}not set" if key else "none"


def _from(row: PriorityClass | Quota | Budget) -> str:
    return _SOURCES.get(row.source, row.source)


_CLASSES: Columns[PriorityClass] = (
    (Column("CLASS", least=12), lambda row: row.name),
    (Column("VALUE", right=True), lambda row: str(row.value)),
    (Column("DEFAULT"), lambda row: "yes" if row.global_default else ""),
    (Column("PREEMPTS"), lambda row: "never" if row.preemption_policy == "Never" else "lower"),
    (Column("LIMITED"), lambda row: "yes" if row.limited else ""),
    (Column("SPARED FOR", right=True), lambda row: render.duration(row.min_runtime_ms) if row.min_runtime_ms else ""),
    (Column("FROM"), _from),
    (Column("DESCRIPTION", least=10, drop=1), lambda row: row.description),
)
_QUOTAS: Columns[Quota] = (
    (Column("QUOTA", least=12), lambda row: row.name),
    (Column("QUEUE", least=12), lambda row: row.queue),
    (Column("CLASSES", least=10), lambda row: "; ".join(condition(scope) for scope in row.scopes) or "all"),
    (Column("JOBS", right=True), lambda row: str(row.jobs)),
    (Column("USED", least=12), lambda row: render.amounts({n: row.used.get(n, 0) for n in row.resources})),
    (Column("MAX", least=12), lambda row: render.amounts(row.resources)),
    (Column("FROM", drop=1), _from),
)
_BUDGETS: Columns[Budget] = (
    (Column("BUDGET", least=12), lambda row: row.name),
    (Column("JOBS", least=16), lambda row: "; ".join(condition(each) for each in row.selector) or "all"),
    (Column("STAYS", right=True), lambda row: "" if row.min_available is None else str(row.min_available)),
    (Column("STOPS", right=True), lambda row: "" if row.max_unavailable is None else str(row.max_unavailable)),
    (Column("LEFT", right=True), lambda row: str(row.left)),
    (Column("FROM", drop=1), _from),
)


def _list(group: Group, about: str, ask: Callable[[Client], Iterable[_T]], columns: Columns[_T], nothing: str) -> None:
    """Add the command that lists them; where there is nothing it says so, and the table stays empty."""

    @group.command("list", help=about)
    @list_output
    @connected
    def list_all(client: Client, output: str) -> None:
        found = list(ask(client))
        if not found:
            print(f"there is no {nothing} yet", file=sys.stderr)
        render.write_list(output, found, columns)


def _remove(group: Group, about: str, act: Callable[[Client, str], Any], example: str) -> None:
    """Add the command that removes one."""

    @group.command("remove", help=about, examples=f"fairlead {group.name} remove {example}")
    @name_argument
    @connected
    def remove(client: Client, name: str) -> None:
        act(client, name)
        print(render.plain(f"{name} is removed"))


def _is_set(name: str) -> None:
    print(render.plain(f"{name} is set"))


# -- priority classes ---------------------------------------------------------------------------------------------

_list(
    priority_class,
    "List the priority classes, highest first.",
    lambda client: client.priority_classes(),
    _CLASSES,
    "priority class",
)


@priority_class.command("set", examples="fairlead priority-class set urgent --value 1000 --never")
@name_argument
@click.option("--value", "-v", type=int, required=True, metavar="N", help="The priority it stands for.")
@click.option("--default", is_flag=True, help="Jobs that name neither class nor priority get it.")
@click.option("--never", is_flag=True, help="Its jobs make nobody stop.")
@click.option("--limited", is_flag=True, help="Usable only where a quota selects it.")
@click.option("--min-runtime", default="", metavar="TIME", help="Its jobs are not stopped for others before, as 10m.")
@click.option("--description", "-d", default="", metavar="TEXT", help="What it is for.")
@connected
def set_class(
    client: Client, name: str, value: int, default: bool, never: bool, limited: bool, min_runtime: str, description: str
) -> None:
    """Make or change a priority class, for new jobs (administrators)."""
    body = {
        "value": value,
        "global_default": default,
        "preemption_policy": "Never" if never else "PreemptLowerPriority",
        "limited": limited,
        "min_runtime_ms": parse_duration(min_runtime, "--min-runtime") if min_runtime else 0,
        "description": description,
    }
    client.set_priority_class(name, body)
    _is_set(name)


_remove(
    priority_class,
    "Remove a priority class; jobs that have it keep it (administrators).",
    lambda client, name: client.remove_priority_class(name),
    "urgent",
)


# -- quotas -------------------------------------------------------------------------------------------------------


_list(
    quota,
    "List the quotas, and what has been admitted under each.",
    lambda client: client.quotas(),
    _QUOTAS,
    "quota",
)


@quota.command("set", examples="fairlead quota set urgent-in-ml --queue root.ml --class urgent --resource cpu=4")
@name_argument
@click.option(
    "--queue", "-q", required=True, metavar="QUEUE", help="Full path of the queue.", shell_complete=completion.queues
)
@click.option(
    "--resource",
    "-r",
    multiple=True,
    metavar="NAME=N",
    help="At most so much, as cpu=4; may be repeated. Without any it only selects a class.",
)
@click.option(
    "--class", "-c", "classes", multiple=True, metavar="NAME", help="For jobs of this class; may be repeated."
)
@click.option(
    "--not-class", "others", multiple=True, metavar="NAME", help="For jobs that are not of this class; may be repeated."
)
@click.option("--any-class", "classed", is_flag=True, help="For jobs of any class.")
@click.option("--no-class", "classless", is_flag=True, help="For jobs without a class.")
@connected
def set_quota(
    client: Client,
    name: str,
    queue: str,
    resource: tuple[str, ...],
    classes: tuple[str, ...],
    others: tuple[str, ...],
    classed: bool,
    classless: bool,
) -> None:
    """Make or change a quota by priority class (administrators).

    It counts all work of the queue and those below that was admitted, whether it waits or runs.
    """
    if classless and (classes or classed):
        raise wrong_usage("--no-class is for jobs without a class: nothing is that and of a class; make two quotas")
    said = (("In", bool(classes), classes), ("NotIn", bool(others), others))
    flags: tuple[tuple[str, bool, tuple[str, ...]], ...] = (("Exists", classed, ()), ("DoesNotExist", classless, ()))
    scopes = [{"operator": operator, "values": list(values)} for operator, given, values in (*said, *flags) if given]
    client.set_quota(name, {"queue": queue, "resources": _amounts(resource), "scopes": scopes})
    _is_set(name)
    paths = {each.path.lower() for root in client.queues() for each, _ in completion.with_depth(root)}
    if queue.lower() not in paths:
        print(render.plain(f"note: there is no queue {queue} yet; `fairlead queues` lists them"), file=sys.stderr)
    known = {each.name for each in client.priority_classes()}
    for missing in [each for each in (*classes, *others) if each not in known]:
        print(render.plain(f"note: there is no priority class {missing} yet"), file=sys.stderr)


def _amounts(texts: Sequence[str]) -> Any:
    pairs = {resource_called(name): text for name, text in parse_pairs(texts, "--resource", "cpu=4").items()}
    return with_cpu({name: parse_amount(name, text, f"--resource {name}") for name, text in pairs.items()})


_remove(quota, "Remove a quota (administrators).", lambda client, name: client.remove_quota(name), "urgent-in-ml")


# -- disruption budgets -------------------------------------------------------------------------------------------


_list(
    budget,
    "List the budgets, and how much each lets stop now.",
    lambda client: client.budgets(),
    _BUDGETS,
    "disruption budget",
)


@budget.command("set", examples="fairlead budget set db --label app=db --min-available 2")
@name_argument
@click.option(
    "--label",
    "-l",
    multiple=True,
    metavar="NAME=VALUE",
    help="For jobs with this label; may be repeated. Without any: all jobs.",
)
@click.option("--min-available", "least", metavar="N", help="So many must stay, or a part: 50%.")
@click.option("--max-unavailable", "most", metavar="N", help="So many may stop, or a part: 50%.")
@connected
def set_budget(client: Client, name: str, label: tuple[str, ...], least: str | None, most: str | None) -> None:
    """Make or change a disruption budget (administrators).

    Where there is a choice, nothing is stopped beyond it to make room for others. Where there is none it is, and its
    history names the budget.
    """
    pairs = parse_pairs(label or [], "--label", "app=db")
    if (least is None) == (most is None):
        raise wrong_usage("give either --min-available or --max-unavailable")
    selector = [{"key": key, "operator": "In", "values": [value]} for key, value in pairs.items()]
    bounds = {"min_available": least, "max_unavailable": most}
    body: dict[str, Any] = {"selector": selector}
    for field, text in bounds.items():
        if text is not None:
            body[field] = int(text) if text.isascii() and text.isdigit() else text
    client.set_budget(name, body)
    _is_set(name)


_remove(budget, "Remove a disruption budget (administrators).", lambda client, name: client.remove_budget(name), "db")
