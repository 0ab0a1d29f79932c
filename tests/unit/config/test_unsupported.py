from __future__ import annotations

import pytest

from fairlead.config import load_text
from fairlead.config.unsupported import not_yet
from fairlead.core.specs import ClusterSpec, LimitSpec, PartitionSpec, QueueSpec

OPEN = "partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a, %s}]}]}]"
PARTITION = "partitions: [{queues: [{name: root, submitacl: '*'}], %s}]"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (PARTITION % "placementrules: [{name: provided}, {name: user}]", "partitions[0].placementrules[1]"),
        (PARTITION % "placementrules: [{name: provided, create: true}]", "partitions[0].placementrules[0]"),
        (PARTITION % "limits: [{users: [u], maxapplications: 1}]", "partitions[0].limits[0]"),
        (PARTITION % "preemption: {quotapreemptionenabled: true}", "partitions[0].preemption.quotapreemptionenabled"),
        (PARTITION % "usergroupresolver: {type: os}", "partitions[0].usergroupresolver"),
        (OPEN % "adminacl: boss", "partitions[0].queues[0].queues[0].adminacl"),
        (OPEN % "limits: [{users: [u], maxapplications: 1}]", "partitions[0].queues[0].queues[0].limits[0]"),
        (OPEN % "childtemplate: {maxapplications: 1}", "partitions[0].queues[0].queues[0].childtemplate"),
        (
            OPEN % "properties: {preemption.policy: fence}",
            'partitions[0].queues[0].queues[0].properties["preemption.policy"]',
        ),
        (
            OPEN % "properties: {preemption.delay: 5s}",
            'partitions[0].queues[0].queues[0].properties["preemption.delay"]',
        ),
        (
            OPEN % "properties: {quota.preemption.delay: 5s}",
            'partitions[0].queues[0].queues[0].properties["quota.preemption.delay"]',
        ),
    ],
)
def test_what_would_be_ignored_is_refused_with_its_place(text: str, place: str) -> None:
    """One problem, an error, that begins with `not yet`."""
    (problem,) = not_yet(load_text(text), "q.yaml")
    assert (problem.path, problem.severity, problem.line) == (place, "error", 1)
    assert problem.message.startswith("not yet: ")


@pytest.mark.parametrize(
    "text",
    [
        PARTITION % "placementrules: [{name: Provided}]",
        OPEN % "submitacl: alice",
        OPEN % "properties: {priority.offset: 5, application.sort.policy: fair, preemption.policy: default}",
        OPEN % "resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}, maxapplications: 3",
        "partitions: [{queues: [{name: a, submitacl: '*'}, {name: b, adminacl: '*'}]}]",
    ],
)
def test_what_is_done_passes(text: str) -> None:
    """An access list below an open queue changes nothing, so it is not ignored."""
    assert not_yet(load_text(text)) == []


def test_each_leaf_that_is_not_open_to_all_is_named() -> None:
    """Below a closed root the open child passes."""
    queues = "{name: a, submitacl: alice}, {name: b}, {name: c, submitacl: '*'}"
    text = f"partitions: [{{queues: [{{name: root, queues: [{queues}]}}]}}]"
    assert [p.path for p in not_yet(load_text(text))] == [
        "partitions[0].queues[0].queues[0].submitacl",
        "partitions[0].queues[0].queues[1].submitacl",
    ]


def test_a_spec_that_was_not_read_from_text_is_checked_too() -> None:
    """Its places are made up from the structure."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", limits=(LimitSpec(users=("u",), max_applications=1),))
    (problem,) = not_yet(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    assert problem.path == "partitions[0].queues[0].limits[0]"
