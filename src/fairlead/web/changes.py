"""What would start a job: each change with the button that makes it, or the words to send to an administrator.

Decides which of the changes that the service found a viewer can make from here. Never finds one.
"""

from __future__ import annotations

from fairlead.web.frame import act_button
from fairlead.web.html import Html, button, div, element, joined, p, span
from fairlead.web.viewer import Viewer
from fairlead.web.words import counted
from fairlead.wire.verdicts import Way, Why


def ways(told: Why, viewer: Viewer) -> Html:
    """All that were found."""
    verdict = told.verdict
    if verdict is None or verdict.changes is None:
        return p("It does not wait for room, so no change of the queues or nodes would start it.", class_="quiet")
    if not verdict.changes:
        if verdict.starts_by_itself:
            return p("Nothing has to change: it starts by itself when what runs has ended.")
        return p("No single change that was tried would start it.")
    shown = element("ul", [element("li", _way(told.key, way, viewer)) for way in verdict.changes], class_="ways")
    by_itself = p("It also starts by itself, later.", class_="quiet") if verdict.starts_by_itself else None
    more = None if verdict.changes_complete else p("There was no time to try everything.", class_="quiet small")
    return joined(by_itself, shown, more)


def _way(key: str, way: Way, viewer: Viewer) -> Html:
    named = ", ".join(each.key or each.application for each in way.evicts)
    stops = f"{counted(len(way.evicts), 'job')} would be told to stop: {named}"
    return div(
        div(way.sentence[:1].upper() + way.sentence[1:] + "."),
        div(stops, class_="warn small") if way.evicts else None,
        _offer(key, way, viewer),
        class_="way",
    )


def _offer(key: str, way: Way, viewer: Viewer) -> Html:
    """The button that does it where this is one thing that can be done from here; else what to ask for."""
    if viewer.acts and len(way.parts) == 1:
        part = way.parts[0]
        asked = f"Do it? Job {key} {way.sentence}."
        match part.what:
            case "priority":
                return act_button(
                    f"Set its priority to {part.value}", "priority", confirm=asked, priority=int(part.value)
                )
            case "queue":
                return act_button(f"Move it to {part.subject}", "move", confirm=asked, queue=part.subject)
            case "cancel":
                other = part.subject.rpartition("/")[2].partition("#")[0]
                return act_button(f"Cancel job {other}", "cancel-other", confirm=asked, key=other, kind="danger")
            case "smaller-request" if part.resource:
                return act_button(
                    f"Ask for less {part.resource}",
                    "resources",
                    confirm=asked,
                    resource=part.resource,
                    value=str(part.value),
                )
            case "time-limit":
                return act_button("Declare that time limit", "limit", confirm=asked, ms=int(part.value))
            case "drain" if viewer.is_admin:
                return act_button(f"Let {part.subject} take work again", "undrain", confirm=asked, node=part.subject)
            case _:
                pass
    text = f"Please: job {key} of {viewer.user} {way.sentence}."
    return span(
        button("Copy a request to the administrator", data_copy=text),
        span(" ", text, class_="quiet small unseen"),
    )
