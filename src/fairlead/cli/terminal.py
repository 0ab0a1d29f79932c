"""`fairlead attach`: this terminal becomes that of a job.

Decides when it does, and when it is left: with the end of the job, or by the keys that detach. Never ends the job.
Invariant: however it is left, this terminal is as it was before.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fairlead.cli import app, render
from fairlead.cli.app import Status, complain, wrong_usage
from fairlead.cli.follow import exit_status, how_it_ended, patiently, until_it_runs
from fairlead.client.errors import Refused, Unreachable
from fairlead.client.sync import LIVE, Client

if TYPE_CHECKING:
    from fairlead.client.terminals import Terminal
    from fairlead.wire.jobs import JobDetails

_F = TypeVar("_F", bound=Callable[..., Any])
USUAL_KEYS: Final = "ctrl-]"
_KEY = re.compile(r"ctrl-([a-z@\[\\\]^_])|([ -~])", re.IGNORECASE)
_END_OF_INPUT = b"\x04"
_PIECE = 65_536
_LOOK_S = 0.1

detach_option = click.option(
    "--detach-keys",
    metavar="KEYS",
    default=USUAL_KEYS,
    envvar="FAIRLEAD_DETACH_KEYS",
    show_envvar=True,
    help="Keys that leave the terminal, such as ctrl-] or ctrl-p,ctrl-q.",
)


def keys_of(text: str) -> bytes:
    """What these keys send. Raises `Failure` (usage)."""
    found = b""
    for word in text.split(",") if text != "," else [text]:
        key = _KEY.fullmatch(word)
        if key is None:
            raise wrong_usage(
                f"--detach-keys: {word!r} is no key; write ctrl-] or a character, several with commas: ctrl-p,ctrl-q"
            )
        found += bytes([ord(key[1].upper()) & 0x1F]) if key[1] else key[2].encode()
    return found


class Typed:
    """What is typed, as far as it is not the keys that detach."""

    def __init__(self, keys: bytes) -> None:
        self.left = False
        """Whether these keys were typed."""
        self._keys, self._held = keys, b""

    def feed(self, typed: bytes) -> bytes:
        """What of it is meant for the job; the beginning of the keys is held back until it is clear."""
        text = self._held + typed
        self._held = b""
        at = text.find(self._keys)
        if at >= 0:
            self.left = True
            return text[:at]
        for length in range(min(len(self._keys) - 1, len(text)), 0, -1):
            if text.endswith(self._keys[:length]):
                self._held = text[-length:]
                return text[:-length]
        return text


@app.command("attach", examples="fairlead attach 17\nfairlead attach --detach-keys ctrl-p,ctrl-q 17")
@app.key_argument
@detach_option
@app.connected
def attach(client: Client, key: str, detach_keys: str) -> Status:
    """Sit at the terminal of a job.

    Of one that was submitted by `fairlead run --pty`; several may sit there at once. What is typed goes to the job,
    Ctrl-C too. Ctrl-] leaves; the job goes on. If it ends meanwhile, its exit status is that of this command.
    """
    keys, job = keys_of(detach_keys), client.job(app.named(client, key))
    if not job.terminal:
        shows = f"`fairlead logs -f {key}` shows what it writes"
        raise app.Failure(f"{key} has no terminal: only `fairlead run --pty` gives one; {shows}", app.REFUSED)
    return stay(client, job.key, keys)


def stay(client: Client, key: str, keys: bytes) -> Status:
    """Wait until the job runs, sit at its terminal, and leave with its exit status, or 0 where it goes on.

    Each attempt has a terminal of its own: who sits at that of one comes to that of the next.
    """
    while True:
        until_it_runs(client, key)
        attempt = client.job(key).attempts
        if _sit(client, key, Typed(keys)):
            complain(f"{key} goes on; `fairlead attach {key}` comes back")
            return None
        job = _after(client, key, attempt)
        if job.state not in LIVE:
            if text := how_it_ended(job):
                complain(render.plain(f"{key} {job.state}: {text}"))
            return exit_status(job)


def _after(client: Client, key: str, attempt: int) -> JobDetails:
    """The job once this attempt, whose terminal is closed, is over: it has ended, or is tried again."""
    while True:
        job = patiently(lambda: client.job(key))
        if job.state not in LIVE or job.state == "waiting" or job.attempts > attempt:
            return job
        time.sleep(_LOOK_S)


def _sit(client: Client, key: str, typed: Typed) -> bool:
    """Until the job closes its terminal, or the user leaves (True). Goes on where the service was restarted."""
    seen = False
    with _raw(), _resizes() as resized:
        while True:
            try:
                with client.terminal(key) as terminal:
                    try:
                        return _pass_on(terminal, typed, resized)
                    finally:
                        seen |= terminal.seen
            except Unreachable:
                if patiently(lambda: client.job(key)).state in LIVE:
                    continue
            except Refused:
                if (job := client.job(key)).state in LIVE or not job.terminal:
                    raise
            if not seen:  # The job was faster: what it wrote is in its log.
                sys.stdout.buffer.write(client.log(key))
                sys.stdout.buffer.flush()
            return False


def _pass_on(terminal: Terminal, typed: Typed, resized: int) -> bool:
    from fairlead.client.terminals import ALIVE_EVERY_S

    source: int | None = _input()
    _say_size(terminal)
    if source is None:
        terminal.type(_END_OF_INPUT)
    alive_at = time.monotonic() + ALIVE_EVERY_S
    while not terminal.over:
        waited = [each for each in (terminal.socket, source, resized) if each is not None]
        ready = select.select(waited, [], [], max(0.0, alive_at - time.monotonic()))[0]
        if terminal.socket in ready:
            _show(terminal)
        if resized in ready:
            os.read(resized, _PIECE)
            _say_size(terminal)
        if source is not None and source in ready:
            said = os.read(source, _PIECE)
            if content := typed.feed(said):
                terminal.type(content)
            if typed.left:
                return True
            if not said:
                terminal.type(_END_OF_INPUT)
                source = None
        if time.monotonic() >= alive_at:
            terminal.alive()
            alive_at = time.monotonic() + ALIVE_EVERY_S
    return False


def _show(terminal: Terminal) -> None:
    out = sys.stdout.buffer
    out.write(terminal.receive())
    while not terminal.over and getattr(terminal.socket, "pending", int)():  # What TLS has read already.
        out.write(terminal.receive())
    out.flush()


def _input() -> int | None:
    """Where is typed; None: nowhere."""
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError):
        return None


def _say_size(terminal: Terminal) -> None:
    with contextlib.suppress(OSError, ValueError):
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        terminal.resize(rows, columns)


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Every key is passed on; afterwards all is as it was."""
    source = _input()
    if source is None or not os.isatty(source):
        yield
        return
    before, ended = termios.tcgetattr(source), signal.signal(signal.SIGTERM, _leave)
    try:
        tty.setraw(source, termios.TCSADRAIN)  # What was typed ahead is kept.
        yield
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, ended)
        print(file=sys.stderr)


def _leave(number: int, _frame: Any) -> None:
    """Killed by somebody else; this terminal is used on."""
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _resizes() -> Iterator[int]:
    """A descriptor that has something to read when this terminal has another size."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)

    def resized(_number: int, _frame: Any) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(tell, b".")

    before = signal.signal(signal.SIGWINCH, resized)
    try:
        yield told
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(told)
        os.close(tell)
