"""The page of all jobs: what it offers to choose from."""

from __future__ import annotations

import re
from typing import cast

import pytest

from fairlead.cli.filters import ENDED_STATES, LIVE_STATES
from fairlead.client import AsyncClient
from fairlead.web.jobs_page import _filters
from fairlead.web.viewer import Kind, Viewer


@pytest.mark.parametrize(
    ("of", "states"),
    [
        ("machine", {*LIVE_STATES, *ENDED_STATES}),
        ("cluster", {"waiting", "running", "stopping"}),
        ("course", {"waiting", "running", "stopping"}),
    ],
)
def test_the_states_to_choose_from_are_those_that_listed_jobs_have(of: Kind, states: set[str]) -> None:
    """No job of a machine is `deleted`; pods that have ended are in no list."""
    shown = str(_filters(Viewer("", "ann", False, cast(AsyncClient, None), of), {}, []))
    assert set(re.findall(r'<option value="(\w+)"', shown)) == states
