"""A machine as a place: jobs in the journal's books, users of the system, processes.

Decides nothing; it brings requests to the writer and answers back. Invariant: routes touch the books through `read`,
`look` and `do` alone, each of them between two turns of the writer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, cast
from weakref import WeakValueDictionary

import msgspec
from fastapi import APIRouter, Depends, Request
from msgspec import structs
from prometheus_client.core import Metric
from starlette.concurrency import run_in_threadpool

from fairlead.insight.forecast import Expected
from fairlead.insight.scorecard import Scorecard
from fairlead.local.callers import Caller, Whose, whose
from fairlead.local.disk import Disk
from fairlead.local.job_names import run_key
from fairlead.local.job_states import ON_THE_MACHINE
from fairlead.local.jobs import Jobs
from fairlead.local.machine import Machine
from fairlead.local.memory_guard import MemoryGuard
from fairlead.local.place import LocalPlace
from fairlead.local.pressure import Threshold
from fairlead.local.runs import Capability
from fairlead.local.user_bounds import UserBounds, UserLimits
from fairlead.runtime import Refusal, Runtime, Turn
from fairlead.runtime.measures import Measures
from fairlead.scheduler import Scheduler
from fairlead.service import metrics, views
from fairlead.service.configfile import ConfigFile
from fairlead.service.forecaster import Forecaster
from fairlead.service.history_events import Hub, stream
from fairlead.service.http.sockets import Tcp
from fairlead.service.identity import Gate, Tokens
from fairlead.service.moment import MachineMoment
from fairlead.service.passes import STRANGERS, Passes, asking
from fairlead.service.past_work import PastWork
from fairlead.service.place import Place, place_of
from fairlead.service.yunikorn.history import HistoryRecords
from fairlead.times import duration
from fairlead.wire import cluster as wire
from fairlead.wire.jobs import Capability as Shown
from fairlead.wire.jobs import JobDetails
from fairlead.wire.notices import ALL_KINDS

T = TypeVar("T")


WRONG_MS = 60_000
"""From then on it is a problem that the service's time is not that of the machine."""
EVERYTHING = Caller("", -1, True, may_submit=False)
"""Who sees everything, for what is not about single users."""


