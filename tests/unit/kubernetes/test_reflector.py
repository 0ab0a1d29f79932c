"""The reflector against a server that behaves, and one that does not."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from testbed.fake_server import FakeServer
from testbed.faults import Fault, Faults, SeededFaults
from testbed.virtual_time import run_virtually

from fairlead.kubernetes import reflector
from fairlead.kubernetes.client import Client, ListMetadata, Page, Request
from fairlead.kubernetes.kinds import PODS
from fairlead.kubernetes.reflector import Change, Changed, Deleted, Reflector, Synced, lines_of


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }


class Seen:
    """What a reflector told, and the state that follows from it."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.state: dict[str, str] = {}

    def __call__(self, change: Change) -> None:
        self.changes.append(change)
        if isinstance(change, Changed):
            meta = change.object.metadata
            assert self.state.get(meta.name, meta.uid) == meta.uid, "an object was replaced without a word"
            self.state[meta.name] = meta.uid
            self.labels = dict(meta.labels or {})
        elif isinstance(change, Deleted):
            assert self.state.pop(change.name) == change.uid


def told(server: FakeServer, script: Callable[[FakeServer, Reflector], Coroutine[Any, Any, None]]) -> Seen:
    """Run a script beside a reflector of pods."""
    seen = Seen()

    async def main() -> None:
        watcher = Reflector(Client(server), PODS, seen, chance=random.Random(1))
        running = asyncio.create_task(watcher.run())
        await script(server, watcher)
        assert not running.done() or running.exception() is None
        running.cancel()

    run_virtually(main())
    return seen


def names(server: FakeServer) -> dict[str, str]:
    return {thing["metadata"]["name"]: thing["metadata"]["uid"] for thing in server.all("pods")}


def test_first_state_and_changes_are_told_once() -> None:
    """Rule 1: by pages; then what changes."""
    server = FakeServer()
    for number in range(1_203):
        server.put("pods", pod(f"p{number:04}"))

    async def script(server: FakeServer, watcher: Reflector) -> None:
        await asyncio.sleep(5)
        server.put("pods", pod("new"))
        server.remove("pods", "p0007", "default")
        await asyncio.sleep(5)
        assert watcher.lists == 1

    seen = told(server, script)
    assert seen.state == names(server)
    assert sum(isinstance(c, Changed) for c in seen.changes) == 1_204
    assert [type(c) for c in seen.changes[1_203:]] == [Synced, Changed, Deleted]


def test_bookmarks_and_errors_are_read_by_their_type() -> None:
    """Rule 2: a bookmark carries an object without a body, an error a status whose `status` is a text."""
    server = FakeServer()

    async def script(server: FakeServer, watcher: Reflector) -> None:
        server.put("pods", pod("a"))
        await asyncio.sleep(700)
        server.compact()
        server.put("pods", pod("b"))
        await asyncio.sleep(700)
        assert watcher.failures == 0

    assert told(server, script).state == names(server)


def test_deleted_while_nobody_watched() -> None:
    """Rule 4: after `too old`, what is missing from the new list is told as deleted."""
    server = FakeServer()
    for name in "ab":
        server.put("pods", pod(name))

    async def script(server: FakeServer, watcher: Reflector) -> None:
        await asyncio.sleep(1)
        down = asyncio.create_task(server.restart(3))
        await asyncio.sleep(1)
        server.remove("pods", "a", "default")
        server.remove("pods", "b", "default")
        server.put("pods", pod("b"))
        await down
        await asyncio.sleep(20)
        assert watcher.lists == 2

    seen = told(server, script)
    assert seen.state == names(server)
    assert [c.name for c in seen.changes if isinstance(c, Deleted)] == ["b", "a"] or len(seen.changes) > 4


def test_watch_that_closes_at_once_is_taken_for_stale() -> None:
    """Rule 4: some servers close a watch on a version that is gone without saying so."""

    class Mute(FakeServer):
        def stream(self, request: Request, idle_s: float) -> Any:
            if int(request.query["resourceVersion"]) < self.version:
                request = Request("GET", "/api/v1/none", {**request.query, "timeoutSeconds": "0"})
            return super().stream(request, idle_s)

    server = Mute()
    server.put("pods", pod("a"))

    async def script(server: FakeServer, watcher: Reflector) -> None:
        await asyncio.sleep(1)
        await server.restart(0.1)
        server.put("pods", pod("b"))
        await asyncio.sleep(60)
        assert watcher.lists >= 2

    assert told(server, script).state == names(server)


def test_a_sick_server_is_not_hammered() -> None:
    """Rule 6: failures are followed by waits that grow to half a minute."""

    class Sick(Faults):
        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=503)

    server = FakeServer(Sick())

    async def script(server: FakeServer, watcher: Reflector) -> None:
        await asyncio.sleep(600)
        assert watcher.failures > 10

    told(server, script)
    assert server.requests < 60


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_to_be_left_alone_is_left_alone(status: int) -> None:
    """It has too much to do, or will be there again, and says for how long."""

    class Busy(Faults):
        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=status, retry_after=100)

    server = FakeServer(Busy())

    async def script(server: FakeServer, watcher: Reflector) -> None:
        await asyncio.sleep(250)

    told(server, script)
    assert server.requests == 3


