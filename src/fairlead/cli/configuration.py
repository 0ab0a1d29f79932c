"""Commands about the queue configuration: config check, schema, show, default, status, history, diff, compare, apply,
rollback.

Decides how problems and versions are listed, and when a person is asked before something changes. Never changes a file.
Invariant: `check` needs no service, and what it accepts is what `up` and `apply` accept, save for a file of which it
warns that it is not for a machine; on a terminal nothing is changed that was not shown first.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import click

from fairlead.cli import app, difference, render
from fairlead.cli.render import Column, Columns, Screen
from fairlead.cli.submit import read_text
from fairlead.client.errors import Refused
from fairlead.client.sync import Client
from fairlead.wire.fields import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.config import Problem
    from fairlead.wire.configuration import ConfigApplied, ConfigDifference, ConfigVersion

T = TypeVar("T")

file_argument = click.argument("file", metavar="FILE", help="A queues.yaml; - is standard input.")
yes_option = click.option(
    "--yes", "-y", is_flag=True, help="Do not ask. Without a terminal nobody is asked in any case."
)
version_argument = click.argument(
    "version",
    type=click.IntRange(1),
    required=False,
    metavar="[N]",
    help="Which version; the one before the one in force if left out.",
)
_INVALID = 422
_APPLY_EXAMPLES = """
fairlead config diff queues.yaml
fairlead config apply queues.yaml
fairlead config apply --yes queues.yaml     (in scripts)
"""


config = app.Group("config", help="Check, show and change the queue configuration.")


@config.command("schema", examples="fairlead config schema > queues.schema.json")
def schema() -> None:
    """Print the JSON schema of a queues.yaml, for editors.

    It knows keys, types and the words to choose from; `config check` knows everything.
    """
    from fairlead.config import schema as schema_of

    render.write_value(schema_of(), "json")


@config.command("check", examples="fairlead config check queues.yaml")
@file_argument
@click.option("--accounts", is_flag=True, help="Warn of users and groups that it names and this machine does not know.")
@app.show_output
def check(file: str, accounts: bool, output: str) -> app.Status:
    """List everything that is wrong with a queues.yaml.

    Exit status 0 if it can be used (warnings are listed all the same), 1 if not. Needs no running service.
    """
    from fairlead.config import WARNING, problems_of

    text = read_text(file, ends_of_lines=True)
    problems = problems_of(text, _source(file), elsewhere=WARNING)
    problems += _unknown_accounts(text, _source(file)) if accounts else []
    errors = sum(problem.severity == "error" for problem in problems)
    if render.write_value({"ok": not errors, "problems": [problem.as_dict() for problem in problems]}, output):
        return app.FAILED if errors else None
    for problem in problems:
        print(shortened(render.plain(problem)))
    if errors:
        app.complain(f"{file} cannot be used: {_count(errors, 'error')}")
        return app.FAILED
    app.complain(f"{file} can be used" + (f", with {_count(len(problems), 'warning')}" if problems else ""))
    return None


def _unknown_accounts(text: str, source: str) -> list[Problem]:
    """Nothing where the text cannot be used: that is said apart."""
    from fairlead.config import WARNING, ConfigurationError, Problem, usable
    from fairlead.local.unknown_accounts import unknown_accounts

    try:
        found = unknown_accounts(usable(text, source))
    except ConfigurationError:
        return []

    return [Problem(source=source, line=1, column=1, path="", message=sentence, severity=WARNING) for sentence in found]


def _source(file: str) -> str:
    return "<standard input>" if file == "-" else file


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@config.command("show", examples="fairlead config show > queues.yaml\nfairlead config show --version 3")
@click.option("--version", type=click.IntRange(1), metavar="N", help="An earlier one; `config history` lists them.")
@app.show_output
@app.connected
def show(client: Client, version: int | None, output: str) -> None:
    """Print the configuration that the service uses, or an earlier one."""
    answer = client.config(version=version)
    if not render.write_value(answer, output):
        print(answer.text, end="" if answer.text.endswith("\n") else "\n")


@config.command("default", examples="fairlead config default > queues.yaml")
def default() -> None:
    """Print the configuration used when `up` is given none."""
    from fairlead.config import default_text

    print(default_text(), end="")


@config.command("status")
@app.show_output
@app.connected
def status(client: Client, output: str) -> app.Status:
    """Say which version is in force, and how the watched file stands to it.

    Exit status 1 if the file was refused or is missing; what is in force stays in force.
    """
    answer = client.config_status()
    file = answer.file
    bad = file is not None and file.state in ("refused", "missing")
    if render.write_value(answer, output):
        return app.FAILED if bad else None
    screen = Screen.of()
    render.fields(
        screen,
        [
            ("version", _number(answer)),
            ("since", render.moment(answer.at_ms)),
            ("by", answer.who),
            ("from", answer.source),
            ("checksum", answer.checksum),
            ("file", file.path if file is not None else "none is watched"),
            ("the file", _FILE_STATES.get(file.state, file.state) if file is not None else ""),
        ],
    )
    for problem in file.problems if file is not None else ():
        assert file is not None, "it has problems"
        place = f"{file.path}:{problem.line}:{problem.column}"
        screen.line(render.plain(f"{place}: {problem.severity}: {problem.path}: {problem.message}"))
    if file is not None and file.refused:
        screen.line(render.plain(file.refused))
    return app.FAILED if bad else None


_FILE_STATES = {
    "in-force": "is what is in force",
    "differs": "says something else; what is in force was put there in another way. `fairlead config diff FILE` shows "
    "the difference, `fairlead config apply FILE` puts it in force",
    "refused": "was refused as a whole; what was in force before stays",
    "missing": "is gone; what was in force stays",
}


def _number(version: ConfigVersion) -> str:
    origin = version.origin
    return str(version.version) + (f" (= {origin})" if origin != version.version else "")


_VERSIONS: Columns[ConfigVersion] = (
    (Column("VERSION", right=True), _number),
    (Column("SINCE"), lambda version: render.moment(version.at_ms)),
    (Column("BY", least=6), lambda version: version.who),
    (Column("FROM", least=12, keep_end=True), lambda version: version.source),
    (Column("CHECKSUM", drop=1), lambda version: version.checksum[:12]),
    (Column(""), lambda version: "in force" if version.in_force else ""),
)


@config.command("history")
@app.list_output
@app.connected
def history(client: Client, output: str) -> None:
    """List the versions of the configuration: who put each in force, when, and from where."""
    styles = {"in force": "green"}
    render.write_list(output, client.config_history(), _VERSIONS, name="version", styles=styles)


@config.command("diff", examples="fairlead config diff queues.yaml\nfairlead config diff --version 3")
@click.argument("file", required=False, metavar="[FILE]", help="A queues.yaml; - is standard input.")
@click.option("--version", type=click.IntRange(1), metavar="N", help="An earlier version instead of a file.")
@app.show_output
@app.connected
def diff(client: Client, file: str | None, version: int | None, output: str) -> app.Status:
    """Show what a configuration would change, before it is applied: queues, limits, rules, and jobs.

    It is tried on a copy of what is there now; nothing changes. Exit status 1 if it would be refused.
    For administrators.
    """
    found = _difference(client, _proposed("config diff", file, version), version, file)
    if found is None:
        return app.FAILED
    if not render.write_value(found, output):
        difference.write(Screen.of(), found)
    return app.FAILED if found.refused else None


def _difference(client: Client, text: str | None, version: int | None, file: str | None) -> ConfigDifference | None:
    """What it would change; None: it has errors, and they were listed."""
    return _told(file, lambda: client.config_difference(text=text, version=version))


def _proposed(command: str, file: str | None, version: int | None) -> str | None:
    """The text of the file, its warnings listed; None: a version is meant."""
    if (file is None) == (version is None):
        raise app.wrong_usage(f"{command}: give either a FILE or --version N")
    if file is None:
        return None
    text = read_text(file, ends_of_lines=True)
    _list_warnings(file, text)
    return text


def _told(file: str | None, ask: Callable[[], T]) -> T | None:
    """What the service says of a file or a version; None: the file has errors, and they were listed."""
    try:
        return ask()
    except Refused as refused:
        if refused.status != _INVALID or file is None:
            raise
        _list_errors(file, "cannot be used", refused)
        return None


def _list_errors(file: str, what: str, refused: Refused) -> None:
    app.complain(f"{file} {what}: {refused.message}", [f"{file}:{line}" for line in refused.details])


def _list_warnings(file: str, text: str) -> None:
    """What of a file that can be used will not do what it seems to say."""
    from fairlead.config import problems_of

    problems = problems_of(text, _source(file), elsewhere="")  # Of a missing partition the service speaks itself.
    if not any(problem.severity == "error" for problem in problems):  # The service lists those.
        for problem in problems:
            print(shortened(render.plain(problem)), file=sys.stderr)


@config.command("compare", examples="fairlead config compare queues.yaml\nfairlead config compare --version 3 --days 2")
@click.argument("file", required=False, metavar="[FILE]", help="A queues.yaml; - is standard input.")
@click.option("--version", type=click.IntRange(1), metavar="N", help="An earlier version instead of a file.")
@click.option(
    "--days", type=click.IntRange(1, 31), default=7, metavar="N", help="On the work of so many days.", show_default=True
)
@app.show_output
@app.connected
def compare(client: Client, file: str | None, version: int | None, days: int, output: str) -> app.Status:
    """Say what a configuration would have made of the work of the last days: who gains, who pays, how surely.

    What the journal recorded is simulated twice, with the configuration in force and with this one; nothing changes.
    It takes up to a minute. What `sim compare` does anywhere, with more figures. For administrators.
    """
    text = _proposed("config compare", file, version)
    found = _told(file, lambda: client.compare_config(text=text, version=version, days=days))
    if found is None:
        return app.FAILED
    if not render.write_value(found, output):
        difference.write_past(Screen.of(), found)
    return None


@config.command("apply", examples=_APPLY_EXAMPLES)
@file_argument
@yes_option
@app.show_output
@app.connected
def apply(client: Client, file: str, yes: bool, output: str) -> app.Status:
    """Give the service a new configuration.

    On a terminal it first shows what would change, and asks. It is refused as a whole, with everything that is wrong,
    or applied as one step. For administrators.
    """
    text = read_text(file, ends_of_lines=True)
    _list_warnings(file, text)
    base = None
    if not yes and file != "-" and sys.stdin.isatty():
        found = _difference(client, text, None, file)
        if found is None:
            return app.FAILED
        if found.checksum == found.base and output == "text":
            _unchanged(found.base_version, file)
            return None
        if not _agreed(found):
            app.complain("nothing was changed")
            return app.FAILED
        base = found.base
    try:
        answer = client.apply_config(text, base=base)
    except Refused as refused:
        if refused.status != _INVALID:
            raise
        _list_errors(file, "was not applied", refused)
        return app.FAILED
    if not answer.changed and output == "text":
        _unchanged(answer.version, file)
    else:
        _report(answer, f"{file} is applied", output)
    return None


def _unchanged(version: int, file: str) -> None:
    app.complain(f"nothing changed: version {version} is in force, and {file} says the same")


@config.command("rollback", examples="fairlead config rollback\nfairlead config rollback 3")
@version_argument
@yes_option
@app.show_output
@app.connected
def rollback(client: Client, version: int | None, yes: bool, output: str) -> app.Status:
    """Put an earlier version of the configuration in force again.

    On a terminal it first shows what would change, and asks. Going back twice goes two steps back. The watched file
    stays as it is: `fairlead config status` says that it differs. For administrators.
    """
    base = None
    if not yes and sys.stdin.isatty():
        version = version if version is not None else _one_back(client)
        found = _difference(client, None, version, None)
        assert found is not None, "a version has no file whose errors could be listed"
        if not _agreed(found):
            app.complain("nothing was changed")
            return app.FAILED
        base = found.base
    answer = client.roll_config_back(version=version, base=base)
    _report(answer, f"version {answer.origin} is in force again", output)
    return None


def _one_back(client: Client) -> int:
    """The version that `rollback` without a number goes back to."""
    now, *versions = client.config_history()
    earlier = [v for v in versions if v.version < now.origin and v.checksum != now.checksum]
    if not earlier:
        raise app.Failure("there is no earlier version; `fairlead config history` lists what there is", app.REFUSED)
    return earlier[0].version


def _agreed(found: ConfigDifference) -> bool:
    """Show what would change, and ask, unless there is nothing to ask."""
    difference.write(Screen.of(), found)
    return not found.refused and click.confirm("Apply this?", default=False)


def _report(answer: ConfigApplied, what: str, output: str) -> None:
    if not render.write_value(answer, output):
        app.complain(f"{what} as version {answer.version}")
