"""The story of a job as a timeline: each thing that happened, and how long it waited and ran.

Decides which signs and lengths are drawn. The words are those of the job's history.
"""

from __future__ import annotations

import time

from fairlead import times
from fairlead.web.html import Html, div, element, joined, p, span
from fairlead.web.words import duration, job_link
from fairlead.web.words import time as moment
from fairlead.wire.jobs import JobDetails, PastAttempt
from fairlead.wire.stopped import in_brackets

SIGNS = {
    "submitted": "+",
    "placed": "▦",
    "started": "▶",
    "running": "▶",
    "evicted": "↯",
    "stopping": "◼",
    "retried": "↻",
    "held": "❚❚",
    "suspended": "❚❚",
    "cancelled": "⊘",
    "failed": "✕",
    "succeeded": "✓",
}


GOES_ON = {"waited": "waits", "ran": "runs", "stood still": "stands still"}


def story(job: JobDetails) -> Html:
    """All of it, oldest first."""
    if not job.history:
        return p("What happened to it is not kept here.", class_="empty")
    items, before_ms = [], None
    for each in job.history:
        gap = each.at_ms - before_ms if before_ms is not None else 0
        items.append(
            element(
                "li",
                span(SIGNS.get(each.what.split(" ")[0].lower(), "•"), class_="sign", aria_hidden="true"),
                div(
                    span(each.what, class_="what"),
                    span(f" {each.detail}" if each.detail else "", class_="detail"),
                    div(
                        moment(each.at_ms, "clock"),
                        f" · {times.duration(gap)} later" if gap >= 1000 else "",
                        class_="quiet small",
                    ),
                ),
            )
        )
        before_ms = each.at_ms
    return joined(_strip(job), element("ol", items, class_="story"), _attempts(job.past))


def _strip(job: JobDetails) -> Html:
    """How long it waited, ran and stood still, to scale."""
    end_ms = job.ended_at_ms or time.time_ns() // 1_000_000
    cuts: list[tuple[str, int, int]] = []
    is_over = job.ended_at_ms is not None
    at = job.submitted_at_ms
    for each in job.past:
        if each.started_at_ms is not None:
            cuts += [("waited", at, each.started_at_ms)]
            cuts += _run(each.started_at_ms, each.ended_at_ms, each.suspended_ms, None)
            at = each.ended_at_ms
    if job.started_at_ms is not None and job.started_at_ms >= at:
        cuts += [("waited", at, job.started_at_ms)]
        cuts += _run(job.started_at_ms, max(end_ms, job.started_at_ms), job.suspended_ms, job.suspended_at_ms)
    else:
        cuts.append(("waited", at, max(at, end_ms)))
    whole = max(1, cuts[-1][2] - job.submitted_at_ms)
    parts = [
        div(
            "",
            class_=f"part {kind.split()[0]}",
            style=f"width:{100 * (to - begin) / whole:.2f}%",
            title=f"{kind} {times.duration(to - begin)}",
        )
        for kind, begin, to in cuts
        if to > begin
    ]
    closed = cuts if is_over else cuts[:-1]
    totals = {kind: sum(to - begin for k, begin, to in closed if k == kind) for kind in GOES_ON}
    words = [f"{kind} {times.duration(ms)}" for kind, ms in totals.items() if ms]
    # What goes on is said by the browser's clock: it is longer each second.
    kind, begin, _ = cuts[-1]
    going_on = joined(*(f"{each} · " for each in words), GOES_ON[kind], " for ", moment(begin, "since"))
    return div(
        div(
            parts,
            class_="meter tall",
            role="img",
            aria_label=", ".join([*words, *([] if is_over else [GOES_ON[kind]])]),
        ),
        div(" · ".join(words) if is_over else going_on, class_="quiet small"),
    )


def _run(begin: int, end: int, still_ms: int, still_since: int | None) -> list[tuple[str, int, int]]:
    """An attempt; what it stood still before, whenever that was, is shown first."""
    ran = min(begin + still_ms, end)
    until = end if still_since is None else max(ran, still_since)
    still = [] if still_since is None else [("stood still", until, max(end, until))]
    return [("stood still", begin, ran), ("ran", ran, until), *still]


def _attempts(past: list[PastAttempt]) -> Html | None:
    """Those that are over."""
    if not past:
        return None
    items = [
        element(
            "li",
            f"Attempt {each.attempt} on {each.node or '–'}: {each.how}",
            joined(" for ", job_link(each.on_behalf_of)) if each.on_behalf_of else None,
            in_brackets(each.rule),
            span(
                f", after {duration(max(each.ended_at_ms - each.started_at_ms - each.suspended_ms, 0))}"
                if each.started_at_ms
                else "",
                class_="quiet",
            ),
        )
        for each in past
    ]
    return div(element("h3", "Attempts before this one"), element("ul", items))
