"""logs, logs -f, submit --wait."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from testbed.answering import made

from fairlead.cli import follow, follow_parts, outputs
from fairlead.cli.follow import exit_status, how_it_ended
from fairlead.cli.outputs import Prefixed, last_lines
from fairlead.client import Client
from fairlead.client.errors import Unreachable
from fairlead.wire.jobs import JobDetails


@pytest.fixture
def logged(service: Any, answer: Any) -> Any:
    """A service with one job that has written something."""
    contents = {"stdout": b"one\ntwo\nthree\nlast", "stderr": b"oops\n"}

    def logs(request: Any) -> Any:
        offset = int(request.query.get("offset", 0))
        end = offset + int(request.query.get("limit", 10**6))
        part = contents[request.query["stream"]][offset:end]
        return answer(200, raw=part, headers={"X-Offset-Next": str(offset + len(part))})

    service.add("1", "succeeded", started_at_ms=1, ended_at_ms=2, exit_code=0)
    service.on("GET", "/jobs/1/logs", logs)
    service.contents = contents
    return service


def test_each_stream_goes_where_it_belongs(logged: Any, run: Callable[..., Any]) -> None:
    """Bytes as they are."""
    result = run("logs", "1")
    assert (result.stdout, result.stderr, result.exit_code) == ("one\ntwo\nthree\nlast", "oops\n", 0)


def test_one_stream_can_be_chosen(logged: Any, run: Callable[..., Any]) -> None:
    """The other is not even asked for."""
    assert run("logs", "1", "--stderr").output == "oops\n"
    assert run("logs", "1", "--stdout").output == "one\ntwo\nthree\nlast"
    assert run("logs", "1", "--stdout", "--stderr").exit_code == 2


def test_tail_counts_lines(logged: Any, run: Callable[..., Any]) -> None:
    """The last one may lack its end of line."""
    assert run("logs", "1", "--stdout", "--tail", "2").stdout == "two\nthree\nlast"[4:]
    assert run("logs", "1", "--stdout", "--tail", "0").stdout == ""
    assert run("logs", "1", "--stdout", "--tail", str(10**30)).stdout == "one\ntwo\nthree\nlast"


def test_long_output_is_read_in_parts(logged: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte once."""
    monkeypatch.setattr(outputs, "_PART", 5)
    assert run("logs", "1", "--stdout").stdout == "one\ntwo\nthree\nlast"
    assert run("logs", "1", "--stdout", "--tail", "2").stdout == "three\nlast"


def test_following_goes_on_where_a_broken_connection_ended(logged: Any, client: Client, answer: Any) -> None:
    """No byte is lost or printed twice."""
    original = logged.routes["GET", "/api/v1/jobs/1/logs"]
    seen: list[int] = []

    def breaking(request: Any) -> Any:
        if request.query.get("follow") != "true":
            return original(request)
        offset = int(request.query["offset"])
        seen.append(offset)
        logged.jobs["1"]["state"] = "succeeded" if len(seen) == 3 else "running"
        return answer(200, raw=logged.contents["stdout"][offset : offset + 6], broken=offset < 12)

    logged.on("GET", "/jobs/1/logs", breaking)
    chunks = b"".join(follow.patient_log(client, "1", "stdout", 0))
    assert chunks == b"one\ntwo\nthree\nlast"
    assert seen == [0, 6, 12]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"state": "succeeded", "exit_code": 0}, 0),
        ({"state": "failed", "exit_code": 7}, 7),
        ({"state": "failed", "exit_code": None, "signal": 9}, 137),
        ({"state": "failed", "exit_code": 127, "error": "no such program"}, 127),
        ({"state": "timed_out", "exit_code": None, "signal": 15}, 124),
        ({"state": "cancelled", "started_at_ms": 5, "signal": 15}, 143),
        ({"state": "cancelled", "started_at_ms": 5, "exit_code": 0}, 1),
        ({"state": "cancelled", "started_at_ms": None}, 4),
        ({"state": "evicted", "started_at_ms": 5, "signal": 15}, 143),
        ({"state": "evicted", "started_at_ms": 5, "exit_code": 143}, 143),
        ({"state": "lost", "started_at_ms": 5}, 1),
        ({"state": "rejected"}, 4),
    ],
)
def test_the_exit_status_stands_for_the_end(fields: dict[str, Any], status: int) -> None:
    """As the help says."""
    assert exit_status(made(JobDetails, **fields)) == status


