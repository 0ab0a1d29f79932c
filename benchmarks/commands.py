"""What a command costs, and what a full service costs those who look at it.

Decides what is measured: the processor time of `ls`, `show` and `submit` as processes of their own beside `python -c
pass`, 200 submissions from a shell loop, and how long another reader waits while 5,000 jobs come in one request. Never
compares with another program. Invariant: all of it is asked of a real service, which is started for it and ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from fairlead.client import Address, Client, ClientError
from fairlead.sim.bench import print_rows

NAME = "commands"
CPU_MAX_MS = 80.0
LOOP_MAX_S = 20.0
READ_MAX_MS = 100.0
RUNS = 7
"""Of each command in a round; the median counts."""
SUBMISSIONS = 200
AT_ONCE = 5_000
_START_S = 60.0
_COMMAND = Path(sys.executable).with_name("fairlead")


@contextmanager
def service() -> Iterator[Client]:
    """A service of two declared cores, in a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        socket = f"{directory}/s.sock"
        words = ["up", "--state", f"{directory}/state", "--socket", socket, "--no-tcp", "--resource", "cpu=2"]
        with (Path(directory) / "log").open("wb") as log, subprocess.Popen([_COMMAND, *words], stderr=log) as process:
            try:
                client = Client(Address(socket=socket))
                _wait_for(client)
                yield client
            finally:
                process.terminate()


def _wait_for(client: Client) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            client.service()
            return
        except ClientError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def cpu_ms(words: Sequence[str | Path], environ: dict[str, str]) -> float:
    """The processor time of one process, its own start included."""
    process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{words} ended with {process.returncode}")
    return 1000 * (used.ru_utime + used.ru_stime)


def rows(rounds: int) -> Iterator[tuple[dict[str, Any], str]]:
    """A row for each command, for the loop, and for the reads, as values and as a line."""
    with service() as client:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "PYTHON"))}
        environ["FAIRLEAD_SOCKET"] = client.address.socket
        waits = {"command": ["true"], "cwd": "/", "resources": {"licence": 1}}
        key = client.submit([waits] * 20).jobs[-1].key
        bare = [sys.executable, "-c", "pass"]
        known: dict[str, list[str | Path]] = {
            "ls": [_COMMAND, "ls"],
            "show": [_COMMAND, "show", key],
            "submit": [_COMMAND, "submit", "--resource", "licence=1", "--", "true"],
        }
        least = median(cpu_ms(bare, environ) for _ in range(RUNS * rounds))
        for name, words in known.items():
            yield _command(name, median(cpu_ms(words, environ) for _ in range(RUNS * rounds)), least)
        yield _loop(environ)
        yield _reads(client, environ)


def _command(name: str, took: float, least: float) -> tuple[dict[str, Any], str]:
    row = {"name": f"{NAME}: {name}", "cpu_ms": round(took, 1), "python_ms": round(least, 1)}
    row |= {"limit_ms": CPU_MAX_MS, "within": took <= CPU_MAX_MS}
    line = f"{name:8} {took:5.0f} ms of CPU, {took / least:.1f} times `python -c pass` ({least:.0f} ms)"
    return row, f"{line}; limit {CPU_MAX_MS:.0f}"


def _loop(environ: dict[str, str]) -> tuple[dict[str, Any], str]:
    words = (
        f"for i in $(seq {SUBMISSIONS}); do '{_COMMAND}' submit --quiet --resource licence=1 -- true || exit 1; done"
    )
    began = time.monotonic()
    subprocess.run(["/bin/sh", "-c", words], env=environ, check=True)
    took = time.monotonic() - began
    row = {"name": f"{NAME}: {SUBMISSIONS} submissions in a loop", "seconds": round(took, 1)}
    line = f"loop     {SUBMISSIONS} submissions one after the other in {took:.1f} s; limit {LOOP_MAX_S:.0f}"
    return row | {"limit_s": LOOP_MAX_S, "within": took <= LOOP_MAX_S}, line


def _reads(client: Client, environ: dict[str, str]) -> tuple[dict[str, Any], str]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        job = {"command": ["true"], "cwd": "/", "resources": {"licence": 1}}
        file.writelines(f"{json.dumps(job)}\n" for _ in range(AT_ONCE))
        file.flush()
        took = list[float]()
        with subprocess.Popen([_COMMAND, "submit", "--quiet", "--file", file.name], env=environ) as submitting:
            while submitting.poll() is None:
                began = time.monotonic()
                list(client.jobs(limit=20))
                took.append(1000 * (time.monotonic() - began))
    took.sort()
    half, worst = median(took), took[-1]
    row = {"name": f"{NAME}: a read while {AT_ONCE} jobs come", "reads": len(took), "p50_ms": round(half, 1)}
    line = f"reads    half within {half:.1f} ms, all {len(took)} within {worst:.0f} ms while {AT_ONCE:,} jobs come"
    return row | {"max_ms": round(worst, 1), "limit_ms": READ_MAX_MS, "within": worst <= READ_MAX_MS}, (
        f"{line} in one request; limit {READ_MAX_MS:.0f}"
    )


if __name__ == "__main__":
    print_rows(rows(1), sys.stdout, as_json="--json" in sys.argv)
