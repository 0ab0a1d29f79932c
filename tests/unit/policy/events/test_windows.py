"""Orders about windows: what is refused changes nothing; what is changed or removed counts at once."""

from __future__ import annotations

from priority_clusters import PriorityCluster

from fairlead.core.model.decisions import DeclarationChanged, DeclarationRejected, WindowClosed, WindowOpened
from fairlead.core.model.events import RemoveWindow, SetWindow
from fairlead.core.model.reasons import WindowAhead
from fairlead.core.model.specs import WindowSpec

W = WindowSpec(name="w", starts_ms=1_000, length_ms=1_000)


def test_it_is_said_what_became_of_it() -> None:
    """Added, changed, removed; the same again is no change."""
    c = PriorityCluster()
    other = WindowSpec(name="w", starts_ms=2_000, length_ms=1_000)
    for event in (SetWindow(W, "ann"), SetWindow(W), SetWindow(other, "bob"), RemoveWindow("w", "ann")):
        c.handle(event)
    told = [(d.name, d.change, d.who) for d in c.decided if isinstance(d, DeclarationChanged)]
    assert told == [("w", "added", "ann"), ("w", "changed", "bob"), ("w", "removed", "ann")]


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    c = PriorityCluster()
    c.submit("a", 1)
    c.handle(SetWindow(WindowSpec(name="w", starts_ms=0, length_ms=0)))
    c.handle(RemoveWindow("nope"))
    assert [d.kind for d in c.decided if isinstance(d, DeclarationRejected)] == ["window", "window"]
    assert c.run()[0] == ["a@n1"]


def test_removed_while_it_is_open_it_closes_and_what_waits_starts() -> None:
    c = PriorityCluster()
    c.handle(SetWindow(W))
    c.submit("a", 1)
    assert c.run(1_500) == ([], [])
    assert isinstance(c.s.why("a", "a"), WindowAhead)
    c.handle(RemoveWindow("w"))
    assert [type(d) for d in c.decided if isinstance(d, WindowOpened | WindowClosed)] == [WindowOpened, WindowClosed]
    assert c.run()[0] == ["a@n1"]
