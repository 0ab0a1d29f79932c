"""A runtime whose machine executes nothing: the test says what became of each run."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from fairlead.core.model.events import Configure
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec, RetrySpec
from fairlead.local import requests
from fairlead.local.callers import Caller
from fairlead.local.gpus import Gpu
from fairlead.local.history_records import (
    JobSpec,
)
from fairlead.local.job import Job
from fairlead.local.place import LocalPlace
from fairlead.local.runs import RunReport, RunSpec
from fairlead.runtime import Runtime, Turn

ANN = Caller(user="ann", uid=1000, groups=("ann",), is_admin=True)


def spec(key: str = "", retry: RetrySpec | None = None, **fields: Any) -> JobSpec:
    given = {"command": ("true",), "queue": "root.default", "resources": Resources({"vcore": 1000})} | fields
    return JobSpec(key=key, user="ann", uid=1000, retry=retry, **given)


class Paper:
    """A machine that executes nothing: the test says what became of each run."""

    def __init__(self) -> None:
        self.gpus: tuple[Gpu, ...] = ()
        self.runs: dict[str, RunReport] = {}
        self.stopped: dict[str, int | None] = {}
        self.forgotten: list[str] = []
        self.purged: list[str] = []
        self.specs: dict[str, RunSpec] = {}
        self.suspended: dict[str, bool] = {}
        self.limits: dict[str, int | None] = {}

    def start(self, run: RunSpec) -> RunReport:
        self.specs[run.key] = run
        self.runs[run.key] = RunReport(key=run.key, pid=1, started_at_ms=time.time_ns() // 1_000_000)
        return self.runs[run.key]

    def stop(self, key: str, grace_ms: int | None = None) -> None:
        self.stopped[key] = grace_ms

    def go_on(self, key: str, time_limit_ms: int | None, *, suspended: bool = False) -> None:
        self.limits[key] = time_limit_ms
        self.suspended[key] = suspended

    def report(self, key: str) -> RunReport | None:
        return self.runs.get(key)

    def forget(self, key: str) -> None:
        self.forgotten.append(key)

    def purge(self, key: str) -> None:
        self.purged.append(key)

    def adopt(self) -> list[RunReport]:
        return []

    def close(self) -> None:
        pass


class Service:
    """A runtime with a paper machine."""

    def __init__(self, directory: Path) -> None:
        (directory / "runs").mkdir(exist_ok=True)
        self.directory = directory
        self.paper = Paper()
        self.place: LocalPlace = LocalPlace(lambda _: self.paper, directory / "runs", as_submitter=False)
        self.runtime = Runtime(directory / "journal.db", self.place)

        def prepare(turn: Turn) -> None:
            turn.event(Configure(QUEUES))
            self.place.register_node(turn, "n", CAPACITY)

        opened = self.place.open(self.runtime, prepare)
        self.runtime.start()
        opened.result(10)

    def do(self, act: Any) -> Any:
        future: Future[Any] = self.runtime.do(act)
        return future.result(10)

    def submit(self, retry: RetrySpec | None = None, **fields: Any) -> str:
        job = spec(retry=retry, **fields)
        submitted = self.do(lambda turn: requests.submit(self.place.jobs, turn, ANN, [job]))
        key: str = submitted.keys[0]
        return key

    def end(self, run: str, **how: Any) -> None:
        """The machine reports the end of a run."""
        report = RunReport(key=run, pid=1, started_at_ms=1, ended_at_ms=2, **how)
        self.do(lambda turn: self.place.enter_report(turn, report))

    def job(self, key: str) -> Job:
        def look(_: Turn) -> Job:
            job = self.place.jobs.get(key)
            assert job is not None
            return job

        found: Job = self.do(look)
        return found


CAPACITY = Resources({"vcore": 1000})
_ROOT = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="default"),))
QUEUES = ClusterSpec(partitions=(PartitionSpec(root=_ROOT),))
