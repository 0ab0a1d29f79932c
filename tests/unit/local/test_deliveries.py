"""Messages about jobs: sent as their user, a bounded time, those of different users in turn."""

from __future__ import annotations

import errno
import http.server
import os
import pwd
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from testbed.paper import ANN, Service, spec

from fairlead.local import deliveries, requests, webhook
from fairlead.local.deliveries import Deliveries, Delivery
from fairlead.local.notices import Notice

if TYPE_CHECKING:
    from conftest import Bench

    from fairlead.runtime import Turn

ALICE = 54_321


class Sender:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.told: dict[str, str] = {}
        self.order: list[str] = []
        self.deliveries = Deliveries(bench.machine, self._told)

    def _told(self, delivery: Delivery, wrong: str) -> None:
        self.told[delivery.run] = wrong
        self.order.append(delivery.run)

    def send(self, name: str, to: str, kind: str = "command", uid: int | None = None, **more: Any) -> str:
        run = self.bench.key(name)
        who = os.geteuid() if uid is None else uid
        more = {"sentence": "job 7 x has ended", "facts": {"key": "7", "state": "failed", "signal": None}} | more
        self.deliveries.send(
            Delivery(run=run, to=to, kind=kind, uid=who, gids=(who,), as_user=os.geteuid() == 0, **more)
        )
        return run

    def result(self, run: str) -> str:
        self.bench.until(lambda: run in self.told)
        return self.told[run]


@pytest.fixture
def sender(bench: Bench) -> Iterator[Sender]:
    made = Sender(bench)
    yield made
    made.deliveries.close()


def test_a_command_is_run(sender: Sender, tmp_path: Path) -> None:
    """With what there is to say in its environment; its run is cleared away."""
    run = sender.send("a", f'echo "$FAIRLEAD_KEY $FAIRLEAD_STATE" >> {tmp_path}/told', cwd=str(tmp_path))
    assert sender.result(run) == ""
    assert (tmp_path / "told").read_text() == "7 failed\n"
    sender.bench.until(lambda: not (sender.bench.directory / run).exists())


def test_nothing_is_sent_as_whoever_got_the_number_of_its_user(sender: Sender, tmp_path: Path) -> None:
    """The account was removed meanwhile: its command is not for another one to execute."""
    facts = {"key": "7", "state": "failed"}
    gone = Delivery(run="a", to=f"touch {tmp_path}/told", kind="command", sentence="", facts=facts, uid=1, as_user=True)
    sender.deliveries.send(gone)
    assert sender.result("a") == "its user is not there any more"
    assert not (tmp_path / "told").exists()


def test_messages_wait_where_no_thread_is_to_be_had(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """And are sent when there is one again, however many had to wait."""

    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more)
        waiting = [sender.send(f"a{number}", "true") for number in range(deliveries.AT_ONCE)]
    waiting.append(sender.send("b", "true"))
    assert [sender.result(run) for run in waiting] == [""] * len(waiting)


