"""What happens on a cluster, as it happens: the stream of events, and `fairlead top` on it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
import time
from typing import Any

import aiohttp
import pytest
from testbed.cluster_service import ClusterService, serving

from fairlead.service import history_events

pytestmark = pytest.mark.timeout(120)


class Listener:
    """Reads the stream."""

    def __init__(self, service: ClusterService, **headers: str) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.ids: list[tuple[int, int]] = []
        self.heard = asyncio.Event()
        self._task = asyncio.create_task(self._read(service.url + "/api/v1/events", headers))

    async def _read(self, url: str, headers: dict[str, str]) -> None:
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
            assert answer.content_type == "text/event-stream"
            kind = ""
            async for raw in answer.content:
                self.heard.set()
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    seq, index = value.split(".")
                    self.ids.append((int(seq), int(index)))
                elif name == "data":
                    self.events.append((kind, json.loads(value)))

    def of(self, key: str) -> list[str]:
        """What was said about a pod."""
        return [kind for kind, event in self.events if event.get("key") == key]

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_every_step_of_a_pod_is_told_once_and_by_its_name() -> None:
    """Came, placed, ended; a victim with whom it made room for; numbers grow."""
    async with serving(cpu="4") as service:
        listener = Listener(service)
        await asyncio.wait_for(listener.heard.wait(), 10)
        service.pod("low", "3", terminationGracePeriodSeconds=0)
        await service.until(lambda: service.node_of("low"), "a place")
        service.pod("high", "3", priority=1000)
        await service.until(lambda: service.node_of("high"), "its place")
        await service.ends("high")
        await service.until(lambda: "job.ended" in listener.of("default/high"), "its end")
        assert listener.of("default/low") == ["job.submitted", "job.allocated", "job.evicting", "job.ended"]
        about = listener.of("default/high")
        assert (about[0], about[-1]) == ("job.submitted", "job.ended")
        assert about.count("job.allocated") == 1
        evicting = next(event for kind, event in listener.events if kind == "job.evicting")
        assert (evicting["values"]["on_behalf_of"], evicting["values"]["node"]) == ("default/high", "n0")
        submitted = next(event for kind, event in listener.events if kind == "job.submitted")
        assert submitted["values"]["resources"]["cpu"] == 3
        assert listener.ids == sorted(set(listener.ids))
        await listener.stop()
        await service.until(lambda: not service.place.pod_history.readers, "his leave")


async def test_who_wants_to_go_on_learns_that_nothing_is_kept() -> None:
    """A gap says where to look instead; then the stream begins."""
    async with serving() as service:
        listener = Listener(service, **{"Last-Event-ID": "5.0"})
        await service.until(lambda: listener.events, "a word")
        assert listener.events[0][0] == "gap"
        assert "/ws/v1/events/batch" in listener.events[0][1]["values"]["why"]
        service.pod("one")
        await service.until(lambda: listener.of("default/one"), "the pod")
        await listener.stop()


async def test_streams_end_with_the_ship_and_are_not_endless_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is refused; a stop ends them all."""
    monkeypatch.setattr("fairlead.service.readers.MOST_READERS", 1)
    async with serving() as service:
        listener = Listener(service)
        await asyncio.wait_for(listener.heard.wait(), 10)
        refused = await service.get("/api/v1/events", status=429)
        assert "1 streams are open already" in refused["detail"]
        service.place.pod_history.readers.close()
        await asyncio.wait_for(asyncio.shield(listener._task), 10)


async def test_who_reads_too_slowly_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler does not wait for a reader, nor keep everything for him."""
    monkeypatch.setattr(history_events, "BEHIND", 2)
    async with serving() as service:
        listener = Listener(service)
        await asyncio.wait_for(listener.heard.wait(), 10)
        for number in range(5):
            service.pod(f"p{number}", "100m")
        await service.until(lambda: any(kind == "cut-off" for kind, _ in listener.events), "the end")
        await service.until(lambda: service.node_of("p4"), "a place all the same")
        await listener.stop()


async def test_top_prints_each_change_without_a_terminal() -> None:
    """From waiting to its end, by the events and not by looking every minute."""
    async with serving(cpu="4") as service:
        service.pod("first", "3")
        await service.until(lambda: service.node_of("first"), "a place")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fairlead.cli.main", "top", "--interval", "600",
            env={**os.environ, "FAIRLEAD_URL": service.url}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None

        async def line_with(text: str) -> str:
            assert process.stdout is not None
            while True:
                line = (await asyncio.wait_for(process.stdout.readline(), 15)).decode()
                if text in line:
                    return line

        assert "root.default" in await line_with("default/first")
        service.pod("second", "3")
        assert "waiting: " in await line_with("default/second")
        await service.ends("first")
        assert "succeeded after " in await line_with("default/first")
        assert "running on n0" in await line_with("default/second")
        process.terminate()
        await process.wait()


async def test_top_draws_in_a_terminal_and_leaves_it_as_it_was() -> None:
    """Queues, nodes and pods in one informer; q leaves."""
    async with serving(cpu="4") as service:
        service.pod("first", "3")
        await service.until(lambda: service.node_of("first"), "a place")
        service.pod("second", "3")
        master, slave = pty.openpty()
        environ = {**os.environ, "FAIRLEAD_URL": service.url, "TERM": "xterm", "COLUMNS": "110", "LINES": "30"}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fairlead.cli.main", "top", env=environ, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        seen = bytearray()

        def read() -> None:
            try:
                while piece := os.read(master, 65536):
                    seen.extend(piece)
            except OSError:
                return

        reading = asyncio.create_task(asyncio.to_thread(read))
        await service.until(lambda: b"default/first" in seen and b"default/second" in seen, "the informer")
        await service.ends("first")
        await service.until(lambda: b"succeeded" in seen, "the end of the first")
        os.write(master, b"q")
        began = time.monotonic()
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert time.monotonic() - began < 5
        await reading
        os.close(master)
        shown = seen.decode(errors="replace")
        assert "root.default" in shown
        assert "n0" in shown
        assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 1
