"""Answers in the names of jobs."""

from __future__ import annotations

import pytest

from fairlead.insight.by_job import by_job
from fairlead.wire.verdicts import Part, Way


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("runs if 3#2 were gone; that would stop 4#13, 12.7#2", "runs if 3 were gone; that would stop 4, 12.7"),
        ("17/17#2", "17/17"),
        ("root.3#2", "root.3#2"),
        ("vendor.io/a:3#2", "vendor.io/a:3#2"),
        ("job-3#2", "job-3#2"),
    ],
)
def test_only_names_of_attempts_change(said: str, told: str) -> None:
    """A queue may have such a sign in its name."""
    assert by_job([{"values": said}]) == [{"values": told}]


def test_a_queue_file_keeps_its_text() -> None:
    """It is what can be patched with it."""
    way = Way(
        dimension="cancel",
        sentence="runs if 3#2 were gone",
        action="cancel 3#2",
        parts=[Part("cancel", "3/3#2", 0, 1)],
        node=None,
        evicts=[],
        violates=[],
        smallest=True,
        by="asker",
        price=5,
        stops=1,
        difference="+ # as in 3#2",
    )
    told = by_job(way)
    assert (told.action, told.parts[0].subject, told.difference) == ("cancel 3", "3/3", "+ # as in 3#2")
