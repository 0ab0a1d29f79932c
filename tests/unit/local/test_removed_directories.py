"""What becomes of runs whose directories somebody removes: no other run fails for it, and none is executed twice."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from testbed.paper import Service

from fairlead.local.job_states import State
from fairlead.local.machine import Machine
from fairlead.local.runs import RunSpec, removed
from fairlead.local.supervisor import kernel

if TYPE_CHECKING:
    from local.conftest import Bench


def remove_all(bench: Bench) -> None:
    """The directories of all runs that there are."""
    for each in bench.directory.iterdir():
        shutil.rmtree(each)


def test_runs_start_after_the_directory_of_all_was_removed(bench: Bench) -> None:
    """All that waited failed, one job after the other, until the service was started anew."""
    assert bench.run("a", "/bin/true").exit_code == 0
    shutil.rmtree(bench.directory)
    report = bench.shell("b", "echo here")
    assert (report.exit_code, report.error) == (0, "")
    assert bench.output("b") == "here\n"


def test_a_state_directory_that_is_away_is_not_made_anew(tmp_path: Path) -> None:
    """What it was mounted on would get files that nobody looks for."""
    machine = Machine(tmp_path / "state" / "runs", on_end=lambda _: None)
    shutil.rmtree(tmp_path / "state")
    assert not (tmp_path / "state").exists()
    with pytest.raises(FileNotFoundError):
        machine.start(RunSpec(key="1-1", command=("/bin/true",)))
    machine.close()


def test_a_run_without_its_directory_is_lost_when_it_ends(bench: Bench) -> None:
    """It was said not to have started, or, where no run had a directory any more, to run for ever."""
    started = bench.start("a", "sleep", "0.3")
    remove_all(bench)
    report = bench.end("a")
    assert (report.lost, report.exit_code, report.error) == (True, None, "")
    assert report.started_at_ms == started.started_at_ms
    assert f"its directory {bench.directory / bench.key('a')} was removed while it ran" in report.note


def test_a_run_without_its_directory_can_be_stopped(bench: Bench) -> None:
    """It was said to be gone, its room was given to others, and it went on."""
    bench.start("a", "sleep", "60")
    remove_all(bench)
    found = bench.machine.report(bench.key("a"))
    assert found is not None
    assert not found.is_over
    bench.machine.stop(bench.key("a"))
    assert bench.end("a").lost
    assert bench.processes() == []
    with pytest.raises(KeyError):
        bench.machine.stop(bench.key("a"))


def test_what_began_does_not_begin_once_more_after_a_restart(tmp_path: Path) -> None:
    """The journal knows that it began; without its directory it was taken for one that had not."""
    service = Service(tmp_path)
    key = service.submit()
    deadline = time.monotonic() + 20
    while service.job(key).pid is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    service.runtime.close()
    service.place.close()
    again = Service(tmp_path)
    job = again.job(key)
    assert (job.state, again.paper.specs) == (State.LOST, {})
    again.runtime.close()
    again.place.close()


def test_a_supervisor_that_goes_on_without_its_directory_is_told_to_end(bench: Bench) -> None:
    """Its job is lost for the service that starts now, so nothing of it may go on."""
    found = bench.start("a", "sleep", "60")
    directory = bench.directory / bench.key("a")
    remove_all(bench)
    report = removed(bench.key("a"), directory, found.started_at_ms)
    assert (report.lost, report.started_at_ms) == (True, found.started_at_ms)
    bench.end("a")
    assert not [each for each in map(kernel.process, bench.processes()) if each is not None]


def test_what_a_script_made_beside_itself_goes_with_it(bench: Bench, tmp_path: Path) -> None:
    """It often begins with `cd "$(dirname "$0")"`. Its variables do not stay on the disk for that."""
    (tmp_path / "home" / "kept").mkdir(parents=True)
    script = (
        '#!/bin/sh\ncd "$(dirname "$0")" && mkdir -p out/deep stdout.log.d && echo x > out/deep/a && ln -s "$1" home\n'
    )
    bench.run("a", "script", str(tmp_path / "home"), script=script)
    directory = bench.directory / bench.key("a")
    assert (directory / "out" / "deep" / "a").exists()
    bench.until(lambda: not bench.machine._live)
    bench.machine.forget(bench.key("a"))
    names = ["forgotten", "stderr.log", "stdout.log", "stdout.log.d"]
    assert sorted(each.name for each in directory.iterdir()) == names
    bench.machine.purge(bench.key("a"))
    assert not directory.exists()
    assert (tmp_path / "home" / "kept").is_dir()
