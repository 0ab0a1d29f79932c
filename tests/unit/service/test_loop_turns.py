"""Of one user a few requests are worked on at a time; whoever else asks has its turn at once. Counted, not timed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.runtime import Refusal
from fairlead.service.http import turns
from fairlead.service.http.turns import AT_ONCE, Turns
from fairlead.service.identity import CONNECTION
from fairlead.service.passes import STRANGERS

ANN, BOB = 1, 2
FLOOD = 12


class Works:
    """An application that works in steps and notes which user's request is at work at each; `hold`: until told."""

    def __init__(self, steps: int = 5) -> None:
        self.steps, self.now, self.most, self.done, self.began = steps, {}, {}, [], []
        self.hold = asyncio.Event()
        self.hold.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        user = scope["user"]
        self.began.append(user)
        self.now[user] = self.now.get(user, 0) + 1
        self.most[user] = max(self.most.get(user, 0), self.now[user])
        try:
            if user is not None:
                await self.hold.wait()
            for _ in range(self.steps):
                await asyncio.sleep(0)
            if scope.get("fails"):
                raise RuntimeError("a fault")
        finally:
            self.now[user] -= 1
        self.done.append(user)


def front(works: Works) -> Callable[..., Any]:
    bounded = Turns(works, lambda scope: scope["user"])

    async def ask(user: int | None, **more: Any) -> None:
        await bounded({"type": "http", "user": user} | more, None, None)  # type: ignore[arg-type]

    return ask


def course(act: Callable[[], Any]) -> None:
    asyncio.run(act())


def test_others_are_served_after_a_few_of_those_who_ask_for_much() -> None:
    """Before, all of the flood was at work with them: twelve, not two."""

    async def act() -> None:
        works = Works()
        ask = front(works)
        await asyncio.gather(*[ask(ANN) for _ in range(FLOOD)], ask(BOB))
        assert works.most == {ANN: AT_ONCE, BOB: 1}
        assert works.done.index(BOB) <= AT_ONCE
        assert len(works.done) == FLOOD + 1

    course(act)


def test_what_waits_for_something_keeps_no_other_waiting_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives its turn on after a moment, and once."""
    monkeypatch.setattr(turns, "MOMENT_S", 0.001)

    async def act() -> None:
        works = Works()
        works.hold.clear()
        ask = front(works)
        asked = [asyncio.create_task(ask(ANN)) for _ in range(3 * AT_ONCE)]
        while len(works.began) < len(asked):
            await asyncio.sleep(0.001)
        works.hold.set()
        await asyncio.gather(*asked)
        works.now, works.most = {}, {}
        monkeypatch.setattr(turns, "MOMENT_S", 60)
        await asyncio.gather(*[ask(ANN) for _ in range(FLOOD)])
        assert works.most == {ANN: AT_ONCE}, "more turns than there were"

    course(act)


def test_a_fault_and_one_that_goes_away_give_their_turns_on() -> None:
    """Nobody of that user would ever be served again."""

    async def act() -> None:
        works = Works()
        works.hold.clear()
        ask = front(works)
        asked = [asyncio.create_task(ask(ANN, fails=True)) for _ in range(FLOOD)]
        await asyncio.sleep(0)
        for one in (asked[0], asked[-1]):
            one.cancel()
        works.hold.set()
        await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.gather(*[ask(ANN) for _ in range(FLOOD)])
        assert works.done == [ANN] * FLOOD
        assert works.most == {ANN: AT_ONCE}

    course(act)


def test_nothing_is_kept_of_those_who_ask_no_more_and_some_wait_in_no_line() -> None:
    """A place that does not tell users apart has none."""

    async def act() -> None:
        works = Works()
        bounded = Turns(works, lambda scope: scope["user"])
        await asyncio.gather(*[bounded({"type": "http", "user": n}, None, None) for n in range(9)])  # type: ignore[arg-type]
        assert not bounded._of
        await asyncio.gather(*[bounded({"type": "http", "user": None}, None, None) for _ in range(FLOOD)])  # type: ignore[arg-type]
        assert works.most[None] == FLOOD

    course(act)


class Connection:
    """What a request came over; `full`: its user has as many as a user may."""

    def __init__(self, full: bool = False) -> None:
        self.full, self.users = full, []

    def known_as(self, uid: int) -> None:
        if self.full:
            raise Refusal("too-many", "you have 200 connections open over TCP, as many as a user may; close some")
        self.users.append(uid)


def test_one_that_waits_keeps_no_connection_of_others_from_the_same_address() -> None:
    """All connections of a flood counted for the address, and nobody else there had any left."""

    async def act() -> None:
        works = Works()
        works.hold.clear()
        ask = front(works)
        over = [Connection() for _ in range(FLOOD)]
        asked = [asyncio.create_task(ask(ANN, **{CONNECTION: one})) for one in over]
        stranger = Connection()
        asked.append(asyncio.create_task(ask(STRANGERS, **{CONNECTION: stranger})))
        await asyncio.sleep(0)
        assert [one.users for one in over] == [[ANN]] * FLOOD
        assert stranger.users == []
        works.hold.set()
        await asyncio.gather(*asked)

    course(act)


def test_one_connection_too_many_is_refused_at_once() -> None:
    """As it would be later, and by the same words."""

    async def act() -> None:
        works, sent = Works(), list[Any]()

        async def send(message: Any) -> None:
            sent.append(message)

        bounded = Turns(works, lambda scope: scope["user"])
        asked = {"type": "http", "path": "/", "user": ANN, CONNECTION: Connection(full=True)}
        await bounded(asked, None, send)  # type: ignore[arg-type]
        assert sent[0]["status"] == 429
        assert (b"retry-after", b"1") in sent[0]["headers"]
        assert b"as many as a user may" in sent[1]["body"]
        assert not works.began

    course(act)
