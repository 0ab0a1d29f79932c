"""docs/scenarios.md: the scenario on the page runs as the page says, and every step and field is on it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from plain_scenarios import as_scenario

from fairlead.sim.compare import check
from fairlead.sim.steps import AnyStep, AskStep

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
SCENARIOS = re.findall(r"<!-- scenario (\S+) -->\n```json\n(.*?)```", PAGE, re.DOTALL)
CLOCK_ONLY = {"noSettle", "real"}
"""Fields that mean nothing in virtual time."""


@pytest.mark.parametrize(("name", "text"), SCENARIOS)
def test_it_comes_out_as_the_page_says(name: str, text: str) -> None:
    """And something else would be noticed."""
    scenario = as_scenario(json.loads(text))
    assert scenario.name == name
    assert scenario.expect
    assert check(scenario).found == ()
    wrong = msgspec.structs.replace(scenario, expect=scenario.expect | {"nominated": {"low": "n1"}})
    assert check(wrong).failed


def test_there_is_one() -> None:
    """Otherwise nothing was tested."""
    assert SCENARIOS


def test_every_step_is_on_the_page_with_its_fields() -> None:
    """A field that is not described might as well not be there."""
    for step in get_args(AnyStep):
        info = msgspec.inspect.type_info(step)
        assert isinstance(info, msgspec.inspect.StructType)
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{info.tag}`"))
        described = PAGE if step is AskStep else row + "`app`"
        fields = {field.encode_name for field in info.fields} - CLOCK_ONLY
        assert not [name for name in fields if f"`{name}`" not in described and f"`{name}:" not in described], info.tag
