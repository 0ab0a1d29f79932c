"""What pages say of a job: when it starts, how long it has waited, what it wrote, what stands in its way."""

from __future__ import annotations

import asyncio
import html
import re
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.datastructures import QueryParams
from testbed.answering import made

from fairlead.client.errors import ClientError, NoService, Refused
from fairlead.web.forecasts import _Forecasts, line_forecast
from fairlead.web.frame import Page
from fairlead.web.job_acts import _Acts, buttons
from fairlead.web.job_page import _Job
from fairlead.web.live import Live
from fairlead.web.otherwise import otherwise
from fairlead.web.output import Output, why_nothing
from fairlead.web.parts import MOST, parts
from fairlead.web.policy_page import _Policy
from fairlead.web.queues_page import _bar, _Queues
from fairlead.web.stairs import OVERTAKEN, interval
from fairlead.web.story import story
from fairlead.web.verdict import verdict
from fairlead.web.viewer import Viewer
from fairlead.wire.arrays import Parts
from fairlead.wire.cluster import Problem, Queue
from fairlead.wire.jobs import Job, JobDetails
from fairlead.wire.pages import ExpectedStart
from fairlead.wire.questions import Begin, Otherwise
from fairlead.wire.verdicts import Verdict

NOBODY: dict[str, Any] = {"count": 0, "hidden": 0, "jobs": []}


def test_a_forecast_comes_with_what_is_said_once_it_is_overtaken() -> None:
    """The browser shows that, by its clock; what is later than was looked at is never overtaken."""
    at = ExpectedStart(key="1", median_ms=2_000, earliest_ms=1_000, latest_ms=3_000)
    shown = str(interval(at, 0, 5_000))
    assert 'data-latest="3000"' in shown
    assert "expected by now" in shown
    assert OVERTAKEN in shown
    endless = ExpectedStart(key="1", median_ms=2_000, earliest_ms=1_000, latest_ms=None)
    assert "data-latest" not in str(interval(endless, 0, 5_000))


def test_what_could_not_be_looked_at_is_not_known_once_that_time_is_over() -> None:
    """`later than now` would say nothing."""
    shown = str(interval(ExpectedStart(key="1", median_ms=None, earliest_ms=3_000, latest_ms=None), 0, 5_000))
    assert 'data-latest="3000"' in shown
    assert "not before " in shown
    assert "not known" in shown


async def test_an_overtaken_forecast_of_the_line_is_made_anew_though_nothing_changed() -> None:
    live, of, asked = Live(), _Forecasts(), list[int]()
    late = ExpectedStart(key="1", median_ms=2_000, earliest_ms=1_000, latest_ms=3_000)

    async def forecast(**_: Any) -> Any:
        asked.append(1)
        return SimpleNamespace(made_ms=0, starts=[late])

    viewer = cast(Viewer, SimpleNamespace(client=SimpleNamespace(line_forecast=forecast)))
    live.notes["forecasts"], of.seq, of.newest = of, live.seq, (0, {})
    assert line_forecast(live, viewer) == (0, {})
    assert of.task is None, "it is good still"
    of.good_until = time.monotonic() - 1
    line_forecast(live, viewer)
    assert of.task is not None
    await of.task
    assert asked == [1]
    assert 2 < of.good_until - time.monotonic() <= 3


@pytest.mark.parametrize(
    ("state", "attempts", "said"),
    [
        ("waiting", 0, "It has not started yet."),
        ("running", 1, "Nothing yet."),
        ("failed", 1, "It wrote nothing."),
        ("cancelled", 0, "It never ran."),
    ],
)
def test_nothing_written_is_said_by_what_became_of_the_job(state: str, attempts: int, said: str) -> None:
    assert why_nothing(made(JobDetails, state=state, attempts=attempts)) == said
    array = made(JobDetails, state=state, attempts=0, parts=made(Parts))
    assert why_nothing(array) == "Each part writes for itself, and its page shows it."


