"""A start that is refused leaves no trace, and changes nothing for the next one."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import app
from fairlead.local.devices import detect_capacity, read_hierarchies
from fairlead.service.http.sockets import ListenError
from fairlead.service.serve import ServeOptions, bring_up, serve
from fairlead.service.start_checks import StartError

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"
FILES = {
    "no-yaml": "partitions: [",
    "unknown-word": "partitions: [{name: default, queues: [{name: root, nome: x}]}]",
    "another-partition": "partitions: [{name: other, queues: [{name: root}]}]",
    "a-rule-of-no-kind": "partitions: [{name: default, placementrules: [{name: nosuchrule}], queues: [{name: root}]}]",
    "no-pem": "hello",
}


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Path]:
    """A folder with files to be named, and a port that is taken."""
    folder = tmp_path / "given"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)

    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield folder
    root.handlers[:], root.level = before


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


REFUSED = {
    "beyond loopback without TLS": (["--host", "0.0.0.0", "--port", "0"], "give a certificate (--tls-cert FILE"),
    "no address": (["--host", "no such host", "--port", "0"], "is no address to listen on"),
    "not this machine's": (["--host", "192.0.2.1", "--port", "0", "--allow-plain-http"], "cannot listen on 192.0.2.1"),
    "a taken port": (["--port", "TAKEN"], "is another service running? Choose another with --port"),
    "no such port": (["--port", "70000"], "70000 is not in the range"),
    "a pipe or device": (["--config", "/dev/null"], "/dev/null is no file that can be watched; write what it says"),
    "no certificate": (["--tls-cert", "GIVEN/none"], "cannot be read: No such file"),
    "no PEM": (["--tls-cert", "GIVEN/no-pem"], "holds no certificate in the PEM format"),
    "a key alone": (["--tls-key", "GIVEN/none"], "needs a certificate; give --tls-cert FILE, too"),
    "no queue file": (["--config", "GIVEN/none"], "none:1:1: cannot be read: No such file"),
    "no YAML": (["--config", "GIVEN/no-yaml"], "no-yaml:2:1: not readable as YAML"),
    "an unknown word": (["--config", "GIVEN/unknown-word"], "unknown-word:1:"),
    "no partition of this machine": (
        ["--config", "GIVEN/another-partition"],
        "so its service refuses the file; rename one to default",
    ),
    "no such rule": (["--config", "GIVEN/a-rule-of-no-kind"], "nosuchrule"),
    "no such user": (["--admin", "nosuchuser"], "this machine has no user 'nosuchuser'"),
    "a long socket": (["--socket", "/tmp/" + "x" * 120], "is longer than 107 bytes; choose a shorter one"),
    "a socket that is a file": (["--socket", "GIVEN/no-pem"], "is there and is no socket; move it away"),
    "a socket in a file": (["--socket", "GIVEN/no-pem/s"], "cannot listen on"),
    "a socket below a file": (["--socket", "GIVEN/no-pem/a/s"], "cannot listen on"),
    "memory pressure": (["--memory-pressure", "much"], "--memory-pressure: "),
    "a memory budget": (["--memory-budget", "much"], "--memory-budget"),
    "room to keep": (["--keep-free", "much"], "--keep-free"),
    "output": (["--output-max", "much"], "--output-max"),
    "no output": (["--output-max", "0"], "of 0 nothing could be kept; write a size such as 64Ki, or off to keep all"),
    "time to keep jobs": (["--keep-jobs", "much"], "--keep-jobs"),
    "size of the journal": (["--keep-journal-max", "much"], "--keep-journal-max"),
    "a bound": (["--per-user", "job=3"], "there is no bound 'job'"),
    "a resource": (["--resource", "gpu"], "--resource"),
    "a negative resource": (["--resource", "gpu=-1"], "--resource gpu"),
    "a kind of message": (["--notify", "smoke"], "there is no kind 'smoke'"),
    "a level": (["--log-level", "loud"], "'loud' is not one of"),
    "state in a file": (["--state", "GIVEN/no-pem/state"], "cannot make the state directory"),
}


def everything(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() if each.is_file() else b"" for each in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_start_leaves_no_trace(name: str, given: Path, tmp_path: Path, taken: int) -> None:
    """Neither a state directory nor a socket, nor a folder for one."""
    words, said = REFUSED[name]
    words = [word.replace("GIVEN", str(given)).replace("TAKEN", str(taken)) for word in words]
    usual = {"--state": tmp_path / "state", "--socket": tmp_path / "run" / "s", "--port": 0}
    for option, value in usual.items():
        words += [] if option in words else [option, str(value)]
    before = everything(tmp_path)
    done = CliRunner().invoke(app, ["up", "--no-pages", *words], prog_name="fairlead")
    assert done.exit_code in (1, 2)
    assert said in done.output
    assert everything(tmp_path) == before


def test_neither_a_socket_nor_a_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(ServeOptions(state_dir=tmp_path / "state", socket=None, port=None, handle_signals=False)) == 1
    assert "there is neither a socket nor a port to listen on" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_refused_start_changes_nothing_for_the_next(tmp_path: Path, taken: int) -> None:
    """What it declared does not count, not even where the journal is in use."""

    def start(resources: dict[str, int], port: int | None = None, name: str = "s") -> ExitStack:
        with ExitStack() as stack:
            options = ServeOptions(state_dir=tmp_path / "st", socket=tmp_path / name, port=port, resources=resources)
            for each in bring_up(options, stack)[1]:
                stack.callback(each.close)
            return stack.pop_all()
        raise AssertionError

    with start({"vcore": 2000}):
        with pytest.raises(Exception, match="is in use by process"):
            start({"vcore": 3000}, name="other")
        assert not (tmp_path / "other").exists()
    before = everything(tmp_path)
    with pytest.raises(ListenError, match="is another service running"):
        start({"vcore": 3000}, port=taken)
    assert everything(tmp_path) == before
    assert b'"declared":{"vcore":2000}' in (tmp_path / "st" / "resources.json").read_bytes()


def test_a_file_that_broke_later_does_not_keep_it_from_starting(tmp_path: Path) -> None:
    """What was in force goes on."""
    file = tmp_path / "queues.yaml"
    options = ServeOptions(state_dir=tmp_path / "st", socket=tmp_path / "s", port=None, config=file)
    for text in (QUEUES, FILES["no-yaml"]):
        file.write_text(text)
        with ExitStack() as stack:
            place, sockets = bring_up(options, stack)
            for each in sockets:
                stack.callback(each.close)
            assert place.runtime.books.configurations.current is not None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_socket_where_nobody_may_write(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    options = ServeOptions(state_dir=tmp_path / "state", socket=tmp_path / "closed" / "s", port=None)
    with ExitStack() as stack, pytest.raises(ListenError, match="is not writable for you"):
        bring_up(options, stack)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(("resources", "has"), [({}, 200 << 20), ({"memory": 300 << 20}, 300 << 20)])
def test_a_memory_budget_is_what_the_node_gives_out(tmp_path: Path, resources: dict[str, int], has: int) -> None:
    """Else more was promised than might be used. What is declared counts more."""
    options = ServeOptions(
        state_dir=tmp_path / "st", socket=tmp_path / "s", port=None, memory_budget=200 << 20, resources=resources
    )
    with ExitStack() as stack:
        place, sockets = bring_up(options, stack)
        for each in sockets:
            stack.callback(each.close)
        assert place.local.machine.capacity()["memory"] == has


def test_a_memory_budget_is_no_more_than_there_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither promised nor waited for until it is short; and one of nothing is refused."""
    has = detect_capacity(read_hierarchies())["memory"]
    options = ServeOptions(state_dir=tmp_path / "st", socket=tmp_path / "s", port=None, memory_budget=2 * has)
    with ExitStack() as stack, caplog.at_level("WARNING", logger="fairlead"):
        place, sockets = bring_up(options, stack)
        for each in sockets:
            stack.callback(each.close)
        assert place.local.machine.capacity()["memory"] == has == place.memory_guard.budget
    assert "that this machine has; that counts" in caplog.text
    with ExitStack() as stack, pytest.raises(StartError, match="no job could use any memory"):
        bring_up(replace(options, memory_budget=0), stack)
