"""Dynamic queues: what placement makes on the way, with which limits, and when it goes again."""

from __future__ import annotations

import json

import pytest
from invariants.books import check_books
from placed_applications import GANG, NO_RULE, PARENT, place, scheduler

from fairlead.config import load_text
from fairlead.core.books.guarantees import owed_leaves
from fairlead.core.model.decisions import Allocated, MoveRejected, QueueChanged
from fairlead.core.model.events import (
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    MoveApplication,
    RemoveApplication,
    UndrainNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, NodeSpec
from fairlead.scheduler import Scheduler

CREATE = [{"name": "provided", "create": True}]


def quota(**amounts: object) -> str:
    return json.dumps({"resources": {name: {"value": value} for name, value in amounts.items()}})


def limits(s: Scheduler, path: str) -> tuple[object, object, int]:
    queue = s.cluster.partitions["default"].root.find(path)
    assert queue is not None
    return queue.max, queue.guaranteed, queue.max_applications


def test_a_dynamic_leaf_takes_the_template_whole() -> None:
    """A made parent passes it on; a template of its own, even a smaller one, replaces it."""
    template = {
        "maxapplications": 2,
        "properties": {"priority.offset": "5", "": "x", "blank": " "},
        "resources": {"max": {"vcore": 4}, "guaranteed": {"vcore": 0}},
    }
    own = {"name": "own", "parent": True, "childtemplate": {"maxapplications": 7}}
    none = {"name": "none", "parent": True, "childtemplate": {"properties": {"": "x"}}}
    s = scheduler(CREATE, [{"name": "par", "parent": True, "childtemplate": template, "queues": [own, none]}])
    for i, path in enumerate(["root.par.x", "root.par.a.b", "root.par.none.z", "root.par.own.z"]):
        assert place(s, path, id=f"app-{i}") == path
    assert limits(s, "root.par.x") == limits(s, "root.par.a.b") == limits(s, "root.par.none.z")
    assert limits(s, "root.par.x") == ({"vcore": 4000}, None, 2)
    assert limits(s, "root.par.own.z") == (None, None, 7)
    assert limits(s, "root.par.a") == (None, None, 0)
    made = s.cluster.partitions["default"].root.find("root.par.x")
    assert made is not None
    assert made.properties.raw == {"priority.offset": "5"}


def test_a_dynamic_queue_inherits_no_properties() -> None:
    """Only a template gives it some."""
    queues = [{"name": "par", "parent": True, "properties": {"application.sort.policy": "fair"}}]
    assert place(scheduler(CREATE, queues), "root.par.x", placeholder_ask=GANG) == "root.par.x"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"namespace.resourcequota": quota(vcore=3000, memory=0)}, ({"vcore": 3000, "memory": 0}, None, 0)),
        ({"NAMESPACE.resourceguaranteed": quota(vcore=3)}, (None, {"vcore": 3}, 0)),
        ({"namespace.resourcemaxapps": "3"}, (None, None, 3)),
        ({"namespace.resourcemaxapps": "0"}, (None, None, 0)),
        ({"namespace.resourcemaxapps": "-1"}, (None, None, 0)),
        ({"namespace.resourcemaxapps": "²"}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=0)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=5, memory=-1)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=1.5)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=True)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=2**63)}, (None, None, 0)),
        ({"namespace.resourcequota": "null"}, (None, None, 0)),
        ({"namespace.resourcequota": "[" * 5000}, (None, None, 0)),
        ({"namespace.resourcequota": '{"resources": {"vcore": 3}}'}, (None, None, 0)),
    ],
)
def test_namespace_tags_limit_a_dynamic_leaf(tags: dict[str, str], expected: tuple[object, object, int]) -> None:
    """What cannot be read, or is not above zero, changes nothing."""
    s = scheduler(CREATE)
    assert place(s, "root.ns", tags=tags) == "root.ns"
    assert limits(s, "root.ns") == expected


def test_a_later_application_replaces_the_limits() -> None:
    """One kind that is stated clears the other; none that can be read leaves both."""
    s = scheduler(CREATE)
    place(s, "root.ns", tags={"namespace.resourcequota": quota(vcore=3)})
    place(s, "root.ns", id="b", tags={"namespace.resourcequota": "bad"})
    assert limits(s, "root.ns") == ({"vcore": 3}, None, 0)
    place(s, "root.ns", id="c", tags={"namespace.resourceguaranteed": quota(vcore=2)})
    assert limits(s, "root.ns") == (None, {"vcore": 2}, 0)


