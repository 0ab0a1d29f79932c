"""What once broke a law of rank, cut down to what matters (`laws.md`): each goes by now as told there, lawfully."""

from __future__ import annotations

from pathlib import Path

import pytest
from worked_examples import Example, Line, Performance, read_page

from fairlead.core.model.events import AddApplication
from fairlead.core.model.specs import ApplicationSpec
from fairlead.scheduler import Scheduler

EXAMPLES = read_page(Path(__file__).with_name("laws.md"))[1]


class Lawful(Performance):
    """After each run looking again must change nothing, whether something was read back, forgotten, or has come."""

    def do(self, line: Line) -> None:
        super().do(line)
        if line.words[0] == "run":
            now_ms = self.course.now_ms
            fresh = Scheduler.load(self.course.scheduler.dump())
            assert not fresh.schedule(now_ms), f"{line.number}: once it was read back"
            fresh.forget()
            assert not fresh.schedule(now_ms), f"{line.number}: once it forgot"
            fresh.handle(AddApplication(ApplicationSpec(id="new", queue=self.queue_of_nothing())), now_ms)
            assert not fresh.schedule(now_ms), f"{line.number}: once something had come"

    def queue_of_nothing(self) -> str:
        """A leaf that takes applications."""
        [*_, leaf] = self.course.scheduler.cluster.partitions["default"].root.walk()
        return leaf.path


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_it_goes_as_told(example: Example) -> None:
    """Every line, in order."""
    Lawful(example).go()
