"""Commands in virtual time: sim run, compare (queue files on workloads), view, forecast; scenario run and check, bench.

Decides what each command takes beside what it simulates (`trial_options`). Never measures or draws:
`fairlead.sim` does, prints, and says the exit status; never talks to a service. Invariant: the same files, options and
seed give the same output, but of the journal of a service that runs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.app import Group, Status, command, of_files, report_output, wrong_usage
from fairlead.cli.importing import sim_import
from fairlead.cli.trial_options import report_options, trial_of, trial_options
from fairlead.cli.tuning import sim_tune
from fairlead.cli.values import parse_duration
from fairlead.cli.view import view

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN_EXAMPLES = """
fairlead sim run --workload heavy-tails --nodes 50 --report report.html
fairlead sim run --config queues.yaml --workload tasks.csv --nodes '10x cpu=32,memory=128Gi'
"""
_COMPARE_EXAMPLES = """
fairlead sim compare before.yaml after.yaml --workload tasks.csv --nodes nodes.csv --report report.html
fairlead sim compare a.yaml b.yaml --workload .fairlead --since 2026-05-01
fairlead sim compare a.yaml b.yaml --workload recipe.yaml --seeds 20
"""


sim = Group("sim", help="Try queue files on workloads, in virtual time.")
sim.add_command(sim_import)
sim.add_command(sim_tune)


@sim.command("run", examples=_RUN_EXAMPLES)
@click.option(
    "--config", "--queues", default="", metavar="FILE", help="A queue file; one that suits the workload if not given."
)
@trial_options
@report_options
@click.option("--decisions", default="", metavar="FILE", help="Write every decision to this file, a line each.")
@click.option("--record", default="", metavar="FILE", help="Write the whole course to this new file, for sim view.")
@report_output
def sim_run(config: str, decisions: str, record: str, report: str, images: str, output: str, **given: Any) -> Status:
    """Simulate one queue file on a workload.

    Prints totals that add up, utilisation by resource, waiting times, and a digest of all decisions. Ctrl-C stops and
    reports what happened so far.
    """
    from fairlead.sim.simulate import Files, run

    trial = trial_of(Path(config).name if config else "default", config, **given)
    as_json = output == "json"
    files = Files(decisions=decisions, course=record, report=report, images=images)
    return of_files(run(trial, sys.stdout, sys.stderr, files=files, as_json=as_json))


@sim.command("compare", examples=_COMPARE_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", help="Queue files; the first is compared against.")
@trial_options
@report_options
@click.option("--csv", default="", metavar="FILE", help="Write every compared figure to a CSV file.")
@click.option("--processes", type=click.IntRange(1), default=2, metavar="N", help="How many to run at a time.")
@click.option(
    "--seeds",
    type=click.IntRange(2, 1000),
    metavar="N",
    help="Made-up work or faults: so many draws, and say which file is surely better.",
)
@click.option(
    "--by",
    type=click.Choice(("week", "day")),
    help="Say in how many weeks (or days) which file is better, and how surely.",
)
@report_output
def sim_compare(
    files: tuple[str, ...],
    report: str,
    images: str,
    csv: str,
    processes: int,
    seeds: int | None,
    by: str | None,
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
    first = trial_of("", "", **given)
    trials = [replace(first, name=name, queues=file) for name, file in zip(_names(files), files, strict=True)]
    if seeds is not None:
        if report or images or csv or by:
            raise wrong_usage("--seeds goes without --report, --images, --csv and --by: those are of one draw")
        if not (given["workload"] in PRESETS or given["workload"].endswith((".yaml", ".yml")) or given["mtbf"]):
            raise wrong_usage("--seeds is for made-up work, and for --mtbf: recorded work is the same in each draw")
        wanted = range(given["seed"], given["seed"] + seeds)
        status = compare_draws(trials, wanted, sys.stdout, sys.stderr, processes=processes, as_json=output == "json")
        return of_files(status)
    written = Files(report=report, images=images, csv=csv)
    as_json = output == "json"
    status = compare(trials, sys.stdout, sys.stderr, files=written, processes=processes, as_json=as_json, by=by or "")
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
@click.option("--draws", type=click.IntRange(2), default=16, metavar="N", help="Futures played at each of them.")
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
