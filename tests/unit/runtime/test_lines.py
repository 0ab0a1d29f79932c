"""Who waits, in turns by user."""

from __future__ import annotations

from fairlead.runtime.lines import SERVICE, Lines

ANN, BOB, CAROL = 1, 2, 3


def test_lines_have_their_turns() -> None:
    """One thing each, whatever came first; what comes meanwhile has its turn after those that wait already."""
    lines: Lines[str] = Lines()
    for number in range(5):
        lines.add(ANN, f"ann {number}")
    lines.add(BOB, "bob 0")
    lines.add(SERVICE, "service 0")
    lines.add(BOB, "bob 1")
    found = [lines.next() for _ in range(3)]
    assert found == ["ann 0", "bob 0", "service 0"]
    lines.add(CAROL, "carol 0")
    found = [lines.next() for _ in range(6)]
    assert found == ["ann 1", "bob 1", "carol 0", "ann 2", "ann 3", "ann 4"]
    assert not lines
    assert lines.next() is None


def test_who_comes_one_by_one_waits_for_one_of_each_other() -> None:
    """As one who reads while another one floods."""
    lines: Lines[str] = Lines()
    for _ in range(100):
        lines.add(ANN, "ann")
    waited = []
    for _ in range(20):
        lines.add(BOB, "bob")
        before = 0
        while lines.next() != "bob":
            before += 1
        waited.append(before)
    assert max(waited) == 1
