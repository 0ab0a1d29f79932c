"""Specs: what a declared thing is when little is said of it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from fairlead.core.model.constraints import ANYWHERE, Constraints
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, ClusterSpec, NodeSortSpec, RetrySpec


def ask(**more: object) -> AskSpec:
    """An ask of one core."""
    return AskSpec(application="a", key="k", resources=Resources({"vcore": 1}), **more)  # type: ignore[arg-type]


def test_a_spec_cannot_be_changed() -> None:
    """What crossed the front door stays what it was."""
    with pytest.raises(FrozenInstanceError):
        ask().priority = 5  # type: ignore[misc]


def test_a_first_attempt_is_no_retry() -> None:
    """Whatever it may have later."""
    assert not ask(retry=RetrySpec(limit=3)).retried


@pytest.mark.parametrize(
    ("more", "goes_ahead"),
    [
        ({}, True),
        ({"retry": RetrySpec(limit=3)}, True),
        ({"idle": True}, False),
        ({"idle": True, "retry": RetrySpec(limit=3)}, True),
        ({"placeholder": True}, False),
    ],
)
def test_a_further_attempt_goes_ahead_but_for_what_only_gave_back(more: dict[str, object], goes_ahead: bool) -> None:
    """Idle work without retry, and placeholders, come back without going ahead."""
    assert ask(attempt=2, **more).retried is goes_ahead


def test_anywhere_is_one_object() -> None:
    """However it was read: that is asked for often, by identity."""
    assert ask(where=Constraints()).where is ANYWHERE
    assert ask(where=Constraints(ports=("TCP/0.0.0.0/80",))).where is not ANYWHERE


def test_without_a_file_there_is_one_partition_that_takes_work() -> None:
    """With one root that everybody may submit to, by YuniKorn's laws."""
    [partition] = ClusterSpec().partitions
    assert (partition.name, partition.root.name, partition.root.submit_acl) == ("default", "root", "*")
    assert (partition.preemption.rule, partition.preemption.enabled) == ("guarantee", True)


def test_each_sort_of_nodes_has_weights_of_its_own() -> None:
    """A change to one is none to another."""
    one, other = NodeSortSpec(), NodeSortSpec()
    assert one == other
    assert one.weights is not other.weights
