"""Twice the jobs are at most 2.3 times the work: nothing looks at all parts of an array for each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from benchmarks.linear import MOST
from testbed.paper import ANN, Service, spec
from testbed.steps import steps

from fairlead.core.model.conditions import Awaited, Dependency
from fairlead.local import requests
from fairlead.local.changes import Change, change
from fairlead.local.dependencies import circle, settle
from fairlead.local.history_records import ArraySpec, JobsCleaned
from fairlead.local.holding import hold
from fairlead.local.jobs import Jobs
from fairlead.local.submissions import Submissions
from fairlead.runtime import Refusal, Turn

FEW, MANY = 60, 200
MOST_OF_FOUR = 4.4
"""Times as much for four times the input: what is counted is the same each time."""
Work = Callable[[Service, int], int]


def array(service: Service, count: int, **fields: object) -> str:
    """Of so many parts, which wait for their release."""
    return service.submit(array=ArraySpec(indices=f"1-{count}", at_once=0), **({"hold": True} | fields))


def counted(service: Service, act: Callable[[Turn], object]) -> int:
    """Steps of an act in the turn of the writer."""
    found: int = service.do(lambda turn: steps(lambda: act(turn)))
    return found


def parts_of(service: Service, act: Callable[[Jobs, Turn, str], object], key: str) -> int:
    """Steps of an act for each part."""
    jobs = service.place.jobs
    return counted(service, lambda turn: [act(jobs, turn, job.key) for job in jobs.of(key)])


def leaves_the_book(service: Service, count: int) -> int:
    key = array(service, count)
    parts_of(service, lambda jobs, turn, each: requests.cancel(jobs, turn, ANN, each), key)
    return counted(service, lambda turn: turn.note(JobsCleaned(before_ms=2**50, uid=None, who="ann")))


def ends_while_another_waits_for_it(service: Service, count: int) -> int:
    key = array(service, count)
    service.submit(after=(Dependency(application=key, awaited=Awaited.ANY),))

    def end(jobs: Jobs, turn: Turn, each: str) -> int:
        requests.cancel(jobs, turn, ANN, each)
        return steps(lambda: settle(jobs, turn))

    jobs = service.place.jobs
    found: int = service.do(lambda turn: sum(end(jobs, turn, job.key) for job in jobs.of(key)))
    return found


def waits_for_what_ended(service: Service, count: int) -> int:
    keys = [service.submit(hold=True) for _ in range(count)]
    service.do(lambda turn: [requests.cancel(service.place.jobs, turn, ANN, key) for key in keys])
    waits = spec(after=tuple(Dependency(application=key, awaited=Awaited.ANY) for key in keys))
    return counted(service, lambda turn: requests.submit(service.place.jobs, turn, ANN, [waits]))


def each_part_waits_for_one(service: Service, count: int) -> int:
    first, then = array(service, count), array(service, count)

    def look(jobs: Jobs, turn: Turn, each: str) -> None:
        awaited = each.replace(f"{then}.", f"{first}.")
        assert not circle(jobs, turn.scheduler, each, [Dependency(application=awaited, awaited=Awaited.ANY)])

    return parts_of(service, look, then)


def many_jobs_a_few_a_turn(service: Service, count: int) -> int:
    intake = requests.Intake(ANN, [spec(hold=True) for _ in range(count)])

    def enter(turn: Turn) -> None:
        while intake.step(service.place.jobs, turn, 1) is None:
            pass

    return counted(service, enter)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "work",
    [
        leaves_the_book,
        ends_while_another_waits_for_it,
        waits_for_what_ended,
        each_part_waits_for_one,
        many_jobs_a_few_a_turn,
    ],
)
def test_twice_as_many_are_twice_the_work(service: Service, work: Work) -> None:
    """The first run fills what is kept between runs."""
    work(service, FEW)
    once = work(service, FEW)
    assert work(service, 4 * FEW) <= MOST_OF_FOUR * once


def another_priority(service: Service, count: int) -> int:
    key = array(service, count)
    return parts_of(service, lambda jobs, turn, each: change(jobs, turn, ANN, each, Change(priority=3)), key)


def another_time_to_begin(service: Service, count: int) -> int:
    key = array(service, count, hold=False, begin_ms=2**46)
    return parts_of(service, lambda jobs, turn, each: change(jobs, turn, ANN, each, Change(begin_ms=2**47)), key)


def hold_of_what_begins_later(service: Service, count: int) -> int:
    key = array(service, count, hold=False, begin_ms=2**46)
    return parts_of(service, lambda jobs, turn, each: hold(jobs, turn, ANN, each), key)


@pytest.mark.thorough
@pytest.mark.parametrize("work", [another_priority, another_time_to_begin, hold_of_what_begins_later])
def test_a_change_of_each_held_part_is_linear(service: Service, work: Work) -> None:
    """An order for each of N parts that are not in line."""
    work(service, MANY)
    once = work(service, MANY)
    assert work(service, 2 * MANY) <= MOST * once


def test_a_submission_is_known_until_its_last_job_has_left_the_book() -> None:
    """With all that it ever had, or a repeated request would submit again what left first."""
    named = Submissions()
    for key in "abc":
        named.add(1, "r", "d", key)
    named.remove(1, "r")
    again = Submissions.load(named.dump(), ("a", "c"))  # type: ignore[arg-type]
    for each in (named, again):
        assert each.find(1, "r") == ("d", ("a", "b", "c"))
        each.remove(1, "r")
        each.remove(1, "r")
        assert each.find(1, "r") is None


def test_a_refused_cancel_says_each_state_once(service: Service) -> None:
    """However often a request names it: 25,000 times it was 250 KB of answer."""
    key, states = service.submit(hold=True), ("running", "stopping") * 3
    with pytest.raises(Refusal, match=f"job {key} is waiting by now, not running or stopping; it was left alone"):
        service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key, states))
