"""Many jobs in one request, and many requests of one user, keep nobody else waiting for long."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.reads import measure
from fastapi.routing import APIRoute

from fairlead.core.model.resources import Resources
from fairlead.local import placing, requests
from fairlead.local.callers import Caller
from fairlead.local.changes import suspend
from fairlead.local.history_records import ArraySpec, JobsCleaned, JobSpec
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal, Turn, Unavailable
from fairlead.runtime.inbox import Command
from fairlead.runtime.lines import SERVICE
from fairlead.service.http.app import SHARED
from fairlead.service.machine import EVERYTHING
from fairlead.service.orders import A_TURN, order_each, submit_some_a_turn
from fairlead.service.passes import Passes, asking
from fairlead.service.place import caller_of, reader_of
from fairlead.service.yunikorn.watch_routes import ROUTERS

ANN = Caller("ann", 77)
ALICE, BOB = 54_321, 54_322
MOVED = {"/ws/v1/stack", "/ws/v1/fullstatedump"}
"""Routes that say where to go."""
pytestmark = pytest.mark.real


@pytest.mark.timeout(180)
def test_others_have_their_turns_meanwhile() -> None:
    """In processor time: no piece of work of the loop or the writer is more than a small part of the whole."""
    waits, _, loop, writer = measure(2_000)
    assert waits
    assert loop.seconds < 0.1
    assert writer.seconds < writer.total / 4


def intake(count: int, request: str = "") -> requests.Intake:
    common = {"key": "", "user": "ann", "uid": 77, "queue": "root.default", "resources": Resources({"cpu": 9})}
    specs = [JobSpec(command=("true", str(number)), **common) for number in range(count)]  # type: ignore[arg-type]
    return requests.Intake(ANN, specs, request, "digest")


def step(served: Any, one: requests.Intake, most: int) -> Any:
    return served.place.runtime.do(lambda turn: one.step(served.place.local.jobs, turn, most)).result(10)


def test_a_submission_is_entered_some_jobs_a_turn(served: Any) -> None:
    """The keys come at the end, in order."""
    one = intake(5)
    assert [step(served, one, 2), step(served, one, 2)] == [None, None]
    keys = step(served, one, 2).keys
    assert [int(key) for key in keys] == list(range(int(keys[0]), int(keys[0]) + 5))


def test_what_was_broken_off_is_completed_and_never_doubled(served: Any) -> None:
    """By the same request, whether the first is still on its way or its service died."""
    first, again = intake(5, "r1"), intake(5, "r1")
    assert step(served, first, 2) is None
    assert step(served, again, 2) is None
    found = step(served, first, 2)
    assert len(found.keys) == len(set(found.keys)) == 5
    assert step(served, again, 2).keys == step(served, intake(5, "r1"), 2).keys == found.keys
    with pytest.raises(Refusal, match="was used for another submission"):
        served.place.runtime.do(
            lambda turn: requests.Intake(ANN, [], "r1", "other").step(served.place.local.jobs, turn, 1)
        ).result(10)


def test_a_submission_loses_nothing_by_the_fault_of_another_request(served: Any) -> None:
    """That one is taken back, with the jobs that were entered in the same turn: these are entered once more."""
    runtime, busy, go_on = served.place.runtime, threading.Event(), threading.Event()
    one = intake(5)
    assert step(served, one, 2) is None
    standing = runtime.read(lambda _: busy.set() or go_on.wait(50))
    assert busy.wait(50)
    more = runtime.do(lambda turn: one.step(served.place.local.jobs, turn, 2))
    faulty = runtime.do(lambda turn: 1 // 0)
    go_on.set()
    standing.result(10)
    assert more.result(10) is None
    with pytest.raises(Refusal, match="fault in the service"):
        faulty.result(10)
    keys = step(served, one, 2).keys
    assert len(set(keys)) == 5
    assert [served.place.local.jobs.get(key).spec.command[1] for key in keys] == ["0", "1", "2", "3", "4"]


def test_an_order_that_is_done_again_is_answered_once(served: Any) -> None:
    """Where the fault of another request takes its turn back: a job that waits cannot be told to go on."""
    key, runtime = served.submit("/bin/true", hold=True), served.place.runtime

    class Place:
        async def look(self, ask: Any) -> Any:
            return runtime.read(lambda scheduler: ask(scheduler, served.place.local.jobs)).result(10)

        async def do(self, act: Any) -> Any:
            return runtime.do(lambda turn: (act(turn), act(turn))[1]).result(10)

    def act(turn: Turn, one: str) -> None:
        suspend(served.place.local.jobs, turn, EVERYTHING, one, on=False)

    with pytest.raises(Refusal, match="waiting"):
        asyncio.run(order_each(Place(), EVERYTHING, key, act))  # type: ignore[arg-type]


def test_an_array_of_which_no_more_comes_is_over_with_what_came(served: Any) -> None:
    """What waits for it would wait until the service is started anew. A repeated request goes on with it."""
    jobs, runtime, calls = served.place.local.jobs, served.place.runtime, []

    class Place:
        local, runtime = served.place.local, served.place.runtime

        async def do(self, act: Any) -> Any:
            calls.append(act)
            if len(calls) > 1:
                raise Unavailable("the disk is full")
            return runtime.do(act).result(10)

    def of_two_turns() -> requests.Intake:
        array = replace(intake(1).specs[0], array=ArraySpec(indices=f"1-{2 * A_TURN}"))
        return requests.Intake(ANN, [array], "half", "d")

    with pytest.raises(Unavailable):
        asyncio.run(submit_some_a_turn(Place(), of_two_turns()))  # type: ignore[arg-type]
    key = next(reversed(jobs.arrays))
    assert runtime.do(lambda _: (len(jobs.arrays[key].parts), jobs.arrays[key].is_whole)).result(10) == (A_TURN, True)
    assert step(served, of_two_turns(), A_TURN).keys == (key,)
    assert (len(jobs.arrays[key].parts), jobs.arrays[key].broken_off) == (2 * A_TURN, False)


def test_what_ends_on_the_way_says_what_is_in_already(served: Any) -> None:
    """Nobody who submits the whole again takes the first hundred for not submitted."""
    calls = []

    class Place:
        local, runtime = served.place.local, served.place.runtime

        async def do(self, act: Any) -> Any:
            calls.append(act)
            if len(calls) > 2:
                raise Unavailable("the disk is full")
            return served.place.runtime.do(act).result(10)

    with pytest.raises(Unavailable) as refused:
        asyncio.run(submit_some_a_turn(Place(), intake(3 * A_TURN)))  # type: ignore[arg-type]
    first = next(int(word) for word in refused.value.message.split() if word.isdigit())
    said = f"{first} to {first + 2 * A_TURN - 1} of this submission are in already"
    assert refused.value.message == f"{said}, at least in part; the rest is not: the disk is full"
    with pytest.raises(Unavailable, match=r"^the disk is full$"):
        asyncio.run(submit_some_a_turn(Place(), intake(3)))  # type: ignore[arg-type]


def test_an_order_that_ends_on_the_way_says_for_how_many_it_was_given(served: Any) -> None:
    """It was answered as if nothing had been done; given again it does the rest."""
    key, runtime, turns = served.submit("/bin/true", hold=True, array=f"1-{2 * A_TURN}"), served.place.runtime, []

    class Place:
        async def look(self, ask: Any) -> Any:
            return runtime.read(lambda scheduler: ask(scheduler, served.place.local.jobs)).result(10)

        async def do(self, act: Any) -> Any:
            turns.append(act)
            if len(turns) > 1:
                raise Unavailable("the disk is full")
            return runtime.do(act).result(10)

    with pytest.raises(Unavailable) as refused:
        asyncio.run(order_each(Place(), EVERYTHING, key, lambda _turn, _key: None))  # type: ignore[arg-type]
    said = f"it was ordered for {A_TURN} of the {2 * A_TURN} parts of {key}; give it again for the rest"
    assert refused.value.message == f"{said}: the disk is full"


def test_what_has_left_the_book_meanwhile_is_not_submitted_once_more(served: Any) -> None:
    """A repeated request is answered with what is left of the first, also after a restart."""
    local, runtime = served.place.local, served.place.runtime
    keys = step(served, intake(3, "r4"), 3).keys
    runtime.do(lambda turn: requests.cancel(local.jobs, turn, EVERYTHING, keys[0])).result(10)
    runtime.do(lambda turn: turn.note(JobsCleaned(before_ms=2**60, uid=77))).result(10)
    assert keys[0] not in local.jobs
    assert step(served, intake(3, "r4"), 3).keys == keys[1:]
    again = Jobs.load(json.loads(json.dumps(local.jobs.dump())))
    assert again.submissions.find(77, "r4") == ("digest", keys)
    for _ in keys[1:]:
        again.submissions.remove(77, "r4")
    assert again.submissions.find(77, "r4") is None


def test_what_was_refused_at_its_end_alone_was_taken_in(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated request is not told that nothing was: a queue was closed after the service had broken off."""
    assert step(served, intake(3, "r2"), 2) is None
    plan, denial = placing.plan, placing.Denial("no-queue", "it is closed", "", by_scheduler=False)
    monkeypatch.setattr(placing, "plan", lambda *given: [replace(each, denial=denial) for each in plan(*given)])
    found = step(served, intake(3, "r2"), 2)
    assert (len(found.keys), found.refused) == (3, ())
    assert step(served, intake(3, "r2"), 2) == found
    assert len(step(served, intake(3, "r3"), 2).refused) == len(step(served, intake(3, "r3"), 2).refused) == 3


