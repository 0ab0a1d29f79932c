"""A recorded course: any moment of it is as it was, whichever way one comes there."""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from fairlead.config import load_text
from fairlead.core.model.events import AddApplication, AddAsks, Configure
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec
from fairlead.journal.format import JournalError
from fairlead.journal.reader import Reader
from fairlead.journal.replay import replay, state_at
from fairlead.journal.store import Journal
from fairlead.local.history_records import ArraySpec, JobSpec, JobSubmitted
from fairlead.local.place import LocalPlace
from fairlead.runtime import Books, Refusal, Turn
from fairlead.scheduler import Scheduler
from fairlead.service.http.app import make_app
from fairlead.service.recorded import course as module
from fairlead.service.recorded.course import Course
from fairlead.service.recorded.moment import CourseMoment
from fairlead.service.recorded.place import RecordedPlace
from fairlead.service.recorded.serve import serve_course
from fairlead.sim.simulate import Files, run
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial
from fairlead.wire.course import Go

TASKS = """job,queue,user,time,run,resources.vcore
a,root.low,ann,0,100,4
b,root.high,bob,10,50,4
c,root.low,ann,20,30,2
"""
QUEUES = """partitions:
- name: default
  preemption: {rule: priority}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: low}
    - {name: high, properties: {priority.offset: "10"}}
"""


def _make(state: Any) -> Scheduler:
    return Scheduler.load(dict(state)) if state else Scheduler()


def recorded(folder: Path, workload: str, nodes: str, queues: str = "", tasks: int | None = None) -> Path:
    """The course of a simulation."""
    path = folder / "course.db"
    trial = Trial(name="x", queues=queues, source=Source(workload=workload, nodes=nodes, tasks=tasks))
    err = io.StringIO()
    assert run(trial, io.StringIO(), err, files=Files(course=str(path))) == 0, err.getvalue()
    return path


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("tenants"), "tenants", "3", tasks=120)


def test_what_a_simulation_recorded_is_decided_again(tenants: Path) -> None:
    with Reader(tenants) as reader:
        found = replay(reader, _make)
    assert found.ok
    assert found.decisions > 200


