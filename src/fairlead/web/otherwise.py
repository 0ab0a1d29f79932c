"""What would be otherwise, in words: the answer to a question that changes nothing.

Decides how such an answer looks. Never asks.
"""

from __future__ import annotations

from math import inf

from fairlead.web.html import Child, Html, div, element, joined, p, span, strong
from fairlead.web.words import amounts, counted, short_queue
from fairlead.web.words import time as moment
from fairlead.wire.questions import DRAFT, Begin, Fate, Fates, Otherwise
from fairlead.wire.stopped import why_stopped

NAMED = 8
PARTS = (
    ("starts", "would start"),
    ("elsewhere", "would start on another node"),
    ("starts_not", "would not start"),
    ("evicted", "would be told to stop"),
    ("spared", "would go on"),
    ("ends", "would be gone"),
)


def otherwise(answer: Otherwise, *, is_draft: bool = False) -> Html:
    """All of it; `is_draft`: it is about a job that whoever asks is about to submit, "it" then."""
    if answer.refused:
        return div([p(f"It would be refused: {each.sentence}.", class_="failed") for each in answer.refused])
    head = p(strong("If you submit it:" if is_draft else f"If {answer.supposed}:"))
    if answer.empty and not (answer.waits or answer.expected or answer.unseen):
        return joined(head, p("nothing would be otherwise now."))
    lines = []
    for part, words in PARTS:
        fates: Fates = getattr(answer, part)
        if fates.count:
            lines.append(element("li", strong(f"{counted(fates.count, 'job')} {words}: "), _named(fates, is_draft)))
    for each in answer.waits:
        it = "it" if is_draft and each.key == DRAFT else each.key
        lines.append(element("li", f"{it} would wait: {each.reason.sentence}"))
    if answer.begins:
        lines.append(element("li", *_begins(answer.begins)))
    for share in answer.shares:
        if share.queue.count(".") or len(answer.shares) == 1:
            words = f"{short_queue(share.queue)} would use {amounts(share.after)} (now {amounts(share.before)})"
            lines.append(element("li", words))
    lines += [
        element("li", f"{shift.key} would be expected ", _at(shift.after_ms), " instead of ", _at(shift.before_ms))
        for shift in answer.expected[:NAMED]
    ]
    if len(answer.expected) > NAMED:
        lines.append(element("li", f"{len(answer.expected) - NAMED} more expected starts would move"))
    if answer.expected and not answer.known:
        lines.append(element("li", "these times are guessed: nothing has ended here so far", class_="quiet"))
    if answer.unseen:
        lines.append(element("li", f"of {counted(answer.unseen, 'job')} it could not be seen in time", class_="quiet"))
    return joined(head, element("ul", lines, class_="otherwise"))


def _begins(begins: list[Begin]) -> list[Child]:
    """When it is expected to start; of an array its last part."""
    at = max(begins, key=lambda each: inf if each.median_ms is None else each.median_ms)
    it = "it" if len(begins) == 1 else f"the last of its {len(begins)} parts"
    if not at.known:
        limits = ["; ", _at(at.latest_ms), " if all takes its time limit"] if at.latest_ms is not None else []
        return [f"when {it} starts is not known yet: nothing has ended here so far", *limits]
    if at.median_ms is None and at.broken_off:
        return [f"{it} is expected to start later than ", _at(at.earliest_ms), "; more could not be seen in time"]
    if at.median_ms is None:
        return [f"{it} is not expected to start within 30 days"]
    latest = _at(at.latest_ms) if at.latest_ms is not None else "not in sight"
    reach = [" (earliest ", _at(at.earliest_ms), ", latest ", latest, ")"]
    return [f"{it} is expected to start ", strong(_at(at.median_ms)), *reach]


def _named(fates: Fates, is_draft: bool) -> Html:
    named = [_one(each, is_draft) for each in fates.jobs[:NAMED]]
    rest = fates.count - len(named)
    if rest:
        named.append(f"{rest} more")
    return span(", ".join(named))


def _one(fate: Fate, is_draft: bool) -> str:
    if is_draft and fate.key == DRAFT:
        return f"it, on {fate.node}" if fate.node else "it"
    about = [fate.user] if fate.user else []
    about += [f"on {fate.node}"] if fate.node else []
    whom = fate.on_behalf_of.rpartition("/")[2]
    about += [f"for {'it' if is_draft and whom == DRAFT else whom}"] if whom else []
    about += [why_stopped(fate.rule)] if fate.rule else []
    about += [f"against the disruption budget {' and '.join(fate.violates)}"] if fate.violates else []
    return f"{fate.key} ({', '.join(about)})" if about else fate.key


def _at(at_ms: int | None) -> Child:
    return moment(at_ms, "in") if at_ms is not None else "at no time in sight"
