"""Plots as SVG text: lines over time, stacked shares, distributions, Gantt bars.

Decides how figures are drawn: axes, ticks, colours. Never computes a figure and never refers to anything outside the
text. Invariant: the same values give the same text; every text from outside is escaped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 860, 230
LEFT, RIGHT, TOP, BOTTOM = 78, 14, 12, 34
COLOURS = ("#2563eb", "#e8590c", "#2f9e44", "#9c36b5", "#c2255c", "#0c8599", "#846358", "#6b7280")
"""For outcomes; told apart by colour-blind readers in this order."""
FILLS = (
    "#4c78a8",
    "#f58518",
    "#54a24b",
    "#b279a2",
    "#eeca3b",
    "#72b7b2",
    "#e45756",
    "#9d755d",
    "#ff9da6",
    "#79706e",
    "#88d27a",
    "#83bcb6",
)
"""For queues."""
Points = Sequence[tuple[float, float]]
Form = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Line:
    """A named line; `dashed` for what is only a bound."""

    name: str
    points: Points
    colour: str
    dashed: bool = False


def number(value: float) -> str:
    """A coordinate: short, and the same everywhere."""
    return f"{value:.1f}".rstrip("0").rstrip(".") or "0"


def nice_ticks(top: float, count: int = 5) -> list[float]:
    """Round values from 0 to `top`, about `count` of them."""
    if top <= 0:
        return [0.0]
    raw = top / count
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if raw <= size * m * 1.0000001)
    return [step * i for i in range(int(top / step + 1e-9) + 1)]


TIME_STEPS = (1, 5, 15, 60, 300, 900, 3600, 7200, 14_400, 28_800, 43_200)


def time_ticks(top_s: float) -> list[float]:
    """Round times from 0 to `top_s`."""
    for step in TIME_STEPS:
        if top_s / step <= 8:
            return [float(step * i) for i in range(int(top_s / step) + 1)]
    return [t * 86400 for t in nice_ticks(top_s / 86400, 8)]


def time_text(seconds: float, step: float = 0) -> str:
    """A tick of a time axis: `0`, `30s`, `5min`, `6h`, `2d`; where ticks are a `step` apart, in the unit of that."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0 and step % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s" if seconds else "0"


def clock(seconds: float) -> str:
    """A moment: days, hours, minutes and seconds since the first job."""
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"day {days + 1}, {text}" if days else text


def count_text(value: float) -> str:
    """A tick of a count: `1.5k`."""
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"


def part_text(value: float) -> str:
    """A tick of a share."""
    return f"{value * 100:g}%"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot: the elements inside of its SVG, and how high it is; all are equally wide."""

    label: str
    height: int
    elements: str
    hover: str = ""

    def html(self) -> str:
        """For the report."""
        data = f" data-hover='{escape(self.hover, quote=True)}'" if self.hover else ""
        return (
            f'<div class="plot"><svg viewBox="0 0 {WIDTH} {self.height}"'
            f' role="img" aria-label="{escape(self.label, quote=True)}"{data}>{self.elements}</svg></div>'
        )


class Frame:
    """A drawing area with its axes."""

    def __init__(self, right_s: float, top: float, form: Form, height: int = HEIGHT) -> None:
        self.right, self.top, self.height = max(right_s, 1e-9), max(top, 1e-9), height
        self.parts: list[str] = []
        for tick in nice_ticks(self.top, 4):
            y = self.y(tick)
            self.parts.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{number(y)}" y2="{number(y)}"/>'
            )
            self.parts.append(
                f'<text class="tick" x="{LEFT - 7}" y="{number(y + 4)}" text-anchor="end">{escape(form(tick))}</text>'
            )

    def time_axis(self) -> None:
        """Ticks below: time since the first job."""
        ticks = time_ticks(self.right)
        for tick in ticks:
            self.below(self.x(tick), time_text(tick, ticks[1] if len(ticks) > 1 else 0))

    def below(self, x: float, text: str) -> None:
        """One tick below."""
        bottom = self.height - BOTTOM
        self.parts.append(f'<line class="axis" x1="{number(x)}" x2="{number(x)}" y1="{bottom}" y2="{bottom + 4}"/>')
        self.parts.append(
            f'<text class="tick" x="{number(x)}" y="{bottom + 17}" text-anchor="middle">{escape(text)}</text>'
        )

    def x(self, value: float) -> float:
        """Where a time is."""
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.right

    def y(self, value: float) -> float:
        """Where a value is."""
        return self.height - BOTTOM - (self.height - TOP - BOTTOM) * min(value / self.top, 1.0)

    def drawn(self, label: str, hover: str = "") -> Drawing:
        """The whole drawing; `hover` is what a moving pointer reads, as JSON."""
        bottom = self.height - BOTTOM
        axis = f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
        return Drawing(label, self.height, "".join(self.parts) + axis, hover)


def _path(frame: Frame, points: Points) -> str:
    return "M" + "L".join(f"{number(frame.x(x))},{number(frame.y(y))}" for x, y in points)


def lines_over_time(label: str, lines: Sequence[Line], form: Form, kind: str, top: float | None = None) -> Drawing:
    """Lines over time since the first job. `kind` (`part`, `count`) is how a pointer's values are written."""
    right = max((line.points[-1][0] for line in lines if line.points), default=1.0)
    highest = max((y for line in lines for _, y in line.points), default=1.0)
    frame = Frame(right, top or highest * 1.05 or 1.0, form)
    frame.time_axis()
    for line in lines:
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        frame.parts.append(f'<path class="line" d="{_path(frame, line.points)}" stroke="{line.colour}"{dash}/>')
    return frame.drawn(label, _hover(lines, right, kind))


