"""`fairlead.apart`: a question that a copy of the process answers."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import time
from pathlib import Path

import pytest

from fairlead.apart import NoAnswer, all_answers, answered_apart, ask_apart


def test_what_the_question_changes_is_gone_with_it() -> None:
    """Only the answer comes back."""
    book = {"vcore": 1}

    def question() -> tuple[dict[str, int], int]:
        book["vcore"] = 2
        return book, os.getpid()

    changed, pid = answered_apart(question)
    assert changed == {"vcore": 2}
    assert book == {"vcore": 1}
    assert pid != os.getpid()


def test_questions_can_be_asked_inside_a_question() -> None:
    """Trials are made like this; each has its own pipe."""
    assert answered_apart(lambda: answered_apart(lambda: 20) + answered_apart(lambda: 1)) == 21


def test_a_question_stands_back_and_says_what_it_took() -> None:
    """Also what it has others find out: they do not stand back further, and their time is its own."""

    def busy() -> int:
        while time.process_time() < 0.2:
            pass
        return os.nice(0)

    asked = ask_apart(lambda: answered_apart(busy))
    assert asked.answer() == max(10, os.nice(0))
    assert 0.2 <= asked.cpu_s < 5


def test_a_question_that_fails_says_how_and_where() -> None:
    """Not only that there was no answer."""

    def question() -> None:
        raise ValueError("no such thing")

    with pytest.raises(NoAnswer, match=r"ValueError: no such thing .*test_apart.py"):
        answered_apart(question)


def test_a_question_that_takes_too_long_is_given_up() -> None:
    """By its own alarm."""
    asked = ask_apart(lambda: time.sleep(30), patience_s=0.1)
    with pytest.raises(NoAnswer, match="too long"):
        asked.answer()


def test_a_process_that_ends_without_an_answer_is_noticed() -> None:
    """Whatever ended it."""
    with pytest.raises(NoAnswer, match="without an answer"):
        answered_apart(lambda: os._exit(3))


def test_an_answer_may_be_large() -> None:
    """Larger than a pipe."""
    assert len(answered_apart(lambda: b"x" * 5_000_000)) == 5_000_000


def test_questions_side_by_side_are_all_waited_for() -> None:
    """Also when one of them fails; the answers keep their order."""
    assert all_answers([ask_apart(lambda: 1), ask_apart(lambda: 2)]) == [1, 2]
    asked = [ask_apart(lambda: os._exit(3)), ask_apart(lambda: 2)]
    with pytest.raises(NoAnswer, match="without an answer"):
        all_answers(asked)
    with pytest.raises(ChildProcessError):
        os.waitpid(asked[1].pid, 0)


def test_a_lock_and_a_port_are_free_though_a_question_goes_on(tmp_path: Path) -> None:
    """As when the service is killed meanwhile: its next start must not have to wait for the answer."""
    path = tmp_path / "lock"
    held = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    began = time.monotonic()
    asked = ask_apart(lambda: time.sleep(3) or "done")
    time.sleep(0.5)
    os.close(held)
    listening.close()
    again = os.open(path, os.O_RDWR)
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with socket.socket() as there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        there.bind(("127.0.0.1", port))
        there.listen()
    assert asked.answer() == "done"
    assert time.monotonic() - began >= 3
    os.close(again)


def test_one_may_look_whether_the_answer_has_come(tmp_path: Path) -> None:
    """Without waiting; also for one that is larger than a pipe."""
    told = tmp_path / "told"

    def question() -> bytes:
        while not told.exists():
            time.sleep(0.01)
        return b"x" * 3_000_000

    asked = ask_apart(question)
    assert not asked.has_come()
    told.touch()
    end = time.monotonic() + 20
    while not asked.has_come():
        assert time.monotonic() < end
        time.sleep(0.001)
    assert len(asked.answer()) == 3_000_000


def test_a_question_may_be_given_up() -> None:
    """Its process is gone then, and its pipe."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    asked = ask_apart(lambda: time.sleep(60))
    asked.give_up()
    with pytest.raises(ProcessLookupError):
        os.kill(asked.pid, 0)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_half_an_answer_is_none() -> None:
    """What was killed while it answered may have written what could be taken for one."""
    asked = ask_apart(lambda: b"x" * 5_000_000)
    assert select.select([asked.pipe], [], [], 60)[0]
    asked._came += os.read(asked.pipe, 100)  # No more: else it could be through with the rest.
    os.kill(asked.pid, signal.SIGKILL)
    with pytest.raises(NoAnswer, match="without an answer"):
        asked.answer()
