"""The line and what waits in each queue, worked out the quick way, held against the plain one over random states."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from properties import mixed as courses
from properties.course import Course

from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import idle_key
from fairlead.core.books.partition import Partition
from fairlead.core.model.events import AddAsks, SetPriority
from fairlead.core.model.resources import Resources, add_to, pruned
from fairlead.core.model.specs import AskSpec
from fairlead.insight import line
from fairlead.policy.order.effective_priority import path_of
from fairlead.policy.order.keys import application_key, ask_key, queue_key
from fairlead.scheduler import Scheduler

STATES = 60


def state(kind: str, number: int) -> Scheduler:
    if kind != "plain":
        return courses.mixed(number).scheduler
    course = Course(number)
    course.run(25)
    return course.scheduler


def place(ask: Ask) -> Any:
    """Where an ask stands, by the orders alone: idle work after all else."""
    return (1, idle_key(ask)) if ask.spec.idle else (0, of_its_own(ask))


def of_its_own(ask: Ask) -> Any:
    """Among what is not idle."""
    leaf = ask.app.queue
    if leaf.by_rank:
        return path_of(ask)
    app = ask.app
    # What the scheduler keeps counts: of an application that waits for kept room alone there is nothing newer.
    key = application_key(app) if app.touched or not app.order_key else app.order_key
    return (*(queue_key(queue) for queue in reversed(leaf.lineage[:-1])), ask_key(ask, key))


def all_that_waits(partition: Partition) -> list[Ask]:
    return [ask for app in partition.applications.values() for ask in app.asks.values() if ask.pending]


def amount(asks: list[Ask]) -> dict[str, int]:
    book: dict[str, int] = {}
    for ask in asks:
        add_to(book, ask.items)
    return pruned(book)


def before_it_ran(scheduler: Scheduler, number: int) -> None:
    """Something comes, and something changes its place, that no run has looked at yet."""
    partition, chance = scheduler.cluster.partitions["default"], random.Random(number)
    for app in [app for app in partition.applications.values() if app.asks][:4]:
        size, own = Resources({"vcore": chance.choice((1, 2, 1000))}), chance.choice(list(app.asks))
        new = AskSpec(application=app.id, key="new", resources=size, priority=chance.randint(-3, 9))
        scheduler.handle(AddAsks((new,)), partition.now_ms)
        scheduler.handle(SetPriority(app.id, own, chance.randint(-5, 9)), partition.now_ms)


@pytest.mark.parametrize("kind", ["plain", "mixed", "owed"])
def test_the_line_and_its_sums_are_those_of_the_books(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "owed":
        owed = tuple(replace(each, rule="both", guarantees=True) for each in courses.ABOUT)
        monkeypatch.setattr(courses, "ABOUT", owed)
    seen = 0
    for number in range(STATES):
        scheduler = state(kind, number)
        if number % 2:
            before_it_ran(scheduler, number)
        partition = scheduler.cluster.partitions["default"]
        waiting = sorted(all_that_waits(partition), key=place)
        seen += len(waiting) > 2
        for most in (1, 3, 1000):
            assert line.in_line(partition, most) == waiting[:most], number
        sums = line.pending(partition)
        for queue in partition.root.walk():
            below = [ask for ask in waiting if queue in ask.app.queue.lineage]
            assert (pruned(sums[queue][0]), sums[queue][1]) == (amount(below), len(below)), (number, queue.path)
        assert line.waiting(partition) == len(waiting)
    assert seen > STATES // 10, "too few states in which much waits"