async def written(monkeypatch: pytest.MonkeyPatch, job: JobDetails, ends: list[bytes | ClientError]) -> list[Any]:
    """What a page is told of what such a job writes; `ends`: what comes of following it, each time."""
    told, asked = list[Any](), list[int]()

    async def of(key: str) -> JobDetails:
        return job

    async def follow(key: str, stream: str, *, offset: int, attempt: int) -> AsyncIterator[bytes]:
        asked.append(offset)
        end = ends.pop(0) if ends else b""
        if isinstance(end, ClientError):
            raise end
        if end:
            yield end

    monkeypatch.setattr("fairlead.web.output.AGAIN_S", 0.0)
    page = SimpleNamespace(run=lambda name, stream, *given: told.append(given) if stream == "stdout" else None)
    viewer = SimpleNamespace(client=SimpleNamespace(job=of, follow=follow))
    one = asyncio.create_task(Output(cast(Viewer, viewer), "1", cast(Page, page))._stream("stdout"))
    for _ in range(50):
        await asyncio.sleep(0)
    one.cancel()
    assert all(offset < 0 for offset in asked), "of a large output a browser bears the end"
    assert job.state == "running" or len(asked) == 1, "what is over is read once"
    return told


async def test_of_what_a_job_wrote_the_end_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(JobDetails, state="succeeded", attempts=1, parts=None)
    assert await written(monkeypatch, job, [b"end"]) == [("", True, "It wrote nothing."), ("end", True)]


async def test_what_may_not_be_read_is_not_called_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who administers a queue sees its jobs, and not what they write."""
    no = Refused(Problem(type="", title="", status=403, detail="ask ann to show it", code="forbidden"))
    job = made(JobDetails, state="running", attempts=1, parts=None)
    assert (await written(monkeypatch, job, [no] * 99))[:2] == [
        ("", True, "Nothing yet."),
        ("", False, "[ask ann to show it]"),
    ]


async def test_output_goes_on_after_a_break(monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(JobDetails, state="running", attempts=1, parts=None)
    told = await written(monkeypatch, job, [b"a", NoService("broken"), b"ab"])
    assert told == [("", True, "Nothing yet."), ("a", True), ("", False, "[broken]"), ("ab", True)]


async def test_a_command_is_shown_as_it_would_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of its words belong together is to be seen, as in `fairlead show`."""

    async def details() -> JobDetails:
        return made(JobDetails, command=["sh", "-c", "echo a b"])

    one = _Job(cast(Viewer, None), Live(), "1", cast(Page, None))
    monkeypatch.setattr(one, "_details", details)
    assert "<code>sh -c 'echo a b'</code>" in await one.facts()


def test_how_long_a_job_waits_or_runs_goes_on_by_the_clock_of_the_browser() -> None:
    """A span that was worked out here would stand still until something else changes."""
    began = [{"at_ms": 1_000, "what": "submitted", "detail": "by ann"}]
    times: dict[str, Any] = {"submitted_at_ms": 1_000, "started_at_ms": None, "ended_at_ms": None, "history": began}
    waits = str(story(made(JobDetails, state="waiting", **times)))
    assert "waits for <time" in waits
    assert 'data-at="1000"' in waits
    runs = str(story(made(JobDetails, state="running", **times | {"started_at_ms": 61_000})))
    assert "waited 1m · runs for <time" in runs
    ended = str(story(made(JobDetails, state="succeeded", **times | {"started_at_ms": 61_000, "ended_at_ms": 62_000})))
    assert "waited 1m · ran 1.0s" in ended
    assert "for <time" not in ended


def test_what_a_job_stood_still_is_no_time_that_it_ran() -> None:
    """As in `fairlead show`; a suspended job was said to run on."""
    began = [{"at_ms": 1_000, "what": "submitted", "detail": "by ann"}]
    job: dict[str, Any] = {"submitted_at_ms": 1_000, "started_at_ms": 1_000, "ended_at_ms": None, "history": began}
    suspended = job | {"state": "suspended", "suspended_ms": 5_000, "suspended_at_ms": 61_000}
    shown = str(story(made(JobDetails, **suspended)))
    assert "ran 55s · stood still 5.0s · stands still for <time" in shown
    assert 'data-at="61000"' in shown
    runs = str(story(made(JobDetails, **job | {"state": "running", "suspended_ms": 5_000})))
    assert "stood still 5.0s · runs for <time" in runs
    assert 'data-at="6000"' in runs
    over = {"attempt": 1, "node": "n", "how": "evicted", "rule": "", "on_behalf_of": "", "suspended_ms": 40_000}
    past = [over | {"started_at_ms": 1_000, "ended_at_ms": 61_000}]
    again = job | {"state": "failed", "started_at_ms": 61_000, "ended_at_ms": 71_000, "past": past}
    shown = str(story(made(JobDetails, **again)))
    assert "ran 30s · stood still 40s" in shown
    assert ", after 20s" in shown


