"""The cluster: numbers that only go up, one time for all, and decisions handed out once."""

from __future__ import annotations

import pytest

from fairlead.core.books.cluster import Cluster
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.specs import ClusterSpec, PartitionSpec
from fairlead.scheduler import Scheduler


def test_time_never_goes_back() -> None:
    """And says from when to when it would have."""
    cluster = Cluster()
    cluster.set_time(10)
    cluster.set_time(10)
    with pytest.raises(ValueError, match="time goes back from 10 ms to 9 ms"):
        cluster.set_time(9)
    assert cluster.now_ms == 10


def test_all_partitions_have_one_time() -> None:
    spec = ClusterSpec(partitions=(PartitionSpec(name="default"), PartitionSpec(name="gpu")))
    cluster = Scheduler(spec).cluster
    cluster.set_time(7)
    assert [partition.now_ms for partition in cluster.partitions.values()] == [7, 7]


def test_no_number_is_given_twice() -> None:
    """The order of arrival goes through all partitions."""
    spec = ClusterSpec(partitions=(PartitionSpec(name="default"), PartitionSpec(name="gpu")))
    cluster = Scheduler(spec).cluster
    one, other = cluster.partitions.values()
    given = [one.next_seq(), other.next_seq(), cluster.next_seq()]
    assert given == sorted(set(given))
    assert cluster.last_seq == given[-1]


def test_what_was_decided_is_handed_out_once_and_in_order() -> None:
    cluster = Cluster()
    first, second = Allocated("a", "1", "n"), Allocated("a", "2", "n")
    cluster.out += [first, second]
    assert cluster.drain_out() == [first, second]
    assert cluster.drain_out() == []
