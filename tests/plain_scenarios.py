"""Scenarios given as plain values, read by the reader of scenario files and run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fairlead.sim.outcome import Unblock
from fairlead.sim.scenario import run_steps
from fairlead.sim.steps import Scenario, read_scenarios


def as_scenario(plain: object) -> Scenario:
    """Raises `ScenarioError` with the path of what is wrong."""
    return next(read_scenarios(iter([json.dumps(plain).encode()]), "scenario"))


def run_scenario(plain: Mapping[str, Any], unblock: Unblock | None = None) -> dict[str, Any]:
    return run_steps(as_scenario(plain), unblock=unblock)
