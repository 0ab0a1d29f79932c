"""Where in a recorded course one is: a slider over all of it, steps from decision to decision, and going on by itself.

Decides how fast it can go. Never shows what was so at that moment: that is what the panels of all pages do, which are
drawn anew when somebody goes elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairlead import times
from fairlead.web.html import Html, button, div, element, span
from fairlead.web.live import Live
from fairlead.web.viewer import Viewer
from fairlead.wire.course import Course, Go

SPEEDS = (1, 10, 60, 600, 3_600, 36_000)
WHOLE_IN_S = 120
"""It goes so fast that the whole course takes about so long, until another speed is chosen."""


class CourseBar:
    """The bar of one page."""

    def __init__(self, viewer: Viewer, live: Live, run: Callable[..., None]) -> None:
        """`run` calls a function in the browser once what is drawn is there."""
        self._viewer, self._live, self._run = viewer, live, run
        self.acts = {"go": self.go, "play": self.play, "speed": self.choose}

    @property
    def _speed(self) -> float:
        speed = self._live.notes.get("speed", 0.0)
        assert isinstance(speed, float)
        return speed

    async def draw(self) -> Html:
        """The bar."""
        course = await self._live.shared(("course",), self._viewer.client.recorded)
        self._run("clock", course.at_ms)
        if not self._speed:
            self._live.notes["speed"] = _suitable(course)
        chosen = [
            element("option", f"{speed:,} times as fast", value=speed, selected=speed == self._speed)
            for speed in SPEEDS
        ]
        steps = (("‹", "To the decision before", -1), ("›", "To the next decision", 1))
        back, on = (
            button(sign, data_act="go", data_step=step, aria_label=words, title=words) for sign, words, step in steps
        )
        plays = button(
            "❚❚ Pause" if course.speed else "▶ Play",
            data_act="play",
            data_on="" if course.speed else "1",
            class_="main",
        )
        return div(
            div(
                back,
                plays,
                on,
                element("select", chosen, name="speed", data_act="speed", aria_label="How fast it plays"),
                span(times.moment(course.at_ms), class_="number moment"),
                span(f"{times.duration(course.at_ms - course.begin_ms)} after its begin", class_="quiet"),
                span(f"record {course.seq:,} of {course.last_seq:,}", class_="quiet small"),
                class_="row",
            ),
            element(
                "input",
                type="range",
                min=course.begin_ms,
                max=course.end_ms,
                value=course.at_ms,
                aria_label="Moment",
                data_act="go",
                data_value=course.at_ms,
            ),
            class_="course",
        )

    async def go(self, given: Mapping[str, Any]) -> str:
        """To a moment, or by a step."""
        await self._viewer.client.go(
            Go(step=int(given["step"])) if "step" in given else Go(at_ms=int(given["value"]), speed=0)
        )
        return ""

    async def play(self, given: Mapping[str, Any]) -> str:
        """Go on by itself, or stand still; from the end on it begins anew."""
        course = await self._viewer.client.recorded()
        at_ms = course.begin_ms if given.get("on") and course.at_ms >= course.end_ms else None
        await self._viewer.client.go(Go(at_ms=at_ms, speed=self._speed if given.get("on") else 0))
        return ""

    async def choose(self, given: Mapping[str, Any]) -> str:
        """Another speed."""
        self._live.notes["speed"] = float(given["value"])
        if (await self._viewer.client.recorded()).speed:
            await self._viewer.client.go(Go(speed=self._speed))
        return ""


def _suitable(course: Course) -> float:
    wanted = (course.end_ms - course.begin_ms) / 1000 / WHOLE_IN_S
    return float(min(SPEEDS, key=lambda speed: abs(speed - wanted)))
