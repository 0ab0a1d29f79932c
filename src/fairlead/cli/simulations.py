"""Commands in virtual time: scenario run, scenario check, bench (`sim` is in `cli.simulator`).

Decides nothing: they hand their options to `fairlead.sim`, which prints and says the exit status. Never talks to a
service. Invariant: the same files give the same output.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairlead.cli.app import JsonOption, Status, command, group

ScenariosArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="One scenario a line, as JSON; - is standard input.")
]
DecisionsOption = Annotated[
    str, typer.Option("--decisions", metavar="FILE", help="Accepted deviations: scenario name to reason, TOML or JSON.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    scenario = group("scenario", "Run or check scenarios in virtual time.")
    command(scenario, "run", examples="fairlead scenario run seeds.jsonl")(scenario_run)
    command(scenario, "check", examples="fairlead scenario check yunikorn.jsonl --category headroom")(scenario_check)
    app.add_typer(scenario)
    command(app, "bench", examples="fairlead bench\nfairlead bench --only flat --rounds 5")(bench)


def scenario_run(file: ScenariosArgument) -> Status:
    """Run scenarios; one line of JSON for each result.

    Exit status 2 if the file cannot be read or is no file of scenarios.
    """
    from fairlead.insight.unblock import unblock
    from fairlead.sim.scenario import run_file

    return run_file(file, sys.stdout, sys.stderr, unblock)


def scenario_check(
    file: ScenariosArgument,
    decisions: DecisionsOption = "",
    category: Annotated[
        list[str] | None,
        typer.Option("--category", "-c", metavar="NAME", help="Only this category; may be repeated."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", "-n", metavar="NAME", help="Only this scenario; may be repeated.")
    ] = None,
    shown: Annotated[int, typer.Option("--show", metavar="N", min=0, help="Print at most N differing scenarios.")] = 10,
    json: JsonOption = False,
) -> Status:
    """Run scenarios and compare with what they expect.

    A table by category and the first differences are printed. Exit status 0 if all pass or are accepted, 1 if any
    differs, 2 if the file cannot be read.
    """
    from fairlead.sim.compare import check_file

    return check_file(
        file,
        sys.stdout,
        sys.stderr,
        decisions=decisions,
        categories=category or (),
        names=name or (),
        shown=shown,
        as_json=json,
    )


def bench(
    only: Annotated[
        list[str] | None, typer.Option("--only", "-o", metavar="NAME", help="Only this case; may be repeated.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", "-r", metavar="N", min=1, help="Rounds of each case.")] = 3,
    json: JsonOption = False,
) -> Status:
    """Measure the scheduler: allocations per second, how long answers to questions take, what the journal costs.

    With --only questions or --only journal just that.
    """
    from fairlead.cli import journal_bench, question_bench
    from fairlead.sim.bench import run

    others = {question_bench.NAME: question_bench.rows, journal_bench.NAME: journal_bench.rows}
    return run(sys.stdout, sys.stderr, only=only or (), rounds=rounds, as_json=json, others=others)
