"""`fairlead up`: what it is told, with its defaults; bring everything up in order, serve, and go down in order.

Decides the order of start and stop. Never decides anything while it runs. Invariant: what is started is stopped in the
opposite order, whatever fails; work on the machine goes on in any case.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from fairlead.config import ConfigurationError, default_text, usable
from fairlead.core.model.quantities import format_bytes
from fairlead.core.model.resources import Resources
from fairlead.journal.format import JournalError
from fairlead.local import orphans
from fairlead.local.callers import Whose, whose
from fairlead.local.devices import detect_capacity, read_hierarchies
from fairlead.local.disk import Disk
from fairlead.local.machine import Machine
from fairlead.local.means import stand_before_jobs
from fairlead.local.memory_guard import MemoryGuard
from fairlead.local.place import LocalPlace
from fairlead.local.user_bounds import UserBounds, UserLimits
from fairlead.places import DEFAULT_PORT, default_socket, default_state_dir, journal_of
from fairlead.runtime import RecoveryError, Runtime, Turn
from fairlead.runtime.configurations import configure
from fairlead.runtime.process import log_to_stderr, loop_factory, on_signals, search_seldom, tell_manager
from fairlead.service.account_checks import watch_accounts
from fairlead.service.configfile import ConfigFile
from fairlead.service.configuration import BUILT_IN
from fairlead.service.duties import again, guard_memory, note_waits
from fairlead.service.forecaster import Forecaster, ScoreFile
from fairlead.service.history_events import Hub
from fairlead.service.http.app import make_app
from fairlead.service.http.connections import Connections, raise_descriptors
from fairlead.service.http.server import Server
from fairlead.service.http.sockets import ListenError, Tcp, on_unix, remove_socket
from fairlead.service.identity import Gate, Tokens, TokensError
from fairlead.service.machine import MachinePlace
from fairlead.service.pages import Pages
from fairlead.service.past_work import PastWork
from fairlead.service.resources_file import ResourcesFile
from fairlead.service.retention import Retention, keep
from fairlead.service.sessions import Sessions
from fairlead.service.start_checks import StartError, looked_at, refused
from fairlead.service.state_directory import StateError, state_directory
from fairlead.service.windows import Announcer, keep_the_clock
from fairlead.service.yunikorn.history import HistoryRecords
from fairlead.version import version
from fairlead.wire.notices import ALL_KINDS

log = logging.getLogger("fairlead.service")

START_WITHIN_S = 300
OUTPUT_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How to serve."""

    config: Path | None = None
    """The queue file, watched for changes; None: what is in the journal, or the built-in one the first time."""
    config_poll_s: float = 1.0
    """Between two looks at it. A change counts when two looks find the same."""
    state_dir: Path = field(default_factory=lambda: Path(default_state_dir()))
    host: str = "127.0.0.1"
    port: int | None = DEFAULT_PORT
    """TCP port; 0: any free one; None: no TCP at all."""
    tls_cert: Path | None = None
    """The certificate for TCP (PEM, those up to its authority behind it), read anew when it changes; None: no TLS."""
    tls_key: Path | None = None
    """Its key; None: it is in the same file."""
    allow_plain_http: bool = False
    """Listen beyond loopback without TLS."""
    socket: Path | None = field(default_factory=lambda: Path(default_socket()))
    """Unix socket; None: none."""
    pages_port: int | None = None
    """TCP port of the pages, on the same address; 0: any free one; None: no pages."""
    admins: tuple[str, ...] = ()
    """Users who may see and stop everybody's jobs, beside root and the service's own user."""
    open_reads: bool = False
    """Let everybody read /ws/v1 and /metrics over TCP without a token, and look at the pages as a guest."""
    private_names: bool = False
    """Show the names of jobs to nobody but their owners and administrators."""
    resources: Mapping[str, int] | None = field(default_factory=dict)
    """Amounts to give out instead of those found: `vcore` in thousandths, `memory` in bytes, `gpu`, or any other.

    Empty: those of the last start; None: those found, whatever was declared before.
    """
    memory_pressure: str = "5%"
    """Below so much free memory (a part, or an amount such as `512Mi`) jobs are stopped, one by one; `off`: never."""
    memory_budget: int | None = None
    """Bytes that all jobs together may use, instead of what the machine has; None: that."""
    keep_free: int | None = None
    """Bytes to keep free on the disk of the state directory for cancels and ends; None: what fits its size."""
    output_bytes: int = OUTPUT_BYTES
    """So much of each output of a run is kept where its queue does not say it; 0: all."""
    user_bounds: UserBounds = field(default_factory=UserBounds)
    """What one user may have or do at a time."""
    notify: frozenset[str] = ALL_KINDS
    """Kinds of messages that users may have sent about their jobs."""
    retention: Retention = field(default_factory=Retention)
    accept_loss: str = ""
    """The name of a loss of the journal that is given up, as the refusal to start said it."""
    log_level: str = "info"
    on_ready: Callable[[Listening], None] | None = None
    """Called once, when requests are answered."""
    handle_signals: bool = True
    """Stop on SIGTERM and SIGINT; False for a service in a thread of another program."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a service answers."""

    socket: Path | None
    url: str | None
    stop: Callable[[], None]
    """Stop in order; may be called from any thread."""


