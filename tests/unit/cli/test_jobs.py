"""ls, show, why, cancel, priority."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from testbed.answering import made

from fairlead.cli import jobs
from fairlead.cli.jobs import print_jobs
from fairlead.cli.render import Screen
from fairlead.client.errors import Unreachable
from fairlead.wire.jobs import Job

FULL = {"code": "cluster-full", "sentence": "all nodes together have cpu 1 free"}


@pytest.fixture
def filled(service: Any) -> Any:
    service.add("1", "running", node="here", started_at_ms=2000, priority=5)
    service.add("2", "waiting", reason=FULL, name="big", user="bob")
    service.add("3", "failed", exit_code=3, started_at_ms=2000, ended_at_ms=9000)
    return service


def test_without_a_terminal_each_job_is_a_line_of_the_same_columns(filled: Any, run: Callable[..., Any]) -> None:
    """A dash stands for what is empty, so that awk can count."""
    header, *rows = run("ls").stdout.splitlines()
    assert header.split() == [
        "KEY",
        "NAME",
        "QUEUE",
        "USER",
        "PRIORITY",
        "STATE",
        "TIME",
        "CPU",
        "MEMORY",
        "NODE",
        "EXIT",
        "REASON",
    ]
    assert rows[0].split()[:6] == ["3", "job", "root.batch", "ann", "0", "failed"]
    assert rows[0].split()[6:] == ["7.0s", "1", "-", "-", "3", "-"]
    assert rows[1].split()[0] == "1"
    assert rows[2].endswith(FULL["sentence"])


def test_json_is_one_array_of_all_rows(filled: Any, run: Callable[..., Any]) -> None:
    """With the documented keys, ended ones included."""
    rows = json.loads(run("ls", "--json").stdout)
    assert [row["key"] for row in rows] == ["1", "2", "3"]
    documented = {"key", "name", "queue", "user", "priority", "state", "node", "exit_code", "reason"}
    assert all(documented <= row.keys() for row in rows)
    assert rows[1]["reason"] == FULL | {"values": {}}


def test_where_there_is_nothing_yet_nothing_is_said_of_filters(service: Any, run: Callable[..., Any]) -> None:
    """Only who asked for something is told that it is not there."""
    assert run("ls").stderr == ""
    assert run("ls", "--name", "x").stderr == "fairlead: no job is like that\n"


def test_an_array_is_one_line_with_how_many_of_its_parts_are_how(service: Any, run: Callable[..., Any]) -> None:
    """And why those that wait do."""
    counts = {"waiting": 3, "held": 1, "running": 0, "done": 2, "cancelled": 0, "failed": 1, "exit_status": 4}
    service.add("7", "waiting", reason=FULL, parts={"indices": "1-7", "at_once": 2, "count": 7} | counts)
    row = run("ls").stdout.splitlines()[1]
    assert row.endswith(f"[1-7%2] waiting 3, held 1, done 2, failed 1; {FULL['sentence']}")
    assert "parts [1-7%2] waiting 3, held 1, done 2, failed 1" in " ".join(run("show", "7").stdout.split())


def test_of_the_parts_that_are_on_the_machine_it_is_said_how_many_do_not_run(
    service: Any, run: Callable[..., Any]
) -> None:
    """They were all said to run, also to whoever had just suspended them."""
    counts = {"waiting": 0, "held": 0, "running": 3, "done": 0, "cancelled": 0, "failed": 0, "exit_status": 0}
    counts |= {"suspended": 2, "stopping": 1}
    service.add("7", "running", parts={"indices": "1-3", "at_once": 0, "count": 3} | counts)
    assert run("ls").stdout.splitlines()[1].endswith("[1-3] running 3 (suspended 2, stopping 1)")


def test_the_priority_of_an_array_is_said_for_what_waits_of_it(service: Any, run: Callable[..., Any]) -> None:
    """What runs keeps its own, which was shown as if nothing had changed."""
    counts = {"waiting": 3, "held": 1, "running": 2, "done": 0, "cancelled": 0, "failed": 0, "exit_status": 0}
    shown = service.add("7", "running", priority=0, parts={"indices": "1-6", "at_once": 2, "count": 6} | counts)
    service.on("PATCH", "/jobs/7", shown)
    assert run("priority", "7", "4").stdout == "7 priority 4 for what waits of it\n"


def test_filters_are_handed_to_the_service(filled: Any, run: Callable[..., Any]) -> None:
    """One question, for several states too."""
    chosen = ("-s", "failed", "-s", "running", "-u", "ann", "-q", "root.batch", "-n", "shop")
    rows = json.loads(run("ls", "--json", *chosen).stdout)
    assert [row["key"] for row in rows] == ["1", "3"]
    [request] = filled.requests
    assert request.lists["state"] == ["failed", "running"]
    assert request.query.items() >= {"user": "ann", "queue": "root.batch", "namespace": "shop"}.items()


def test_a_state_that_does_not_exist_is_refused(filled: Any, run: Callable[..., Any]) -> None:
    """All states are listed."""
    result = run("ls", "--state", "dead")
    assert result.exit_code == 2
    assert "timed_out" in result.stderr


def test_only_the_newest_that_ended_are_shown_and_the_rest_is_counted(service: Any, run: Callable[..., Any]) -> None:
    """--all shows them, --json never leaves any out."""
    for number in range(25):
        service.add(str(number), "succeeded", ended_at_ms=1000 + number)
    result = run("ls")
    assert len(result.stdout.splitlines()) == 21
    assert "5 more" in result.stderr
    assert len(run("ls", "--all").stdout.splitlines()) == 26
    assert len(json.loads(run("ls", "--json").stdout)) == 25


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_fits_a_terminal(width: int) -> None:
    """With long names, queues and reasons."""
    out = io.StringIO()
    row = {
        "key": "12345",
        "name": "a-long-name-of-a-job",
        "queue": "root.research.team-a.experiments",
        "user": "ann",
        "priority": -2147483648,
        "state": "waiting",
        "resources": {"cpu": 1.5, "memory": 2**34},
        "submitted_at_ms": 0,
        "reason": {"code": "too-big", "sentence": "needs cpu 1.5, memory 16Gi on one node; closest of 3 " * 3},
    }
    print_jobs(Screen(out, width), [made(Job, **row)], now_ms=5_000_000)
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= width
    assert "12345" in lines[1]
    assert "1h 23m" in lines[1]
    assert "needs" in lines[1]


def test_show_prints_fields_and_history(service: Any, run: Callable[..., Any]) -> None:
    """In words and local times."""
    service.add(
        "7",
        "timed_out",
        signal=15,
        command=["sh", "-c", "a b"],
        started_at_ms=2000,
        ended_at_ms=5000,
        cpu_ms=1200,
        peak_memory_bytes=2**20,
        history=[{"at_ms": 1000, "what": "submitted", "detail": "by ann"}],
        enforcement=[{"name": "memory limit", "enforced": True, "how": "control group"}],
    )
    shown = run("show", "7").stdout
    for part in (
        "timed_out",
        "SIGTERM",
        "sh -c 'a b'",
        "1.2s",
        "1Mi",
        "submitted",
        "by ann",
        "memory limit: yes, control group",
    ):
        assert part in shown
    assert json.loads(run("show", "7", "--json").stdout)["signal"] == 15


def test_an_unknown_key_is_status_4(service: Any, run: Callable[..., Any]) -> None:
    """In one sentence."""
    result = run("show", "99")
    assert (result.exit_code, result.stdout, result.stderr) == (4, "", "fairlead: there is no job 99\n")


def test_why_prints_the_sentence_and_the_place_in_the_queue(service: Any, run: Callable[..., Any]) -> None:
    """On one line."""
    service.on(
        "GET",
        "/jobs/2/why",
        {
            "key": "2",
            "state": "waiting",
            "reason": FULL,
            "sentence": FULL["sentence"],
            "queue_position": 3,
        },
    )
    assert run("why", "2").stdout == f"2: waiting (3rd in its queue): {FULL['sentence']}\n"
    assert json.loads(run("why", "2", "--json").stdout)["queue_position"] == 3


def test_why_without_a_key_explains_everything_that_waits(filled: Any, run: Callable[..., Any]) -> None:
    """A line each; nothing if nothing waits."""
    assert run("why").stdout == f"2: big in root.batch: {FULL['sentence']}\n"
    filled.jobs.clear()
    assert run("why").stdout == ""


def test_cancel_takes_several_keys_and_goes_on_after_one_that_fails(
    filled: Any, run: Callable[..., Any], refuse: Callable[..., Any]
) -> None:
    """The status says that one failed."""
    filled.on("POST", "/jobs/*", lambda r: {"key": r.path.split("/")[4], "state": "cancelled"})
    filled.on("POST", "/jobs/3/cancel", refuse(409, "3 has ended already"))
    result = run("cancel", "1", "3", "2")
    assert (result.exit_code, result.stdout) == (4, "1 cancelled\n2 cancelled\n")
    assert result.stderr == "fairlead: 3 has ended already\n"


def test_cancel_by_filter_says_that_there_is_none(filled: Any, run: Callable[..., Any]) -> None:
    """Rather than nothing at all."""
    result = run("cancel", "--name", "nobody")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing was done" in result.stderr


def test_cancel_by_filter_asks_for_the_live_ones(filled: Any, run: Callable[..., Any]) -> None:
    """Ended work is left alone."""
    filled.on("POST", "/jobs/*", lambda r: {"key": r.path.split("/")[4], "state": "stopping"})
    told = json.loads(run("cancel", "--queue", "root.batch", "--json").stdout)
    assert [(job["key"], job["state"]) for job in told] == [("1", "stopping"), ("2", "stopping")]


def test_cancel_by_filter_leaves_alone_what_it_no_longer_means(
    filled: Any, run: Callable[..., Any], refuse: Callable[..., Any]
) -> None:
    """Work that waited when it was selected and runs when its turn comes is not stopped; that is no failure."""
    filled.on("POST", "/jobs/2/cancel", refuse(409, "job 2 is running by now"))
    result = run("cancel", "--state", "waiting")
    assert (result.exit_code, result.output) == (0, "")
    assert filled.sent("POST", "/jobs/2/cancel") == [{"states": ["waiting"]}]


@pytest.mark.parametrize("args", [(), ("1", "--queue", "root.a"), ("--state", "failed")])
def test_cancel_needs_keys_or_filters(service: Any, run: Callable[..., Any], args: tuple[str, ...]) -> None:
    """Never everything by accident."""
    assert run("cancel", *args).exit_code == 2
    assert service.requests == []


def test_priority_may_be_negative(service: Any, run: Callable[..., Any]) -> None:
    """A minus sign is no option here."""
    service.on("PATCH", "/jobs/4", lambda r: {"key": "4", **r.body})
    assert run("priority", "4", "-7").stdout == "4 priority -7\n"
    assert service.sent("PATCH", "/jobs/4") == [{"priority": -7}]


@pytest.mark.parametrize("value", ["x", "2147483648", "1.5"])
def test_priority_takes_32_bit_integers_only(service: Any, run: Callable[..., Any], value: str) -> None:
    """Anything else is wrong usage."""
    result = run("priority", "4", value)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_without_a_service_the_status_is_3(run: Callable[..., Any]) -> None:
    """And the sentence says what to do."""
    result = run("ls")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.endswith("Start it with `fairlead up`, or set FAIRLEAD_SOCKET.\n")


def test_a_long_history_is_cut_unless_all_of_it_is_wanted(service: Any, run: Callable[..., Any]) -> None:
    """The newest entries, and how many came before."""
    entries = [{"at_ms": 1000 * n, "what": "waits", "detail": f"reason {n}"} for n in range(30)]
    service.add("1", history=entries)
    shown = run("show", "1").stdout
    assert "history (18 earlier entries: --history)" in shown
    assert ("reason 17" in shown, "reason 18" in shown) == (False, True)
    whole = run("show", "1", "--history").stdout.splitlines()
    assert len(whole) == 31
    assert whole[0] == "1 job: waiting"


def test_of_an_array_it_is_said_where_its_history_is(service: Any, run: Callable[..., Any]) -> None:
    """It has none itself, and nothing was printed."""
    service.add("7", "running", parts={"indices": "1-7", "running": 1})
    assert run("show", "7", "--history").stdout.splitlines()[1:] == [
        "  each part has its own: fairlead show --history 7.INDEX"
    ]


def test_cancel_can_ask_before_each(filled: Any, run: Callable[..., Any]) -> None:
    """What is not agreed to is left alone; who says nothing at all cancels nothing."""
    filled.on("POST", "/jobs/*", lambda r: {"key": r.path.split("/")[4], "state": "cancelled"})
    asked = run("cancel", "-i", "1", "2", stdin="n\ny\n")
    assert (asked.exit_code, asked.stdout) == (0, "2 cancelled\n")
    assert "Cancel 2 big, waiting in root.batch? [y/N]" in asked.stderr
    assert run("cancel", "-i", "1", stdin="").exit_code == 130
    assert [r.path for r in filled.requests if r.method == "POST"] == ["/api/v1/jobs/2/cancel"]


def test_the_script_alone_is_shown(filled: Any, run: Callable[..., Any]) -> None:
    """As it was submitted, for a file."""
    filled.on("GET", "/jobs/2/script", {"script": "#!/bin/sh\ntrue\n"})
    assert run("show", "2", "--script").stdout == "#!/bin/sh\ntrue\n"


@pytest.mark.parametrize("command", ["ls", "top"])
@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "-inf", "0.1"])
def test_an_interval_that_no_clock_can_wait_for_is_refused(
    service: Any, run: Callable[..., Any], command: str, seconds: str
) -> None:
    """Before anything is shown; `time.sleep` answered with a traceback."""
    result = run(command, "-i", seconds)
    assert (result.exit_code, result.stdout, service.requests) == (2, "", [])
    assert f"{command}: invalid value for '--interval'" in result.stderr


def test_looking_again_and_again_goes_on_while_the_service_is_away(
    filled: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be restarting, which is said once; who cannot be reached at the first look is an error as ever."""
    looks = iter([True, False, False, True])

    def jobs_of(*_: Any) -> list[Job]:
        match next(looks, None):
            case None:
                raise KeyboardInterrupt
            case False:
                raise Unreachable("nobody listens there.")
        return []

    monkeypatch.setattr(jobs, "jobs_of", jobs_of)
    monkeypatch.setattr(jobs.time, "sleep", lambda _: None)
    result = run("ls", "--interval", "1")
    assert result.stderr.count("nobody listens there. Trying again.\n") == 1
    assert (result.exit_code, result.stdout.count("KEY")) == (130, 2)
    looks = iter([False])
    assert run("ls", "--interval", "1").exit_code == 3


def test_a_message_obeys_no_control_characters(service: Any, run: Callable[..., Any]) -> None:
    """What stands in it may come from others: a queue file, a node, a service."""
    service.add("1", "waiting", reason={"code": "x", "sentence": "waits for \x1b]0;title\x07 and\u202e that"})
    service.on("GET", "/jobs/1/logs", b"")
    result = run("wait", "--started", "2\x1b[2J")
    assert result.stderr == "fairlead: there is no job 2\\x1b[2J\n"


def test_several_jobs_are_listed_in_one_call(filled: Any, run: Callable[..., Any]) -> None:
    """As `squeue -j 2,1` and `sacct -j` do for scripts that watch their jobs; each of them once."""
    filled.on("GET", "/jobs", lambda request: {"jobs": [filled.jobs[request.query["array"]]], "next": None})
    result = run("ls", "3", "1", "1", "--no-header", "--columns", "key,state")
    assert [line.split() for line in result.stdout.splitlines()] == [["1", "running"], ["3", "failed"]]