@dataclass(slots=True, kw_only=True)
class MachinePlace(Place):
    """The service of one machine."""

    nodes_may_join: ClassVar[bool] = False
    runtime: Runtime
    local: LocalPlace
    machine: Machine
    disk: Disk
    gate: Gate
    tokens: Tokens
    hub: Hub
    records: HistoryRecords
    state_dir: Path
    past_work: PastWork
    pid: int
    capabilities: Sequence[Capability] = ()
    tcp: Tcp = field(default_factory=Tcp)
    config_file: ConfigFile | None = None
    """The watched queue file; None: there is none."""
    memory_guard: MemoryGuard = field(default_factory=lambda: MemoryGuard(Threshold()))
    users: UserLimits = field(default_factory=lambda: UserLimits(UserBounds()))
    asking: WeakValueDictionary[int, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Who has a question worked out; the next one of the same user waits until that is done."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    notify: frozenset[str] = ALL_KINDS
    """Which kinds of messages users may have sent."""
    forecaster: Forecaster = field(default_factory=Forecaster)
    private_names: bool = False
    """Names of jobs are shown to nobody but those whose business they are."""

    # -- the protocol -------------------------------------------------------------------------------------------------

    def routers(self) -> list[APIRouter]:
        """What changes the machine, and what only it knows."""
        from fairlead.service import (
            configuration,
            declarations,
            jobs,
            logs,
            nodes,
            occupancy,
            retention,
            settings,
            terminals,
            unknown_runs,
            windows,
        )
        from fairlead.service.http import pages

        own = (jobs, logs, terminals, nodes, occupancy, configuration, declarations, windows, settings, retention)
        return [*(each.router for each in (*own, unknown_runs)), pages.router, pages.front]

    def caller(self, request: Request) -> Caller:
        """By the socket or by a token."""
        return self.gate.caller(request.scope, request.headers.get("authorization"))

    def user_of(self, scope: Mapping[str, Any]) -> int:
        """Those whom nobody knows are one user."""
        user = self.gate.user_of(scope)
        return STRANGERS if user is None else user

    async def read(self, ask: Callable[[Any], T], caller: Caller | None = None) -> T:
        """Between two turns of the writer."""
        return await self.look(lambda scheduler, jobs: ask(self._moment(scheduler, jobs, caller or EVERYTHING)))

    def _moment(self, scheduler: Scheduler, jobs: Jobs, caller: Caller) -> MachineMoment:
        return MachineMoment(scheduler, jobs, caller, runs_as=self.gate.own_name, private_names=self.private_names)

    @property
    def history_records(self) -> HistoryRecords:
        """Since the start."""
        return self.records

    def problems(self) -> list[str]:
        """As sentences."""
        runtime = self.runtime
        found = [runtime.sick, runtime.halted, f"the writer has ended: {runtime.failure}" if runtime.failure else ""]
        if self.config_file is not None:
            found.append(self.config_file.problem())
        if unknown := [each.run for each in list(self.local.unknown)]:
            runs = ", ".join(unknown[:5])
            go_on = "1 run goes on" if len(unknown) == 1 else f"{len(unknown)} runs go on"
            found.append(f"{go_on} that the journal does not know: {runs}; see `fairlead unknown`")
        if self.local.jobs.memory_short is not None:
            found.append("the machine is short of memory: nothing new starts until some is free again")
        found += [self.disk.shortage() or self._not_started(), self._clock_problem()]
        if self.tcp.certificate is not None:
            found += self.tcp.certificate.problems()
        return [sentence for sentence in found if sentence]

    def _not_started(self) -> str:
        if not (refused := self.local.not_started):
            return ""
        run, why = next(iter(refused.items()))
        others = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
        return f"what has its place cannot begin now, and is tried again: run {run}{others}: {why}"

    def _clock_problem(self) -> str:
        clock = self.runtime.clock
        if clock.ahead_ms >= WRONG_MS:
            ahead = f"the service's time is {duration(clock.ahead_ms)} ahead of it until it has caught up"
            early = "timers take as long as they should, but what is to begin at a time, and windows, come that early"
            return f"this machine's clock was set back: {ahead}; {early}"
        jumped = "this machine's clock went forward by more than a day at once: nothing old is removed for a day"
        return jumped if clock.jumped else ""

    def failing(self) -> bool:
        """No records can be written, or nothing is scheduled."""
        return bool(self.runtime.sick or self.runtime.halted or self.runtime.failure)

    def faults(self) -> int:
        """That were isolated."""
        return self.runtime.measures.faults

    async def info(self, caller: Caller) -> wire.Service:
        """With the journal and how it was recovered."""
        from fairlead.service.configuration import status_of

        runtime, everybody = self.runtime, self.gate.everybody
        total, last_seq = await self.look(lambda s, _: (views.partition_total(s), runtime.journal.committed_seq))
        machine = wire.Machine(
            pid=self.pid,
            serves="everyone" if everybody else "own user",
            runs_as="the submitter" if everybody else self.gate.own_name,
            state_dir=str(self.state_dir),
            node=self.local.node,
            capabilities=self._enforcement(),
            journal=wire.Journal(events=last_seq, last_seq=last_seq, size_bytes=self._journal_bytes()),
            recovery=self.runtime.recovered,
            config=None if caller.is_guest else await status_of(self),
        )
        return wire.Service(
            version=self.version,
            user=caller.user,
            is_admin=caller.is_admin,
            started_at_ms=self.started_at_ms,
            partition_total=total,
            problems=self.problems(),
            machine=machine,
        )

    async def details(self, key: str, caller: Caller) -> JobDetails:
        """With where its output is, what is enforced, and what it uses now."""
        shown: JobDetails = await self.read(lambda moment: moment.details(key), caller)
        return await run_in_threadpool(self._with_the_machine, shown)

    def _with_the_machine(self, shown: JobDetails) -> JobDetails:
        known: dict[str, Any] = {}
        if shown.attempts:
            run = run_key(shown.key, shown.attempts)
            kept = {"stdout": self.machine.stdout_path(run), "stderr": self.machine.stderr_path(run)}
            known = {name: getattr(shown, name) or str(path) for name, path in kept.items()}
            if shown.state in ON_THE_MACHINE and (usage := self.machine.usage(run)) is not None:
                known |= {"cpu_ms": usage.cpu_ms, "memory_bytes": usage.memory_bytes}
        return structs.replace(shown, enforcement=self._enforcement(), **known)

    def _enforcement(self) -> list[Shown]:
        return msgspec.convert(list(self.capabilities), list[Shown], from_attributes=True)

    def _journal_bytes(self) -> int:
        path = self.runtime.journal.path
        return sum(part.stat().st_size for part in (path, path.with_name(path.name + "-wal")) if part.exists())

    def events(self, caller: Caller, after: tuple[int, int] | None) -> AsyncGenerator[bytes, None]:
        """From the journal on; others' jobs are left out."""
        pieces = stream(self.hub, caller, after, lambda keys: asyncio.ensure_future(self._owners(keys)))
        return self._as_one_stream(caller, pieces)

    def one_stream(self, caller: Caller | None) -> contextlib.AbstractContextManager[None]:
        """As many as a user may have."""
        return self.users.one_more("streams", caller)

    async def _as_one_stream(self, caller: Caller, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        with self.one_stream(caller):
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    yield piece

    async def apart(
        self,
        ask: Callable[[Any], Callable[[], T]],
        caller: Caller | None = None,
        passes: Passes | None = None,
        took: Callable[[float], object] = float,
    ) -> T:
        """Of each user one after the other, in the time that a user has; views of much are not counted."""
        if caller is None or passes is not None:
            return await Place.apart(self, ask, caller, passes, took)
        with self.users.one_more("questions", caller):
            async with self.asking.setdefault(caller.uid, asyncio.Lock()):
                self.users.question(caller)
                return await Place.apart(self, ask, caller, took=partial(self.users.answered, caller))

    async def _owners(self, keys: Sequence[str]) -> dict[str, Whose]:
        return await self.look(lambda s, jobs: {key: whose(s, found[0]) for key in keys if (found := jobs.of(key))})

    def card(self) -> Scorecard:
        """Over restarts."""
        self.forecaster.score()
        return self.forecaster.card

    def expect(self, made_ms: int, plain: Expected) -> Expected:
        """Only the service's own forecasts are promises."""
        return self.card().calibrated(made_ms, plain)

    def figures(self, moment: Any) -> tuple[list[Metric], Measures]:
        """With the journal's."""
        del moment
        runtime, measures = self.runtime, self.runtime.measures.copy()
        seq, readers = runtime.journal.committed_seq, len(self.hub.readers)
        return metrics.of_machine(self.local.jobs, measures, seq, readers, healthy=not self.failing()), measures

    def require_room(self, caller: Caller) -> None:
        """Raises `Refusal` where the caller may not submit now, or the disk has no room for what would come of it."""
        caller.require_submit(self.gate.own_name)
        self.users.submission(caller)
        if short := self.disk.shortage():
            raise Refusal("disk-full", f"{short}; nothing was taken in")

    # -- what only a machine has --------------------------------------------------------------------------------------

    async def look(self, ask: Callable[[Scheduler, Jobs], T]) -> T:
        """Have `ask(scheduler, jobs)` answered between two turns; it returns plain values."""
        asked = self.runtime.read(lambda scheduler: ask(scheduler, self.local.jobs), user=asking.get())
        return cast(T, await asyncio.wrap_future(asked))

    async def do(self, act: Callable[[Turn], T]) -> T:
        """Have `act` done in turn; returns when it is durable. Raises `Refusal`."""
        return cast(T, await asyncio.wrap_future(self.runtime.do(act, user=asking.get())))


MachineOf = Annotated[MachinePlace, Depends(place_of)]