def test_an_unusual_end_is_told_in_a_sentence() -> None:
    """The command's own exit status needs none."""
    assert how_it_ended(made(JobDetails, state="failed", exit_code=3)) == ""
    assert how_it_ended(made(JobDetails, state="failed", signal=9)) == "ended by SIGKILL"
    assert how_it_ended(made(JobDetails, state="failed", error="there is no x")) == "there is no x"
    assert (
        how_it_ended(made(JobDetails, state="evicted", reason={"code": "x", "sentence": "was stopped"}))
        == "was stopped"
    )


@pytest.fixture
def taking(logged: Any) -> Any:
    logged.on("POST", "/jobs", {"jobs": [{"key": "1"}]})
    return logged


def test_wait_passes_on_output_and_exit_status(taking: Any, run: Callable[..., Any]) -> None:
    """The key is not printed: output is the job's alone."""
    taking.jobs["1"].update(state="failed", exit_code=5)
    result = run("submit", "--wait", "--", "true")
    assert (result.exit_code, result.stdout, result.stderr) == (5, "one\ntwo\nthree\nlast", "oops\n")


def test_who_waits_has_the_status_also_where_the_output_cannot_be_read(
    taking: Any, run: Callable[..., Any], refuse: Any
) -> None:
    """It goes to /dev/null: that is no end of the wait. Asked for alone, it is refused."""
    taking.jobs["1"].update(state="failed", exit_code=5)
    taking.on("GET", "/jobs/1/logs", refuse(404, "/dev/null is no plain file", "not-found"))
    result = run("submit", "--wait", "--output", "/dev/null", "--", "true")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "/dev/null is no plain file" in result.stderr
    assert run("logs", "-f", "1").exit_code == run("logs", "1").exit_code == 4


def test_parts_whose_output_cannot_be_read_are_said(service: Any, run: Callable[..., Any], refuse: Any) -> None:
    """And waited for to the end."""
    service.on("POST", "/jobs", {"jobs": [{"key": "7"}]})
    service.add("7", "failed", started_at_ms=1, ended_at_ms=2, parts={"failed": 1, "exit_status": 5})
    service.add("7.1", "failed", started_at_ms=1, ended_at_ms=2, exit_code=5)
    service.on("GET", "/jobs", {"jobs": [service.jobs["7.1"]], "next": None, "total": 1})
    service.on("GET", "/jobs/7.1/logs", refuse(404, "/dev/null is no plain file", "not-found"))
    result = run("submit", "--wait", "--array", "1", "--", "true")
    assert result.exit_code == 5
    assert "7.1: /dev/null is no plain file" in result.stderr


def test_the_parts_beside_one_whose_output_cannot_be_read_are_shown(
    logged: Any, run: Callable[..., Any], refuse: Any
) -> None:
    """The status says that something is missing."""
    logged.add("7", "succeeded", started_at_ms=1, ended_at_ms=2, parts={"done": 2})
    for key in ("7.1", "7.2"):
        logged.add(key, "succeeded", started_at_ms=1, ended_at_ms=2, exit_code=0)
    logged.on("GET", "/jobs", {"jobs": [logged.jobs["7.1"], logged.jobs["7.2"]], "next": None, "total": 2})
    logged.on("GET", "/jobs/7.1/logs", refuse(404, "what it wrote is not there any more", "not-found"))
    logged.on("GET", "/jobs/7.2/logs", logged.routes["GET", "/api/v1/jobs/1/logs"])
    result = run("logs", "--stderr", "7")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "7.2: oops" in result.stderr
    followed = run("logs", "-f", "--stderr", "7")
    assert (followed.exit_code, followed.stderr) == (4, result.stderr)
    assert "7.1: what it wrote is not there any more" in result.stderr


def test_wait_quietly_has_the_status_alone(taking: Any, run: Callable[..., Any]) -> None:
    """Nothing is printed."""
    result = run("submit", "--wait", "--quiet", "--", "true")
    assert (result.exit_code, result.output) == (0, "")


def test_wait_with_json_prints_the_end(taking: Any, run: Callable[..., Any]) -> None:
    """Instead of the output."""
    assert json.loads(run("submit", "--wait", "--json", "--", "true").stdout)["state"] == "succeeded"


