"""The unit of `fairlead service install`, run as systemd would: it says that it is ready, and its end is its own."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import app
from fairlead.client import Address, Client

pytestmark = pytest.mark.real


@pytest.mark.thorough
def test_what_the_unit_starts_says_when_it_is_ready_and_leaves_jobs_alone(tmp_path: Path) -> None:
    options = [
        "--state",
        str(tmp_path / "state dir"),
        "--socket",
        str(tmp_path / "s"),
        "--no-tcp",
        "--resource",
        "cpu=2",
    ]
    shown = CliRunner().invoke(app, ["service", "install", "--user", "--print", "--", *options], prog_name="fairlead")
    [line] = [line for line in shown.output.splitlines() if line.startswith("ExecStart=")]
    command = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line.removeprefix("ExecStart="))]
    assert "KillMode=process" in shown.output.splitlines()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        with (tmp_path / "log").open("w") as log:
            service = subprocess.Popen(command, env=environment, stderr=log, cwd="/")
        try:
            assert manager.recv(100) == b"READY=1"
            client = Client(Address(socket=str(tmp_path / "s")))
            key = client.submit([{"command": ["/bin/sleep", "60"], "cwd": "/"}]).jobs[0].key
            end = time.monotonic() + 50
            while (pid := client.job(key).pid) is None:
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            service.send_signal(signal.SIGTERM)
            assert service.wait(50) == 0, (tmp_path / "log").read_text()
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)
