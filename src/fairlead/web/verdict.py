"""The numbers behind a verdict: every limit on a job's way, and who has what it needs.

Decides which of them are shown as pictures. Every number is the scheduler's own.
"""

from __future__ import annotations

from fairlead.web.frame import Row, table
from fairlead.web.html import EMPTY, Html, element, h3, joined, p
from fairlead.web.stairs import meter
from fairlead.web.words import amount, amounts, counted, job_link
from fairlead.web.words import time as moment
from fairlead.wire.verdicts import Level, Verdict

LEVELS = (("Limit of", ""), ("Of what", ""), ("", "bar"), ("Used + asked for", "num"), ("", ""))
HOLDERS = (("Job", ""), ("User", ""), ("Has", ""), ("Priority", "num"), ("For", "num"), ("Ends at the latest", "num"))


def verdict(told: Verdict | None) -> Html:
    """All of it."""
    if told is None:
        return EMPTY
    return joined(_limits(told), _holders(told))


def details(told: Verdict | None) -> Html:
    """What is said beyond the verdict itself, one point each."""
    points = [element("li", each) for each in told.details] if told is not None else []
    return element("ul", points, class_="quiet") if points else EMPTY


def _limits(told: Verdict) -> Html | None:
    levels = [level for level in told.levels if level.max]
    if not levels:
        return None
    shown = table(LEVELS, [_limit(level) for level in levels], "Limits on its way")
    return element(
        "details", element("summary", "Limits on its way"), shown, open=any(level.blocks for level in levels)
    )


def _limit(level: Level) -> Row:
    used, needed, most = (amount(level.resource, value) for value in (level.used, level.needed, level.max))
    whole = max(level.max or 0, level.used + level.needed)
    parts = [
        ("used", level.used / whole, f"{used} used"),
        ("wanted over" if level.blocks else "wanted", level.needed / whole, f"{needed} asked for"),
    ]
    return (
        f"{level.queue}/{level.who}/{level.resource}",
        [
            f"{level.queue} · {level.who}" if level.who else level.queue,
            level.resource,
            meter(parts, f"{used} used and {needed} asked for, of {most}", mark=(level.max or 0) / whole),
            f"{used} + {needed} of {most}",
            "in its way" if level.blocks else "has room",
        ],
    )


def _holders(told: Verdict) -> Html | None:
    if not told.holders and not told.hidden_holders:
        return None
    rows: list[Row] = [
        (
            each.key,
            [
                job_link(each.key),
                each.user,
                amounts(each.amounts),
                each.priority,
                moment(each.since_ms, "since"),
                moment(each.until_ms, "in") if each.until_ms else "no limit",
            ],
        )
        for each in told.holders
    ]
    others = f"and {counted(told.hidden_holders, 'job')} of others"
    return joined(
        h3("Who has what it needs"),
        table(HOLDERS, rows, "Jobs that have what it needs") if rows else None,
        p(others, class_="quiet small") if told.hidden_holders else None,
    )
