"""`fairlead doctor`: what this machine can do, and whether the service is well.

Decides what is looked at and how bad a finding is. Never changes anything. Invariant: each finding is one sentence that
also says what to do, if there is something to do.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import typer

from fairlead.cli import render
from fairlead.cli.address import default_state_dir
from fairlead.cli.app import JsonOption, Status, client_command
from fairlead.cli.client import Client
from fairlead.cli.failures import FAILED, Failure
from fairlead.core.quantities import format_bytes
from fairlead.version import version_and_build

OK, NOTE, BAD = "ok", "note", "bad"
_MARKS = {OK: "green", NOTE: "yellow", BAD: "red"}
SERVICE_PACKAGES = ("fastapi", "starlette", "pydantic", "uvicorn", "httptools", "uvloop", "prometheus-client")
"""What the extra `service` asks for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    level: str
    sentence: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    client_command(app, "doctor", examples="fairlead doctor\nfairlead doctor --json")(doctor)


def doctor(client: Client, json: JsonOption = False) -> Status:
    """Say what this machine can enforce, and more.

    Versions, packages, the state directory, and whether a service answers.

    Exit status 1 if something is bad (a service that does not answer is only noted).
    """
    checks: list[Callable[[], Iterator[Finding]]] = [
        _versions,
        _packages,
        _sqlite,
        _state,
        _machine,
        lambda: _service(client),
    ]
    findings = [finding for check in checks for finding in check()]
    if json:
        render.write_json([asdict(f) for f in findings])
    else:
        screen = render.Screen.of()
        columns = (render.Column("WHAT"), render.Column("IS"), render.Column("WHY", least=None))
        if screen.width is not None:
            screen = render.Screen(screen.out, None, screen.colour)
        render.table(screen, columns, [(f.what, f.level, f.sentence) for f in findings], _MARKS)
    return FAILED if any(f.level == BAD for f in findings) else None


def _versions() -> Iterator[Finding]:
    yield Finding("fairlead", OK, f"{version_and_build()}, at {Path(__file__).parent.parent}")
    yield Finding("python", OK, f"{platform.python_version()}, {sys.executable}, {platform.platform(terse=True)}")


def _packages() -> Iterator[Finding]:
    missing = []
    for name in SERVICE_PACKAGES:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        yield Finding(
            "packages",
            NOTE,
            f"{', '.join(missing)} missing: `fairlead up` does not run here until `pip install 'fairlead[service]'`",
        )
    else:
        yield Finding("packages", OK, "everything that the service needs is installed")


def _sqlite() -> Iterator[Finding]:
    version = sqlite3.sqlite_version_info
    if version < (3, 51, 3):
        sentence = (
            "has the bug of the write-ahead log fixed in 3.51.3; it needs two writers, and a journal has only one"
        )
    else:
        sentence = "is free of known bugs that matter here"
    yield Finding("sqlite", OK, f"{sqlite3.sqlite_version} {sentence}")


def _state() -> Iterator[Finding]:
    path = default_state_dir()
    place = path
    while not place.exists():
        place = place.parent
    if os.access(place, os.W_OK):
        there = "is there and writable" if place == path else "is not there yet, and can be made"
        yield Finding("state", OK, f"{path} {there}")
    else:
        yield Finding("state", NOTE, f"{path} cannot be written by you; start `fairlead up` with --state DIR")


def _machine() -> Iterator[Finding]:
    try:
        from fairlead.local.devices import detect_gpus
        from fairlead.local.hierarchies import read_hierarchies
        from fairlead.local.means import probe
    except ModuleNotFoundError:
        return
    for capability in probe(read_hierarchies()).capabilities(len(detect_gpus())):
        yield Finding(capability.name, OK if capability.enforced else NOTE, capability.how)


def _service(client: Client) -> Iterator[Finding]:
    try:
        info = Client(client.address, timeout_s=5.0).get("/info")
    except Failure as failure:
        yield Finding("service", NOTE, failure.message)
        return
    who = f"you are {info.get('user')}, {'an administrator' if info.get('is_admin') else 'a user'}"
    serves = f"it serves {info.get('serves')}"
    yield Finding("service", OK, f"{info.get('version')} answers at {client.address}; {who}; {serves}")
    journal = info.get("journal") or {}
    if journal:
        size, last = format_bytes(int(journal.get("size_bytes") or 0)), journal.get("last_seq", 0)
        yield Finding(
            "journal", OK, f"{journal.get('events', 0)} records, {size}, last {last}, in {info.get('state_dir')}"
        )
