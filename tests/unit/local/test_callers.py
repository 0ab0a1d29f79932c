"""`fairlead.local.callers`: for whom jobs of others exist."""

from __future__ import annotations

import itertools

import pytest
from unit.local.test_jobs import spec

from fairlead.core.model.events import AddNode, Configure
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.local.callers import Caller, Rights, whose
from fairlead.local.job import Job
from fairlead.scheduler import Scheduler

QUEUES = ("root.a", "root.a.b", "root.c", "root.gone")
NAMES = ("root", "ann", "head", "else", "ada")
CALLERS = {
    "ann": Caller("ann", 1),
    "of the service": Caller("root", 0, is_admin=True),
    "of root.a": Caller("head", 2),
    "of root.a by a group": Caller("else", 3, groups=("staff",)),
    "own jobs alone": Caller("head", 2, owner_only=True),
    "within a queue": Caller("head", 2, within="root.a.b"),
    "head of a queue": Caller("ann", 1, within="root.c", heads_it=True),
    "a guest": Caller("", -1, may_submit=False),
}


def scheduler(acl: str) -> Scheduler:
    made = Scheduler()
    queues = (QueueSpec(name="a", admin_acl=acl, queues=(QueueSpec(name="b"),)), QueueSpec(name="c"))
    root = QueueSpec(name="root", queues=queues)
    made.handle(Configure(ClusterSpec(partitions=(PartitionSpec(root=root),), checksum="c")), 0)
    made.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1000}))), 0)
    return made


@pytest.mark.parametrize("acl", ["", "head", " staff", "*"])
@pytest.mark.parametrize("name", CALLERS)
def test_for_whom_no_job_of_others_exists_there_is_none(name: str, acl: str) -> None:
    """Only the jobs of such a caller are looked at: none that it may see would be missing."""
    caller = CALLERS[name]
    rights = Rights(caller, scheduler(acl))
    seen = {
        uid
        for uid, queue in itertools.product((0, 1, 2, 3, 4), QUEUES)
        if rights.may_act(Job(spec("1", uid=uid, user=NAMES[uid], queue=queue), 0, 0, queue))
    }
    if not rights.may_act_on_others():
        assert seen <= {caller.uid}


def test_most_see_their_own_alone() -> None:
    """Or the rule would be one that says nothing."""
    assert not Rights(CALLERS["ann"], scheduler("head")).may_act_on_others()
    assert not Rights(CALLERS["own jobs alone"], scheduler("head")).may_act_on_others()
    assert Rights(CALLERS["of root.a"], scheduler("head")).may_act_on_others()
    assert Rights(CALLERS["within a queue"], scheduler("head")).may_act_on_others()


def test_everybody_is_no_guest() -> None:
    """Who says no name sees of the jobs of a queue that all users administer what users see of those of others."""
    job = Job(spec("1", uid=1, queue="root.a"), 0, 0, "root.a")
    assert Rights(CALLERS["of root.a"], scheduler("*")).may_act(job)
    assert not Rights(CALLERS["a guest"], scheduler("*")).may_act(job)


def test_who_has_the_number_of_a_removed_user_sees_none_of_its_jobs() -> None:
    """That is somebody else, to whom the number was given later; a number without a name is nobody else."""
    job, made = Job(spec("1", uid=1, user="ann", queue="root.a"), 0, 0, "root.a"), scheduler("")
    bob, nameless = Caller("bob", 1), Caller("uid-1", 1)
    assert not Rights(bob, made).may_act(job)
    assert not bob.may_see(job)
    assert not whose(made, job).is_for(bob)
    for other in (CALLERS["ann"], nameless):  # Accounts may not be found for a while.
        assert Rights(other, made).may_act(job)
        assert whose(made, job).is_for(other)
    unnamed = Job(spec("1", uid=1, user="uid-1", queue="root.a"), 0, 0, "root.a")
    assert Rights(bob, made).may_act(unnamed)