def _hover(lines: Sequence[Line], right: float, kind: str) -> str:
    shown = [
        {"n": line.name, "c": line.colour, "x": [round(x) for x, _ in line.points], "y": [y for _, y in line.points]}
        for line in lines
    ]
    return json.dumps({"right": right, "left": LEFT, "width": WIDTH - LEFT - RIGHT, "kind": kind, "lines": shown})


def distribution(label: str, lines: Sequence[Line]) -> Drawing:
    """The part of tasks that had started within a time; the time axis is logarithmic from one second."""
    longest = max((x for line in lines for x, _ in line.points), default=1.0)
    decades = max(math.log10(max(longest, 10.0)), 1.0)
    frame = Frame(decades, 1.0, part_text)
    for seconds, text in _LOG_TICKS:
        if math.log10(seconds) <= decades + 1e-9:
            frame.below(frame.x(math.log10(seconds)), text)
    for line in lines:
        if line.points:
            steps = _steps([(math.log10(max(x, 1.0)), y) for x, y in line.points], decades)
            frame.parts.append(f'<path class="line" d="{_path(frame, steps)}" stroke="{line.colour}"/>')
    return frame.drawn(label)


_LOG_TICKS = (
    (1, "≤ 1s"),
    (10, "10s"),
    (60, "1min"),
    (600, "10min"),
    (3600, "1h"),
    (6 * 3600, "6h"),
    (86_400, "1d"),
    (7 * 86_400, "7d"),
    (30 * 86_400, "30d"),
)


def _steps(points: Points, right: float) -> list[tuple[float, float]]:
    found = [(0.0, 0.0)]
    for x, y in points:
        found += [(x, found[-1][1]), (x, y)]
    return [*found, (right, found[-1][1])]


def stacked(
    label: str, at_s: Sequence[float], layers: Sequence[tuple[str, Sequence[float], str]], lasts_s: float
) -> Drawing:
    """Shares on top of each other over time; the first layer is at the bottom. The axis ends at `lasts_s`."""
    total = [sum(layer[1][i] for layer in layers) for i in range(len(at_s))]
    frame = Frame(lasts_s, max([1.0, *total]), part_text)
    frame.time_axis()
    below = [0.0] * len(at_s)
    for name, values, colour in layers:
        above = [b + v for b, v in zip(below, values, strict=True)]
        edge = [*zip(at_s, above, strict=True), *reversed(list(zip(at_s, below, strict=True)))]
        frame.parts.append(
            f'<path class="area" d="{_path(frame, edge)}Z" fill="{colour}"><title>{escape(name)}</title></path>'
        )
        below = above
    hover = [Line(name, list(zip(at_s, values, strict=True)), colour) for name, values, colour in reversed(layers)]
    return frame.drawn(label, _hover(hover, frame.right, "part"))


LANE, GAP = 7, 6
LANES_MAX = 12


def gantt(
    label: str, nodes: Sequence[str], bars: Sequence[Sequence[object]], lasts_s: float, fills: Sequence[str]
) -> Drawing:
    """Runs on nodes: a row for each node, a lane in it for each run at the same time, coloured by queue.

    `bars` are (number of the node, number of the queue, task, begin, end, how it ended), by begin.
    """
    lanes: list[list[float]] = [[] for _ in nodes]
    placed = []
    for bar in bars:
        node, begin, end = int(str(bar[0])), float(str(bar[3])), float(str(bar[4]))
        free = next((i for i, until in enumerate(lanes[node]) if until <= begin), None)
        if free is None and len(lanes[node]) < LANES_MAX:
            lanes[node].append(0.0)
            free = len(lanes[node]) - 1
        if free is not None:
            lanes[node][free] = end
            placed.append((node, free, bar))
    tops = [TOP]
    for row in lanes:
        tops.append(tops[-1] + max(len(row), 1) * LANE + GAP)
    frame = Frame(lasts_s, 1e18, lambda _: "", tops[-1] + BOTTOM)
    frame.parts.clear()
    frame.time_axis()
    for number_, name in enumerate(nodes):
        middle = (tops[number_] + tops[number_ + 1] - GAP) / 2 + 4
        shown = name if len(name) <= 10 else "…" + name[-9:]
        frame.parts.append(
            f'<text class="tick" x="{LEFT - 7}" y="{number(middle)}" text-anchor="end">{escape(shown)}</text>'
            f'<rect class="row" x="{LEFT}" y="{tops[number_]}" width="{WIDTH - LEFT - RIGHT}" '
            f'height="{tops[number_ + 1] - tops[number_] - GAP}"/>'
        )
    for node, lane, bar in placed:
        frame.parts.append(_bar(frame, tops[node] + lane * LANE, bar, fills))
    return frame.drawn(label)


def _bar(frame: Frame, y: int, bar: Sequence[object], fills: Sequence[str]) -> str:
    begin, end, how = float(str(bar[3])), float(str(bar[4])), str(bar[5])
    x = frame.x(begin)
    wide = max(frame.x(end) - x, 0.7)
    colour = fills[int(str(bar[1])) % len(fills)]
    title = f"{bar[2]}: {clock(begin)} to {clock(end)}, {how.replace('_', ' ')}"
    rect = f'<rect x="{number(x)}" y="{y}" width="{number(wide)}" height="{LANE - 1}" fill="{colour}"'
    broken = how in ("evicted", "lost", "failed", "cut_off")
    mark = ""
    if broken:
        mark = f'<rect class="broken" x="{number(x + wide - 2)}" y="{y}" width="2" height="{LANE - 1}"/>'
    return f"<g>{rect}><title>{escape(title)}</title></rect>{mark}</g>"
