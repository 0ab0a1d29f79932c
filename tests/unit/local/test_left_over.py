"""The files of jobs that left the book: they go at the next start if the service ended before they had gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.paper import CAPACITY, Paper, Service

from fairlead.local.history_records import JobsCleaned
from fairlead.local.job_numbers import JobNumbers
from fairlead.local.runs import RunReport
from fairlead.local.supervisor import run_files
from fairlead.runtime import Refusal


class Restarts:
    """One service after the other on the same directory; the machine of each removes nothing, it says what it would."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.service = Service(directory)

    def again(self) -> list[str]:
        """The runs that the next one removes."""
        self.service.runtime.close()
        self.service.place.close()
        self.service = Service(self.directory)
        self.service.do(lambda _: None)
        self.service.place._orders.close()
        return sorted(self.service.paper.purged)

    def files(self, run: str, *names: str) -> None:
        (self.directory / "runs" / run).mkdir()
        for name in names:
            (self.directory / "runs" / run / name).write_bytes(b"x")

    def ended(self, count: int) -> list[str]:
        """Jobs that have ended, by their keys."""
        keys = []
        for _ in range(count):
            keys.append(self.service.submit())
            self.service.end(f"{keys[-1]}-1", exit_code=0)
        return keys

    def clean(self) -> None:
        self.service.do(lambda turn: turn.note(JobsCleaned(before_ms=2**60)))
        self.service.place._orders.close()


@pytest.fixture
def restarts(tmp_path: Path) -> Iterator[Restarts]:
    made = Restarts(tmp_path)
    yield made
    made.service.runtime.close()
    made.service.place.close()


def test_what_was_left_goes_at_the_next_start(restarts: Restarts) -> None:
    """All that left the book, whether its removal had begun or not; what is in the book stays."""
    assert restarts.ended(3) == ["1", "2", "3"]
    restarts.files("1-1", run_files.FORGOTTEN, run_files.STDOUT)
    restarts.files("2-1", run_files.FORGOTTEN)
    restarts.files("3-1")
    restarts.clean()
    assert restarts.again() == ["1-1", "2-1", "3-1"]
    key = restarts.service.submit()
    restarts.service.end(f"{key}-1", exit_code=0)
    restarts.files(f"{key}-1", run_files.FORGOTTEN, run_files.STDOUT)
    assert f"{key}-1" not in restarts.again()


@pytest.mark.parametrize(("found", "grace_ms"), [({"pid": 1, "started_at_ms": 1}, 30_000), ({}, 0)])
def test_what_runs_on_of_a_job_that_is_over_is_stopped_and_forgotten(
    restarts: Restarts, monkeypatch: pytest.MonkeyPatch, found: dict[str, int], grace_ms: int
) -> None:
    """Its variables do not stay on the disk until one start more; an order is tried again where the disk is full."""
    restarts.ended(1)
    report = RunReport(key="1-1", **found)  # type: ignore[arg-type]
    monkeypatch.setattr(Paper, "adopt", lambda _: [report])
    monkeypatch.setattr(Paper, "report", lambda *_: report)
    restarts.again()
    assert restarts.service.paper.stopped == {"1-1": grace_ms}
    assert restarts.service.paper.forgotten == ["1-1"]


def test_what_has_not_been_settled_stays(restarts: Restarts) -> None:
    """It may run, and its end is not in the journal."""
    restarts.ended(2)
    restarts.files("1-1", run_files.SPEC, run_files.CLAIM, run_files.STDOUT)
    restarts.files("2-1", run_files.RESULT, run_files.STDOUT)
    restarts.clean()
    assert restarts.again() == []


def test_what_no_record_knows_stays_at_every_start(restarts: Restarts) -> None:
    """Its records were lost, or the journal is an older copy: what it wrote may be all that there is of it."""
    restarts.ended(1)
    restarts.files("4-1", run_files.FORGOTTEN, run_files.STDOUT)
    restarts.files("4-1.0.end", run_files.FORGOTTEN)
    assert restarts.again() == []
    assert restarts.again() == []
    assert restarts.ended(1) == ["5"]
    restarts.files("5-1", run_files.FORGOTTEN)
    restarts.clean()
    assert restarts.again() == ["5-1"]


def test_no_job_gets_the_number_of_what_no_record_knows_after_a_fault(restarts: Restarts) -> None:
    """The books are brought back from the journal then, and that knows nothing of it: the job would be taken for it."""
    restarts.ended(1)
    restarts.files("4-1", run_files.CLAIM)
    restarts.again()
    with pytest.raises(Refusal):
        restarts.service.do(lambda _: 1 // 0)
    assert restarts.service.submit() == "5"
    restarts.again()
    assert [restarts.service.place.jobs.numbers.was_given(number) for number in range(1, 7)] == [
        True,
        *[False] * 3,
        True,
        False,
    ]


def test_numbers_that_were_passed_over_were_not_given() -> None:
    """Also after they were written and read; an older version did not say which those are."""
    numbers = JobNumbers()
    numbers.give(1)
    numbers.skip_to(4)
    numbers.skip_to(6)
    numbers.give(8)
    numbers.give(8)
    again = JobNumbers.load(numbers.dump())
    assert again.dump() == numbers.dump() == {"next_number": 9, "passed_over": [[2, 8]]}
    assert [number for number in range(12) if again.was_given(number)] == [1, 8]
    assert not any(JobNumbers.load({"next_number": 9}).was_given(number) for number in range(12))


def test_the_room_of_an_unknown_run_comes_back_when_it_is_over(service: Service) -> None:
    """Also where the fault of another request, or a full disk, takes back the turn in which that was entered."""
    place, runtime, go_on = service.place, service.runtime, threading.Event()
    place.unknown.add(RunReport(key="9-1", pid=1, started_at_ms=1), {"run": {"amounts": {"vcore": 400}}})

    def room(total: int) -> bool:
        part = runtime.books.scheduler.cluster.partitions["default"]
        return bool(service.do(lambda _: part.nodes.nodes["n"].total) == {"vcore": total})

    service.do(lambda turn: place.register_node(turn, "n", CAPACITY))
    assert room(600)
    runtime.read(lambda _: go_on.wait(10))
    place._told(RunReport(key="9-1", pid=1, started_at_ms=1, ended_at_ms=2))
    faulty = runtime.do(lambda _: 1 // 0)
    go_on.set()
    with pytest.raises(Refusal):
        faulty.result(10)
    assert room(1000)
