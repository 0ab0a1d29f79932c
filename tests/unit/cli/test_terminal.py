"""`fairlead attach`: the keys that leave, and what becomes of what is typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.cli.app import Failure
from fairlead.cli.follow import Prefixed
from fairlead.cli.terminal import Typed, keys_of


@pytest.mark.parametrize(
    ("text", "sent"),
    [("ctrl-]", b"\x1d"), ("ctrl-p,ctrl-q", b"\x10\x11"), ("CTRL-A,d", b"\x01d"), ("~", b"~"), (",", b",")],
)
def test_keys(text: str, sent: bytes) -> None:
    """As a terminal sends them."""
    assert keys_of(text) == sent


@pytest.mark.parametrize("text", ["", "ctrl", "ctrl-", "ctrl-1", "ab", "a,,b", "strg-a"])
def test_what_is_no_key(text: str) -> None:
    """With an example."""
    with pytest.raises(Failure, match=r"write ctrl-\] or a character"):
        keys_of(text)


@pytest.mark.parametrize(
    ("typed", "passed", "left"),
    [
        ([b"ls\n"], b"ls\n", False),
        ([b"ls\x10\x11more"], b"ls", True),
        ([b"ls\x10", b"\x11"], b"ls", True),
        ([b"\x10", b"x\x10\x10", b"\x11"], b"\x10x\x10", True),
        ([b"\x10", b"\x10"], b"\x10", False),
    ],
)
def test_what_is_typed_is_passed_on(typed: list[bytes], passed: bytes, left: bool) -> None:
    """But for the keys that leave, also where they come one by one."""
    found = Typed(b"\x10\x11")
    assert (b"".join(found.feed(each) for each in typed), found.left) == (passed, left)


def test_a_job_without_a_terminal_is_said_at_once(service: Any, run: Callable[..., Any]) -> None:
    """Not when it begins, which may be never; with what shows its output."""
    service.add("7", "waiting")
    result = run("attach", "7")
    said = "7 has no terminal: only `fairlead run --pty` gives one; `fairlead logs -f 7` shows what it writes"
    assert (result.exit_code, result.stderr) == (4, f"fairlead: {said}\n")
    assert run("attach", "--detach-keys", "hyper-x", "7").exit_code == 2


class _Sink:
    def __init__(self) -> None:
        self.content = b""

    def write(self, content: bytes) -> None:
        self.content += content

    def flush(self) -> None:
        pass


def test_lines_of_several_jobs_begin_with_their_keys() -> None:
    """Whole lines, however they come; the last one also where it has no end."""
    sink: Any = _Sink()
    one, two = Prefixed("1", sink), Prefixed("2", sink)
    for out, piece in ((one, b"a"), (two, b"x\ny"), (one, b"b\n"), (two, b"z"), (one, b""), (two, b"")):
        out.write(piece)
    assert sink.content == b"2: x\n1: ab\n2: yz\n"


def test_logs_of_several(service: Any, run: Callable[..., Any], answer: Callable[..., Any]) -> None:
    """Each line with its key; --attempt is about one job."""
    for key in ("1", "2"):
        service.add(key, "succeeded", exit_code=0)

        def wrote(request: Any, said: bytes = f"from {key}\n".encode()) -> Any:
            return answer(200, raw=said[int(request.query["offset"]) :] if request.query["stream"] == "stdout" else b"")

        service.on("GET", f"/jobs/{key}/logs", wrote)
    assert run("logs", "1", "2").stdout == "1: from 1\n2: from 2\n"
    assert run("logs", "--attempt", "1", "1", "2").exit_code == 2


def test_of_several_one_that_cannot_be_read_keeps_none_of_the_others(
    service: Any, run: Callable[..., Any], answer: Callable[..., Any], refuse: Callable[..., Any]
) -> None:
    """It is said, and the status is that of a refusal."""
    for key in ("1", "2"):
        service.add(key, "succeeded", exit_code=0)
    service.on("GET", "/jobs/1/logs", refuse(404, "/dev/null is no plain file", "not-found"))
    service.on("GET", "/jobs/2/logs", lambda asked: answer(200, raw=b"x\n" if asked.query["offset"] == "0" else b""))
    for more in ((), ("-f",)):
        result = run("logs", "--stdout", *more, "1", "2")
        assert (result.exit_code, result.stdout) == (4, "2: x\n")
        assert "1: /dev/null is no plain file" in result.stderr
