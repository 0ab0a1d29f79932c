"""Constraints among everything else: reservations, preemption by both rules, quotas, a new queue file now and then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invariants.books import check_books
from properties.course import NODES, Course
from reference.test_constraints import Chance

from fairlead.core.model.events import AddAsks, AddNode, Event, LabelNode
from fairlead.core.model.reasons import NextInLine

STEPS_EACH = 150


class ConstrainedCourse(Course):
    """A course in which every node says something of itself, and most asks have constraints."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.said = Chance(number)

    def handle(self, event: Event) -> None:
        if isinstance(event, AddNode):
            event = AddNode(replace(event.node, attributes=self.said.attributes(), taints=self.said.taints()))
        elif isinstance(event, AddAsks):
            asks = (replace(ask, labels=self.said.labels(), where=self.said.where()) for ask in event.asks)
            event = replace(event, asks=tuple(asks))
        super().handle(event)

    def note(self, decisions: list[object]) -> None:
        """After each call: the books are right, and when nothing more is decided nothing that fits is left waiting."""
        super().note(decisions)
        check_books(self.scheduler)

    def settle(self) -> None:
        """Go on until nothing more is decided, or for a while; then look at everybody who waits."""
        for _ in range(20):
            decided = self.scheduler.schedule(self.now_ms)
            if not decided:
                break
            self.note(list(decided))
        else:
            return
        for app in self.scheduler.cluster.partitions["default"].applications.values():
            for ask in app.asks.values():
                reason = self.scheduler.why(app.id, ask.key)
                assert not isinstance(reason, NextInLine), f"{ask} would fit and is left waiting"

    def relabel(self) -> None:
        """Some node says something else of itself."""
        node = f"n{self.chance.randrange(NODES)}"
        self.handle(LabelNode(node, self.said.attributes(), self.said.taints()))


@pytest.mark.timeout(1800)
def test_nothing_that_suits_and_fits_is_left_waiting(steps: int) -> None:
    """Whatever made room, or changed who suits, has woken who waited for it."""
    for number in range(max(steps // 2_000, 1)):
        course = ConstrainedCourse(number)
        course.run(0)
        for _ in range(STEPS_EACH):
            course.now_ms += course.chance.choice([0, 1, 100, 3_000, 20_000])
            for event in course.events():
                course.handle(event)
            if course.said.random() < 0.05:
                course.relabel()
            course.settle()
        assert course.counts["Allocated"] > 10
