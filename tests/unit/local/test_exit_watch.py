"""What could not be told just now is told later."""

from __future__ import annotations

import errno
import os
import selectors
import subprocess
import time
from collections.abc import Callable

import pytest

from fairlead.local.watch import ExitWatch

pytestmark = pytest.mark.real


def test_a_begin_and_an_end_that_could_not_be_told_are_told_again(caplog: pytest.LogCaptureFixture) -> None:
    """The kernel had no memory for it: one sentence in the log, however long, no traceback; each is told after all."""
    begun: list[str] = []
    ended: list[tuple[str, str]] = []

    def on_begin(key: str) -> None:
        begun.append(key)
        if len(begun) == 1:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")

    def on_exit(key: str, words: str) -> None:
        ended.append((key, words))
        if len(ended) < 3:
            raise OSError(errno.EIO, "Input/output error")

    watch = ExitWatch(on_begin, on_exit)
    out, into = os.pipe()
    child = subprocess.Popen(["/bin/sleep", "60"])
    try:
        watch.add_child("1-1", child.pid, out)
        os.write(into, b"begun\n")
        _until(lambda: len(begun) == 2)
        child.kill()
        os.close(into)
        _until(lambda: len(ended) == 3)
    finally:
        child.kill()
        watch.close()
    assert begun == ["1-1"] * 2
    assert ended == [("1-1", "")] * 3
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the begin of run 1-1 could not be told, tried again",
        "the end of run 1-1 could not be settled, tried again",
    ]
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("refused", [{"words"}, {"process"}, {"words", "process"}])
def test_what_the_kernel_has_no_room_to_watch_is_looked_at(refused: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """That it begins, and that it ends: both are told, once."""
    begun: list[str] = []
    ended: list[tuple[str, str]] = []
    watch = ExitWatch(begun.append, lambda key, words: ended.append((key, words)))
    register = watch._selector.register

    def full(fd: int, events: int, data: tuple[str, str]) -> selectors.SelectorKey:
        if data[1] in refused:
            raise OSError(errno.ENOSPC, "No space left on device")
        return register(fd, events, data)

    monkeypatch.setattr(watch._selector, "register", full)
    out, into = os.pipe()
    child = subprocess.Popen(["/bin/sleep", "60"])
    try:
        watch.add_child("1-1", child.pid, out)
        os.write(into, b"begun\n")
        _until(lambda: begun == ["1-1"])
        os.write(into, b"a last word")
        child.kill()
        os.close(into)
        _until(lambda: ended == [("1-1", "a last word")])
    finally:
        child.kill()
        watch.close()
    assert (len(begun), len(ended)) == (1, 1)


def _until(what: Callable[[], bool], patience_s: float = 20.0) -> None:
    end = time.monotonic() + patience_s
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
