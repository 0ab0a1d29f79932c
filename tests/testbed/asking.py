"""Questions to a scheduler on a full cluster: how long each takes, and how long the scheduler stands still meanwhile.

Decides what is asked. A standstill is seen from outside: another connection asks the probe without a pause, and the
probe is answered by the very loop in which the scheduler has its turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp


@dataclass(frozen=True)
class Asked:
    """One question."""

    what: str
    took_ms: float
    size: int
    pause_ms: float
    """The longest time in which the probe was not answered."""


def questions(pod: str, node: str) -> Sequence[tuple[str, str, Any]]:
    """What is asked about a pod that waits, and everything else that goes over all pods and nodes."""
    return (
        ("nothing but the probe", "", None),
        ("top: what runs", "/api/v1/jobs?limit=300&state=running", None),
        ("top: what waits", "/api/v1/jobs?limit=300&state=waiting", None),
        ("top: nodes", "/api/v1/nodes", None),
        ("queues", "/api/v1/queues", None),
        ("metrics", "/metrics", None),
        ("why", f"/api/v1/jobs/{pod}/why", None),
        ("why --changes", f"/api/v1/jobs/{pod}/why?changes=true", None),
        ("whatif drain", "/api/v1/whatif", {"drain": [node]}),
        ("when", f"/api/v1/jobs/{pod}/forecast", None),
        ("YuniKorn's nodes", "/ws/v1/partition/default/nodes", None),
        ("YuniKorn's full state dump", "/debug/fullstatedump", None),
    )


async def ask(url: str, pod: str, node: str) -> list[Asked]:
    """Ask one after the other."""
    pauses: list[float] = []

    async def probe(session: aiohttp.ClientSession) -> None:
        while True:
            began = time.perf_counter()
            async with session.get(f"{url}/livez") as answer:
                await answer.read()
            pauses.append(time.perf_counter() - began)
            await asyncio.sleep(0.002)

    found = []
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        probing = asyncio.create_task(probe(session))
        for what, path, body in questions(pod, node):
            pauses.clear()
            began, size = time.perf_counter(), 0
            if path:
                size = await _one(session, url + path, body)
                took = time.perf_counter() - began
                await asyncio.sleep(0.05)
            else:
                await asyncio.sleep(1.0)
                took = 0.0
            found.append(Asked(what, took * 1000, size, max(pauses) * 1000))
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
    return found


async def _one(session: aiohttp.ClientSession, url: str, body: Any) -> int:
    async with session.request("POST" if body else "GET", url, json=body) as answer:
        size = len(await answer.read())
        if answer.status != 200:
            raise SystemExit(f"{url} was answered with {answer.status}")
        return size
