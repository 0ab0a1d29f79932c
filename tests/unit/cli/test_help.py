"""Help is part of the product: all of it is there, and true."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.main import COMMANDS, SECTIONS, app
from fairlead.version import build


def every_command() -> Iterator[tuple[str, Any]]:
    root: Any = app
    for name in COMMANDS:
        command = root.get_command(None, name)
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {sub}", c) for sub, c in inner.items())


EVERY = dict(every_command())


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    """The list is written apart so that it needs no imports; it must not drift."""
    root: Any = app
    for name, (_, sentence) in COMMANDS.items():
        assert root.get_command(None, name).help.strip().split("\n")[0].strip() == sentence, name


@pytest.mark.parametrize("name", EVERY)
def test_every_option_and_argument_is_described(name: str) -> None:
    """In a sentence of its own."""
    for parameter in EVERY[name].params:
        assert parameter.help, f"{name}: {parameter.name}"
        assert parameter.help.strip()[0].isupper(), f"{name}: {parameter.name}"


def test_n_is_the_namespace_in_all_commands() -> None:
    """A letter that means a name here and a namespace there is typed wrongly."""
    meant = {text for command in EVERY.values() for p in command.params if "-n" in p.opts for text in p.opts}
    assert meant == {"-n", "--namespace"}


def test_each_shell_gets_its_script(run: Callable[..., Any]) -> None:
    """And a shell that there is none for is named."""
    for shell in ("bash", "zsh", "fish"):
        assert "_FAIRLEAD_COMPLETE" in run("completion", shell).stdout
    assert run("completion", "csh").exit_code == 2


def test_a_shell_completes_commands_options_and_keys(service: Any, socket_path: str) -> None:
    """Keys come from the service."""
    service.add("17", state="running", name="train")
    service.add("20", state="suspended")
    service.on("GET", "/jobs", lambda asked: _those_in(service, asked.lists["state"]))

    def completed(line: str) -> str:
        asked = {"_FAIRLEAD_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        command = [sys.executable, "-m", "fairlead.cli.main"]
        environ = os.environ | asked | {"FAIRLEAD_SOCKET": socket_path}
        return subprocess.run(command, capture_output=True, text=True, env=environ, check=True).stdout

    assert "plain,show\n" in completed("fairlead sh")
    assert "plain,--history\n" in completed("fairlead show --hi")
    assert completed("fairlead show 1") == "plain,17\n"
    assert completed("fairlead resume 2") == "plain,20\n"


def _those_in(service: Any, states: list[str]) -> Any:
    rows = [job for job in service.jobs.values() if job["state"] in states]
    return {"jobs": rows, "next": None, "total": len(rows)}


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_help_that_fits_80_columns(
    name: str, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Usage, a sentence, options; examples may be longer."""
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: fairlead {name}")
    assert all(len(line) <= 80 for line in result.stdout.partition("Examples:")[0].splitlines())


def test_the_names_that_scripts_rely_on_are_there() -> None:
    """Fixed for good."""
    fixed = {
        "up": ["--config", "--state", "--host", "--port", "--socket"],
        "submit": [
            "--queue",
            "--priority",
            "--cpu",
            "--memory",
            "--gpu",
            "--resource",
            "--name",
            "--grace",
            "--time-limit",
        ],
        "ls": ["--json", "--socket", "--url"],
        "show": ["--json", "--socket", "--url"],
        "sim run": ["--nodes", "--tasks"],
    }
    for name, options in fixed.items():
        known = {text for parameter in EVERY[name].params for text in parameter.opts}
        assert set(options) <= known, name


def test_without_a_command_help_goes_to_standard_error(run: Callable[..., Any]) -> None:
    """With status 2."""
    result = run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert all(f"{title}:" in result.stderr for title in SECTIONS)


def test_what_holds_where_an_option_is_left_out_is_said_of_new_jobs_alone(run: Callable[..., Any]) -> None:
    """A change leaves alone what is not given."""
    assert "30s if not given" in run("submit", "--help").stdout
    assert "if not given" not in run("update", "--help").stdout


