"""A cluster's service that answers only once its scheduler is at work: nothing of before is lost."""

from __future__ import annotations

import asyncio
import time

import pytest
from testbed.fake_server import FakeServer

from fairlead.kubernetes.access import Access
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import Told
from fairlead.kubernetes.controller import Controller, ControllerOptions
from fairlead.service.kubernetes.place import ClusterPlace


@pytest.mark.parametrize("at_work", [True, False])
async def test_what_happened_before_it_answers_counts(*, at_work: bool) -> None:
    """Whether pods were bound before, or the cluster was still being read."""
    server = FakeServer()
    server.put("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}})
    server.put("namespaces", {"metadata": {"name": "default"}})
    controller = Controller(Access("http://127.0.0.1:1"), ControllerOptions())
    early: list[Told] = []
    controller.when_rebuilt = lambda control_loop: control_loop.listeners.append(early.append)
    scheduling = asyncio.create_task(controller._control_loop(Client(server)))

    async def bound() -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": "fairlead", "containers": [container]}
        named = {"name": "p", "namespace": "default", "uid": "u"}
        server.put("pods", {"metadata": named, "spec": spec, "status": {"phase": "Pending"}})
        end = time.monotonic() + 50
        while not ((server.one("pods", "p") or {}).get("spec") or {}).get("nodeName"):
            assert time.monotonic() < end
            await asyncio.sleep(0.02)

    try:
        if at_work:
            await bound()
            assert early
        while controller.control_loop is None:
            await asyncio.sleep(0)
        assert controller.control_loop.ready == at_work
        place = ClusterPlace(controller=controller, version="test", started_at_ms=0)
        place.catch_up(early)
        if not at_work:
            await bound()
        end = time.monotonic() + 50
        while not (place.history_records.ring.told and place.pod_history.seq):
            assert time.monotonic() < end
            await asyncio.sleep(0.02)
    finally:
        scheduling.cancel()
        await asyncio.gather(scheduling, return_exceptions=True)