def test_waiting_goes_on_while_the_service_restarts(
    taking: Any, run: Callable[..., Any], answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so once."""
    monkeypatch.setattr(follow, "_POLL_S", (0.01,))
    monkeypatch.setattr("fairlead.client.sync.PAUSES_S", ())
    away = [3]

    def show(_request: Any) -> Any:
        away[0] -= 1
        return answer(200, raw=b"{", broken=True) if away[0] >= 0 else taking.jobs["1"]

    taking.on("GET", "/jobs/1", show)
    monkeypatch.setattr(follow.time, "sleep", lambda _s: None)
    result = run("submit", "--wait", "--json", "--", "true")
    assert result.exit_code == 0
    assert result.stderr.count("Trying for") == 1


def test_output_of_work_that_waits_says_why_there_is_none(logged: Any, run: Callable[..., Any]) -> None:
    """On standard error, so that a file of output stays clean."""
    logged.jobs["1"].update(state="waiting", reason={"code": "queue-full", "sentence": "the queue is full"})
    logged.contents.update(stdout=b"", stderr=b"")
    result = run("logs", "1")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "fairlead: 1 waits: the queue is full\n", 0)


def test_wait_leaves_with_the_status_of_the_worst(
    service: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for each, and prints none of the output."""
    looks = [0]

    def ends_at_the_third_look(_request: Any) -> Any:
        looks[0] += 1
        return service.jobs["1"] | {"state": "running" if looks[0] < 3 else "succeeded"}

    service.add("1", "running", started_at_ms=1, exit_code=0)
    service.add("2", "failed", started_at_ms=1, ended_at_ms=2, exit_code=7)
    service.on("GET", "/jobs/1", ends_at_the_third_look)
    monkeypatch.setattr(follow, "_POLL_S", (0.01, 0.01))
    result = run("wait", "1", "2")
    assert (result.exit_code, result.stdout, looks[0]) == (7, "", 3)
    assert result.stderr == "fairlead: 2 failed: exit status 7\n"
    assert [row["key"] for row in json.loads(run("wait", "2", "1", "--json").stdout)] == ["2", "1"]


def test_wait_refuses_an_unknown_key_at_once(service: Any, run: Callable[..., Any]) -> None:
    """Before it waits for those that are named earlier."""
    service.add("1", "running", started_at_ms=1)
    assert run("wait", "1", "9").exit_code == 4


def test_waiting_for_a_start_is_over_when_it_runs(service: Any, run: Callable[..., Any]) -> None:
    """Or when it has ended without; then that is the status."""
    service.add("1", "running", started_at_ms=1)
    service.add("2", "failed", started_at_ms=1, ended_at_ms=2, exit_code=3)
    service.add("3", "cancelled", ended_at_ms=2)
    assert run("wait", "--started", "1", "2").exit_code == 0
    assert run("wait", "--started", "1", "3").exit_code == 4


def test_a_line_that_is_half_written_when_two_are_followed_stays_one_line(
    service: Any, run: Callable[..., Any], answer: Any
) -> None:
    """What comes of it later belongs to it."""
    whole = {"1": b"one\nhalf of it\n", "2": b"all\n"}

    def logs(request: Any) -> Any:
        key, follows = request.path.split("/")[4], request.query.get("follow") == "true"
        written = whole[key] if request.query["stream"] == "stdout" else b""
        offset = int(request.query.get("offset", 0))
        part = written[offset:] if follows else written[offset:8]
        if follows:
            service.jobs[key]["state"] = "succeeded"
        return answer(200, raw=part, headers={"X-Offset-Next": str(offset + len(part))})

    for key in whole:
        service.add(key, "running", started_at_ms=1, attempts=1)
        service.on("GET", f"/jobs/{key}/logs", logs)
    result = run("logs", "-f", "1", "2")
    assert sorted(result.stdout.splitlines()) == ["1: half of it", "1: one", "2: all"]


@pytest.mark.parametrize("further", [1, 40])
def test_output_of_parts_is_passed_on_though_others_were_cancelled(
    service: Any, run: Callable[..., Any], answer: Any, monkeypatch: pytest.MonkeyPatch, further: int
) -> None:
    """A part that was followed is cancelled; others, also more than are followed at a time, begin and end unseen."""
    monkeypatch.setattr(follow, "_POLL_S", (0.01,))
    monkeypatch.setattr(follow_parts, "_POLL_S", 0.3)
    keys = [f"7.{number}" for number in range(1, further + 2)]
    ended = {"started_at_ms": 1, "ended_at_ms": 2}

    def logs(request: Any) -> Any:
        key = request.path.split("/")[4]
        if request.query.get("follow") == "true":
            service.add("7.1", "cancelled", **ended)
            for each in keys[1:]:
                service.add(each, "succeeded", **ended)
            service.add("7.999", "cancelled", ended_at_ms=2)
            service.jobs["7"] |= {"state": "cancelled", "parts": {"done": further, "cancelled": 2}}
        written = f"of {key}\n".encode() if request.query["stream"] == "stdout" else b""
        offset = int(request.query.get("offset", 0))
        return answer(200, raw=written[offset:], headers={"X-Offset-Next": str(len(written))})

    def parts(request: Any) -> Any:
        states = request.lists.get("state")
        rows = [job for key, job in service.jobs.items() if key != "7" and (not states or job["state"] in states)]
        return {"jobs": rows, "next": None, "total": len(rows)}

    service.add("7", "running", started_at_ms=1, parts={"running": 1})
    service.add("7.1", "running", started_at_ms=1)
    for key in [*keys, "7.999"]:
        service.on("GET", f"/jobs/{key}/logs", logs)
    service.on("GET", "/jobs", parts)
    result = run("logs", "-f", "7")
    assert sorted(result.stdout.splitlines()) == sorted(f"{key}: of {key}" for key in keys)
    assert not any("7.999" in request.path for request in service.requests), "what never began wrote nothing"


def test_what_the_attempts_of_a_part_wrote_is_all_passed_on(service: Any, run: Callable[..., Any], answer: Any) -> None:
    """They were over before anybody looked. A file of the user's own is told once."""

    def logs(request: Any) -> Any:
        attempt, offset = request.query.get("attempt", "newest"), int(request.query.get("offset", 0))
        return answer(200, raw=f"{request.query['stream']} {attempt}\n".encode()[offset:])

    def parts(request: Any) -> Any:
        return {"jobs": [] if request.lists.get("state") else [row], "next": None}

    service.add("7", "succeeded", started_at_ms=1, ended_at_ms=2, parts={"done": 1})
    service.add("7.1", "succeeded", started_at_ms=1, ended_at_ms=2)
    row = dict(service.jobs["7.1"])
    service.jobs["7.1"] |= {"attempts": 2, "own_files": ["stderr"]}
    service.on("GET", "/jobs", parts)
    service.on("GET", "/jobs/7.1/logs", logs)
    result = run("logs", "-f", "7")
    assert result.stdout.splitlines() == ["7.1: stdout 1", "7.1: stdout 2"]
    assert result.stderr.splitlines() == ["7.1: stderr newest"]


def test_output_without_ends_of_lines_is_not_copied_again_for_each_piece() -> None:
    """A bar of progress writes none; what was kept of it was copied with each piece: hours for 100 MiB."""
    pieces, out = 3_000, io.BytesIO()
    began = time.process_time()
    lines = Prefixed("1", out)  # type: ignore[arg-type]
    for _ in range(pieces):
        lines.write(b"#" * 8192)
    lines.write(b"\nend")
    lines.write(b"")
    [last] = last_lines((b"#" * 8192 for _ in range(pieces)), 2)
    assert time.process_time() - began < 2
    assert out.getvalue() == b"1: " + b"#" * (8192 * pieces) + b"\n1: end\n"
    assert last == b"#" * (8192 * pieces)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_the_last_lines_are_the_same_in_whatever_pieces_they_come(size: int) -> None:
    text = b"a\n\nbc\ndef"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(last_lines(iter(pieces), 3)) == [b"\nbc\ndef"]
    out = io.BytesIO()
    lines = Prefixed("1", out)  # type: ignore[arg-type]
    for piece in [*pieces, b""]:
        lines.write(piece)
    assert out.getvalue() == b"1: a\n1: \n1: bc\n1: def\n"


def test_of_several_outputs_one_says_that_the_service_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    """Both outputs of a job are followed at once, and it was said for each."""
    away = threading.Barrier(2)

    def twice(calls: list[int]) -> None:
        calls.append(1)
        away.wait(20)
        if len(calls) < 2:
            raise Unreachable("nobody listens there.")

    threads = [threading.Thread(target=lambda: follow.patiently(partial(twice, []))) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert capsys.readouterr().err.count("Trying for") == 1
