"""What is said the same on every page: amounts, moments, states, jobs.

Decides the words, which are those of the command line. Never reads a clock: moments go out as they are, and the browser
says them by its own clock, so that what is shown changes only with what is so.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from fairlead import times
from fairlead.core.model.quantities import format_amount, format_amounts
from fairlead.web.html import Child, Html, a, element, span
from fairlead.wire.fields import with_vcore

STATES = {
    "waiting": "◔",
    "running": "▶",
    "suspended": "❚❚",
    "stopping": "◼",
    "succeeded": "✓",
    "failed": "✕",
    "cancelled": "⊘",
    "evicted": "↯",
    "lost": "?",
    "timed_out": "⏱",
    "rejected": "✕",
    "deleted": "⊘",
}
LIVE = ("waiting", "running", "suspended", "stopping")


def amounts(values: Mapping[str, int | float] | None) -> str:
    """`cpu 2, memory 4Gi`; a dash for nothing."""
    return format_amounts(with_vcore(values)) if values else "–"


def amount(name: str, value: int | float) -> str:
    """`2` for cpu, `4Gi` for memory."""
    ((resource, counted),) = with_vcore({name: value}).items()
    return format_amount(resource, counted)


def time(at_ms: int | None, how: str = "ago") -> Child:
    """A moment: `ago` (5m ago), `in` (in 5m), `clock` (14:03:22), `since` (5m) or `date`."""
    if at_ms is None:
        return "–"
    return element("time", times.moment(at_ms), data_at=at_ms, data_how=how, title=times.moment(at_ms))


def duration(ms: int | None) -> str:
    """`5m 3s`; a dash for None."""
    return "–" if ms is None else times.duration(ms)


def state(name: str) -> Html:
    """A state by sign and word: no colour is needed to tell it."""
    sign = span(STATES.get(name, "•"), aria_hidden="true")
    return span(sign, " ", name.replace("_", " "), class_=f"state {name}")


def job_path(key: str) -> str:
    """Where a job's own page is."""
    return f"/job/{quote(key, safe='')}"


def job_link(key: str, name: str = "", *, visible: bool = True) -> Html:
    """A job by its key and name, leading to its page where there is one for whoever looks."""
    shown = span(span(key, class_="key"), f" {name}" if name else "")
    return a(shown, href=job_path(key)) if visible else shown


def counted(number: int, what: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def short_queue(path: str) -> str:
    """A queue without `root.`, which all have."""
    return path.removeprefix("root.")
