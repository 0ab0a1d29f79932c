"""What is typed into the form of a job changes that alone."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from testbed.answering import made

from fairlead.web.job_change import SIGNALS, change_form, changed, signal_number
from fairlead.wire.jobs import JobDetails


def job(**fields: Any) -> JobDetails:
    has: dict[str, Any] = {"name": "n", "resources": {"cpu": 2, "memory": 4 * 2**30}, "command": ["echo", "a b"]}
    found: JobDetails = made(JobDetails, **(has | fields))
    return found


AS_IT_IS = {
    "name": "n",
    "cpu": "2",
    "memory": "4Gi",
    "gpu": "",
    "after": "",
    "begin": "",
    "command": "echo 'a b'",
    "token": "7",
}


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ({"name": " other "}, {"name": "other"}),
        ({"cpu": "0.5"}, {"resources": {"cpu": 0.5}}),
        ({"gpu": "1", "memory": ""}, {"resources": {"gpu": 1, "memory": 0}}),
        ({"after": "12, 13.2"}, {"after": [{"key": "12"}, {"key": "13.2"}]}),
        ({"memory": "1.5Gi"}, {"resources": {"memory": 3 * 2**29}}),
        ({"cpu": "500m"}, {"resources": {"cpu": 0.5}}),
        ({"command": "python3 x.py --n '1 2'"}, {"command": ["python3", "x.py", "--n", "1 2"]}),
        ({"cpu": "3", "name": "m"}, {"name": "m", "resources": {"cpu": 3}}),
    ],
)
def test_what_differs_is_sent_and_nothing_else(typed: dict[str, str], sent: dict[str, Any]) -> None:
    assert changed(job(), AS_IT_IS | typed) == sent


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({}, "nothing is changed"),
        ({"cpu": "inf"}, "cpu: 'inf' is no amount"),
        ({"cpu": "0.0004"}, "cpu: '0.0004' is no amount"),
        ({"cpu": "much"}, "cpu: 'much' is no amount; write for example 2 or 0.5"),
        ({"begin": "one day"}, "Not before: "),
        ({"command": "echo 'a"}, "Command: "),
    ],
)
def test_what_cannot_be_read_names_its_field(typed: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        changed(job(), AS_IT_IS | typed)


def test_the_form_shows_the_job_as_it_is() -> None:
    shown = str(change_form(job()))
    assert all(f'value="{text}"' in shown for text in ("n", "2", "4Gi"))
    assert "Parts at a time" not in shown
    assert "Command" not in str(change_form(job(command=["script"]))), "a script is not changed here"


def test_each_signal_has_its_number() -> None:
    assert [signal_number(name) for name in SIGNALS] == [signal.Signals[f"SIG{name}"] for name in SIGNALS]
    with pytest.raises(ValueError, match="no whole number"):
        signal_number("NONE")


def test_what_is_waited_for_of_a_job_stays_where_another_one_is_added() -> None:
    """A job that has only to end does not have to end well because of it."""
    waits = job(after=[{"key": "12", "awaited": "any"}])
    sent = changed(waits, AS_IT_IS | {"after": "12 14"})
    assert sent == {"after": [{"key": "12", "awaited": "any"}, {"key": "14"}]}
