"""`fairlead demo`: the service with a sample workload of real processes, live in the terminal.

Decides the commands of the workload, their sizes, and the order: start a service of its own, submit, show, clean up.
Never touches another service or its state. Invariant: when it has ended, however it ended, no process of it is left,
the journal and the logs stay; it needs little of the machine (each command sleeps most of the time) and asks for shares
of a declared capacity, so that it goes the same way on every machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket as sockets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli import top
from fairlead.cli.app import FAILED, Failure, command, complain
from fairlead.cli.difference import counted
from fairlead.cli.filters import LIVE_STATES
from fairlead.cli.submit import describe, send
from fairlead.cli.watch import Watcher
from fairlead.cli.web import way_in
from fairlead.client.address import Address
from fairlead.client.errors import ClientError
from fairlead.client.sync import Client
from fairlead.places import DEFAULT_PORT

if TYPE_CHECKING:
    from fairlead.wire.jobs import JobDetails

CORES = 4
"""Cores that the demo declares, whatever the machine has."""
MEMORY = "8Gi"


@dataclass(frozen=True, slots=True)
class Scene:
    """What happens at one moment of the demo."""

    at_s: float
    says: str
    jobs: tuple[dict[str, Any], ...]


def _steps(name: str, steps: int) -> list[str]:
    """A command that prints a line a second, works a little, and stops politely when asked to."""
    program = f"""
    trap 'echo "{name}: asked to stop, saving what there is"; sleep 1; exit 143' TERM
    i=0
    while [ $i -lt {steps} ]; do
        i=$((i + 1)); echo "{name}: step $i of {steps}"
        j=0; while [ $j -lt 2000 ]; do j=$((j + 1)); done
        sleep 1 & wait $!
    done
    echo "{name}: done"
    """
    return ["sh", "-c", "\n".join(line.strip() for line in program.strip().splitlines())]


def _python(name: str, seconds: int) -> list[str]:
    """A Python program that computes in short bursts."""
    program = (
        f"import time\nfor i in range({seconds}):\n    t = time.process_time()\n"
        f"    while time.process_time() - t < 0.1:\n        sum(range(1000))\n"
        f"    print('{name}: epoch', i + 1, flush=True)\n    time.sleep(0.9)"
    )
    return [sys.executable, "-c", program]


def _job(name: str, queue: str, cpu: str, priority: int, command: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        "queue": queue,
        "cpu": cpu,
        "memory": "256Mi",
        "priority": priority,
        "grace": "3s",
        "command": list(command),
        "tags": {"demo": "yes"},
    }


def scenes() -> list[Scene]:
    """The whole story, in the order of time (about a minute)."""
    return [
        Scene(
            0.0,
            "A training run and two batch jobs fill the machine.",
            (
                _job("train", "root.research.team-a", "2", 10, _python("train", 16)),
                _job("nightly-report", "root.batch", "1", 0, _steps("nightly-report", 40)),
                _job("thumbnails", "root.batch", "1", 0, _steps("thumbnails", 40)),
            ),
        ),
        Scene(
            3.0,
            "One more batch work: it is no more important than the others, so it has to wait.",
            (_job("mail-digest", "root.batch", "1", 0, _steps("mail-digest", 10)),),
        ),
        Scene(
            7.0,
            "Somebody opens a notebook. It is more important, so the batch jobs have to make room.",
            (_job("notebook", "root.interactive", "2", 50, _steps("notebook", 15)),),
        ),
        Scene(
            11.0,
            "One asks for more than the whole machine has: it is told so.",
            (_job("too-large", "root.batch", str(CORES * 2), 0, _steps("too-large", 1)),),
        ),
        Scene(
            13.0,
            "One will fail: its exit status is kept.",
            (_job("broken", "root.batch", "0.5", 5, ["sh", "-c", "echo 'no such input' >&2; sleep 2; exit 3"]),),
        ),
    ]


def where_to_look(directory: str, socket: str, url: str, state: str, pages: str = "") -> list[str]:
    """What to try next, as lines. `directory` is where the command is, if the shell would not find it by itself;
    `pages`: an address that opens the pages, once.
    """
    quoted = shlex.quote(socket)
    path = f" PATH={shlex.quote(directory)}:$PATH" if directory else ""
    look = [f"In a browser, within a minute: {pages}", "(`fairlead web` makes another)."] if pages else []
    return [
        *look,
        "In another terminal:",
        f"  export FAIRLEAD_SOCKET={quoted}{path}",
        "  fairlead ls -a; fairlead why; fairlead queues; fairlead top",
        "  fairlead show KEY; fairlead logs KEY",
        "  fairlead submit --queue root.batch -- sleep 60",
        f"  curl --unix-socket {quoted} http://localhost/api/v1/jobs",
        f"Ctrl-C stops the demo and its jobs. Served at {url}; journal and logs in {state}.",
    ]


_START_S = 30.0
_STOP_S = 15.0
_HOST = "127.0.0.1"
_LONGEST_SOCKET = 100
"""Bytes; the kernel's limit for the path of a socket is 107."""


@command("demo", examples="fairlead demo\nfairlead demo --once | tee demo.log")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=Path(".fairlead"),
    metavar="DIR",
    help="Where its journal and logs are kept.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, metavar="N", help="TCP port to serve on.")
