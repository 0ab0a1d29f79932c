"""However many pages are open, the service spends no more on them than its share."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.client.errors import Refused, ServiceFailed
from fairlead.web import budget as budgets
from fairlead.web import frame
from fairlead.web import live as module
from fairlead.web.budget import BURST_S, REMEMBERED, RESERVE_S, SHARE, SMALL_S, Budget, Costs
from fairlead.web.frame import Page
from fairlead.web.live import FRESH_S, NEWS_S, QUIET_S, SOMEBODY_WAITS, Live
from fairlead.web.viewer import Kind, Viewer
from fairlead.wire.cluster import Problem


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: self.now))

    def pass_until_due(self, budget: Budget, question: str) -> None:
        while due_s := budget.due_s(question):
            self.now += due_s


def test_what_is_spent_has_to_be_earned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a quiet time nobody waits; then as long as the share takes to pay for what was too much."""
    clock = Clock(monkeypatch)
    budget = Budget()
    assert budget.due_s("x") == 0
    budget.spent("x", BURST_S + 0.4)
    clock.pass_until_due(budget, "x")
    assert 0.4 / SHARE <= clock.now - 100 < 1.1 * 0.4 / SHARE


def test_a_cheap_question_is_not_kept_waiting_by_a_dear_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It pays for itself alone, and both together never take more than the share."""
    clock = Clock(monkeypatch)
    budget = Budget()
    budget.spent("dear", 10.0)
    budget.spent("cheap", BURST_S + 0.02)
    clock.pass_until_due(budget, "cheap")
    assert clock.now - 100 <= 2 * 0.02 / SHARE + 0.1
    clock.pass_until_due(budget, "dear")
    assert clock.now - 100 >= (10.0 - BURST_S + 0.02) / SHARE


def test_all_looks_together_take_no_more_than_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often each is asked, and whatever is lent."""
    clock = Clock(monkeypatch)
    budget = Budget()
    costs, spent = {"a": 0.01, "b": 0.1, "c": 0.4}, 0.0
    while clock.now < 400:
        for question, cost in costs.items():
            lent = budget.due_s(question) > 0 and budget.lends(cost)
            if not lent:
                clock.pass_until_due(budget, question)
            budget.spent(question, cost, lent=lent)
            spent += cost
    assert spent <= SHARE * (clock.now - 100) + sum(costs.values()) + len(costs) * BURST_S + RESERVE_S


def test_there_is_a_reserve_for_small_looks_and_it_is_paid_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget()
    assert not budget.lends(2 * SMALL_S)
    small, many = SMALL_S / 2, 0
    while budget.lends(small):
        budget.spent("x", small, lent=True)
        many += 1
    assert many == RESERVE_S / small
    assert budget.due_s("x") == 0, "what was lent is not owed by the question itself"
    clock.now += 1.5 * small / SHARE
    assert budget.lends(small)


def test_the_shortest_of_the_last_times_is_what_a_question_costs() -> None:
    """Longer ones were those in which the machine had something else to do."""
    costs = Costs()
    assert costs.of("x") == 0
    assert [costs.took("x", seconds) for seconds in (0.3, 0.1, 0.2)] == [0.3, 0.1, 0.1]
    for _ in range(REMEMBERED):
        costs.took("x", 0.5)
    assert costs.of("x") == 0.5


async def test_pages_that_ask_the_same_share_one_answer_until_something_changes() -> None:
    live, asked = Live(), 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return asked

    assert await asyncio.gather(*(live.shared(("x",), ask) for _ in range(20))) == [1] * 20
    assert await live.shared(("y",), ask) == 2
    await asyncio.sleep(FRESH_S)
    assert await live.shared(("y",), ask) == 3, "nobody hears of changes, so it may be old"
    live.seq += 1
    assert await live.shared(("x",), ask) == 4


async def test_an_answer_that_failed_is_asked_for_again() -> None:
    live, asked = Live(), 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ValueError("not now")
        return asked

    for _ in range(2):
        try:
            found = await live.shared(("x",), ask)
        except ValueError:
            found = 0
    assert found == 2


def refused(status: int) -> Refused:
    return Refused(Problem(type="", title="", status=status, detail="no", code="unauthorized"))


async def test_a_session_that_is_over_takes_no_answer_from_others() -> None:
    """Whoever has the same rights shares an answer; whose session is over is refused alone."""
    live = Live()

    async def over() -> str:
        await asyncio.sleep(0.01)
        raise refused(401)

    async def asked_well() -> str:
        return "seen"

    first = asyncio.create_task(live.shared(("x",), over))
    await asyncio.sleep(0)
    assert await live.shared(("x",), asked_well) == "seen"
    with pytest.raises(Refused):
        await first


