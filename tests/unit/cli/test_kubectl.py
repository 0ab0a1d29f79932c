"""`kubectl fairlead`: a port is forwarded by kubectl, the command runs against it, and the port is closed again."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fairlead.cli import kubectl

FAKE = """#!{python}
import os, sys, time
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print(*words, file=log)
if "config" in words:
    print("lab", end="")
elif "nowhere" in " ".join(words):
    sys.exit("Error from server (NotFound): services not found")
else:
    print("Forwarding from 127.0.0.1:{port} -> 8080", flush=True)
    time.sleep(600)
"""


class Answers(BaseHTTPRequestHandler):
    """Refuses all, and remembers what was asked for."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b'{"code": "not-found", "message": "no such pod", "type": "about:blank", "detail": "no such pod"}'
        self.send_response(404)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A kubectl that forwards to a server here; the paths that are asked for."""
    asked: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), type("Here", (Answers,), {"asked": asked}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fake = tmp_path / "kubectl"
    log = str(tmp_path / "log")
    fake.write_text(FAKE.format(python=sys.executable, log=log, port=server.server_address[1]))
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    yield asked
    server.shutdown()
    server.server_close()


def test_a_command_is_asked_of_the_scheduler_in_the_namespace_of_the_context(asked: list[str], tmp_path: Path) -> None:
    """With kubectl's own options; the forwarding ends with the command."""
    status = kubectl.main(["--context", "staging", "why", "job/train"])
    assert status not in (0, 2)
    assert len(asked) == 1
    assert "/api/v1/jobs/lab%2Ftrain/why" in asked[0]
    (_, then) = (tmp_path / "log").read_text().splitlines()
    assert then.startswith("--context=staging -n fairlead port-forward service/fairlead :8080")


def test_what_keeps_it_from_the_scheduler_is_said(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With kubectl's own words, and what to do."""
    assert kubectl.main(["--scheduler=nowhere/fairlead", "ls"]) == 1
    said = capsys.readouterr().err
    assert "services not found" in said
    assert "--scheduler" in said
    assert asked == []


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--color", "ls"], "--color"),
        (["--context"], "needs a value"),
        (["--scheduler", "fairlead", "ls"], "NAMESPACE/SERVICE"),
        (["--context=a"], "which command"),
    ],
)
def test_a_wrong_line_is_refused_with_what_is_wrong(
    words: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubectl.main(words) == 1
    assert word in capsys.readouterr().err


def test_without_kubectl_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert kubectl.main(["ls"]) == 1
    assert "kubectl is not found" in capsys.readouterr().err


def test_help_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl.main(["--help"]) == 0
    assert "kubectl fairlead why job/train" in capsys.readouterr().out


def test_what_kubectl_says_of_each_connection_never_stops_it(tmp_path: Path) -> None:
    """It prints a line for each; nobody reads them, and `top` makes thousands."""
    fake, done = tmp_path / "kubectl", tmp_path / "done"
    fake.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys, time\n"
        "print('Forwarding from 127.0.0.1:4000 -> 8080', flush=True)\n"
        "for out in (sys.stdout, sys.stderr):\n"
        "    print('Handling connection for 4000\\n' * 20_000, file=out, flush=True)\n"
        f"pathlib.Path({str(done)!r}).touch()\n"
        "time.sleep(600)\n"
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    with kubectl.forwarded(str(fake), [], "fairlead/fairlead") as port:
        assert port == 4000
        deadline = time.monotonic() + 20
        while not done.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert done.exists()
