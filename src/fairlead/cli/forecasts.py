"""`fairlead sim forecast`: whether forecasts come true, tried on a recorded workload.

Decides nothing: it hands its options to `forecast_trial`. Never talks to a service. Invariant: the same files
give the same report.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairlead.cli.app import JsonOption, Status

EXAMPLES = "fairlead sim forecast --nodes nodes.csv --tasks tasks.csv --every-node 80"


def sim_forecast(
    nodes: Annotated[str, typer.Option("--nodes", metavar="CSV", help="Nodes: sn,cpu_milli,memory_mib,gpu,model.")],
    tasks: Annotated[str, typer.Option("--tasks", metavar="CSV", help="Tasks with creation and deletion times.")],
    config: Annotated[
        str,
        typer.Option("--config", metavar="FILE", help="A queues.yaml; one queue per class of service if not given."),
    ] = "",
    every_node: Annotated[
        int, typer.Option("--every-node", metavar="N", min=1, help="Take each Nth node only, so that work has to wait.")
    ] = 1,
    moments: Annotated[
        int, typer.Option("--moments", metavar="N", min=1, help="Moments at which forecasts are made, at most.")
    ] = 1000,
    draws: Annotated[int, typer.Option("--draws", metavar="N", min=2, help="Futures played at each of them.")] = 8,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="Between two of these moments at least, such as 30m.")
    ] = "1h",
    json: JsonOption = False,
) -> Status:
    """Try how often forecasts of starts come true on a recorded workload.

    The trace is replayed; whenever work begins to wait its start is forecast from what a service would know then, and
    scored when it starts. Four of five starts should be inside their interval.
    """
    from fairlead.cli.forecast_trial import Plan, run
    from fairlead.cli.values import parse_duration

    plan = Plan(moments=moments, draws=draws, every_ms=parse_duration(every, "--every"))
    return run(nodes, tasks, sys.stdout, sys.stderr, config=config, every_node=every_node, plan=plan, as_json=json)