def test_a_queue_of_the_file_ignores_namespace_tags() -> None:
    """Its limits are the file's."""
    s = scheduler(CREATE)
    place(s, "root.leaf", tags={"namespace.resourcequota": quota(vcore=3)})
    assert limits(s, "root.leaf") == (None, None, 0)


def test_a_larger_quota_lets_waiting_work_start() -> None:
    """The old limit is no obstacle any more."""
    s = scheduler(CREATE)
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 9}))), 0)
    place(s, "root.ns", tags={"namespace.resourcequota": quota(vcore=1)})
    asks = tuple(AskSpec(application="app", key=f"a{i}", resources=Resources({"vcore": 1})) for i in range(3))
    s.handle(AddAsks(asks), 0)
    assert len(running(s)) == 1
    place(s, "root.ns", id="b", tags={"namespace.resourcequota": quota(vcore=3)})
    assert len(running(s)) == 3
    check_books(s)


def running(s: Scheduler) -> list[str]:
    s.schedule(s.cluster.now_ms)
    apps = s.cluster.partitions["default"].applications.values()
    return [a.key for app in apps for a in app.allocated_asks()]


def paths(s: Scheduler) -> list[str]:
    return [q.path for q in s.cluster.partitions["default"].root.walk()]


def test_made_queues_are_removed_when_they_are_empty() -> None:
    """At the next whole ten seconds, with the made ones above them."""
    s = scheduler(CREATE, [PARENT])
    place(s, "root.par.a.b")
    s.schedule(25_000)
    assert paths(s) == ["root", "root.par", "root.par.a", "root.par.a.b"]
    s.handle(RemoveApplication("app"), 25_000)
    assert s.next_wakeup_ms() == 30_000
    s.schedule(29_999)
    assert len(paths(s)) == 4
    removed = [d.queue for d in s.schedule(30_000) if isinstance(d, QueueChanged) and d.change == "removed"]
    assert removed == ["root.par.a.b", "root.par.a"]
    assert paths(s) == ["root", "root.par"]
    assert s.next_wakeup_ms() is None


def test_a_queue_that_is_used_again_stays() -> None:
    """It is looked at when the moment comes."""
    s = scheduler(CREATE)
    place(s, "root.x")
    s.handle(RemoveApplication("app"), 1000)
    place(s, "root.x")
    s.schedule(10_000)
    assert "root.x" in paths(s)


def test_a_queue_made_for_an_application_that_was_refused_goes_too() -> None:
    """Though it never had one."""
    s = scheduler(CREATE, childtemplate={"properties": {"application.sort.policy": "fair"}})
    assert place(s, "root.x", placeholder_ask=GANG).startswith("!")
    assert "root.x" in paths(s)
    s.schedule(10_000)
    assert "root.x" not in paths(s)


def test_nothing_is_made_below_a_queue_that_drains() -> None:
    """And an application is not placed into it, nor into one that was made below it before, by whatever way."""
    s = scheduler(CREATE)
    place(s, "root.leaf", id="old")
    place(s, "root.par.made", id="older")
    s.handle(
        Configure(
            load_text(
                json.dumps({"partitions": [{"placementrules": CREATE, "queues": [{"name": "root", "submitacl": "*"}]}]})
            )
        ),
        0,
    )
    assert place(s, "root.leaf") == NO_RULE
    assert "marked for deletion: root.par" in place(s, "root.par.new")
    assert place(s, "root.par.made") == NO_RULE
    place(s, "root.other", id="mover")
    [refused] = s.handle(MoveApplication("mover", "root.par.made", "admin"), 0)
    assert isinstance(refused, MoveRejected)
    assert refused.reason.sentence() == "queue root.par is draining and takes nothing new"
    part = s.cluster.partitions["default"]
    assert part.applications["older"].queue.path == "root.par.made", "what is in it goes on"


