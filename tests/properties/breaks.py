"""Deliberate breaks: one change at a time makes the scheduler wrong, and some check has to see it.

Decides nothing about the scheduler: it copies the checkout into a temporary folder, applies one break there (of
`breaks.toml`, or one that leaves out a call that wakes something: `left_out`), and runs the check that the list names
for it; when that finds nothing, all others, the quick ones first, until one fails. A break that no check finds shows
what the tests do not look at. Never touches the checkout itself. A check that fails without any break is told and left
out, since it would find everything.

`python tests/properties/breaks.py [NAME ...]` prints a table: the break, what found it, and after how many seconds.
Status 0: all were found where the list says. 1: one was not, or a check fails without a break. 2: the list does not fit
the code.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from properties.break_list import LIST, ROOT, Break, DoesNotFit, broken_text, read_breaks
from properties.left_out import left_out
from properties.rank_courses import STEPS_OF_ONE

COPIED = ("src", "tests", "docs", "pyproject.toml")
AT_MOST_S = 1_800
NAMED_AT_MOST_S = 120
"""A check that takes longer was put into an endless loop; one that is named takes seconds."""
COURSES = 20


@dataclass(frozen=True, slots=True)
class Check:
    """Tests that may find a break: what pytest is called with."""

    name: str
    arguments: tuple[str, ...]
    at_most_s: int = AT_MOST_S


CHECKS = (
    Check("scenarios", ("tests/scenarios/test_recorded.py",)),
    Check("unit tests", ("tests/unit/core", "tests/unit/policy")),
    Check("rank courses", ("tests/properties/test_rank_laws.py", "--steps", "6000")),
    Check("policy courses", ("tests/properties/test_policies.py", "--steps", "4000")),
)


def named(by: str) -> Check:
    """The check that the list names."""
    kind, _, rule = by.partition(" ")
    if kind == "courses":
        steps = str(COURSES * STEPS_OF_ONE)
        laws = "tests/properties/test_rank_laws.py::test_the_laws_of_rank_hold"
        return Check(by, (f"{laws}[{rule}]", "--steps", steps), NAMED_AT_MOST_S)
    return Check(by.rpartition("/")[2], (by,), NAMED_AT_MOST_S)


def copy_checkout(folder: Path, root: Path = ROOT) -> None:
    """What the checks need, and nothing that was compiled or remembered."""
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy2(source, folder / name)


def fails(check: Check, folder: Path) -> bool:
    """Whether a check fails (or does not end) on the copy in this folder."""
    paths = os.pathsep.join([str(folder / "src"), str(folder / "tests")])
    # Compiled files are told apart by time and size: within a second a break may leave both as they were.
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *check.arguments]
    began = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return began.wait(check.at_most_s) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        if began.poll() is None:
            os.killpg(began.pid, signal.SIGKILL)
            began.wait()


def run(breaks: list[Break], checks: tuple[Check, ...] = CHECKS, root: Path = ROOT) -> int:
    """Apply each break and print what found it; returns the status. Raises `DoesNotFit` before anything is run."""
    texts = [broken_text(each, root) for each in breaks]
    with tempfile.TemporaryDirectory(prefix="breaks-") as place:
        folder = Path(place)
        copy_checkout(folder, root)
        _be_sure_of_the_copy(folder)
        failing: dict[Check, bool] = {}

        def finds(check: Check, each: Break, text: str) -> bool:
            if check not in failing:
                failing[check] = fails(check, folder)
                if failing[check]:
                    print(f"{check.name}: fails without any break, so it is left out", flush=True)
            if failing[check]:
                return False
            whole = (folder / each.file).read_text()
            (folder / each.file).write_text(text)
            try:
                return fails(check, folder)
            finally:
                (folder / each.file).write_text(whole)

        print(f"{'break':<72} {'found by':<40} seconds")
        missed = elsewhere = 0
        for each, text in zip(breaks, texts, strict=True):
            began = time.monotonic()
            own = (named(each.by),) if each.by else ()
            hints = (named(each.likely_by),) if each.likely_by else ()
            finder = next((check for check in (*own, *hints, *checks) if finds(check, each, text)), None)
            missed += finder is None
            elsewhere += finder is not None and bool(own) and finder not in own
            said = (
                "NOTHING" if finder is None else finder.name if not own or finder in own else f"only by {finder.name}"
            )
            print(f"{each.name:<72} {said:<40} {time.monotonic() - began:.0f}", flush=True)
    print(f"{len(breaks) - missed} of {len(breaks)} breaks were found, {elsewhere} not where the list says")
    return 1 if missed or elsewhere or any(failing.values()) else 0


def _be_sure_of_the_copy(folder: Path) -> None:
    """The copy is what a check imports, not what is installed."""
    paths = os.pathsep.join([str(folder / "src"), str(folder / "tests")])
    command = [sys.executable, "-c", "import fairlead; print(fairlead.__file__)"]
    said = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(said).resolve().is_relative_to(folder.resolve()):
        raise DoesNotFit(f"the checks would import {said}, not the copy")


def main(names: list[str]) -> int:
    """The breaks of these names, or all."""
    try:
        listed = read_breaks()
        known = [*listed, *left_out(listed)]
        if unknown := [name for name in names if name not in {each.name for each in known}]:
            raise DoesNotFit(f"there is no break named {unknown[0]!r}, in {LIST.name} or among the calls left out")
        return run([each for each in known if not names or each.name in names])
    except DoesNotFit as e:
        print(f"cannot break anything: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
