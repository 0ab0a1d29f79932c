"""`fairlead up`: bring everything up in order, serve, and go down in order.

Decides the order of start and stop. Never decides anything while it runs. Invariant: what is started is stopped in the
opposite order, whatever fails; work on the machine goes on in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError, default_text
from fairlead.core.resources import Resources
from fairlead.journal.format import JournalError
from fairlead.local.access import Whose, whose
from fairlead.local.machine import Machine
from fairlead.local.memory_guard import MemoryGuard
from fairlead.local.place import LocalPlace
from fairlead.local.pressure import Step, Victim, parse_threshold
from fairlead.local.waits import WaitNotes
from fairlead.runtime import RecoveryError, Refusal, Runtime, Turn
from fairlead.runtime.configuring import configure
from fairlead.runtime.process import log_to_stderr, loop_factory
from fairlead.service import listen
from fairlead.service.app import make_app
from fairlead.service.configfile import ConfigFile
from fairlead.service.configuration import BUILT_IN
from fairlead.service.desk import Desk
from fairlead.service.forecaster import Forecaster
from fairlead.service.history_stream import Hub
from fairlead.service.identity import Gate, PeerProtocol
from fairlead.service.options import Listening, ServeOptions
from fairlead.service.queue_texts import usable
from fairlead.service.scorefile import ScoreFile
from fairlead.service.tokens import Tokens, TokensError
from fairlead.service.yunikorn import history_samples
from fairlead.service.yunikorn.history_records import HistoryRecords
from fairlead.version import version

log = logging.getLogger("fairlead.service")

STOP_WITHIN_S = 5
START_WITHIN_S = 300
WAIT_NOTES_S = 1.0
MEMORY_LOOK_S = 0.5
_MEMORY = {
    Step.BEGIN: "it is short, so nothing new starts",
    Step.END: "there is enough again, so work starts again",
}


class StartError(Exception):
    """The service cannot start; one sentence that says why and what to do."""


def serve(options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit status: 0 after an orderly stop, 1 if it could not start or go on."""
    log_to_stderr(options.log_level)
    try:
        with ExitStack() as stack:
            desk, sockets = bring_up(options, stack)
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                return runner.run(answer(options, desk, sockets))
    except (StartError, JournalError, RecoveryError, listen.ListenError, TokensError, ConfigurationError) as error:
        sys.stderr.write(f"fairlead: {error}\n")
        return 1


# --- up -----------------------------------------------------------------------------------------------------------


def bring_up(options: ServeOptions, stack: ExitStack) -> tuple[Desk, list[socket.socket]]:
    """Everything but the answering of requests; `stack` takes it down again. Raises what `serve` turns into words."""
    try:
        threshold = parse_threshold(options.memory_pressure)
    except ValueError as problem:
        raise StartError(f"memory pressure: {problem}") from None
    state_dir = _state_dir(options)
    ours = version()
    as_root = os.geteuid() == 0
    gpus = range(options.resources["gpu"]) if "gpu" in options.resources else None
    place: LocalPlace[Machine] = LocalPlace(
        lambda tell: Machine(
            state_dir / "runs", on_end=tell, on_begin=tell, gpus=gpus, capacity=dict(options.resources)
        ),
        state_dir / "runs",
        as_submitter=as_root,
        socket=options.socket.absolute() if options.socket is not None else None,
    )
    closing = stack.enter_context(ExitStack())
    closing.callback(place.close)
    runtime = Runtime(state_dir / "journal.db", place, version=ours, pid=os.getpid())
    closing.pop_all()
    stack.callback(runtime.close)
    _say_recovered(runtime)
    sockets = _listen(options, stack)
    tokens = Tokens(state_dir / "tokens.json")
    gate = Gate(tokens, admins=options.admins, own_uid=os.geteuid(), everybody=as_root)

    def whose_key(key: str) -> Whose | None:
        return whose(runtime.books.scheduler, job) if (job := place.jobs.get(key)) is not None else None

    hub = Hub(runtime.journal.path, whose_key)
    runtime.subscribe(hub)
    history_records = HistoryRecords(lambda: runtime.books.scheduler)
    runtime.subscribe(history_records)
    desk = Desk(
        runtime=runtime,
        place=place,
        machine=place.machine,
        gate=gate,
        tokens=tokens,
        hub=hub,
        history_records=history_records,
        state_dir=state_dir,
        version=ours,
        pid=os.getpid(),
        started_at_ms=time.time_ns() // 1_000_000,
        capabilities=place.machine.capabilities(),
        open_reads=options.open_reads,
        config_file=ConfigFile(options.config) if options.config is not None else None,
        forecaster=Forecaster(ScoreFile(state_dir / "forecasts.json")),
    )
    runtime.subscribe(desk.forecaster)
    stack.callback(desk.forecaster.store)
    _begin(runtime, place, desk.config_file)
    desk.memory_guard = MemoryGuard(threshold, options.memory_budget, short=place.jobs.memory_short is not None)
    desk.capabilities = [*desk.capabilities, desk.memory_guard.capability()]
    return desk, sockets


