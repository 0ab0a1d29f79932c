"""Ctrl-C while output is passed on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from fairlead.cli.interrupts import Interrupt, all_at_once


class Asked(Interrupt):
    """Counts how often somebody would be asked, and waits on."""

    def __init__(self) -> None:
        super().__init__(["1"])
        self.times = 0

    def ask(self, client: object) -> None:
        """Somebody says: wait on."""
        self.times += 1


def interrupt() -> None:
    """What a terminal does to the whole process."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("begun", [0, 1, 2])
def test_who_interrupts_before_all_has_begun_is_asked(begun: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first output is there before the last thread is."""
    start, passed = threading.Thread.start, []

    def starting(thread: threading.Thread) -> None:
        if len(passed) == begun:
            interrupt()
        start(thread)
        while not thread.name.startswith("over"):
            time.sleep(0.001)

    def call(number: int) -> None:
        passed.append(number)
        threading.current_thread().name = f"over {number}"

    monkeypatch.setattr(threading.Thread, "start", starting)
    asked, client = Asked(), Any
    all_at_once(client, [lambda number=number: call(number) for number in range(3)], asked)  # type: ignore[misc,arg-type]
    assert (passed, asked.times) == ([0, 1, 2], 1)


def test_each_is_asked_and_none_ends_the_waiting() -> None:
    """However often; a thread that is waited for and interrupted is not taken for one that has ended."""
    asked = Asked()
    go_on, ended = threading.Event(), []

    def call() -> None:
        go_on.wait(20)
        ended.append(True)

    def person() -> None:
        for times in range(5):
            while asked.times < times or signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                time.sleep(0.001)
            interrupt()
        while asked.times < 5:
            time.sleep(0.001)
        go_on.set()

    threading.Thread(target=person, daemon=True).start()
    all_at_once(Any, [call, call], asked)  # type: ignore[arg-type]
    assert (len(ended), asked.times) == (2, 5)


def test_one_that_leaves_is_not_kept() -> None:
    """The answer to leave comes through, and Ctrl-C is heard as before from then on."""
    go_on = threading.Event()

    def call() -> None:
        interrupt()
        go_on.wait(20)

    with pytest.raises(KeyboardInterrupt):
        all_at_once(Any, [call], Interrupt(()))  # type: ignore[arg-type]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    go_on.set()


def test_what_one_raises_is_raised() -> None:
    """At once, while others go on; without any there is nothing to wait for."""
    go_on = threading.Event()

    def broken() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        all_at_once(Any, [lambda: go_on.wait(20), broken], Interrupt(()))  # type: ignore[arg-type]
    go_on.set()
    all_at_once(Any, [], Interrupt(()))  # type: ignore[arg-type]


def test_who_writes_nothing_ends_when_nobody_reads() -> None:
    """`fairlead logs -f 17 | grep -m1 ready` went on until the job wrote again."""
    go_on = threading.Event()
    with pytest.raises(BrokenPipeError):
        all_at_once(Any, [lambda: go_on.wait(20)], Interrupt(()), is_read=lambda: False)  # type: ignore[arg-type]
    go_on.set()


def test_whether_anybody_reads() -> None:
    """As the kernel says of the pipe."""
    program = "import sys; from fairlead.cli.outputs import is_read; sys.stdin.read(); sys.exit(10 + is_read())"
    for reads in (True, False):
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as done:
            assert done.stdin is not None
            assert done.stdout is not None
            if not reads:
                done.stdout.close()
            done.stdin.close()
            assert done.wait(50) == 10 + reads
