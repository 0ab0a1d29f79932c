"""Back-off: when an application rests, for how long, and what does not count."""

from __future__ import annotations

from fairlead.core.decisions import Allocated
from fairlead.core.events import AddApplication, AddAsks, AddNode
from fairlead.core.reasons import BackedOff
from fairlead.core.resources import Limits, Resources
from fairlead.core.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler


def cluster(after: int, most: int = 0) -> Scheduler:
    """Two nodes of 4 cores; applications of the leaf rest for 10 s after so many misses."""
    properties = {"application.unschedasks.backoff": str(after), "application.unschedasks.backoff.delay": "10s"}
    leaf = QueueSpec(name="leaf", properties=properties, max=Limits({"vcore": most}) if most else None)
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    for name in ("n0", "n1"):
        s.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 4}))), 0)
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.leaf")), 0)
    return s


def ask(s: Scheduler, *cores: int, at_ms: int = 0) -> None:
    """Asks of these sizes, named by their place."""
    known = len(s.cluster.partitions["default"].applications["a"].asks)
    sizes = enumerate(cores, known)
    asks = tuple(AskSpec(application="a", key=f"k{i}", resources=Resources({"vcore": size})) for i, size in sizes)
    s.handle(AddAsks(asks), at_ms)


def placed(s: Scheduler, at_ms: int) -> list[str]:
    """What a scheduling run places."""
    decided = s.schedule(at_ms)
    s.check()
    return [d.key for d in decided if isinstance(d, Allocated)]


def test_asks_behind_too_many_misses_are_not_looked_at() -> None:
    """The third would fit."""
    s = cluster(after=2)
    ask(s, 5, 6, 1)
    assert placed(s, 0) == []
    assert s.why("a", "k2") == BackedOff(10_000, 2)


def test_one_miss_fewer_lets_them_pass() -> None:
    """The threshold is what counts."""
    s = cluster(after=3)
    ask(s, 5, 6, 1)
    assert placed(s, 0) == ["k2"]


def test_the_rest_ends_by_itself() -> None:
    """With a timer; then the application is looked at again."""
    s = cluster(after=1)
    ask(s, 5, 1)
    placed(s, 0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 5}))), 1)
    assert placed(s, 9_999) == []
    assert s.next_wakeup_ms() == 10_000
    assert placed(s, 10_000) == ["k0", "k1"]


def test_a_new_ask_does_not_end_it() -> None:
    """The whole application rests."""
    s = cluster(after=1)
    ask(s, 5, 1)
    placed(s, 0)
    ask(s, 1, at_ms=5)
    assert placed(s, 5) == []


def test_misses_at_the_end_of_the_line_do_not_count() -> None:
    """There is nobody behind them who would have to wait for the search."""
    s = cluster(after=2)
    ask(s, 5, 6)
    placed(s, 0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 6}))), 1)
    assert placed(s, 1) == ["k0"]


def test_asks_that_the_queue_holds_back_are_no_misses() -> None:
    """No node was looked at for them."""
    s = cluster(after=1, most=4)
    ask(s, 5, 1)
    assert placed(s, 0) == ["k1"]
