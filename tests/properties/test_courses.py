"""Many courses in portions: all are taken, what broke a law is told with the command that repeats it."""

from __future__ import annotations

import pytest
from properties.courses import Portion, main, portions, run, take


def test_every_course_is_in_one_portion_of_each_rule() -> None:
    """One number says how far all rules are."""
    made = portions(["a", "b"], 5, 12, 5)
    assert made == [Portion("a", 5, 10), Portion("b", 5, 10), Portion("a", 10, 12), Portion("b", 10, 12)]


def test_a_broken_course_is_told_with_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Once for each course, however many laws it broke."""

    def taking(portion: Portion) -> str:
        if portion.rule == "both":
            return "both course 7, step 1: rest: x\nboth course 7, step 1: books: y\nthe count"
        return "the count"

    assert run(["priority", "both"], 0, 20, jobs=2, taking=taking) == 1
    said = capsys.readouterr().out.splitlines()
    assert said.count("   again: .venv/bin/python tests/properties/rank_courses.py both 7 8") == 1
    assert said[-1] == "both: 20 courses (0 to 19), 1 broke a law"
    assert said[-2] == "priority: 20 courses (0 to 19), 0 broke a law"


def test_a_portion_is_taken_in_a_process_of_its_own() -> None:
    """Its last line is the count."""
    assert take(Portion("guarantee", 0, 1)).splitlines()[-1].endswith("of 1 courses under guarantee broke a law")
    [crash, count] = take(Portion("no such rule", 0, 1)).splitlines()
    assert "invalid choice" in crash, "what it said last is one line, which is told as any other"
    assert count == "1 of them died"


@pytest.mark.parametrize("given", [["10", "--first", "3000"], ["3000", "--first", "3000"], ["3", "--first", "-1"]])
def test_a_last_course_before_the_first_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With what the number means: it is easily taken for how many."""
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    assert "not how many" in capsys.readouterr().err
