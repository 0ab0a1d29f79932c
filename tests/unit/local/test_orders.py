"""Orders to the machine: in order, tried again, overtaken by a stop."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable

import pytest

from fairlead.local import orders
from fairlead.local.orders import Orders
from fairlead.local.runs import RunReport, RunSpec


class Bench:
    """A machine that does what it is told to do, and remembers."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.runs: dict[str, RunReport] = {}
        self.told: list[str] = []

    def start(self, run: RunSpec) -> RunReport:
        self.told.append(f"start {run.key}")
        if self.failures:
            raise self.failures.pop(0)
        self.runs[run.key] = RunReport(key=run.key, pid=1, started_at_ms=1)
        return self.runs[run.key]

    def stop(self, key: str, grace_ms: int | None = None) -> None:
        self.told.append(f"stop {key} {grace_ms}")
        if self.failures:
            raise self.failures.pop(0)

    def go_on(self, key: str, time_limit_ms: int | None, *, suspended: bool) -> None:
        self.told.append(f"go on {key} {time_limit_ms} {suspended}")
        if self.failures:
            raise self.failures.pop(0)

    def report(self, key: str) -> RunReport | None:
        return self.runs.get(key)

    def give_up(self, key: str, why: str) -> RunReport:
        self.told.append(f"give up {key}")
        return RunReport(key=key, error=why, exit_code=126, ended_at_ms=1)

    def forget(self, key: str) -> None:
        self.told.append(f"forget {key}")

    def purge(self, key: str) -> None:
        self.told.append(f"purge {key}")


@pytest.fixture
def reports() -> list[RunReport]:
    return []


@pytest.fixture
def give(reports: list[RunReport], request: pytest.FixtureRequest) -> Callable[[Bench], Orders]:
    def make(bench: Bench) -> Orders:
        made = Orders(bench, reports.append)
        request.addfinalizer(made.close)
        return made

    return make


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 50
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def run(key: str = "1-1") -> RunSpec:
    return RunSpec(key=key, command=("/bin/true",))


def test_orders_are_carried_out_in_order(give: Callable[[Bench], Orders], reports: list[RunReport]) -> None:
    """One after the other, and what came of a start is told."""
    bench = Bench()
    orders = give(bench)
    orders.start(run("1-1"))
    orders.start(run("2-1"))
    orders.stop("1-1", 500)
    orders.forget("2-1")
    orders.purge("3-1")
    wait_for(lambda: len(bench.told) == 5)
    assert bench.told == ["start 1-1", "start 2-1", "stop 1-1 500", "forget 2-1", "purge 3-1"]
    assert [report.key for report in reports] == ["1-1", "2-1"]


class Short(Bench):
    """A machine that has no room for the first run until it has another one."""

    def start(self, run: RunSpec) -> RunReport:
        if run.key == "1-1" and not self.runs:
            self.failures = [OSError(errno.EAGAIN if self.told else errno.ENOSPC, "no room")]
        return super().start(run)


