"""`fairlead up`: start the service on this machine.

Decides nothing but how options become the service's own. Never runs in the background: a service manager, or `&`, does
that. Invariant: what it prints before it serves says where it listens and whom it serves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead.cli.address import DEFAULT_PORT, default_socket, default_state_dir
from fairlead.cli.app import Status, command
from fairlead.cli.failures import Failure, wrong_usage
from fairlead.cli.options import LogLevelOption, check_log_level
from fairlead.cli.values import parse_memory, parse_resources
from fairlead.local.pressure import parse_threshold
from fairlead.service.options import ServeOptions

_EXAMPLES = """
fairlead up
fairlead up --config queues.yaml --state /var/lib/fairlead --admin ann
fairlead up --resource gpu=2 --resource cpu=8
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "up", examples=_EXAMPLES)(up)


def up(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="A queues.yaml; a built-in one if not given.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="DIR",
            help="Where journal and logs are kept [/var/lib/fairlead as root, else ~/.local/state/fairlead].",
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="H", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port; 0 takes any free one.")
    ] = DEFAULT_PORT,
    no_tcp: Annotated[bool, typer.Option("--no-tcp", help="Listen on the Unix socket alone.")] = False,
    socket: Annotated[
        Path | None,
        typer.Option("--socket", metavar="PATH", help="Unix socket to listen on [where clients look first]."),
    ] = None,
    admin: Annotated[
        list[str] | None,
        typer.Option("--admin", metavar="USER", help="May see and stop everybody's jobs; may be repeated."),
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="NAME=N",
            help="Declare what this machine has, instead of what is found, such as gpu=2; may be repeated.",
        ),
    ] = None,
    memory_pressure: Annotated[
        str,
        typer.Option(
            "--memory-pressure",
            metavar="PART",
            help="With less free memory than this (5%, 512Mi) jobs are stopped, one by one; off: never.",
        ),
    ] = "5%",
    memory_budget: Annotated[
        str | None,
        typer.Option(
            "--memory-budget", metavar="SIZE", help="Memory for all jobs together, instead of what the machine has."
        ),
    ] = None,
    open_reads: Annotated[
        bool,
        typer.Option("--open-reads", help="Let anyone who reaches the port read /ws/v1 and /metrics without a token."),
    ] = False,
    log_level: LogLevelOption = "info",
) -> Status:
    """Start the service on this machine.

    It runs until Ctrl-C or SIGTERM. Work goes on when it stops or dies, and is taken up again at the next start.
    """
    check_log_level(log_level)
    try:
        parse_threshold(memory_pressure)
    except ValueError as problem:
        raise wrong_usage(f"--memory-pressure: {problem}") from None
    try:
        from fairlead.service.serve import serve
    except ModuleNotFoundError as missing:
        raise Failure(
            f"the service needs {missing.name}, which is not installed; run: pip install 'fairlead[service]'"
        ) from None
    return serve(
        ServeOptions(
            config=config,
            state_dir=state or default_state_dir(),
            host=host,
            port=None if no_tcp else port,
            socket=socket or default_socket(),
            admins=tuple(admin or ()),
            open_reads=open_reads,
            resources=parse_resources(None, None, None, resource or ()),
            log_level=log_level,
            memory_pressure=memory_pressure,
            memory_budget=None if memory_budget is None else parse_memory(memory_budget, "--memory-budget"),
        )
    )
