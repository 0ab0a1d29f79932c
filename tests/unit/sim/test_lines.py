"""Decisions as lines."""

from __future__ import annotations

import hashlib
import io
import json

import pytest

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationRejected,
    Configured,
    Decision,
    Evict,
    PriorityChanged,
    QuotaEnforced,
    Released,
)
from fairlead.core.model.events import Cause
from fairlead.core.model.reasons import QueueFull, Refused
from fairlead.core.model.resources import Resources
from fairlead.sim.lines import LINES_AT_A_TIME, Account, decision_line


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        (Allocated("app", "key-1", "node/1"), 'allocated {"application":"app","key":"key-1","node":"node/1"}'),
        (
            Evict("a", "k", "n", Cause.PREEMPTED_BY_SCHEDULER, "other", "priority"),
            'evict {"application":"a","cause":"PREEMPTED_BY_SCHEDULER","key":"k","node":"n","on_behalf_of":"other",'
            '"rule":"priority"}',
        ),
        (
            PriorityChanged("a", "k", 0, -3, "root"),
            'priority-changed {"application":"a","key":"k","new":-3,"old":0,"who":"root"}',
        ),
        (Configured("abc"), 'configured {"checksum":"abc"}'),
        (
            QuotaEnforced("q", "default", Resources({"vcore": 1000}), 2),
            'quota-enforced {"excess":{"vcore":1000},"partition":"default","queue":"q","victims":2}',
        ),
        (
            Released("a b", 'q"', "n", Cause.TIMEOUT, "two\nlines"),
            'released {"application":"a b","cause":"TIMEOUT","key":"q\\"","message":"two\\nlines","node":"n"}',
        ),
        (Allocated("a", "k", "n", "gpu"), 'allocated {"application":"a","key":"k","node":"n","partition":"gpu"}'),
    ],
)
def test_a_decision_is_one_readable_line(decision: Decision, line: str) -> None:
    """Its fields by name, those that are as by default left out, among them the usual partition."""
    assert decision_line(5, decision) == f"5 {line}\n".encode()


def test_reasons_are_shown_in_one_order() -> None:
    """Maps inside a reason are sorted, whatever order they were built in."""
    one, other = (QueueFull("q", dict.fromkeys(names, 1), {}, {}) for names in ("ab", "ba"))
    assert decision_line(1, ApplicationRejected("a", one)) == decision_line(1, ApplicationRejected("a", other))
    said = json.loads(decision_line(1, ApplicationRejected("a", Refused("no"))).split(b" ", 2)[2])
    assert said == {"id": "a", "reason": Refused("no").as_dict()}
    assert said["reason"]["code"] == "refused"


@pytest.mark.parametrize("count", [0, 3, LINES_AT_A_TIME - 1, LINES_AT_A_TIME, 2 * LINES_AT_A_TIME + 5])
def test_the_digest_is_that_of_the_file(count: int) -> None:
    """However many decisions were told, and however often it was asked for meanwhile."""
    file = io.StringIO()
    account = Account(True, file)
    lines = []
    for number in range(count):
        account.tell(number, [Allocated("a", f"k{number}", "n")])
        lines.append(decision_line(number, Allocated("a", f"k{number}", "n")))
        if number % 500 == 0:
            assert account.digest == hashlib.sha256(b"".join(lines)).hexdigest()
    assert account.digest == hashlib.sha256(b"".join(lines)).hexdigest()
    assert file.getvalue().encode() == b"".join(lines)
    assert Account(False, None).digest == ""
    assert not Account(False, None).wanted