def test_sentences_in_lists_of_commands_are_whole(run: Callable[..., Any]) -> None:
    """In groups too: wrapped, never cut off."""
    for group in ("whatif", "config", "token", "service"):
        assert "..." not in run(group, "--help").stdout.split("Commands:")[1]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["lss"], "fairlead: no such command 'lss'. Did you mean 'ls'? See `fairlead --help`."),
        (["show"], "fairlead show: missing argument 'KEY...'. See `fairlead show --help`."),
        (
            ["config", "chekc"],
            "fairlead config: no such command 'chekc'. Did you mean 'check'? See `fairlead config --help`.",
        ),
    ],
)
def test_wrong_usage_is_one_sentence(run: Callable[..., Any], args: list[str], said: str) -> None:
    """With a way on."""
    result = run(*args)
    assert (result.exit_code, result.stderr) == (2, said + "\n")


def test_the_version_is_printed(run: Callable[..., Any]) -> None:
    """That of the package, and which build it is."""
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"fairlead {metadata.version('fairlead')} ({build()})\n")


def test_a_missing_package_of_the_service_is_named(tmp_path: Path) -> None:
    """With the command that installs it."""
    program = "import sys; sys.modules['uvicorn'] = None\nfrom fairlead.cli.main import run; run()"
    args = ["up", "--state", str(tmp_path), "--socket", str(tmp_path / "s"), "--no-tcp"]
    done = subprocess.run(
        [sys.executable, "-c", program, *args], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 1
    assert done.stderr == (
        "fairlead: the service needs uvicorn, which is not installed; run: pip install 'fairlead[service]'\n"
    )


HEAVY = {
    *("asyncio", "dataclasses", "email", "fastapi", "http", "importlib.metadata", "json", "logging", "numpy"),
    *("pathlib", "psutil", "pydantic", "rich", "shutil", "sqlite3", "ssl", "subprocess", "typer", "uvicorn", "yaml"),
}
"""What makes a quick command slow, modules of the standard library among it."""


@pytest.mark.parametrize("args", [("ls",), ("show", "7"), ("submit", "--cpu", "2", "--", "true")])
def test_quick_commands_import_nothing_heavy(args: tuple[str, ...], service: Any, socket_path: str) -> None:
    """So that they cost 80 ms of processor time at most; from start to end, with an answer."""
    service.on("POST", "/jobs", {"jobs": [service.add("7")]})
    program = (
        f"import sys; sys.argv = ['fairlead', *{args!r}]\n"
        "from fairlead.cli.main import run\n"
        "try: run()\nexcept SystemExit as e: print(e.code)\n"
        f"print(sorted(sys.modules.keys() & {HEAVY!r}))"
    )
    environ = os.environ | {"FAIRLEAD_SOCKET": socket_path}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    assert done.stdout.splitlines()[-2:] == ["0", "[]"]


def test_a_reader_that_has_gone_is_no_failure() -> None:
    """`fairlead ls | head` in a script with `pipefail`: the output is written while nobody listens any more."""
    command = [sys.executable, "-u", "-m", "fairlead.cli.main", "config", "default"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (0, b"")


def test_letters_that_the_locale_has_not_are_shown_as_numbers(service: Any, socket_path: str) -> None:
    """One job with such a name kept everybody from listing any."""
    service.add("7", name="zäh")
    environ = os.environ | {"FAIRLEAD_SOCKET": socket_path, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-m", "fairlead.cli.main", "ls"], env=environ, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"z\\xe4h" in done.stdout


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_no_failure(closed: str, service: Any, socket_path: str) -> None:
    """Of what a daemon starts, for example; nor is what is printed written into a file that took such a number."""
    service.on("POST", "/jobs", {"jobs": [service.add("7")]})
    for words, status in ((f"ls {closed}", 0), (f"submit -- true {closed}", 0), (f"submit --file - {closed}", 2)):
        command = f"{sys.executable} -m fairlead.cli.main {words}"
        environ = os.environ | {"FAIRLEAD_SOCKET": socket_path}
        done = subprocess.run(command, shell=True, env=environ, stdin=subprocess.DEVNULL, capture_output=True)
        assert (done.returncode, b"Traceback" in done.stderr) == (status, False), words


def test_python_runs_it_by_its_name() -> None:
    """Where the folder of the command is not on the PATH, as in a container."""
    command = [sys.executable, "-m", "fairlead", "config", "default"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("#")
