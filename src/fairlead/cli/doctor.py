"""`fairlead doctor`: what this machine can do, and whether the service is well.

Decides what is looked at, how bad a finding is, and what would put it right. Changes nothing but what `--fix` says.
Invariant: each finding is one sentence that also says what to do, if there is something to do; what `--fix` does loses
nothing.
"""

from __future__ import annotations

import os
import platform
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

import click

from fairlead.cli import render
from fairlead.cli.app import FAILED, Status, command, connecting, show_output
from fairlead.client.errors import ClientError
from fairlead.client.sync import Client
from fairlead.core.model.quantities import format_bytes
from fairlead.places import client_config, default_state_dir
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
    fix: str = ""
    """What `--fix` does about it, as the rest of a sentence; empty: it cannot."""


Repairs = dict[str, Callable[[], None]]
"""By the `fix` of a finding what does it. Each raises OSError if it cannot."""


@command("doctor", examples="fairlead doctor\nfairlead doctor --fix\nfairlead doctor --json")
@click.option("--fix", is_flag=True, help="Put right what can be: directories, modes, a left-over socket.")
@show_output
@connecting
def doctor(connect: Callable[[], Client], fix: bool, output: str) -> Status:
    """Say what this machine can enforce, and more.

    What is enforced is said as the service of this machine has it; where none answers, as one would that you start.
    Versions, packages, the state directory, whether a service answers, and whether its queue file names accounts that
    this machine does not know. --fix makes the state directory, gives it and the client's configuration the modes they
    should have, and removes a socket on which nothing listens; what else there is to do is said in the findings.

    Exit status 1 if something is bad (a service that does not answer is only noted), or could not be put right.
    """
    repairs: Repairs = {}
    checks: list[Callable[[], Iterator[Finding]]] = [
        _versions,
        _packages,
        _sqlite,
        lambda: _state(repairs),
        lambda: _client_file(repairs),
        lambda: _machine(connect),
        lambda: _service(connect, repairs),
    ]
    # Each is put right before the next is looked at: the file of the client may say where the service is.
    findings = [_repaired(finding, repairs) if fix else finding for check in checks for finding in check()]
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


def _repaired(finding: Finding, repairs: Repairs) -> Finding:
    """The finding after what could be done about it."""
    if not finding.fix:
        return finding
    try:
        repairs[finding.fix]()
    except OSError as error:
        return replace(finding, level=BAD, sentence=f"{finding.sentence}; could not {finding.fix}: {error.strerror}")
    return replace(finding, level=OK, sentence=f"{finding.sentence}; done: {finding.fix}", fix="")


def _state(repairs: Repairs) -> Iterator[Finding]:
    path = Path(default_state_dir())
    place = path
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        yield Finding("state", NOTE, f"{path} cannot be written by you; start `fairlead up` with --state DIR")
        return
    # Users reach their own output below that of root, and nothing else.
    wanted = 0o711 if os.geteuid() == 0 else 0o700
    if place != path:
        fix = f"make {path}"
        repairs[fix] = lambda: path.mkdir(mode=wanted, parents=True)
        yield Finding("state", OK, f"{path} is not there yet, and can be made", fix)
    elif path.stat().st_mode & 0o777 & ~wanted:
        fix = f"chmod {wanted:o} {path}"
        repairs[fix] = lambda: path.chmod(wanted)
        yield Finding("state", NOTE, f"{path} is open to others; `{fix}`", fix)
    else:
        yield Finding("state", OK, f"{path} is there and writable")


def _client_file(repairs: Repairs) -> Iterator[Finding]:
    """A file with tokens that others can read is refused by every command."""
    path = Path(client_config())
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        return
    if mode & 0o077 and "token" in path.read_text(errors="replace"):
        fix = f"chmod 600 {path}"
        repairs[fix] = lambda: path.chmod(0o600)
        yield Finding("contexts", BAD, f"others can read the tokens in {path}; `{fix}`", fix)


def _machine(connect: Callable[[], Client]) -> Iterator[Finding]:
    """What is enforced by the service of this machine, and where none answers, by one that the caller would start."""
    with suppress(ClientError):
        address = connect().address
        if address.socket and (of := Client(address, timeout_s=5.0).service().machine) is not None:
            yield from (Finding(each.name, OK if each.enforced else NOTE, each.how) for each in of.capabilities)
            return
    try:
        from fairlead.local.devices import read_hierarchies
        from fairlead.local.gpus import found_gpus
        from fairlead.local.means import probe
    except ModuleNotFoundError:
        return
    for capability in probe(read_hierarchies()).capabilities(len(found_gpus())):
        yield Finding(capability.name, OK if capability.enforced else NOTE, capability.how)


def _service(connect: Callable[[], Client], repairs: Repairs) -> Iterator[Finding]:
    try:
        client = connect()
    except ClientError as error:
        yield Finding("service", BAD, error.message)
        return
    try:
        found = Client(client.address, timeout_s=5.0).service()
    except ClientError as error:
        yield Finding("service", NOTE, error.message, _stale_socket(client.address.socket, repairs))
        return
    who = f"you are {found.user}, {'an administrator' if found.is_admin else 'a user'}"
    of = found.machine
    serves = f"it serves {of.serves}" if of else f"it schedules {found.cluster.nodes} nodes" if found.cluster else ""
    yield Finding("service", OK, f"{found.version} answers at {client.address}; {who}; {serves}")
    for problem in found.problems:
        yield Finding("service", BAD, problem)
    if of:
        size = format_bytes(of.journal.size_bytes)
        yield Finding(
            "journal", OK, f"{of.journal.events} records, {size}, last {of.journal.last_seq}, in {of.state_dir}"
        )
        yield from _accounts(client)


def _stale_socket(path: str, repairs: Repairs) -> str:
    """How to be rid of a socket on which nothing listens; nothing where that is not what is wrong."""
    if not path or not Path(path).is_socket():
        return ""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            fix = f"remove {path}, on which nothing listens"
            repairs[fix] = Path(path).unlink
            return fix
        except OSError:
            return ""
    return ""


def _accounts(client: Client) -> Iterator[Finding]:
    """Names in the queue file that this machine does not know; only where the service is of this machine."""
    if not client.address.socket:
        return
    from fairlead.config import ConfigurationError, usable
    from fairlead.local.unknown_accounts import unknown_accounts

    try:
        for sentence in unknown_accounts(usable(client.config().text)):
            yield Finding("accounts", NOTE, sentence)
    except (ClientError, ConfigurationError) as error:
        yield Finding("accounts", NOTE, f"the queue file could not be looked at: {error}")
