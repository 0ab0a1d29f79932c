"""Commands in virtual time: sim run, compare (queue files on workloads), view, forecast; scenario run and check, bench.

Decides how the words of a command become trials, and how a journal becomes a workload. Never measures or draws:
`fairlead.sim` does, prints, and says the exit status; never talks to a service. Invariant: the same files, options and
seed give the same output.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.cli.app import Group, Status, command, of_files, report_output, wrong_usage
from fairlead.cli.importing import sim_import
from fairlead.cli.values import parse_duration
from fairlead.cli.view import view
from fairlead.places import journal_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairlead.scheduler import Scheduler
    from fairlead.sim.jobs import Workload
    from fairlead.sim.sources import Source
    from fairlead.sim.trials import Trial
    from fairlead.sim.workloads.recorded import Moment

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
        type=click.FloatRange(0.001),
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
    click.option("--report", default="", metavar="FILE", help="Write a report with plots, as one HTML file."),
    click.option("--images", default="", metavar="DIR", help="Write the plots as SVG files."),
)
_RUN_EXAMPLES = """
fairlead sim run --workload heavy-tails --nodes 50 --report report.html
fairlead sim run --config queues.yaml --workload tasks.csv --nodes '10x cpu=32,memory=128Gi'
"""
_COMPARE_EXAMPLES = """
fairlead sim compare before.yaml after.yaml --workload tasks.csv --nodes nodes.csv --report report.html
fairlead sim compare a.yaml b.yaml --workload .fairlead --since 2026-05-01
fairlead sim compare a.yaml b.yaml --workload recipe.yaml --seeds 20
"""


def _trial_options(function: _F) -> _F:
    """What is simulated; arrives as `given`, for `_trial`."""
    for option in reversed(_TRIAL):
        function = option(function)
    return function


sim = Group("sim", help="Try queue files on workloads, in virtual time.")
sim.add_command(sim_import)


@sim.command("run", examples=_RUN_EXAMPLES)
@click.option(
    "--config", "--queues", default="", metavar="FILE", help="A queue file; one that suits the workload if not given."
)
@_trial_options
@click.option("--decisions", default="", metavar="FILE", help="Write every decision to this file, a line each.")
@click.option("--record", default="", metavar="FILE", help="Write the whole course to this new file, for sim view.")
@report_output
def sim_run(config: str, decisions: str, record: str, report: str, images: str, output: str, **given: Any) -> Status:
    """Simulate one queue file on a workload.

    Prints totals that add up, utilisation by resource, waiting times, and a digest of all decisions. Ctrl-C stops and
    reports what happened so far.
    """
    from fairlead.sim.simulate import Files, run

    trial = _trial(Path(config).name if config else "default", config, **given)
    as_json = output == "json"
    files = Files(decisions=decisions, course=record, report=report, images=images)
    return of_files(run(trial, sys.stdout, sys.stderr, files=files, as_json=as_json))


@sim.command("compare", examples=_COMPARE_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", help="Queue files; the first is compared against.")
@_trial_options
@click.option("--csv", default="", metavar="FILE", help="Write every compared figure to a CSV file.")
@click.option("--processes", type=click.IntRange(1), default=2, metavar="N", help="How many to run at a time.")
@click.option(
    "--seeds",
    type=click.IntRange(2, 1000),
    metavar="N",
    help="Made-up work or faults: so many draws, and say which file is surely better.",
)
@report_output
def sim_compare(
    files: tuple[str, ...],
    report: str,
    images: str,
    csv: str,
    processes: int,
    seeds: int | None,
    output: str,
    **given: Any,
) -> Status:
    """Simulate several queue files on the same workload and say which is better in what.

    Prints waiting times (also by queue, user, priority and size), slowdown, utilisation, fairness, evictions and lost
    work side by side, then the differences in words. With --seeds several draws of the work are simulated, and it is
    said whether the difference is sure, how large it is at least and at most, and which queues gain and pay.
    """
    from fairlead.sim.simulate import Files, compare, compare_draws
    from fairlead.sim.workloads.generate import PRESETS

    if len(files) < 2:
        raise wrong_usage("sim compare needs two queue files or more; one by itself: fairlead sim run --config FILE")
    trials = [_trial(name, file, **given) for name, file in zip(_names(files), files, strict=True)]
    if seeds is not None:
        if report or images or csv:
            raise wrong_usage("--seeds goes without --report, --images and --csv: those are of one draw")
        if not (given["workload"] in PRESETS or given["workload"].endswith((".yaml", ".yml")) or given["mtbf"]):
            raise wrong_usage("--seeds is for made-up work, and for --mtbf: recorded work is the same in each draw")
        first = given["seed"]
        wanted = range(first, first + seeds)
        status = compare_draws(trials, wanted, sys.stdout, sys.stderr, processes=processes, as_json=output == "json")
        return of_files(status)
    written = Files(report=report, images=images, csv=csv)
    status = compare(trials, sys.stdout, sys.stderr, files=written, processes=processes, as_json=output == "json")
    return of_files(status)


def _names(files: Sequence[str]) -> Sequence[str]:
    """The shortest ends of the paths that tell them apart."""
    if len(set(files)) < len(files):
        raise wrong_usage("a queue file is given twice: the figures would be the same")
    for parts in range(1, max(len(Path(f).parts) for f in files) + 1):
        names = ["/".join(Path(f).parts[-parts:]) for f in files]
        if len(set(names)) == len(names):
            return names
    return files


def _trial(
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
    """Where the work comes from."""
    from fairlead.sim.sources import Source

    return Source(
        tasks=tasks_max,
        since=_moment(since, "--since"),
        until=_moment(before, "--before"),
        journal=journal_workload,
        **given,
    )


def _moment(text: str, where: str) -> int | None:
    """A time of day in Unix milliseconds; without a zone it is local time."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise wrong_usage(f"{where}: {text!r} is no time; write 2026-05-01 or 2026-05-01T08:00") from None
    return round((at if at.tzinfo else at.astimezone()).astimezone(UTC).timestamp() * 1000)


