"""The page that tells one run: its example runs as told, and its steps are those of the cycle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from worked_examples import Example, Performance, read_text

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-it-decides.md"
CYCLE = ROOT / "src" / "fairlead" / "policy" / "cycle.py"
_STEP = re.compile(r"^(\d)\. .*?(?=^\d\. |^#|\Z)", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"\]\(\.\./(src/[\w/]+\.py)\)")


def section(heading: str) -> str:
    """The text below one heading, to the next."""
    return PAGE.read_text(encoding="utf-8").split(f"{heading}\n", 1)[1].split("\n#", 1)[0]


def told() -> Example:
    """The blocks of the example, which goes on between the paragraphs, as one."""
    text = PAGE.read_text(encoding="utf-8")
    queues = re.findall(r"^```yaml\n.*?^```\n", text, re.MULTILINE | re.DOTALL)
    parts = re.findall(r"^```example how-it-decides\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL)
    assert len(queues) == 1
    assert len(parts) >= 3
    [example] = read_text(f"{queues[0]}\n```example how-it-decides\n{''.join(parts)}```\n", PAGE.name)[1]
    return example


def test_the_example_runs_as_told() -> None:
    """From the first block to the last."""
    Performance(told()).go()


def test_a_wrong_example_would_be_found() -> None:
    """The check sees what it claims to see."""
    example = told()
    wrong = [line for line in example.lines if line.words != ("gone", "r/low")]
    with pytest.raises(AssertionError):
        Performance(Example(example.page, example.name, example.config, example.configs, tuple(wrong))).go()


def test_the_steps_are_those_of_the_cycle() -> None:
    """As many, numbered alike, and each links to a module that the cycle takes the step from."""
    code = CYCLE.read_text(encoding="utf-8")
    numbers = re.findall(r"^ +# (\d)\. ", code, re.MULTILINE)
    steps = [match.group() for match in _STEP.finditer(section("## From the books to a decision"))]
    assert [step[0] for step in steps] == numbers
    for step in steps:
        modules = [Path(path).stem for path in _FILE.findall(step)]
        assert modules, f"{step} links to no file"
        for module in modules:
            assert re.search(rf"^from fairlead\.policy\.\w+\.{module} import", code, re.MULTILINE), (
                f"{module} is no step"
            )


@pytest.mark.parametrize("heading", ["## From an event to the books", "### One turn"])
def test_each_step_links_to_its_file(heading: str) -> None:
    """That the files are there is checked with all other links."""
    steps = [match.group() for match in _STEP.finditer(section(heading))]
    assert len(steps) >= 4
    assert all(_FILE.findall(step) for step in steps)
