"""The compiled Fairlead decides as the plain one, byte by byte, and each reads what the other wrote.

Both take the same way in processes of their own (`decisions.py`). `make test-compiled` builds what this needs; without
that build the tests are skipped, and with one that is older than the sources too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
COMPILED = ROOT / "build" / "compiled"
PROGRAM = Path(__file__).with_name("decisions.py")
SCENARIOS = sorted((TESTS / "scenarios").glob("*/*.jsonl"))
PARTS = 8
"""So many processes take the scenarios, each some files."""
COURSES, STEPS = 12, 60
"""In each group of courses."""

FORKED = """
import asyncio, dataclasses, json, os, sys, msgspec, numpy, yaml
for name in sys.argv[1:]:
    if not (child := os.fork()):
        __import__(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""
"""Names the modules that cannot be imported first, each in a process that has none of them."""

pytestmark = pytest.mark.slow


def missing() -> str:
    """What is in the way of comparing; nothing when the build is there and no older than the sources."""
    ready = COMPILED / ".ready"
    if not ready.exists() or ready.read_text() != str(ROOT):
        return "there is no compiled build: make test-compiled"
    newer = [p for p in (ROOT / "src").rglob("*.py") if p.stat().st_mtime > ready.stat().st_mtime]
    return f"the compiled build is older than {newer[0].relative_to(ROOT)}: make test-compiled" if newer else ""


@pytest.fixture(autouse=True)
def _is_built() -> None:
    if why := missing():
        if os.environ.get("FAIRLEAD_TEST_COMPILED") == "required":
            pytest.fail(why)
        pytest.skip(why)


def run(build: str, *command: str) -> tuple[int, bytes, str]:
    """Status, standard output and error of Python with these arguments, where Fairlead is of this build."""
    python, path = {
        "plain": (sys.executable, [ROOT / "src", TESTS]),
        "compiled": (str(COMPILED / "bin" / "python"), [TESTS]),
    }[build]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run([python, *command], env=environment, capture_output=True, check=False, timeout=500)
    return done.returncode, done.stdout, done.stderr.decode()


def taken(build: str, *way: str) -> list[bytes]:
    """The lines of a way, which is gone to its end and by the build that is meant."""
    status, out, err = run(build, str(PROGRAM), *way)
    assert (status, err) == (0, f"{build}\n")
    return out.splitlines()


def assert_same(*way: str) -> None:
    """Both print the same; the first difference is shown."""
    plain, compiled = taken("plain", *way), taken("compiled", *way)
    assert len(plain) > 1
    for number, (left, right) in enumerate(zip_longest(plain, compiled, fillvalue=b"nothing"), 1):
        assert left == right, f"line {number} of {way} differs"


def test_each_module_can_be_the_first() -> None:
    """A dataclass that names a class which is not there yet ends the process (docs/compiled.md). What is not compiled
    begins with one of these too.
    """
    installed = next(COMPILED.glob("lib/python*/site-packages"))
    built = [path.relative_to(installed).as_posix() for path in installed.glob("fairlead/**/*.so")]
    names = sorted(path.partition(".")[0].replace("/", ".") for path in built)
    assert len(names) > 100
    status, out, err = run("compiled", "-c", FORKED, *names)
    assert (status, err) == (0, "")
    assert out.decode().split() == []


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_scenarios(part: int) -> None:
    """Step by step, what the conformance set does."""
    assert_same("scenarios", *map(str, SCENARIOS[part::PARTS]))


@pytest.mark.parametrize("first", range(0, 10 * COURSES, COURSES))
def test_courses_of_every_policy(first: int) -> None:
    """Random events, with each kind of preemption, gangs, reservations, retries, new queue files."""
    assert_same("courses", str(first), str(COURSES), str(STEPS))


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--workload", "tenants", "--tasks-max", "500", "--nodes", "20", "--mtbf", "20d"),
        ("run", "--workload", "gangs", "--tasks-max", "2000", "--nodes", "20"),
        ("forecast", "--workload", "bursty", "--moments", "6", "--every", "4h"),
    ],
    ids=" ".join,
)
def test_simulations_and_forecasts(command: tuple[str, ...], tmp_path: Path) -> None:
    """With every decision, and every figure that is told of them but the time that it took."""
    told = []
    for build in ("plain", "compiled"):
        file = tmp_path / build
        more = ["--decisions", str(file)] if command[0] == "run" else []
        status, out, err = run(build, "-m", "fairlead.cli.main", "sim", *command, "--seed", "5", "--json", *more)
        assert status == 0, err
        printed = json.loads(out)
        figures = printed[0] if isinstance(printed, list) else printed
        del figures["cpu_s"]
        told.append((figures, file.read_bytes() if more else b""))
    assert told[0] == told[1]


@pytest.mark.parametrize("number", [7, 100, 316])
@pytest.mark.parametrize(("writer", "reader"), [("plain", "compiled"), ("compiled", "plain")])
def test_a_journal_of_the_other_build_is_replayed(writer: str, reader: str, number: int, tmp_path: Path) -> None:
    """From its start and from its newest snapshot, with equal states at every snapshot."""
    path = str(tmp_path / "journal.db")
    taken(writer, "journal", path, str(number), "200")
    for options in ([], ["--from-snapshot"]):
        status, out, err = run(reader, "-m", "fairlead.cli.main", "journal", "replay", path, *options)
        assert (status, err) == (0, "")
        assert b"are as recorded" in out
        assert (b"equal to the snapshots after" in out) is not bool(options)


def test_a_journal_is_the_same_whoever_writes_it(tmp_path: Path) -> None:
    """And so is the state at its end."""
    states = [taken(build, "journal", str(tmp_path / build), "55", "120") for build in ("plain", "compiled")]
    assert states[0] == states[1]


@pytest.mark.parametrize("build", ["plain", "compiled"])
def test_the_command_says_which_one_it_is(build: str) -> None:
    """By `--version`, and no Fairlead shadows another."""
    status, out, _ = run(build, "-m", "fairlead.cli.main", "--version")
    assert (status, out.decode().split()[-1]) == (0, f"({build})")
