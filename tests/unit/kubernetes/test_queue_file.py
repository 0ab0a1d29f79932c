"""The queue file in force: what is noticed of a ConfigMap, a file and objects, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from testbed.fake_server import FakeServer
from testbed.faults import Fault, Faults
from testbed.virtual_time import run_virtually

from fairlead.config import check_text, load_text
from fairlead.core.model.events import AddApplication, RemoveApplication
from fairlead.core.model.specs import ApplicationSpec
from fairlead.kubernetes import queue_file
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.kinds import QUEUES
from fairlead.kubernetes.queue_file import QueueFile

FILE = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: lab}]}]
"""
LATER = FILE.replace("{name: lab}", "{name: lab}, {name: later}")
WRONG = FILE.replace("[{name: lab}]", "7")


class Books:
    """What a control loop does with orders, at once."""

    ready = True

    def __init__(self) -> None:
        self.driver = Driver(load_text(FILE))

    def order(self, act: Callable[[Driver, int], None]) -> None:
        act(self.driver, 0)

    @property
    def queues(self) -> list[str]:
        return sorted(self.driver.scheduler.cluster.partitions["default"].root.children)


def config_map(text: str) -> dict[str, Any]:
    return {"metadata": {"name": "queues", "namespace": "fairlead"}, "data": {"queues.yaml": text}}


def an_object(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": "root"}}


def served(
    during: Callable[[QueueFile, Books, FakeServer], Awaitable[None]],
    *,
    faults: Faults | None = None,
    objects: bool = False,
    path: Path | None = None,
) -> None:
    """Watch for as long as `during` takes."""

    async def course() -> None:
        server, books = FakeServer(faults), Books()
        if objects:
            server.extensions.append(QUEUES.group_version)
        server.put("configmaps", config_map(FILE))
        file = QueueFile(Client(server), "" if path else "fairlead/queues", path)
        await file.first()
        watching = asyncio.create_task(file.watch(books))  # type: ignore[arg-type]
        await asyncio.sleep(1)
        await during(file, books, server)
        assert not watching.done()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    run_virtually(course())


@pytest.mark.parametrize("fault", [Fault(lost="before"), Fault(status=500), Fault(status=403)])
def test_a_server_that_does_not_say_what_it_has_keeps_no_change_of_the_file_from_being_taken(fault: Fault) -> None:
    """It is asked for queues as objects again and again; one that fails once is asked once more."""

    class Failing(Faults):
        fails = False

        def for_request(self, method: str, path: str) -> Fault:
            return fault if self.fails and path == "/apis" else Fault()

    faults = Failing()

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        faults.fails = True
        await asyncio.sleep(2 * queue_file.SERVED_S)
        faults.fails = False
        server.put("configmaps", config_map(LATER))
        await asyncio.sleep(5)
        assert books.queues == ["lab", "later"]
        server.extensions.append(QUEUES.group_version)
        server.put("queues", an_object("team"))
        await asyncio.sleep(2 * queue_file.SERVED_S)
        assert books.queues == ["lab", "later", "team"]
        assert not file.error

    served(during, faults=faults)


@pytest.mark.parametrize("plural", ["configmaps", "queues"])
def test_a_file_or_objects_that_we_may_not_watch_are_said(plural: str) -> None:
    """No change of them counted, and whoever asked heard that all is well."""

    class Forbidding(Faults):
        forbids = False

        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=403) if self.forbids and path.endswith(f"/{plural}") else Fault()

    faults = Forbidding()

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        assert file.problems() == []
        faults.forbids = True
        await asyncio.sleep(1200)
        (said,) = file.problems()
        assert "cannot be watched, and what was known of them counts: 403" in said
        faults.forbids = False
        await asyncio.sleep(60)
        assert file.problems() == []

    served(during, faults=faults, objects=True)


@pytest.mark.parametrize("path", ["/configmaps/", "/apis", "/queues"])
@pytest.mark.parametrize("fault", [Fault(lost="before"), Fault(status=503), Fault(status=429, retry_after=7)])
def test_a_server_that_fails_for_a_moment_does_not_end_what_begins(path: str, fault: Fault) -> None:
    """Whoever begins to lead often does so while the server has its troubles."""

    class Failing(Faults):
        times = 3

        def for_request(self, method: str, asked: str) -> Fault:
            if path not in asked or not self.times:
                return Fault()
            self.times -= 1
            return fault

    async def course() -> None:
        server = FakeServer(Failing())
        server.extensions.append(QUEUES.group_version)
        server.put("configmaps", config_map(FILE))
        server.put("queues", an_object("team"))
        began = asyncio.get_running_loop().time()
        spec = await QueueFile(Client(server), "fairlead/queues").first()
        assert [queue.name for queue in spec.partitions[0].root.queues] == ["lab", "team"]
        assert asyncio.get_running_loop().time() - began >= 3 * (fault.retry_after or queue_file.FIRST_S)

    run_virtually(course())


