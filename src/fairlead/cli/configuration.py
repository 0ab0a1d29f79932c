"""Commands about the queue configuration: config check, config show, config default, config apply.

Decides how problems are listed. Never changes a file. Invariant: `check` needs no service, and what it accepts is what
`up` and `apply` accept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.cli import render
from fairlead.cli.app import JsonOption, Status, client_command, command, complain, group
from fairlead.cli.client import Client, Refusal
from fairlead.cli.failures import FAILED
from fairlead.cli.worklist import read_text

if TYPE_CHECKING:
    from fairlead.config import Problem

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A queues.yaml; - is standard input.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    config = group("config", "Check, show and apply the queue configuration.")
    command(config, "check", examples="fairlead config check queues.yaml")(check)
    client_command(config, "show", examples="fairlead config show > queues.yaml")(show)
    command(config, "default", examples="fairlead config default > queues.yaml")(default)
    client_command(config, "apply", examples="fairlead config apply queues.yaml")(apply)
    app.add_typer(config)


def check(file: FileArgument, json: JsonOption = False) -> Status:
    """List everything that is wrong with a queues.yaml.

    Exit status 0 if it can be used (warnings are listed all the same), 1 if not. Needs no running service.
    """
    problems = problems_of(read_text(file), "<standard input>" if file == "-" else file)
    errors = sum(problem.severity == "error" for problem in problems)
    if json:
        render.write_json({"ok": not errors, "problems": [problem.as_dict() for problem in problems]})
        return FAILED if errors else None
    for problem in problems:
        print(render.plain(problem))
    if errors:
        complain(f"{file} cannot be used: {_count(errors, 'error')}")
        return FAILED
    complain(f"{file} can be used" + (f", with {_count(len(problems), 'warning')}" if problems else ""))
    return None


def problems_of(text: str, source: str) -> list[Problem]:
    """Everything that is wrong with a configuration, and everything in it that would be ignored."""
    from fairlead.config import check_text, load_text
    from fairlead.config.unsupported import not_yet

    problems = check_text(text, source)
    if any(problem.severity == "error" for problem in problems):
        return problems
    return [*problems, *not_yet(load_text(text, source), source)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def show(client: Client, json: JsonOption = False) -> Status:
    """Print the configuration that the service uses."""
    answer = client.get("/config")
    if json:
        render.write_json(answer)
    else:
        print(answer["text"], end="" if answer["text"].endswith("\n") else "\n")
    return None


def default() -> Status:
    """Print the configuration used when `up` is given none."""
    from fairlead.config import default_text

    print(default_text(), end="")
    return None


def apply(client: Client, file: FileArgument, json: JsonOption = False) -> Status:
    """Give the service a new configuration.

    It is refused as a whole, with everything that is wrong, or applied as one step. For administrators.
    """
    text = read_text(file)
    try:
        answer = client.put("/config", {"text": text})
    except Refusal as refusal:
        if refusal.http_status != 422:
            raise
        complain(f"{file} was not applied: {refusal.message}", [f"{file}:{line}" for line in refusal.details])
        return FAILED
    if json:
        render.write_json(answer)
    else:
        complain(f"{file} is applied")
    return None
