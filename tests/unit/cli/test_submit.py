"""`fairlead submit`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import submit
from fairlead.cli.submit import Described


@pytest.fixture
def taking(service: Any) -> Any:
    """A service that takes every job, which then has ended with exit status 0."""

    def take(request: Any) -> Any:
        first = len(service.jobs) + 1
        return {"jobs": [service.add(str(first + i), name=w["name"]) for i, w in enumerate(request.body["jobs"])]}

    service.on("POST", "/jobs", take)
    return service


def body(service: Any) -> dict[str, Any]:
    [sent] = service.sent("POST", "/jobs")
    [job] = sent["jobs"]
    return dict(job)


def test_the_key_alone_is_printed(taking: Any, run: Callable[..., Any]) -> None:
    """So that a script can take it."""
    result = run("submit", "--queue", "root.batch", "--", "sleep", "1")
    assert (result.stdout, result.stderr, result.exit_code) == ("1\n", "", 0)


def test_options_become_the_body(taking: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every one of them."""
    monkeypatch.setenv("PASSED", "on")
    run(
        "submit",
        "--queue",
        "root.a",
        "--priority",
        "-5",
        "--cpu",
        "500m",
        "--memory",
        "4Gi",
        "--gpu",
        "1",
        "--resource",
        "licence=2",
        "--env",
        "A=1=2",
        "--env",
        "PASSED",
        "--cwd",
        "/tmp",
        "--tag",
        "x=y",
        "--grace",
        "2m",
        "--time-limit",
        "2h",
        "--name",
        "n",
        "--",
        "python",
        "a b.py",
        "--cpu",
        "9",
    )
    assert body(taking) == {
        "command": ["python", "a b.py", "--cpu", "9"],
        "queue": "root.a",
        "priority": -5,
        "name": "n",
        "cwd": "/tmp",
        "resources": {"cpu": 0.5, "memory": 2**32, "gpu": 1, "licence": 2},
        "env": {"A": "1=2", "PASSED": "on"},
        "tags": {"x": "y"},
        "grace_ms": 120_000,
        "time_limit_ms": 7_200_000,
    }


def test_the_command_may_follow_without_dashes(taking: Any, run: Callable[..., Any]) -> None:
    """Its options are its own."""
    run("submit", "--cpu", "2", "python", "x.py", "--memory", "lots")
    assert body(taking)["command"] == ["python", "x.py", "--memory", "lots"]


