"""hold, release, and what a job waits for before it is in line."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.cli.app import Failure
from fairlead.cli.submit import describe

BASE = {"command": "true"}
HELD = {"code": "on-hold", "sentence": "was put on hold by ann and waits until it is released"}


@pytest.fixture
def waiting(service: Any) -> Any:
    service.add("1", "waiting", reason=HELD)
    service.add("2", "waiting")
    service.add("3", "running")
    service.on("POST", "/jobs/*", lambda r: {"key": r.path.split("/")[4], "state": "waiting"})
    return service


def test_several_are_held_and_one_that_fails_does_not_stop_the_others(
    waiting: Any, run: Callable[..., Any], refuse: Callable[..., Any]
) -> None:
    """The status says that one failed."""
    waiting.on("POST", "/jobs/3/hold", refuse(409, "job 3 is running; only a job that waits can be held"))
    result = run("hold", "1", "3", "2", "--why", "full")
    assert (result.exit_code, result.stdout) == (4, "1 on hold\n2 on hold\n")
    assert result.stderr == "fairlead: job 3 is running; only a job that waits can be held\n"
    assert waiting.sent("POST", "/jobs/1/hold") == [{"why": "full"}]


@pytest.mark.parametrize(("name", "said"), [("hold", "1 on hold\n"), ("rerun", "1\n"), ("cancel", "1 cancelled\n")])
def test_what_was_done_before_the_service_went_is_said(
    waiting: Any, run: Callable[..., Any], refuse: Callable[..., Any], name: str, said: str
) -> None:
    """Or it would be done once more: what is submitted again has a key that nobody knows."""
    waiting.on("POST", f"/jobs/1/{name}", {"key": "1", "state": "cancelled"})
    waiting.on("POST", f"/jobs/2/{name}", refuse(503, "the service is stopping", "unavailable"))
    result = run(name, "1", "2", "3")
    assert (result.exit_code, result.stdout) == (5, said)
    assert "the service is stopping" in result.stderr
    assert waiting.sent("POST", f"/jobs/3/{name}") == []


def test_filters_choose_what_waits(waiting: Any, run: Callable[..., Any], refuse: Callable[..., Any]) -> None:
    """What started meanwhile is not meant any more."""
    waiting.on("POST", "/jobs/2/hold", refuse(409, "job 2 is running"))
    result = run("hold", "--queue", "root.batch")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "1 on hold\n", "")


def test_only_what_is_on_hold_is_released_by_a_filter(waiting: Any, run: Callable[..., Any]) -> None:
    """The others would be refused."""
    assert run("release", "--queue", "root.batch").stdout == "1 released\n"
    assert waiting.sent("POST", "/jobs/2/release") == []
    waiting.jobs.clear()
    assert "no waiting job with the reason on-hold is like that" in run("release", "--name", "x").stderr


@pytest.mark.parametrize("name", ["hold", "release"])
@pytest.mark.parametrize("args", [(), ("1", "--queue", "root.a")])
def test_keys_or_filters_are_needed(service: Any, run: Callable[..., Any], name: str, args: tuple[str, ...]) -> None:
    """Never everything by accident."""
    assert run(name, *args).exit_code == 2
    assert service.requests == []


# --- the fields ------------------------------------------------------------------------------------------------------


def test_what_a_job_waits_for_becomes_one_list() -> None:
    """Keys as numbers, lists and text; all of them have to be met."""
    given = {"after": 3, "after_ok": ["4", 5], "after_any": "6, 7", "after_not_ok": "8", "on_never": "cancel"}
    body = describe(BASE | given, "x").body
    assert body["after"] == [
        {"key": "3", "awaited": "started"},
        {"key": "4", "awaited": "ok"},
        {"key": "5", "awaited": "ok"},
        {"key": "6", "awaited": "any"},
        {"key": "7", "awaited": "any"},
        {"key": "8", "awaited": "not-ok"},
    ]
    assert body["on_never"] == "cancel"
    assert "after" not in describe(BASE, "x").body


def test_hold_and_begin_are_sent(service: Any, run: Callable[..., Any]) -> None:
    """A time as a moment; nothing of it where nothing was said."""
    before = time.time() * 1000
    run("submit", "--hold", "--begin", "now+1h", "--after-ok", "3", "--after-ok", "4", "--", "true")
    run("submit", "--", "true")
    first, second = (request["jobs"][0] for request in service.sent("POST", "/jobs"))
    assert first["hold"] is True
    assert int(before) + 3_600_000 <= first["begin_at_ms"] <= time.time() * 1000 + 3_600_000
    assert [each["key"] for each in first["after"]] == ["3", "4"]
    assert not {"hold", "begin_at_ms", "after", "on_never"} & set(second)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"after": "3,"}, "x: after: '3,' is no key of a job"),
        ({"after_ok": [True]}, "x: after_ok: must be a text or a number"),
        ({"begin": "soon"}, "x: begin: 'soon' is no moment; write now+1h"),
        ({"begin": "2020-01-01"}, "x: begin: '2020-01-01' is 2020-01-01 00:00:00, which is past"),
        ({"on_never": "forget"}, 'x: on_never: "forget" is neither wait nor cancel'),
        ({"hold": "yes"}, 'x: hold: "yes" is neither true nor false'),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], said: str) -> None:
    """With its place and an example."""
    with pytest.raises(Failure) as failure:
        describe(BASE | fields, "x")
    assert failure.value.message.startswith(said)


def test_a_job_that_can_never_run_is_warned_of(service: Any, run: Callable[..., Any]) -> None:
    """Where that is known when it is submitted."""
    never = {"code": "never-runs", "sentence": "can never run: 3 was to end well, and it failed"}
    row = {"key": "9", "state": "waiting", "reason": never}
    service.on("POST", "/jobs", lambda r: {"jobs": [row]})
    result = run("submit", "--after-ok", "3", "--", "true")
    assert "9 cannot start as things are: can never run: 3 was to end well, and it failed" in result.stderr


# --- update ----------------------------------------------------------------------------------------------------------


def test_only_what_is_given_is_changed(service: Any, run: Callable[..., Any]) -> None:
    """Amounts one by one, so that 0 takes one away; several jobs in the same way."""
    service.on("PATCH", "/jobs/*", lambda r: {"key": r.path.split("/")[4], "state": "waiting"})
    words = ("--cpu", "1.5", "--memory", "0", "--resource", "licence=2", "-t", "none", "--name", "x", "--why", "so")
    assert run("update", "1", "2", *words).stdout == "1 changed\n2 changed\n"
    assert service.sent("PATCH", "/jobs/2") == [
        {
            "resources": {"cpu": 1.5, "memory": 0, "licence": 2},
            "time_limit_ms": 0,
            "name": "x",
            "why": "so",
        }
    ]
    run("update", "3", "--after-ok", "1", "--after", "2", "--on-never", "wait", "--time-limit", "2h", "--priority", "0")
    assert service.sent("PATCH", "/jobs/3") == [
        {
            "after": [{"key": "2", "awaited": "started"}, {"key": "1", "awaited": "ok"}],
            "on_never": "wait",
            "time_limit_ms": 7_200_000,
            "priority": 0,
        }
    ]
    run("update", "4", "--no-after")
    assert service.sent("PATCH", "/jobs/4") == [{"after": []}]


def test_a_change_that_keeps_it_from_running_is_said(service: Any, run: Callable[..., Any]) -> None:
    """It was called changed, as if all were well; what has nothing to do with that is said once alone."""
    never = {"code": "never-as-it-is", "sentence": "it needs cpu 100 on one node", "values": {}}
    service.on("PATCH", "/jobs/*", {"key": "1", "state": "waiting", "never": never})
    large = run("update", "1", "--cpu", "100")
    said = "fairlead: 1 can never run as it is: it needs cpu 100 on one node\n"
    assert (large.stdout, large.stderr, large.exit_code) == ("1 changed\n", said, 0)
    assert run("update", "1", "--name", "x").stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("1",), "update: say what to change, such as --cpu 4"),
        (("1", "--no-after", "--after", "2"), "--no-after and --after contradict each other"),
        (("1", "--cpu", "2", "--resource", "vcore=3"), "given twice"),
        (("1", "--time-limit", "0"), "leave it out for a job without a limit (`fairlead update`: none)"),
        (("1", "--memory", "4"), "did you mean 4Gi?"),
        (("1", "--time-limit", "-5"), "fairlead: --time-limit: '-5' is not a duration"),
        (("1", "--after-ok", "x,"), "fairlead: --after-ok: 'x,' is no key of a job"),
    ],
)
def test_an_update_that_makes_no_sense_is_refused(
    service: Any, run: Callable[..., Any], words: tuple[str, ...], said: str
) -> None:
    """Before anything is sent."""
    result = run("update", *words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert service.requests == []


# --- requeue and rerun -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--env", "--tag"])
def test_a_pair_that_makes_no_sense_is_refused_with_its_option_once(
    service: Any, run: Callable[..., Any], flag: str
) -> None:
    """As it was typed."""
    for words in (("update", "1", flag, "=1"), ("submit", flag, "=1", "--", "true")):
        result = run(*words)
        assert (result.exit_code, result.stderr.count("--env") + result.stderr.count("--tag")) == (2, 1)
        assert result.stderr.startswith(f"fairlead: {flag}: ")


def test_what_runs_is_requeued(waiting: Any, run: Callable[..., Any]) -> None:
    """By keys, or what runs of those that a filter means."""
    waiting.on("POST", "/jobs/*", lambda r: {"key": r.path.split("/")[4], "state": "stopping"})
    assert run("requeue", "3", "--hold", "--why", "full").stdout == "3 stopping\n"
    assert waiting.sent("POST", "/jobs/3/requeue") == [{"hold": True, "why": "full"}]
    assert run("requeue", "--queue", "root.batch").stdout == "3 stopping\n"


def test_a_rerun_prints_the_new_keys(service: Any, run: Callable[..., Any], refuse: Callable[..., Any]) -> None:
    """As a submission does."""
    service.on("POST", "/jobs/7/rerun", lambda r: {"key": "9", "state": "waiting"})
    service.on("POST", "/jobs/8/rerun", refuse(409, "job 8 is running; only what has ended is submitted again"))
    result = run("rerun", "7", "8")
    assert (result.exit_code, result.stdout) == (4, "9\n")
    assert "job 8 is running" in result.stderr
    run("rerun", "7", "--env", "SEED=2")
    assert service.sent("POST", "/jobs/7/rerun") == [{"env": {}}, {"env": {"SEED": "2"}}]


# --- suspend and resume ----------------------------------------------------------------------------------------------


def test_what_runs_is_suspended_and_resumed(waiting: Any, run: Callable[..., Any]) -> None:
    """By keys; or by a filter what runs, and what is suspended."""
    waiting.add("4", "suspended")
    waiting.on("POST", "/jobs/*", lambda r: {"key": r.path.split("/")[4], "state": "suspended"})
    assert run("suspend", "3", "--why", "full").stdout == "3 suspended\n"
    assert waiting.sent("POST", "/jobs/3/suspend") == [{"why": "full"}]
    assert run("suspend", "--queue", "root.batch").stdout == "3 suspended\n"
    run("resume", "--queue", "root.batch")
    assert waiting.sent("POST", "/jobs/4/resume") == [{"why": ""}]
    assert waiting.sent("POST", "/jobs/3/resume") == []


def test_who_waits_for_what_cannot_go_on_is_told_so(service: Any, run: Callable[..., Any]) -> None:
    """Once for each reason."""
    never = {"code": "never-runs", "sentence": "can never run: 3 was to end well, and it failed"}
    service.add("9", "waiting", reason=never)
    seen = iter([("waiting", never), ("waiting", never), ("waiting", HELD), ("succeeded", None)])

    def answer(_: Any) -> dict[str, Any]:
        state, reason = next(seen)
        return {"key": "9", "state": state, "reason": reason, "exit_code": 0}

    service.on("GET", "/jobs/9", answer)
    result = run("wait", "9")
    assert (result.exit_code, result.stderr.splitlines()) == (
        0,
        [
            "fairlead: 9 can never run: 3 was to end well, and it failed; waiting until somebody changes that",
            "fairlead: 9 was put on hold by ann and waits until it is released; waiting until somebody changes that",
        ],
    )


@pytest.mark.parametrize(("typed", "number"), [("USR1", 10), ("sigusr1", 10), ("hup", 1), ("15", 15)])
def test_a_signal_is_named_or_numbered(waiting: Any, run: Callable[..., Any], typed: str, number: int) -> None:
    """As for `kill`."""
    assert run("signal", typed, "3", "--first").stdout == f"3 {typed}\n"
    assert waiting.sent("POST", "/jobs/3/signal") == [{"number": number, "first": True}]


@pytest.mark.parametrize("typed", ["USR9", "0", "65", "sigh"])
def test_a_signal_that_there_is_not_is_refused(service: Any, run: Callable[..., Any], typed: str) -> None:
    """Before anybody is asked."""
    result = run("signal", typed, "3")
    assert (result.exit_code, service.requests) == (2, [])
    assert f"there is no signal '{typed}'" in result.stderr


def test_a_number_of_thousands_of_digits_is_no_signal(service: Any, run: Callable[..., Any]) -> None:
    """Python itself does not read it."""
    result = run("signal", "1" * 5_000, "3")
    assert (result.exit_code, service.requests) == (2, [])
    assert "there is no signal '111" in result.stderr
    assert len(result.stderr) < 200


def test_command_directory_environment_and_tags_are_changed(
    service: Any, run: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command is a line; a directory is meant from here."""
    monkeypatch.chdir(tmp_path)
    service.on("PATCH", "/jobs/7", {"key": "7", "state": "waiting"})
    words = ("--command", "python 'my train.py' 2", "--cwd", "sub", "--env", "A=1", "--no-env", "B", "--tag", "t=x")
    assert run("update", "7", *words).stdout == "7 changed\n"
    assert service.sent("PATCH", "/jobs/7") == [
        {
            "command": ["python", "my train.py", "2"],
            "cwd": str(tmp_path / "sub"),
            "env": {"A": "1"},
            "unset_env": ["B"],
            "tags": {"t": "x"},
        }
    ]
    assert run("update", "7", "--command", "python '").exit_code == 2
