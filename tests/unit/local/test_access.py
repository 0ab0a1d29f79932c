"""Who may see and act on a job: its owner, administrators of its queue, administrators of the service."""

from __future__ import annotations

import pytest

from fairlead.config import load_text
from fairlead.local.callers import Caller, Rights, administrators, whose
from fairlead.local.history_records import JobSpec
from fairlead.local.job import Job
from fairlead.scheduler import Scheduler

TEXT = """
partitions:
  - name: default
    queues:
      - name: root
        adminacl: "chief"
        queues:
          - name: team
            adminacl: "lead staff"
            submitacl: "bob"
            queues:
              - name: day
          - name: other
            submitacl: "ada"
"""


def rights(user: str, *groups: str, uid: int = 50, admin: bool = False) -> Rights:
    return Rights(Caller(user, uid, admin, groups=groups), Scheduler(load_text(TEXT)))


def job(queue: str, user: str = "ada", uid: int = 1) -> Job:
    spec = JobSpec(key="7", user=user, uid=uid, groups=("users",), command=("/bin/true",), queue=queue)
    return Job(spec=spec, submitted_at_ms=0, priority=0, queue=queue)


@pytest.mark.parametrize(
    ("who", "day", "other"),
    [
        (rights("ada", uid=1), True, True),
        (rights("lead"), True, False),
        (rights("eve", "staff"), True, False),
        (rights("eve", "users"), False, False),
        (rights("chief"), True, True),
        (rights("bob"), False, False),
        (rights("root", admin=True), True, True),
    ],
    ids=["owner", "admin of a queue above", "his group", "another group", "admin of the root", "submitter", "service"],
)
def test_owners_and_administrators_up_the_tree_may_act(who: Rights, day: bool, other: bool) -> None:
    """On the lists of the job's queue or of one above it; who may only submit sees nobody else's work."""
    assert (who.may_act(job("root.team.day")), who.may_act(job("root.other"))) == (day, other)


def test_of_a_queue_that_is_gone_those_above_it_count() -> None:
    """Its job can still be seen."""
    assert rights("lead").may_act(job("root.team.gone.deep"))
    assert not rights("lead").may_act(job("root.gone"))
    assert rights("chief").may_act(job("root.gone"))


def test_a_job_without_a_queue_belongs_to_the_root() -> None:
    """It was refused before it had one."""
    assert administrators(Scheduler(load_text(TEXT)), "") == ("chief",)


def test_work_goes_where_its_owner_may_submit_or_the_mover_is_administrator() -> None:
    """Nobody puts work where neither of the two has a say."""
    scheduler = Scheduler(load_text(TEXT))
    find = scheduler.cluster.partitions["default"].root.find
    day, other = find("root.team.day"), find("root.other")
    assert day is not None
    assert other is not None
    assert rights("ada", uid=1).may_move_to(job("root.team.day"), other)
    assert not rights("ada", uid=1).may_move_to(job("root.other"), day)
    assert rights("lead").may_move_to(job("root.other"), day)
    assert rights("lead").may_move_to(job("root.team.day"), other)
    assert not rights("lead").may_move_to(job("root.team.day", "bob", 2), other)


def test_whose_business_a_job_is_can_be_carried_away() -> None:
    """For readers of the stream, who are judged without the books."""
    found = whose(Scheduler(load_text(TEXT)), job("root.team.day"))
    assert found.is_for(Caller("ada", 1))
    assert found.is_for(Caller("eve", 9, groups=("staff",)))
    assert not found.is_for(Caller("bob", 2))
