"""Commands that ask: why, whatif, when.

Decides in which words an answer is printed. Never changes anything; the service works the answers out on a copy of its
state. Invariant: `--json` prints what the service said.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fairlead.cli import completion, render, submit
from fairlead.cli.answers import difference_lines, when_lines
from fairlead.cli.app import JsonOption, KeyArgument, Status, client_command, group
from fairlead.cli.client import Client
from fairlead.cli.failures import wrong_usage
from fairlead.cli.keys import NamespaceOption, key_of
from fairlead.cli.render import Screen
from fairlead.cli.values import parse_duration, parse_pairs

ForecastOption = Annotated[
    bool, typer.Option("--forecast", help="Also say whose expected start would move; takes longer.")
]
SpendOption = Annotated[
    str,
    typer.Option(
        "--spend", metavar="TIME", help="With --forecast: look ahead for so long; 5 s if left out, 1m at most."
    ),
]
ChangesOption = Annotated[
    bool, typer.Option("--changes", help="Also find the smallest changes that would start it; takes up to 10 seconds.")
]
KeysArgument = Annotated[list[str], typer.Argument(metavar="KEY...", help="Keys.", autocompletion=completion.keys)]
NodesArgument = Annotated[list[str], typer.Argument(metavar="NODE...", help="Nodes.", autocompletion=completion.nodes)]
QueueArgument = Annotated[
    str, typer.Argument(metavar="QUEUE", help="Full path of the queue.", autocompletion=completion.queues)
]

WHEN_EXAMPLES = """
fairlead when 17
fairlead when           (how often it was right)
fairlead when pod/web-1 -n shop     (on a cluster)
"""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    examples = "fairlead why 17\nfairlead why 17 --changes\nfairlead why            (everything that waits)"
    examples += "\nfairlead why pod/web-1 -n shop     (on a cluster)"
    client_command(app, "why", examples=examples)(why)
    client_command(app, "when", examples=WHEN_EXAMPLES)(when)
    asked = group("whatif", "Say what would be otherwise, without doing it.")
    client_command(
        asked,
        "submit",
        examples="fairlead whatif submit --queue root.batch --gpu 2 -- python train.py",
        allow_interspersed_args=False,
    )(if_submitted)
    client_command(asked, "cancel", examples="fairlead whatif cancel 17 18")(if_cancelled)
    client_command(asked, "priority", examples="fairlead whatif priority 17 100", ignore_unknown_options=True)(
        if_prioritised
    )
    client_command(asked, "move", examples="fairlead whatif move 17 root.batch")(if_moved)
    client_command(asked, "config", examples="fairlead whatif config queues.yaml --forecast")(if_configured)
    client_command(asked, "drain", examples="fairlead whatif drain node-3")(if_drained)
    client_command(asked, "add-nodes", examples="fairlead whatif add-nodes node-3 10")(if_nodes_added)
    app.add_typer(asked)


# -- why ----------------------------------------------------------------------------------------------------------


def why(
    client: Client,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]", help="Key of the job; everything that waits if left out.", autocompletion=completion.keys
        ),
    ] = None,
    changes: ChangesOption = False,
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> Status:
    """Say why a job waits.

    With the numbers: what it needs, what is free, which queue or limit is in the way, who holds it. With --changes:
    what would start it; each of these was tried on a copy, and one unit less was not enough.
    """
    if key is None:
        if changes:
            raise wrong_usage("why: --changes needs the key of one job")
        return _why_all(client, json)
    key = key_of(key, namespace)
    answer = client.get(f"/jobs/{completion.quoted(key)}/why", **({"changes": "true"} if changes else {}))
    if json:
        render.write_json(answer)
        return None
    screen = Screen.of()
    position = answer.get("queue_position")
    place = f" ({_ordinal(position)} in its queue)" if position else ""
    screen.line(render.plain(f"{answer['key']}: {answer['state']}{place}: {answer['sentence']}"))
    if answer.get("expected_start_ms"):
        at = render.moment(answer["expected_start_ms"])
        screen.line(f"  By the time limits of what runs it has room at {at}, unless others take it.")
    for line in why_lines(answer.get("verdict")):
        screen.line(render.plain(f"  {line}"))
    return None


def why_lines(verdict: dict[str, Any] | None) -> list[str]:
    """What there is to say beyond the sentence."""
    return list(verdict.get("details") or ()) if verdict else []


def _why_all(client: Client, json: bool) -> Status:
    rows = list(client.jobs({"state": "waiting"}))
    if json:
        render.write_json([{k: row.get(k) for k in ("key", "name", "queue", "state", "reason")} for row in rows])
        return None
    screen = Screen.of()
    if not rows and screen.width is not None:
        screen.line("Nothing waits.")
    for row in rows:
        sentence = (row.get("reason") or {}).get("sentence") or "not looked at yet"
        screen.line(render.plain(f"{row['key']}: {row.get('name') or ''} in {row.get('queue')}: {sentence}"))
    return None


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


# -- when ---------------------------------------------------------------------------------------------------------


def when(
    client: Client,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="Key of the job; how often forecasts came true if left out.",
            autocompletion=completion.keys,
        ),
    ] = None,
    spend: Annotated[
        str,
        typer.Option(
            "--spend",
            metavar="TIME",
            help="Look ahead for so long, such as 30s; 5 s if left out, 1m at most.",
        ),
    ] = "",
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> Status:
    """Say when a job that waits is expected to start.

    As an interval in which four of five starts should be, with what it rests on, and how often the service was right.
    Where much waits and the time is not enough to see its start: after which time.
    """
    path = "/forecasts/score" if key is None else f"/jobs/{completion.quoted(key_of(key, namespace))}/forecast"
    if spend and key is None:
        raise wrong_usage("when: --spend goes with a KEY: say of which job")
    if spend:
        path += f"?seconds={parse_duration(spend, '--spend') / 1000:g}"
    answer = client.get(path)
    if json:
        render.write_json(answer)
        return None
    screen = Screen.of()
    for line in when_lines(answer if key is not None else {"score": answer}, int(time.time() * 1000)):
        screen.line(render.plain(line))
    return None


# -- what if ------------------------------------------------------------------------------------------------------


def if_submitted(
    client: Client,
    command: submit.Command = None,
    queue: submit.Queue = None,
    priority: submit.Priority = None,
    cpu: submit.Cpu = None,
    memory: submit.Memory = None,
    gpu: submit.Gpu = None,
    resource: submit.Resource = None,
    name: submit.Name = None,
    time_limit: submit.TimeLimit = None,
    forecast: ForecastOption = False,
    spend: SpendOption = "",
    json: JsonOption = False,
) -> Status:
    """If this were submitted: whether it starts, and whom it would stop."""
    given: dict[str, Any] = {
        "command": command or ["true"],
        "queue": queue,
        "priority": priority,
        "cpu": cpu,
        "memory": memory,
        "gpu": gpu,
        "name": name,
        "time_limit": time_limit,
        "resources": parse_pairs(resource or (), "--resource", "licence=1"),
        "cwd": str(Path.cwd()),
    }
    stated = {field: value for field, value in given.items() if value not in (None, {})}
    return _ask(client, {"submit": submit.from_options(stated).body}, forecast, spend, json)


def if_cancelled(
    client: Client,
    keys: KeysArgument,
    namespace: NamespaceOption = None,
    forecast: ForecastOption = False,
    spend: SpendOption = "",
    json: JsonOption = False,
) -> Status:
    """If these were cancelled: who would start."""
    return _ask(client, {"cancel": [key_of(key, namespace) for key in keys]}, forecast, spend, json)


def if_prioritised(
    client: Client,
    key: KeyArgument,
    value: Annotated[int, typer.Argument(metavar="N", help="The new priority.", min=-(2**31), max=2**31 - 1)],
    namespace: NamespaceOption = None,
    forecast: ForecastOption = False,
    spend: SpendOption = "",
    json: JsonOption = False,
) -> Status:
    """If it had another priority: whether it starts, and who would stop for it."""
    return _ask(client, {"priority": {"key": key_of(key, namespace), "priority": value}}, forecast, spend, json)


def if_moved(
    client: Client,
    key: KeyArgument,
    queue: QueueArgument,
    namespace: NamespaceOption = None,
    forecast: ForecastOption = False,
    spend: SpendOption = "",
    json: JsonOption = False,
) -> Status:
    """If it were in another queue."""
    return _ask(client, {"move": {"key": key_of(key, namespace), "queue": queue}}, forecast, spend, json)


def if_configured(
    client: Client,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A queue file; - is standard input.")],
    forecast: ForecastOption = False,
    spend: SpendOption = "",
    json: JsonOption = False,
) -> Status:
    """If this queue file were in force (administrators)."""
    from fairlead.cli.jobfile import read_text

    return _ask(client, {"config": read_text(file)}, forecast, spend, json)


def if_drained(
    client: Client,
    nodes: NodesArgument,
    forecast: ForecastOption = False,
    spend: SpendOption = "",
    json: JsonOption = False,
) -> Status:
    """If these nodes took no new work (administrators)."""
    return _ask(client, {"drain": nodes}, forecast, spend, json)


def if_nodes_added(
    client: Client,
    like: Annotated[str, typer.Argument(metavar="NODE", help="Which they are like.", autocompletion=completion.nodes)],
    count: Annotated[int, typer.Argument(metavar="N", help="How many.", min=1, max=10_000)],
    forecast: ForecastOption = False,
    spend: SpendOption = "",
    json: JsonOption = False,
) -> Status:
    """If there were more nodes like one that is there (administrators)."""
    return _ask(client, {"add_nodes": {"like": like, "count": count}}, forecast, spend, json)


def _ask(client: Client, body: dict[str, Any], forecast: bool, spend: str, json: bool) -> Status:
    if spend and not forecast:
        raise wrong_usage("whatif: --spend goes with --forecast: only a forecast takes time to look ahead")
    more = {"seconds": parse_duration(spend, "--spend") / 1000} if spend else {}
    answer = client.post("/whatif", body | {"forecast": forecast} | more)
    if json:
        render.write_json(answer)
        return None
    screen = Screen.of()
    for line in difference_lines(answer, forecast):
        screen.line(render.plain(line))
    return None
