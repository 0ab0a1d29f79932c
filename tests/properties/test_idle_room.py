"""That no node has room even without its idle work spares a search, and changes no decision."""

from __future__ import annotations

import pytest
from properties.rank_courses import decided_in

from fairlead.core.books.idle_work import IdleWork
from fairlead.core.model.resources import Items


@pytest.mark.plain
@pytest.mark.parametrize("rule", ["guarantee", "both"])
def test_a_search_that_is_spared_would_find_nothing(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same is decided where every node with idle work is searched each time."""
    numbers = (1, 2, 5)
    quick = [decided_in(rule, number) for number in numbers]
    usual, spared = IdleWork.may_make_room, 0

    def always(idle: IdleWork, items: Items, version: int) -> bool:
        nonlocal spared
        spared += not usual(idle, items, version)
        return True

    monkeypatch.setattr(IdleWork, "may_make_room", always)
    assert [decided_in(rule, number) for number in numbers] == quick
    assert spared > 0
