"""`fairlead sim tune`: search the settings that are named, and say how sure the answer is.

Decides how the words of the command become a plan. Never searches. Invariant: the same files, options and seed give the
same answer.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from fairlead.cli.app import Number, Status, command, of_files, report_output, wrong_usage
from fairlead.cli.trial_options import trial_of, trial_options

_EXAMPLES = """
fairlead sim tune queues.yaml -w may.csv --nodes '12x cpu=32,memory=128Gi' \\
    --try 'root.batch max.vcore=200..380/20' --try 'root.web priority.offset=0,10' --goal 'p95 wait of root.web'
fairlead sim tune queues.yaml -w recipe.yaml --lasts 12d --by day --try 'root.web guaranteed.vcore=0..64/8' \\
    --goal 'mean wait of root.web' --no-worse 10 --keep 'run time lost+5%' --out tuned.yaml
"""


@command("tune", examples=_EXAMPLES)
@click.argument("file", metavar="FILE", help="The queue file that is to be better.")
@click.option(
    "--try",
    "tries",
    multiple=True,
    required=True,
    metavar="SETTING",
    help="A setting and what to try, 'QUEUE KEY=VALUES': max.NAME, guaranteed.NAME, maxapplications or a property; "
    "1,2,4 or 10..40/5.",
)
@click.option(
    "--goal",
    required=True,
    metavar="FIGURE",
    help="What is to get better: mean wait, p95 wait of QUEUE, use of cpu, evictions, ...",
)
@click.option(
    "--no-worse",
    type=Number(0),
    default=25.0,
    metavar="PERCENT",
    help="The mean wait of no queue may get longer by more.",
)
@click.option("--keep", multiple=True, metavar="FIGURE+PART%", help="A figure that may get worse by so much at most.")
@click.option("--files", type=click.IntRange(2, 1000), default=24, metavar="N", help="So many are tried first.")
@click.option("--by", type=click.Choice(("week", "day", "hour")), default="week", help="What the work is divided into.")
@click.option("--processes", type=click.IntRange(1), default=os.cpu_count() or 2, metavar="N", help="At a time.")
@click.option("--out", "write", default="", metavar="FILE", help="Write the file there if it is surely better.")
@trial_options
@report_output
def sim_tune(
    file: str,
    tries: tuple[str, ...],
    goal: str,
    no_worse: float,
    keep: tuple[str, ...],
    files: int,
    by: str,
    processes: int,
    write: str,
    output: str,
    **given: Any,
) -> Status:
    """Find values of settings that make one figure best, under conditions.

    Files with values of these settings are simulated on the first two thirds of the work: many on a little of it, the
    better ones on more, then the neighbours of the best. The last third, which nothing was chosen by, says whether the
    best is surely better than FILE, and whether it keeps the conditions.
    """
    from fairlead.sim.goals import GoalError, read_bound, read_goal
    from fairlead.sim.periods import LENGTHS
    from fairlead.sim.settings import SettingError, read_setting
    from fairlead.sim.tune import tune
    from fairlead.sim.tuning import Plan

    try:
        plan = Plan(
            settings=tuple(read_setting(text) for text in tries),
            goal=read_goal(goal),
            no_worse=no_worse / 100,
            bounds=tuple(read_bound(text) for text in keep),
            tries=files,
            seed=given["seed"],
            period_ms=LENGTHS[by],
            period=by,
        )
    except (SettingError, GoalError) as e:
        raise wrong_usage(str(e)) from None
    trial = trial_of(file, file, **given)
    as_json = output == "json"
    return of_files(
        tune(trial, plan, processes=processes, write=write, as_json=as_json, out=sys.stdout, err=sys.stderr)
    )
