"""The stream of events: live, resumed, filtered, bounded."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead.core.model.decisions import Allocated, Evict
from fairlead.core.model.events import Cause
from fairlead.journal import codec
from fairlead.journal.format import EVENT
from fairlead.journal.reader import Reader
from fairlead.journal.store import Journal
from fairlead.local.callers import Caller
from fairlead.runtime import Entry, ServiceStarted
from fairlead.service import history_events
from fairlead.service.history_events import HistoryEvent, of_record, parse_id, tell

pytestmark = pytest.mark.real


class Listener:
    """Reads events from an open response."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def next(self) -> dict[str, Any]:
        """The next event: its fields `id`, `event`, and `data` as JSON; comments are passed over."""
        fields: dict[str, Any] = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if line.startswith((":", "retry")):
                continue
            if not line:
                if fields:
                    return fields
                continue
            name, _, value = line.partition(": ")
            fields[name] = json.loads(value) if name == "data" else value

    def until(self, kind: str, key: str = "") -> list[dict[str, Any]]:
        found = []
        while True:
            event = self.next()
            found.append(event)
            if event["event"] == kind and (not key or event["data"].get("key") == key):
                return found


@contextmanager
def listening(served: Any, query: str = "", who: str = "", **headers: str) -> Iterator[Listener]:
    connection = served.open(who)
    connection.request("GET", f"/api/v1/events{query}", headers=served.headers(who) | headers)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    assert response.getheader("content-type").startswith("text/event-stream")
    try:
        yield Listener(response)
    finally:
        connection.close()


def test_what_happens_is_told_as_it_happens(served: Any) -> None:
    """The whole life of a job, in order, each event with its record's number."""
    with listening(served) as events:
        key = served.submit("/bin/true", name="told")
        told = [e for e in events.until("job.ended", key) if e["data"].get("key") == key]
    assert [e["event"] for e in told] == [
        "job.submitted",
        "job.placed",
        "job.allocated",
        "job.started",
        "job.ended",
    ]
    assert [e["id"] for e in told] == sorted((e["id"] for e in told), key=lambda i: tuple(map(int, i.split("."))))
    assert (told[0]["data"]["values"]["name"], told[-1]["data"]["values"]["state"]) == ("told", "succeeded")
    assert all(e["data"]["seq"] == int(e["id"].split(".")[0]) for e in told)
    assert told[-1]["data"]["values"]["ended_at_ms"] == served.show(key)["ended_at_ms"]


def test_a_cancellation_says_whether_the_job_is_over_with_it(served: Any) -> None:
    """Of what waited nothing else tells the end; of what runs `job.ended` does, once it has stopped."""
    with listening(served) as events:
        waits, runs = served.submit("/bin/true", hold=True), served.submit("/bin/sleep", "60")
        served.wait(runs, "running")
        for key in (waits, runs):
            served.call("POST", f"/api/v1/jobs/{key}/cancel", {"now": True})
        told = [each["data"] for each in events.until("job.ended", runs) if each["event"] == "job.cancelled"]
    assert [(each["key"], each["values"].get("state")) for each in told] == [(waits, "cancelled"), (runs, None)]


def test_who_is_stopped_for_an_attempt_is_stopped_for_its_job() -> None:
    """In events as in the list of jobs: nobody knows a job 9#3."""
    evict = Evict("3", "3#2", "n", Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of="9/9#3", rule="priority")
    [told] = tell(Entry(1, 1, EVENT, None, [evict]))
    assert (told.key, told.fields["on_behalf_of"]) == ("3", "9/9")


def test_what_happens_to_a_part_names_it(served: Any) -> None:
    """What is about all parts names the array."""
    with listening(served) as events:
        key = served.submit("/bin/true", array="1-2%1")
        told = {(each["event"], each["data"].get("key")) for each in events.until("job.ended", f"{key}.2")}
    assert {("job.submitted", key), ("job.placed", key)} <= told
    assert {(f"job.{name}", f"{key}.1") for name in ("allocated", "started", "ended")} <= told


def test_a_reader_goes_on_where_he_left(served: Any) -> None:
    """Nothing twice, nothing missing, over history and what is new."""
    key = served.submit("/bin/true")
    served.wait(key)
    with listening(served, "?from=0") as events:
        all_of_it = events.until("job.ended", key)
    middle = len(all_of_it) // 2
    with listening(served, **{"Last-Event-ID": all_of_it[middle]["id"]}) as events:
        later = served.submit("/bin/true")
        rest = events.until("job.ended", later)
    before = [e["event"] for e in rest].index("caught-up")
    assert before >= len(all_of_it) - middle - 1
    assert "id" not in rest.pop(before), "there is nothing to go on from"
    ids = [e["id"] for e in rest]
    assert ids[: len(all_of_it) - middle - 1] == [e["id"] for e in all_of_it[middle + 1 :]]
    assert len(set(ids)) == len(ids)


def test_who_may_see_nothing_learns_when_all_was_told(served: Any) -> None:
    """The last record may be none of the caller's; only asked for what was, it is said."""
    key = served.submit("/bin/true", who="alice")
    served.wait(key)
    with listening(served, "?from=1", who="bob") as events:
        told = events.until("caught-up")
    assert not [each for each in told if each["data"].get("key") == key]
    with listening(served) as events:
        later = served.submit("/bin/true")
        assert "caught-up" not in [each["event"] for each in events.until("job.ended", later)]


