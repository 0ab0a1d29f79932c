"""Commands about the queue configuration: config check, show, default, status, history, diff, apply, rollback.

Decides how problems and versions are listed, and when a person is asked before something changes. Never changes a file.
Invariant: `check` needs no service, and what it accepts is what `up` and `apply` accept, save for a file of which it
warns that it is not for a machine; on a terminal nothing is changed that was not shown first.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlead.cli import difference, render
from fairlead.cli.app import JsonOption, Status, client_command, command, complain, group
from fairlead.cli.client import Client, Refusal
from fairlead.cli.failures import FAILED, Failure, wrong_usage
from fairlead.cli.jobfile import read_text
from fairlead.cli.render import Column, Screen

if TYPE_CHECKING:
    from fairlead.config import Problem

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A queues.yaml; - is standard input.")]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask. Without a terminal nobody is asked in any case.")
]
VersionArgument = Annotated[
    int | None, typer.Argument(metavar="[N]", min=1, help="Which version; the one before the one in force if left out.")
]
_APPLY_EXAMPLES = """
fairlead config diff queues.yaml
fairlead config apply queues.yaml
fairlead config apply --yes queues.yaml     (in scripts)
"""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    config = group("config", "Check, show and change the queue configuration.")
    command(config, "check", examples="fairlead config check queues.yaml")(check)
    client_command(config, "show", examples="fairlead config show > queues.yaml\nfairlead config show --version 3")(
        show
    )
    command(config, "default", examples="fairlead config default > queues.yaml")(default)
    client_command(config, "status")(status)
    client_command(config, "history")(history)
    client_command(config, "diff", examples="fairlead config diff queues.yaml\nfairlead config diff --version 3")(diff)
    client_command(config, "apply", examples=_APPLY_EXAMPLES)(apply)
    client_command(config, "rollback", examples="fairlead config rollback\nfairlead config rollback 3")(rollback)
    app.add_typer(config)


def check(file: FileArgument, json: JsonOption = False) -> Status:
    """List everything that is wrong with a queues.yaml.

    Exit status 0 if it can be used (warnings are listed all the same), 1 if not. Needs no running service.
    """
    problems = problems_of(read_text(file), "<standard input>" if file == "-" else file, says_where=True)
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


def problems_of(text: str, source: str, *, says_where: bool = False) -> list[Problem]:
    """Everything that is wrong with a configuration, and everything in it that would be ignored.

    `says_where`: also a warning of one that no machine could use; a machine's service says that itself.
    """
    from fairlead.config import WARNING, Problem, check_text, load_text
    from fairlead.config.home import homeless
    from fairlead.config.unsupported import not_yet

    if not text.strip():
        message = "the text is empty; a queue file needs at least one partition"
        return [Problem(source=source, line=1, column=1, path="", message=message)]
    problems = check_text(text, source)
    if any(problem.severity == "error" for problem in problems):
        return problems
    spec = load_text(text, source)
    elsewhere = homeless(spec, source, severity=WARNING) if says_where else []
    return [*elsewhere, *problems, *not_yet(spec, source, knows_groups=True)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def show(
    client: Client,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="An earlier one; `config history` lists them.")
    ] = None,
    json: JsonOption = False,
) -> Status:
    """Print the configuration that the service uses, or an earlier one."""
    answer = client.get("/config", version=version)
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


def status(client: Client, json: JsonOption = False) -> Status:
    """Say which version is in force, and how the watched file stands to it.

    Exit status 1 if the file was refused or is missing; what is in force stays in force.
    """
    answer = client.get("/config/status")
    file = answer.get("file")
    bad = file is not None and file["state"] in ("refused", "missing")
    if json:
        render.write_json(answer)
        return FAILED if bad else None
    screen = Screen.of()
    render.fields(
        screen,
        [
            ("version", _number(answer)),
            ("since", render.moment(answer["at_ms"])),
            ("by", answer["who"]),
            ("from", answer["source"]),
            ("checksum", answer["checksum"]),
            ("file", file["path"] if file is not None else "none is watched"),
            ("the file", _FILE_STATES.get(file["state"], file["state"]) if file is not None else ""),
        ],
    )
    for problem in file["problems"] if file is not None else ():
        place = f"{file['path']}:{problem['line']}:{problem['column']}"
        screen.line(render.plain(f"{place}: {problem['severity']}: {problem['path']}: {problem['message']}"))
    if file is not None and file["refused"]:
        screen.line(render.plain(file["refused"]))
    return FAILED if bad else None


_FILE_STATES = {
    "in-force": "is what is in force",
    "differs": "says something else; what is in force was put there in another way. `fairlead config diff FILE` shows "
    "the difference, `fairlead config apply FILE` puts it in force",
    "refused": "was refused as a whole; what was in force before stays",
    "missing": "is gone; what was in force stays",
}


def _number(version: dict[str, Any]) -> str:
    origin = version["origin"]
    return str(version["version"]) + (f" (= {origin})" if origin != version["version"] else "")


def history(client: Client, json: JsonOption = False) -> Status:
    """List the versions of the configuration: who put each in force, when, and from where."""
    versions = client.get("/config/history")["versions"]
    if json:
        render.write_json(versions)
        return None
    columns = (
        Column("VERSION", right=True),
        Column("SINCE"),
        Column("BY", least=6),
        Column("FROM", least=12, keep_end=True),
        Column("CHECKSUM", drop=1),
        Column(""),
    )
    rows = [
        (
            _number(v),
            render.moment(v["at_ms"]),
            v["who"],
            v["source"],
            v["checksum"][:12],
            "in force" if v["in_force"] else "",
        )
        for v in versions
    ]
    render.table(Screen.of(), columns, rows, {"in force": "green"})
    return None


def diff(
    client: Client,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A queues.yaml; - is standard input.")] = None,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="An earlier version instead of a file.")
    ] = None,
    json: JsonOption = False,
) -> Status:
    """Show what a configuration would change, before it is applied: queues, limits, rules, and jobs.

    It is tried on a copy of what is there now; nothing changes. Exit status 1 if it would be refused.
    For administrators.
    """
    if (file is None) == (version is None):
        raise wrong_usage("config diff: give either a FILE or --version N")
    text = read_text(file) if file is not None else ""
    if file is not None:
        _list_warnings(file, text)
    found = _difference(client, {"text": text} if file is not None else {"version": version}, file)
    if found is None:
        return FAILED
    if json:
        render.write_json(found)
    else:
        difference.write(Screen.of(), found)
    return FAILED if found["refused"] else None


def _difference(client: Client, body: dict[str, Any], file: str | None) -> dict[str, Any] | None:
    """What it would change; None: it has errors, and they were listed."""
    try:
        answer: dict[str, Any] = client.post("/config/diff", body)
    except Refusal as refusal:
        if refusal.http_status != 422 or file is None:
            raise
        _list_errors(file, "cannot be used", refusal)
        return None
    return answer


def _list_errors(file: str, what: str, refusal: Refusal) -> None:
    complain(f"{file} {what}: {refusal.message}", [f"{file}:{line}" for line in refusal.details])


def _list_warnings(file: str, text: str) -> None:
    """What of a file that can be used will not do what it seems to say."""
    problems = problems_of(text, "<standard input>" if file == "-" else file)
    if not any(problem.severity == "error" for problem in problems):  # The service lists those.
        for problem in problems:
            print(render.plain(problem), file=sys.stderr)


def apply(client: Client, file: FileArgument, yes: YesOption = False, json: JsonOption = False) -> Status:
    """Give the service a new configuration.

    On a terminal it first shows what would change, and asks. It is refused as a whole, with everything that is wrong,
    or applied as one step. For administrators.
    """
    text = read_text(file)
    _list_warnings(file, text)
    body: dict[str, Any] = {"text": text}
    if not yes and file != "-" and sys.stdin.isatty():
        found = _difference(client, body, file)
        if found is None:
            return FAILED
        if found.get("checksum") == found["base"] and not json:
            return _unchanged(found["base_version"], file)
        if not _agreed(found):
            complain("nothing was changed")
            return FAILED
        body["base"] = found["base"]
    try:
        answer = client.put("/config", body)
    except Refusal as refusal:
        if refusal.http_status != 422:
            raise
        _list_errors(file, "was not applied", refusal)
        return FAILED
    if not answer.get("changed", True) and not json:
        return _unchanged(answer["version"], file)
    return _report(answer, f"{file} is applied", json)


def _unchanged(version: int, file: str) -> Status:
    complain(f"nothing changed: version {version} is in force, and {file} says the same")
    return None


def rollback(
    client: Client, version: VersionArgument = None, yes: YesOption = False, json: JsonOption = False
) -> Status:
    """Put an earlier version of the configuration in force again.

    On a terminal it first shows what would change, and asks. Going back twice goes two steps back. The watched file
    stays as it is: `fairlead config status` says that it differs. For administrators.
    """
    body: dict[str, Any] = {} if version is None else {"version": version}
    if not yes and sys.stdin.isatty():
        target = version if version is not None else _one_back(client)
        found = _difference(client, {"version": target}, None)
        assert found is not None, "a version has no file whose errors could be listed"
        if not _agreed(found):
            complain("nothing was changed")
            return FAILED
        body = {"version": target, "base": found["base"]}
    answer = client.post("/config/rollback", body)
    return _report(answer, f"version {answer['origin']} is in force again", json)


def _one_back(client: Client) -> int:
    """The version that `rollback` without a number goes back to."""
    versions = client.get("/config/history")["versions"]
    now = versions[0]
    earlier = [v for v in versions if v["version"] < now["origin"] and v["checksum"] != now["checksum"]]
    if not earlier:
        raise Failure("there is no earlier version; `fairlead config history` lists what there is", 4)
    return int(earlier[0]["version"])


def _agreed(found: dict[str, Any]) -> bool:
    """Show what would change, and ask, unless there is nothing to ask."""
    difference.write(Screen.of(), found)
    if found["refused"]:
        return False
    return typer.confirm("Apply this?", default=False)


def _report(answer: dict[str, Any], what: str, json: bool) -> Status:
    if json:
        render.write_json(answer)
    else:
        number = f" as version {answer['version']}" if "version" in answer else ""
        complain(f"{what}{number}")
    return None
