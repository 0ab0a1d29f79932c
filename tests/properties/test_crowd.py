"""Crowded clusters: what is remembered changes no decision (`crowd_memory`), and the laws hold (`crowd_laws`)."""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules
from typing import Any

import pytest
from portions import in_portions, share, where_compiled
from properties.crowd import WAYS
from properties.crowd_laws import CrowdedCourse
from properties.crowd_memory import STEPS, TwoMemories, main
from properties.crowd_wide import WIDE_FROM
from properties.rank_courses import command_line, rules_of_configuration

from fairlead.core.model.events import AddNode, RemoveNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec
from fairlead.scheduler import Scheduler

QUICK = 12
OF_EACH_RULE = (1, WIDE_FROM + 4, 2, WIDE_FROM + 9, 3, WIDE_FROM + 5)[: share(6)]
"""Courses in which the laws are watched: of those that do not take long."""
ONCE_DIFFERENT = (84, 439, 554, 651, 661, 2036, 1094, 102358, 16, 31, 46, 49, 93, 99, 110)
"""Courses that differed once. In the first three idle work was reclaimed sooner or later than in its turn, for the sake
of an ask that requires its node; then nothing was stopped for an ask that had a node set aside, since nothing could be
for its like; applications rested for asks that had not had their turn, or waited for that of another; nothing was
stopped for an ask since nothing could be for an older one; work that may pass a kept turn was not looked at again when
more should have ended; and in the others an ask had a node set aside that was not the first of its size any more.
"""


@pytest.fixture(autouse=True)
def _ways() -> Iterator[None]:
    """The numbers that a course draws are as before afterwards."""
    before = {(module, name): getattr(modules[module], name) for module, names in WAYS.items() for name in names}
    yield
    for (module, name), value in before.items():
        setattr(modules[module], name, value)


@where_compiled
@pytest.mark.timeout(14_400)
def test_forgetting_changes_no_decision(pytestconfig: pytest.Config) -> None:
    """In every course; enough is started in them for that to mean something. Some have everything in them."""
    asked: int | None = pytestconfig.getoption("--steps")
    courses = max(asked // STEPS, 1) if asked else QUICK
    started = 0
    for number in (*range(courses), *range(WIDE_FROM + 4, WIDE_FROM + 4 + courses // 4)):
        course = TwoMemories(number)
        assert course.take() == "", f"course {number}"
        started += course.crowd.started
    assert started > 30 * courses


@pytest.mark.thorough
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("rule", rules_of_configuration())
def test_the_laws_of_rank_hold_in_a_crowd(rule: str) -> None:
    """Each of them is a law of `rank_courses`."""
    for number in OF_EACH_RULE:
        course = CrowdedCourse(rule, number).take()
        assert not course.broken, f"{rule} course {number}: {[*course.broken.values()]}"
        assert course.counts["Allocated"] > 20


@pytest.mark.thorough
@pytest.mark.parametrize("number", in_portions(ONCE_DIFFERENT, 4))
def test_what_differed_once_does_so_no_more(number: int) -> None:
    assert TwoMemories(number).take() == ""


@pytest.mark.parametrize("given", [["9", "5"], ["5", "5"], ["-1", "3"]])
@pytest.mark.parametrize("rule", ["", "both"])
def test_a_last_course_before_the_first_is_refused(
    rule: str, given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With what the number means, by either program."""
    with pytest.raises(SystemExit) as ended:
        command_line(CrowdedCourse, "crowds", [rule, *given]) if rule else main(given)
    assert ended.value.code == 2
    assert "COURSES of `make crowds`) is the number after that of the last course, not how" in capsys.readouterr().err


@pytest.mark.plain
def test_a_decision_that_depends_on_what_is_remembered_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the course, the time, and both decisions."""
    monkeypatch.setattr(Scheduler, "forget", lambda self: self.handle(RemoveNode("n1"), self.cluster.now_ms))
    assert main(["3", "4"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("course 3 at 0 ms, schedule: [")
    assert said[-1] == "1 courses (3 to 3), 1 differ"


@pytest.mark.plain
def test_a_law_that_a_crowd_breaks_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With rule, course, step, and what happened."""

    def with_more_room(state: dict[str, Any]) -> Scheduler:
        read = load(state)
        read.handle(
            AddNode(NodeSpec(id="more", capacity=Resources({"vcore": 10**6, "memory": 10**6}))), state["now_ms"]
        )
        return read

    load = Scheduler.load
    monkeypatch.setattr(Scheduler, "load", with_more_room)
    assert command_line(CrowdedCourse, "crowds", ["both", "200004", "200005"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("both course 200004, step ")
    assert "looking-again: once it was read back: Allocated(" in said[0]
    assert said[-1].startswith("1 of 1 courses under both broke a law, ")
