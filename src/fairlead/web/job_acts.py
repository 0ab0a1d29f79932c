"""What may be done with a job from its page: the same as from the command line.

Decides which buttons a state has. Never whether the viewer may: the service refuses, and its sentence is shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote

from fairlead import times
from fairlead.web.fields import whole_of
from fairlead.web.frame import Given, Page, act_button
from fairlead.web.html import Html, button, code, div, element, joined
from fairlead.web.job_change import change_form, changed, signal_form, signal_number
from fairlead.web.viewer import Viewer
from fairlead.web.words import LIVE
from fairlead.wire.jobs import JobDetails


def buttons(job: JobDetails, viewer: Viewer) -> Html:
    """The buttons of a job in its state."""
    key, shown = job.key, []
    if job.state == "waiting" or (job.parts is not None and job.parts.waiting + job.parts.held):
        shown += _while_it_waits(job, viewer)
    if job.state == "running":
        shown.append(act_button("Suspend", "suspend", confirm=f"Let job {key} stand still? It keeps its room."))
        shown.append(act_button("Requeue", "requeue", confirm=f"Stop job {key} and let it wait again?"))
        shown.append(signal_form())
    if job.state == "suspended" or (job.parts is not None and job.parts.suspended):
        shown.append(act_button("Resume", "resume"))
    if job.state in LIVE:
        limit = times.duration_exactly(job.time_limit_ms) if job.time_limit_ms else ""
        shown.append(_field("Time limit", "limit-text", "limit", limit, placeholder="2h"))
        if job.state == "stopping":
            words = f"End job {key} at once, without the rest of its grace?"
            shown.append(act_button("End it now", "cancel-now", kind="danger", confirm=words))
        else:
            shown.append(act_button("Cancel", "cancel", kind="danger", confirm=f"End job {key}?"))
    else:
        shown.append(act_button("Run it again", "rerun", kind="main"))
        if job.parts is not None and job.parts.failed:
            shown.append(act_button("Run the failed parts again", "rerun-failed"))
    attach = f"fairlead attach {key}"
    sit = div("Its terminal: ", code(attach), " ", button("Copy", data_copy=attach), class_="quiet small")
    return joined(div(shown, class_="acts"), sit if job.terminal and job.state == "running" else None)


def _while_it_waits(job: JobDetails, viewer: Viewer) -> list[Html]:
    """Of a job that waits, or of an array of which parts wait, whatever the others do."""
    shown = [act_button("Release", "release")] if job.held_by else []
    if not job.held_by or (job.parts is not None and job.parts.waiting):
        shown.append(act_button("Hold", "hold", confirm=f"Keep job {job.key} from starting until it is released?"))
    shown += [
        _field("Priority", "priority", "priority", str(job.priority), "number"),
        _field("Queue", "move", "queue", job.queue),
        change_form(job),
    ]
    if viewer.is_admin:
        words = "Keep no room for it" if job.reserved else "Keep the next room for it"
        shown.append(act_button(words, "reserve", on="" if job.reserved else "1"))
    return shown


def _field(words: str, act: str, name: str, value: str, kind: str = "text", placeholder: str = "") -> Html:
    """A small form that changes one thing."""
    field_id = f"f-{act}"
    return element(
        "details",
        element("summary", words, class_="button"),
        element(
            "form",
            element("label", f"New {words.lower()}", for_=field_id),
            element(
                "input", id=field_id, name=name, value=value, type=kind, placeholder=placeholder or None, required=True
            ),
            element("button", "Change", type="submit", class_="main"),
            data_act=act,
        ),
        class_="field",
        data_keep=True,
    )


def add_acts(page: Page, key: str) -> None:
    """Teach a page what its buttons do."""
    acts, client = _Acts(page, key), page.viewer.client
    page.acts |= {
        "cancel": simply(lambda: client.cancel(key), "It is told to end."),
        "cancel-now": simply(lambda: client.cancel(key, now=True), "It is ended at once."),
        "hold": simply(lambda: client.hold(key), "It is on hold."),
        "release": simply(lambda: client.release(key), "It may start as soon as it can."),
        "suspend": simply(lambda: client.suspend(key), "It stands still."),
        "resume": simply(lambda: client.resume(key), "It goes on."),
        "requeue": simply(lambda: client.requeue(key), "It is stopped and waits again."),
        "cancel-other": acts.cancel_other,
        "priority": acts.priority,
        "move": acts.move,
        "limit": acts.limit,
        "limit-text": acts.limit,
        "resources": acts.resources,
        "change": acts.change,
        "signal": acts.signal,
        "reserve": acts.reserve,
        "rerun": acts.rerun,
        "rerun-failed": partial(acts.rerun, failed=True),
        "undrain": acts.undrain,
    }


def simply(call: Callable[[], Awaitable[object]], said: str) -> Callable[[Given], Awaitable[str]]:
    """What needs nothing but the key."""

    async def act(given: Given) -> str:
        del given
        await call()
        return said

    return act


class _Acts:
    """What is done with one job, with what was typed or chosen for it; each says what came of it."""

    def __init__(self, page: Page, key: str) -> None:
        self.page, self.key, self.client = page, key, page.viewer.client

    async def cancel_other(self, given: Given) -> str:
        await self.client.cancel(str(given["key"]))
        return f"Job {given['key']} is told to end."

    async def priority(self, given: Given) -> str:
        changed_to = await self.client.change(self.key, priority=whole_of("Priority", str(given["priority"])))
        return f"Its priority is {changed_to.priority} now."

    async def move(self, given: Given) -> str:
        moved = await self.client.change(self.key, queue=str(given["queue"]).strip())
        return f"It is in {moved.queue} now."

    async def limit(self, given: Given) -> str:
        ms = int(given["ms"]) if "ms" in given else times.parse_duration(str(given["limit"]))
        await self.client.change(self.key, time_limit_ms=ms)
        return f"Its time limit is {times.duration_exactly(ms)} now." if ms else "It has no time limit now."

    async def resources(self, given: Given) -> str:
        job = await self.client.job(self.key)
        await self.client.change(self.key, resources={**job.resources, str(given["resource"]): float(given["value"])})
        return "It asks for less now."

    async def change(self, given: Given) -> str:
        await self.client.change(self.key, **changed(await self.client.job(self.key), given))
        return "It is changed."

    async def signal(self, given: Given) -> str:
        await self.client.signal(self.key, signal_number(str(given["signal"])))
        return f"SIG{given['signal']} is sent."

    async def reserve(self, given: Given) -> str:
        await self.client.reserve(self.key, on=bool(given.get("on")))
        return "The next room is kept for it." if given.get("on") else "No room is kept for it any more."

    async def rerun(self, given: Given, *, failed: bool = False) -> str:
        del given
        again = await self.client.rerun(self.key, failed=failed)
        self.page.run("go", f"/job/{quote(again.key, safe='')}")
        return f"Submitted again as job {again.key}."

    async def undrain(self, given: Given) -> str:
        await self.client.undrain(str(given["node"]))
        return f"{given['node']} takes work again."
