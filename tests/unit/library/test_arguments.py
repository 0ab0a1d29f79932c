"""Arguments that are refused before anything is taken in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairlead
from fairlead.core.model.events import LabelNode, Release
from fairlead.scheduler import Scheduler

ONE_QUEUE = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: work}]}]}]"
CORE = fairlead.Resources({"vcore": 1000})


class Lab:
    """A service by hand, and what it starts."""

    def __init__(self) -> None:
        self.started: list[str] = []
        told = self

        class Callbacks(fairlead.SilentCallbacks):
            def update_allocation(self, response: fairlead.AllocationResponse) -> None:
                told.started += [new.key for new in response.new]

        self.service = fairlead.SchedulerService(automatic=False)
        self.service.register_resource_manager("rm", ONE_QUEUE, Callbacks())
        self.service.update_node("rm", create=[fairlead.NodeSpec(id="n", capacity=fairlead.Resources({"vcore": 9000}))])
        self.service.update_application("rm", new=[fairlead.ApplicationSpec(id="job", queue="root.work")])

    def ask(self, key: str, **more: Any) -> fairlead.AskSpec:
        return fairlead.AskSpec(application="job", key=key, resources=CORE, **more)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("priority", None, "AskSpec 'bad': priority is None, and must be int"),
        ("priority", "5", "priority is '5', and must be int"),
        ("priority", 1.5, "priority is 1.5, and must be int"),
        ("time_limit_ms", "60s", "time_limit_ms is '60s', and must be int"),
        ("tags", None, "tags is None, and must be Mapping"),
        ("labels", None, "labels is None, and must be Mapping"),
        ("where", None, "where is None, and must be Constraints"),
        ("retry", 3, "retry is 3, and must be RetrySpec"),
        ("idle", "no", "idle is 'no', and must be bool"),
        ("node", 5, "node is 5, and must be str"),
        ("task_group", None, "task_group is None, and must be str"),
        ("tags", {"namespace": 5}, r"tags\['namespace'\] is 5, and must be str"),
        ("labels", {1: "a"}, "a name in labels is 1, and must be str"),
        ("images", ("a", None), r"images\[1\] is None, and must be str"),
        ("retry", fairlead.RetrySpec(limit=1, never_on=("137",)), r"retry.never_on\[0\] is '137', and must be int"),  # type: ignore[arg-type]
        ("where", fairlead.Constraints(tolerations=("gpu",)), r"where.tolerations\[0\] is 'gpu', and must be Tol"),  # type: ignore[arg-type]
        ("where", fairlead.Constraints(tolerations=[]), r"where.tolerations is \[\], and must be tuple"),  # type: ignore[arg-type]
    ],
)
def test_a_field_with_something_else_than_it_is_for(field: str, value: Any, said: str) -> None:
    """It is named; nothing of the request was taken in, and the next one is as ever."""
    lab = Lab()
    with pytest.raises(TypeError, match=said):
        lab.service.update_allocation("rm", asks=[lab.ask("good"), lab.ask("bad", **{field: value})])
    assert lab.service.step(9) == 0
    lab.service.update_allocation("rm", asks=[lab.ask("good"), lab.ask("bad")])
    assert lab.service.step(9) == 2
    assert lab.started == ["good", "bad"]


@pytest.mark.plain
def test_what_does_as_well() -> None:
    """Numbers of NumPy, and a list where a tuple is meant. (Compiled, a spec with a list cannot be made.)"""
    lab = Lab()
    more = {"priority": np.int64(3), "idle": np.bool_(False), "time_limit_ms": np.int32(60_000), "images": ["a"]}
    lab.service.update_application("rm", new=[fairlead.ApplicationSpec(id="b", queue="root.work", groups=["g"])])  # type: ignore[arg-type]
    lab.service.update_allocation("rm", asks=[lab.ask("one", **more)])
    assert lab.service.step(9) == 1
    with lab.service.books("rm") as scheduler:
        assert Scheduler.load(scheduler.dump()).dump() == scheduler.dump(), "no question could be tried on a copy"


def test_what_is_no_such_thing_at_all() -> None:
    """An event where a spec is meant, a cause as a text: it would have been taken for no end that is known."""
    lab = Lab()
    with pytest.raises(TypeError, match=r"is no AskSpec"):
        lab.service.update_allocation("rm", asks=[Release("job", "one")])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"Release 'one': cause is 'FINISHED', and must be Cause"):
        lab.service.update_allocation("rm", releases=[Release("job", "one", "FINISHED")])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"NodeSpec 'm': attributes is None, and must be Mapping"):
        lab.service.update_node("rm", create=[fairlead.NodeSpec(id="m", capacity=CORE, attributes=None)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"LabelNode 'n': taints is None, and must be tuple"):
        lab.service.update_node("rm", label=[LabelNode("n", {}, None)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"ApplicationSpec 'b': at_once is None, and must be int"):
        lab.service.update_application("rm", new=[fairlead.ApplicationSpec(id="b", at_once=None)])  # type: ignore[arg-type]


def test_callbacks_that_lack_one() -> None:
    """It is named at once: later, what was decided would have nobody to be told to."""

    class Half:
        def update_allocation(self, response: fairlead.AllocationResponse) -> None: ...

    with fairlead.SchedulerService() as service:
        with pytest.raises(TypeError, match="lack update_application, update_node and send_event"):
            service.register_resource_manager("rm", ONE_QUEUE, Half())  # type: ignore[arg-type]
        service.register_resource_manager("rm", ONE_QUEUE, fairlead.SilentCallbacks())


def test_a_name_that_is_no_text() -> None:
    """It is said at once: beside names that are texts it cannot be put in order, which breaks off a turn."""
    lab = Lab()
    with pytest.raises(TypeError, match="NodeSpec 7: id is 7, and must be str"):
        lab.service.update_node("rm", create=[fairlead.NodeSpec(id=7, capacity=CORE)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ApplicationSpec 'b': queue is None, and must be str"):
        lab.service.update_application("rm", new=[fairlead.ApplicationSpec(id="b", queue=None)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"ApplicationSpec 'b': groups\[0\] is 100, and must be str"):
        lab.service.update_application("rm", new=[fairlead.ApplicationSpec(id="b", groups=(100,))])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="7 is no name: ids"):
        lab.service.update_node("rm", drain=["n", 7])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="7 is no name: ids"):
        lab.service.update_node("rm", update={7: CORE})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="None is no name: ids, and names of partitions"):
        lab.service.update_allocation("rm", asks=[lab.ask("good")], partition=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="1 is no name of a resource"):
        lab.service.update_node("rm", create=[fairlead.NodeSpec(id="m", capacity=fairlead.Resources({1: 5}))])  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="a queue file is given as text"):
        lab.service.update_configuration("rm", Path("queues.yaml"))  # type: ignore[arg-type]
    lab.service.update_allocation("rm", asks=[lab.ask("good")])
    assert lab.service.step(9) == 1
