"""How large is the state of a machine that ran many jobs, and how long does it take to come back?

    python -m benchmarks.retention [JOBS]

Enters so many jobs (50,000) through the service's own writer, book, scheduler and journal, each with an environment of
1 kB, and has each start and end; only the processes are made up: a machine that says that they ran. What a run leaves
behind (its result and its output) is written as files. Meanwhile what is old goes, as it does in a service. Decides
nothing; prints the largest state on the way, and how long the next start takes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from fairlead.config import default_text, load_text
from fairlead.core.model.resources import Resources
from fairlead.local import requests
from fairlead.local.callers import Caller
from fairlead.local.gpus import Gpu
from fairlead.local.history_records import JobSpec
from fairlead.local.place import LocalPlace
from fairlead.local.runs import RunReport, RunSpec
from fairlead.local.supervisor import run_files
from fairlead.runtime import Runtime, Turn
from fairlead.runtime.configurations import configure
from fairlead.service.retention import Retention, forget_old_jobs, prune_step

AT_ONCE = 200
LOOK_EVERY = 2_000
"""Jobs between two looks at what has to go; a service looks once a minute."""
OUTPUT = b"step 1 of 1: loss 0.25\n" * 20


class MadeUpMachine:
    """Says of each run that it ran for a moment, and leaves behind what a run leaves behind."""

    def __init__(self, runs: Path, tell: Callable[[RunReport], None]) -> None:
        self._runs, self._tell = runs, tell
        self.gpus: tuple[Gpu, ...] = ()
        self._ends: SimpleQueue[RunReport | None] = SimpleQueue()
        runs.mkdir(exist_ok=True)
        threading.Thread(target=self._end, daemon=True).start()

    def start(self, run: RunSpec) -> RunReport:
        """It runs at once, and ends soon."""
        now = time.time_ns() // 1_000_000
        began = RunReport(key=run.key, pid=4711, started_at_ms=now)
        directory = self._runs / run.key
        directory.mkdir()
        for name in (run_files.STDOUT, run_files.STDERR):
            (directory / name).write_bytes(OUTPUT)
        run_files.write(str(directory), run_files.FORGOTTEN, {"exit_code": 0, "ended_at_ms": now}, durable=False)
        self._ends.put(RunReport(key=run.key, pid=4711, started_at_ms=now, ended_at_ms=now + 1, exit_code=0, cpu_ms=3))
        return began

    def _end(self) -> None:
        while (report := self._ends.get()) is not None:
            self._tell(report)

    def adopt(self) -> list[RunReport]:
        return []

    def report(self, key: str) -> RunReport | None:
        return None

    def forget(self, key: str) -> None:
        pass

    def purge(self, key: str) -> None:
        """What was broken off by the end of a service is done again."""
        shutil.rmtree(self._runs / key, ignore_errors=True)

    def close(self) -> None:
        self._ends.put(None)


def open_runtime(state: Path) -> tuple[Runtime, LocalPlace]:
    """The service's writer on this directory, with the built-in queues and a node of 64 cores."""
    runs = state / "runs"
    local: LocalPlace = LocalPlace(lambda tell: MadeUpMachine(runs, tell), runs, as_submitter=False)  # type: ignore[arg-type, return-value]
    runtime = Runtime(state / "journal.db", local)

    def prepare(turn: Turn) -> None:
        if turn.books.configurations.current is None:
            configure(turn, load_text(default_text()), who="", source="built-in")
        local.register_node(turn, "machine", Resources({"vcore": 64_000, "memory": 2**38}))

    first = local.open(runtime, prepare)
    runtime.start()
    first.result(300)
    return runtime, local


def submit(runtime: Runtime, local: LocalPlace, count: int) -> None:
    """So many jobs, in one request."""
    env = {f"VARIABLE_{i}": "x" * 40 for i in range(20)}
    caller = Caller("ann", 1000, is_admin=True)
    spec = partial(JobSpec, key="", user="ann", uid=1000, queue="root.batch", env=env, name="step")
    cores = Resources({"vcore": 1000})
    specs = [spec(command=("python", "train.py", str(number)), resources=cores) for number in range(count)]
    runtime.do(lambda turn: requests.submit(local.jobs, turn, caller, specs)).result(60)


def size_of(state: Path) -> int:
    """What it takes on the disk: whole blocks."""
    total = 0
    for directory, _, names in os.walk(state):
        for name in (".", *names):
            with contextlib.suppress(FileNotFoundError):
                total += Path(directory, name).lstat().st_blocks * 512
    return total


def prune(runtime: Runtime, retention: Retention, _: object) -> int:
    """A step of what a service does once a minute."""
    before_ms = time.time_ns() // 1_000_000 - retention.journal_ms
    return prune_step(runtime.journal, before_ms, retention.journal_bytes)


def run(jobs: int, state: Path, retention: Retention, say: Callable[[str], None] = print) -> dict[str, Any]:
    """All jobs, one batch after the other; the figures."""
    runtime, local = open_runtime(state)
    began, entered, largest = time.monotonic(), 0, 0
    while entered < jobs:
        count = min(AT_ONCE, jobs - entered)
        submit(runtime, local, count)
        entered += count
        while local.jobs.live_count:
            time.sleep(0.001)
        if entered % LOOK_EVERY == 0 or entered == jobs:
            runtime.do(lambda turn: forget_old_jobs(turn, local.jobs, retention)).result(60)
            while runtime.read(partial(prune, runtime, retention)).result(60):
                pass
            size = size_of(state)
            largest = max(largest, size)
            rate = entered / (time.monotonic() - began)
            say(f"{entered:>9,} jobs, {rate:5.0f} a second: {size / 2**20:6.0f} MiB, {len(local.jobs):,} in the list")
    records = runtime.journal.last_seq
    runtime.close()
    again = time.monotonic()
    runtime, local = open_runtime(state)
    seconds = time.monotonic() - again
    known = len(local.jobs)
    runtime.close()
    figures = {"jobs": entered, "records": records, "largest_bytes": largest, "known": known}
    return {**figures, "recovery_s": round(seconds, 3)}


def main(arguments: list[str]) -> None:
    """Run it in a directory of its own."""
    jobs = int(arguments[0].replace(",", "")) if arguments else 50_000
    with tempfile.TemporaryDirectory(prefix="fairlead-retention") as name:
        found = run(jobs, Path(name), Retention())
        mib = found["largest_bytes"] / 2**20
        said = f"{found['jobs']:,} jobs, {found['records']:,} records: at most {mib:.0f} MiB"
        print(f"{said}, up again in {found['recovery_s']} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
