"""The queue file of a running service: watched, refused, put back, kept over restarts; and the page about it."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from testbed.nursery import Nursery, Started
from testbed.unix_socket import ask, wait_until_served

from fairlead.cli.main import app

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

FAIRLEAD = [sys.executable, "-m", "fairlead.cli.main"]
TEXT = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
          - name: batch
            resources: {max: {vcore: 2}}
"""
GROWN = TEXT + "          - name: extra\n"
BAD = TEXT.replace("max: {vcore: 2}", "max: {vcore: -2}").replace(
    "name: default\n          - name: b", "nome: x\n          - name: b"
)
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = pytest.mark.parametrize(
    ("page", "least"),
    [
        ("configuration.md", 10),
        ("coming-from.md", 9),
        ("conditions.md", 50),
        ("arrays.md", 32),
        ("submitting.md", 11),
        ("interactive.md", 3),
        ("messages.md", 3),
        ("administration.md", 5),
        ("maintenance.md", 18),
        ("service.md", 3),
        ("backup-and-upgrade.md", 6),
    ],
)


class Service:
    """A directory with a queue file, and the service that watches it."""

    def __init__(self, nursery: Nursery, directory: Path, text: str = TEXT) -> None:
        self.nursery = nursery
        self.directory, self.file = directory, directory / "queues.yaml"
        self.file.write_text(text)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
        self.environment = kept | {"FAIRLEAD_SOCKET": str(directory / "s"), "COLUMNS": "200"}
        self.process: Started | None = None

    def start(self, *options: str) -> Service:
        words = ("up", "--config", "queues.yaml", "--state", "state", "--socket", "s", "--no-tcp")
        self.process = self.nursery.start(
            *words, "--resource", "vcore=4", *options, log=self.directory / "log", cwd=self.directory
        )
        process = self.process
        wait_until_served(self.directory / "s", lambda: None if process.poll() is None else self.log())
        return self

    def stop(self, number: int = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(50)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*FAIRLEAD, *arguments],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json("config", "status")
        return found

    def state(self) -> str:
        found: str = self.status()["file"]["state"]
        return found

    def queues(self) -> set[str]:
        """Those that take work."""
        found, waiting = set(), list(self.json("queues"))
        while waiting:
            queue = waiting.pop()
            waiting += queue["children"]
            found |= {queue["path"]} if queue["state"] == "active" else set()
        return found

    def replace(self, text: str) -> None:
        """As an editor, or a tool that is careful: written beside it, then renamed."""
        beside = self.directory / "queues.yaml.new"
        beside.write_text(text)
        beside.rename(self.file)

    def until(self, what: Callable[[], Any], seconds: float = 30.0) -> None:
        """Until this is so. A command is costly: it is looked at when the service says something new."""
        end = time.monotonic() + seconds
        said = self._said()
        while not what():
            while (says := self._said()) == said:
                assert time.monotonic() < end, self.log()
                time.sleep(0.03)
            said = says

    def _said(self) -> list[Any]:
        """What the service says of its configuration, and of the job that it has."""
        paths = ("/api/v1/config/status", "/api/v1/queues", "/api/v1/jobs?limit=1000")
        return [ask(self.directory / "s", path) for path in paths]

    def log(self) -> str:
        return (self.directory / "log").read_text()


@pytest.fixture
def service(nursery: Nursery, tmp_path: Path) -> Iterator[Service]:
    short = Path("/tmp") / f"fl-c{os.getpid()}-{tmp_path.name[-10:]}"
    short.mkdir()
    found = Service(nursery, short)
    yield found
    if found.process is not None and found.process.poll() is None:
        found.run("cancel", "--queue", "root")
        found.until(lambda: not found.json("ls", "--state", "running", "--state", "stopping", "--state", "waiting"))
        found.process.kill()
        found.process.wait()
    subprocess.run(["rm", "-rf", str(short)], check=True)


def test_a_changed_file_is_put_in_force_and_a_bad_one_is_not(service: Service) -> None:
    """Replaced, broken (all errors are told), repaired, removed, put back."""
    service.start()
    assert (service.state(), service.status()["version"]) == ("in-force", 1)
    service.replace(GROWN)
    service.until(lambda: "root.extra" in service.queues())
    assert service.status()["source"] == f"file {service.file}"
    service.replace(BAD)
    service.until(lambda: service.state() == "refused")
    status = service.status()
    assert {problem["line"] for problem in status["file"]["problems"]} >= {7, 9}
    told = service.run("config", "status")
    assert told.returncode == 1
    assert f"{service.file}:9:" in told.stdout
    assert "refused as a whole" in service.log()
    assert status["version"] == 2, "what was in force goes on"
    assert service.run("submit", "--queue", "root.extra", "--wait", "--", "true").returncode == 0
    service.file.unlink()
    service.until(lambda: service.state() == "missing")
    service.file.write_text(TEXT)
    service.until(lambda: service.status()["version"] == 3)
    assert (service.state(), "root.extra" in service.queues()) == ("in-force", False)