@click.option("--once", is_flag=True, help="Leave when the sample jobs have ended, instead of serving on.")
def demo(state: Path, port: int, once: bool) -> None:
    """Show it at work, with real processes.

    Starts a service of its own on a declared capacity of 4 cores, submits a sample workload to several queues, shows
    what happens, and goes on serving until Ctrl-C. Its job is stopped with it.
    """
    state = state.absolute()
    _require_free(port)
    with _interruptible(), _service(state, port) as (client, process):
        _cancel_all(client, "from an earlier demo")
        try:
            _play(client, state, f"http://{_HOST}:{port}", once, lambda: process.poll() is None)
        except KeyboardInterrupt:
            print(flush=True)
        finally:
            with _undisturbed(), suppress(Failure):
                stopped = _cancel_all(client, "of the demo")
                deadline = time.monotonic() + _STOP_S
                while any(client.jobs(state=LIVE_STATES)) and time.monotonic() < deadline:
                    time.sleep(0.1)
                complain(f"the demo is over ({counted(stopped)} stopped); its journal and logs are in {state}")


def _require_free(port: int) -> None:
    try:
        with sockets.socket() as probe:
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            probe.bind((_HOST, port))
    except OSError as error:
        raise Failure(
            f"cannot serve on {_HOST}:{port}: {(error.strerror or str(error)).lower()}. Is a demo running already? "
            f"Choose another port: `fairlead demo --port {port + 1}`."
        ) from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the demo as Ctrl-C does."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(_number: int, _frame: Any) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)  # A second one must not break in while the first is on its way out.
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Clean up without being interrupted half-way; it takes seconds at most."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _service(state: Path, port: int) -> Iterator[tuple[Client, subprocess.Popen[bytes]]]:
    """A service of the demo's own, ended with it."""
    try:
        state.mkdir(parents=True, exist_ok=True)
        log = (state / "service.log").open("ab")
    except OSError as error:
        raise Failure(f"cannot keep anything in {state}: {error.strerror}; choose another place with --state") from None
    with log, _socket_path(state) as socket:
        began = log.tell()
        where = ["--state", str(state), "--socket", socket, "--host", _HOST, "--port", str(port)]
        has = ["--resource", f"vcore={CORES}", "--resource", f"memory={MEMORY}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "fairlead.cli.attached", str(os.getpid()), "up", *where, *has],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            client = Client(Address(socket=socket))
            _wait_until_up(process, client, state / "service.log", began)
            yield client, process
        finally:
            with _undisturbed():
                _end(process)


@contextmanager
def _socket_path(state: Path) -> Iterator[str]:
    """A path for the socket: in the state directory, or in a temporary one where that path is too long."""
    path = str(state / "fairlead.sock")
    if len(os.fsencode(path)) <= _LONGEST_SOCKET:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        yield str(Path(directory) / "fairlead.sock")


def _wait_until_up(process: subprocess.Popen[bytes], client: Client, log: Path, began: int) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        ended = process.poll()
        if ended is None:
            try:
                client.service()
                return
            except ClientError as failure:
                if time.monotonic() > deadline:
                    raise Failure(f"the service did not start within {_START_S:.0f} s; see {log}") from failure
        else:
            with log.open("rb") as content:
                content.seek(began)
                said = content.read().decode(errors="replace").strip().splitlines()[-8:]
            raise Failure("the service of the demo did not start", FAILED, said)
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _cancel_all(client: Client, whose: str) -> int:
    rows = list(client.jobs(state=LIVE_STATES))
    if rows:
        complain(f"stopping {counted(len(rows))} {whose}")
    for row in rows:
        with suppress(ClientError):
            client.cancel(row.key)
    return len(rows)


def _play(client: Client, state: Path, url: str, once: bool, alive: Callable[[], bool]) -> None:
    watcher = Watcher(client)
    watcher.listen()
    player = _Player(client, watcher)
    player.start()

    def done() -> bool:
        return player.problem is not None or not alive() or (once and player.over())

    footer = where_to_look(_directory(), client.address.socket, url, str(state), way_in(client.ticket()))
    try:
        if sys.stdout.isatty():
            title = f"fairlead demo, real processes on {CORES} declared cores"
            top.live(watcher, 1.0, title, footer, whole_screen=True, until=done)
        else:
            print("\n".join(footer), flush=True)
            top.print_changes(watcher, 1.0, done)
    finally:
        watcher.stop()
        player.stop()
    if not alive():
        raise Failure(f"the service of the demo has ended; see {state / 'service.log'}")
    if player.problem is not None:
        raise player.problem


def _directory() -> str:
    """Where the command is, if the user's shell would not find it by itself."""
    beside = Path(sys.executable).parent
    return "" if shutil.which("fairlead") or not (beside / "fairlead").exists() else str(beside)


class _Player:
    """Submits the scenes when it is their time, in a thread of its own."""

    def __init__(self, client: Client, watcher: Watcher) -> None:
        self.client, self.watcher = client, watcher
        self.problem: Failure | ClientError | None = None
        self._keys: list[str] = []
        self._played = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin the story."""
        self._thread.start()

    def stop(self) -> None:
        """Submit nothing more."""
        self._stopped.set()
        self._thread.join()

    def over(self) -> bool:
        """Whether all was submitted and all that can run has ended."""
        return self._played and all(self._settled(self.client.job(key)) for key in self._keys)

    @staticmethod
    def _settled(job: JobDetails) -> bool:
        vain = job.reason is not None and job.reason.code == "too-big-for-every-node"
        return job.state not in LIVE_STATES or (job.state == "waiting" and vain)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            for scene in scenes():
                if self._stopped.wait(max(0.0, began + scene.at_s - time.monotonic())):
                    return
                self.watcher.tell(f"-- {scene.says}")
                rows = send(self.client, [describe(job | {"cwd": "/"}, job["name"]) for job in scene.jobs])
                self._keys += [row.key for row in rows]
            self._played = True
        except (Failure, ClientError) as failure:
            self.problem = failure
