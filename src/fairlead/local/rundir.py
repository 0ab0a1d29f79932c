"""What the directory of a run says about it.

Decides how the files of `supervisor.records` become a report. Never writes. Invariant: a run whose directory has a
result or a claim is never called "never executed".
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairlead.local.runs import RunReport
from fairlead.local.supervisor import kernel, run_files

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,127}")
REPORTED = {each.name for each in fields(RunReport)} - {"key"}


def directory_of(runs: Path, key: str) -> Path:
    """The directory of a run. Raises ValueError if the key cannot be the name of one."""
    if not KEY.fullmatch(key):
        raise ValueError(
            f"a run cannot be called {key!r}: at most 128 letters, digits and . _ : @ = + - are possible, "
            "the first a letter or digit"
        )
    return runs / key


def is_forgotten(directory: Path) -> bool:
    """Has this run been settled for good?"""
    return run_files.exists(str(directory), run_files.FORGOTTEN)


def claim_of(directory: Path) -> run_files.Record | None:
    """Who executes or executed the run; None: nobody ever did."""
    return run_files.read(str(directory), run_files.CLAIM)


def owner_alive(claim: run_files.Record) -> bool:
    """Does the supervisor that made this claim still live?"""
    return bool(claim["boot"] == kernel.boot_id() and kernel.alive(claim["supervisor"], claim["supervisor_ticks"]))


def ended_of(key: str, directory: Path) -> RunReport | None:
    """How the run ended; None if it has not, or nobody has written it down."""
    place = str(directory)
    forgotten = run_files.read(place, run_files.FORGOTTEN)
    if forgotten is not None:
        return _report(key, forgotten)
    result = run_files.read(place, run_files.RESULT)
    return None if result is None else _report(key, whole_result(directory, result))


def whole_result(directory: Path, result: run_files.Record) -> dict[str, Any]:
    """The result together with what the claim knows: all that a report needs."""
    claim = claim_of(directory) or {}
    whole = {**claim, **result}
    if result.get("begun") is False:
        whole.update(pid=None, started_at_ms=None)
    if whole.get("started_at_ms") is not None:
        whole["ended_at_ms"] = max(whole["ended_at_ms"], whole["started_at_ms"])
    return {name: value for name, value in whole.items() if name in REPORTED}


def running_of(key: str, claim: run_files.Record) -> RunReport:
    """A run that goes on."""
    return RunReport(key=key, pid=claim["pid"], started_at_ms=claim["started_at_ms"], gpus=tuple(claim["gpus"]))


def _report(key: str, record: run_files.Record) -> RunReport:
    known = {name: value for name, value in record.items() if name in REPORTED}
    known["gpus"] = tuple(known.get("gpus", ()))
    return RunReport(key=key, **known)
