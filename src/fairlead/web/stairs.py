"""Small pictures beside words: a priority as stairs, a forecast as a bar, parts of a whole.

Decides how they are drawn. Invariant: whatever a picture says is said in words too, for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead import times
from fairlead.web.html import Html, div, element, span
from fairlead.web.words import short_queue
from fairlead.wire.pages import ExpectedStart, Step

WIDTH, HEIGHT, TREAD = 92, 26, 18
NOT_FARTHER = "So much runs and waits that there was no time to look farther ahead."
UNKNOWN = "Nothing has ended here so far, so how long work takes is not known."
OVERTAKEN = "what it waits for takes longer than was expected"
"""What it means that a job has not started though the latest moment of its forecast is over."""


def said(own: int, steps: Sequence[Step]) -> str:
    """Where an effective priority comes from, in words."""
    parts, seen = [f"its own priority is {own}"], own
    for step in steps:
        queue = short_queue(step.queue)
        if step.fence and (step.after != seen or step.offset):
            parts.append(f"{queue} is a fence: outside of it everything in it counts {step.after}")
        elif step.offset:
            parts.append(f"{queue} adds {step.offset:+d}, which makes {step.after}")
        seen = step.after
    return "; ".join(parts)


def stairs(own: int, steps: Sequence[Step], *, owed: bool = False) -> Html:
    """A priority from the job's own, through each queue, to what counts."""
    moving = [step for step in steps if step.offset or step.fence]
    values = [own, *(step.after for step in moving)]
    low, high = min(0, *values), max(0, *values)
    unit = (HEIGHT - 6) / max(1, high - low)
    tread = min(TREAD, (WIDTH - 2) // len(values))
    shapes: list[Html] = []
    points = []
    for at, value in enumerate(values):
        y = HEIGHT - 3 - (value - low) * unit
        points += [f"{at * tread + 1:.0f},{y:.1f}", f"{(at + 1) * tread + 1:.0f},{y:.1f}"]
    shapes.append(element("polyline", points=" ".join(points), class_="stair"))
    for at, step in enumerate(moving, 1):
        if step.fence:
            x = at * tread + 1
            shapes.append(element("line", x1=x, x2=x, y1=1, y2=HEIGHT - 1, class_="fence"))
    words = said(own, steps) + ("; it is within a guarantee, so it goes first" if owed else "")
    width = tread * len(values) + 2
    size: dict[str, str | int] = {"viewBox": f"0 0 {width} {HEIGHT}", "width": width, "height": HEIGHT}
    picture = element("svg", shapes, aria_hidden="true", **size) if moving else None
    return span(
        span(f"{values[-1]}", class_="number"),
        span("owed", class_="tag") if owed else None,
        picture,
        span(words, class_="unseen"),
        class_="stairs",
        title=words[:1].upper() + words[1:] + ".",
    )


def interval(at: ExpectedStart | None, made_ms: int, horizon_ms: int) -> Html:
    """A forecast as a bar: from the earliest to the latest, with the middle marked."""
    if at is None:
        return span("not forecast yet", class_="quiet")
    if not at.known:
        limits = div(_in(at.latest_ms), " if all takes its time limit", class_="small") if at.latest_ms else None
        return div("not known yet", limits, class_="quiet", title=UNKNOWN)
    if at.median_ms is None and at.earliest_ms is not None:
        after = element("time", times.moment(at.earliest_ms), data_at=at.earliest_ms, data_how="clock")
        return span(
            span("not before ", after, class_="foreseen"),
            span("not known", class_="overtaken"),
            class_="expected quiet",
            title=NOT_FARTHER,
            data_latest=at.earliest_ms,
        )
    if at.median_ms is None:
        return span("not in sight", class_="quiet", title="However what runs may go on, it did not start.")

    def part(ms: int | None) -> float:
        return 100 * min(1.0, max(0.0, ((ms if ms is not None else made_ms + horizon_ms) - made_ms) / horizon_ms))

    low, middle, high = part(at.earliest_ms), part(at.median_ms), part(at.latest_ms)
    bar = div(
        div("", class_="reach", style=f"left:{low:.1f}%;width:{max(1.5, high - low):.1f}%"),
        div("", class_="middle", style=f"left:{middle:.1f}%"),
        class_="interval",
        aria_hidden="true",
    )
    reach = span("earliest ", _in(at.earliest_ms), ", latest ", _in(at.latest_ms), class_="quiet small")
    # Time goes on in the browser: that shows the second part once the latest moment is over.
    return div(
        div(div(_in(at.median_ms, "soon"), class_="number"), bar, reach, class_="foreseen"),
        div(div("expected by now"), span(OVERTAKEN, class_="quiet small"), class_="overtaken"),
        class_="expected",
        data_latest=at.latest_ms,
    )


def _in(ms: int | None, how: str = "in") -> Html:
    """A moment to come, as the browser's clock has it; None: beyond what was looked at."""
    return element("time", times.moment(ms), data_at=ms, data_how=how) if ms is not None else span("much later")


def meter(parts: Sequence[tuple[str, float, str]], words: str, *, mark: float | None = None) -> Html:
    """Parts of a whole (each a class, a part from 0 to 1, and its words) on one line; `mark`: a line at that part."""
    drawn = [
        div("", class_=f"part {kind}", style=f"width:{100 * min(1.0, max(0.0, part)):.2f}%", title=text)
        for kind, part, text in parts
        if part > 0
    ]
    line = div("", class_="mark", style=f"left:{100 * min(1.0, mark):.2f}%") if mark is not None else None
    return div(drawn, line, class_="meter", role="img", aria_label=words, title=words)
