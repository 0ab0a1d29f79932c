"""The demo's sample workload: what is submitted, when, and what it shows.

Decides the commands, their sizes and their order. Never submits. Invariant: it needs little of the machine (each
command sleeps most of the time) and asks for shares of a declared capacity, so that it goes the same
way on every machine.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CORES = 4
"""Cores that the demo declares, whatever the machine has."""
MEMORY = "8Gi"


@dataclass(frozen=True, slots=True)
class Scene:
    """What happens at one moment of the demo."""

    at_s: float
    says: str
    jobs: tuple[dict[str, Any], ...]


def _steps(name: str, steps: int) -> list[str]:
    """A command that prints a line a second, works a little, and stops politely when asked to."""
    program = f"""
    trap 'echo "{name}: asked to stop, saving what there is"; sleep 1; exit 143' TERM
    i=0
    while [ $i -lt {steps} ]; do
        i=$((i + 1)); echo "{name}: step $i of {steps}"
        j=0; while [ $j -lt 2000 ]; do j=$((j + 1)); done
        sleep 1 & wait $!
    done
    echo "{name}: done"
    """
    return ["sh", "-c", "\n".join(line.strip() for line in program.strip().splitlines())]


def _python(name: str, seconds: int) -> list[str]:
    """A Python program that computes in short bursts."""
    program = (
        f"import time\nfor i in range({seconds}):\n    t = time.process_time()\n"
        f"    while time.process_time() - t < 0.1:\n        sum(range(1000))\n"
        f"    print('{name}: epoch', i + 1, flush=True)\n    time.sleep(0.9)"
    )
    return [sys.executable, "-c", program]


def _job(name: str, queue: str, cpu: str, priority: int, command: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        "queue": queue,
        "cpu": cpu,
        "memory": "256Mi",
        "priority": priority,
        "grace": "3s",
        "command": list(command),
        "tags": {"demo": "yes"},
    }


def scenes() -> list[Scene]:
    """The whole story, in the order of time (about a minute)."""
    return [
        Scene(
            0.0,
            "A training run and two batch jobs fill the machine.",
            (
                _job("train", "root.research.team-a", "2", 10, _python("train", 16)),
                _job("nightly-report", "root.batch", "1", 0, _steps("nightly-report", 40)),
                _job("thumbnails", "root.batch", "1", 0, _steps("thumbnails", 40)),
            ),
        ),
        Scene(
            3.0,
            "One more batch work: it is no more important than the others, so it has to wait.",
            (_job("mail-digest", "root.batch", "1", 0, _steps("mail-digest", 10)),),
        ),
        Scene(
            7.0,
            "Somebody opens a notebook. It is more important, so the batch jobs have to make room.",
            (_job("notebook", "root.interactive", "2", 50, _steps("notebook", 15)),),
        ),
        Scene(
            11.0,
            "One asks for more than the whole machine has: it is told so.",
            (_job("too-large", "root.batch", str(CORES * 2), 0, _steps("too-large", 1)),),
        ),
        Scene(
            13.0,
            "One will fail: its exit status is kept.",
            (_job("broken", "root.batch", "0.5", 5, ["sh", "-c", "echo 'no such input' >&2; sleep 2; exit 3"]),),
        ),
    ]


def where_to_look(directory: str, socket: str, url: str, state: str) -> list[str]:
    """What to try next, as lines. `directory` is where the command is, if the shell would not find it by itself."""
    quoted = shlex.quote(socket)
    path = f" PATH={shlex.quote(directory)}:$PATH" if directory else ""
    return [
        "In another terminal:",
        f"  export FAIRLEAD_SOCKET={quoted}{path}",
        "  fairlead ls -a; fairlead why; fairlead queues; fairlead top",
        "  fairlead show KEY; fairlead logs KEY",
        "  fairlead submit --queue root.batch -- sleep 60",
        f"  curl --unix-socket {quoted} http://localhost/api/v1/jobs",
        f"Ctrl-C stops the demo and its jobs. Served at {url}; journal and logs in {state}.",
    ]
