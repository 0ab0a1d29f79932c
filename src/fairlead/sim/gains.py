"""Gains: who waits less and who waits longer under another queue file, by queue and user, as a picture of bars.

Decides whose change is shown (the largest), in which order (who gains most comes first) and on which scale. Never
computes a wait. Invariant: bars to the left wait less, bars to the right longer; a bar is as long as the change is, on
one scale for a whole picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from fairlead.sim import plots
from fairlead.sim.verdicts import WORTH_SAYING, Outcome, Row, breakdown, counted

LESS_COLOUR, MORE_COLOUR = "#2f9e44", "#e8590c"
BY = ("queue", "user")
SHOWN_MAX = 12
_LINE, _NAMES, _VALUES = 20, 200, 170
"""How high a line is; how wide the names on the left and the values on the right are."""


def changed(first: Outcome, other: Outcome, by: str) -> list[Row]:
    """Those whose mean wait is another by a second or more, who gains most first; of many the largest changes."""
    found = [row for row in breakdown([first, other], by) if abs(_change(row)) >= 1]
    found.sort(key=lambda row: (-abs(_change(row)), row.name))
    return sorted(found[:SHOWN_MAX], key=lambda row: (_change(row), row.name))


def _change(row: Row) -> float:
    old, new = row.values
    return 0.0 if old is None or new is None else new - old


def never_start(first: Outcome, other: Outcome, by: str) -> list[tuple[str, int]]:
    """Of which clearly more tasks never start (or are refused): they have no wait; those of most first."""
    old, new = (
        {name: each["tasks"] - (each["started"] or {"count": 0})["count"] for name, each in groups.items()}
        for groups in (o["figures"]["waits_by"][by] for o in (first, other))
    )
    more = [(name, count - old.get(name, 0)) for name, count in new.items()]
    found = [(name, count) for name, count in more if count > WORTH_SAYING * new[name]]
    return sorted(found, key=lambda each: (-each[1], each[0]))[:SHOWN_MAX]


def drawing(first: Outcome, other: Outcome) -> plots.Drawing:
    """The changes by queue, then those by user."""
    groups = [(by, changed(first, other, by)) for by in BY]
    most = max((abs(_change(row)) for _, found in groups for row in found), default=1.0)
    y, parts = 4, []
    for by, found in groups:
        silent = never_start(first, other, by)
        if not found and not silent:
            continue
        parts.append(f'<text class="tick" x="8" y="{y + 14}">mean wait by {by}</text>')
        y += _LINE
        for row in found:
            parts += _bar(row, y, most)
            y += _LINE
        for name, count in silent:
            said = f"{counted(count, 'task')} more never {'starts' if count == 1 else 'start'}"
            parts.append(
                f'<text class="tick" x="{_NAMES - 8}" y="{y + 13}" text-anchor="end">{escape(_short(name))}</text>'
            )
            parts.append(f'<text class="tick" x="{_NAMES + 8}" y="{y + 13}">{said}</text>')
            y += _LINE
        y += 8
    if not parts:
        parts, y = ['<text class="tick" x="8" y="18">no queue and no user waits longer or less</text>'], 28
    return plots.Drawing(f"who gains and who pays with {other['name']}", y, "".join(parts))


def _bar(row: Row, y: int, most: float) -> Iterator[str]:
    left, right = _NAMES, plots.WIDTH - _VALUES
    middle, change = (left + right) / 2, _change(row)
    wide = max(abs(change) / most * (right - left) / 2, 0.7)
    x, colour = (middle - wide, LESS_COLOUR) if change < 0 else (middle, MORE_COLOUR)
    name = _short(row.name)
    said = f"{row.text(0)} → {row.text(1)}"
    base = plots.number(middle)
    yield f'<text class="tick" x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
    yield f'<line class="axis" x1="{base}" x2="{base}" y1="{y}" y2="{y + _LINE}"/>'
    rect = f'x="{plots.number(x)}" y="{y + 3}" width="{plots.number(wide)}" height="{_LINE - 6}" fill="{colour}"'
    yield f"<rect {rect}><title>{escape(f'{row.name}: {said}')}</title></rect>"
    yield f'<text class="tick" x="{right + 8}" y="{y + 13}">{escape(said)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= 28 else "…" + name[-27:]


def drawings(outcomes: Sequence[Outcome]) -> list[tuple[str, plots.Drawing]]:
    """One for each outcome but the first, with its heading."""
    first = outcomes[0]
    return [(f"{other['name']} against {first['name']}", drawing(first, other)) for other in outcomes[1:]]