def test_a_quota_takes_all_or_none_in_one_turn(served: Any) -> None:
    """However many they are."""
    count = A_TURN + 5
    put = served.call("PUT", "/api/v1/quotas/few", {"queue": "root.batch", "resources": {"cpu": count / 1000}})
    assert put.status == 200
    for number, status in ((count + 1, 422), (count, 201)):
        body = {"jobs": [{"command": ["/bin/true"], "queue": "root.batch", "resources": {"cpu": 0.001}}] * number}
        assert served.call("POST", "/api/v1/jobs", body).status == status
    assert served.call("DELETE", "/api/v1/quotas/few").status == 200


# -- in turns by user ----------------------------------------------------------------------------------------------


def test_each_route_asks_who_it_is(served: Any) -> None:
    """So that whatever it waits for it waits for in that user's line; what asks for no token needs nothing."""

    def asks(dependant: Any) -> bool:
        return dependant.call in (caller_of, reader_of) or any(map(asks, dependant.dependencies))

    routers = (*SHARED, *served.place.routers(), *ROUTERS)
    routes = [route for router in routers for route in router.routes]
    assert len(routes) > 90
    assert all(isinstance(route, APIRoute) for route in routes)
    assert {route.path for route in routes if not asks(route.dependant)} == {"/healthz", "/"} | MOVED


