"""A form for one job, or an array: what would become of it is said before, and it remembers what was asked for last.

Decides what is asked for and how it is read. Never checks what the service checks: its refusal names the field.
"""

from __future__ import annotations

import shlex
import time
from typing import Any
from urllib.parse import quote

from fastapi import Request

from fairlead import times
from fairlead.core.model.quantities import resource_called
from fairlead.web.colours import leaves, trees_of
from fairlead.web.fields import amount_of, keys_of, labelled, read_by, variables_of, whole_of
from fairlead.web.frame import Given, Page
from fairlead.web.html import EMPTY, Html, div, element, joined, p, span
from fairlead.web.live import Live
from fairlead.web.otherwise import otherwise
from fairlead.web.viewer import Viewer
from fairlead.web.words import short_queue
from fairlead.wire.cluster import Queue
from fairlead.wire.fields import with_cpu

DEFAULT_QUEUE = "root.default"


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    page = Page(viewer, live, "/submit", "Submit a job")
    answer: Html = EMPTY
    trees = await trees_of(viewer, live)

    async def form() -> Html:
        return _form(list(leaves(trees)))

    async def said() -> Html:
        return answer

    async def suppose(given: Given) -> str:
        nonlocal answer
        draft = draft_of(given)
        told = await viewer.client.what_if(submit=draft, forecast=False)
        answer = otherwise(told, is_draft=True)
        if told.waits:
            answer = joined(answer, p("When it is expected to start is being worked out.", class_="quiet small"))
            await page.redraw("answer")
            answer = otherwise(await viewer.client.what_if(submit=draft, forecast=True), is_draft=True)
        await page.redraw("answer")
        return ""

    async def submit(given: Given) -> str:
        if given.get("how") == "suppose":
            return await suppose(given)
        taken = await viewer.client.submit([draft_of(given)])
        page.run("remember", "submit")
        page.run("go", f"/job/{quote(taken.jobs[0].key, safe='')}")
        return f"Submitted as job {taken.jobs[0].key}."

    del request
    page.panel("form", "", form, kind="main", live=False)
    page.panel("answer", "What would become of it", said, kind="side", live=False)
    page.acts["submit"] = submit
    await page.open()


def _form(queues: list[Queue]) -> Html:
    usual = next((queue.path for queue in queues if queue.path == DEFAULT_QUEUE), "")
    options = [element("option", "as the rules of the machine choose", value="")] + [
        element("option", short_queue(queue.path), value=queue.path, selected=queue.path == usual) for queue in queues
    ]
    return element(
        "form",
        labelled(
            "Command",
            "command",
            "textarea",
            rows=4,
            required=True,
            placeholder="python3 train.py --epochs 10",
            hint="One line is a command; several, or one that begins with #!, are a script.",
        ),
        div(
            labelled("Queue", "queue", "select", options),
            labelled("Name", "name"),
            labelled("Priority", "priority", kind="number", value="0"),
            class_="fields",
        ),
        div(
            labelled("Cores", "cpu", value="1", hint="such as 2 or 0.5"),
            labelled("Memory", "memory", placeholder="4Gi"),
            labelled("GPUs", "gpu", kind="number", min=0),
            labelled("Time limit", "limit", placeholder="2h", hint="a job with one may start earlier"),
            class_="fields",
        ),
        div(
            labelled("Array", "array", placeholder="1-200%8", hint="indices of its parts; %8: so many at a time"),
            labelled("Directory", "cwd", placeholder="your home"),
            labelled("Starts after jobs", "after", placeholder="12 13", hint="once they have ended well"),
            labelled("Not before", "begin", placeholder="tomorrow 8:00"),
            class_="fields",
        ),
        labelled("Variables", "env", "textarea", rows=2, placeholder="NAME=value, one a line"),
        element(
            "label",
            element("input", type="checkbox", name="idle", value="1"),
            span(" Runs on what others leave over, and gives it back"),
            class_="check",
        ),
        div(
            element("button", "Submit", type="submit", class_="main", name="how", value="submit"),
            element("button", "What if?", type="submit", name="how", value="suppose"),
            class_="acts",
        ),
        data_act="submit",
        data_remember="submit",
        class_="big",
    )


def draft_of(given: Given) -> dict[str, Any]:
    """What the fields of the form ask for. Raises `ValueError` with a sentence that names the field."""

    def text(name: str) -> str:
        return str(given.get(name) or "").strip()

    draft: dict[str, Any] = {name: text(name) for name in ("name", "queue", "array") if text(name)}
    draft |= _command(text("command"))
    amounts = {name: amount_of(name, text(name)) for name in ("cpu", "memory", "gpu") if text(name)}
    if amounts:
        draft["resources"] = with_cpu({resource_called(name): amount for name, amount in amounts.items()})
    if text("priority"):
        draft["priority"] = whole_of("Priority", text("priority"))
    if text("limit"):
        draft["time_limit_ms"] = read_by("Time limit", times.parse_duration, text("limit"))
    if text("begin"):
        draft["begin_at_ms"] = read_by("Not before", times.parse_begin, text("begin"), time.time_ns() // 1_000_000)
    if text("cwd"):
        draft["cwd"] = text("cwd")
    if text("after"):
        draft["after"] = [{"key": key} for key in keys_of(text("after"))]
    if text("env"):
        draft["env"] = variables_of(text("env"))
    if given.get("idle"):
        draft["idle"] = True
    return draft


def _command(text: str) -> dict[str, Any]:
    if not text:
        raise ValueError("Command: say what is to run")
    if "\n" in text or text.startswith("#!"):
        script = text.replace("\r\n", "\n")
        script = script if script.startswith("#!") else f"#!/bin/sh\n{script}"
        return {"script": f"{script}\n", "command": ["script"]}
    try:
        return {"command": shlex.split(text)}
    except ValueError as error:
        raise ValueError(f"Command: {error}") from None
