"""`fairlead sim forecast`: whether forecasts come true, tried on workloads.

Decides which workloads are tried when none is named. Never talks to a service. Invariant: the same workloads and seed
give the same report.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairlead.cli.app import JsonOption, Status
from fairlead.cli.failures import wrong_usage

EXAMPLES = """
fairlead sim forecast                              (made-up workloads in which much has to wait)
fairlead sim forecast --workload tasks.csv --nodes nodes.csv --every 10m
fairlead sim forecast --workload openb_tasks.csv --nodes openb_nodes.csv --every-node 80 --every 2h
"""
MADE_UP = (
    ("poisson", "4", 2500, None, 0.97, "6m"),
    ("heavy-tails", "10", 5000, None, 0.9, "3m"),
    ("diurnal", "12", None, "7d", 0.8, "10m"),
    ("gangs", "6", 2500, None, 0.8, "10m"),
    ("tenants", "6", None, "3d", None, "5m"),
)
"""Workload, nodes, tasks, how long, load, and the time between two forecasts."""


def sim_forecast(
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            "-w",
            "--tasks",
            metavar="WORKLOAD",
            help="A workload as for `sim run` (no journal); several made-up ones if left out.",
        ),
    ] = "",
    nodes: Annotated[str, typer.Option("--nodes", "-n", metavar="NODES", help="As for `sim run`.")] = "",
    config: Annotated[
        str,
        typer.Option("--config", metavar="FILE", help="A queue file; one that suits the workload if not given."),
    ] = "",
    every_node: Annotated[
        int, typer.Option("--every-node", metavar="N", min=1, help="Take each Nth node only, so that work has to wait.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="For made-up workloads.")] = 1,
    moments: Annotated[
        int, typer.Option("--moments", metavar="N", min=1, help="Moments at which forecasts are made, at most.")
    ] = 1000,
    draws: Annotated[int, typer.Option("--draws", metavar="N", min=2, help="Futures played at each of them.")] = 10,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="Between two of these moments at least, such as 30m.")
    ] = "",
    json: JsonOption = False,
) -> Status:
    """Try how often forecasts of starts come true.

    Each workload is simulated; whenever work begins to wait its start is forecast from what a service would know then,
    and scored when it starts. Four of five starts should be inside their interval.
    """
    from fairlead.cli.forecast_trial import Plan, Wanted, run
    from fairlead.cli.values import parse_duration
    from fairlead.sim.sources import Source

    def plan(default: str) -> Plan:
        return Plan(moments=moments, draws=draws, every_ms=parse_duration(every or default, "--every"))

    if workload:
        source = Source(workload=workload, nodes=nodes, seed=seed)
        return run([(Wanted(source, config, every_node), plan("1h"))], sys.stdout, sys.stderr, as_json=json)
    if nodes or config or every_node > 1:
        raise wrong_usage("sim forecast: --nodes, --config and --every-node go with --workload: say which")
    tried = [
        (Wanted(Source(workload=name, nodes=count, tasks=tasks, lasts=lasts, load=load, seed=seed)), plan(apart))
        for name, count, tasks, lasts, load, apart in MADE_UP
    ]
    return run(tried, sys.stdout, sys.stderr, as_json=json)
