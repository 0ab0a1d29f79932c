"""Decisions become rows."""

from __future__ import annotations

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    Decision,
    Evict,
    NodeRejected,
    Released,
    Reserved,
)
from fairlead.core.model.events import Cause
from fairlead.core.model.reasons import Refused
from fairlead.sim.outcome import Record


def recorded(*decisions: Decision) -> Record:
    """A record of these decisions, all in step 4."""
    record = Record()
    record.take(decisions, 4)
    return record


def test_allocations_are_rows_in_order() -> None:
    """Each allocation is a row with its step."""
    rows = recorded(Allocated("a", "k2", "n"), Allocated("a", "k1", "m")).as_result()["allocated"]
    assert rows == [
        {"key": "k2", "app": "a", "node": "n", "step": 4},
        {"key": "k1", "app": "a", "node": "m", "step": 4},
    ]


def test_an_eviction_is_listed_when_ordered_and_not_again_when_confirmed() -> None:
    """The confirmation's echo is the same ending, not a second one."""
    record = Record()
    record.take([Evict("a", "k", "n", Cause.PREEMPTED_BY_SCHEDULER)], 1)
    record.take([Released("a", "k", "n", Cause.PREEMPTED_BY_SCHEDULER)], 1, {("a", "k")})
    record.take([Released("a", "k", "n", Cause.STOPPED_BY_RM)], 2)
    rows = record.as_result()["released"]
    assert [(r["by"], r["step"]) for r in rows] == [("PREEMPTED_BY_SCHEDULER", 1), ("STOPPED_BY_RM", 2)]


def test_a_confirmation_lists_what_else_was_released_with_it() -> None:
    """Only the confirmed allocation itself is left out."""
    record = Record()
    record.take([Released("a", "k", "n", Cause.TIMEOUT), Released("a", "other", "n", Cause.TIMEOUT)], 1, {("a", "k")})
    assert [r["key"] for r in record.as_result()["released"]] == ["other"]


def test_a_withdrawn_ask_that_never_ran_is_no_row() -> None:
    """It has no node: nothing was released."""
    assert recorded(Released("a", "k", "", Cause.STOPPED_BY_RM)).as_result()["released"] == []


def test_releases_are_sorted_by_step_key_and_cause() -> None:
    """Order of release inside a step is not compared."""
    record = recorded(Released("a", "z", "n", Cause.STOPPED_BY_RM), Released("a", "b", "n", Cause.STOPPED_BY_RM))
    assert [r["key"] for r in record.as_result()["released"]] == ["b", "z"]


def test_only_allocations_and_replacements_count_as_placed() -> None:
    """A reservation or an eviction for another reason places nothing."""
    decisions: list[Decision] = [
        Allocated("a", "k", "n"),
        Reserved("a", "r", "n"),
        Evict("a", "v", "n", Cause.PREEMPTED_BY_SCHEDULER),
        Evict("a", "p", "n", Cause.PLACEHOLDER_REPLACED),
    ]
    assert recorded(*decisions).placed == 2


def test_answers_are_kept_with_their_reason() -> None:
    """Who was accepted and who was refused, each with a sentence."""
    no = Refused("because")
    record = recorded(
        ApplicationAccepted("b", "root.q"),
        ApplicationAccepted("a", "root.q"),
        ApplicationRejected("c", no),
        AskRejected("c", "k", no),
        NodeRejected("n", no),
    )
    result = record.as_result()
    assert result["apps_accepted"] == ["a", "b"]
    assert result["apps_rejected"] == {"c": "because"}
    assert result["asks_rejected"] == {"k": "because"}
    assert result["nodes_rejected"] == {"n": "because"}
    assert record.configuration_rejected is None


def test_a_refused_configuration_is_remembered() -> None:
    """The runner ends the scenario with it."""
    assert recorded(ConfigurationRejected(Refused("no root"))).configuration_rejected == "no root"
