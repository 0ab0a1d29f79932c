"""Signals: who may send one, to what, and what the processes of a run see of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from testbed.paper import ANN, Service

from fairlead.local.callers import Caller
from fairlead.local.signals import signal
from fairlead.runtime import Refusal

BOB = Caller(user="bob", uid=1001, groups=("bob",))


def send(service: Service, key: str, caller: Caller = ANN) -> str:
    run: str = service.do(lambda turn: signal(service.place.jobs, turn, caller, key, 10, first=True))
    return run


def test_it_goes_to_the_newest_run_and_stands_in_the_history(service: Service) -> None:
    """With who wanted it."""
    key = service.submit()
    end = time.monotonic() + 50
    while not service.job(key).pid:
        assert time.monotonic() < end
        time.sleep(0.005)
    assert send(service, key) == "1-1"
    last = service.job(key).history[-1]
    assert (last.what, last.detail) == ("signal", "SIGUSR1 to its first process, by ann")


def test_what_does_not_run_is_sent_nothing(service: Service) -> None:
    """Nor is anything of others."""
    key = service.submit(hold=True)
    with pytest.raises(Refusal, match="job 1 is waiting; only what runs can be sent a signal"):
        send(service, key)
    with pytest.raises(Refusal, match="there is no job '1'"):
        send(service, key, BOB)


@pytest.mark.real
@pytest.mark.parametrize(("first", "heard"), [(True, {"outer"}), (False, {"outer", "inner"})])
def test_all_processes_hear_it_or_the_first_alone(
    each_bench: Any, tmp_path: Path, first: bool, heard: set[str]
) -> None:
    """Real ones, with control groups and without."""
    trap = 'trap "echo {0} >> heard" USR1; echo {0} ready; while :; do sleep 0.02; done'
    (tmp_path / "inner").write_text(trap.format("inner"))
    script = f"sh inner & {trap.format('outer')}"
    each_bench.start("a", "/bin/sh", "-c", script, cwd=str(tmp_path), env={"PATH": "/bin:/usr/bin"})
    each_bench.says("a", "inner ready")
    each_bench.says("a", "outer ready")
    each_bench.machine.signal(each_bench.key("a"), 10, first=first)
    each_bench.until(lambda: heard <= words(tmp_path / "heard"))
    each_bench.machine.signal(each_bench.key("nothing"), 10)
    each_bench.machine.stop(each_bench.key("a"), 0)
    each_bench.end("a")
    assert words(tmp_path / "heard") == heard


def words(path: Path) -> set[str]:
    return set(path.read_text().split()) if path.exists() else set()
