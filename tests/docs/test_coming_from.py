"""`docs/coming-from`: the tables are whole, what they name is there, and what they type works."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from docs.foreign_tables import PAGES, Row, codes, every_option, pages, rows, unknown_options
from testbed.nursery import Nursery
from testbed.unix_socket import wait_until_served

from fairlead.cli import bsub, qsub, sbatch
from fairlead.cli.jobfields import described
from fairlead.cli.main import app
from fairlead.cli.scripts import by_source, fields_of
from fairlead.cli.submit import submit
from fairlead.client.address import Address
from fairlead.client.sync import Client

MANUALS = tomllib.loads((Path(__file__).parent / "foreign_options.toml").read_text())
EVERY = [row for page in pages() for row in rows(page)]
HERE = [row for row in EVERY if row.is_here]
QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: default}, {name: batch}, {name: empty}, {name: full, maxapplications: 1}]
"""


def names(text: str) -> set[str]:
    return {re.sub("[-_]", "", word.lower()) for word in re.findall(r"[A-Za-z][\w-]*", text)}


# --- whole -----------------------------------------------------------------------------------------------------------


def long_options(row: Row) -> set[str]:
    """Without values; a letter stands for the word beside it."""
    return {name for text in row.theirs for name in re.findall(r"(?:^|\s)--([A-Za-z][\w-]*)", text)}


@pytest.mark.parametrize("page", ["sbatch", "squeue", "scancel"])
def test_a_page_names_each_option_and_no_other(page: str) -> None:
    named = set().union(*(long_options(row) for row in rows(page)))
    assert named == set(MANUALS[page].split())


def test_srun_has_its_own_options_and_those_of_sbatch() -> None:
    """What is said for both is in the table of sbatch alone."""
    own = set().union(*(long_options(row) for row in rows("srun")))
    head = (PAGES / "srun.md").read_text().partition("| `srun`")[0]
    shared = {text.removeprefix("--") for text in codes(head) if text.startswith("--")}
    assert own | shared == set(MANUALS["srun"].split())
    assert not own & shared
    assert shared <= set(MANUALS["sbatch"].split())


def test_scontrol_has_each_option_command_and_field() -> None:
    found = rows("scontrol")
    assert set().union(*(long_options(row) for row in found)) == set(MANUALS["scontrol"].split())
    words = {text.split()[0] for row in found for text in row.theirs}
    shown = {text.split()[1] for row in found for text in row.theirs if text.startswith("show ")}
    assert words >= set(MANUALS["scontrol_commands"].split())
    assert shown == set(MANUALS["scontrol_shown"].split())
    assert words >= set(MANUALS["scontrol_fields"].split())


def test_pueue_has_each_command_with_its_options() -> None:
    known = {(command, name) for command, options in MANUALS["pueue"].items() for name in ("", *options.split())}
    found = {("", "")}
    for text in (text for row in rows("pueue") for text in row.theirs):
        words = text.split()
        command = next((each for each in (" ".join(words[:2]), words[0], "") if each in MANUALS["pueue"]), "")
        found.add((command, ""))
        found |= {(command, name) for name in re.findall(r"(?:^|\s)--([a-z][\w-]*)", text)}
    assert found == known


def test_tsp_has_each_flag() -> None:
    found = {text[1] for row in rows("tsp") for text in row.theirs if text.startswith("-")}
    assert found == set(MANUALS["tsp"].split())


# --- true ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", EVERY, ids=str)
def test_a_row_is_what_it_says(row: Row) -> None:
    """A command where there is a counterpart; of the same name where it says so; all options are there."""
    assert bool(row.ours) == row.is_here
    assert len(row.why) > len(row.how) or row.how != "not", "say why"
    typed = [text for text in (*row.ours, *codes(row.why)) if text.startswith("fairlead ")]
    for text in typed:
        assert not unknown_options(text.partition("$(")[0].split()), text
    if row.how == "same":
        assert names(" ".join(row.theirs)) & names(" ".join(row.ours)), "that is another word"
    named = {name for text in codes(row.why) for name in re.findall(r"(?:^|\s)(--[a-z][\w-]*)", text)}
    assert named <= every_option()


