"""What it costs to split one cluster into several that are scheduled apart: `make bench-sharding`.

Decides which work is made up, how it is dealt out, and which figures are shown. Never schedules: the simulator does.
Each team has a queue with an equal guarantee, and work that comes in bursts; some of it wants many nodes at once. A
shard has whole teams and an equal part of the nodes. Invariant: each number of shards gets the same work.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TEAMS, CORES = 8, 32
HOURS = 8
BURST_EVERY_H = 4.0
"""The mean time between two bursts of a team."""
LOAD = 0.8
"""The part of all cores that is asked for in the mean."""


def work(seed: int, nodes: int) -> list[dict[str, str]]:
    """Rows of a workload: each team is quiet for hours, and then submits much at once."""
    chance = random.Random(seed)
    rows: list[dict[str, str]] = []
    budget = nodes * CORES * HOURS * 3600 * LOAD / TEAMS
    for team in range(TEAMS):
        left, at = budget, chance.expovariate(1 / (BURST_EVERY_H * 3600))
        while left > 0 and at < HOURS * 3600:
            wide = chance.random() < 0.1
            count = chance.choice((4, 8, 12)) if wide else chance.randint(10, 60)
            cpu, run = (CORES, 1800) if wide else (chance.choice((1, 2, 4, 8)), chance.lognormvariate(6.5, 1.0))
            left -= count * cpu * run
            gang = "yes" if wide else ""
            row = {"time": f"{at:.0f}", "run": f"{run:.0f}", "resources.vcore": str(cpu), "count": str(count)}
            rows.append(row | {"queue": f"root.team{team}", "job": f"{team}-{len(rows)}", "gang": gang})
            at += (
                chance.expovariate(1 / 120) if chance.random() < 0.9 else chance.expovariate(1 / (BURST_EVERY_H * 3600))
            )
    return rows


def queues(teams: list[int], share: int) -> str:
    """A queue file with an equal guarantee for each of these teams."""
    lines = [f"          - {{name: team{t}, resources: {{guaranteed: {{vcore: {share}}}}}}}" for t in teams]
    head = "partitions:\n  - name: default\n    placementrules: [{name: provided}]\n    queues:\n"
    return head + '      - name: root\n        submitacl: "*"\n        queues:\n' + "\n".join(lines) + "\n"


def simulated(folder: Path, rows: list[dict[str, str]], teams: list[int], nodes: int) -> dict[str, Any]:
    """What the simulator says of one shard."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]))
    table.writeheader()
    table.writerows(sorted(rows, key=lambda row: float(row["time"])))
    (folder / "work.csv").write_text(text.getvalue())
    (folder / "queues.yaml").write_text(queues(teams, nodes * CORES // len(teams)))
    command = [sys.executable, "-m", "fairlead.cli.main", "sim", "run", "-o", "json", "--until", f"{HOURS * 4}h"]
    command += ["--config", str(folder / "queues.yaml"), "--workload", str(folder / "work.csv")]
    done = subprocess.run([*command, "--nodes", f"{nodes}x cpu={CORES}"], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    print(f"{'shards':>6} {'mean wait':>10} {'p95 wait':>10} {'never ran':>10}", flush=True)
    for shards in (1, 2, 4):
        waits, never, tasks = [], 0, 0
        for seed in range(given.seeds):
            rows = work(seed, given.nodes)
            for shard in range(shards):
                teams = list(range(shard, TEAMS, shards))
                own = [row for row in rows if int(row["queue"].removeprefix("root.team")) in teams]
                if not own:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    found = simulated(Path(folder), own, teams, given.nodes // shards)
                figures, totals = found["figures"], found["totals"]
                waits.append(figures["waits"]["started"])
                never += figures["waits"]["not_started"]
                tasks += totals["submitted"]
        done = sum(each["count"] for each in waits)
        mean = sum(each["mean"] * each["count"] for each in waits) / done
        high = sum(each["p95"] * each["count"] for each in waits) / done
        print(f"{shards:>6} {mean / 60:>8.1f} m {high / 60:>8.1f} m {never / tasks:>9.1%}", flush=True)


if __name__ == "__main__":
    main()
