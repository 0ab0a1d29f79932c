"""A fleet of trials: several at a time, each in a process of its own.

Decides who runs where and gathers outcomes in the order of the trials. Never looks into an outcome. Invariant: the
first Ctrl-C lets every trial stop between two moments and hand over what it has; the second one ends all at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, TextIO

from fairlead.sim.engine import Engine
from fairlead.sim.mistakes import sentence
from fairlead.sim.sources import SourceError
from fairlead.sim.trials import Trial, run_trial

Progress = Callable[[int, int], None]
"""Hears the number of a trial and how far it is."""
Stop = Callable[[], None]


class TrialFailed(Exception):
    """A trial could not be run; the text is a sentence."""


@contextmanager
def on_ctrl_c(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C calls `stop`, the second one breaks off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def first(_number: int, _frame: FrameType | None) -> None:
        stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_trials(trials: Sequence[Trial], processes: int = 1, progress: Progress | None = None) -> list[dict[str, Any]]:
    """The outcomes in the order of the trials. After Ctrl-C those not begun are left out.

    Raises what `run_trial` raises with one process, `TrialFailed` with several.
    """
    if min(processes, len(trials)) <= 1:
        return _one_by_one(trials, progress)
    return _Fleet(trials, processes, progress).run()


def run_alone(trial: Trial, lines: TextIO | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """The outcome of one trial, run here; Ctrl-C stops it and gives what there is. Raises what `run_trial` raises."""
    engines: list[Engine] = []
    early: list[bool] = []

    def stop() -> None:
        early.append(True)
        for engine in engines:
            engine.stopped = True

    def watch(engine: Engine) -> None:
        engines.append(engine)
        engine.stopped = bool(early)

    with on_ctrl_c(stop):
        return run_trial(trial, lines=lines, watch=watch, tick=None if progress is None else _ticking(progress, 0))


def _one_by_one(trials: Sequence[Trial], progress: Progress | None) -> list[dict[str, Any]]:
    outcomes: list[dict[str, Any]] = []
    for number, trial in enumerate(trials):
        renumbered = None if progress is None else _renumbered(progress, number)
        outcomes.append(run_alone(trial, progress=renumbered))
        if outcomes[-1]["interrupted"]:
            break
    return outcomes


def _renumbered(progress: Progress, number: int) -> Progress:
    return lambda _, done: progress(number, done)


def _ticking(progress: Progress, number: int) -> Callable[[int], None]:
    return lambda done: progress(number, done)


class _Fleet:
    def __init__(self, trials: Sequence[Trial], processes: int, progress: Progress | None) -> None:
        self.trials, self.processes, self.progress = trials, processes, progress
        self.outcomes: list[dict[str, Any] | None] = [None] * len(trials)
        self.under_way: dict[Connection, tuple[int, SpawnProcess]] = {}
        self.listening: list[SpawnProcess] = []
        """Those that stop in order when they are told to; before, they would just end."""
        self.stopped = False

    def run(self) -> list[dict[str, Any]]:
        coming = iter(range(len(self.trials)))
        try:
            with on_ctrl_c(self._stop):
                self._start(coming)
                while self.under_way:
                    for ready in wait(list(self.under_way), timeout=1.0):
                        assert isinstance(ready, Connection)
                        if self._hear(ready):
                            self._start(coming)
        finally:
            for _, process in self.under_way.values():
                process.kill()
                process.join()
        return [outcome for outcome in self.outcomes if outcome is not None]

    def _start(self, coming: Iterator[int]) -> None:
        context = get_context("spawn")
        while len(self.under_way) < self.processes and not self.stopped:
            number = next(coming, None)
            if number is None:
                return
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_in_process, args=(self.trials[number], theirs), daemon=True)
            process.start()
            theirs.close()
            self.under_way[mine] = (number, process)

    def _hear(self, connection: Connection) -> bool:
        """Take what a trial says; whether it is over."""
        number, process = self.under_way[connection]
        try:
            kind, said = connection.recv()
        except EOFError:
            process.join()
            raise TrialFailed(f"{self.trials[number].name}: its process ended with {process.exitcode}") from None
        if kind == "listens":
            self.listening.append(process)
            if self.stopped:
                _tell_to_stop(process)
            return False
        if kind == "done":
            if self.progress is not None:
                self.progress(number, said)
            return False
        if kind == "failed":
            raise TrialFailed(said)
        self.outcomes[number] = said
        del self.under_way[connection]
        process.join()
        return True

    def _stop(self) -> None:
        self.stopped = True
        for process in self.listening:
            _tell_to_stop(process)


def _tell_to_stop(process: SpawnProcess) -> None:
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, signal.SIGTERM)


def _in_process(trial: Trial, told: Connection) -> None:
    """One trial in a process of its own: stopped by SIGTERM, not by the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engines: list[Engine] = []
    early: list[bool] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        early.append(True)
        for engine in engines:
            engine.stopped = True

    def watch(engine: Engine) -> None:
        engines.append(engine)
        engine.stopped = bool(early)

    signal.signal(signal.SIGTERM, stop)
    told.send(("listens", 0))
    try:
        outcome = run_trial(trial, watch=watch, tick=lambda done: told.send(("done", done)))
    except (OSError, ValueError) as e:
        said = sentence(e)
        named = isinstance(e, OSError | SourceError) or said.startswith(trial.name)
        told.send(("failed", said if named else f"{trial.name}: {said}"))
    else:
        told.send(("outcome", outcome))