def test_an_object_that_goes_while_nobody_watches_is_no_queue_any_more() -> None:
    """Between what one begins with and the first list, or while what looks after the queues begins anew."""

    async def course() -> None:
        server, books = FakeServer(), Books()
        server.extensions.append(QUEUES.group_version)
        server.put("configmaps", config_map(FILE))
        for name in ("stays", "team"):
            server.put("queues", an_object(name))
        file = QueueFile(Client(server), "fairlead/queues")
        books.driver = Driver(await file.first())
        assert books.queues == ["lab", "stays", "team"]
        server.remove("queues", "team")
        watching = asyncio.create_task(file.watch(books))  # type: ignore[arg-type]
        await asyncio.sleep(2)
        assert list(file.objects) == ["stays"]
        books.driver.schedule(60_000)
        assert books.queues == ["lab", "stays"]
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    run_virtually(course())


def test_a_file_that_cannot_be_read_for_a_while_is_taken_when_it_can(tmp_path: Path) -> None:
    """That it cannot be read is said, and changes nothing."""
    path = tmp_path / "queues.yaml"
    path.write_text(FILE)

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        path.write_bytes(b"# \xff\n")
        await asyncio.sleep(2 * queue_file.FILE_S)
        assert "no valid UTF-8" in file.error
        assert books.queues == ["lab"]
        path.write_text(LATER)
        await asyncio.sleep(2 * queue_file.FILE_S)
        assert (books.queues, file.error) == (["lab", "later"], "")

    served(during, path=path)


def test_a_wrong_file_is_said_to_be_wrong_until_there_is_a_right_one() -> None:
    """Queues that are objects come and go meanwhile, beside the file before."""

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        server.put("configmaps", config_map(WRONG))
        await asyncio.sleep(2)
        said = file.error
        assert "queues" in said
        server.put("queues", an_object("team"))
        await asyncio.sleep(2)
        assert (books.queues, file.error) == (["lab", "team"], said)
        server.put("configmaps", config_map(LATER))
        await asyncio.sleep(2)
        assert (books.queues, file.error) == (["lab", "later", "team"], "")

    served(during, objects=True)


def test_what_is_odd_in_a_file_is_said_once_for_each_file(caplog: pytest.LogCaptureFixture) -> None:
    """A maximum of `cpu` bounds nobody: pods use `vcore`. Without a webhook nothing else says so."""
    odd = FILE.replace("{name: lab}", "{name: lab, resources: {max: {cpu: 2}}}")

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        for text in (odd, odd.replace("lab", "later")):
            server.put("configmaps", config_map(text))
            await asyncio.sleep(1)
            assert not file.error

    served(during)
    said = [record.getMessage().partition("cpu: ")[2] for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["warning: nothing asks for a resource named cpu; did you mean vcore?"] * 2


def test_an_object_that_comes_just_before_a_wrong_file_is_taken() -> None:
    """It does not wait for the next one."""

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        server.put("queues", an_object("team"))
        await asyncio.sleep(queue_file.TOGETHER_S / 4)
        server.put("configmaps", config_map(WRONG))
        await asyncio.sleep(2)
        assert books.queues == ["lab", "team"]
        assert file.error

    served(during, objects=True)


def test_a_file_that_what_runs_keeps_out_keeps_no_object_out() -> None:
    """It is offered again, and counts when it can be."""

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        books.driver.handle(AddApplication(ApplicationSpec(id="app", queue="root.lab")), 0)
        server.put("configmaps", config_map(FILE.replace("{name: lab}", "{name: lab, queues: [{name: a}]}")))
        await asyncio.sleep(2)
        said = file.error
        assert "root.lab would become a parent" in said
        server.put("queues", an_object("team"))
        await asyncio.sleep(2)
        assert (books.queues, file.error) == (["lab", "team"], said)
        books.driver.handle(RemoveApplication("app"), 0)
        await asyncio.sleep(2 * queue_file.AGAIN_S)
        lab = books.driver.scheduler.cluster.partitions["default"].root.children["lab"]
        assert (list(lab.children), books.queues, file.error) == (["a"], ["lab", "team"], "")

    served(during, objects=True)


@pytest.mark.parametrize("odd", [LATER + "---\n", LATER.replace("default\n", "default\t# the only one\n")])
def test_any_file_that_the_checks_take_is_taken(odd: str) -> None:
    """One with an end of its document or a tab before a comment, too; at a start as well, and beside objects."""
    assert not [problem for problem in check_text(odd) if problem.severity == "error"]

    async def during(file: QueueFile, books: Books, server: FakeServer) -> None:
        server.put("configmaps", config_map(odd))
        await asyncio.sleep(2)
        assert (books.queues, file.error) == (["lab", "later"], "")
        server.put("queues", an_object("team"))
        await asyncio.sleep(2)
        assert (books.queues, file.error) == (["lab", "later", "team"], "")
        spec = await QueueFile(Client(server), "fairlead/queues").first()
        assert [queue.name for queue in spec.partitions[0].root.queues] == ["lab", "later", "team"]

    served(during, objects=True)
