"""Leader election on virtual time: one leads, and never two."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest
from seeds import seeds
from testbed.fake_server import FakeServer
from testbed.faults import Fault, Faults, SeededFaults
from testbed.virtual_time import run_virtually

from fairlead.kubernetes.client import Answer, Client, Request
from fairlead.kubernetes.lease import DURATION_S, Election


class Candidate:
    """Stands for the lease again and again, and notes when it led."""

    def __init__(self, server: FakeServer, name: str, seed: int = 0) -> None:
        self.name = name
        self.led: list[list[float]] = []
        self.server = server
        self.chance = random.Random(f"{seed}{name}")
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self._stand())

    async def _stand(self) -> None:
        loop = asyncio.get_running_loop()

        async def job() -> None:
            span = [loop.time(), -1.0]
            self.led.append(span)
            try:
                await asyncio.sleep(10**9)
            finally:
                span[1] = loop.time()

        while True:
            stamp = lambda: f"{loop.time():.6f}"  # noqa: E731
            one = Election(Client(self.server), "system", "fairlead", self.name, stamp=stamp, chance=self.chance)
            await one.run(job)

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def overlaps(candidates: list[Candidate]) -> list[tuple[float, float]]:
    """Times at which two led at once."""
    spans = sorted((a, b) for c in candidates for a, b in c.led)
    return [(one[1], two[0]) for one, two in itertools.pairwise(spans) if two[0] < one[1]]


def test_one_leads_and_the_next_begins_at_once_when_it_stops() -> None:
    """A graceful stop gives the lease back, and it is counted on how often it changed hands."""

    async def main() -> None:
        server = FakeServer()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        one.start()
        await asyncio.sleep(1)
        two.start()
        await asyncio.sleep(60)
        assert len(one.led) == 1
        assert two.led == []
        await one.stop()
        stopped = asyncio.get_running_loop().time()
        await asyncio.sleep(5)
        assert two.led[0][0] - stopped < 5
        lease = server.one("leases", "fairlead", "system")
        assert lease is not None
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("two", 2)
        await two.stop()
        assert overlaps([one, two]) == []

    run_virtually(main())


def test_a_leader_that_dies_is_followed_when_its_lease_has_run_out() -> None:
    """Nothing was given back: the other waits for as long as the lease lasts, by its own clock."""

    class Dead(Faults):
        def __init__(self) -> None:
            self.silent = False

        def for_request(self, method: str, path: str) -> Fault:
            return Fault(lost="before") if self.silent else Fault()

    async def main() -> None:
        server = FakeServer()
        one = Candidate(server, "one")
        one.start()
        await asyncio.sleep(10)
        before = server.objects["leases"]["system", "fairlead"]
        kept = {**before, "spec": dict(before["spec"])}
        await one.stop()
        server.put("leases", kept)  # it never said goodbye
        died = asyncio.get_running_loop().time()
        two = Candidate(server, "two")
        two.start()
        await asyncio.sleep(60)
        assert DURATION_S <= two.led[0][0] - died < DURATION_S + 6
        await two.stop()

    run_virtually(main())


@pytest.mark.parametrize("alive_s", [10.0, 10.9, 11.7, 12.3])
def test_a_standby_takes_over_within_a_second_of_the_end_of_the_lease(alive_s: float) -> None:
    """Whenever the leader dies: counted from its death, with nothing given back."""

    async def main() -> None:
        server = FakeServer()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        one.start()
        await asyncio.sleep(1)
        two.start()
        await asyncio.sleep(alive_s)
        before = server.objects["leases"]["system", "fairlead"]
        kept = {**before, "spec": dict(before["spec"])}
        (died,) = (asyncio.get_running_loop().time(),)
        assert one.task is not None
        one.task.cancel()
        # It never said goodbye: what it wrote at the end is as it was, before the other one looks.
        await asyncio.sleep(0)
        await asyncio.gather(one.task, return_exceptions=True)
        server.put("leases", kept)
        await asyncio.sleep(60)
        assert two.led[0][0] - died < DURATION_S + 1
        await two.stop()

    run_virtually(main())


def test_a_leader_that_is_cut_off_stops_before_another_begins() -> None:
    """It cannot renew; it does not wait to be told."""

    class Cut(FakeServer):
        cut = False

        async def send(self, request, timeout_s):  # type: ignore[no-untyped-def]
            if self.cut and b'"one"' in request.body:
                await asyncio.sleep(timeout_s)
            return await super().send(request, timeout_s)

    async def main() -> None:
        server = Cut()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        one.start()
        await asyncio.sleep(1)
        two.start()
        await asyncio.sleep(30)
        server.cut = True
        await asyncio.sleep(120)
        assert one.led[0][1] > 0
        assert two.led
        assert overlaps([one, two]) == []
        await one.stop()
        await two.stop()

    run_virtually(main())


@pytest.mark.parametrize("seed", seeds(8, 30))
def test_never_two_whatever_the_server_does(seed: int) -> None:
    """Lost, refused and late requests, restarts of the server."""

    async def main() -> None:
        server = FakeServer(SeededFaults(seed, 0.3))
        chance = random.Random(seed)
        three = [Candidate(server, name, seed) for name in ("a", "b", "c")]
        for one in three:
            one.start()
        for _ in range(30):
            await asyncio.sleep(chance.uniform(0, 30))
            act = chance.random()
            if act < 0.3:
                await server.restart(chance.uniform(0, 30))
            elif act < 0.5:
                one = chance.choice(three)
                await one.stop()
                one.start()
        for one in three:
            await one.stop()
        assert overlaps(three) == []
        assert sum(len(one.led) for one in three) >= 1

    run_virtually(main())


def test_an_answer_that_comes_when_the_lease_has_run_out_makes_no_leader() -> None:
    """The lease was taken, and the word of that was long under way: somebody else may have it by then."""

    class Late(FakeServer):
        """The first answer to whoever takes the lease comes late."""

        late = True

        async def send(self, request: Request, timeout_s: float) -> Answer:
            answer = await super().send(request, timeout_s)
            if request.method == "POST" and self.late:
                self.late = False
                await asyncio.sleep(20)
            return answer

    async def course() -> None:
        server = Late()
        a, b = Candidate(server, "a"), Candidate(server, "b")
        a.start()
        await asyncio.sleep(1)
        b.start()
        await asyncio.sleep(60)
        await a.stop()
        await b.stop()
        assert overlaps([a, b]) == []
        assert a.led
        assert a.led[0][0] < DURATION_S

    run_virtually(course())