@pytest.mark.thorough
def test_a_flood_of_one_user_costs_others_one_turn(served: Any) -> None:
    """While the writer is busy alice sends thirty requests, and then bob one: his are among the first to be taken."""
    runtime, busy, go_on = served.place.runtime, threading.Event(), threading.Event()
    took, plain = list[int | None](), runtime._in_time

    def watched(items: Any) -> Any:
        for item in plain(items):
            if isinstance(item, Command):
                took.append(item.user)
            yield item

    def stand_still(_: Any) -> None:
        busy.set()
        assert go_on.wait(50)

    def waits(user: int, count: int) -> bool:
        lines = runtime._inbox._wanted._lines
        return len(lines.get(user, ())) == count

    served.place.users.bounds, before = (
        replace(served.place.users.bounds, submissions=10_000),
        served.place.users.bounds,
    )
    runtime._in_time = watched
    standing = runtime.do(stand_still)
    try:
        assert busy.wait(50)
        body = {"jobs": [{"command": ["/bin/true"], "hold": True}]}
        ask = lambda who: served.call("POST", "/api/v1/jobs", body, who).status  # noqa: E731
        with ThreadPoolExecutor(31) as pool:
            alices = [pool.submit(ask, "alice") for _ in range(30)]
            until(lambda: waits(ALICE, 30))
            bobs = pool.submit(ask, "bob")
            until(lambda: waits(BOB, 1))
            go_on.set()
            assert {each.result(50) for each in (*alices, bobs)} == {201}
    finally:
        go_on.set()
        runtime._in_time, served.place.users.bounds = plain, before
        standing.result(50)
    users = [user for user in took if user is not SERVICE]
    assert users[:2] == [ALICE, BOB]
    assert users.count(ALICE) == 30


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 50
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.thorough
def test_passes_are_given_in_turns() -> None:
    """Of two at a time: bob's first is next but one, whatever alice has waiting; what was given up had its turn."""

    async def course() -> list[str]:
        passes, order, leave = Passes(1), list[str](), asyncio.Event()

        async def work(who: int, name: str) -> None:
            asking.set(who)
            async with passes.one():
                order.append(name)
                await leave.wait()

        tasks = [asyncio.create_task(work(ALICE, f"alice {n}")) for n in range(4)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(work(BOB, f"bob {n}")) for n in range(2)]
        await asyncio.sleep(0)
        tasks.pop(2).cancel()
        leave.set()
        await asyncio.gather(*tasks)
        async with passes.one():
            return order

    assert asyncio.run(course()) == ["alice 0", "alice 1", "bob 0", "bob 1", "alice 3"]
