"""`fairlead service`: have systemd run the service, for this machine or for one user.

Decides where the unit goes and what systemd is told. Never starts the service itself, and never touches its state.
Invariant: a unit that somebody else wrote is neither overwritten nor removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from fairlead.cli import render
from fairlead.cli.app import FAILED, REFUSED, Failure, Group, Status, wrong_usage
from fairlead.cli.unit_file import NAME, Unit
from fairlead.places import default_state_dir

MADE_BY = "# Made by `fairlead service install`."
service = Group("service", help="Have systemd run the service: at every start of the machine, and again when it fails.")
_for_whom = click.option(
    "--system/--user",
    "system",
    default=None,
    help="For everybody, by root, or for you alone [--system as root, else --user].",
)


@dataclass(frozen=True, slots=True)
class _Systemd:
    """The systemd of the machine, or of a user."""

    system: bool

    @classmethod
    def of(cls, system: bool | None) -> _Systemd:
        """Whichever is meant. Raises `Failure` for the machine's without root's rights."""
        root = os.geteuid() == 0
        if system and not root:
            raise Failure("a service for everybody is installed by root; use sudo, or --user for your own", REFUSED)
        return cls(root if system is None else system)

    @property
    def file(self) -> Path:
        """Where the unit is."""
        if self.system:
            return Path("/etc/systemd/system") / NAME
        config = os.environ.get("XDG_CONFIG_HOME", "")
        return Path(config if config.startswith("/") else Path.home() / ".config") / "systemd" / "user" / NAME

    def call(self, *words: str) -> str:
        """Have systemctl do it; what it printed. Raises `Failure`."""
        if shutil.which("systemctl") is None:
            raise Failure(
                "this machine has no systemctl; `fairlead service install --print` shows what to run, by what starts "
                "services here",
                FAILED,
            )
        words = ("systemctl", *(() if self.system else ("--user",)), *words)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
            raise Failure(f"`{' '.join(words)}`: {said}", FAILED)
        return done.stdout.strip()

    def asked(self, word: str) -> str:
        """What `systemctl is-...` says, also where that is no."""
        if shutil.which("systemctl") is None:
            return "unknown: this machine has no systemctl"
        words = ("systemctl", *(() if self.system else ("--user",)), word, NAME)
        said = subprocess.run(words, capture_output=True, text=True, check=False)
        return said.stdout.strip() or said.stderr.strip().splitlines()[-1]


_EXAMPLES = """
sudo fairlead service install --config /etc/fairlead/queues.yaml -- --admin ann --no-tcp
fairlead service install --user --print
"""


@service.command("install", examples=_EXAMPLES)
@_for_whom
@click.option(
    "--config", "-c", type=click.Path(path_type=Path), metavar="FILE", help="The queues.yaml, watched for changes."
)
@click.option("--print", "show", is_flag=True, help="Print the unit and do nothing.")
@click.option("--no-start", is_flag=True, help="Write the unit; do not enable or start it.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTION...]", help="Options of `fairlead up`.")
def install(system: bool | None, config: Path | None, show: bool, no_start: bool, options: tuple[str, ...]) -> None:
    """Write a unit for systemd, and start it now and at every start of the machine.

    As root it serves everybody: clients find its socket, /run/fairlead.sock, by themselves. Its log is in the system's
    journal (`journalctl -u fairlead`). When the unit stops or is restarted, jobs go on. Installed again with other
    options, the unit is replaced.
    """
    root = os.geteuid() == 0
    manager = _Systemd(root if system is None else system) if show else _Systemd.of(system)
    words = ["up", *(("--config", str(config.absolute())) if config is not None else ()), *options]
    _require_options(words[1:])
    text = Unit(command=[*_program(), *words], system=manager.system).text()
    if show:
        print(text, end="")
        return
    file = manager.file
    if file.exists() and not file.read_text(errors="replace").startswith(MADE_BY):
        raise Failure(f"{file} is there and not of `fairlead service install`; move it away", REFUSED)
    if not no_start:
        manager.call("--version")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o644)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror}", FAILED) from error
    print(render.plain(f"{file} is written"))
    if no_start:
        return
    manager.call("daemon-reload")
    manager.call("enable", NAME)
    manager.call("restart", NAME)
    print(f"{NAME} runs; its log: journalctl {'' if manager.system else '--user '}-u fairlead")
    if not manager.system:
        print("note: it ends when you log out, unless `loginctl enable-linger` was said once", file=sys.stderr)


def _program() -> list[str]:
    """How this program is run: the command beside the interpreter, else the module."""
    beside = Path(sys.prefix) / "bin" / "fairlead"
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "fairlead.cli.main"]


def _require_usable(config: Path) -> None:
    """Raises `Failure` for a queue file with which the service could not start."""
    from fairlead.config import ConfigurationError, file_text, usable

    try:
        usable(file_text(config), str(config))
    except ConfigurationError as error:
        raise Failure(f"{config} cannot be used: {error}", FAILED) from None


def _require_options(words: list[str]) -> None:
    """Raises `Failure` (usage) for what `up` would not take: a unit that cannot start would be tried for ever."""
    from fairlead.cli.up import up

    try:
        given = up.make_context("up", list(words)).params
    except click.UsageError as error:
        raise wrong_usage(f"up: {error.format_message()}") from None
    except click.exceptions.Exit:
        raise wrong_usage("up: --help is no option of a unit") from None
    for param in up.params:
        path = given.get(param.name or "")
        if isinstance(path, Path) and not path.is_absolute():
            raise wrong_usage(f"up: {param.opts[0]}: a unit begins in another directory; write {path.absolute()}")
    if given["config"] is not None:
        _require_usable(given["config"])


@service.command("uninstall")
@_for_whom
def uninstall(system: bool | None) -> None:
    """Stop the service, and remove its unit. Jobs go on, and its state stays.

    The next service with the same state takes over what still runs.
    """
    manager = _Systemd.of(system)
    file = manager.file
    if not file.exists():
        raise Failure(f"there is no {file}; nothing was installed", REFUSED)
    if not file.read_text(errors="replace").startswith(MADE_BY):
        raise Failure(f"{file} is not of `fairlead service install`; remove it yourself", REFUSED)
    manager.call("disable", "--now", NAME)
    file.unlink()
    manager.call("daemon-reload")
    print(
        render.plain(f"{file} is removed; jobs go on, and the state stays in {default_state_dir()}, if not elsewhere")
    )


@service.command("status")
@_for_whom
def status(system: bool | None) -> Status:
    """Say whether a unit is installed, starts with the machine, and runs.

    Exit status 1 if it does not run.
    """
    root = os.geteuid() == 0
    manager = _Systemd(root if system is None else system)
    file = manager.file
    runs = manager.asked("is-active")
    rows = [
        ("unit", str(file) if file.exists() else f"{file} is not there"),
        ("at the start of the machine", manager.asked("is-enabled")),
        ("now", runs),
    ]
    for what, said in rows:
        print(render.plain(f"{what}: {said}"))
    return None if runs == "active" else FAILED