def test_a_message_that_cannot_be_made_keeps_no_job_from_its_start(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else became durable in the same turn is carried out."""
    held = service.submit(hold=True, notify=(Notice(to="true"),))

    def no_answer(_: int) -> None:
        raise OSError("the directory of accounts does not answer")

    def both(turn: Turn) -> None:
        requests.cancel(service.place.jobs, turn, ANN, held)
        requests.submit(service.place.jobs, turn, ANN, [spec()])

    monkeypatch.setattr(pwd, "getpwuid", no_answer)
    service.do(both)
    end = time.monotonic() + 20
    while "2-1" not in service.paper.specs:
        assert time.monotonic() < end, "it was not started"
        time.sleep(0.01)


def test_what_goes_wrong_is_told(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit status, its signal, or that it took too long; nothing of it is left."""
    assert sender.result(sender.send("a", "exit 3")) == "exit status 3"
    assert sender.result(sender.send("b", "kill -9 $$")) == "it was ended by signal 9"
    monkeypatch.setattr(deliveries, "TIME_LIMIT_MS", 300)
    assert sender.result(sender.send("c", "sleep 50 & sleep 60")).startswith("it took longer than")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes others")
def test_it_is_the_users(sender: Sender, tmp_path: Path) -> None:
    """It has no more rights than the user has."""
    for above in (tmp_path, *list(tmp_path.parents)[:3]):
        above.chmod(above.stat().st_mode | 0o011)
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    assert sender.result(sender.send("a", f"id -u > {place}/who", uid=ALICE)) == ""
    assert (place / "who").read_text() == f"{ALICE}\n"
    assert sender.result(sender.send("b", f"echo > {tmp_path}/mine", uid=ALICE)) != ""


def test_users_are_served_in_turn(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has many waits for the others, not they for the first."""
    monkeypatch.setattr(deliveries, "AT_ONCE", 1)
    first = [sender.send(f"a{n}", "sleep 0.2", uid=0 if os.geteuid() == 0 else None) for n in range(5)]
    if os.geteuid() != 0:
        pytest.skip("needs two users")
    other = sender.send("b", "exit 1", uid=ALICE)
    for run in (*first, other):
        sender.result(run)
    assert sender.order.index(other) <= 2


def test_one_that_was_handed_in_is_sent_once(sender: Sender, tmp_path: Path) -> None:
    """However often it is."""
    for _ in range(3):
        run = sender.send("a", f"echo x >> {tmp_path}/told; sleep 0.2")
    assert sender.result(run) == ""
    time.sleep(0.3)
    assert (tmp_path / "told").read_text() == "x\n"


def test_a_command_that_ran_when_the_service_ended_is_not_run_again(bench: Bench, tmp_path: Path) -> None:
    """The next one asks how it ended."""
    first = Sender(bench)
    run = first.send("a", f"echo x >> {tmp_path}/told; sleep 1; exit 4")
    bench.until(lambda: (tmp_path / "told").exists())
    first.deliveries.close()
    second = Sender(bench)
    second.send("a", "echo again")
    assert second.result(run) == "exit status 4"
    assert (tmp_path / "told").read_text() == "x\n"
    assert first.told == {}
    second.deliveries.close()


def test_mail_is_handed_to_sendmail(tmp_path: Path) -> None:
    """With its address, a subject, and what there is to say; where there is none, that is told apart."""
    facts = {"key": "7", "name": "Zürich"}
    mail = Delivery(run="r", to="mail:ann@example.org", kind="mail", sentence="job 7 Zürich failed", facts=facts, uid=0)
    (tmp_path / "script").write_text(mail.script().replace("/usr/sbin:/usr/lib:/sbin:/usr/bin:", f"{tmp_path}:/bin:"))
    missing = subprocess.run(["/bin/sh", tmp_path / "script"], env={"PATH": "/bin"}, check=False)
    (tmp_path / "sendmail").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/to\ncat > {tmp_path}/mail\n')
    (tmp_path / "sendmail").chmod(0o755)
    subprocess.run(["/bin/sh", tmp_path / "script"], env={"PATH": "/bin"}, check=True)
    assert (tmp_path / "to").read_text() == "-i -- ann@example.org\n"
    text = (tmp_path / "mail").read_text()
    assert text.startswith("To: ann@example.org\nSubject: [fairlead] job 7")
    assert "key: 7" in text
    assert missing.returncode == deliveries.NO_SENDMAIL or Path("/bin/sendmail").exists()


def test_mail_needs_no_directory(sender: Sender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That the one of the job is gone may be why it failed. A command is executed there or not at all."""
    (tmp_path / "sendmail").write_text(f"#!/bin/sh\ncat > {tmp_path}/mail\n")
    (tmp_path / "sendmail").chmod(0o755)
    monkeypatch.setattr(deliveries, "_SENDMAIL", f"PATH={tmp_path}:/usr/bin:/bin")
    assert sender.result(sender.send("a", "mail:ann@example.org", "mail", cwd=f"{tmp_path}/gone")) == ""
    assert "state: failed" in (tmp_path / "mail").read_text()
    assert "cannot be entered" in sender.result(sender.send("b", "true", cwd=f"{tmp_path}/gone"))


class _Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        server.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        status = server.answers.pop(0)
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("answers", "wrong", "times"),
    [
        ([200], "", 1),
        ([503, 429, 204], "", 3),
        ([404], "it answered 404", 1),
        ([302], "it answered 302", 1),
        ([500] * 4, "it answered 500, 4 times", 4),
    ],
)
def test_webhooks(answers: list[int], wrong: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tried again where that may help; nothing is redirected."""
    monkeypatch.setattr(webhook, "PAUSES_S", (0.0, 0.0, 0.0))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hook) as server:
        server.got, server.answers = [], list(answers)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert webhook.send(f"http://127.0.0.1:{server.server_port}/", b"{}") == wrong
            assert server.got == [b"{}"] * times  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


def test_a_webhook_waits_for_room_as_a_command_does(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """That there is no descriptor or memory for a process now is no reason to give a message up."""
    tries, plain = [], subprocess.run

    def run(*given: Any, **more: Any) -> Any:
        tries.append(given)
        if len(tries) < 3:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return plain(["/bin/true"], capture_output=True, check=False)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(deliveries, "TRY_AGAIN_S", 0.01)
    assert sender.result(sender.send("a", "http://127.0.0.1:1/", "url")) == ""
    assert len(tries) == 3


def test_a_webhook_waits_while_another_version_is_installed(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program is not there for a moment, which is no reason to give a message up either."""
    tries, plain = [], subprocess.run

    def run(command: list[str], **more: Any) -> Any:
        tries.append(command)
        return plain([sys.executable, "/nowhere/webhook.py"] if len(tries) < 3 else ["/bin/true"], **more)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(deliveries, "TRY_AGAIN_S", 0.01)
    assert sender.result(sender.send("a", "http://127.0.0.1:1/", "url")) == ""
    assert len(tries) == 3


def test_a_webhook_where_something_else_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the wrong door of a server that is just beginning: it is tried again. A URL that is none is not."""
    monkeypatch.setattr(webhook, "PAUSES_S", (0.0, 0.0, 0.0))
    asked = 0

    class Garbage(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            nonlocal asked
            asked += 1
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Garbage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            said = webhook.send(f"http://127.0.0.1:{server.server_address[1]}/", b"{}")
        finally:
            server.shutdown()
            thread.join()
    assert (said, asked) == ("what it answered is not HTTP, 4 times", 4)
    assert webhook.send("http://127.0.0.1:x/", b"{}") == "nonnumeric port: 'x'"


def test_a_webhook_is_a_process_of_the_user(sender: Sender) -> None:
    """Where nobody listens, that is told after some tries."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hook) as server:
        server.got, server.answers = [], [200]  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert sender.result(sender.send("a", f"http://127.0.0.1:{server.server_port}/", "url", ALICE)) == ""
            [got] = server.got  # type: ignore[attr-defined]
            assert b'"text": "job 7 x has ended", "key": "7"' in got
        finally:
            server.shutdown()
            thread.join()