def serve(options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit status: 0 after an orderly stop, 1 if it could not start or go on."""
    log_to_stderr(options.log_level)
    try:
        with ExitStack() as stack:
            try:
                place, sockets = bring_up(options, stack)
            except (OSError, RuntimeError) as error:
                # No memory for a thread is a RuntimeError.
                where = getattr(error, "filename", None) or f"state in {options.state_dir}"
                raise StartError(f"the service cannot start: {error} ({where})") from error
            stand_before_jobs(read_hierarchies())
            orphans.take_in()
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                return runner.run(answer(options, place, sockets))
    except (StartError, JournalError, RecoveryError, ListenError, TokensError, ConfigurationError, StateError) as error:
        sys.stderr.write(f"fairlead: {error}\n")
        return 1


# --- up -----------------------------------------------------------------------------------------------------------


def bring_up(options: ServeOptions, stack: ExitStack) -> tuple[MachinePlace, list[socket.socket]]:
    """Everything but the answering of requests; `stack` takes it down again. Raises what `serve` turns into words."""
    threshold, tcp = looked_at(options)
    state_dir = state_directory(options.state_dir)
    ours = version()
    as_root = os.geteuid() == 0
    kept = ResourcesFile(state_dir / "resources.json")
    declared = kept.declared(options.resources)
    gpus = range(declared["gpu"]) if "gpu" in declared else None
    # What all jobs may use together is what is given out, unless that is declared otherwise.
    budget = _budget(options.memory_budget)
    given = declared if budget is None else {"memory": budget, **declared}
    disk = Disk(state_dir, options.keep_free, journal_of(state_dir))
    local: LocalPlace = LocalPlace(
        lambda tell: Machine(state_dir / "runs", on_end=tell, on_begin=tell, gpus=gpus, capacity=given, disk=disk),
        state_dir / "runs",
        as_submitter=as_root,
        socket=options.socket.absolute() if options.socket is not None else None,
        output_bytes=options.output_bytes,
    )
    closing = stack.enter_context(ExitStack())
    closing.callback(local.close)
    runtime = Runtime(journal_of(state_dir), local, version=ours, pid=os.getpid(), accept_loss=options.accept_loss)
    closing.pop_all()
    stack.callback(runtime.close)
    _say_recovered(runtime)
    sockets, pages = _listen(options, tcp, state_dir, stack)
    tokens = Tokens(state_dir / "tokens.json")
    gate = _gate(options, tokens, pages.sessions)

    def whose_key(key: str) -> Whose | None:
        return whose(runtime.books.scheduler, found[0]) if (found := local.jobs.of(key)) else None

    hub = Hub(runtime.journal.path, whose_key)
    runtime.subscribe(hub)
    history_records = HistoryRecords(lambda: runtime.books.scheduler)
    runtime.subscribe(history_records)
    place = MachinePlace(
        runtime=runtime,
        local=local,
        machine=local.machine,
        disk=disk,
        gate=gate,
        tokens=tokens,
        tcp=tcp,
        hub=hub,
        records=history_records,
        pages=pages,
        state_dir=state_dir,
        version=ours,
        pid=os.getpid(),
        started_at_ms=time.time_ns() // 1_000_000,
        capabilities=local.machine.capabilities(),
        open_reads=options.open_reads,
        private_names=options.private_names,
        users=UserLimits(options.user_bounds),
        notify=options.notify,
        config_file=ConfigFile(options.config) if options.config is not None else None,
        past_work=PastWork(state_dir),
        forecaster=Forecaster(ScoreFile(state_dir / "forecasts.json")),
    )
    for subscriber in (place.forecaster, Announcer(), pages.changes):
        runtime.subscribe(subscriber)
    stack.callback(place.forecaster.store)
    _begin(runtime, local, place.config_file)
    # Only now: a start that is refused changes nothing for the next one.
    for different in kept.note(declared, local.machine.capacity(), hostname(), local.machine.gpus):
        log.warning("%s", different)
    place.memory_guard = MemoryGuard(threshold, budget, short=local.jobs.memory_short is not None)
    place.capabilities = [*place.capabilities, place.memory_guard.capability()]
    return place, sockets


def _budget(wanted: int | None) -> int | None:
    """The memory for all jobs together: what the machine has not cannot be promised."""
    has = detect_capacity(read_hierarchies())["memory"]
    if wanted is None or wanted <= has:
        return wanted
    log.warning("the memory budget is more than the %s that this machine has; that counts", format_bytes(has))
    return has


def _gate(options: ServeOptions, tokens: Tokens, sessions: Sessions) -> Gate:
    uid = os.geteuid()
    return Gate(
        tokens,
        admins=options.admins,
        own_uid=uid,
        everybody=uid == 0,
        guests=options.open_reads,
        sessions=sessions,
    )


def _say_recovered(runtime: Runtime) -> None:
    recovered = runtime.recovered
    begin = "a snapshot and " if recovered.from_snapshot else ""
    log.info("recovered from %s%d journal records in %.0f ms", begin, recovered.records, recovered.milliseconds)
    for note in recovered.notes:
        log.warning("%s", note)


def _listen(options: ServeOptions, tcp: Tcp, state_dir: Path, stack: ExitStack) -> tuple[list[socket.socket], Pages]:
    sockets, path = [], options.socket
    if path is not None:
        path = path.absolute()
        unix = on_unix(path)
        stack.callback(remove_socket, path, path.lstat().st_ino)
        stack.callback(unix.close)
        sockets.append(unix)
    if options.port is not None:
        over_tcp = tcp.listen(options.port)
        stack.callback(over_tcp.close)
        sockets.append(over_tcp)
    pages = Pages(Sessions(state_dir / "sessions.json"), guests=options.open_reads)
    pages.listen(tcp, options.pages_port if options.port is not None else None, options.socket, stack)
    return [*sockets, *pages.inside], pages


def hostname() -> str:
    """What this machine is called as a node."""
    return socket.gethostname() or "localhost"


def _begin(runtime: Runtime, local: LocalPlace, file: ConfigFile | None) -> None:
    """Queues, this machine as a node, and what was running: as one turn before all others."""
    reading = file.read() if file is not None else None
    if reading is not None and reading.spec is None and runtime.books.configurations.current is None:
        raise ConfigurationError(list(reading.problems))
    capacity = Resources(local.machine.capacity())

    def prepare(turn: Turn) -> str:
        refused = ""
        if file is not None and reading is not None:
            refused = file.begin(turn, reading)
        elif turn.books.configurations.current is None:
            refused = configure(turn, usable(default_text(), "default.yaml"), who="", source=BUILT_IN).refused
        return refused or local.register_node(turn, hostname(), capacity)

    first = local.open(runtime, prepare)
    runtime.start()
    if why := first.result(START_WITHIN_S):
        raise refused(why)


# --- serving ------------------------------------------------------------------------------------------------------


async def answer(options: ServeOptions, place: MachinePlace, sockets: list[socket.socket]) -> int:
    """Answer requests until told to stop; the exit status."""

    def end_streams() -> None:
        place.stopping.set()
        place.pages.changes.close()
        place.hub.readers.close()
        place.streams.close()

    of_user, own_uid = place.users.bounds.connections, place.gate.own_uid
    connections = Connections(raise_descriptors(), of_user=of_user, own_uid=own_uid)
    server = Server(make_app(place), end_streams, connections, place.tcp.certificate)
    if options.handle_signals:
        on_signals(server.stop)
    gate, guard = place.gate, place.memory_guard
    duties: dict[str, Callable[[], Awaitable[None]]] = {
        "what work waits for": lambda: note_waits(place),
        "memory": lambda: guard_memory(place, guard),
        "samples": place.keep_samples,
        "forecasts": lambda: place.forecaster.keep(place),
        "retention": lambda: keep(place, options.retention),
        "windows": lambda: keep_the_clock(place),
        "accounts": lambda: watch_accounts(place),
        "pages": place.pages.keep,
        "tokens": lambda: connections.end_with_tokens(gate.objection),
        "memory of the program": search_seldom,
        "its sockets": lambda: server.keep_reachable(sockets),
    }
    if (file := place.config_file) is not None:
        duties["the queue file"] = lambda: file.watch(place.runtime, options.config_poll_s)
    gc.collect()
    watching = [asyncio.create_task(again(what, duty)) for what, duty in duties.items()]
    watching.append(asyncio.create_task(_watch(server, place, options, sockets)))
    await server.serve(sockets=sockets)
    for task in watching:
        task.cancel()
    if place.runtime.failure is not None:
        sys.stderr.write(f"fairlead: the service had to stop: {place.runtime.failure}\n")
        return 1
    log.info("stopped; work goes on, the next start takes it over")
    return 0


async def _watch(server: Server, place: MachinePlace, options: ServeOptions, sockets: list[socket.socket]) -> None:
    """Say when it is ready; stop the server if the writer has ended."""
    while not server.started:
        await asyncio.sleep(0.01)
    unix = options.socket.absolute() if options.socket is not None else None
    url = next((place.tcp.url(s) for s in sockets if s.family != socket.AF_UNIX), None)
    listening = Listening(unix, url, server.stop)
    log.info("%s", _ready(place, listening))
    tell_manager("READY=1")
    if options.on_ready is not None:
        options.on_ready(listening)
    while not place.runtime.ended.is_set():
        await asyncio.sleep(0.5)
    server.should_exit = True


def _ready(place: MachinePlace, listening: Listening) -> str:
    where = " and ".join(str(each) for each in (listening.url, listening.socket) if each)
    whom = "everyone on this machine" if place.gate.everybody else f"{place.gate.own_name} alone"
    pages = f"; pages at {place.pages.url} (`fairlead web` opens them)" if place.pages.url else ""
    return f"serving {whom} on {where}{pages}; state in {place.state_dir}"
