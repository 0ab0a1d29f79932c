"""The service has no file descriptor left: what ends meanwhile is told later, and nothing is taken for ended."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from fairlead.local import runs
from fairlead.local.supervisor import kernel, run_files

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real


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