def test_what_was_stopped_before_says_why_in_words() -> None:
    before = {
        "attempt": 1,
        "node": "n",
        "how": "evicted",
        "rule": "priority",
        "on_behalf_of": "7",
        "ended_at_ms": 5_000,
    }
    job = made(JobDetails, state="waiting", history=[{"at_ms": 1, "what": "submitted", "detail": ""}], past=[before])
    assert "(that one has a higher priority)" in str(story(job))


def test_what_idle_work_of_a_queue_uses_is_said() -> None:
    """As `fairlead queues` says it; the page said that the queue uses nothing."""
    queue = made(Queue, path="root.a", allocated={"cpu": 1}, idle={"cpu": 2}, max={"cpu": 8}, pending={})
    shown = str(_bar(queue, "cpu", 8))
    assert "1 used, 2 by idle work, at most 8" in shown
    assert 'class="part idle" style="width:25.00%"' in shown


def test_in_a_queue_that_uses_more_than_it_may_nothing_is_left() -> None:
    """Its maximum was lowered: the page said that room for `cpu -2` is left."""
    queues = _Queues(cast(Viewer, SimpleNamespace(acts=False)), Live(), cast(Page, None), "")
    fields: dict[str, Any] = {"allocated": {"cpu": 3}, "pending": {}, "idle": {}, "max": {"cpu": 1}, "children": []}
    fields |= {"running_applications": 1, "max_applications": 0, "waiting": 0, "priority": None, "leaf": True}
    root = made(Queue, path="root", headroom={"cpu": -2, "memory": 2**30}, **fields)
    shown = str(queues._tree([root]))
    assert "cpu 0, memory 1Gi" in shown


def test_more_than_a_limit_is_seen_beyond_its_mark() -> None:
    """What is used may fill the limit: what is asked for would be outside of the picture."""
    level = {"queue": "root", "who": "", "resource": "cpu", "needed": 4, "used": 4, "max": 4, "blocks": True}
    shown = str(verdict(made(Verdict, levels=[level], holders=[], hidden_holders=0, details=[])))
    assert 'class="part wanted over" style="width:50.00%"' in shown
    assert 'class="mark" style="left:50.00%"' in shown


def test_what_is_not_submitted_yet_is_it_in_the_answer() -> None:
    """Its key is nothing that anybody typed in."""
    parts = ("starts", "starts_not", "elsewhere", "evicted", "spared", "ends")
    nothing = dict.fromkeys(parts, NOBODY) | {
        "supposed": "ann submits new",
        "refused": [],
        "shares": [],
        "expected": [],
    }
    reason = {"code": "x", "sentence": "needs cpu 8"}
    waits = made(Otherwise, **nothing, waits=[{"application": "new", "key": "new", "reason": reason}], empty=False)
    shown = str(otherwise(waits, is_draft=True))
    assert "If you submit it:" in shown
    assert "it would wait: needs cpu 8" in shown
    assert "new" not in shown
    times = {"earliest_ms": 60_000, "median_ms": 90_000, "latest_ms": None}
    begins = [made(Begin, key="new", known=True, broken_off=0, **times)]
    later = str(otherwise(made(Otherwise, **nothing, waits=[], begins=begins, empty=False), is_draft=True))
    assert "it is expected to start <strong><time" in later
    assert "latest not in sight)" in later
    one = {"key": "new", "user": "ann", "queue": "root.a", "node": "n1"}
    other = {"key": "9", "user": "bob", "queue": "root.a", "on_behalf_of": "new/new", "rule": "priority"}
    stops = nothing | {
        "starts": {"count": 1, "hidden": 0, "jobs": [one]},
        "evicted": {"count": 1, "hidden": 0, "jobs": [other]},
    }
    shown = str(otherwise(made(Otherwise, **stops, waits=[], empty=False), is_draft=True))
    assert "it, on n1" in shown
    assert "9 (bob, for it, that one has a higher priority)" in shown


