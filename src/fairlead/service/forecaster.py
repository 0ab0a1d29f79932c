"""The service's own forecasts, whether they come true, and the score of that on disk: it outlives the service.

Decides what is known about run times (from the jobs in the books), when a forecast is made, keeps the score, and says
what becomes of a file of it that cannot be read. Never blocks the writer: futures are played in a process of their own.
Invariant: each answer is scored, and a job that waits on is forecast again and again. The score is no part of the
journal, for no decision rests on it: what a crash loses is what was scored since the last look, a few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from fairlead.apart import Asked, NoAnswer, ask_apart
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.insight import scorecard
from fairlead.insight.arrivals import Arrival, Arrivals
from fairlead.insight.forecast import DRAWS, Forecast, KindOf, Share, forecast
from fairlead.insight.futures import IsOver
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.scorecard import Scorecard
from fairlead.insight.trial import Name
from fairlead.local import placing, requests
from fairlead.local.job import Job
from fairlead.local.job_names import job_of
from fairlead.local.job_states import State
from fairlead.service.whole_files import read_whole, write_whole
from fairlead.wire.questions import SPEND_S

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.model.events import Event
    from fairlead.local.jobs import Jobs
    from fairlead.runtime.books import Entry
    from fairlead.scheduler import Scheduler

log = logging.getLogger("fairlead.service")

T = TypeVar("T")
EVERY_S = 15.0
DRAWS_MANY = 6
"""Futures where more than `MANY` asks wait or run."""
MANY = 2_000
SLOWED, LEAST_PART = 3, 0.3
PART = 0.1
"""The part of all time that the service spends on forecasts of its own at most."""
IN_A_TURN = 20
"""Answers that are put right at a time (a millisecond each): whoever asks the service something waits for no more."""
PATIENCE_S = 120.0
"""A process that is still at it then is ended."""
STARTS_KEPT = 100_000
ARRIVALS_KEPT = 5_000
"""Jobs from which it is learned what will come, the newest."""


class Books(Protocol):
    """What can be asked between two turns."""

    async def look(self, ask: Callable[[Scheduler, Jobs], T]) -> T:
        """What `ask` says of the books."""


def kinds(jobs: Jobs) -> Callable[[Ask], Kind]:
    """User, name and queue of an ask, by the book of jobs."""

    def kind_of(ask: Ask) -> Kind:
        job = jobs.get(job_of(ask.key))
        return Kind(ask.app.user, job.spec.name if job is not None else "", ask.app.queue.path)

    return kind_of


def learned(jobs: Iterable[Job]) -> Runtimes:
    """Run times of what ended by itself, without the time that it stood still; and of which arrays a part failed."""
    runtimes = Runtimes()
    for job in jobs:
        if job.spec.index is not None and job.ended and job.state is not State.SUCCEEDED:
            runtimes.not_well.add(job.application)
        if job.state in (State.SUCCEEDED, State.FAILED) and job.started_at_ms and job.ended_at_ms:
            kind = Kind(job.spec.user, job.spec.name, job.queue).of(requests.ask_of(job.spec, None))
            runtimes.learn(kind, job.ended_at_ms - job.started_at_ms - job.suspended_ms)
    return runtimes


def came(jobs: Iterable[Job]) -> Arrivals:
    """What was submitted lately, in order of time; the parts of an array together."""
    groups: dict[str, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: job.submitted_at_ms)[-ARRIVALS_KEPT:]:
        groups.setdefault(job.application, []).append(job)
    arrivals = Arrivals()
    for parts in groups.values():
        asks = tuple(requests.ask_of(job.spec, None) for job in parts)
        arrivals.learn(Arrival(parts[0].submitted_at_ms, placing.application_of(parts[0].spec), asks))
    return arrivals


def spending(seconds: float) -> Share:
    """So much time on a processor from now on, and at most `SLOWED` times so much where others want it too.

    Each future has an equal part of what those before it left, or a part of the whole: rather few futures that are seen
    far than many of which nothing is seen.
    """
    began = _used_s()

    def share(number: int, draws: int) -> IsOver | None:
        whole = (seconds, seconds * SLOWED)
        left = [may - used for may, used in zip(whole, _used_since(began), strict=True)]
        if min(left) <= 0:
            return None
        mine = [min(has, max(has / (draws - number), all_ * LEAST_PART)) for has, all_ in zip(left, whole, strict=True)]
        here, pid = _used_s(), os.getpid()

        def is_over() -> bool:
            # A process of its own has used nothing when it begins.
            used = _used_since(here if os.getpid() == pid else (0.0, here[1]))
            return any(has > may for has, may in zip(used, mine, strict=True))

        return is_over

    return share


def _used_s() -> tuple[float, float]:
    """Time that this process and its children had on a processor, and time on the wall."""
    return sum(os.times()[:4]), time.monotonic()


def _used_since(then: tuple[float, float]) -> tuple[float, float]:
    now = _used_s()
    return now[0] - then[0], now[1] - then[1]


def played(
    scheduler: Scheduler,
    future: tuple[Runtimes, KindOf],
    partition: str = DEFAULT_PARTITION,
    wanted: Sequence[Name] | None = None,
    spend_s: float = SPEND_S,
    arrivals: Arrivals | None = None,
    events: Sequence[Event] = (),
) -> Forecast:
    """A forecast in as many futures as there is time for; call it in a process of its own. `events` happen first."""
    book = scheduler.cluster.partitions.get(partition)
    asks = sum(len(app.asks) for app in book.applications.values()) if book is not None else 0
    draws = DRAWS if asks <= MANY else DRAWS_MANY
    runtimes, kind = future
    return forecast(
        scheduler,
        runtimes,
        arrivals=arrivals,
        draws=draws,
        kind=kind,
        wanted=wanted,
        events=events,
        fork=True,
        share=spending(spend_s),
    )


class Forecaster:
    """Forecasts on the way, scored as they come true. A subscriber of the journal."""

    def __init__(self, file: ScoreFile | None = None) -> None:
        """`file`: where the score is kept over a restart; None: it is not."""
        self._file = file
        self.card = file.read() if file is not None else Scorecard()
        self._starts: deque[tuple[Name, int]] = deque(maxlen=STARTS_KEPT)

    def offer(self, entries: Sequence[Entry]) -> None:
        """Note who starts; called by the writer."""
        for entry in entries:
            for each in entry.decisions:
                if isinstance(each, Allocated):
                    self._starts.append(((DEFAULT_PARTITION, each.application, each.key), entry.at_ms))

    def score(self) -> None:
        """Hold what started against what was said."""
        with contextlib.suppress(IndexError):
            while True:
                self.card.started(*self._starts.popleft())

    async def keep(self, books: Books, every_s: float = EVERY_S) -> None:
        """Forecast again and again, for what began to wait since."""
        took_s = 0.0
        while True:
            await asyncio.sleep(max(every_s, took_s / PART))
            began = time.monotonic()
            try:
                await self.look(books)
            except NoAnswer as problem:
                log.warning("no forecast could be made: %s", problem)
            took_s = time.monotonic() - began

    async def look(self, books: Books) -> None:
        """Score what came true, and forecast for what waits without one."""

        def fresh(scheduler: Scheduler, jobs: Jobs) -> tuple[set[Name], list[tuple[Name, int]], Asked | None]:
            waits = {
                (DEFAULT_PARTITION, job.application, job.ask_key) for job in jobs.live() if job.state is State.WAITING
            }
            now_ms = time.time_ns() // 1_000_000
            new = sorted(name for name in waits if self.card.is_due(name, now_ms))
            begun = [(name, at_ms) for name in self.card.promised() if (at_ms := _begun_ms(jobs, name)) is not None]
            if not new:
                return waits, begun, None

            def play() -> Forecast:
                return played(scheduler, (learned(jobs), kinds(jobs)), wanted=new, arrivals=came(jobs))

            return waits, begun, ask_apart(play, PATIENCE_S)

        waits, begun, asked = await books.look(fresh)
        self.score()
        for name, at_ms in begun:
            # Nobody told of it: the service ended between its start and this look.
            self.card.started(name, at_ms)
        self.card.keep_only(waits)
        if asked is not None:
            told: Forecast = await asyncio.to_thread(asked.answer)
            left = [name for name in sorted(told.about) if name in waits and self.card.is_due(name, told.made_ms)]
            for number, expected in enumerate(await asyncio.to_thread(lambda: list(map(told.expected, left)))):
                self.card.promise(told.made_ms, expected)
                if number % IN_A_TURN == 0:
                    await asyncio.sleep(0)
            self.score()
        await asyncio.to_thread(self.store, self.card.state())

    def store(self, state: scorecard.State | None = None) -> None:
        """Keep what is known over a restart. A disk that is full costs the score and nothing else."""
        if self._file is None:
            return
        try:
            self._file.write(state or self.card.state())
        except OSError as problem:
            log.warning("the score of forecasts cannot be kept: %s", problem)


def _begun_ms(jobs: Jobs, name: Name) -> int | None:
    """When the run of a job began that waited under this name; None: it did not."""
    _, _, ask_key = name
    job = jobs.get(job_of(ask_key))
    return job.started_at_ms if job is not None and job.ask_key == ask_key and job.started_at_ms else None


# -- the score on disk ---------------------------------------------------------------------------------------------


class ScoreFile:
    """Where the scorecard of one service is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = b""

    def read(self) -> Scorecard:
        """The scorecard as it was last written; a new one where there is none, or none that makes sense.

        One that makes no sense is moved aside, so that it can be looked at: a service starts without its score.
        """
        try:
            text = read_whole(self._path)
            card = Scorecard.restored(msgspec.json.decode(text, type=scorecard.State))
        except FileNotFoundError:
            return Scorecard()
        except OSError as error:
            log.warning("the score of forecasts begins anew: %s cannot be read (%s)", self._path, error)
            return Scorecard()
        except ValueError as error:
            aside = self._path.with_name(f"{self._path.name}.bad")
            log.warning("the score of forecasts begins anew: %s makes no sense (%s); see %s", self._path, error, aside)
            try:
                self._path.replace(aside)
            except OSError as problem:
                log.warning("%s cannot be moved aside: %s", self._path, problem)
            return Scorecard()
        self._written = text
        return card

    def write(self, state: scorecard.State) -> None:
        """Keep it, if it is another one than last time. Raises OSError."""
        text = msgspec.json.encode(state)
        if text == self._written:
            return
        write_whole(self._path, text)
        self._written = text
