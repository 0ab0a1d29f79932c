"""The service has no file descriptor left: what ends meanwhile is told later, and nothing is taken for ended."""

from __future__ import annotations

import os
import pwd
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from testbed.paper import Paper, spec

from fairlead.local import accounts, runs
from fairlead.local.job import Job
from fairlead.local.place import LocalPlace
from fairlead.local.supervisor import kernel, run_files

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real
SYNTHESIZED = {0, 65_534}
"""Users that systemd knows without a look into any file."""


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Every descriptor that this process may have is taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    taken = []
    try:
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_ends_meanwhile_is_told(bench: Bench) -> None:
    """Launched by this process, or adopted: each with its real exit status, once."""
    for number in range(5):
        bench.start(f"r{number}", "/bin/sh", "-c", f"sleep 0.4; exit {number}")
    bench.wait(lambda: len(bench.begins) == 5)
    with no_descriptors():
        time.sleep(1.0)
    for number in range(5):
        assert bench.end(f"r{number}").exit_code == number
    assert len(bench.ends) == 5


def test_nothing_is_taken_for_ended(bench: Bench) -> None:
    """A living process is not gone because it cannot be asked."""
    bench.start("a", "/bin/sleep", "600")
    bench.wait(lambda: bench.begins)
    claim = runs.claim_of(bench.directory / bench.key("a"))
    assert claim is not None
    second = bench.open()
    with no_descriptors():
        with pytest.raises(OSError, match="Too many open files"):
            kernel.alive(claim["supervisor"], claim["supervisor_ticks"])
        with pytest.raises(OSError, match="Too many open files"):
            second.adopt()
        with pytest.raises(OSError, match="Too many open files"):
            second.start(bench.spec("b", "/bin/true"))
    assert claim["pid"] in [report.pid for report in second.adopt()]
    assert not run_files.exists(str(bench.directory / bench.key("a")), run_files.RESULT)
    assert bench.run("b", "/bin/true").exit_code == 0


def test_nobody_is_taken_for_unknown() -> None:
    """Who is known has no other name, and no fewer groups, for a moment in which the system cannot look."""
    known = next(each.pw_uid for each in pwd.getpwall() if each.pw_uid not in SYNTHESIZED)
    before = accounts.by_uid(known)
    with no_descriptors():
        for look in (lambda: accounts.by_uid(known), lambda: before.groups):
            with pytest.raises(OSError, match="Too many open files"):
                look()
    assert accounts.by_uid(known) == before
    assert accounts.by_uid(54_321).name == "uid-54321"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run work as somebody else")
def test_work_runs_with_the_groups_of_its_user(bench: Bench) -> None:
    """They are looked up when it is executed: where that cannot be, it is tried again, and not run without them."""
    who = next(each for each in pwd.getpwall() if each.pw_uid not in SYNTHESIZED and each.pw_gid != each.pw_uid)
    as_user: dict[str, Any] = {"uid": who.pw_uid, "user": who.pw_name, "groups": None}
    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        bench.machine.start(bench.spec("a", "/usr/bin/id", "-g", **as_user))
    assert bench.run("a", "/usr/bin/id", "-g", **as_user).exit_code == 0
    assert bench.output("a") == f"{who.pw_gid}\n"


def test_a_job_is_ordered_without_a_look_at_its_account(tmp_path: Path) -> None:
    """That waits for the moment at which it is executed; so nothing that the system says now is kept in the order."""
    place: LocalPlace = LocalPlace(lambda _: Paper(), tmp_path, as_submitter=True)
    job = Job(spec("1"), 0, 0)
    place._output_bound = lambda queue: 0  # type: ignore[method-assign]
    run = place._run_spec(job, "1-1")
    place.close()
    assert (run.uid, run.gid, run.groups) == (1000, None, None)
