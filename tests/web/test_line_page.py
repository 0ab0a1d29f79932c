"""The page of the line: where it goes on."""

from __future__ import annotations

from fairlead.web.colours import Colours
from fairlead.web.line_page import _line
from fairlead.wire.pages import InLine, LinePage


def test_the_next_page_begins_at_a_place() -> None:
    """It stays there, also when the jobs of this one have started meanwhile."""
    row = InLine(
        place=50,
        key="7",
        name="",
        user="ann",
        queue="root.a",
        resources={"cpu": 1},
        priority=0,
        effective=0,
        steps=[],
        owed=False,
        submitted_at_ms=0,
        visible=False,
        reason=None,
    )
    shown = str(_line(LinePage(line=[row], next="50-1234", total=80), Colours(()), None))
    assert 'href="/line?after=50"' in shown
