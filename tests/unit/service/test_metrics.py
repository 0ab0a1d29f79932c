"""One scrape has each series once, whatever queues are called and wherever they are."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec
from fairlead.runtime.measures import Measures
from fairlead.scheduler import Scheduler
from fairlead.service import metrics, views
from fairlead.service.yunikorn import figures
from fairlead.service.yunikorn.history import HistoryRecords


def series(*partitions: PartitionSpec) -> Counter[tuple[str, str]]:
    """How often each was said."""
    scheduler = Scheduler(ClusterSpec(partitions=partitions), 1000)
    history = HistoryRecords(lambda: scheduler)
    theirs = figures.families(scheduler, history, Measures())
    text = metrics.exposed([*metrics._queues(views.queue_views(scheduler)), *theirs]).decode()
    families = text_string_to_metric_families(text)
    return Counter((one.name, str(sorted(one.labels.items()))) for family in families for one in family.samples)


def partition(name: str, *leaves: str) -> PartitionSpec:
    below = tuple(QueueSpec(name=leaf) for leaf in leaves)
    return PartitionSpec(name=name, root=QueueSpec(name="root", parent=True, submit_acl="*", queues=below))


def test_queues_of_several_partitions_are_told_apart() -> None:
    """Each was there twice, and Prometheus took one of the two."""
    found = series(partition("default", "a"), partition("other", "a"))
    assert [each for each, count in found.items() if count > 1] == []
    asked = [labels for name, labels in found if name == "fairlead_queue_waiting" and "'root.a'" in labels]
    assert len(asked) == 2


def test_names_that_metrics_cannot_tell_apart_are_one() -> None:
    """A family with the name of another was said once more."""
    found = series(partition("default", "a-b", "a_b"))
    assert [each for each, count in found.items() if count > 1] == []


def test_what_idle_jobs_use_beside_the_others_is_said() -> None:
    """What the leaves used did not come to what the nodes gave out."""
    scheduler = Scheduler(ClusterSpec(partitions=(partition("default", "a"),)), 1000)
    (tree,) = views.queue_views(scheduler)
    (leaf,) = tree.children
    tree = replace(tree, children=[replace(leaf, allocated={"cpu": 1}, idle={"cpu": 2})])
    text = metrics.exposed(metrics._queues([tree])).decode()
    assert 'kind="idle",partition="default",queue="root.a",resource="cpu"} 2.0' in text
