"""What changes at the service, and how it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from testbed.answering import made

from fairlead.cli import top
from fairlead.cli.watch import Watcher, what_happened
from fairlead.client import Client, Refused
from fairlead.wire.jobs import JobDetails


@pytest.fixture
def watched(service: Any) -> Any:
    service.on("GET", "/queues", {"queues": []})
    service.on("GET", "/nodes", {"nodes": []})
    return service


def told(watcher: Watcher) -> list[str]:
    """What the next look says, without the times of day."""
    return [line.partition("  ")[2] for line in watcher.look()[1]]


def reason(code: str, sentence: str) -> dict[str, str]:
    return {"code": code, "sentence": sentence}


def test_each_change_is_told_once(watched: Any, client: Client) -> None:
    """From the first sight to the end."""
    watcher = Watcher(client)
    row = watched.add("1", "waiting", reason=reason("queue-full", "queue is full"))
    assert told(watcher) == ["1 job in root.batch (0): waiting: queue is full"]
    assert told(watcher) == []
    row.update(state="running", node="here", reason=None, started_at_ms=1000)
    assert told(watcher) == ["1 job in root.batch (0): running on here with cpu 1"]
    row.update(state="failed", exit_code=2, ended_at_ms=5000)
    assert told(watcher) == ["1 job in root.batch (0): failed after 4.0s with exit status 2"]
    assert told(watcher) == []


def test_other_numbers_in_the_same_reason_are_no_change(watched: Any, client: Client) -> None:
    """Another kind of reason is."""
    watcher = Watcher(client)
    row = watched.add("1", "waiting", reason=reason("queue-full", "3 left"))
    assert len(told(watcher)) == 1
    row["reason"] = reason("queue-full", "2 left")
    assert told(watcher) == []
    row["reason"] = reason("cluster-full", "none left")
    assert len(told(watcher)) == 1


def test_work_that_lived_between_two_looks_is_told_by_its_event(watched: Any, client: Client, answer: Any) -> None:
    """The event stream names it."""
    watcher = Watcher(client)
    watcher.look()
    watched.add("9", "succeeded", started_at_ms=1000, ended_at_ms=1500)
    watched.on("GET", "/events", answer(200, raw=b'id: 1.0\nevent: job.ended\ndata: {"key": "9"}\n\n'))
    watcher.listen()
    assert watcher.wait(50)
    watcher.stop()
    assert told(watcher) == ["9 job in root.batch (0): succeeded after 0.5s"]


def test_what_is_declared_for_all_is_no_job(watched: Any, client: Client, answer: Any) -> None:
    """A priority class or a window that is set has no key: the job without one was asked for, and that ended it all."""
    watcher = Watcher(client)
    watcher.look()
    watched.on("GET", "/jobs/", answer(200, raw=b"<html>"))
    watched.add("9", "succeeded", started_at_ms=1000, ended_at_ms=1500)
    both = b'event: declaration.added\ndata: {"key": ""}\n\nevent: job.ended\ndata: {"key": "9"}\n\n'
    watched.on("GET", "/events", answer(200, raw=both))
    watcher.listen()
    lines: list[str] = []
    while not lines and watcher.wait(50):
        lines = told(watcher)
    watcher.stop()
    assert lines == ["9 job in root.batch (0): succeeded after 0.5s"]


def test_what_happened_before_the_stream_began_is_looked_for(watched: Any, client: Client, answer: Any) -> None:
    """It is told by no event: a stream that begins, also once more, asks for a look."""
    watcher = Watcher(client)
    watcher.look()
    watched.add("9", "waiting", reason=reason("queue-full", "queue is full"))
    watched.on("GET", "/events", answer(200, raw=b"retry: 1000\n\n"))
    watcher.listen()
    assert watcher.wait(50)
    watcher.stop()
    assert told(watcher) == ["9 job in root.batch (0): waiting: queue is full"]


@pytest.mark.parametrize("queue", ["root.b", "b", "ROOT.B", "root.?", "*"])
def test_work_of_other_queues_is_left_out(watched: Any, client: Client, queue: str) -> None:
    """A queue is named as for `ls`: without its root, too, and `*` stands for any text. So is ended work."""
    watched.add("2", "running", queue="root.b")
    watched.add("3", "failed", queue="root.b.c")
    watched.add("4", "failed", queue="rooted.b")

    def listed(request: Any) -> Any:
        assert request.lists["queue"] == [queue]
        return {"jobs": [watched.jobs["2"]] if "running" in request.lists["state"] else []}

    watched.on("GET", "/jobs", listed)
    watcher = Watcher(client, queue)
    watcher._touched.update({"3", "4"})
    view, lines = watcher.look()
    assert [job.key for job in view.ended] == ["3"]
    assert len(lines) == 2


def test_a_small_queue_is_seen_behind_many_jobs_of_others(watched: Any, client: Client) -> None:
    """The service is asked for that queue: only so many jobs come at a look."""
    for number in range(310):
        watched.add(str(number), "waiting", queue="root.a")
    watched.add("999", "waiting", queue="root.b")
    assert [job.key for job in Watcher(client, "root.b").look()[0].live] == ["999"]


def test_what_waits_elsewhere_is_not_counted(watched: Any, client: Client) -> None:
    """Of the queues only those are shown that were asked for, and only theirs is the total."""
    b, c = ({"path": f"root.{name}", "waiting": count, "children": []} for name, count in (("b", 2), ("c", 900)))
    watched.on("GET", "/queues", {"queues": [{"path": "root", "waiting": 902, "children": [b, c]}]})
    assert [(each.path, each.waiting) for each in Watcher(client, "b").look()[0].queues] == [("root.b", 2)]
    assert [each.path for each in Watcher(client).look()[0].queues] == ["root"]


def test_work_that_has_vanished_is_forgotten(watched: Any, client: Client) -> None:
    """The service does not know it any more."""
    watched.add("1", "running")
    watcher = Watcher(client)
    watcher.look()
    watched.jobs.clear()
    assert told(watcher) == []


def test_own_lines_come_with_the_next_look(watched: Any, client: Client) -> None:
    """And ring the bell."""
    watcher = Watcher(client)
    watcher.tell("-- now")
    assert watcher.wait(0)
    assert watcher.look()[1] == ["-- now"]


def test_a_service_that_is_away_is_told_once_and_waited_for(
    watched: Any, client: Client, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be restarting."""
    monkeypatch.setattr("fairlead.client.sync.PAUSES_S", ())
    monkeypatch.setattr(top, "_LEAST_PAUSE_S", 0.0)
    away = [2]

    def queues(_request: Any) -> Any:
        away[0] -= 1
        return answer(200, raw=b"{", broken=True) if away[0] >= 0 else {"queues": []}

    watched.on("GET", "/queues", queues)
    lines: list[str] = []
    for view, said in top.looks(Watcher(client), 0.01):
        lines += said
        if view is not None:
            break
    assert len(lines) == 2
    assert lines[0].endswith("Trying again.")
    assert lines[1] == "The service is back."