async def test_the_way_to_the_queue_file_keeps_the_whole_name_of_the_queue() -> None:
    """A `#` in it was the end of the address: the page came without a queue and without the change."""
    parts = ("starts", "starts_not", "elsewhere", "evicted", "spared", "ends")
    nothing = dict.fromkeys(parts, NOBODY) | {"supposed": "x", "refused": [], "shares": [], "expected": [], "waits": []}

    async def config() -> Any:
        return SimpleNamespace(
            text="""
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: a#b
"""
        )

    asked: list[str] = []

    async def what_if(config: str, **_: Any) -> Any:
        asked.append(config)
        return made(Otherwise, **nothing, empty=True)

    async def redraw(_: str) -> None:
        return None

    viewer = cast(Viewer, SimpleNamespace(client=SimpleNamespace(config=config, what_if=what_if)))
    queues = _Queues(viewer, Live(), cast(Page, SimpleNamespace(redraw=redraw)), "root.a#b")
    await queues.suppose({"what": "max", "value": "2", "resource": "cpu"})
    [link] = re.findall('href="([^"]*)"', str(queues._answer))
    address = urlsplit(html.unescape(link))
    assert address.path == "/policy"
    assert parse_qs(address.query) == {"queue": ["root.a#b"], "keys": ["resources/max/vcore"], "value": ["2000m"]}
    # What is dragged next is supposed beside that: the first one stays where it was left.
    await queues.suppose({"what": "offset", "value": "-3", "resource": ""})
    assert all(each in asked[-1] for each in ("2000m", "-3"))
    [link] = re.findall('href="([^"]*)"', str(queues._answer))
    policy = _Policy(viewer, Live(), cast(Page, None))
    await policy.begin(QueryParams(urlsplit(html.unescape(link)).query))
    assert policy._text == asked[-1]
    assert policy._note == "Of root.a#b resources.max.vcore set to 2000m, properties.priority.offset set to -3."
    assert ' min="0.5" ' in queues._slider("Maximum of cpu", "c", 4, 4, "cpu"), "a maximum of 0 alone counts as not set"
    assert ">8Gi</output>" in queues._slider("Maximum of memory", "m", 2**33, 2**33, "memory")


@pytest.mark.parametrize(
    ("typed", "said"), [("0", "It has no time limit now."), ("90m", "Its time limit is 1h 30m now.")]
)
async def test_a_time_limit_of_nothing_is_none(typed: str, said: str) -> None:
    """As on the command line; `0s` sounds like the end of it."""

    async def change(*_: Any, **__: Any) -> None:
        return None

    page = cast(Page, SimpleNamespace(viewer=SimpleNamespace(client=SimpleNamespace(change=change))))
    assert await _Acts(page, "7").limit({"limit": typed}) == said


@pytest.mark.parametrize(
    ("waiting", "held", "shown"),
    [
        (0, 0, []),
        (3, 0, ["hold", "priority"]),
        (0, 3, ["release", "priority"]),
        (1, 2, ["release", "hold", "priority"]),
    ],
)
def test_parts_that_wait_can_be_held_and_moved_up_while_others_run(waiting: int, held: int, shown: list[str]) -> None:
    """The page of an array of which one part ran had no button for those that waited."""
    parts = made(Parts, waiting=waiting, held=held, running=1)
    job = made(JobDetails, key="7", state="running", parts=parts, held_by="ann" if held else "", command=["true"])
    html = buttons(job, cast(Viewer, SimpleNamespace(is_admin=False)))
    assert [act for act in ("release", "hold", "priority") if f'data-act="{act}"' in html] == shown
    assert 'data-act="suspend"' in html


def test_an_array_of_which_parts_are_suspended_can_go_on_while_others_run() -> None:
    """All of them had to be resumed on the pages of the parts."""
    counts = {"count": 3, "waiting": 0, "held": 0, "running": 3, "failed": 0, "suspended": 1}
    for suspended, offered in ((1, True), (0, False)):
        job = made(JobDetails, key="4", state="running", parts=counts | {"suspended": suspended})
        html = buttons(job, cast(Viewer, SimpleNamespace(is_admin=False)))
        assert ('data-act="resume"' in html) == offered


@pytest.mark.parametrize(("count", "said"), [(2, False), (MOST, True)])
async def test_of_how_many_parts_the_states_are_counted_is_said(count: int, said: bool) -> None:
    """Of an array of 10,000 it was said that 2,000 wait."""

    async def jobs(**_: Any) -> AsyncIterator[Job]:
        part = made(Job, key="4.1", state="waiting")
        for _ in range(count):
            yield part

    viewer = cast(Viewer, SimpleNamespace(rights=("ann", False), client=SimpleNamespace(jobs=jobs)))
    shown = str(await parts(viewer, Live(), "4"))
    assert shown.index("of the first 2,000 parts:") < shown.index("2,000 waiting") if said else "first" not in shown
