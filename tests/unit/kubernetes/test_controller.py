"""The first word to an API server: one that is away is waited for, one that does not know us ends the start."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from testbed.fake_server import FakeServer
from testbed.virtual_time import run_virtually

from fairlead.config import ConfigurationError
from fairlead.kubernetes import controller as controller_module
from fairlead.kubernetes.access import Access, AccessError
from fairlead.kubernetes.client import Answer, Client, Request, Unreachable
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.controller import Controller, ControllerOptions, UnknownCaller
from fairlead.kubernetes.queue_file import QueueFile
from fairlead.kubernetes.translate.queues import with_queues


class Server:
    """Answers with these statuses in turn; 0 is no answer."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)

    async def send(self, request: Request, timeout_s: float) -> Answer:
        assert request.path == "/version"
        status = self.statuses.pop(0)
        if not status:
            raise Unreachable("no answer from https://away: Connection refused")
        return Answer(status, {}, b"{}")

    def stream(self, request: Request, idle_s: float) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        return


def controller() -> Controller:
    return Controller(Access("https://away", source="context 'a' of FILE"), ControllerOptions())


async def test_one_that_is_away_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and again after a while; not for each kind of object and each try."""
    monkeypatch.setattr(controller_module, "MEET_S", 0)
    server = Server(*[0] * 10, 503, *[0] * 5, 200)
    with caplog.at_level(logging.WARNING):
        await controller()._meet(Client(server))
    assert not server.statuses
    assert len(caplog.records) == 2
    assert "Connection refused; trying on until it answers" in caplog.text


async def test_one_that_does_not_know_us_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the file that the credentials are from."""
    monkeypatch.setattr(controller_module, "MEET_S", 0)
    with pytest.raises(UnknownCaller, match=r"does not know these credentials .context 'a' of FILE.: the token or"):
        await controller()._meet(Client(Server(0, 401)))


async def test_who_may_not_ask_for_the_version_goes_on() -> None:
    """That is no right which the scheduler needs."""
    await controller()._meet(Client(Server(403)))


async def test_why_there_is_no_answer_is_said_in_a_few_words() -> None:
    """The system's word for it, and what is wrong with a token that cannot be read any more."""
    connection = Connection(Access("http://127.0.0.1:1"))
    with pytest.raises(Unreachable) as refused:
        await connection.send(Request("GET", "/version", {}), 5)
    assert str(refused.value) == "no answer from http://127.0.0.1:1 to GET /version: Connection refused"
    await connection.close()

    def no_token() -> str:
        raise AccessError("the token cannot be read: gone")

    connection = Connection(Access("http://127.0.0.1:1", token=no_token))
    with pytest.raises(Unreachable, match="the token cannot be read: gone"):
        await connection.send(Request("GET", "/version", {}), 5)
    await connection.close()


async def test_a_queue_file_without_the_partition_of_the_cluster_ends_the_start(tmp_path: Path) -> None:
    """With the place of the name; nothing would ever be scheduled."""
    file = tmp_path / "q.yaml"
    file.write_text("partitions:\n  - name: gpu\n    queues: [{name: root}]\n")
    with pytest.raises(ConfigurationError, match=r"q.yaml:2:11: partitions.0..name: no partition is named default, "):
        await QueueFile(Client(FakeServer()), path=file).first()


def test_its_pod_shows_which_process_schedules(caplog: pytest.LogCaptureFixture) -> None:
    """By the part of the pod that it may write. What fails is tried again: else nobody would find it for ever."""
    sent: list[tuple[str, bytes | None]] = []

    class Labels(Server):
        async def send(self, request: Request, timeout_s: float) -> Answer:
            sent.append((request.path, request.body))
            return Answer(self.statuses.pop(0), {}, b"{}")

    async def course() -> None:
        server = Labels(200, 429, 500, 200)
        one = Controller(Access("https://away"), ControllerOptions(pod="fairlead/fairlead-0"))
        running = asyncio.create_task(one._show_role(Client(server)))
        await asyncio.sleep(10)
        one._role = controller_module.LEADER
        await asyncio.sleep(10)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert not server.statuses
        await Controller(Access("https://away"), ControllerOptions())._show_role(Client(server))

    run_virtually(course())
    assert {path for path, _ in sent} == {"/api/v1/namespaces/fairlead/pods/fairlead-0/status"}
    said = [b'{"metadata":{"labels":{"fairlead.io/role":"%s"}}}' % role for role in (b"standby", *[b"leader"] * 3)]
    assert [body for _, body in sent] == said
    assert len(caplog.records) == 1


def test_a_fault_in_taking_a_queue_file_is_said_and_the_next_file_is_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pods are scheduled by the queues of before meanwhile."""
    file = "partitions:\n  - name: default\n    queues: [{name: root, queues: [{name: lab}]}]\n"
    faulty, later = file.replace("lab", "faulty"), file.replace("lab", "later")

    def failing(text: str, *rest: Any) -> Any:
        if text == faulty:
            raise RuntimeError("not foreseen")
        return with_queues(text, *rest)

    monkeypatch.setattr("fairlead.kubernetes.queue_file.with_queues", failing)

    def put(server: FakeServer, text: str) -> None:
        server.put("configmaps", {"metadata": {"name": "q", "namespace": "n"}, "data": {"queues.yaml": text}})

    async def course() -> None:
        server = FakeServer()
        put(server, file)
        one = Controller(Access("https://away"), ControllerOptions(config_map="n/q"))
        running = asyncio.create_task(one._control_loop(Client(server)))
        await asyncio.sleep(10)
        put(server, faulty)
        await asyncio.sleep(5)
        assert one.queue_file is not None
        assert "RuntimeError: not foreseen" in one.queue_file.error
        assert "the queue file: a fault" in caplog.text
        assert one.ready
        put(server, later)
        await asyncio.sleep(3 * controller_module.ANEW_S)
        assert one.control_loop is not None
        root = one.control_loop.driver.scheduler.cluster.partitions["default"].root
        assert "later" in root.children
        assert not one.queue_file.problems()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtually(course())