def test_permanent_too_old_is_not_hammered() -> None:
    """A server that calls every version too old is asked ever more rarely, too."""

    class Forgetful(FakeServer):
        def stream(self, request: Request, idle_s: float) -> Any:
            self.version += 1
            self.compact()
            return super().stream(request, idle_s)

    server = Forgetful()
    server.put("pods", pod("a"))

    async def script(server: FakeServer, watcher: Reflector) -> None:
        await asyncio.sleep(600)

    told(server, script)
    assert server.requests < 1_000


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_the_state_is_right_in_the_end(seed: int) -> None:
    """Refusals, lost answers, repeated and reordered lines, restarts: once it is calm, all is known, no ghost left."""
    faults = SeededFaults(seed, 0.2)
    server = FakeServer(faults)
    chance = random.Random(seed)

    async def script(server: FakeServer, watcher: Reflector) -> None:
        for _ in range(120):
            name = f"p{chance.randrange(12)}"
            act = chance.random()
            if act < 0.35:
                server.remove("pods", name, "default")
            elif act < 0.38:
                await server.restart(chance.uniform(0, 3))
            elif act < 0.40:
                server.compact()
            else:
                server.put("pods", pod(name, round=str(chance.randrange(9))))
            await asyncio.sleep(chance.choice([0, 0.001, 0.1, 2]))
        faults.calm = True
        await asyncio.sleep(900)

    assert told(server, script).state == names(server)


def test_an_object_that_cannot_be_read_keeps_no_other_one_from_being_told() -> None:
    """In a list and in a watch; what was told of it before counts on, and its end is told."""
    server = FakeServer()
    odd = {**pod("odd"), "spec": {"containers": "none"}}
    server.put("pods", odd)
    server.put("pods", pod("a"))

    async def script(server: FakeServer, watcher: Reflector) -> None:
        await asyncio.sleep(5)
        assert (seen_names(watcher), list(watcher.unread)) == (["a"], [("default", "odd")])
        server.put("pods", {**pod("a"), "spec": {"priority": "high"}})
        server.put("pods", pod("b"))
        await asyncio.sleep(5)
        assert seen_names(watcher) == ["a", "b"]
        assert sorted(name for _, name in watcher.unread) == ["a", "odd"]
        assert "priority" in watcher.unread["default", "a"]
        server.put("pods", pod("odd"))
        server.remove("pods", "a", "default")
        await asyncio.sleep(5)
        assert (seen_names(watcher), watcher.unread) == (["b", "odd"], {})
        server.put("pods", odd)
        server.remove("pods", "odd", "default")
        server.put("pods", odd)
        await asyncio.sleep(5)
        assert (seen_names(watcher), list(watcher.unread)) == (["b"], [("default", "odd")])
        assert watcher.failures == 0

    def seen_names(watcher: Reflector) -> list[str]:
        return sorted(watcher._sink.state)  # type: ignore[attr-defined]

    assert sorted(told(server, script).state) == ["b"]


async def test_what_was_deleted_and_is_listed_again_is_followed() -> None:
    """The server was set back to before the deletion: the object has its identity of before, and changes are told."""

    def line(kind: str, version: int, label: str) -> bytes:
        return json.dumps({"type": kind, "object": the_pod(version, label)}).encode()

    def the_pod(version: int, label: str) -> dict[str, Any]:
        found = pod("a", l=label)
        found["metadata"] |= {"uid": "u", "resourceVersion": str(version)}
        return found

    class Listed:
        async def page(self, *asked: Any) -> Page:
            items = [msgspec.Raw(json.dumps(the_pod(5, "one")).encode())]
            return Page(metadata=ListMetadata(resource_version="6"), items=items)

    seen = Seen()
    watcher = Reflector(Listed(), PODS, seen)  # type: ignore[arg-type]
    await watcher._list()
    watcher._take(line("DELETED", 12, "one"))
    watcher._take(line("MODIFIED", 11, "late"))
    assert seen.state == {}
    await watcher._list()
    watcher._take(line("MODIFIED", 7, "two"))
    assert (seen.state, seen.labels) == ({"a": "u"}, {"l": "two"})


async def _chunks(*parts: bytes) -> Any:
    for part in parts:
        yield part


async def test_lines_however_they_are_cut() -> None:
    """Lines come whole, wherever the network cuts them; half a last line is no line."""
    found = [line async for line in lines_of(_chunks(b'{"a"', b':1}\n{"b":', b"2}\n\n", b'{"c":3}\n{"d"'))]
    assert found == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_waits_grow_and_are_bounded() -> None:
    """The constants that the rules rest on."""
    assert reflector.WAIT_S[0] < reflector.WAIT_S[1] <= 60
    assert reflector.WATCH_S[0] >= 300
