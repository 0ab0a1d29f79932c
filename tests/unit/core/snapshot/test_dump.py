"""What is written of a state: nothing is forgotten."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.snapshot import dump as state

# Attributes that are made again when a state is loaded, or that are written in a form of their own.
ASK_OTHER = """
    app spec retried key items shape batch node evict_cause evicted_by evicted_for line_key nomination reserved_on
    replaces bound_for watches where
"""
APP_OTHER = """
    id spec queue state state_log rejected asks consumed batches line pending_count allocated placeholders
    allocations allowance placeholder_count groups swapping priority order_key stamp out_of_line by_priority
    retried touched awaited_by gives_way_to
"""
QUEUE_OTHER = """
    name parent path state children applications lineage properties template allocating_accepted by_rank owes
    owed_below under_guarantee idle
    shifts_priority order_moves allocated preempting pending_sum running improved
    promised priority_counts raw_priority reported demands ready full due due_below waiting gated reserved heap
    child_heap tidy_at
    apps_heap resting changed_children changed_apps changed_leaves stamp stamps touched share_terms
"""
NODE_OTHER = """
    id spec seq labels keeps_away schedulable total occupied available free held allocations foreign
    reservations score_terms weight_sum emptiest_first stamp row
"""
PARTITION_OTHER = """
    admission name spec root timers out next_seq now_ms nodes applications ended rejected shapes trackers unseen
    nominations uncounted rested_at disruption held_asks idle reserving swappable homeless homeless_at
    shares_stale keeps_history books_version tightened news above_guarantee
"""


@pytest.mark.parametrize(
    ("cls", "written", "other"),
    [
        (Ask, tuple(state.ASK_STATE), ASK_OTHER),
        (Application, state.APP_STATE, APP_OTHER),
        (Queue, state.QUEUE_STATE + state.QUEUE_BOOKS, QUEUE_OTHER),
        (Node, (), NODE_OTHER),
    ],
)
@pytest.mark.plain
def test_every_attribute_is_state_or_named_as_made_again(cls: Any, written: tuple[str, ...], other: str) -> None:
    """A new attribute stands in a list of `core.snapshot.dump` and is written, or above, and is made again."""
    assert sorted([*written, *other.split()]) == sorted(
        name for each in cls.__mro__ for name in getattr(each, "__slots__", ())
    )


def test_every_field_of_a_partition_is_state_or_named_as_made_again() -> None:
    """The same for the partition, which is a dataclass."""
    names = [f.name for f in dataclasses.fields(Partition)]
    assert sorted([*state.PARTITION_STATE, *PARTITION_OTHER.split()]) == sorted(names)
