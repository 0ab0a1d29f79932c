"""How large a workload may be: CPU time and memory of whole simulations. `make bench-scale`.

    python -m benchmarks.scale                     # all cases
    python -m benchmarks.scale --only log          # one of them
    python -m benchmarks.scale --openb DIR         # and the openb trace, from the folder of its two files

Decides the cases: a million made-up tasks on a thousand nodes, and a log of 100,000 jobs of which some are gangs. Never
counts the time that others use of the machine: each case runs in a process of its own, whose CPU time and largest
memory are told. Invariant: the same cases each time (the log is drawn from a seed).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, run_trial
from fairlead.version import version_and_build

TASKS, NODES = 1_000_000, 1_000
JOBS, LOG_NODES, WIDTH = 100_000, 64, 16
WIDE = 0.2
"""The part of the jobs that is wider than a node."""
LOAD = 0.6
"""The part of the machine that the log asks for."""
OPENB = ("openb_pod_list_default.csv", "openb_node_list_all_node.csv")
CASES = ("tasks", "log")


def write_log(path: Path, jobs: int, seed: int = 1) -> None:
    """A log in the Standard Workload Format."""
    chance = Random(seed)
    widths = [
        chance.randint(WIDTH + 1, 6 * WIDTH) if chance.random() < WIDE else chance.randint(1, WIDTH)
        for _ in range(jobs)
    ]
    runs = [max(int(chance.lognormvariate(6.5, 1.2)), 1) for _ in range(jobs)]
    apart = sum(width * run for width, run in zip(widths, runs, strict=True)) / jobs / (LOAD * LOG_NODES * WIDTH)
    at = 0.0
    with path.open("w", encoding="utf-8") as file:
        file.write(f"; Version: 2.2\n; MaxNodes: {LOG_NODES}\n; MaxProcs: {LOG_NODES * WIDTH}\n")
        for number, (width, run) in enumerate(zip(widths, runs, strict=True), 1):
            at += chance.expovariate(1 / apart)
            user, queue = chance.randint(1, 40), chance.randint(1, 2)
            file.write(
                f"{number} {int(at)} -1 {run} {width} -1 -1 {width} {2 * run} -1 1 {user} 1 -1 {queue} -1 -1 -1\n"
            )


def source_of(case: str, folder: Path) -> Source:
    """The workload of a case; `folder` has the openb trace, or room for a log."""
    if case == "tasks":
        return Source(workload="heavy-tails", nodes=str(NODES), tasks=TASKS)
    if case == "openb":
        tasks, nodes = (str(folder / name) for name in OPENB)
        return Source(workload=tasks, nodes=nodes)
    log = folder / "log.swf"
    write_log(log, JOBS)
    return Source(workload=str(log))


def measured(case: str, folder: Path) -> str:
    """One case, run here, in words."""
    source = source_of(case, folder)
    began = time.process_time()
    outcome = run_trial(Trial(name=case, source=source, digest=False))
    cpu_s = time.process_time() - began
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    totals = outcome["figures"]["tasks"]
    return (
        f"{case}: {totals['submitted']:,} tasks on {outcome['nodes']:,} nodes, {totals['completed']:,} completed, "
        f"{outcome['decisions']:,} decisions: {cpu_s:.1f} s of CPU, {mib:.0f} MiB at most"
    )


def main() -> None:
    """Run each case in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--only", choices=(*CASES, "openb"), help="only this case")
    parser.add_argument("--openb", metavar="DIR", help="the folder with the two files of the openb trace")
    parser.add_argument("--here", metavar="DIR", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(measured(given.only, Path(given.here)), flush=True)
        return
    print(version_and_build())
    cases = [given.only] if given.only else [*CASES, *(["openb"] if given.openb else [])]
    for case in cases:
        with TemporaryDirectory(prefix="fairlead-") as folder:
            where = given.openb if case == "openb" else folder
            words = [sys.executable, "-m", "benchmarks.scale", "--only", case, "--here", where]
            subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
