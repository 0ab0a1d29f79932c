"""What may be done with a job from its page: the same as from the command line.

Decides which buttons a state has. Never whether the viewer may: the service refuses, and its sentence is shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from fairlead import times
from fairlead.web.frame import Given, Page, act_button
from fairlead.web.html import Html, div, element
from fairlead.web.viewer import Viewer
from fairlead.web.words import LIVE
from fairlead.wire.jobs import JobDetails


def buttons(job: JobDetails, viewer: Viewer) -> Html:
    """The buttons of a job in its state."""
    key, shown = job.key, []
    if job.state == "waiting":
        if job.held_by:
            shown.append(act_button("Release", "release"))
        else:
            shown.append(act_button("Hold", "hold", confirm=f"Keep job {key} from starting until it is released?"))
        shown += [
            _field("Priority", "priority", "priority", str(job.priority), "number"),
            _field("Queue", "move", "queue", job.queue),
        ]
        if viewer.is_admin:
            words = "Keep no room for it" if job.reserved else "Keep the next room for it"
            shown.append(act_button(words, "reserve", on="" if job.reserved else "1"))
    if job.state == "running":
        shown.append(act_button("Suspend", "suspend", confirm=f"Let job {key} stand still? It keeps its room."))
        shown.append(act_button("Requeue", "requeue", confirm=f"Stop job {key} and let it wait again?"))
    if job.state == "suspended":
        shown.append(act_button("Resume", "resume"))
    if job.state in LIVE:
        limit = times.duration_exactly(job.time_limit_ms) if job.time_limit_ms else ""
        shown.append(_field("Time limit", "limit-text", "limit", limit, placeholder="2h"))
        shown.append(act_button("Cancel", "cancel", kind="danger", confirm=f"End job {key}?"))
    else:
        shown.append(act_button("Run it again", "rerun", kind="main"))
    return div(shown, class_="acts")


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
    client = page.viewer.client

    def simply(call: Callable[[], Awaitable[object]], said: str) -> Callable[[Given], Awaitable[str]]:
        async def act(given: Given) -> str:
            del given
            await call()
            return said

        return act

    async def cancel_other(given: Given) -> str:
        await client.cancel(str(given["key"]))
        return f"Job {given['key']} is told to end."

    async def priority(given: Given) -> str:
        changed = await client.change(key, priority=_whole(given["priority"], "a priority"))
        return f"Its priority is {changed.priority} now."

    async def move(given: Given) -> str:
        changed = await client.change(key, queue=str(given["queue"]).strip())
        return f"It is in {changed.queue} now."

    async def limit(given: Given) -> str:
        ms = int(given["ms"]) if "ms" in given else times.parse_duration(str(given["limit"]))
        await client.change(key, time_limit_ms=ms)
        return f"Its time limit is {times.duration_exactly(ms)} now."

    async def resources(given: Given) -> str:
        job = await client.job(key)
        await client.change(key, resources={**job.resources, str(given["resource"]): float(given["value"])})
        return "It asks for less now."

    async def reserve(given: Given) -> str:
        await client.reserve(key, on=bool(given.get("on")))
        return "The next room is kept for it." if given.get("on") else "No room is kept for it any more."

    async def rerun(given: Given) -> str:
        del given
        again = await client.rerun(key)
        page.run("go", f"/job/{quote(again.key, safe='')}")
        return f"Submitted again as job {again.key}."

    async def undrain(given: Given) -> str:
        await client.undrain(str(given["node"]))
        return f"{given['node']} takes work again."

    page.acts |= {
        "cancel": simply(lambda: client.cancel(key), "It is told to end."),
        "hold": simply(lambda: client.hold(key), "It is on hold."),
        "release": simply(lambda: client.release(key), "It may start as soon as it can."),
        "suspend": simply(lambda: client.suspend(key), "It stands still."),
        "resume": simply(lambda: client.resume(key), "It goes on."),
        "requeue": simply(lambda: client.requeue(key), "It is stopped and waits again."),
        "cancel-other": cancel_other,
        "priority": priority,
        "move": move,
        "limit": limit,
        "limit-text": limit,
        "resources": resources,
        "reserve": reserve,
        "rerun": rerun,
        "undrain": undrain,
    }


def _whole(text: object, what: str) -> int:
    try:
        return int(str(text).strip())
    except ValueError:
        raise ValueError(f"{text!r} is not {what}; give a whole number") from None