def test_a_larger_number_of_applications_lets_those_run_that_waited() -> None:
    s = scheduler(CREATE)
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 9}))), 0)
    for name in ("app", "second"):
        place(s, "root.ns", id=name, tags={"namespace.resourcemaxapps": "1"})
        s.handle(AddAsks((AskSpec(application=name, key=name, resources=Resources({"vcore": 1})),)), 0)
    assert running(s) == ["app"]
    stamp = s.cluster.partitions["default"].room_stamp
    place(s, "root.ns", id="third", tags={"namespace.resourcemaxapps": "2"})
    assert s.cluster.partitions["default"].room_stamp > stamp
    assert running(s) == ["app", "second"]


def test_shares_of_applications_are_measured_against_the_guarantee_of_now() -> None:
    """`cores` uses the least of what counts without a guarantee, and the most with it."""
    template = {"properties": {"application.sort.policy": "fair"}}
    s = scheduler(CREATE, [{"name": "par", "parent": True, "childtemplate": template}])
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 6, "gpu": 6}))), 0)
    for name, resource, count in (("cores", "vcore", 2), ("gpus", "gpu", 3)):
        place(s, "root.par.ns", id=name)
        one = Resources({resource: count})
        s.handle(AddAsks((AskSpec(application=name, key=f"{name}-1", resources=one),)), 0)
    assert running(s) == ["cores-1", "gpus-1"]
    for name in ("cores", "gpus"):
        s.handle(AddAsks((AskSpec(application=name, key=f"{name}-2", resources=Resources({"vcore": 1})),)), 0)
    s.handle(DrainNode("n"), 0)
    assert running(s) == ["cores-1", "gpus-1"]
    s.handle(UndrainNode("n"), 0)
    place(s, "root.par.ns", id="b", tags={"namespace.resourceguaranteed": quota(vcore=1, gpu=100)})
    started = [d.key for d in s.schedule(0, 1) if isinstance(d, Allocated)]
    assert started == ["gpus-2"]


def test_the_share_of_a_queue_is_measured_against_its_guarantee_of_now() -> None:
    """It uses more than the other one, but a smaller part of what it is guaranteed."""
    s = scheduler(CREATE)
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 9}))), 0)
    for name, count in (("ns", 2), ("leaf", 1)):
        place(s, f"root.{name}", id=name)
        s.handle(AddAsks((AskSpec(application=name, key=f"{name}-0", resources=Resources({"vcore": count})),)), 0)
    assert sorted(running(s)) == ["leaf-0", "ns-0"]
    s.handle(DrainNode("n"), 0)
    for name in ("ns", "leaf"):
        s.handle(AddAsks((AskSpec(application=name, key=f"{name}-1", resources=Resources({"vcore": 1})),)), 0)
    running(s)
    s.handle(UndrainNode("n"), 0)
    place(s, "root.ns", id="b", tags={"namespace.resourceguaranteed": quota(vcore=100)})
    assert [d.key for d in s.schedule(0, 1) if isinstance(d, Allocated)] == ["ns-1"]


def test_a_guarantee_that_a_made_queue_has_counts_for_the_rank() -> None:
    """By its template, by the tags of an application, and no longer once those give none (`preemption.rule: both`)."""
    template = {"resources": {"guaranteed": {"vcore": 2}}}
    queues = [
        {"name": "root", "submitacl": "*", "queues": [{"name": "par", "parent": True, "childtemplate": template}]}
    ]
    part = {"preemption": {"rule": "both"}, "placementrules": CREATE, "queues": queues}
    s = Scheduler(load_text(json.dumps({"partitions": [part]})))

    def owed() -> list[str]:
        return [leaf.name for leaf in owed_leaves(s.cluster.partitions["default"].root)]

    def submit(path: str, **tags: str) -> None:
        name = path.rpartition(".")[2] + str(len(tags))
        assert place(s, path, id=name, tags=tags) == path
        s.handle(AddAsks((AskSpec(application=name, key=name, resources=Resources({"vcore": 1000})),)), 0)
        check_books(s)

    submit("root.par.x")
    assert owed() == ["x"]
    submit("root.y")
    assert owed() == ["x"]
    submit("root.y", **{"namespace.resourceguaranteed": quota(vcore=1000)})
    assert owed() == ["x", "y"]
    submit("root.y", **{"namespace.resourcequota": quota(vcore=4000), "other": "tag"})
    assert owed() == ["x"]