def _state_dir(options: ServeOptions) -> Path:
    path = options.state_dir.absolute()
    try:
        # Users reach their own output below it, and nothing else: its files are for the service alone.
        path.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(
            f"cannot make the state directory {path}: {error.strerror}; choose another (--state)"
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise StartError(f"the state directory {path} is not writable for you; choose another (--state)")
    return path


def _say_recovered(runtime: Runtime) -> None:
    recovered = runtime.recovered
    begin = "a snapshot and " if recovered.from_snapshot else ""
    log.info("recovered from %s%d journal records in %.0f ms", begin, recovered.records, recovered.milliseconds)
    for note in recovered.notes:
        log.warning("%s", note)


def _listen(options: ServeOptions, stack: ExitStack) -> list[socket.socket]:
    sockets, path = [], options.socket
    if path is not None:
        path = path.absolute()
        unix = listen.on_unix(path)
        stack.callback(listen.remove, path, path.lstat().st_ino)
        stack.callback(unix.close)
        sockets.append(unix)
    if options.port is not None:
        tcp = listen.on_tcp(options.host, options.port)
        stack.callback(tcp.close)
        sockets.append(tcp)
    if not sockets:
        raise StartError("there is neither a socket nor a port to listen on; give one of them")
    return sockets


def _begin(runtime: Runtime, place: LocalPlace[Machine], file: ConfigFile | None) -> None:
    """Queues, this machine as a node, and what was running: as one turn before all others."""
    reading = file.read() if file is not None else None
    if reading is not None and reading.spec is None and runtime.books.configurations.current is None:
        raise ConfigurationError(list(reading.problems))
    capacity = Resources(place.machine.capacity())
    hostname = socket.gethostname() or "localhost"

    def prepare(turn: Turn) -> str:
        refused = ""
        if file is not None and reading is not None:
            refused = file.begin(turn, reading)
        elif turn.books.configurations.current is None:
            refused = configure(turn, usable(default_text(), "default.yaml"), who="", source=BUILT_IN).refused
        return refused or place.register_node(turn, hostname, capacity)

    first = place.open(runtime, prepare)
    runtime.start()
    refused = first.result(START_WITHIN_S)
    if refused:
        raise StartError(f"the scheduler refuses to start with this: {refused}")


# --- serving ------------------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """uvicorn, stopped by us."""

    def __init__(self, config: uvicorn.Config, desk: Desk, handle: bool) -> None:
        super().__init__(config)
        self._desk, self._handle = desk, handle

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The first signal stops in order, the second at once: work goes on, and the journal is whole in any case."""
        if not self._handle:
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _: Any) -> None:
        if self.should_exit:
            os._exit(128 + number)
        self.should_exit = True

    def stop(self) -> None:
        """Stop in order."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the endless streams first, or nobody would ever be done."""
        self._desk.stopping.set()
        self._desk.hub.close()
        self._desk.streams.close()
        await super().shutdown(sockets)


async def answer(options: ServeOptions, desk: Desk, sockets: list[socket.socket]) -> int:
    """Answer requests until told to stop; the exit status."""
    config = uvicorn.Config(
        make_app(desk),
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )
    server = _Server(config, desk, options.handle_signals)
    duties = [_watch(server, desk, options, sockets), _note_waits(desk), _guard_memory(desk, desk.memory_guard)]
    if desk.config_file is not None:
        duties.append(desk.config_file.watch(desk.runtime, options.config_poll_s))
    duties.append(
        history_samples.keep(
            desk.history_samples, lambda: desk.read(lambda s, _: history_samples.count(s, time.time_ns()))
        )
    )
    duties.append(desk.forecaster.keep(desk))
    watching = [asyncio.create_task(duty) for duty in duties]
    await server.serve(sockets=sockets)
    for task in watching:
        task.cancel()
    if desk.runtime.failure is not None:
        sys.stderr.write(f"fairlead: the service had to stop: {desk.runtime.failure}\n")
        return 1
    log.info("stopped; work goes on, the next start takes it over")
    return 0


async def _watch(server: _Server, desk: Desk, options: ServeOptions, sockets: list[socket.socket]) -> None:
    """Say when it is ready; stop the server if the writer has ended."""
    while not server.started:
        await asyncio.sleep(0.01)
    unix = next((Path(s.getsockname()) for s in sockets if s.family == socket.AF_UNIX), None)
    url = next((listen.url_of(s) for s in sockets if s.family != socket.AF_UNIX), None)
    listening = Listening(unix, url, server.stop)
    log.info("%s", _ready(desk, listening))
    if options.on_ready is not None:
        options.on_ready(listening)
    while not desk.runtime.ended.is_set():
        await asyncio.sleep(0.5)
    server.should_exit = True


async def _guard_memory(desk: Desk, guard: MemoryGuard) -> None:
    """See to it that memory does not run out, as long as work runs."""
    if not guard.threshold:
        # Memory may have been short when somebody last looked: nobody would ever open the node again.
        if desk.place.jobs.memory_short is not None:
            await _enter_memory(desk, guard, Step.END, None)
        return
    while True:
        await asyncio.sleep(MEMORY_LOOK_S)
        running = await desk.read(lambda _, jobs: guard.running(jobs))
        if guard.idle(running):
            continue
        try:
            memory, uses = await run_in_threadpool(guard.measure, desk.machine, running)
        except (OSError, ValueError) as problem:
            log.warning("memory could not be measured: %s", problem)
            continue
        step, victim = guard.decide(memory, uses, running)
        if step in (Step.BEGIN, Step.END) or victim is not None:
            log.warning("memory: %s", victim.sentence if victim is not None else _MEMORY[step])
            await _enter_memory(desk, guard, step, victim)


async def _enter_memory(desk: Desk, guard: MemoryGuard, step: Step, victim: Victim | None) -> None:
    jobs, node = desk.place.jobs, desk.place.node
    try:
        told = await desk.do(partial(guard.enter, jobs=jobs, step=step, victim=victim, node=node))
    except Refusal:
        # While nothing can be recorded nobody can be stopped either; a later look does it.
        guard.not_entered(step)
    else:
        guard.entered(told)


async def _note_waits(desk: Desk) -> None:
    """Have noted, some at a time, what waiting work waits for."""
    notes = WaitNotes()
    while True:
        await asyncio.sleep(WAIT_NOTES_S)
        jobs = desk.place.jobs
        if jobs.live_count:
            # While nothing can be recorded there is nothing to note either; the next look does it.
            with contextlib.suppress(Refusal):
                await desk.do(lambda turn: notes.look(turn, desk.place.jobs))


def _ready(desk: Desk, listening: Listening) -> str:
    where = " and ".join(str(place) for place in (listening.url, listening.socket) if place)
    whom = "everyone on this machine" if desk.gate.everybody else f"{desk.gate.own_name} alone"
    return f"serving {whom} on {where}; state in {desk.state_dir}"
