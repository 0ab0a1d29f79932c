"""A service of any version of this project, from its tree: started, asked, killed.

Decides how versions differ in what a scenario says to them: `works` were to become `jobs`. Never decides what a
scenario expects.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.unix_socket import Unix

PATIENCE_S = 40.0
UP = """
import sys
from pathlib import Path
from fairlead.service import serve as served
given = dict(resources={"vcore": 64_000}, state_dir=Path(sys.argv[1]), socket=Path(sys.argv[2]), port=0)
if sys.argv[3:] == ["short"]:
    from fairlead.service import retention
    retention.LOOK_S = 1
    given["retention"] = retention.Retention(jobs_ms=0, journal_ms=0)
sys.exit(served.serve(served.ServeOptions(**given)))
"""
WITHOUT = ["unshare", "--mount", "sh", "-c", 'umount -l -R /sys/fs/cgroup; exec "$@"', "sh"]
"""Before a command: what it starts sees no control groups, as with a user who has none."""
Answer = tuple[int, Any]
GONE = (OSError, ValueError)
"""What asking raises where nobody answers: a time-out, a reset, a half answer."""


@dataclass
class Version:
    """A tree."""

    name: str
    tree: Path
    jobs: str
    """What it calls jobs in paths and bodies."""
    keeps_short: bool
    """Whether it can be told to keep little."""

    def python(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A script with its modules."""
        return subprocess.run(
            [sys.executable, "-c", script, *words], env=self.env, capture_output=True, text=True, check=True
        )

    def cores(self, count: float) -> dict[str, float]:
        """So much processor, as it counts that."""
        return {"cpu": count} if self.jobs == "jobs" else {"vcore": int(count * 1000)}

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.tree / "src"), "HOME": "/"}


@dataclass
class Service:
    """One that lives in a directory, over its starts."""

    version: Version
    directory: Path
    process: subprocess.Popen[bytes] | None = None
    kept: list[socket.socket] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def path(self) -> Path:
        return self.directory / "s"

    @property
    def log(self) -> str:
        file = self.directory / "log"
        return file.read_text() if file.exists() else ""

    # -- its life -----------------------------------------------------------------------------------------------

    def start(
        self, *, descriptors: tuple[int, int] | None = None, short: bool = False, control_groups: bool = True
    ) -> bool:
        """Start it; whether it answers. `descriptors`: its limits. `short`: it keeps what ended for no time.
        `control_groups`: it finds those of the machine, as root does.
        """

        def limit() -> None:
            if descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)

        words = [str(self.state), str(self.path), *(["short"] if short and self.version.keeps_short else [])]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*([] if control_groups or os.geteuid() else WITHOUT), sys.executable, "-c", UP, *words],
                env=self.version.env,
                cwd="/",
                stderr=log,
                preexec_fn=limit,
                start_new_session=True,
            )
        process = self.process
        return self.until(lambda: self.lives() or process.poll() is not None) and self.lives()

    def lives(self) -> bool:
        """Whether it answers."""
        with contextlib.suppress(*GONE):
            return self.ask("GET", "/info", wait_s=5)[0] == 200
        return False

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it; its jobs go on."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """Leave nothing of it."""
        for each in self.kept:
            each.close()
        if self.process is not None:
            self.kill()
        for _ in range(3):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Whatever has this directory in its command line or environment."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    about = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                    if str(self.directory).encode() in about:
                        found.append(int(entry.name))
        return found

    # -- talking to it ------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, wait_s: float = PATIENCE_S) -> Answer:
        """Status and answer over the Unix socket. Raises `GONE`."""
        connection = Unix(self.path, timeout=wait_s)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def submit(self, *jobs: dict[str, Any]) -> Answer:
        """Status, and the keys of these jobs or what was wrong."""
        word = self.version.jobs
        status, said = self.ask("POST", f"/{word}", {word: [{"cwd": "/"} | each for each in jobs]})
        return status, [each["key"] for each in said[word]] if status == 201 else said

    def shell(self, script: str, **more: Any) -> str:
        """The key of a job that runs this."""
        status, keys = self.submit({"command": ["/bin/sh", "-c", script], "resources": self.version.cores(0.1), **more})
        assert status == 201, keys
        key: str = keys[0]
        return key

    def job(self, key: str) -> dict[str, Any]:
        """Everything about a job."""
        status, found = self.ask("GET", f"/{self.version.jobs}/{key}")
        assert status == 200, found
        return dict(found)

    def state_of(self, key: str) -> str:
        return str(self.job(key)["state"])

    def cancel(self, key: str) -> int:
        """The status of the answer."""
        return self.ask("POST", f"/{self.version.jobs}/{key}/cancel", {})[0]

    def open_tcp(self, count: int) -> None:
        """So many connections over TCP that say nothing; where it takes no more, fewer."""
        for _ in range(count):
            one = socket.socket()
            one.settimeout(2)
            try:
                one.connect(("127.0.0.1", self.port))
            except OSError:
                one.close()
                return
            self.kept.append(one)

    def leave_tcp(self) -> None:
        """None of them is open any more."""
        while self.kept:
            self.kept.pop().close()

    @property
    def port(self) -> int:
        return int(re.findall(r"http://127\.0\.0\.1:(\d+)", self.log)[-1])

    @staticmethod
    def until(what: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
        """Whether it came about."""
        end = time.monotonic() + patience_s
        while not what():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def meanwhile(self, act: Callable[[], Any]) -> tuple[float, float]:
        """How long the longest of others' reads took while `act` did, and how long that did itself; in seconds."""
        over, longest = threading.Event(), 0.0

        def read() -> None:
            nonlocal longest
            while not over.is_set():
                began = time.monotonic()
                with contextlib.suppress(*GONE):
                    self.ask("GET", "/nodes")
                longest = max(longest, time.monotonic() - began)
                time.sleep(0.02)

        reading = threading.Thread(target=read)
        reading.start()
        began = time.monotonic()
        act()
        took = time.monotonic() - began
        over.set()
        reading.join()
        return longest, took