def test_a_refusal_ends_the_watching(watched: Any, client: Client, refuse: Callable[..., Any]) -> None:
    """It would not get better by itself."""
    watched.on("GET", "/queues", refuse(403, "not yours"))
    with pytest.raises(Refused, match="not yours"):
        next(top.looks(Watcher(client), 0.01))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"state": "waiting", "reason": None}, "waiting: not looked at yet"),
        ({"state": "stopping"}, "told to stop"),
        (
            {"state": "timed_out", "reason": {"code": "x", "sentence": "took 5 ms"}},
            "timed_out: took 5 ms",
        ),
        ({"state": "failed", "exit_code": 3}, "failed with exit status 3"),
        ({"state": "failed", "signal": 9}, "failed: ended by SIGKILL"),
    ],
)
def test_states_in_words(row: dict[str, Any], said: str) -> None:
    """Short enough for a line."""
    assert what_happened(made(JobDetails, **row)) == said


def test_top_without_a_terminal_prints_a_line_a_change(
    watched: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is stopped."""
    watched.add("1", "running", node="here")
    looked = iter([False, False])

    def ctrl_c(_self: Watcher, _timeout_s: float) -> bool:
        if next(looked, True):
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr(Watcher, "wait", ctrl_c)
    result = run("top", "--interval", "0.2")
    assert result.exit_code == 130
    [line] = result.stdout.splitlines()
    assert line.endswith("1 job in root.batch (0): running on here with cpu 1")


def test_top_needs_a_service_that_is_there(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one that goes away later is waited for."""
    monkeypatch.setenv("FAIRLEAD_SOCKET", "/nowhere/s.sock")
    monkeypatch.setattr(top, "looks", lambda *_: pytest.fail("it went on"))
    assert run("top").exit_code == 3


def test_a_view_that_is_old_says_since_when(
    watched: Any, client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until the service is back."""
    view = Watcher(client).look()[0]
    monkeypatch.setattr(top, "looks", lambda *_: iter([(view, []), (None, ["gone"]), (None, []), (view, ["back"])]))
    titles: list[str] = []
    monkeypatch.setattr(top, "frame", lambda *_, title, **__: titles.append(title) or [])
    top.live(Watcher(client), 1.0, "here", ["q leaves"])
    capsys.readouterr()
    assert ["no answer since" in title for title in titles] == [False, True, True, False]


def test_top_of_a_queue_that_is_not_there_is_refused(
    watched: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty screen would not say so."""
    watched.on("GET", "/queues", {"queues": [{"path": "root", "children": [{"path": "root.batch", "children": []}]}]})
    monkeypatch.setattr(top, "looks", lambda *_: iter(()))
    result = run("top", "-q", "root.batsh")
    assert (result.exit_code, "did you mean root.batch?" in result.stderr) == (4, True)
    assert run("top", "-q", "batch").exit_code == 0
