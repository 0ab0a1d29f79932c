"""`kill -9` and errors at the n-th system call of a service: what it acknowledged runs once, and ends as it should.

Each seed starts the service on the same state under strace, with a fault that is drawn (supervisors go free: theirs is
`supervisors.py`), submits jobs, and ends it. After some seeds it is started without a fault; then every acknowledged
job has left its mark once and has its own exit status, nothing is left of any, and no log has a traceback.

    python tests/crashes/services.py [--seeds 1000] [--first 0]
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crashes.command import again, main
from crashes.tracing import drawn, strace
from testbed.nursery import Nursery, Started
from testbed.unix_socket import Unix

from fairlead.journal.verify import verify

BATCH = 20
"""Seeds on one state."""
CALLS = 80
"""The fault comes at one of so many first calls of its kind."""
READY_S, SETTLED_S = 30.0, 60.0
GONE = (OSError, http.client.HTTPException)
_WAKEUP = re.compile(
    r"Exception ignored when trying to write to the signal wakeup fd:\nTraceback.*?\nOSError: [^\n]*\n", re.DOTALL
)
"""What Python itself prints where a signal's byte is refused; it sees the signal all the same."""


class Failed(AssertionError):
    """A promise was broken."""


class Batch:
    """Some seeds on one state directory."""

    def __init__(self, nursery: Nursery, directory: Path, counts: Counter[str]) -> None:
        self.nursery, self.counts = nursery, counts
        self.state, self.socket, self.log = directory / "state", directory / "s", directory / "log"
        self.marks = directory / "marks"
        self.marks.mkdir()
        self.wanted: dict[str, int] = {}
        self.pauses: dict[str, float] = {}
        self.keys: dict[str, str] = {}
        self.process: Started | None = None
        self.tracer: subprocess.Popen[bytes] | None = None

    # --- one seed ---

    def go(self, seed: int) -> None:
        """Start it under the fault of this seed, let it work, end it. Raises `Failed`."""
        dice = random.Random(seed)
        fault = drawn(dice, CALLS)
        self._start(strace(fault, "-b", "execve"))
        served = self._wait_ready(may_fail=True)
        if served:
            for _ in range(dice.randint(1, 4)):
                self._submit(f"s{seed}j{len(self.wanted)}", dice)
                time.sleep(dice.uniform(0, 0.1))
            time.sleep(dice.uniform(0, 0.4))
        self.counts[self._end(orderly=dice.random() < 0.4, served=served)] += 1

    def _start(self, tracing: list[str] | None = None) -> None:
        words = ("--state", str(self.state), "--socket", str(self.socket), "--no-tcp", "--resource", "cpu=4")
        self.process = self.nursery.start("up", *words, log=self.log, stopped=tracing is not None)
        if tracing is not None:
            _until(lambda: _status(self._pid, "State").startswith("T"), "it does not stop")
            self.tracer = subprocess.Popen([*tracing, "-p", str(self._pid)], stderr=subprocess.DEVNULL)
            _until(lambda: _status(self._pid, "TracerPid") != "0", "it is not traced")
            os.kill(self._pid, signal.SIGCONT)

    @property
    def _pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def _wait_ready(self, *, may_fail: bool) -> bool:
        assert self.process is not None
        end = time.monotonic() + READY_S
        while self.process.poll() is None:
            with contextlib.suppress(*GONE):
                self._ask("GET", "/info")
                return True
            if time.monotonic() > end:
                raise Failed(f"it lives and does not serve: {self._said()}")
            time.sleep(0.02)
        if not may_fail:
            raise Failed(f"it does not start: {self._said()}")
        return False

    def _submit(self, name: str, dice: random.Random) -> None:
        """One more, and again those that were not acknowledged."""
        self.wanted[name] = dice.choice([0, 0, 3])
        self.pauses[name] = dice.choice([0, 0.1, 0.5])
        for each in [name for name in self.wanted if name not in self.keys]:
            script = f"echo once >> {self.marks}/{each}; sleep {self.pauses[each]}; exit {self.wanted[each]}"
            body = {"jobs": [{"command": ["/bin/sh", "-c", script], "name": each, "resources": {"cpu": 1}}]}
            try:
                status, answer = self._ask("POST", "/jobs", body, **{"Idempotency-Key": each})
            except GONE:
                return
            if status < 300:
                self.keys[each] = answer["jobs"][0]["key"]
            elif status not in (503, 507):
                raise Failed(f"{status}: {answer}")

    def _end(self, *, orderly: bool, served: bool) -> str:
        assert self.process is not None
        by_itself = self.process.poll() is not None
        if not by_itself:
            self.process.send_signal(signal.SIGTERM if orderly else signal.SIGKILL)
        process = self.process
        # As long as it is traced its end is told to the tracer first.
        _until(lambda: process.poll() is not None, "it does not stop", 40)
        status = process.wait()
        if self.tracer is not None:
            self.tracer.wait(50)
            self.tracer = None
        # An event loop aborts where it cannot wake itself up: the same as a kill.
        is_killed = status in (-signal.SIGKILL, -signal.SIGABRT)
        if by_itself and not is_killed and not self._said().strip():
            raise Failed(f"it ended with {status} and said nothing")
        self._no_traceback()
        ended = "killed by its fault" if is_killed else "ended by itself"
        return f"{'served, ' if served else ''}{ended if by_itself else 'ended by us'}"

    # --- the end of the batch ---

    def settle(self) -> None:
        """Start it without a fault, and hold it to what it acknowledged. Raises `Failed`."""
        self._start()
        self._wait_ready(may_fail=False)
        self._submit(f"last{len(self.wanted)}", random.Random(0))
        end = time.monotonic() + SETTLED_S
        while live := self._rows("state=waiting&state=running&state=stopping&"):
            if time.monotonic() > end:
                raise Failed(f"not settled: {live}")
            time.sleep(0.1)
        rows = {row["key"]: row for row in self._rows("")}
        for name, key in self.keys.items():
            marks = (self.marks / name).read_text().count("once") if (self.marks / name).exists() else 0
            row = rows.get(key)
            if row is None:
                raise Failed(f"{name} was acknowledged as {key} and is not there")
            if marks != 1 or row["exit_code"] != self.wanted[name]:
                raise Failed(f"{name} ran {marks} times, wanted {self.wanted[name]}: {row}")
        names = Counter(row["name"] for row in rows.values())
        if twice := [name for name, count in names.items() if count > 1]:
            raise Failed(f"entered twice: {twice}")
        self.counts["jobs"] += len(self.keys)
        self._end(orderly=True, served=True)
        if left := self.processes():
            raise Failed(f"processes are left: {left}")
        if not (found := verify(self.state / "journal.db")).ok:
            raise Failed(f"the journal is damaged: {found.problems}")

    def processes(self) -> list[int]:
        """What has the state directory in its command line or environment."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    about = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                    if str(self.marks).encode() in about or str(self.state).encode() in about:
                        found.append(int(entry.name))
        return found

    def _rows(self, query: str) -> list[dict[str, Any]]:
        status, answer = self._ask("GET", f"/jobs?{query}limit=1000")
        assert status == 200, answer
        rows: list[dict[str, Any]] = answer["jobs"]
        return rows

    def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = Unix(self.socket, timeout=50)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", content, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def _said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def _no_traceback(self) -> None:
        said = _WAKEUP.sub("", self._said())
        if "Traceback" in said:
            raise Failed(f"a traceback: ...{said[max(0, said.index('Traceback') - 300) :][:3000]}")
        self.log.write_text("")


def _status(pid: int, name: str) -> str:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:"))


def _until(what: Callable[[], bool], otherwise: str, patience_s: float = 20) -> None:
    end = time.monotonic() + patience_s
    while not what():
        if time.monotonic() > end:
            raise Failed(otherwise)
        time.sleep(0.005)


def run(first: int, seeds: int) -> tuple[Counter[str], list[str]]:
    """What became of them, and what broke a promise."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    nursery = Nursery()
    for begin in range(first, first + seeds, BATCH):
        directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
        batch, seed, before = Batch(nursery, directory, counts), begin, counts.total() - counts["jobs"]
        try:
            for seed in range(begin, min(begin + BATCH, first + seeds)):
                batch.go(seed)
            batch.settle()
        except Failed as failure:
            fault = drawn(random.Random(seed), CALLS)
            seeds_again = again("services", begin, seed - begin + 1)
            failures.append(f"{seeds_again}: (the last: {fault}): {failure}")
            told = counts.total() - counts["jobs"] - before
            counts["FAILED or not tried after that"] += min(BATCH, first + seeds - begin) - told
        finally:
            if batch.process is not None:
                batch.process.kill()
            for pid in batch.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(directory, ignore_errors=True)
    nursery.close()
    return counts, failures


if __name__ == "__main__":
    sys.exit(main(__doc__, run))
