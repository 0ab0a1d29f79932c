"""Streams that fall behind, health that fails, figures in the text format: what a real service seldom shows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from fairlead.core.model.decisions import AskRejected
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Event, Release
from fairlead.core.model.reasons import Refused
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.insight.history_records import Record
from fairlead.runtime import Entry, Refusal
from fairlead.runtime.measures import Measures
from fairlead.scheduler import Scheduler
from fairlead.service.metrics import exposed
from fairlead.service.yunikorn import figures, history
from fairlead.service.yunikorn.health import health
from fairlead.service.yunikorn.history import HistoryRecords, Ring


def cluster() -> Scheduler:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="my-queue"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 10}))), 0)
    return s


def told(s: Scheduler, history_records: HistoryRecords, *events: Event) -> None:
    for event in events:
        history_records.offer([Entry(1, 5, "event", event, s.handle(event, 5))])
    history_records.offer([Entry(2, 5, "schedule", {}, s.schedule(5)), Entry(3, 5, "note", object())])


SUBMITTED = (
    AddApplication(ApplicationSpec(id="app", queue="root.my-queue", user="ada")),
    AddAsks((AskSpec(application="app", key="k", resources=Resources({"vcore": 4})),)),
)


async def everything(records: Any) -> list[Record]:
    return list(records)


# -- streams ------------------------------------------------------------------------------------------------------


async def test_a_reader_who_falls_behind_is_told_so_and_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """After what he got in time comes a last line, and nobody tells him anything any more."""
    monkeypatch.setattr(history, "BEHIND", 3)
    history_records, streams = HistoryRecords(cluster), history.Streams()
    stream = streams.enter("h", 1)
    lines = history.lines(history_records, streams, stream, 0, everything)
    assert json.loads(await anext(lines)) == {"InstanceUUID": history_records.instance}
    for name in "abc":
        history_records.ring.add([Record(1, 2, 0, 0, name)])
    history_records.ring.add([Record(1, 2, 0, 0, "lost")])
    got = [json.loads(line)["objectID"] for line in (await anext(lines)).splitlines()]
    rest = [piece async for piece in lines]
    assert got == ["a", "b", "c"]
    assert json.loads(rest[-1]) == {
        "status_code": 200,
        "message": history.CLOSED,
        "description": history.CLOSED,
    }
    assert streams.open == []
    history_records.ring.add([Record(1, 2, 0, 0, "later")])
    assert not stream.waiting


async def test_a_stream_ends_with_the_service() -> None:
    """Without a complaint, and no new one begins."""
    history_records, streams = HistoryRecords(cluster), history.Streams()
    lines = history.lines(history_records, streams, streams.enter("h", 1), 0, everything)
    await anext(lines)
    waiting = asyncio.ensure_future(anext(lines, None))
    await asyncio.sleep(0)
    streams.close()
    assert await waiting is None
    with pytest.raises(Refusal, match="Too many"):
        streams.enter("h", 1)


async def test_no_more_streams_than_a_hundred() -> None:
    """However many hosts there are."""
    streams = history.Streams()
    for i in range(100):
        streams.enter(f"host{i}", 1)
    with pytest.raises(Refusal) as caught:
        streams.enter("one more", 1)
    assert caught.value.code == "unavailable"
    streams.leave(streams.open[0])
    streams.enter("one more", 1)


# -- the history ------------------------------------------------------------------------------------------------


def test_the_chronicle_counts_what_it_tells() -> None:
    """By queue and in all."""
    s = cluster()
    history_records = HistoryRecords(lambda: s)
    told(s, history_records, *SUBMITTED, AddApplication(ApplicationSpec(id="bad", queue="root.none")))
    told(s, history_records, Release("app", "k", Cause.FINISHED), AddAsks(SUBMITTED[1].asks[:0]))
    refused = AskRejected("app", "x", Refused("no"))
    history_records.offer([Entry(9, 5, "schedule", {}, [refused])])
    history_records.offer([Entry(10, 30_005, "schedule", {}, s.schedule(30_005))])
    assert history_records.counts == {"submitted": 2, "accepted": 1, "rejected": 1, "ask-rejected": 1}
    path = "root.my-queue"
    assert history_records.by_queue == {(path, "allocated"): 1, (path, "released"): 1, (path, "completed"): 1}
    assert history_records.ring.told > 10
    assert not history_records.failure


def test_a_fault_in_telling_ends_telling_and_nothing_else() -> None:
    """The writer never notices."""
    s = cluster()
    history_records = HistoryRecords(lambda: s)
    history_records.offer([Entry(1, 5, "schedule", {}, [AddApplication])])  # type: ignore[list-item]
    assert not history_records.failure
    history_records.offer([Entry(1, 5, "event", AddApplication(None), ())])  # type: ignore[arg-type]
    assert "fault" in history_records.failure
    told(s, history_records, *SUBMITTED)
    assert history_records.ring.told == 0


# -- health -------------------------------------------------------------------------------------------------------


def failing(s: Scheduler, **more: Any) -> list[str]:
    found = health(s, **({"faults": 0, "problems": []} | more))
    assert found["Healthy"] is all(c["Succeeded"] for c in found["HealthChecks"])
    return [c["DiagnosisMessage"] for c in found["HealthChecks"] if not c["Succeeded"]]


def test_books_in_order_are_healthy() -> None:
    """With work, placed and waiting."""
    s = cluster()
    for event in SUBMITTED:
        s.handle(event, 0)
    s.schedule(0)
    assert failing(s) == []


def test_each_disorder_is_named() -> None:
    """Where it is."""
    s = cluster()
    for event in SUBMITTED:
        s.handle(event, 0)
    s.schedule(0)
    part = s.cluster.partitions["default"]
    node = part.nodes.nodes["n1"]
    node.available["vcore"] = node.total["vcore"] + 1
    assert any("n1" in text for text in failing(s))
    node.available["vcore"] = node.total["vcore"] - 11
    assert len(failing(s)) == 2
    node.available["vcore"] = node.total["vcore"] - 4
    part.nodes.total["vcore"] = 11
    assert failing(s) == ["partitions for which this does not hold: [default]"]
    part.nodes.total["vcore"] = 10
    del part.applications["app"]
    assert failing(s) == ["allocations for which this does not hold: [n1: k]"]
    part.applications["app"] = part.root.children["my-queue"].applications["app"]
    del part.nodes.nodes["n1"]
    assert "allocations for which this does not hold: [app: k]" in failing(s)


def test_a_service_that_cannot_record_is_not_healthy() -> None:
    """And a fault that was isolated is not forgotten."""
    assert failing(cluster(), problems=["the disk is full"]) == ["problems: [the disk is full]"]
    assert failing(cluster(), faults=2) == ["2 faults so far"]


# -- figures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "formatted"), [("vcore", "vcore"), ("nvidia.com/gpu", "nvidia_com_gpu"), ("2d", "_2d"), ("a:b-c", "a:b_c")]
)
def test_names_of_metrics(name: str, formatted: str) -> None:
    """Only what metrics may have."""
    assert figures.formatted(name) == formatted


def scraped(s: Scheduler, history_records: HistoryRecords) -> dict[str, str]:
    measures = Measures()
    measures.scheduled(0.002, 1, 0)
    text = exposed(figures.families(s, history_records, measures)).decode()
    rows = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert len(rows) == len({row[0] for row in rows}), "a series twice"
    return dict(rows)


def test_figures_of_a_small_cluster() -> None:
    """Under YuniKorn's names."""
    s = cluster()
    history_records = HistoryRecords(lambda: s)
    told(s, history_records, *SUBMITTED)
    found = scraped(s, history_records)
    assert found['yunikorn_scheduler_container_allocation_attempt_total{state="allocated"}'] == "1.0"
    assert found['yunikorn_scheduler_application_submission_total{result="new"}'] == "1.0"
    assert found['yunikorn_scheduler_node{state="active"}'] == "1.0"
    assert found['yunikorn_scheduler_vcore_node_usage_total{range="(30%,40%]"}'] == "1.0"
    assert found['yunikorn_root_my_queue_queue_container{state="allocated"}'] == "1.0"
    assert found['yunikorn_queue_resource{queue="root.my-queue",resource="vcore",state="allocated"}'] == "4.0"
    assert found['yunikorn_queue_resource{queue="root",resource="apps",state="maxRunningApps"}'] == "0.0"
    assert found["yunikorn_event_total_created"] == str(float(history_records.ring.told))
    assert found["yunikorn_scheduler_scheduling_latency_milliseconds_count"] == "1.0"
    assert found['yunikorn_scheduler_scheduling_latency_milliseconds_bucket{le="0.003"}'] == "1.0"
    assert found['yunikorn_scheduler_scheduling_latency_milliseconds_bucket{le="0.001"}'] == "0.0"