sim.add_command(view)


# -- forecasts ------------------------------------------------------------------------------------------------------

_FORECAST_EXAMPLES = """
fairlead sim forecast --workload tasks.csv --nodes '4x cpu=8'
fairlead sim forecast --workload bursty --moments 100
"""


@sim.command("forecast", examples=_FORECAST_EXAMPLES)
@click.option(
    "--workload",
    "-w",
    default="",
    metavar="WORKLOAD",
    help="As for sim run, but no journal; seven made-up kinds of work if left out.",
)
@click.option("--nodes", default="", metavar="NODES", help="As for sim run.")
@click.option("--config", default="", metavar="FILE", help="A queue file; one that suits the workload if not given.")
@click.option(
    "--every-node",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Each Nth node only, so that work has to wait.",
)
@click.option("--seed", type=int, default=1, metavar="N", help="For made-up workloads, and for when answers are asked.")
@click.option(
    "--moments", type=click.IntRange(1), default=400, metavar="N", help="Moments at which answers are asked, at most."
)
@click.option("--draws", type=click.IntRange(2), default=10, metavar="N", help="Futures played at each of them.")
@click.option("--every", default="1h", metavar="TIME", help="Between two of these moments in the mean.")
@report_output
def sim_forecast(
    workload: str,
    nodes: str,
    config: str,
    every_node: int,
    seed: int,
    moments: int,
    draws: int,
    every: str,
    output: str,
) -> Status:
    """Try how often forecasts of starts come true, and whether something simpler does as well.

    Each workload is simulated; when work begins to wait, and at random moments while it waits, its start is forecast
    from what a service would know then. Printed are the loss beside that of simpler methods and of one that knows all
    run times, and how many starts came inside their interval, by queue, size and quarter of the run.
    """
    from fairlead.sim.forecast_report import Wanted, run
    from fairlead.sim.forecasting import Plan
    from fairlead.sim.sources import Source
    from fairlead.sim.workloads.generate import FORECAST

    if not workload and (nodes or config or every_node > 1):
        raise wrong_usage("--nodes, --config and --every-node go with --workload: say which")
    names = [workload] if workload else list(FORECAST)
    wanted = [Wanted(Source(workload=name, nodes=nodes, seed=seed), config, every_node) for name in names]
    plan = Plan(moments=moments, draws=draws, every_ms=parse_duration(every, "--every"), seed=seed)
    return of_files(run(wanted, plan, sys.stdout, sys.stderr, as_json=output == "json"))