async def test_other_refusals_are_the_answer_for_all() -> None:
    live, asked = Live(), 0

    async def gone() -> str:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        raise refused(404)

    async def gone_too() -> str:
        return await gone()

    told = await asyncio.gather(*(live.shared(("x",), each) for each in (gone, gone_too)), return_exceptions=True)
    assert [isinstance(each, Refused) for each in told] == [True, True]
    assert asked == 1


def test_those_share_answers_who_may_know_the_same() -> None:
    def rights(user: str, is_admin: bool, of: Kind) -> object:
        return Viewer("fls_x", user, is_admin, None, of).rights  # type: ignore[arg-type]

    assert rights("root", True, "machine") == rights("ann", True, "machine")
    assert len({rights("root", True, "machine"), rights("ann", False, "machine"), rights("", False, "machine")}) == 3
    assert rights("ann", False, "cluster") == rights("bob", False, "cluster")


async def test_however_much_happens_news_are_asked_for_some_times_a_second() -> None:
    live, asked = Live(), 0

    class Client:
        async def changes(self, *, after: int, wait: float) -> Any:
            nonlocal asked
            asked += 1
            return SimpleNamespace(seq=after + 1)

    begun = time.monotonic()
    live.join("page", Client())  # type: ignore[arg-type]
    seq = 0
    while seq < 3:
        seq = await live.after(seq, 5)
    live.leave("page")
    assert asked <= (time.monotonic() - begun) / NEWS_S + 2


async def test_the_service_is_asked_for_news_while_a_page_is_open_and_not_after() -> None:
    live, asked = Live(), 0

    class Client:
        async def changes(self, *, after: int, wait: float) -> Any:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0.01)
            return SimpleNamespace(seq=after + 1)

    live.join("page", Client())  # type: ignore[arg-type]
    assert await live.after(0, 5) >= 1
    live.leave("page")
    await asyncio.sleep(0.05)
    before = asked
    await asyncio.sleep(0.05)
    assert asked == before


async def test_a_page_is_opened_with_what_is_nearly_new_and_who_acted_sees_what_came_of_it() -> None:
    """While much changes, a page that is being opened does not ask the same once for each of its panels."""
    live, asked = Live(), 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        return asked

    async def one(who: str) -> int:
        module.SOMEBODY_WAITS.set(who)  # type: ignore[arg-type]
        live.seq += 1
        return await live.shared(("x",), ask)

    assert [await asyncio.create_task(one("opening")) for _ in range(5)] == [1] * 5
    assert await asyncio.create_task(one("acting")) == 2
    assert await asyncio.create_task(one("opening")) == 2


async def test_a_page_that_opens_does_not_wait_until_a_look_of_others_is_earned() -> None:
    """It shares the question that waits for its turn, and has it asked at once: half a minute it would be else."""
    live, asked = Live(), list[str]()

    async def ask() -> str:
        asked.append("queues")
        return "as it is"

    live.budget.spent(("queues",), 100.0)
    look = asyncio.create_task(live.shared(("queues",), ask))
    await asyncio.sleep(0.05)
    assert not asked, "an open page looks again when that is earned"
    SOMEBODY_WAITS.set("opening")
    async with asyncio.timeout(5):
        assert await live.shared(("queues",), ask) == "as it is"
        assert await look == "as it is"
    assert asked == ["queues"]