def test_it_runs_here_and_the_queue_may_come_from_the_environment(
    taking: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current directory, and FAIRLEAD_QUEUE."""
    monkeypatch.setenv("FAIRLEAD_QUEUE", "root.env")
    run("submit", "--", "true")
    assert (body(taking)["cwd"], body(taking)["queue"]) == (str(Path.cwd()), "root.env")


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory in which commands run is not there any more."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("words", [(), ("--cwd", "sub"), ("--file", "-")])
def test_a_directory_that_is_gone_is_said(taking: Any, run: Callable[..., Any], words: tuple[str, ...]) -> None:
    """Nothing can run there: a sentence, and nothing is submitted; another directory may be named."""
    command = () if "--file" in words else ("--", "true")
    result = run("submit", *words, *command, stdin='{"command": "true"}')
    assert (result.exit_code, taking.sent("POST", "/jobs")) == (2, [])
    assert result.stderr == "fairlead: this directory is gone; cd somewhere, or say --cwd\n"
    assert run("submit", "--cwd", "/", "--", "true").exit_code == 0
    assert body(taking)["cwd"] == "/"


def test_each_request_has_its_own_idempotency_key(taking: Any, run: Callable[..., Any]) -> None:
    """Two submissions are never one."""
    run("submit", "--", "true")
    run("submit", "--", "true")
    keys = [r.headers["Idempotency-Key"] for r in taking.requests]
    assert len(set(keys)) == 2
    assert all(len(key) == 32 for key in keys)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "standard input is empty; give a command (after --), a script, or --file FILE"),
        (("--file", "x.jsonl", "--", "true"), "give either a command"),
        (("--cpu", "two", "--", "true"), "--cpu: 'two' is not an amount; write cores"),
        (("--memory", "4GB", "--", "true"), "--memory: '4GB' is not an amount"),
        (("--memory", "4", "--", "true"), "did you mean 4Gi?"),
        (("--memory", "4096", "--", "true"), "did you mean 4096Mi?"),
        (("--time-limit", "soon", "--", "true"), "--time-limit: 'soon' is not a duration"),
        (("--env", "NOT_SET_HERE", "--", "true"), "--env: 'NOT_SET_HERE' is not set here"),
        (("-e", "err.txt", "--", "true"), "write err.txt=VALUE, or --error err.txt for what it writes"),
        (("--resource", "gpu", "--", "true"), "--resource: 'gpu' is not NAME=VALUE"),
        (("--", "echo hi | wc"), "to run a shell line write: -- sh -c 'echo hi | wc'"),
        (("--priority", "3000000000", "--", "true"), "--priority"),
        (("--nope", "--", "true"), "no such option '--nope'"),
        (("--", "caf\udce9"), "submit: the command has half of a surrogate pair; only UTF-8 text can be sent"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_status_2(
    taking: Any, run: Callable[..., Any], args: tuple[str, ...], said: str
) -> None:
    """And nothing is submitted."""
    result = run("submit", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert taking.requests == []


def test_a_file_is_submitted_as_one_request(taking: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    """One key a line comes back."""
    file = tmp_path / "w.jsonl"
    file.write_text('{"command":["a"]}\n{"command":["b"],"queue":"root.x"}\n')
    result = run("submit", "--file", str(file), "--queue", "root.a")
    [sent] = taking.sent("POST", "/jobs")
    assert [w["queue"] for w in sent["jobs"]] == ["root.a", "root.x"]
    assert result.stdout == "1\n2\n"


def test_standard_input_is_a_file_named_dash(taking: Any, run: Callable[..., Any]) -> None:
    """One JSON object a line."""
    assert run("submit", "--file", "-", stdin='{"command":["a"]}\n').stdout == "1\n"


def test_large_files_are_sent_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number and by size, in order, nothing lost."""
    jobs = [Described(str(i), {"command": ["x" * 50]}) for i in range(10)]
    monkeypatch.setattr(submit, "_BATCH", 4)
    assert [len(b) for b in submit.batches(jobs)] == [4, 4, 2]
    monkeypatch.setattr(submit, "_BATCH_BYTES", 180)
    found = submit.batches(jobs)
    assert [w.where for batch in found for w in batch] == [str(i) for i in range(10)]
    assert max(map(len, found)) == 2


@pytest.mark.parametrize("how", ["refused", "failed", "broken"])
def test_what_was_taken_before_a_later_request_went_wrong_is_named(
    taking: Any,
    run: Callable[..., Any],
    answer: Any,
    refuse: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """Else nobody knows their keys: they run, and the whole file is submitted again."""
    monkeypatch.setattr(submit, "_BATCH", 2)
    monkeypatch.setattr("fairlead.client.sync.PAUSES_S", ())
    take = taking.routes["POST", "/api/v1/jobs"]
    wrong = {
        "refused": refuse(429, "too many"),
        "failed": refuse(500, "it broke"),
        "broken": answer(200, raw=b"{", broken=True),
    }

    def reply(request: Any) -> Any:
        return take(request) if len(taking.jobs) < 4 else wrong[how]

    taking.on("POST", "/jobs", reply)
    result = run("submit", "--file", "-", stdin='{"command":["a"]}\n' * 6)
    assert (result.exit_code, result.stdout) == ({"refused": 4, "failed": 5, "broken": 3}[how], "")
    assert "4 jobs before it are submitted already: 1 to 4" in result.stderr


def test_json_prints_the_rows_and_quiet_nothing(taking: Any, run: Callable[..., Any]) -> None:
    """For scripts."""
    assert json.loads(run("submit", "--json", "--", "true").stdout)[0]["key"] == "1"
    assert run("submit", "--quiet", "--", "true").output == ""


def test_a_refusal_has_status_4(service: Any, run: Callable[..., Any], refuse: Callable[..., Any]) -> None:
    """With the service's sentence."""
    service.on("POST", "/jobs", refuse(422, "there is no queue root.x", field="jobs.0.queue"))
    result = run("submit", "--queue", "root.x", "--", "true")
    assert result.exit_code == 4
    assert "queue: there is no queue root.x" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_option_of_the_job_is_named_as_the_option(
    service: Any, run: Callable[..., Any], refuse: Callable[..., Any]
) -> None:
    """Not as a place in the request."""
    service.on("POST", "/jobs", refuse(422, "is too long", field="jobs[0].name"))
    assert run("submit", "--", "true").stderr == "fairlead: --name: is too long\n"
    service.on("POST", "/jobs", refuse(422, "there is no job '9' to wait for", field="jobs[0].after"))
    assert run("submit", "--after-ok", "9", "--", "true").stderr == "fairlead: there is no job '9' to wait for\n"
    assert run("submit", "--", "").stderr == "fairlead: submit: the command is empty; write it behind --\n"


def test_what_cannot_start_as_things_are_is_said_at_once(service: Any, run: Callable[..., Any]) -> None:
    """On standard error; it waits all the same, since a node may come. Work that waits for other work says nothing."""
    hopeless = {"code": "too-big-for-every-node", "sentence": "needs gpu 3 on one node; the only node has gpu 2"}
    full = {"code": "queue-full", "sentence": "the queue is full"}
    rows = [service.add(str(i), reason=reason) for i, reason in enumerate((full, hopeless, None, hopeless), 1)]
    service.on("POST", "/jobs", {"jobs": rows})
    result = run("submit", "--gpu", "3", "--", "true")
    assert (result.exit_code, result.stdout) == (0, "1\n2\n3\n4\n")
    assert result.stderr == f"fairlead: 2 cannot start as things are: {hopeless['sentence']}; likewise 1 more\n"
    assert run("submit", "--quiet", "--", "true").stderr == ""


def test_what_can_never_run_is_said_with_what_would_have_to_be_otherwise(service: Any, run: Callable[..., Any]) -> None:
    """Once for many, on standard error; the jobs are submitted all the same."""
    never = {
        "code": "never-as-it-is",
        "sentence": "it needs cpu 9, and queue root.a may use cpu 3 at most: ask for less",
    }
    rows = [service.add(str(i), never=each) for i, each in enumerate((None, never, never), 1)]
    service.on("POST", "/jobs", {"jobs": rows})
    result = run("submit", "--cpu", "9", "--", "true")
    assert (result.exit_code, result.stdout) == (0, "1\n2\n3\n")
    assert result.stderr == f"fairlead: 2 (and 1 more) can never run as it is: {never['sentence']}\n"


@pytest.mark.parametrize(
    ("asked", "queue", "said"),
    [
        ("root.lab", "root.open", "1 (and 1 more) is in root.open, not in root.lab: the placement rules"),
        ("lab", "root.lab.ann", ""),
        ("lab", "root.lab", ""),
        ("", "root.open", ""),
        ("root.la", "root.lab", "1 (and 1 more) is in root.lab, not in root.la: "),
    ],
)
def test_where_a_job_is_that_named_another_queue_is_said_to_scripts_too(
    service: Any, run: Callable[..., Any], tmp_path: Path, asked: str, queue: str, said: str
) -> None:
    """A rule that has no queue for it, or none that it may use, leaves it to the next."""
    service.on("POST", "/jobs", {"jobs": [service.add("1", queue=queue), service.add("2", queue=queue)]})
    path = tmp_path / "jobs.jsonl"
    job = {"command": ["true"]} | ({"queue": asked} if asked else {})
    path.write_text(f"{json.dumps(job)}\n" * 2)
    result = run("submit", "--file", str(path))
    assert (result.exit_code, result.stdout) == (0, "1\n2\n")
    assert said in result.stderr
    assert bool(said) == bool(result.stderr)