def test_columns_of_squeue_are_columns() -> None:
    from fairlead.cli.columns import NAMES

    lines = (PAGES / "squeue.md").read_text().partition("## Columns")[2].splitlines()
    named = [codes(line)[-1] for line in lines if line.startswith("| `%")]
    assert set(named) | {"exit", "cpu-time", "peak"} == set(NAMES)


# --- #SBATCH lines ---------------------------------------------------------------------------------------------------

TYPED = {"clusters", "export-file", "help", "ignore-pbs", "test-only", "usage", "version", "wrap"}
"""They are about the call: in a script they mean nothing."""
FLAGS = frozenset(flag for param in submit.params for flag in param.opts)


def translated(text: str) -> tuple[list[str], list[str]]:
    """What a line becomes, and what of it means nothing."""
    options = sbatch.Options()
    options.add(shlex.split(text), "x:1")
    return [word for _, words in options.translated(FLAGS) for word in words], options.unknown


def meaning(words: list[str]) -> dict[str, Any]:
    """What is sent for a job with these options."""
    ctx = submit.make_context("submit", [*words, "--", "true"])
    given = by_source(ctx, ctx.params, typed=True)
    body = described(fields_of(given) | {"command": ["true"]}, "x")
    body.pop("begin_at_ms", None)  # It is said from now on.
    return body | {"wait": given.get("wait"), "begins": bool(given.get("begin"))}


@pytest.mark.parametrize("row", rows("sbatch"), ids=str)
def test_a_line_of_a_script_becomes_what_the_table_says(row: Row) -> None:
    """Word for word in what it means; what is not here is named."""
    for text in row.theirs:
        if re.match("-[A-Za-z]", text):
            assert sbatch._ONE_LETTER.get(text, text.strip("-")) in {*long_options(row), "h", "V"}
            continue
        name = text.removeprefix("--").partition("=")[0]
        if name in TYPED:
            assert name not in {*sbatch._SAME, *sbatch._OTHERWISE, *sbatch._PASSED_OVER}
            continue
        words, unknown = translated(text)
        if not row.is_here:
            assert (words, len(unknown)) == ([], 1), text
            continue
        assert not unknown, text
        ours = shlex.split(row.ours[0])
        typed = ours[2 : ours.index("--")]
        if name == "quiet":
            typed.remove("--quiet")
        assert meaning(words) == meaning(typed), text


def test_what_lines_are_understood_is_in_the_table() -> None:
    """The other way round."""
    here = set().union(*(long_options(row) for row in rows("sbatch") if row.is_here))
    together = {*sbatch._CORES, *sbatch._MAIL_OPTIONS, "nodes", "mem-per-cpu", "mem-per-gpu", "gpus-per-task"}
    understood = {*sbatch._SAME, *sbatch._OTHERWISE, *sbatch._PASSED_OVER, *together}
    assert understood == here - TYPED
    manual = set(MANUALS["sbatch"].split())
    assert {*sbatch._ADVICE, *sbatch._ONE_LETTER.values(), *sbatch._FLAGS} <= manual


@pytest.mark.parametrize("row", [*rows("qsub"), *rows("bsub")[1:]], ids=str)
def test_a_line_for_pbs_grid_engine_or_lsf_becomes_what_the_table_says(row: Row) -> None:
    second = (PAGES / "qsub.md").read_text().partition("| Grid Engine |")[0].count("\n")
    for text in row.theirs:
        of_qsub = qsub.GridEngine if row.line > second else qsub.Pbs
        options = of_qsub() if row.page == "qsub" else bsub.Options()
        options.add(shlex.split(text.replace("KEY", "12")), "x:1")
        words = [word for _, found in options.translated(FLAGS) for word in found]
        if not row.is_here or "not in a script" in row.why:
            assert (words, len(options.unknown)) == ([], 1 + text.count(" -l ")), text
            continue
        assert not options.unknown, text
        typed = shlex.split(row.ours[0].replace("KEY", "12"))[2:-2]
        if not text.startswith(("-J 1-10:2", "-l select")):  # The row shows its like.
            assert meaning(words) == meaning(typed), text


