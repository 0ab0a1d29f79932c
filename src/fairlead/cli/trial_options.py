"""What a simulation is of, as options: the workload, the nodes, faults, when to stop.

Decides how the words of a command become a trial. Never runs one. Invariant: the same options give the same trial,
but for how long what runs by the journal of a running service has run.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.cli.app import Number, wrong_usage
from fairlead.cli.render import now_ms
from fairlead.cli.values import parse_duration
from fairlead.places import journal_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.sim.sources import Source
    from fairlead.sim.trials import Trial

_F = TypeVar("_F", bound="Callable[..., Any]")
_TRIAL = (
    click.option(
        "--workload",
        "-w",
        "--tasks",
        required=True,
        metavar="WORKLOAD",
        help="A file (.csv, .jsonl, .swf, .yaml recipe), the state directory of a service, or a name: poisson, "
        "diurnal, heavy-tails, gangs, tenants.",
    ),
    click.option(
        "--nodes",
        default="",
        metavar="NODES",
        help="A CSV file (id, then resources), words such as '10x cpu=32,memory=128Gi', or for a made-up workload "
        "how many; else those of the workload.",
    ),
    click.option("--seed", type=int, default=1, metavar="N", help="For made-up workloads and faults."),
    click.option("--tasks-max", type=click.IntRange(1), metavar="N", help="Made-up workloads: so many tasks."),
    click.option("--lasts", metavar="TIME", help="Made-up workloads: for so long."),
    click.option(
        "--load",
        type=Number(0.001),
        metavar="PART",
        help="Made-up workloads: part of the nodes that is asked for.",
    ),
    click.option(
        "--since",
        default="",
        metavar="TIME",
        help="Journal: only what waited or ran then, or came later (2026-05-01T08:00).",
    ),
    click.option("--before", default="", metavar="TIME", help="Journal: only what was submitted before."),
    click.option(
        "--faults", default="", metavar="CSV", help="Nodes lost and back: time (seconds), node, what (lost or back)."
    ),
    click.option(
        "--mtbf", default="", metavar="TIME", help="Lose nodes at random: mean time between failures of each."
    ),
    click.option("--mttr", default="", metavar="TIME", help="Mean time until a lost node is back (1h)."),
    click.option("--until", default="", metavar="TIME", help="Stop so long after the first job (seconds, or 12h, 7d)."),
    click.option("--skip-bad", is_flag=True, help="Leave out bad rows and count them."),
    click.option("--no-resubmit", is_flag=True, help="Work that was stopped and has no retries left is given up."),
)
_REPORT = (
    click.option("--report", default="", metavar="FILE", help="Write a report with plots, as one HTML file."),
    click.option("--images", default="", metavar="DIR", help="Write the plots as SVG files."),
)


def trial_options(function: _F) -> _F:
    """What is simulated; arrives as `given`, for `trial_of`."""
    return _with(_TRIAL, function)


def report_options(function: _F) -> _F:
    """What is written of the course, beside what is printed: `report` and `images`."""
    return _with(_REPORT, function)


def _with(options: Sequence[Callable[[_F], _F]], function: _F) -> _F:
    for option in reversed(options):
        function = option(function)
    return function


def trial_of(
    name: str, queues: str, *, faults: str, mtbf: str, mttr: str, until: str, no_resubmit: bool, **given: Any
) -> Trial:
    """A queue file, tried on what the options say."""
    from fairlead.sim.trials import Trial

    if faults and mtbf:
        raise wrong_usage("--faults and --mtbf: give one of them")
    if mttr and not mtbf:
        raise wrong_usage("--mttr goes with --mtbf: say how often nodes are lost, too")
    return Trial(
        name=name,
        queues=queues,
        source=_source(**given),
        faults=faults,
        mtbf_ms=parse_duration(mtbf, "--mtbf") if mtbf else None,
        mttr_ms=parse_duration(mttr or "1h", "--mttr"),
        until_ms=parse_duration(until, "--until") if until else None,
        resubmit=not no_resubmit,
    )


def _source(*, tasks_max: int | None, since: str, before: str, **given: Any) -> Source:
    """Where the work comes from. What runs by a journal that somebody writes runs until now."""
    from fairlead.journal.lock import is_written
    from fairlead.sim.sources import Source, SourceError
    from fairlead.sim.workloads.journalled import as_it_is, journal_workload

    source = Source(
        now=now_ms() if is_written(journal_file(Path(given["workload"]))) else 0,
        tasks=tasks_max,
        since=_moment(since, "--since"),
        until=_moment(before, "--before"),
        journal=journal_workload,
        **given,
    )
    with suppress(SourceError, OSError):  # It is said where it is opened.
        source = as_it_is(source)
    return source


def _moment(text: str, where: str) -> int | None:
    """A time of day in Unix milliseconds; without a zone it is local time."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return round((at if at.tzinfo else at.astimezone()).astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError):  # At both ends of all years there are moments that no clock can say.
        raise wrong_usage(f"{where}: {text!r} is no time; write 2026-05-01 or 2026-05-01T08:00") from None
