"""A service for measurements of pages: its queues, journal and HTTP are real, its nodes and runs are made up.

    python -m benchmarks.made_up DIRECTORY NODES ASKS

Decides how large it is. Never starts a process of a job. Invariant: whatever is asked of it over HTTP goes the way that
it goes in a real one. It says in a line of JSON where it is; then each line that it reads is answered with the
processor time that it used so far, in seconds, and its memory in bytes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fairlead.core.model.events import AddNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec
from fairlead.local.runs import RunReport, RunSpec
from fairlead.local.user_bounds import UserBounds
from fairlead.runtime import Turn
from fairlead.service.serve import Listening, ServeOptions, answer, bring_up

AT_ONCE = 2_000
QUEUES = ("root.interactive", "root.research.team-a", "root.research.team-b", "root.batch", "root.default")
# Nothing is stopped for others: made-up runs would not stop.
CONFIG = """\
partitions:
  - name: default
    preemption: {enabled: false}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: interactive, properties: {priority.offset: "100"}}
          - name: research
            properties: {priority.fence: "true", priority.offset: "10"}
            queues: [{name: team-a}, {name: team-b}]
          - {name: batch, properties: {priority.offset: "-10"}}
          - {name: default}
"""
GIB = 2**30


def _made_up(run: RunSpec) -> RunReport:
    return RunReport(key=run.key, pid=4711, started_at_ms=time.time_ns() // 1_000_000)


def _nodes(turn: Turn, begin: int, end: int) -> None:
    for number in range(begin, end):
        capacity = Resources({"vcore": 16_000, "memory": 64 * GIB, "gpu": 4 if number % 10 == 0 else 0})
        attributes = {"rack": f"r{number // 40}"}
        turn.event(AddNode(NodeSpec(id=f"node-{number:04}", capacity=capacity, attributes=attributes)))


def drafts(begin: int, end: int) -> list[dict[str, Any]]:
    """Jobs of five queues and some sizes."""
    return [
        {
            "command": ["/bin/true"],
            "cwd": "/",
            "name": f"{('train', 'render', 'index', 'fold')[number % 4]}-{number // 4}",
            "queue": QUEUES[number % 5],
            "priority": number % 7,
            "resources": {"cpu": 1 + number % 6, "memory": (1 + number % 9) * GIB},
            "time_limit_ms": 3_600_000 * (1 + number % 12),
        }
        for number in range(begin, end)
    ]


def main() -> None:
    """Serve until standard input ends."""
    directory, nodes, asks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    (directory / "queues.yaml").write_text(CONFIG)
    with ExitStack() as stack:
        options = ServeOptions(
            config=directory / "queues.yaml",
            state_dir=directory / "state",
            socket=directory / "s",
            port=0,
            pages_port=0,
            resources={"vcore": 16_000, "memory": 64 * GIB},
            memory_pressure="off",
            handle_signals=False,
            log_level="error",
            user_bounds=UserBounds(jobs=1_000_000, environment=2**40, submissions=1_000_000),
            on_ready=lambda listening: _fill(listening, place, nodes, asks),
        )
        place, sockets = bring_up(options, stack)
        place.local.machine.start = _made_up  # type: ignore[method-assign]
        asyncio.run(answer(options, place, sockets))


def _fill(listening: Listening, place: Any, nodes: int, asks: int) -> None:
    """Beside the loop that answers."""

    def fill() -> None:
        from fairlead.client import Client
        from fairlead.client.address import Address

        for begin in range(1, nodes, 500):
            place.runtime.do(lambda turn, begin=begin: _nodes(turn, begin, min(nodes, begin + 500))).result(60)
        client = Client(Address(socket=str(listening.socket)), timeout_s=300)
        for begin in range(0, asks, AT_ONCE):
            client.submit(drafts(begin, min(asks, begin + AT_ONCE)))
        print(json.dumps({"socket": str(listening.socket), "pages": place.pages.url, "pid": os.getpid()}), flush=True)
        for _ in sys.stdin:
            memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            print(json.dumps({"cpu_s": time.process_time(), "memory": memory}), flush=True)
        listening.stop()

    threading.Thread(target=fill, daemon=True).start()


if __name__ == "__main__":
    main()