# -- the journal ---------------------------------------------------------------------------------------------------


def journal_workload(source: Source) -> Workload:
    """What the journal in a state directory recorded, as a workload. Raises `SourceError`."""
    from fairlead.journal.codec import CodecError
    from fairlead.journal.format import JournalError
    from fairlead.sim.sources import SourceError, machines
    from fairlead.sim.workloads.recorded import NothingRecorded, recorded

    file = journal_file(Path(source.workload))
    nodes = machines(source.nodes) if source.nodes else ()
    try:
        state = _state_at_its_begin(file)
        return recorded(_moments(file), str(source.workload), source.since, source.until, nodes, state)
    except (JournalError, CodecError, NothingRecorded) as e:
        raise SourceError(str(e)) from e


def _state_at_its_begin(file: Path) -> Scheduler | None:
    """What there was before the first record of a journal whose older part was given up; None if it is whole."""
    from fairlead.journal.reader import Reader
    from fairlead.journal.replay import scheduler_state
    from fairlead.scheduler import Scheduler

    with Reader(file) as reader:
        snapshot = reader.snapshot(reader.first_seq - 1) if reader.first_seq > 1 else None
    return Scheduler.load(dict(scheduler_state(snapshot))) if snapshot is not None else None


def _moments(file: Path) -> Iterator[Moment]:
    from fairlead.journal.codec import decode_decisions, decode_event
    from fairlead.journal.format import EVENT, SCHEDULE
    from fairlead.journal.reader import Reader

    with Reader(file) as reader:
        for record in reader.records(reader.first_seq):
            if record.kind in (EVENT, SCHEDULE):
                event = decode_event(record.payload) if record.kind == EVENT else None
                yield record.at_ms, event, decode_decisions(record.outcome) if record.outcome else ()


# -- scenarios, bench ---------------------------------------------------------------------------------------------


scenarios_argument = click.argument("file", metavar="FILE", help="One scenario a line, as JSON; - is standard input.")
decisions_option = click.option(
    "--decisions", default="", metavar="FILE", help="Accepted deviations: scenario name to reason, TOML or JSON."
)


scenario = Group("scenario", help="Run or check scenarios in virtual time.")


@scenario.command("run", examples="fairlead scenario run seeds.jsonl")
@scenarios_argument
def scenario_run(file: str) -> Status:
    """Run scenarios; one line of JSON for each result.

    Exit status 1 if the file cannot be read or is no file of scenarios.
    """
    from fairlead.insight.unblock import unblock
    from fairlead.sim.scenario import run_file

    return of_files(run_file(file, sys.stdout, sys.stderr, unblock))


@scenario.command("check", examples="fairlead scenario check yunikorn.jsonl --category headroom")
@scenarios_argument
@decisions_option
@click.option("--category", "-c", multiple=True, metavar="NAME", help="Only this category; may be repeated.")
@click.option("--name", multiple=True, metavar="NAME", help="Only this scenario; may be repeated.")
@click.option(
    "--show", "shown", type=click.IntRange(0), default=10, metavar="N", help="Print at most N differing scenarios."
)
@report_output
def scenario_check(
    file: str, decisions: str, category: tuple[str, ...], name: tuple[str, ...], shown: int, output: str
) -> Status:
    """Run scenarios and compare with what they expect.

    A table by category and the first differences are printed. Exit status 0 if all pass or are accepted, 1 if any
    differs or the file cannot be read.
    """
    from fairlead.sim.compare import check_file

    status = check_file(
        file,
        sys.stdout,
        sys.stderr,
        decisions=decisions,
        categories=category or (),
        names=name or (),
        shown=shown,
        as_json=output == "json",
    )
    return of_files(status)


@command("bench", examples="fairlead bench\nfairlead bench --only flat --rounds 5")
@click.option("--only", multiple=True, metavar="NAME", help="Only this case; may be repeated.")
@click.option("--rounds", "-r", type=click.IntRange(1), default=3, metavar="N", help="Rounds of each case.")
@report_output
def bench(only: tuple[str, ...], rounds: int, output: str) -> Status:
    """Measure how many allocations a second the scheduler makes here."""
    from fairlead.sim.bench import run

    return run(sys.stdout, sys.stderr, only=only, rounds=rounds, as_json=output == "json")
