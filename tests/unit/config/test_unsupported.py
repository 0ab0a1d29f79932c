from __future__ import annotations

import pytest

from fairlead.config import load_text
from fairlead.config.load import not_yet
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec

OPEN = "partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a, %s}]}]}]"
PARTITION = "partitions: [{queues: [{name: root, submitacl: '*'}], %s}]"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (PARTITION % "usergroupresolver: {type: os}", "partitions[0].usergroupresolver"),
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
        PARTITION % "limits: [{users: [u], maxapplications: 1}]",
        OPEN % "limits: [{users: [u], groups: [g], maxresources: {vcore: 1}}]",
        OPEN % "submitacl: alice",
        OPEN % "properties: {priority.offset: 5, application.sort.policy: fair, preemption.policy: default}",
        OPEN % "resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}, maxapplications: 3",
        "partitions: [{queues: [{name: a, submitacl: '*'}, {name: b, adminacl: '*'}]}]",
    ],
)
def test_what_is_done_passes(text: str) -> None:
    """Placement, access and templates are followed."""
    assert not_yet(load_text(text)) == []


def test_a_spec_that_was_not_read_from_text_is_checked_too() -> None:
    """Its places are made up from the structure."""
    root = QueueSpec(name="root", parent=True, submit_acl="*")
    (problem,) = not_yet(ClusterSpec(partitions=(PartitionSpec(root=root, user_group_resolver="os"),)))
    assert problem.path == "partitions[0].usergroupresolver"


def test_groups_of_the_system_are_for_places_that_know_its_users() -> None:
    """There `os` is what is done; another resolver is refused there too."""
    system, ldap = (load_text(PARTITION % f"usergroupresolver: {{type: {kind}}}") for kind in ("os", "ldap"))
    assert not_yet(system, knows_groups=True) == []
    assert len(not_yet(ldap, knows_groups=True)) == 1