def test_what_may_pass_is_tried_again(
    give: Callable[[Bench], Orders], reports: list[RunReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk does not fail work; others are not held up meanwhile."""
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.05)
    bench = Short()
    giving = give(bench)
    giving.start(run("1-1"))
    wait_for(lambda: len(bench.told) >= 2)
    giving.start(run("2-1"))
    wait_for(lambda: len(reports) == 2)
    assert [report.key for report in reports] == ["2-1", "1-1"]
    assert all(report.pid for report in reports)


def test_what_lasts_is_said_at_first_alone(
    give: Callable[[Bench], Orders], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a full disk each run had a line in the log every two seconds; that may be on the same disk."""
    monkeypatch.setattr(orders, "LONGEST_STOP_PAUSE_S", 0.04)
    tries = []

    def refused() -> None:
        tries.append(1)
        raise OSError(errno.ENOSPC, "no room")

    give(Bench())._insist("the files of run 1-1 could not be cleared up", refused, 0.01)
    wait_for(lambda: len(tries) >= 6)
    told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    said = "the files of run 1-1 could not be cleared up ([Errno 28] no room); tried again in"
    assert told == [f"{said} 0.0 s"] * 2


def test_what_is_tried_again_is_known_until_it_starts_or_is_told_to_stop(
    give: Callable[[Bench], Orders], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the machine's words, for who asks why it does not begin."""
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.2)
    giving = give(Bench(OSError(errno.EAGAIN, "no more processes")))
    giving.start(run("1-1"))
    wait_for(lambda: giving.retrying == {"1-1": "no more processes"})
    wait_for(lambda: not giving.retrying)
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 60.0)
    giving = give(Bench(OSError(errno.EAGAIN, "no more processes")))
    giving.start(run("1-1"))
    wait_for(lambda: bool(giving.retrying))
    giving.stop("1-1", 0)
    wait_for(lambda: not giving.retrying)


def test_what_is_told_of_its_course_while_its_start_waits_counts(
    give: Callable[[Bench], Orders], reports: list[RunReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk has neither its files nor room for a wish: it is told again once it has begun."""
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.2)
    bench = Bench(OSError(errno.ENOSPC, "disk full"))
    giving = give(bench)
    giving.start(run("1-1"))
    wait_for(lambda: bool(bench.told))
    giving.go_on("1-1", 500, suspended=True)
    wait_for(lambda: bool(reports) and bench.told[-1].startswith("go on"))
    assert bench.told == ["start 1-1", "go on 1-1 500 True", "start 1-1", "go on 1-1 500 True"]


@pytest.mark.parametrize("failure", [OSError(errno.EACCES, "not allowed"), ValueError("no name of a run")])
def test_what_will_not_pass_has_failed(
    give: Callable[[Bench], Orders], reports: list[RunReport], failure: Exception
) -> None:
    """With the reason."""
    give(Bench(failure)).start(run())
    wait_for(lambda: bool(reports))
    assert (reports[0].exit_code, reports[0].pid) == (126, None)
    assert str(failure.args[-1]) in reports[0].error
    assert reports[0].ended_at_ms is not None


def test_a_stop_overtakes_a_start_that_waits_to_be_tried_again(
    give: Callable[[Bench], Orders], reports: list[RunReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never starts, and its end is told at once."""
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.1)
    bench = Bench(OSError(errno.ENOMEM, "no memory"))
    giving = give(bench)
    giving.start(run())
    wait_for(lambda: bench.told == ["start 1-1"])
    giving.stop("1-1", 0)
    wait_for(lambda: bool(reports))
    assert (reports[0].stopped, reports[0].started_at_ms) == (True, None)
    time.sleep(0.2)
    assert bench.told == ["start 1-1"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_stop_is_tried_until_it_works(
    give: Callable[[Bench], Orders], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """However often the disk is full; what is ordered meanwhile is not held up."""
    monkeypatch.setattr(orders, "TRIES", 3)
    monkeypatch.setattr(orders, "LONGEST_STOP_PAUSE_S", 0.02)
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.01)
    failures = 8

    class Full(Bench):
        def stop(self, key: str, grace_ms: int | None = None) -> None:
            super().stop(key, grace_ms)
            if key == "1-1" and self.told.count("stop 1-1 500") <= failures:
                raise OSError(number, "no room")

    bench = Full()
    bench.runs = {key: RunReport(key=key, pid=1, started_at_ms=1) for key in ("1-1", "2-1")}
    giving = give(bench)
    giving.stop("1-1", 500)
    giving.stop("2-1", 0)
    wait_for(lambda: bench.told.count("stop 1-1 500") == failures + 1)
    assert bench.told.index("stop 2-1 0") < 3
    time.sleep(0.1)
    assert bench.told.count("stop 1-1 500") == failures + 1


def test_a_start_waits_for_room_as_long_as_it_takes(
    give: Callable[[Bench], Orders], reports: list[RunReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other failures have an end after some tries; a full disk is nobody's fault who submitted."""
    monkeypatch.setattr(orders, "TRIES", 3)
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.005)
    monkeypatch.setattr(orders, "LONGEST_PAUSE_S", 0.01)
    full = [OSError(errno.ENOSPC, "disk full")] * 9
    bench = Bench(*full, *[OSError(errno.ENOMEM, "no memory")] * 9)
    giving = give(bench)
    giving.start(run("1-1"))
    wait_for(lambda: bool(reports))
    assert (bench.told, reports[0].exit_code) == (["start 1-1"] * 10 + ["give up 1-1"], 126)


def test_a_start_whose_supervisor_could_not_begin_is_tried_again(
    give: Callable[[Bench], Orders], reports: list[RunReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that fails at once: however often for a full disk, some times else; never what has begun."""
    monkeypatch.setattr(orders, "TRIES", 2)
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.005)
    bench = Bench()
    giving = give(bench)
    giving.start(run("1-1"))
    giving.start(run("2-1"))
    wait_for(lambda: len(reports) == 2)
    giving.has_begun("2-1")
    for number in range(4):
        giving.start_again("1-1", OSError(errno.ENOSPC, "disk full"))
        wait_for(lambda number=number: bench.told.count("start 1-1") == number + 2)  # type: ignore[misc]
    giving.start_again("2-1", OSError(errno.ENOSPC, "disk full"))
    giving.start_again("3-1", OSError(errno.ENOSPC, "disk full"))
    bench.runs.clear()
    giving.start_again("1-1", OSError(errno.EAGAIN, "killed"))
    wait_for(lambda: bool(reports[-1].error))
    assert (reports[-1].key, reports[-1].exit_code) == ("1-1", 126)
    assert bench.told.count("start 2-1") == 1
    assert "start 3-1" not in bench.told


def test_a_failing_order_does_not_stop_the_others(give: Callable[[Bench], Orders], reports: list[RunReport]) -> None:
    """The thread goes on."""

    class Stubborn(Bench):
        def forget(self, key: str) -> None:
            raise ValueError("it has not ended")

    giving = give(Stubborn())
    giving.forget("9-1")
    giving.start(run())
    wait_for(lambda: bool(reports))


def test_closing_carries_out_what_is_due_and_drops_what_waits(reports: list[RunReport]) -> None:
    """What waits to be tried again is in the journal: the next service starts it."""
    before = set(threading.enumerate())
    bench = Bench(OSError(errno.ENOSPC, "disk full"))
    giving = Orders(bench, reports.append)
    giving.start(run("1-1"))
    giving.start(run("2-1"))
    giving.close()
    assert bench.told == ["start 1-1", "start 2-1"]
    assert [report.key for report in reports] == ["2-1"]
    assert not [thread for thread in threading.enumerate() if thread not in before]


def test_the_end_of_what_was_executed_is_told_by_the_machine_alone(
    give: Callable[[Bench], Orders], reports: list[RunReport]
) -> None:
    """A stop that meets a run at its very end must not report it before the machine does."""
    bench = Bench()
    orders = give(bench)
    bench.runs["1-1"] = RunReport(key="1-1", pid=1, started_at_ms=1, ended_at_ms=2, exit_code=0)
    bench.runs["2-1"] = RunReport(key="2-1", ended_at_ms=2, stopped=True)
    orders.stop("1-1", 0)
    orders.stop("2-1", 0)
    wait_for(lambda: bool(reports))
    orders.close()
    assert [report.key for report in reports] == ["2-1"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EMFILE])
def test_a_stop_that_fails_is_tried_until_it_is_carried_out(give: Callable[[Bench], Orders], number: int) -> None:
    """Whatever the system says: a full disk, one that broke, no descriptors."""
    bench = Bench(*[OSError(number, "no") for _ in range(2)])
    bench.runs["1-1"] = RunReport(key="1-1", pid=1, started_at_ms=1)
    give(bench).stop("1-1", 500)
    wait_for(lambda: bench.told == ["stop 1-1 500"] * 3)


def test_an_order_that_is_tried_again_does_not_undo_a_later_one(give: Callable[[Bench], Orders]) -> None:
    """It could not be suspended; meanwhile it was told to go on."""
    bench = Bench(OSError(errno.ENOSPC, "no"))
    made = give(bench)
    made.go_on("1-1", None, suspended=True)
    wait_for(lambda: len(bench.told) == 1)
    made.go_on("1-1", 5, suspended=False)
    wait_for(lambda: len(bench.told) == 3)
    assert bench.told == ["go on 1-1 None True", "go on 1-1 5 False", "go on 1-1 5 False"]


def test_what_is_tried_again_needs_no_thread(monkeypatch: pytest.MonkeyPatch, reports: list[RunReport]) -> None:
    """Also where there is none to be had: an order that was refused for that is carried out all the same."""

    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.01)
    bench = Bench(*(OSError(errno.EAGAIN, "no processes") for _ in range(2)))
    bench.runs["1-1"] = RunReport(key="1-1", pid=1, started_at_ms=1)
    made = Orders(bench, reports.append)  # type: ignore[arg-type]
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more)
        made.stop("1-1", 0)
        made.start(RunSpec(key="2-1", command=("true",)))
        end = time.monotonic() + 10
        while not ("2-1" in bench.runs and bench.told.count("stop 1-1 0") > 1):
            assert time.monotonic() < end, bench.told
            time.sleep(0.005)
    made.close()


def test_the_files_of_a_run_are_cleared_up_once_its_supervisor_is_gone(
    give: Callable[[Bench], Orders], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of what never began is told while its supervisor is still there: the machine keeps the files so long."""
    monkeypatch.setattr(orders, "FIRST_PAUSE_S", 0.01)

    class Slow(Bench):
        def forget(self, key: str) -> None:
            super().forget(key)
            if len(self.told) < 3:
                raise ValueError("it has not ended")

        def purge(self, key: str) -> None:
            super().purge(key)
            if len(self.told) < 6:
                raise ValueError("it has not ended")

    bench = Slow()
    giving = give(bench)
    giving.forget("1-1")
    wait_for(lambda: bench.told == ["forget 1-1"] * 3)
    giving.purge("1-1")
    wait_for(lambda: bench.told == ["forget 1-1"] * 3 + ["purge 1-1"] * 3)
