"""Retries: which end is followed by a further attempt, after how long, and what that asks for."""

from __future__ import annotations

import pytest

from fairlead.core.books.retries import BACKOFF_MAX_MS, backoff_ms, next_placeholder, next_spec, why_final
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_CREATION_TIME, AskSpec, RetrySpec


def spec(**more: object) -> AskSpec:
    """Work that is tried three times more, unless something else is said."""
    given: dict[str, object] = {"retry": RetrySpec(limit=3, backoff_ms=1_000, never_on=(2,))} | more
    return AskSpec(application="a", key="k", resources=Resources({"vcore": 1}), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("cause", [Cause.INTERRUPTED, Cause.PREEMPTED_BY_SCHEDULER])
def test_what_was_broken_off_from_outside_comes_back(cause: Cause) -> None:
    assert why_final(spec(), cause) == ""


def test_what_failed_comes_back_but_for_the_named_exit_codes() -> None:
    assert why_final(spec(), Cause.FINISHED, 1) == ""
    assert "exit status 2" in why_final(spec(), Cause.FINISHED, 2)
    assert why_final(spec(), Cause.FINISHED, 0) == "it ended well"
    assert why_final(spec(), Cause.FINISHED) == "how it ended is not known"


def test_what_was_ended_on_request_stays_ended() -> None:
    assert why_final(spec(), Cause.STOPPED_BY_RM) == "it was ended on request"
    assert "TIMEOUT" in why_final(spec(), Cause.TIMEOUT)


def test_the_last_attempt_is_the_last() -> None:
    """A limit of three means four attempts."""
    assert why_final(spec(attempt=3), Cause.INTERRUPTED) == ""
    assert why_final(spec(attempt=4), Cause.INTERRUPTED) == "it had all its 4 attempts"


def test_without_retry_only_idle_work_that_gave_back_returns() -> None:
    assert why_final(spec(retry=None), Cause.INTERRUPTED) == "it was submitted without retry"
    assert why_final(spec(retry=None, idle=True), Cause.PREEMPTED_BY_SCHEDULER) == ""
    assert why_final(spec(retry=None, idle=True), Cause.INTERRUPTED) != ""


def test_a_placeholder_is_not_tried_again() -> None:
    assert why_final(spec(placeholder=True), Cause.INTERRUPTED) == "it is a placeholder"


def test_the_back_off_doubles_up_to_an_hour() -> None:
    assert [backoff_ms(spec(attempt=n), Cause.INTERRUPTED) for n in (1, 2, 3)] == [1_000, 2_000, 4_000]
    assert backoff_ms(spec(attempt=1_000), Cause.INTERRUPTED) == BACKOFF_MAX_MS
    assert backoff_ms(spec(retry=None, attempt=3), Cause.INTERRUPTED) == 0


def test_the_next_attempt_is_the_same_work_under_another_key() -> None:
    """With the priority of now; created when it enters, on no node, in no gang."""
    first = spec(node="n", task_group="g", tags={TAG_CREATION_TIME: "5", "x": "y"}, priority=1)
    second = next_spec(first, 7, Cause.INTERRUPTED)
    third = next_spec(second, 7, Cause.INTERRUPTED)
    assert (second.key, second.first_key, second.attempt, second.priority) == ("k#2", "k", 2, 7)
    assert (third.key, third.first_key, third.attempt) == ("k#3", "k", 3)
    assert (second.node, second.task_group, second.tags) == ("", "", {"x": "y"})


def test_a_placeholder_that_gave_way_comes_back_as_old_as_it_was() -> None:
    """And in its gang."""
    first = spec(placeholder=True, retry=None, task_group="g", tags={TAG_CREATION_TIME: "5"})
    again = next_placeholder(first, 0, Cause.INTERRUPTED)
    assert (again.task_group, again.tags, again.key) == ("g", {TAG_CREATION_TIME: "5"}, "k#2")
