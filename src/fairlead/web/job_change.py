"""The form that changes what a job asks for and waits for, as `fairlead update` does, and signals.

Decides which fields a state has, and sends what was changed alone. Never whether the viewer may: the service says that.
"""

from __future__ import annotations

import shlex
import signal
import time
from typing import Any

from fairlead import times
from fairlead.core.model.quantities import format_amount, resource_called
from fairlead.web.fields import amount_of, keys_of, labelled, read_by, whole_of
from fairlead.web.frame import Given
from fairlead.web.html import Html, div, element
from fairlead.wire.fields import with_cpu, with_vcore
from fairlead.wire.jobs import JobDetails

SIGNALS = ("USR1", "USR2", "HUP", "INT", "TERM", "QUIT", "WINCH")
"""Those that programs are written to hear; `fairlead signal` sends any."""
AMOUNTS = (("Cores", "cpu"), ("Memory", "memory"), ("GPUs", "gpu"))


def change_form(job: JobDetails) -> Html:
    """Name, size, conditions and command of a job that waits; of an array also how many parts run at a time."""
    now = _now(job)

    def field(words: str, name: str, **given: Any) -> Html:
        return labelled(words, f"change-{name}", name=name, value=now.get(name), **given)

    fields = [field("Name", "name"), *(field(words, name) for words, name in AMOUNTS)]
    fields += [
        field("Starts after jobs", "after", hint="once they have ended well"),
        field("Not before", "begin", placeholder="tomorrow 8:00"),
    ]
    if job.parts is not None:
        fields.append(field("Parts at a time", "at_once", hint="0: all"))
    command = field("Command", "command") if now["command"] else None
    return element(
        "details",
        element("summary", "Change", class_="button"),
        element(
            "form",
            div(fields, class_="fields"),
            command,
            div(element("button", "Change", type="submit", class_="main"), class_="acts"),
            data_act="change",
        ),
        class_="field broad",
        data_keep=True,
    )


def signal_form() -> Html:
    """Which signal to send to the processes of a job that runs."""
    return element(
        "details",
        element("summary", "Signal", class_="button"),
        element(
            "form",
            labelled("Signal", "signal", "select", [element("option", each, value=each) for each in SIGNALS]),
            element("button", "Send", type="submit", class_="main"),
            data_act="signal",
        ),
        class_="field",
        data_keep=True,
    )


def _now(job: JobDetails) -> dict[str, str]:
    """What the fields show."""
    has = with_vcore(job.resources)
    amounts = {
        name: format_amount(resource, has[resource]) if (resource := resource_called(name)) in has else ""
        for _, name in AMOUNTS
    }
    return amounts | {
        "name": job.name,
        "after": " ".join(each.key for each in job.after),
        "command": "" if job.command == ["script"] else shlex.join(job.command),
        "at_once": f"{job.parts.at_once}" if job.parts is not None else "",
    }


def changed(job: JobDetails, given: Given) -> dict[str, Any]:
    """What differs from the job as it is, for `client.change`. Raises `ValueError` with a sentence for the field."""
    now = _now(job)
    new = {name: str(given[name]).strip() for name in (*now, "begin") if name in given}
    differs = {name: text for name, text in new.items() if text != now.get(name, "")}
    found: dict[str, Any] = {}
    if "name" in differs:
        found["name"] = differs["name"]
    if amounts := {name: differs[name] for _, name in AMOUNTS if name in differs}:
        # What is not named stays as it is; of what the field is empty the job asks for nothing any more.
        read = {resource_called(name): amount_of(name, text) if text else 0 for name, text in amounts.items()}
        found["resources"] = with_cpu(read)
    if "after" in differs:
        known = {each.key: {"key": each.key, "awaited": each.awaited} for each in job.after}
        found["after"] = [known.get(key, {"key": key}) for key in keys_of(differs["after"])]
    if differs.get("begin"):
        found["begin_at_ms"] = read_by("Not before", times.parse_begin, differs["begin"], time.time_ns() // 1_000_000)
    if differs.get("at_once"):
        found["at_once"] = whole_of("Parts at a time", differs["at_once"])
    if differs.get("command"):
        try:
            found["command"] = shlex.split(differs["command"])
        except ValueError as error:
            raise ValueError(f"Command: {error}") from None
    if not found:
        raise ValueError("nothing is changed: it is so already")
    return found


def signal_number(name: str) -> int:
    """Of one of `SIGNALS`."""
    return int(signal.Signals[f"SIG{name}"]) if name in SIGNALS else whole_of("Signal", name)
