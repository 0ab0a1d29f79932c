"""How often something is said."""

from __future__ import annotations

import asyncio

from testbed.virtual_time import run_virtually

from fairlead.kubernetes.acts import Explain, ObjectName, Record
from fairlead.kubernetes.event_correlator import AGAIN_S, BURST, CHANGE_S, CHANGES, EventCorrelator

POD = ObjectName("default", "a", "u")


def test_the_same_is_not_said_twice_in_a_while() -> None:
    """A changed text is news; the same one only after a while."""
    event_correlator = EventCorrelator(print)
    assert event_correlator.is_news(Explain(POD, "x", "full"), 0)
    assert not event_correlator.is_news(Explain(POD, "x", "full"), AGAIN_S - 1)
    assert event_correlator.is_news(Explain(POD, "x", "fuller"), 1)
    assert event_correlator.is_news(Explain(POD, "x", "full"), AGAIN_S + 1)


def test_what_did_not_come_to_the_server_is_news_again() -> None:
    """Unless something else was said of it since."""
    event_correlator = EventCorrelator(print)
    for told in (Explain(POD, "x", "full"), Record(POD, "x", "full")):
        assert event_correlator.is_news(told, 0)
        event_correlator.unsaid(told)
        assert event_correlator.is_news(told, 1)
    assert event_correlator.is_news(Explain(POD, "x", "fuller"), 2)
    event_correlator.unsaid(Explain(POD, "x", "full"))
    assert not event_correlator.is_news(Explain(POD, "x", "fuller"), 3)


def test_a_pod_has_only_so_many_events_at_once() -> None:
    """The rest is dropped, and later some are allowed again."""
    event_correlator = EventCorrelator(print)
    said = [event_correlator.is_news(Record(POD, "R", str(number)), 0.0) for number in range(BURST + 10)]
    assert sum(said) == BURST
    assert event_correlator.is_news(Record(POD, "R", "later"), 1000.0)


def test_a_reason_that_comes_back_is_said_again() -> None:
    """It stands on the pod until another one does; an event that was sent lately is not sent again."""
    event_correlator = EventCorrelator(print)
    said = [event_correlator.is_news(Explain(POD, "x", text), now) for now, text in enumerate(("full", "gone", "full"))]
    assert said == [True, True, True]
    assert not event_correlator.is_news(Explain(POD, "x", "full"), 3)
    told = [event_correlator.is_news(Record(POD, "R", text), now) for now, text in enumerate(("full", "gone", "full"))]
    assert told == [True, True, False]


def test_a_reason_that_comes_and_goes_is_said_a_few_times_and_then_once_a_minute() -> None:
    """With each node that went and came all pods of a group were told so. The last is said in the end, unless bound."""

    async def course(is_bound: bool) -> list[tuple[float, str]]:
        now, said = asyncio.get_running_loop().time, list[tuple[float, str]]()

        def say(told: Explain) -> None:
            if event_correlator.is_news(told, now()):
                said.append((now() - began, told.message))

        event_correlator, began = EventCorrelator(say), now()
        for number in range(2 * CHANGES):
            say(Explain(POD, "x", f"{number % 2}"))
            await asyncio.sleep(1)
        if is_bound:
            event_correlator.overtaken("u")
        await asyncio.sleep(3 * CHANGE_S)
        return said

    said = run_virtually(course(False))
    assert [text for _, text in said] == ["0", "1", "0", "1", "0", "1"]
    assert said[-1][0] <= CHANGE_S + 1
    assert len(run_virtually(course(True))) == CHANGES
