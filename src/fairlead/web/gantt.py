"""Who ran where, as a Gantt chart: lanes for what ran at the same time, arcs from the stopped to the stopper.

Decides lanes and scales. Never reads an event: it is given courses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from fairlead import times
from fairlead.web.courses import Course, Run
from fairlead.web.html import Html, div, element, span
from fairlead.web.words import job_path, short_queue

WIDTH, LANE, GAP, LEFT, TOP, AXIS = 1200, 18, 3, 90, 4, 20
TICKS = 6


def gantt(found: Sequence[Course], begin_ms: int, end_ms: int, colour: Callable[[str], int]) -> Html:
    """The runs of these between two moments."""
    runs = sorted(
        (
            (run, course)
            for course in found
            for run in course.runs
            if run.begin_ms < end_ms and (run.end_ms or end_ms) > begin_ms
        ),
        key=lambda pair: (pair[0].node, pair[0].begin_ms, pair[0].key),
    )
    scale = (WIDTH - LEFT) / max(1, end_ms - begin_ms)

    def x(at_ms: int) -> float:
        return LEFT + (min(max(at_ms, begin_ms), end_ms) - begin_ms) * scale

    lanes = _lanes([run for run, _ in runs], end_ms)
    height = TOP + (max(lanes.values(), default=0) + 1) * (LANE + GAP) + 6
    bars, spots, labels, last_node = [], {}, [], None
    for run, course in runs:
        lane = lanes[id(run)]
        y = TOP + lane * (LANE + GAP)
        left, right = x(run.begin_ms), x(run.end_ms or end_ms)
        spots[id(run)] = (left, right, y + LANE / 2)
        if run.node != last_node:
            labels.append(element("text", run.node[:12], x=2, y=y + 13, class_="label"))
            last_node = run.node
        ran = times.duration((run.end_ms or end_ms) - run.begin_ms)
        whose = f" of {course.user}" if course.user else ""
        named = " ".join(filter(None, (course.key, course.name)))
        words = f"{named}{whose} in {short_queue(course.queue)}: {run.how}, {ran}"
        bars.append(
            element(
                "a",
                element(
                    "rect",
                    x=f"{left:.1f}",
                    y=y,
                    width=f"{max(2.0, right - left):.1f}",
                    height=LANE,
                    rx=3,
                    class_=f"bar f{colour(course.queue)} {run.how}",
                ),
                element("text", course.key, x=f"{left + 4:.1f}", y=y + 13, class_=f"inside f{colour(course.queue)}")
                if right - left > 30
                else None,
                element("title", words),
                href=job_path(course.key),
                aria_label=words,
            )
        )
    of_key = _by_key([run for run, _ in runs])
    arcs = [
        _arc(spots[id(run)], by, spots)
        for run, _ in runs
        if run.stopped_for and (by := _preemptor(run, of_key.get(run.stopped_for, []))) is not None
    ]
    ticks = [(at_ms, x(at_ms)) for at_ms in (begin_ms + (end_ms - begin_ms) * at // TICKS for at in range(TICKS + 1))]
    svg = element(
        "svg",
        [element("line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=0, y2=height, class_="tick") for _, at in ticks],
        labels,
        bars,
        arcs,
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="group",
        aria_label="Who ran where and when",
        class_="gantt",
    )
    return div(_axis(ticks), svg, class_="scroll tall", tabindex="0", role="region", aria_label="Gantt chart")


def _axis(ticks: Sequence[tuple[int, float]]) -> Html:
    """The times, in a picture of its own that stays in sight while lanes are scrolled; of several days with the day."""
    of_one_day = times.moment(ticks[0][0])[:10] == times.moment(ticks[-1][0])[:10]
    say = times.clock_time if of_one_day else times.moment
    words = [
        element(
            "text",
            say(at_ms),
            x=f"{at:.1f}",
            y=12,
            class_="label",
            text_anchor="middle" if at < WIDTH - 40 else "end",
        )
        for at_ms, at in ticks
    ]
    return element(
        "svg", words, viewBox=f"0 0 {WIDTH} {AXIS}", width=WIDTH, height=AXIS, aria_hidden="true", class_="gantt axis"
    )


def _lanes(runs: Sequence[Run], end_ms: int) -> dict[int, int]:
    """For each run the first lane of its node that is free when it begins."""
    found: dict[int, int] = {}
    first, node, ends = 0, None, list[int]()
    for run in runs:
        if run.node != node:
            first, node, ends = first + len(ends), run.node, []
        lane = next((at for at, free_ms in enumerate(ends) if free_ms <= run.begin_ms), len(ends))
        ends[lane : lane + 1] = [run.end_ms or end_ms]
        found[id(run)] = first + lane
    return found


def _by_key(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each job in the order in which they began."""
    found: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.begin_ms):
        found.setdefault(run.key, []).append(run)
    return found


def _preemptor(victim: Run, runs: Sequence[Run]) -> Run | None:
    """The run that it made room for: of those of that job the first after it was stopped."""
    at = bisect_left(runs, victim.end_ms or 0, key=lambda run: run.begin_ms)
    return runs[at] if at < len(runs) else None


def _arc(victim: tuple[float, float, float], by: Run, spots: dict[int, tuple[float, float, float]]) -> Html:
    _, x1, y1 = victim
    x2, _, y2 = spots[id(by)]
    bend = max(18.0, abs(y2 - y1) / 2)
    return element(
        "path",
        element("title", f"was stopped for {by.key}"),
        d=f"M{x1:.1f} {y1:.1f} C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}",
        class_="arc",
    )


def legend() -> Html:
    """What arcs and edges mean."""
    return span(
        "A curve leads from what was stopped (dashed) to what it made room for. What failed has a red edge. "
        "Colours are those of the queues.",
        class_="quiet small",
    )