def test_prometheus_can_read_them() -> None:
    """Its own parser takes every line."""
    from prometheus_client.parser import text_string_to_metric_families

    s = cluster()
    history_records = HistoryRecords(lambda: s)
    told(s, history_records, *SUBMITTED)
    text = exposed(figures.families(s, history_records, Measures())).decode()
    names = {family.name for family in text_string_to_metric_families(text)}
    assert {"yunikorn_queue_app", "yunikorn_scheduler_node", "yunikorn_event_total_stored"} <= names
    assert "# TYPE yunikorn_root_my_queue_queue_container counter\n" in text


# -- history ------------------------------------------------------------------------------------------------------


async def test_samples_are_taken_now_and_then() -> None:
    """Oldest first, and no more than a day."""
    kept = history.HistorySamples()
    at = 0

    async def take() -> history.Sample:
        nonlocal at
        at += 1
        return history.Sample(at, at, 2 * at)

    task = asyncio.create_task(history.keep(kept, take, 0))
    while at < history.SAMPLES + 3:
        await asyncio.sleep(0)
    task.cancel()
    assert len(kept.samples) == history.SAMPLES
    first = kept.applications()[0]
    assert first == {
        "timestamp": at - history.SAMPLES + 1,
        "totalApplications": str(at - history.SAMPLES + 1),
    }
    assert kept.containers()[-1] == {"timestamp": at, "totalContainers": str(2 * at)}


def test_a_sample_counts_what_runs() -> None:
    """Applications that run, and every allocation."""
    s = cluster()
    for event in (*SUBMITTED, AddApplication(ApplicationSpec(id="idle", queue="root.my-queue"))):
        s.handle(event, 0)
    s.schedule(0)
    assert history.count(s, 7) == history.Sample(7, 1, 1)


def test_the_ring_of_a_chronicle_may_be_small() -> None:
    """Then only the newest are there."""
    s = cluster()
    history_records = HistoryRecords(lambda: s, Ring(3))
    told(s, history_records, *SUBMITTED)
    page = history_records.ring.page(0, 10)
    assert page.records is None
    assert page.highest - page.lowest == 2
