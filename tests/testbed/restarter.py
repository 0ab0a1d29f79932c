"""A control loop that is started anew whenever it was killed, on a fake server.

Decides nothing but that nobody says goodbye.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from testbed.fake_server import FakeServer

from fairlead.config import load_text
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import ControlLoop

CONFIG = """
partitions:
  - name: default
    preemption: {rule: priority}
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""


class Restarter:
    """Starts a control loop and starts it anew whenever it was killed."""

    def __init__(self, server: FakeServer, seed: int) -> None:
        self.server = server
        self.chance = random.Random(seed)
        self.control_loop: ControlLoop | None = None
        self.config = CONFIG
        self.task: asyncio.Task[None] | None = None

    def now_ms(self) -> int:
        """By the server's clock."""
        return self.server.now_ms()

    def start(self) -> None:
        client = Client(self.server)
        reports: list[Any] = []
        binder = Binder(
            client,
            lambda report: (
                self.control_loop.report(report) if self.control_loop is not None else reports.append(report)
            ),
            stamp=lambda: "2026-01-01T00:00:00.000000Z",
            chance=random.Random(self.chance.random()),
        )
        chance = random.Random(self.chance.random())
        self.control_loop = ControlLoop(client, binder, load_text(self.config), now_ms=self.now_ms, chance=chance)
        self.task = asyncio.create_task(self.control_loop.run())

    async def kill(self) -> None:
        """Nothing is said goodbye to: what is in flight may or may not have arrived."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
