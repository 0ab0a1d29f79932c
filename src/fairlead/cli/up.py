"""`fairlead up`: start the service on this machine.

Decides nothing but how options become the service's own. Never runs in the background: a service manager, or `&`, does
that. Invariant: what it prints before it serves says where it listens and whom it serves.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.app import Failure, Status, command, wrong_usage
from fairlead.cli.logs import log_as, log_format_option, log_level_option
from fairlead.cli.tls import tls_options
from fairlead.cli.values import parse_amount, parse_amounts, parse_duration, parse_pairs, parse_size
from fairlead.local.pressure import parse_threshold
from fairlead.places import DEFAULT_PORT, default_socket, default_state_dir, port_of_pages

if TYPE_CHECKING:
    from fairlead.local.user_bounds import UserBounds

_EXAMPLES = """
fairlead up
fairlead up --config queues.yaml --state /var/lib/fairlead --admin ann
fairlead up --resource gpu=2 --resource cpu=8
fairlead up --host 0.0.0.0 --tls-cert host.pem --tls-key host.key
"""


@command("up", examples=_EXAMPLES)
@click.option(
    "--config",
    "-c",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A queues.yaml; a built-in one if not given.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where journal and logs are kept [/var/lib/fairlead as root, else ~/.local/state/fairlead].",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="H",
    help="Address to listen on; beyond loopback it needs --tls-cert.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, metavar="N", help="TCP port; 0 takes any free one."
)
@click.option(
    "--pages-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="TCP port of the pages [the one after --port]; their process starts when somebody looks.",
)
@click.option("--no-pages", is_flag=True, help="No pages for browsers.")
@tls_options
@click.option("--no-tcp", is_flag=True, help="Listen on the Unix socket alone.")
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Unix socket to listen on [where clients look first].",
)
@click.option("--admin", multiple=True, metavar="USER", help="May see and stop everybody's jobs; may be repeated.")
@click.option(
    "--resource",
    multiple=True,
    metavar="NAME=N",
    help="Declare what this machine has, instead of what is found, such as gpu=2; may be repeated. Later starts "
    "without keep it; none: what is found counts again.",
)
@click.option(
    "--memory-pressure",
    default="5%",
    metavar="PART",
    help="With less free memory than this (5%, 512Mi) jobs are stopped, one by one; off: never.",
)
@click.option(
    "--memory-budget",
    metavar="SIZE",
    help="Memory for all jobs together, instead of what the machine has: what is given out, and may be used.",
)
@click.option(
    "--keep-free",
    metavar="SIZE",
    help="Room kept on the state directory's disk for cancels and ends [64Mi, or 5% of a small disk].",
)
@click.option(
    "--output-max",
    default="100Mi",
    metavar="SIZE",
    help="Of each output of a job so much is kept, where its queue does not say it; off: all.",
)
@click.option(
    "--keep-jobs",
    default="30d",
    metavar="TIME",
    help="Jobs that ended longer ago leave the list, with their output.",
)
@click.option(
    "--keep-jobs-max",
    type=click.IntRange(0, 100_000),
    default=10_000,
    metavar="N",
    help="So many ended jobs stay; an array with all its parts.",
)
@click.option(
    "--keep-journal",
    default="30d",
    metavar="TIME",
    help="Older records of the journal go, if no start needs them.",
)
@click.option(
    "--keep-journal-max", default="192Mi", metavar="SIZE", help="The oldest records go where the journal is larger."
)
@click.option(
    "--per-user",
    multiple=True,
    metavar="NAME=N",
    help="What one user may have at a time: jobs, environment (bytes of all jobs together), submissions (a minute), "
    "questions (at a time), question-seconds (of processor time a minute), streams, terminals, connections, tokens; "
    "such as jobs=20000. May be repeated.",
)
@click.option(
    "--notify",
    default="command,mail,url",
    metavar="KINDS",
    help="Kinds of messages that users may have sent about their jobs: command, mail, url; or none.",
)
@click.option(
    "--open-reads",
    is_flag=True,
    help="Let anyone who reaches the port read /ws/v1 and /metrics without a token, and look at the pages as a guest.",
)
@click.option(
    "--private-names",
    is_flag=True,
    help="Show the names of others' jobs to nobody (`gpus`, `nodes --jobs`): user, room and time alone.",
)
@click.option(
    "--accept-loss",
    default="",
    metavar="ID",
    help="Give up records of the journal that were confirmed and are damaged or missing; a start that is refused for "
    "that says the ID.",
)
@log_level_option
@log_format_option
def up(
    state: Path | None,
    port: int,
    no_tcp: bool,
    pages_port: int | None,
    no_pages: bool,
    socket: Path | None,
    admin: tuple[str, ...],
    resource: tuple[str, ...],
    memory_pressure: str,
    memory_budget: str | None,
    keep_free: str | None,
    per_user: tuple[str, ...],
    notify: str,
    output_max: str,
    keep_jobs: str,
    keep_jobs_max: int,
    keep_journal: str,
    keep_journal_max: str,
    log_format: str,
    **given: Any,
) -> Status:
    """Start the service on this machine.

    It runs until Ctrl-C, SIGTERM, or the end of its terminal. Work goes on when it stops or dies, and is taken up again
    at the next start.
    """
    log_as(log_format)
    try:
        parse_threshold(memory_pressure)
    except ValueError as problem:
        raise wrong_usage(f"--memory-pressure: {problem}") from None
    try:
        from fairlead.service.retention import Retention
        from fairlead.service.serve import ServeOptions, serve
    except ModuleNotFoundError as missing:
        name = str(missing.name).partition(".")[0]
        raise Failure(
            f"the service needs {name}, which is not installed; run: pip install 'fairlead[service]'"
        ) from None
    return serve(
        ServeOptions(
            state_dir=state or Path(default_state_dir()),
            port=None if no_tcp else port,
            pages_port=None if no_pages else port_of_pages(port, pages_port),
            socket=socket or Path(default_socket()),
            admins=admin,
            resources=None if resource == ("none",) else parse_amounts(resource, "--"),
            memory_pressure=memory_pressure,
            memory_budget=None if memory_budget is None else parse_amount("memory", memory_budget, "--memory-budget"),
            keep_free=None if keep_free is None else parse_size(keep_free, "--keep-free"),
            output_bytes=_output_bytes(output_max),
            user_bounds=_user_bounds(per_user),
            notify=_kinds(notify),
            retention=Retention(
                jobs_ms=parse_duration(keep_jobs, "--keep-jobs"),
                jobs=keep_jobs_max,
                journal_ms=parse_duration(keep_journal, "--keep-journal"),
                journal_bytes=parse_size(keep_journal_max, "--keep-journal-max"),
            ),
            **given,
        )
    )


def _output_bytes(text: str) -> int:
    """The bound on what is kept of an output; 0: there is none. Raises `Failure` (usage)."""
    if text == "off":
        return 0
    if not (size := parse_size(text, "--output-max")):
        raise wrong_usage("--output-max: of 0 nothing could be kept; write a size such as 64Ki, or off to keep all")
    return size


def _user_bounds(given: tuple[str, ...]) -> UserBounds:
    """The bounds that are said, the others as they are. Raises `Failure` (usage)."""
    from fairlead.local.user_bounds import UserBounds

    names = [name.replace("_", "-") for name in UserBounds.__dataclass_fields__]
    bounds: dict[str, int] = {}
    for name, text in parse_pairs(given, "--per-user", "jobs=20000").items():
        if name not in names:
            raise wrong_usage(f"--per-user: there is no bound {name!r}; there are {', '.join(names)}")
        kind = "memory" if name == "environment" else name
        bounds[name.replace("-", "_")] = parse_amount(kind, text, f"--per-user {name}")
    return UserBounds(**bounds)


def _kinds(text: str) -> frozenset[str]:
    """The kinds of messages that are named. Raises `Failure` (usage)."""
    from fairlead.wire.notices import ALL_KINDS

    kinds = frozenset(word.strip() for word in text.split(",")) - {"none"}
    if unknown := sorted(kinds - ALL_KINDS):
        shown = ", ".join(sorted(ALL_KINDS))
        raise wrong_usage(f"--notify: there is no kind {unknown[0]!r}; there are {shown}, or none")
    return kinds
