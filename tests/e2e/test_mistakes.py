"""What newcomers type wrongly: each message says what was wrong, where, and what to do (`mistakes.toml`)."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from testbed.nursery import Nursery
from testbed.unix_socket import wait_until_served

from fairlead.cli.main import COMMANDS, app
from fairlead.client.address import Address
from fairlead.client.errors import Refused
from fairlead.client.sync import Client

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: default}, {name: batch}, {name: short, properties: {job.time.max: 1h}}]
"""
FILES = {
    "queues.yaml": QUEUES,
    "plain.sh": "echo no interpreter\n",
    "words.sh": "#!/bin/sh\n#FAIRLEAD --cpus 4\n",
    "slurm.sh": "#!/bin/sh\n#SBATCH --nonsense=3 -N 2\ntrue\n",
    "jobs.jsonl": '{"command": "true", "cpus": 4}\nnot json\n',
    "bad.env": "A B=1\n",
    "bad.yaml": 'partitions:\n  - name: default\n    queues:\n      - name: root\n        queues: [{name: "a b"}]\n',
}


def mistakes() -> Iterator[tuple[str, int, list[str]]]:
    """What is typed, the exit status, and the words that have to be said."""
    for tables in tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text()).values():
        for table in tables:
            assert len(table["typed"]) == len(table["says"]), table["typed"]
            yield from (
                (typed, table["status"], says) for typed, says in zip(table["typed"], table["says"], strict=True)
            )


EVERY = list(mistakes())


def test_there_are_many_about_all_commands() -> None:
    """Sixty were asked for; what only looks has few ways to be typed wrongly."""
    assert len({typed for typed, *_ in EVERY}) == len(EVERY) >= 60
    about = {typed.split()[0] for typed, *_ in EVERY}
    hardly = {
        "demo",
        "service",
        "gpus",
        "undrain",
        "usage",
        "limits",
        "priority-class",
        "quota",
        "budget",
        "kubernetes",
    }
    assert set(COMMANDS) - about == hardly | {"scenario", "sim", "bench", "doctor", "unknown", "web"}


@pytest.fixture(scope="module")
def desk(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with the files, and a service with a few jobs."""
    directory = tmp_path_factory.mktemp("m")
    for name, content in FILES.items():
        (directory / name).write_text(content)
    places = ("--config", "queues.yaml", "--state", "state", "--socket", "s", "--no-tcp")
    amounts = ("--resource", "cpu=4", "--resource", "gpu=1")
    process = nursery.start("up", *places, *amounts, log=directory / "log", cwd=directory)
    wait_until_served(directory / "s", lambda: None if process.poll() is None else (directory / "log").read_text())
    client = Client(Address(socket=str(directory / "s")))
    cwd = {"cwd": str(directory)}
    more: list[dict[str, Any]] = [
        {"command": ["true"], "hold": True},
        {"command": ["sleep", "1000"], "resources": {"cpu": 0.1}},
        {"command": ["true"]},
        {"command": ["true"], "array": "1-3", "hold": True},
        {"command": ["x.sh"], "script": "#!/bin/sh\n", "hold": True},
    ]
    keys = [client.submit([each | cwd]).jobs[0].key for each in more]
    assert keys == ["1", "2", "3", "4", "5"]
    client.wait("3")
    while not client.job("2").pid:
        time.sleep(0.02)
    yield directory
    for job in client.jobs(state=("waiting", "running")):
        with suppress(Refused):  # Short ones may end first.
            client.cancel(job.key, now=True)
    process.send_signal(signal.SIGTERM)
    process.wait(50)


@pytest.mark.parametrize(("typed", "status", "says"), EVERY, ids=[typed for typed, *_ in EVERY])
def test_a_mistake_is_explained(
    desk: Path, typed: str, status: int, says: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sentence, on standard error, and no traceback."""
    monkeypatch.chdir(desk)
    # A log that began in an earlier one would go to an output that is closed by now.
    monkeypatch.setattr(logging.getLogger("fairlead"), "handlers", [])
    for name in [name for name in os.environ if name.startswith("FAIRLEAD_")]:
        monkeypatch.delenv(name)
    env = {"FAIRLEAD_SOCKET": "s", "XDG_CONFIG_HOME": str(desk / "config")}
    result = CliRunner().invoke(app, shlex.split(typed), env=env, prog_name="fairlead", catch_exceptions=False)
    said = result.output
    assert result.exit_code == status, result.output
    assert [word for word in says if word not in said] == [], said
    assert "Traceback" not in said