# --- executed --------------------------------------------------------------------------------------------------------


class Desk:
    """Somebody at a machine, with jobs in every state."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.socket = directory, directory / "s"
        self.client = Client(Address(socket=str(self.socket)))
        self.full = ""
        self.env = {"FAIRLEAD_SOCKET": str(self.socket), "XDG_CONFIG_HOME": str(directory / "config"), "COLUMNS": "200"}

    def submit(self, *command: str, **more: Any) -> str:
        body = {"command": list(command), "cwd": str(self.directory), "resources": {"cpu": 0.01}} | more
        return self.client.submit([body]).jobs[0].key

    def until(self, key: str, *states: str) -> str:
        end = time.monotonic() + 50
        while True:
            job = self.client.job(key)
            if job.state in states and (job.state != "running" or job.pid):
                return key
            assert time.monotonic() < end, job
            time.sleep(0.02)

    def waiting(self, **more: Any) -> str:
        """In line, behind one that fills its queue."""
        if not self.full or self.client.job(self.full).state != "running":
            self.full = self.running(queue="root.full")
        return self.submit("true", queue="root.full", env={"NAME": "1"}, **more)

    def running(self, **more: Any) -> str:
        return self.until(self.submit("sleep", "300", **more), "running")

    def suspended(self) -> str:
        return self.until(self.client.suspend(self.running()).key, "suspended")

    def ended(self, **more: Any) -> str:
        return self.until(self.submit("sh", "-c", "echo said; exit 0", **more), "succeeded")

    def failed_array(self) -> str:
        return self.until(self.submit("false", array="1-2"), "failed")

    def placeholder(self, word: str) -> str:
        """What stands for a word in capitals."""
        known = {
            "KEY": self.waiting,
            "ARRAY": lambda: self.waiting(array="1-3"),
            "HELD": lambda: self.submit("true", hold=True),
            "RUNNING": self.running,
            "SUSPENDED": self.suspended,
            "ENDED": self.ended,
            "ENDED_ARRAY": self.failed_array,
            "TERMINAL": lambda: self.running_terminal(),
            "SCRIPT": lambda: self.submit("job.sh", script="#!/bin/sh\n", hold=True),
            "NODE": lambda: next(self.client.nodes()).id,
            "SOCKET": lambda: str(self.socket),
            "FILE": lambda: "FILE",
        }
        return known[word]()

    def running_terminal(self) -> str:
        return self.until(self.submit("cat", terminal=True), "running")

    def tidy(self) -> None:
        """Nothing of one row is in the way of the next."""
        for job in self.client.jobs(state=("waiting", "running", "suspended", "stopping"), parts=False):
            if job.key != self.full or job.state != "running":
                with contextlib.suppress(Exception):
                    self.client.cancel(job.key, now=True)
        for node in self.client.nodes():
            if not node.schedulable:
                self.client.undrain(node.id)

    def type(self, text: str) -> tuple[int, str]:
        """Exit status and output of a command line."""
        filled = re.sub(
            r"\b(KEY|ARRAY|HELD|RUNNING|SUSPENDED|ENDED|ENDED_ARRAY|TERMINAL|SCRIPT|NODE|SOCKET)\b", self._fill, text
        )
        words = shlex.split(filled)
        if "--interval" in words:
            return self._interrupted(words)
        result = CliRunner().invoke(
            app, words[1:], env=self.env, input="y\n", prog_name="fairlead", catch_exceptions=False
        )
        return result.exit_code, f"{filled}: {result.output}"

    def _fill(self, found: re.Match[str]) -> str:
        return self.placeholder(found[1])

    def _interrupted(self, words: list[str]) -> tuple[int, str]:
        """What goes on for ever is stopped with Ctrl-C, after the first it says."""
        command = [sys.executable, "-m", "fairlead.cli.main", *words[1:]]
        process = subprocess.Popen(command, env={**os.environ, **self.env}, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        return (0 if process.wait(50) == 130 else 1), text_of(process)


def text_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    with process.stdout as out:
        return out.read()


@pytest.fixture(scope="module")
def desk(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    directory = tmp_path_factory.mktemp("d")
    (directory / "queues.yaml").write_text(QUEUES)
    (directory / "FILE").write_text("one\n")
    (directory / "job.sh").write_text("#!/bin/sh\n")
    (directory / "FILE.jsonl").write_text('{"command": "true"}\n')
    places = ("--config", "queues.yaml", "--state", "state", "--socket", "s", "--no-tcp")
    amounts = [word for each in ("cpu=4", "gpu=8", "licence=8", "memory=64Gi") for word in ("--resource", each)]
    process = nursery.start("up", *places, *amounts, log=directory / "log", cwd=directory)
    wait_until_served(directory / "s", lambda: None if process.poll() is None else (directory / "log").read_text())
    found = Desk(directory)
    found.client.set_priority_class("urgent", {"value": 1000})
    yield found
    found.full = ""
    found.tidy()
    process.send_signal(signal.SIGTERM)
    process.wait(50)


ELSEWHERE = {
    "service": "docs/service.md",
    "up": "every page",
    "doctor": "tests of its own: it says what a machine lacks",
}
"""Commands that a row names and another page, or test, executes."""


@pytest.mark.real
@pytest.mark.parametrize("row", [row for row in HERE if row.ours[0].split()[1] not in ELSEWHERE], ids=str)
def test_what_is_typed_here_works(row: Row, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a real service, with jobs in the state that the row is about."""
    monkeypatch.chdir(desk.directory)
    for name in [name for name in os.environ if name.startswith("FAIRLEAD_")]:
        monkeypatch.delenv(name)
    try:
        for text in row.ours:
            status, said = desk.type(text)
            assert status == 0, said
    finally:
        desk.tidy()


