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

from fairlead.cli import render
from fairlead.cli.app import FAILED, Status, command, connected, show_output
from fairlead.client.errors import ClientError
from fairlead.client.sync import Client
from fairlead.core.model.quantities import format_bytes
from fairlead.places import default_state_dir
from fairlead.version import version_and_build

OK, NOTE, BAD = "ok", "note", "bad"
_MARKS = {OK: "green", NOTE: "yellow", BAD: "red"}
SERVICE_PACKAGES = ("fastapi", "starlette", "uvicorn", "uvloop", "prometheus-client")
"""What the extra `service` asks for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    level: str
    sentence: str


@command("doctor", examples="fairlead doctor\nfairlead doctor --json")
@show_output
@connected
def doctor(client: Client, output: str) -> Status:
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
    if not render.write_value([asdict(f) for f in findings], output):
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
    path = Path(default_state_dir())
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
        from fairlead.local.devices import read_hierarchies
        from fairlead.local.gpus import found_gpus
        from fairlead.local.means import probe
    except ModuleNotFoundError:
        return
    for capability in probe(read_hierarchies()).capabilities(len(found_gpus())):
        yield Finding(capability.name, OK if capability.enforced else NOTE, capability.how)


def _service(client: Client) -> Iterator[Finding]:
    try:
        found = Client(client.address, timeout_s=5.0).service()
    except ClientError as error:
        yield Finding("service", NOTE, error.message)
        return
    who = f"you are {found.user}, {'an administrator' if found.is_admin else 'a user'}"
    of = found.machine
    serves = f"it serves {of.serves}" if of else f"it schedules {found.cluster.nodes} nodes" if found.cluster else ""
    yield Finding("service", OK, f"{found.version} answers at {client.address}; {who}; {serves}")
    if of:
        size = format_bytes(of.journal.size_bytes)
        yield Finding(
            "journal", OK, f"{of.journal.events} records, {size}, last {of.journal.last_seq}, in {of.state_dir}"
        )