@pytest.mark.thorough
def test_a_file_that_is_being_written_is_not_read(service: Service) -> None:
    """Half of it would be a valid file with fewer queues; an empty one is no reset."""
    service.start()
    whole = GROWN + "          - name: last\n"
    with service.file.open("w") as file:
        file.flush()
        for line in whole.splitlines(keepends=True):
            file.write(line)
            file.flush()
            time.sleep(0.3)
    service.until(lambda: "root.last" in service.queues())
    assert [v["version"] for v in service.json("config", "history")] == [2, 1]
    service.file.write_text("")
    service.until(lambda: service.state() == "refused")
    assert "root.last" in service.queues()


@pytest.mark.thorough
def test_the_way_back_is_open_after_restarts(service: Service) -> None:
    """After a crash and after a stop; the file does not undo it, a changed file counts again."""
    service.start()
    (service.directory / "second.yaml").write_text(GROWN)
    assert service.run("config", "apply", "second.yaml").returncode == 0
    service.stop(signal.SIGKILL)
    service.start()
    assert (service.state(), "root.extra" in service.queues()) == ("differs", True)
    assert [(v["version"], v["source"]) for v in service.json("config", "history")] == [
        (2, "api"),
        (1, f"file {service.file}"),
    ]
    back = service.run("config", "rollback")
    assert (back.returncode, "root.extra" in service.queues()) == (0, False)
    assert service.run("config", "rollback").returncode == 4, "there is nothing before the first"
    assert service.run("config", "rollback", "2").returncode == 0
    service.stop()
    service.start()
    assert service.run("config", "show").stdout == GROWN
    assert service.run("config", "show", "--version", "1").stdout == TEXT
    service.stop()
    service.replace(TEXT + "          - name: newest\n")
    service.start()
    assert {"root.newest"} == {"root.newest", "root.extra"} & service.queues()


def test_a_bad_file_does_not_keep_a_service_from_coming_back(service: Service) -> None:
    """What was in force is; the status tells what is wrong. Only where nothing ever was, the start fails."""
    service.start()
    service.stop()
    service.file.write_text(BAD)
    service.start()
    assert (service.state(), service.status()["version"]) == ("refused", 1)
    assert service.run("config", "status").returncode == 1
    service.replace(GROWN)
    service.until(lambda: "root.extra" in service.queues())


def test_on_a_terminal_a_change_is_shown_and_asked_for(service: Service) -> None:
    """No is nothing; yes is what was shown; a rollback asks too."""
    service.start()
    (service.directory / "second.yaml").write_text(GROWN)

    def typed(answer: str, *arguments: str) -> tuple[int, str]:
        own, its = pty.openpty()
        process = subprocess.Popen(
            [*FAIRLEAD, *arguments],
            cwd=service.directory,
            env=service.environment,
            stdin=its,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        os.write(own, f"{answer}\n".encode())
        said = process.communicate(timeout=50)[0]
        os.close(own)
        os.close(its)
        return process.returncode, said

    status, said = typed("n", "config", "apply", "second.yaml")
    assert (status, "+ root.extra is added" in said, service.status()["version"]) == (1, True, 1)
    status, said = typed("y", "config", "apply", "second.yaml")
    assert (status, service.status()["version"]) == (0, 2), said
    status, said = typed("y", "config", "rollback")
    assert (status, "- root.extra is removed" in said, service.status()["origin"]) == (0, True, 1), said


# --- the pages ---------------------------------------------------------------------------------------------------


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: their kind and content."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\S+[^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_queue_file_of_the_page_can_be_used(service: Service) -> None:
    """Each block of YAML is a whole file."""
    found = [content for kind, content in blocks("configuration.md") if kind.startswith("yaml")]
    assert len(found) >= 3
    for content in found:
        service.file.write_text(content)
        checked = service.run("config", "check", "queues.yaml")
        assert checked.returncode == 0, (content, checked.stdout)


@pytest.mark.thorough
@PAGES
def test_the_commands_of_the_page_do_what_it_says(
    service: Service, page: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, against one service; lines of output that are shown are there. In this process: it is faster."""
    monkeypatch.chdir(service.directory)
    for name in [name for name in os.environ if name.startswith("FAIRLEAD_")]:
        monkeypatch.delenv(name)
    named = [(kind.partition(" ")[2], content) for kind, content in blocks(page)]
    files = {name: content for name, content in named if name}
    for name, content in files.items():
        (service.directory / name).write_text(content)
    service.start("--resource", "gpu=1")
    ran = 0
    in_days = time.strftime("%a 08:00", time.localtime(time.time() + 3 * 86_400))
    for kind, content in blocks(page):
        if kind != "console":
            continue
        output = ""
        for line in content.splitlines():
            if not line.startswith("$ "):
                assert " ".join(line.split()) in " ".join(output.split()), (line, output)
                continue
            # Some days ahead: what is submitted in the hours before a window would wait for its end.
            command = line.removeprefix("$ ").replace("Sat 08:00", in_days)
            words = shlex.split(command, comments=True)
            if words[0] == "mv":
                version = service.status()["version"]
                (service.directory / words[1]).rename(service.directory / words[2])
                service.until(lambda before=version: service.status()["version"] > before)
                continue
            assert words[0] == "fairlead"
            output = CliRunner().invoke(app, words[1:], env=service.environment, prog_name="fairlead").output
            ran += 1
    assert ran >= least
