"""Decisions as canonical lines."""

from __future__ import annotations

import pytest

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationRejected,
    Configured,
    Decision,
    Evict,
    PriorityChanged,
    Released,
)
from fairlead.core.model.events import Cause
from fairlead.core.model.reasons import QueueFull, Refused
from fairlead.sim.lines import decision_line, lines_of


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        (Allocated("app", "key-1", "node/1"), "5 allocated application=app key=key-1 node=node/1"),
        (
            Evict("a", "k", "n", Cause.PREEMPTED_BY_SCHEDULER, "other", "priority"),
            "5 evict application=a key=k node=n cause=PREEMPTED_BY_SCHEDULER on_behalf_of=other rule=priority",
        ),
        (PriorityChanged("a", "k", 0, -3, "root"), "5 priority-changed application=a key=k old=0 new=-3 who=root"),
        (Configured(""), "5 configured"),
        (Released("a b", 'q"', "n", Cause.TIMEOUT), '5 released application="a b" key="q\\"" node=n cause=TIMEOUT'),
    ],
)
def test_a_decision_is_one_readable_line(decision: Decision, line: str) -> None:
    """Fields in their order, empty ones left out, odd texts quoted."""
    assert decision_line(5, decision) == line


def test_a_line_never_breaks() -> None:
    """A line end inside a text is quoted."""
    assert "\n" not in decision_line(0, Released("a\nb", "k", "n", Cause.TIMEOUT))


def test_reasons_are_shown_in_one_order() -> None:
    """Maps inside a reason are sorted, whatever order they were built in."""
    one, other = (QueueFull("q", dict.fromkeys(names, 1), {}, {}) for names in ("ab", "ba"))
    assert decision_line(1, ApplicationRejected("a", one)) == decision_line(1, ApplicationRejected("a", other))
    assert '"code":"refused"' in decision_line(1, ApplicationRejected("a", Refused("no")))


def test_another_partition_is_said_at_the_end() -> None:
    """The usual one is left out."""
    assert decision_line(1, Allocated("a", "k", "n", "gpu")) == "1 allocated application=a key=k node=n partition=gpu"
    assert decision_line(1, Released("a", "k", "", Cause.TIMEOUT, "too late", "p 2")).endswith(' partition="p 2"')
    assert "partition" not in decision_line(1, Released("a", "k", "", Cause.TIMEOUT, "too late"))


PLAIN = (Allocated("app", "key-1", "node/1"), Released("a", "k", "n", Cause.TIMEOUT), Configured(""))


@pytest.mark.parametrize(
    "odd",
    [
        Released("a b", "k", "n", Cause.TIMEOUT),
        Released("a", "k=", "n", Cause.TIMEOUT),
        Released("a", "k", "n", Cause.TIMEOUT, "two\nlines"),
        Released("ä", "k", "n", Cause.TIMEOUT),
        Released("", "", "n", Cause.TIMEOUT),
        Allocated("a", "k", "n", "gpu"),
        PriorityChanged("a", "k", 0, -3, "root"),
        ApplicationRejected("a", Refused("no")),
    ],
)
def test_many_decisions_are_said_as_one_by_one(odd: Decision) -> None:
    """Whatever stands among plain ones, and wherever."""
    for told in ([(1, (odd, *PLAIN)), (2, PLAIN)], [(1, PLAIN), (2, (*PLAIN, odd))], [(3, (odd,))]):
        alone = [decision_line(at_ms, each) + "\n" for at_ms, decisions in told for each in decisions]
        assert lines_of(told) == "".join(alone).encode()
    assert lines_of([]) == b""
