"""Commands about priority classes, quotas by class and disruption budgets: list, set and remove each.

Decides how they are written on the command line and shown. Never judges one: the service does. Invariant: what is shown
is what is in force, with where it comes from.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from fairlead.cli import completion, render
from fairlead.cli.app import JsonOption, Status, client_command, group
from fairlead.cli.client import Client
from fairlead.cli.failures import wrong_usage
from fairlead.cli.render import Column, Screen
from fairlead.cli.values import parse_amount, parse_duration, parse_memory, parse_pairs
from fairlead.core.quantities import resource_called

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
_SOURCES = {"built-in": "built in", "file": "queue file", "api": "API"}


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    classes = group("priority-class", "List and change priority classes.")
    client_command(classes, "list")(list_classes)
    client_command(
        classes,
        "set",
        examples="fairlead priority-class set urgent --value 1000 --never",
    )(set_class)
    client_command(classes, "remove", examples="fairlead priority-class remove urgent")(remove_class)
    app.add_typer(classes)
    quotas = group("quota", "List and change quotas by priority class.")
    client_command(quotas, "list")(list_quotas)
    client_command(
        quotas, "set", examples="fairlead quota set urgent-in-ml --queue root.ml --class urgent --resource cpu=4"
    )(set_quota)
    client_command(quotas, "remove", examples="fairlead quota remove urgent-in-ml")(remove_quota)
    app.add_typer(quotas)
    budgets = group("budget", "List and change disruption budgets.")
    client_command(budgets, "list")(list_budgets)
    client_command(budgets, "set", examples="fairlead budget set db --label app=db --min-available 2")(set_budget)
    client_command(budgets, "remove", examples="fairlead budget remove db")(remove_budget)
    app.add_typer(budgets)


def _removed(client: Client, route: str, name: str) -> Status:
    client.delete(f"/{route}/{completion.quoted(name)}")
    print(render.plain(f"{name} is removed"))
    return None


def _put(client: Client, route: str, name: str, body: dict[str, Any]) -> Status:
    client.put(f"/{route}/{completion.quoted(name)}", body)
    print(render.plain(f"{name} is set"))
    return None


def _empty(found: list[Any], what: str) -> None:
    """Say so where there is nothing to list; the table stays empty for those who count its lines."""
    if not found:
        print(f"there is no {what} yet", file=sys.stderr)


# -- priority classes ---------------------------------------------------------------------------------------------


def list_classes(client: Client, json: JsonOption = False) -> Status:
    """List the priority classes, highest first."""
    found = client.get("/priority-classes")["priority_classes"]
    if json:
        render.write_json(found)
        return None
    columns = (
        Column("CLASS", least=12),
        Column("VALUE", right=True),
        Column("DEFAULT"),
        Column("PREEMPTS"),
        Column("LIMITED"),
        Column("SPARED FOR", right=True),
        Column("FROM"),
        Column("DESCRIPTION", least=10, drop=1),
    )
    render.table(Screen.of(), columns, [_class_cells(each) for each in found])
    return None


def _class_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        str(row["value"]),
        "yes" if row["global_default"] else "",
        "never" if row["preemption_policy"] == "Never" else "lower",
        "yes" if row["limited"] else "",
        render.duration(row["min_runtime_ms"]) if row.get("min_runtime_ms") else "",
        _SOURCES.get(row["source"], row["source"]),
        row["description"],
    )


def set_class(
    client: Client,
    name: NameArgument,
    value: Annotated[int, typer.Option("--value", "-v", metavar="N", help="The priority it stands for.")],
    default: Annotated[
        bool, typer.Option("--default", help="Jobs that name neither class nor priority get it.")
    ] = False,
    never: Annotated[bool, typer.Option("--never", help="Its jobs make nobody stop.")] = False,
    limited: Annotated[bool, typer.Option("--limited", help="Usable only where a quota selects it.")] = False,
    min_runtime: Annotated[
        str,
        typer.Option("--min-runtime", metavar="TIME", help="Its jobs are not stopped for others before, as 10m."),
    ] = "",
    description: Annotated[str, typer.Option("--description", "-d", metavar="TEXT", help="What it is for.")] = "",
) -> Status:
    """Make or change a priority class, for new jobs (administrators)."""
    body = {
        "value": value,
        "global_default": default,
        "preemption_policy": "Never" if never else "PreemptLowerPriority",
        "limited": limited,
        "min_runtime_ms": parse_duration(min_runtime, "--min-runtime") if min_runtime else 0,
        "description": description,
    }
    return _put(client, "priority-classes", name, body)


def remove_class(client: Client, name: NameArgument) -> Status:
    """Remove a priority class; jobs that have it keep it (administrators)."""
    return _removed(client, "priority-classes", name)


# -- quotas -------------------------------------------------------------------------------------------------------


def list_quotas(client: Client, json: JsonOption = False) -> Status:
    """List the quotas, and what has been admitted under each."""
    found = client.get("/quotas")["quotas"]
    if json:
        render.write_json(found)
        return None
    columns = (
        Column("QUOTA", least=12),
        Column("QUEUE", least=12),
        Column("CLASSES", least=10),
        Column("WORKS", right=True),
        Column("USED", least=12),
        Column("MAX", least=12),
        Column("FROM", drop=1),
    )
    _empty(found, "quota")
    render.table(Screen.of(), columns, [_quota_cells(each) for each in found])
    return None


def _quota_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        row["queue"],
        "; ".join(condition(scope) for scope in row["scopes"]) or "all",
        str(row["jobs"]),
        render.amounts({name: row["used"].get(name, 0) for name in row["resources"]}),
        render.amounts(row["resources"]),
        _SOURCES.get(row["source"], row["source"]),
    )


def condition(row: dict[str, Any]) -> str:
    """A condition on the class or a label in words."""
    values = ", ".join(row["values"])
    key = "" if row["key"] == "PriorityClass" else f"{row['key']} "
    match row["operator"]:
        case "In":
            return f"{key}{'= ' if key else ''}{values}"
        case "NotIn":
            return f"{key}not {values}"
        case "Exists":
            return f"{key}set" if key else "any"
    return f"{key}not set" if key else "none"


def set_quota(
    client: Client,
    name: NameArgument,
    queue: Annotated[
        str,
        typer.Option(
            "--queue", "-q", metavar="QUEUE", help="Full path of the queue.", autocompletion=completion.queues
        ),
    ],
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            "-r",
            metavar="NAME=N",
            help="At most so much, as cpu=4; may be repeated. Without any it only selects a class.",
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", "-c", metavar="NAME", help="For jobs of this class; may be repeated."),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option("--not-class", metavar="NAME", help="For jobs that are not of this class; may be repeated."),
    ] = None,
    classed: Annotated[bool, typer.Option("--any-class", help="For jobs of any class.")] = False,
    classless: Annotated[bool, typer.Option("--no-class", help="For jobs without a class.")] = False,
) -> Status:
    """Make or change a quota by priority class (administrators).

    It counts all work of the queue and those below that was admitted, whether it waits or runs.
    """
    if classless and (classes or classed):
        raise wrong_usage("--no-class is for jobs without a class: nothing is that and of a class; make two quotas")
    said = (("In", bool(classes), classes), ("NotIn", bool(others), others))
    flags = (("Exists", classed, None), ("DoesNotExist", classless, None))
    scopes = [{"operator": operator, "values": values or []} for operator, given, values in (*said, *flags) if given]
    _put(client, "quotas", name, {"queue": queue, "resources": _amounts(resource or []), "scopes": scopes})
    roots = client.get("/queues")["queues"]
    if queue.lower() not in {each["path"].lower() for root in roots for each in completion.flatten(root)}:
        print(render.plain(f"note: there is no queue {queue} yet; `fairlead queues` lists them"), file=sys.stderr)
    known = {each["name"] for each in client.get("/priority-classes")["priority_classes"]}
    for missing in [each for each in (*(classes or ()), *(others or ())) if each not in known]:
        print(render.plain(f"note: there is no priority class {missing} yet"), file=sys.stderr)
    return None


def _amounts(texts: list[str]) -> dict[str, int]:
    pairs = {resource_called(name): text for name, text in _pairs(texts).items()}
    return {
        name: parse_memory(text, "--resource memory")
        if name == "memory"
        else parse_amount(name, text, f"--resource {name}")
        for name, text in pairs.items()
    }


def _pairs(texts: list[str]) -> dict[str, str]:
    return parse_pairs(texts, "--resource", "cpu=4")


def remove_quota(client: Client, name: NameArgument) -> Status:
    """Remove a quota (administrators)."""
    return _removed(client, "quotas", name)


# -- disruption budgets -------------------------------------------------------------------------------------------


def list_budgets(client: Client, json: JsonOption = False) -> Status:
    """List the budgets, and how much each lets stop now."""
    found = client.get("/budgets")["budgets"]
    if json:
        render.write_json(found)
        return None
    columns = (
        Column("BUDGET", least=12),
        Column("WORKS", least=16),
        Column("STAYS", right=True),
        Column("STOPS", right=True),
        Column("LEFT", right=True),
        Column("FROM", drop=1),
    )
    _empty(found, "disruption budget")
    render.table(Screen.of(), columns, [_budget_cells(each) for each in found])
    return None


def _budget_cells(row: dict[str, Any]) -> tuple[str, ...]:
    bounds = (row["min_available"], row["max_unavailable"])
    return (
        row["name"],
        "; ".join(condition(each) for each in row["selector"]) or "all",
        *("" if bound is None else str(bound) for bound in bounds),
        str(row["left"]),
        _SOURCES.get(row["source"], row["source"]),
    )


def set_budget(
    client: Client,
    name: NameArgument,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            "-l",
            metavar="NAME=VALUE",
            help="For jobs with this label; may be repeated. Without any: all jobs.",
        ),
    ] = None,
    least: Annotated[
        str | None, typer.Option("--min-available", metavar="N", help="So many must stay, or a part: 50%.")
    ] = None,
    most: Annotated[
        str | None, typer.Option("--max-unavailable", metavar="N", help="So many may stop, or a part: 50%.")
    ] = None,
) -> Status:
    """Make or change a disruption budget (administrators)."""
    pairs = parse_pairs(label or [], "--label", "app=db")
    if (least is None) == (most is None):
        raise wrong_usage("give either --min-available or --max-unavailable")
    selector = [{"key": key, "operator": "In", "values": [value]} for key, value in pairs.items()]
    bounds = {"min_available": least, "max_unavailable": most}
    body: dict[str, Any] = {"selector": selector}
    for field, text in bounds.items():
        if text is not None:
            body[field] = int(text) if text.isascii() and text.isdigit() else text
    return _put(client, "budgets", name, body)


def remove_budget(client: Client, name: NameArgument) -> Status:
    """Remove a disruption budget (administrators)."""
    return _removed(client, "budgets", name)