@pytest.mark.real
def test_the_commands_for_programs_that_look_for_slurms_work(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As submitit calls them: it watches a part of an array by `12_1`."""
    found = re.findall(r"```sh (\S+)\n(.*?)```", (PAGES.parent / "coming-from.md").read_text(), re.DOTALL)
    texts = {name: text for name, text in found if "." not in name}
    texts["fairlead"] = f'#!/bin/sh\nexec {sys.executable} -m fairlead.cli.main "$@"\n'
    texts["array.sh"] = (
        "#!/bin/sh\n#SBATCH --array=1-2\n"
        "srun --unbuffered --output x sh -c 'echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_PROCID'\n"
    )
    for name, text in texts.items():
        (desk.directory / name).write_text(text)
        (desk.directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{desk.directory}:{os.environ['PATH']}")
    for name, value in desk.env.items():
        monkeypatch.setenv(name, value)

    def said(*words: str) -> str:
        return subprocess.run(words, cwd=desk.directory, capture_output=True, text=True, check=True).stdout

    key = said("sbatch", "array.sh").removeprefix("Submitted batch job ").strip()
    desk.until(key, "succeeded")
    node = desk.placeholder("NODE")
    assert said("sacct", "-o", "JobID,State,NodeList", "--parsable2", "-j", key).splitlines() == [
        "JobID|State|NodeList", f"{key}_1|COMPLETED|{node}", f"{key}_2|COMPLETED|{node}"
    ]  # fmt: skip
    assert said("fairlead", "logs", f"{key}.2") == f"{key} 2 0\n"
    assert said("scontrol", "show", "job", f"{key}_2") == f"JobId={key}.2 JobState=COMPLETED\n"
    running = desk.running()
    said("scontrol", "requeue", running)
    desk.until(running, "running")
    assert "requeued by" in said("fairlead", "show", running, "--history")
    said("scancel", running)
    desk.until(running, "cancelled")