async def test_what_changes_while_a_question_is_not_asked_yet_is_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pages and much news make one question of it, which is asked once it is earned, and paid for once."""
    monkeypatch.setattr(budgets, "BURST_S", 0.0)
    live = Live()
    live.budget.share = 1.0
    live.budget.spent(("line",), 0.3)
    asked: list[int] = []

    async def ask() -> int:
        asked.append(live.seq)
        return live.seq

    looks = []
    for seq in range(5):
        live.seq = seq
        looks.append(asyncio.create_task(live.shared(("line",), ask)))
        await asyncio.sleep(0.01)
    assert not asked
    assert await asyncio.gather(*looks) == [4] * 5
    assert asked == [4]


class Service:
    """Answers questions that cost so much, and notes in which order they were asked, and what was under way then."""

    def __init__(self, live: Live, **costs_s: float) -> None:
        self.live, self.costs_s = live, costs_s
        self.asked: list[str] = []
        self.beside: dict[str, list[str]] = {}
        self.under_way: list[str] = []
        for name, seconds in costs_s.items():
            live._costs.took(name, seconds)

    async def _answer(self, name: str) -> str:
        self.asked.append(name)
        self.beside[name] = list(self.under_way)
        self.under_way.append(name)
        await asyncio.sleep(self.costs_s[name])
        self.under_way.remove(name)
        return name

    async def look(self, *names: str) -> None:
        """Open pages look at these, in this order."""
        async with asyncio.timeout(5):
            await asyncio.gather(*(self.live.shared((name,), lambda name=name: self._answer(name)) for name in names))


async def test_what_costs_least_is_asked_first_and_one_at_a_time() -> None:
    """Large ones come last, and one at a time too; a small one does not wait for a large one."""
    service = Service(Live(), usage=0.09, line=0.012, nodes=0.07, queues=0.002)
    service.live.budget.share = 1000.0
    await service.look("usage", "line", "nodes", "queues")
    assert service.asked == ["queues", "line", "nodes", "usage"]
    assert service.beside == {name: [] for name in service.asked}
    service.live.seq += 1
    large = asyncio.create_task(service.look("usage"))
    while not service.under_way:
        await asyncio.sleep(0.001)
    await service.look("line")
    await large
    assert service.beside["line"] == ["usage"]


async def test_what_is_owed_holds_back_no_small_look_at_the_first_news_after_a_quiet_time() -> None:
    """The line is asked at once, however much is owed; the large look waits, and so do further news."""
    live = Live()
    service = Service(live, line=0.012, nodes=0.07)
    for name, cost_s in service.costs_s.items():
        live.budget.spent((name,), cost_s)
        live.budget.spent((name,), cost_s)
        live.budget.spent((name,), 10.0)
    live._told_at -= QUIET_S
    live._tell(1, "")
    large = asyncio.create_task(service.look("nodes"))
    await service.look("line")
    assert service.asked == ["line"]
    live._tell(2, "")
    again = asyncio.create_task(service.look("line"))
    await asyncio.sleep(0.1)
    assert service.asked == ["line"], "so soon after the first these are not shown at once"
    large.cancel()
    again.cancel()


async def test_a_refusal_that_passes_does_not_keep_pages_from_hearing_of_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who asks too much for a moment is told of changes afterwards; only a session that is over is not asked again."""
    monkeypatch.setattr(module, "LOST_AGAIN_S", 0.001)
    refusals, asked = iter((429, 403)), list[int]()

    class Client:
        async def changes(self, *, after: int, wait: float) -> Any:
            asked.append(after)
            if (status := next(refusals, None)) is not None:
                raise Refused(Problem(type="", title="", status=status, detail="no", code="no"))
            if len(asked) > 3:
                await asyncio.sleep(60)
            return SimpleNamespace(seq=7)

    live = Live()
    live.join("a page", Client())  # type: ignore[arg-type]
    assert await live.after(0, 2.0) == 7
    live.leave("a page")
    assert live._polling is not None
    live._polling.cancel()


async def test_pages_know_at_once_that_the_service_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """They waited for news of it, up to half a minute, with the service long back."""
    monkeypatch.setattr(module, "LOST_AGAIN_S", 0.2)
    refusals = iter((503,))

    class Client:
        async def changes(self, *, after: int, wait: float) -> Any:
            if (status := next(refusals, None)) is not None:
                raise ServiceFailed(Problem(type="", title="", status=status, detail="no", code="no"))
            await asyncio.sleep(wait)
            return SimpleNamespace(seq=0)

    live = Live()
    live.join("a page", Client())  # type: ignore[arg-type]
    await live.after(0, 2.0)
    assert live.lost == "no"
    async with asyncio.timeout(2):
        while live.lost:
            await live.after(live.seq, 2.0)
    live.leave("a page")
    assert live._polling is not None
    live._polling.cancel()


@pytest.mark.parametrize(("over", "lost", "begins"), [("It", "", "It. This"), ("", "no way", "The service does not")])
async def test_a_page_says_whether_its_session_is_over_or_the_service_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, over: str, lost: str, begins: str
) -> None:
    """A session that was over was called a service that does not answer."""
    said = asyncio.Event()
    live = Live()
    live.lost, live.seq = lost, 1
    page = Page(cast(Viewer, SimpleNamespace(of="machine", client=SimpleNamespace())), live, "/line", "The line")
    told = list[tuple[Any, ...]]()

    async def is_over() -> str:
        return over.lower()

    async def connected(timeout: float) -> None: ...

    monkeypatch.setattr(page, "_is_over", is_over)
    monkeypatch.setattr(page, "run", lambda *given: (told.append(given), said.set()))
    monkeypatch.setattr(live, "join", lambda *_: None)
    monkeypatch.setattr(frame, "Client", SimpleNamespace(instances={"a": None}))
    following = asyncio.create_task(
        page._follow(cast(Any, SimpleNamespace(id="a", connected=connected, has_socket_connection=True)))
    )
    await asyncio.wait_for(said.wait(), 5)
    following.cancel()
    [(name, text)] = told
    assert name == "lost"
    assert text.startswith(begins)
