"""Commands in virtual time: scenario run, scenario check, bench (`sim` is in `cli.simulator`).

Decides nothing: they hand their options to `fairlead.sim`, which prints and says the exit status. Never talks to a
service. Invariant: the same files give the same output.
"""

from __future__ import annotations

import sys

import click

from fairlead.cli.app import Group, Status, Whole, command, report_output
from fairlead.cli.failures import of_files

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
@click.option("--show", "shown", type=Whole(0), default=10, metavar="N", help="Print at most N differing scenarios.")
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
@click.option("--rounds", "-r", type=Whole(1), default=3, metavar="N", help="Rounds of each case.")
@report_output
def bench(only: tuple[str, ...], rounds: int, output: str) -> Status:
    """Measure how many allocations a second the scheduler makes here."""
    from fairlead.sim.bench import run

    return run(sys.stdout, sys.stderr, only=only, rounds=rounds, as_json=output == "json")
