"""Policy: the queue file in an editor, what a change would mean, and the versions that were in force.

Decides the order: look at the difference and at what would follow, then put it in force. Never reads a queue file: the
service says what is wrong with it and where. Invariant: nothing is put in force that was not compared with what is in
force at that moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import Request
from starlette.datastructures import QueryParams

from fairlead.client.errors import ClientError, Refused
from fairlead.web.frame import Given, Page, Row, act_button, table
from fairlead.web.html import EMPTY, Html, button, div, element, joined, p, span, strong
from fairlead.web.live import Live
from fairlead.web.otherwise import otherwise
from fairlead.web.past_work import on_past_work
from fairlead.web.queue_edit import NotThere, with_value
from fairlead.web.viewer import Viewer
from fairlead.web.words import amounts, counted
from fairlead.web.words import time as moment
from fairlead.wire.configuration import Change, ConfigDifference, ConfigVersion, NamedJobs

VERSIONS = (("Version", ""), ("In force since", ""), ("By", ""), ("From", ""), ("", ""))
SHOWN = 10
PAST = (("day", 1), ("week", 7), ("month", 31))
JOBS = (
    ("would_be_stopped", "would be stopped at once", "warn"),
    ("would_fail", "would fail: its partition is removed", "warn"),
    ("would_wait", "would start now, and would wait", "warn"),
    ("would_wait_for_else", "would wait for something else", ""),
    ("would_start", "would start", ""),
)
KINDS = {
    "added": "is added",
    "changed": "changes",
    "restarted": "takes work again",
    "draining": "takes nothing new, and leaves when it is empty",
    "removed": "is removed",
}


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    page = Page(viewer, live, "/policy", "Policy")
    one = _Policy(viewer, live, page)
    await one.begin(request.query_params)
    page.panel("editor", "The queue file", one.editor, kind="main", live=False)
    page.panel("answer", "What it would change", one.answer, kind="side", live=False)
    page.panel("past", "On past work", one.past, kind="wide", live=False)
    page.panel("history", "Versions that were in force", one.history, kind="wide")
    page.acts |= {"compare": one.compare, "on-past": one.try_on_past, "apply": one.apply}
    page.acts |= {"load": one.load, "rollback": one.roll_back}
    await page.open()


class _Policy:
    """What one page shows."""

    def __init__(self, viewer: Viewer, live: Live, page: Page) -> None:
        self.viewer, self.live, self.page = viewer, live, page
        self._text, self._note = "", ""
        self._base: str | None = None
        self._past: Html = EMPTY
        self._answer: Html = p(
            "Change the file, then compare: nothing is done before you put it in force.", class_="empty"
        )

    async def begin(self, asked: QueryParams) -> None:
        """The file in force, with what was dragged on the page of the queues."""
        current = await self.viewer.client.config()
        self._text = current.text
        queue, text, said = asked.get("queue", ""), current.text, []
        try:
            for keys, value in zip(asked.getlist("keys"), asked.getlist("value"), strict=False):
                text = with_value(text, queue, keys.split("/"), value)
                said.append(f"{keys.replace('/', '.')} set to {value}")
        except NotThere as no:
            self._note = str(no)
        else:
            self._text = text
            self._note = f"Of {queue} {', '.join(said)}." if said else ""

    async def editor(self) -> Html:
        """The text, and what may be done with it."""
        return element(
            "form",
            p(self._note, class_="warn small") if self._note else None,
            element("label", "queues.yaml", for_="f-text"),
            element(
                "textarea",
                self._text,
                id="f-text",
                name="text",
                rows=28,
                spellcheck="false",
                wrap="off",
                class_="editor",
            ),
            div(
                element("button", "Compare with what is in force", type="submit", class_="main"),
                span("says first what is wrong with it, if anything is", class_="quiet small"),
                class_="acts",
            ),
            data_act="compare",
            class_="big",
        )

    async def answer(self) -> Html:
        """What came of the last comparison."""
        return self._answer

    async def compare(self, given: Given) -> str:
        """What the file would change, in the queues and for what runs and waits."""
        text = str(given["text"]).replace("\r\n", "\n")
        try:
            difference = await self.viewer.client.config_difference(text=text)
        except Refused as no:
            self._answer, self._past = _problems(no), EMPTY
        else:
            self._text, self._base = text, difference.base
            follows = await self._follows(text) if not difference.refused and not difference.empty else None
            self._answer = joined(_difference(difference), follows, self._apply_button(difference))
            self._past = EMPTY if difference.refused or difference.empty else _choice_of_days()
        await self.page.redraw("answer", "past")
        return ""

    async def past(self) -> Html:
        """What the file that was compared would have made of past work; nothing until one was."""
        return self._past

    async def try_on_past(self, given: Given) -> str:
        """Simulate the work of the last days under both files."""
        days = int(given["days"])
        self._past = p(f"The work of the last {counted(days, 'day')} is simulated twice …", class_="quiet")
        await self.page.redraw("past")
        try:
            found = on_past_work(await self.viewer.client.compare_config(text=self._text, days=days))
        except ClientError as error:
            found = p(error.message[:1].upper() + error.message[1:] + ".", class_="failed")
        self._past = joined(found, _choice_of_days())
        await self.page.redraw("past")
        return ""

    async def _follows(self, text: str) -> Html:
        try:
            return joined(
                element("h3", "For what runs and waits"),
                otherwise(await self.viewer.client.what_if(config=text, forecast=True, seconds=3.0)),
            )
        except ClientError as error:
            return p(f"What would follow cannot be said: {error.message}", class_="quiet")

    def _apply_button(self, difference: ConfigDifference) -> Html | None:
        if difference.refused or difference.empty:
            return None
        return div(
            act_button("Put it in force", "apply", kind="main", confirm="Put this queue file in force for everybody?"),
            class_="acts",
        )

    async def apply(self, given: Given) -> str:
        """Put in force what was compared, unless something else was meanwhile."""
        del given
        applied = await self.viewer.client.apply_config(self._text, base=self._base)
        self._answer = p(f"Version {applied.version} is in force.")
        await self.page.redraw("answer", "history")
        return f"Version {applied.version} is in force."

    async def load(self, given: Given) -> str:
        """An earlier version into the editor."""
        found = await self.viewer.client.config(version=int(given["version"]))
        self._text, self._note = found.text, f"Version {found.version}, as it was."
        self.page.run("fill", "f-text", found.text)
        return f"Version {found.version} is in the editor; compare it with what is in force."

    async def roll_back(self, given: Given) -> str:
        """Put an earlier version in force again."""
        current = await self.viewer.client.config_status()
        applied = await self.viewer.client.roll_config_back(version=int(given["version"]), base=current.checksum)
        await self.page.redraw("history")
        return f"The text of version {given['version']} is in force again, as version {applied.version}."

    async def history(self) -> Html:
        """The newest versions."""

        async def ask() -> list[ConfigVersion]:
            found = []
            async for each in self.viewer.client.config_history():
                found.append(each)
                if len(found) >= SHOWN:
                    break
            return found

        found = await self.live.shared(("versions", self.viewer.rights), ask)
        rows: list[Row] = [
            (
                str(each.version),
                [
                    each.version,
                    joined(moment(each.at_ms, "date"), span(" in force", class_="tag") if each.in_force else None),
                    each.who or "–",
                    each.source,
                    div(
                        act_button("Into the editor", "load", version=each.version),
                        None
                        if each.in_force
                        else act_button(
                            "Put back",
                            "rollback",
                            version=each.version,
                            confirm=f"Put the queue file of version {each.version} in force again?",
                        ),
                        class_="acts flat",
                    ),
                ],
            )
            for each in found
        ]
        return table(VERSIONS, rows, "Versions of the queue file") if rows else p("None is kept.", class_="empty")


def _choice_of_days() -> Html:
    """How much past work it may be tried on."""
    return div(
        [act_button(f"Try it on the last {words}", "on-past", days=days) for words, days in PAST],
        span("takes up to a minute; nothing is changed", class_="quiet small"),
        class_="acts",
    )


# -- in words ---------------------------------------------------------------------------------------------------------


def _problems(no: Refused) -> Html:
    """Everything wrong with a file; a click leads to its line."""
    details = no.problem.details
    items = []
    for each in details:
        line = each.get("line")
        where = button(f"line {line}", class_="plain", data_line=str(line), data_field="f-text") if line else None
        items.append(element("li", where, " ", str(each.get("path") or ""), " ", str(each.get("message") or "")))
    return joined(p(strong(no.message), class_="failed"), element("ul", items) if items else None)


def _difference(found: ConfigDifference) -> Html:
    if found.refused is not None:
        return p(f"It would be refused: {found.refused.sentence}.", class_="failed")
    lines = [element("li", words, class_=kind or None) for kind, words in _lines(found)]
    if not lines:
        return p("It is what is in force: no queue, limit, rule or job would change.")
    return element("ul", lines, class_="otherwise")


def _lines(found: ConfigDifference) -> Iterator[tuple[str, Html]]:
    for name in found.partitions_removed:
        yield "warn", joined(f"partition {name} is removed, with all that is in it")
    for name in found.partitions_added:
        yield "", joined(f"partition {name} is added")
    for setting in found.settings:
        yield "", _changes([setting])
    for each in found.declared:
        yield (
            "",
            joined(
                f"{each.what.replace('-', ' ')} {each.name} {KINDS.get(each.kind, each.kind)}", _changes(each.changes)
            ),
        )
    for queue in found.queues:
        jobs = f", with {counted(queue.jobs, 'job')} in it" if queue.jobs and queue.kind != "changed" else ""
        head = joined(strong(queue.queue), f" {KINDS.get(queue.kind, queue.kind)}{jobs}")
        yield "warn" if queue.kind in ("removed", "draining") else "", joined(head, _changes(queue.changes))
    for over in found.over:
        whose = f"{over.who} in {over.queue}" if over.who else over.queue
        what = "number of running jobs" if over.what == "maxapplications" else "maximum"
        yield "warn", joined(f"{whose} would be over its {what}: {amounts(over.used)} in use of {amounts(over.limit)}")
    for name, what, kind in JOBS:
        part: NamedJobs = getattr(found, name)
        if part.count:
            keys = ", ".join(f"{job.key} of {job.user}" for job in part.jobs[:SHOWN])
            yield kind, joined(f"{counted(part.count, 'job')} {what}: {keys}{' …' if part.count > SHOWN else ''}")


def _changes(changes: Any) -> Html:
    return joined(
        [div(f"{each.what}: {_value(each.old)} → {_value(each.new)}", class_="quiet small") for each in _each(changes)]
    )


def _each(changes: Any) -> list[Change]:
    return list(changes)


def _value(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, dict) and value and all(isinstance(each, int | float) for each in value.values()):
        return amounts(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.items()) or "nothing"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
