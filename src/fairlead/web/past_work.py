"""What a queue file would have made of past work: sentences, and who gains and who pays as bars.

Decides whose change is shown (the largest), in which order (who gains most comes first) and on which scale. Every
figure is the service's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlead.web.frame import Row, table
from fairlead.web.html import Html, div, element, h3, joined, p, strong
from fairlead.web.words import counted, duration, short_queue
from fairlead.web.words import time as moment
from fairlead.wire.configuration import ConfigPast, MeanWaits

SHOWN = 12
LEAST_MS = 1_000
"""Below this nobody minds."""
HEADS = (("", "whole"), ("Waits less · waits longer", "bar"), ("Now", "num"), ("With this file", "num"))


class _Changed(NamedTuple):
    by_ms: int
    told: MeanWaits


def on_past_work(found: ConfigPast) -> Html:
    """All of it."""
    head, *rest = found.sentences or ["Nothing of it started."]
    tried = [f"Tried on {counted(found.tasks, 'job')} that ran or waited since ", moment(found.since_ms, "date"), "."]
    return joined(
        p(strong(head)),
        [p(each) for each in rest],
        div(
            _means("Mean wait by queue", found.queues, is_queue=True),
            _means("Mean wait by user", found.users, is_queue=False),
            class_="pair",
        ),
        p(tried, class_="quiet small"),
        element("ul", [element("li", note) for note in found.notes], class_="quiet small") if found.notes else None,
    )


def _means(title: str, means: Sequence[MeanWaits], *, is_queue: bool) -> Html | None:
    changed = [
        _Changed(each.then_ms - each.now_ms, each)
        for each in means
        if each.now_ms is not None and each.then_ms is not None and abs(each.then_ms - each.now_ms) >= LEAST_MS
    ]
    if not changed:
        return None
    changed.sort(key=lambda each: (-abs(each.by_ms), each.told.name))
    shown = sorted(changed[:SHOWN], key=lambda each: (each.by_ms, each.told.name))
    most = max(abs(each.by_ms) for each in shown)
    rows = [_row(each, most, short_queue(each.told.name) if is_queue else each.told.name) for each in shown]
    return div(h3(title), table(HEADS, rows, title))


def _row(each: _Changed, most: int, name: str) -> Row:
    told = each.told
    words = f"{name} waits {duration(abs(each.by_ms))} {'less' if each.by_ms < 0 else 'longer'}"
    part = 50 * abs(each.by_ms) / most
    left = 50 - part if each.by_ms < 0 else 50
    bar = div("", class_="gains" if each.by_ms < 0 else "pays", style=f"left:{left:.1f}%;width:{part:.1f}%")
    picture = div(bar, div("", class_="zero"), class_="change", role="img", aria_label=words, title=words)
    return (told.name, [name, picture, duration(told.now_ms or 0), duration(told.then_ms or 0)])
