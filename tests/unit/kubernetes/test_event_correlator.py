"""How often something is said."""

from __future__ import annotations

from fairlead.kubernetes.acts import Explain, ObjectName, Record
from fairlead.kubernetes.event_correlator import AGAIN_S, BURST, EventCorrelator

POD = ObjectName("default", "a", "u")


def test_the_same_is_not_said_twice_in_a_while() -> None:
    """A changed text is news; the same one only after a while."""
    event_correlator = EventCorrelator()
    assert event_correlator.is_news(Explain(POD, "x", "full"), 0)
    assert not event_correlator.is_news(Explain(POD, "x", "full"), AGAIN_S - 1)
    assert event_correlator.is_news(Explain(POD, "x", "fuller"), 1)
    assert event_correlator.is_news(Explain(POD, "x", "full"), AGAIN_S + 1)


def test_what_did_not_come_to_the_server_is_news_again() -> None:
    """Unless something else was said of it since."""
    event_correlator = EventCorrelator()
    for told in (Explain(POD, "x", "full"), Record(POD, "x", "full")):
        assert event_correlator.is_news(told, 0)
        event_correlator.unsaid(told)
        assert event_correlator.is_news(told, 1)
    assert event_correlator.is_news(Explain(POD, "x", "fuller"), 2)
    event_correlator.unsaid(Explain(POD, "x", "full"))
    assert not event_correlator.is_news(Explain(POD, "x", "fuller"), 3)


def test_a_pod_has_only_so_many_events_at_once() -> None:
    """The rest is dropped, and later some are allowed again."""
    event_correlator = EventCorrelator()
    said = [event_correlator.is_news(Record(POD, "R", str(number)), 0.0) for number in range(BURST + 10)]
    assert sum(said) == BURST
    assert event_correlator.is_news(Record(POD, "R", "later"), 1000.0)


def test_a_reason_that_comes_back_is_said_again() -> None:
    """It stands on the pod until another one does; an event that was sent lately is not sent again."""
    event_correlator = EventCorrelator()
    said = [event_correlator.is_news(Explain(POD, "x", text), now) for now, text in enumerate(("full", "gone", "full"))]
    assert said == [True, True, True]
    assert not event_correlator.is_news(Explain(POD, "x", "full"), 3)
    told = [event_correlator.is_news(Record(POD, "R", text), now) for now, text in enumerate(("full", "gone", "full"))]
    assert told == [True, True, False]