def test_history_and_live_events_are_the_same(served: Any) -> None:
    """What was told live is read back from the journal word for word."""
    with listening(served) as events:
        key = served.submit("/bin/sh", "-c", "exit 4")
        live = events.until("job.ended", key)
    with listening(served, f"?from={live[0]['data']['seq']}") as events:
        again = events.until("job.ended", key)
    assert [e for e in again if int(e["id"].split(".")[0]) >= live[0]["data"]["seq"]] == live


def test_others_work_is_left_out(served: Any) -> None:
    """Live and from history; what concerns everybody is told to everybody."""
    with listening(served, "?from=0", who="bob") as events:
        hidden = served.submit("/bin/true", who="alice")
        served.wait(hidden)
        mine = served.submit("/bin/true", who="bob")
        told = events.until("job.ended", mine)
    keys = {e["data"].get("key") for e in told}
    assert hidden not in keys
    assert mine in keys
    assert "service.started" in {e["event"] for e in told}


def test_an_id_from_another_journal_is_told_as_a_gap(served: Any) -> None:
    """The reader learns that he missed something, and gets what is new."""
    with listening(served, **{"Last-Event-ID": "99999999.0"}) as events:
        gap = events.next()
        assert gap["event"] == "gap"
        assert gap["data"]["values"]["asked_for"] == 99_999_999
        key = served.submit("/bin/true")
        events.until("job.ended", key)
    # Cut off, it goes on from there: it was told all of history.
    assert gap["data"]["seq"] > 0
    with listening(served, **{"Last-Event-ID": gap["id"]}) as events:
        assert all(each["data"]["seq"] >= gap["data"]["seq"] for each in events.until("job.ended", key))


def test_what_is_no_id_is_refused(served: Any) -> None:
    """With a sentence."""
    answer = served.call("GET", "/api/v1/events", **{"Last-Event-ID": "yesterday"})
    assert (answer.status, answer.error["field"]) == (422, "Last-Event-ID")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("17.2", (17, 2)), ("17", (17, 10**9)), (" 5.0 ", (5, 0)), ("", None), ("a.1", None), ("1.b", None), ("-1", None)],
)
def test_ids_are_read_strictly(text: str, expected: tuple[int, int] | None) -> None:
    """SEQ.INDEX, or SEQ for all of it."""
    assert parse_id(text) == expected


def test_every_record_of_a_journal_can_be_told(served: Any) -> None:
    """Nothing in it is unknown to the story."""
    served.wait(served.submit("/bin/true"))
    with Reader(served.place.runtime.journal.path) as reading:
        told = [event for record in reading.records() for event in tell(of_record(record))]
    assert {"config.applied", "node.added", "job.submitted", "job.ended"} <= {event.type for event in told}


async def test_a_reader_who_falls_behind_is_cut_off_with_a_notice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """He keeps what he got, and learns from where to go on."""
    monkeypatch.setattr(history_events, "BEHIND", 3)
    hub = history_events.Hub(tmp_path / "none.db", lambda key: None)
    admin = Caller("root", 0, True)

    async def owners(keys: Any) -> dict[str, int | None]:
        return {}

    pieces = history_events.stream(hub, admin, None, lambda keys: asyncio.ensure_future(owners(keys)))
    assert await anext(pieces) == b"retry: 1000\n\n"
    waiting = asyncio.ensure_future(anext(pieces))
    await asyncio.sleep(0)
    for seq in range(1, 4):
        hub.offer([Entry(seq, 1, "schedule", {}, [Allocated("1", "1", "n")])])
    hub.offer([Entry(4, 1, "schedule", {}, [Allocated("1", "1", "n")])])
    got = [await waiting, *[piece async for piece in pieces]]
    assert [piece.split(b"\n")[0] for piece in got[:3]] == [b"id: 1.0", b"id: 2.0", b"id: 3.0"]
    assert got[3].startswith(b"event: cut-off")
    assert len(hub.readers) == 0


async def test_silence_is_filled_with_heartbeats(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """So that both ends notice a dead connection."""
    monkeypatch.setattr(history_events, "HEARTBEAT_S", 0.05)
    hub = history_events.Hub(tmp_path / "none.db", lambda key: 7)

    async def owners(keys: Any) -> dict[str, int | None]:
        return {}

    pieces = history_events.stream(hub, Caller("bob", 5), None, lambda keys: asyncio.ensure_future(owners(keys)))
    await anext(pieces)
    began = time.monotonic()
    assert (await anext(pieces)).startswith(b":")
    assert time.monotonic() - began < 5
    hub.readers.close()
    assert [piece async for piece in pieces] == []


def test_an_event_without_a_job_is_for_everybody() -> None:
    """And is shown without a key."""
    assert HistoryEvent(1, 0, 5, "node.added", "", {"node": "n"}).shown().key == ""


async def test_what_was_pruned_while_it_was_told_leaves_a_gap_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow reader missed it and was told nothing."""
    monkeypatch.setattr(history_events, "PAGE", 3)
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        for n in range(1, 13):
            journal.append(n, "note", codec.encode(ServiceStarted(version="1", pid=n)))
        journal.save_snapshot(10, 10, b"{}")
        journal.commit()
        told = history_events._history(path, (0, 10**9), lambda keys: asyncio.get_running_loop().create_future())
        found = [(await anext(told))[0] for _ in range(3)]
        journal.prune(9)
        found += [event async for event, _ in told]
    assert [(each.seq, each.type) for each in found if each.type == "gap"] == [(8, "gap")]
    assert [each.seq for each in found if each.type != "gap"] == [1, 2, 3, 9, 10, 11, 12]
