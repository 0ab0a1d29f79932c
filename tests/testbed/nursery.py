"""Start `fairlead` again and again without paying for its imports each time.

One process imports the command and the service once and forks a process for each start: a real process with a process
id, signals, a session and an exit status of its own, that began where `fairlead` begins. What it never does: start a
command the way a user's shell does; the tests of the command line do that.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

# What a service imports while it starts and not before: its routes, its event loop, and what looks for devices.
IMPORTED_LATER = (
    "fairlead.cli.up",
    *(f"fairlead.service.{each}" for each in ("configuration", "declarations", "jobs", "logs", "nodes", "occupancy")),
    *(f"fairlead.service.{each}" for each in ("retention", "settings", "terminals", "unknown_runs", "windows")),
    "fairlead.service.http.pages",
    "anyio._backends._asyncio",
    "pynvml",
    "uvicorn.lifespan.off",
    "uvloop",
)


class Nursery:
    """The process that starts them. Close it at the end; what it started lives on."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from testbed.nursery import serve; serve()"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *words: str, log: Path, cwd: Path | None = None, stopped: bool = False) -> Started:
        """Start `fairlead WORDS` (in `cwd`); what it writes is appended to `log`. `stopped`: it waits for SIGCONT."""
        asked = self._ask(words=words, log=str(log), cwd=str(cwd or Path.cwd()), stopped=stopped)
        return Started(self, asked)

    def status(self, pid: int) -> int | None:
        """The exit status of a process that it started, or minus the signal that ended it; None: it lives."""
        status: int | None = self._ask(pid=pid)
        return status

    def close(self) -> None:
        self._process.communicate(timeout=50)

    def _ask(self, **question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process that starts the others has ended; see its own words above"
        return json.loads(answer)


class Started:
    """A process of the nursery, with the methods of `subprocess.Popen` that tests need."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.status(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.poll() is None:
            there = os.pidfd_open(self.pid)
            try:
                if not select.select([there], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            finally:
                os.close(there)
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def serve() -> None:
    """What the nursery's process does: a line of JSON in, a line out, until nobody asks any more."""
    import fairlead.cli.main
    import fairlead.service.serve

    for name in IMPORTED_LATER:
        importlib.import_module(name)
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if "pid" in asked:
            pid, status = os.waitpid(asked["pid"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                _begin(asked)
                if asked["stopped"]:
                    os.kill(os.getpid(), signal.SIGSTOP)
                fairlead.cli.main.run()
                return
        print(json.dumps(answer), flush=True)


def _begin(asked: dict[str, Any]) -> None:
    """Become what a new process would be: its own session, streams, directory and arguments."""
    os.setsid()
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, theirs)
    os.close(nothing)
    os.close(log)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.chdir(asked["cwd"])
    sys.argv = ["fairlead", *asked["words"]]