def test_where_its_port_is_taken_the_option_is_named_that_the_command_has(tenants: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = serve_course(tenants, taken.getsockname()[1], lambda _: None)
    assert "Choose another with --port" in said


def test_a_course_that_is_there_is_not_written_to(tenants: Path) -> None:
    before, err = tenants.read_bytes(), io.StringIO()
    trial = Trial(name="x", source=Source(workload="tenants", nodes="3", tasks=10))
    assert run(trial, io.StringIO(), err, files=Files(course=str(tenants))) == 2
    assert "is there already" in err.getvalue()
    assert tenants.read_bytes() == before


@pytest.mark.parametrize("keep_each_s", [0.0, 1000.0])
def test_any_moment_is_as_it_was(tenants: Path, keep_each_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """On and back, from states that are kept and from the begin."""
    monkeypatch.setattr(module, "KEEP_EACH_S", keep_each_s)
    course, chance = Course(tenants), Random(1)
    moments = [
        course.last_seq,
        course.first_seq,
        *(chance.randint(course.first_seq, course.last_seq) for _ in range(8)),
    ]
    for seq in moments:
        for _ in course.move(seq):
            pass
        assert course.seq == seq
        then = state_at(tenants, _make, seq=seq)
        assert course.at_ms == then.at_ms
        assert course.scheduler.dump() == then.scheduler.dump()
    course.close()


def test_too_many_kept_states_are_thinned_out(tenants: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_EACH_S", 0.0)
    monkeypatch.setattr(module, "KEPT_BYTES", 20_000)
    monkeypatch.setattr(module, "SLICE", 20)
    course = Course(tenants)
    for seq in (course.last_seq, 3, course.last_seq // 2):
        for _ in course.move(seq):
            pass
        assert course.scheduler.dump() == state_at(tenants, _make, seq=seq).scheduler.dump()
    course.close()


def test_what_is_no_course_says_so(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal"):
        Course(tmp_path / "none.db")
    with Journal(tmp_path / "empty.db"):
        pass
    with pytest.raises(JournalError, match="nothing is recorded"):
        Course(tmp_path / "empty.db")


def test_jobs_have_their_names_wherever_one_begins(tmp_path: Path) -> None:
    """Also those that came before a state that is stored, and parts of arrays; of one that was renamed the new one."""
    path = tmp_path / "journal.db"
    place: LocalPlace = LocalPlace(lambda _: object(), tmp_path / "runs", as_submitter=False)  # type: ignore
    books = Books(place)
    with Journal(path) as journal:

        def enter(key: str, indices: tuple[int, ...] = ()) -> None:
            array = ArraySpec(indices=",".join(map(str, indices))) if indices else None
            spec = JobSpec(
                key=key, user="ann", uid=1, command=("true",), queue="root.default", name=f"name of {key}", array=array
            )
            turn.note(JobSubmitted(job=spec, indices=indices))
            turn.event(AddApplication(ApplicationSpec(id=key, queue="root.default")))
            keys = [f"{key}.{index}" for index in indices] or [key]
            turn.event(AddAsks(tuple(AskSpec(application=key, key=k, resources=Resources({"vcore": 1})) for k in keys)))

        turn = Turn(books, journal, 1)
        turn.event(
            Configure(load_text("partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"))
        )
        enter("1")
        enter("2", (0, 1))
        journal.save_snapshot(journal.last_seq, 1, books.dump())
        enter("3")
    course = Course(path)
    for _ in course.move(course.last_seq):
        pass
    moment = CourseMoment(course.scheduler, course.names)
    assert [moment.details(key).name for key in ("1", "2.1", "3")] == ["name of 1", "name of 2", "name of 3"]
    course.close()


# -- asked over HTTP ----------------------------------------------------------------------------------------------


@pytest.fixture
def preempted(tmp_path: Path) -> Iterator[RecordedPlace]:
    """Of two that need the whole node the second stops the first."""
    (tmp_path / "tasks.csv").write_text(TASKS)
    (tmp_path / "queues.yaml").write_text(QUEUES)
    path = recorded(tmp_path, str(tmp_path / "tasks.csv"), "1x cpu=4", str(tmp_path / "queues.yaml"))
    course = Course(path)
    yield RecordedPlace(version="test", started_at_ms=0, course=course, name="course.db", user="ann")
    course.close()


class Long:
    """A course in which it takes a second to come anywhere."""

    begin_ms, end_ms, first_seq, last_seq, seq = 0, 10**9, 1, 10**6, 1

    def __init__(self) -> None:
        self.scheduler = Scheduler()

    def seq_at(self, at_ms: int) -> int:
        return max(at_ms // 1000, 1)

    def move(self, seq: int) -> Iterator[None]:
        for _ in range(10):
            time.sleep(0.1)
            yield
        self.seq = seq


async def test_where_one_goes_while_it_goes_on_by_itself_it_goes_on_from_there() -> None:
    """It went on from where it had been before, and the way there was for nothing."""
    long: Any = Long()
    place = RecordedPlace(version="test", started_at_ms=0, course=long, name="course.db", user="ann")
    going = asyncio.create_task(place.keep_going())
    await place.go(Go(at_ms=500_000_000, speed=1.0))
    await asyncio.sleep(1.5)
    going.cancel()
    assert (place.at_ms >= 500_000_000, long.seq >= 500_000) == (True, True)


async def test_each_answer_is_about_the_moment_that_one_has_gone_to(preempted: RecordedPlace) -> None:
    place = preempted
    text, _ = place.pages.sessions.session("ann", 0)
    transport = httpx.ASGITransport(make_app(place))
    headers = {"Authorization": f"Bearer {text}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://x/api/v1", headers=headers) as asking:

        async def get(path: str) -> Any:
            answer = await asking.get(path)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert (await asking.get("/nodes", headers={"Authorization": "Bearer fls_other"})).status_code == 401
        begin = (await get("/course"))["begin_ms"]
        assert (await get("/info"))["course"]["name"] == "course.db"
        await asking.put("/course", json={"at_ms": begin + 5_000})
        assert [(job["key"], job["state"]) for job in (await get("/jobs"))["jobs"]] == [("a-2", "running")]
        assert (await get("/nodes"))["nodes"][0]["running"] == 1

        await asking.put("/course", json={"at_ms": begin + 30_000})
        states = {job["key"]: job["state"] for job in (await get("/jobs"))["jobs"]}
        assert states == {"a-2": "waiting", "b-3": "running", "c-4": "waiting"}
        told = (await get("/course/events"))["events"]
        evicted = next(event for event in told if event["type"] == "job.evicting")
        assert (evicted["key"], evicted["values"]["rule"]) == ("a-2", "priority")
        assert evicted["values"]["on_behalf_of"].endswith("b-3")
        assert {event["key"] for event in (await get("/course/events?key=b-3"))["events"]} == {"b-3"}
        whose = {event["key"]: event["values"]["user"] for event in told if event["type"] == "application.submitted"}
        assert {"a": "ann", "b": "bob"}.items() <= whose.items()
        left = [event["key"] for event in told if event["type"] == "job.released"]
        assert left == ["a-2"], "told to stop, and gone"
        piecewise, after = [], ""
        while after is not None:
            piece = await get(f"/course/events?limit=2{after}")
            piecewise += piece["events"]
            assert len(piece["events"]) == 2 or piece["next"] is None
            after = f"&after={piece['next']}" if piece["next"] is not None else None
        assert piecewise == told
        assert (await asking.get("/course/events?after=x")).status_code == 422
        assert (await get("/line"))["total"] == 2
        why = await get("/jobs/c-4/why")
        assert (why["state"], why["verdict"]["state"]) == ("waiting", "waiting")
        assert (await get("/jobs/a-2"))["queue"] == "root.low"
        seq = (await get("/course"))["seq"]
        before = (await asking.put("/course", json={"step": -1})).json()
        assert before["seq"] < seq
        assert (await asking.put("/course", json={"step": 1, "seq": 1})).status_code == 422
        assert (await asking.get("/jobs/z")).status_code == 404
        end = (await asking.put("/course", json={"at_ms": 10**15})).json()
        assert (end["seq"], end["at_ms"]) == (end["last_seq"], end["end_ms"])
        assert (await get("/jobs"))["jobs"] == []


async def test_several_wishes_end_where_the_last_one_wants(preempted: RecordedPlace) -> None:
    import asyncio

    place = preempted
    await asyncio.gather(*(place.go(Go(seq=seq)) for seq in (place.course.last_seq, 2, 5)))
    assert place.course.seq == 5


async def test_what_is_damaged_is_said_and_all_before_it_is_shown(tmp_path: Path, tenants: Path) -> None:
    """It was a fault of the service, and ended what goes on by itself."""
    path = tmp_path / "course.db"
    path.write_bytes(tenants.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE records SET payload = x'00' WHERE seq = 50")
    with contextlib.closing(Course(path)) as course:
        place = RecordedPlace(version="test", started_at_ms=0, course=course, name="course.db", user="ann")
        place.at_ms = course.begin_ms
        going = asyncio.create_task(place.keep_going())
        with pytest.raises(Refusal, match="record 50") as refused:
            await place.go(Go(seq=60))
        assert refused.value.code == "conflict"
        assert (course.seq, place.at_ms) == (49, course.at_ms)
        transport = httpx.ASGITransport(make_app(place), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {place.pages.sessions.session('ann', 0)[0]}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://x/api/v1", headers=headers) as asking:
            assert (await asking.put("/course", json={"seq": 60})).status_code == 409
            assert (await asking.put("/course", json={"seq": 40})).json()["seq"] == 40
            await asking.put("/course", json={"at_ms": course.begin_ms, "speed": 1e9})
            async with asyncio.timeout(10):
                while place.speed:
                    await asyncio.sleep(0.05)
            assert not going.done()
        going.cancel()
