"""What would be otherwise, in words: the answer to a question that changes nothing.

Decides how such an answer looks. Never asks.
"""

from __future__ import annotations

from fairlead.web.html import Child, Html, div, element, joined, p, span, strong
from fairlead.web.words import amounts, counted, short_queue
from fairlead.web.words import time as moment
from fairlead.wire.questions import Fate, Fates, Otherwise
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


def otherwise(answer: Otherwise) -> Html:
    """All of it."""
    if answer.refused:
        return div([p(f"It would be refused: {each.sentence}.", class_="failed") for each in answer.refused])
    head = p(strong(f"If {answer.supposed}:"))
    if answer.empty and not (answer.waits or answer.expected or answer.unseen):
        return joined(head, p("nothing would be otherwise now."))
    lines = []
    for part, words in PARTS:
        fates: Fates = getattr(answer, part)
        if fates.count:
            lines.append(element("li", strong(f"{counted(fates.count, 'job')} {words}: "), _named(fates)))
    lines += [element("li", f"{each.key} would wait: {each.reason.sentence}") for each in answer.waits]
    for share in answer.shares:
        if share.queue.count(".") or len(answer.shares) == 1:
            words = f"{short_queue(share.queue)} would use {amounts(share.after)} (now {amounts(share.before)})"
            lines.append(element("li", words))
    for shift in answer.expected[:NAMED]:
        lines.append(
            element("li", f"{shift.key} would be expected ", _at(shift.after_ms), " instead of ", _at(shift.before_ms))
        )
    if len(answer.expected) > NAMED:
        lines.append(element("li", f"{len(answer.expected) - NAMED} more expected starts would move"))
    if answer.unseen:
        lines.append(element("li", f"of {counted(answer.unseen, 'job')} it could not be seen in time", class_="quiet"))
    return joined(head, element("ul", lines, class_="otherwise"))


def _named(fates: Fates) -> Html:
    named = [_one(each) for each in fates.jobs[:NAMED]]
    rest = fates.count - len(named)
    if rest:
        named.append(f"{rest} more")
    return span(", ".join(named))


def _one(fate: Fate) -> str:
    about = [fate.user] if fate.user else []
    about += [f"on {fate.node}"] if fate.node else []
    about += [f"for {fate.on_behalf_of.rpartition('/')[2]}"] if fate.on_behalf_of else []
    about += [why_stopped(fate.rule)] if fate.rule else []
    return f"{fate.key} ({', '.join(about)})" if about else fate.key


def _at(at_ms: int | None) -> Child:
    return moment(at_ms, "in") if at_ms is not None else "at no time in sight"
