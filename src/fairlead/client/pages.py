"""The calls that the pages make beside those of all clients: who looks, whether something changed, the line.

Decides paths, queries and bodies, as `client.routes` does for all else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.client.calls import ANSWER_S, call, listed, route
from fairlead.client.http import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.wire import cluster, course, jobs, pages


class PageRoutes:
    """They are methods of both clients."""

    @route
    def ticket(self) -> Call[pages.Ticket]:
        """A ticket that opens the pages, once, within a minute."""
        return call("POST", "/tickets", {}, repeat=False)

    @route
    def begin_session(self) -> Call[pages.Session]:
        """A session of the caller."""
        return call("POST", "/sessions", {}, repeat=False)

    @route
    def end_session(self) -> Call[jobs.Done]:
        """End the session that this client shows."""
        return call("DELETE", "/sessions", repeat=False)

    @route
    def changes(self, *, after: int = 0, wait: float = 0.0) -> Call[pages.Changed]:
        """How far the records have come, once that is above `after`, or after so many seconds."""
        return call("GET", "/changes", after=after, wait=f"{wait:g}")

    @route
    def line(self, *, limit: int = 100, after: str | None = None) -> Call[pages.LinePage]:
        """What waits for room, in the order in which it is looked at."""
        return call("GET", "/line", limit=limit, after=after)

    @listed("pages.KeptPage")
    def kept(self, *, limit: int | None = None) -> Call[pages.Kept]:
        """Room that is kept for jobs that wait, by node; at most `limit`."""
        return Call("GET", "/kept", most=limit)

    @route
    def recorded(self) -> Call[course.Course]:
        """How long a recorded course is, and where in it one is."""
        return call("GET", "/course")

    @route
    def go(self, to: course.Go) -> Call[course.Course]:
        """Go to another moment of a recorded course."""
        return call("PUT", "/course", to)

    @route
    def course_events(
        self, *, limit: int = 100, key: str | None = None, after: str | None = None
    ) -> Call[cluster.EventPage]:
        """What happened in a recorded course up to the moment, the newest first; `after`: `next` of the page before."""
        return call("GET", "/course/events", limit=limit, key=key, after=after)

    @route
    def newest_jobs(
        self, filters: Mapping[str, str], *, limit: int = 50, after: str | None = None
    ) -> Call[jobs.JobPage]:
        """A page of jobs, the newest first, with the filters of `jobs`."""
        return Call("GET", "/jobs", {**filters, "limit": limit, "after": after, "newest": "true"})

    @route
    def line_forecast(self, *, limit: int = 30, seconds: float = 2.0) -> Call[pages.LineForecast]:
        """When the first of the line are expected to start."""
        return call("GET", "/line/forecast", limit=limit, seconds=f"{seconds:g}", takes_s=ANSWER_S)
