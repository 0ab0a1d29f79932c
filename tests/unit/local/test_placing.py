"""What becomes of a submission: its queue, what chose it, or a refusal that says what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.config import load_text
from fairlead.core.model.conditions import Awaited, Conditions, Dependency
from fairlead.core.model.decisions import ApplicationAccepted, ApplicationRejected
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, SetQuota
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, QuotaSpec
from fairlead.local import placing as deciding
from fairlead.local.callers import Caller, Rights
from fairlead.local.history_records import JobSpec
from fairlead.local.placing import NO_QUEUE, SUBMIT_DENIED, Placing, application_of
from fairlead.runtime import Refusal
from fairlead.scheduler import Scheduler

OPEN = """
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - {name: default, submitacl: "*"}
          - name: team
            submitacl: "bob staff"
            queues: [{name: day}, {name: night}]
"""
RULES = """
partitions:
  - name: default
    placementrules:
      - {name: tag, value: project, create: true, parent: {name: fixed, value: root.projects}}
      - {name: user, filter: {type: allow, users: [bob]}}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: projects, parent: true}, {name: bob}]
"""


def job(queue: str = "", user: str = "ada", groups: tuple[str, ...] = (), **tags: str) -> JobSpec:
    return JobSpec(key="1", user=user, uid=1, groups=groups, command=("/bin/true",), queue=queue, tags=tags)


def plan(scheduler: Scheduler, specs: list[JobSpec]) -> list[Placing]:
    return deciding.plan(scheduler, specs, Rights(Caller("ada", 1), scheduler))


def placed(text: str, spec: JobSpec) -> tuple[str, str]:
    scheduler = Scheduler(load_text(text))
    [placing] = plan(scheduler, [spec])
    assert placing.denial is None
    [accepted] = scheduler.handle(AddApplication(application_of(placing.job(placing.spec.key))), 1)[-1:]
    assert isinstance(accepted, ApplicationAccepted)
    return accepted.queue, placing.rule


def test_a_queue_is_found_by_the_end_of_its_name() -> None:
    """In any case; without a name the default one is."""
    assert placed(OPEN, job("Team.Day", "bob")) == ("root.team.day", "the request")
    assert placed(OPEN, job("root.default")) == ("root.default", "the request")
    assert placed(OPEN, job()) == ("root.default", "the default")


def test_placement_rules_choose_and_are_named() -> None:
    """With their number in the file."""
    assert placed(RULES, job(project="x")) == ("root.projects.x", "placement rule 1 (tag project)")
    assert placed(RULES, job(user="bob")) == ("root.bob", "placement rule 2 (user)")


def test_who_may_not_submit_is_told_which_queue_would_have_to_name_him() -> None:
    """A queue that is named is never exchanged for the default one."""
    scheduler = Scheduler(load_text(OPEN))
    [placing] = plan(scheduler, [job("root.team.day", groups=("users",))])
    denial = placing.denial
    assert denial is not None
    assert (denial.code, denial.queue, denial.by_scheduler) == (SUBMIT_DENIED, "root.team.day", False)
    assert "ada" in denial.sentence
    assert "users" in denial.sentence
    assert "submitacl of root.team.day" in denial.sentence
    assert plan(scheduler, [job("root.team.day", groups=("staff",))])[0].denial is None


def test_no_rule_for_a_job_is_said_rule_by_rule() -> None:
    """And the scheduler refuses it too."""
    scheduler = Scheduler(load_text(RULES))
    [placing] = plan(scheduler, [job()])
    assert placing.denial is not None
    assert (placing.denial.code, placing.denial.by_scheduler) == (NO_QUEUE, True)
    assert "rule 1 (tag project)" in placing.denial.sentence
    assert "rule 2 (user)" in placing.denial.sentence
    [rejected] = scheduler.handle(AddApplication(application_of(placing.job(placing.spec.key))), 1)
    assert isinstance(rejected, ApplicationRejected)


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("root.teem.day", "no queue root.teem.day; name one, such as root.team.day"),
        ("root.team", "root.team has queues below it; name one of them"),
        ("Team", "root.team has queues below it; name one of them"),
        ("nowhere", "no queue nowhere"),
    ],
)
def test_a_queue_that_is_none_is_refused_with_some_that_are(queue: str, said: str) -> None:
    """Where no rules choose, it is a mistake of the request, and nothing is entered."""
    with pytest.raises(Refusal, match=said) as refused:
        plan(Scheduler(load_text(OPEN)), [job("root.default"), job(queue, "bob")])
    assert (refused.value.code, refused.value.field) == ("invalid", "jobs[1].queue")


def test_only_queues_that_the_user_may_use_are_named() -> None:
    """Whether the queue is wrong or missing; and what to do where there is none."""
    text = OPEN.replace("{name: default, ", "{name: other, ")

    def said(user: str, queue: str = "", text: str = text) -> str:
        with pytest.raises(Refusal) as refused:
            plan(Scheduler(load_text(text)), [job(queue, user)])
        return refused.value.message

    begin = "there is no root.default, where jobs go that name no queue; name one"
    assert said("ada") == f"{begin}, such as root.other"
    assert said("bob") == f"{begin}, such as root.other, root.team.day or root.team.night"
    assert said("ada", "root.nope") == "there is no queue root.nope; name one, such as root.other"
    closed = text.replace('submitacl: "*"', "submitacl: carl")
    assert said("ada", text=closed) == f"{begin}: but there is none to which ada may submit; ask an administrator"


def test_a_queue_that_drains_is_suggested_to_nobody() -> None:
    s = Scheduler(load_text(OPEN))
    s.handle(AddApplication(ApplicationSpec(id="old", queue="root.team.day", user="bob")), 0)
    s.handle(Configure(load_text(OPEN.replace("{name: day}, ", ""))), 0)
    said = "root.team.day is draining and takes nothing new; name another one, such as root."
    for name in ("root.team.day", "team.day"):
        with pytest.raises(Refusal) as refused:
            plan(s, [job(name, "bob")])
        assert refused.value.message.startswith(said)
        assert not refused.value.message.startswith(f"{said}team.day")


def test_asking_changes_nothing() -> None:
    """Not even the queues that would be made."""
    scheduler = Scheduler(load_text(RULES))
    before = scheduler.dump()
    plan(scheduler, [job(project="x"), job(user="bob"), job()])
    assert scheduler.dump() == before


def test_what_is_held_at_first_needs_no_room_in_quotas() -> None:
    """It does not run beside what it waits for, be that of the same submission."""
    scheduler = Scheduler(load_text(OPEN))
    scheduler.handle(SetQuota(QuotaSpec(name="q", queue="root.default", resources=Limits({"vcore": 1000}))), 0)
    first = replace(job(), resources=Resources({"vcore": 1000}))
    scheduler.handle(AddApplication(ApplicationSpec(id="7", queue="root.default", user="ada")), 0)
    scheduler.handle(AddAsks((AskSpec(application="7", key="7", resources=first.resources),)), 0)
    held = [
        replace(first, hold=True),
        replace(first, begin_ms=5_000),
        replace(first, after=(Dependency(application="7"),)),
        replace(first, after=(Dependency(application="#0"),)),
        *(replace(first, after=(Dependency(application=part),)) for part in ("8.1", "8.2", "8.%a")),
    ]
    scheduler.handle(AddApplication(ApplicationSpec(id="8", queue="root.default", user="ada")), 0)
    for key in ("8.1#2", "8.2"):
        ask = AskSpec(application="8", key=key, resources=first.resources, conditions=Conditions(held_by="ada"))
        scheduler.handle(AddAsks((ask,)), 0)
    assert [placed.denial for placed in plan(scheduler, held)] == [None] * 7
    scheduler.handle(AddNode(NodeSpec(id="n", capacity=first.resources)), 0)
    scheduler.schedule(0)
    started = replace(first, after=(Dependency(application="7", awaited=Awaited.STARTED),))
    again = replace(first, after=(Dependency(application="8.1", awaited=Awaited.STARTED),))  # In its second attempt.
    over = [replace(first, after=(Dependency(application=name),)) for name in ("6", "8.3")]
    for now in (first, started, again, replace(first, begin_ms=-1), *over):
        [placed] = plan(scheduler, [now])
        assert placed.denial is not None
        assert placed.denial.code == "quota-exceeded"
