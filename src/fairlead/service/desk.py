"""What every route needs: the runtime, the place, and who is asking.

Decides nothing; it brings requests to the writer and answers back. Invariant: routes touch the books through `read` and
`do` alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import msgspec
from fastapi import Depends, Request, Response

from fairlead.local.access import Whose, whose
from fairlead.local.callers import Caller
from fairlead.local.jobs import Jobs
from fairlead.local.machine import Machine
from fairlead.local.memory_guard import MemoryGuard
from fairlead.local.place import LocalPlace
from fairlead.local.pressure import Threshold
from fairlead.local.runs import Capability
from fairlead.runtime import Runtime, Turn
from fairlead.scheduler import Scheduler
from fairlead.service.forecaster import Forecaster
from fairlead.service.history_stream import Hub
from fairlead.service.identity import Gate
from fairlead.service.tokens import Tokens
from fairlead.service.yunikorn.history_records import HistoryRecords
from fairlead.service.yunikorn.history_samples import HistorySamples
from fairlead.service.yunikorn.history_stream import Streams

if TYPE_CHECKING:
    from fairlead.service.configfile import ConfigFile

T = TypeVar("T")
QUESTIONS_AT_ONCE = 2


@dataclass(slots=True)
class Desk:
    """One running service."""

    runtime: Runtime
    place: LocalPlace[Machine]
    machine: Machine
    gate: Gate
    tokens: Tokens
    hub: Hub
    history_records: HistoryRecords
    state_dir: Path
    version: str
    pid: int
    started_at_ms: int
    capabilities: Sequence[Capability] = ()
    open_reads: bool = False
    config_file: ConfigFile | None = None
    """The watched queue file; None: there is none."""
    streams: Streams = field(default_factory=Streams)
    history_samples: HistorySamples = field(default_factory=HistorySamples)
    memory_guard: MemoryGuard = field(default_factory=lambda: MemoryGuard(Threshold()))
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    forecaster: Forecaster = field(default_factory=Forecaster)
    questions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUESTIONS_AT_ONCE))
    """Passes for questions that are answered in processes of their own."""

    async def read(self, ask: Callable[[Scheduler, Jobs], T]) -> T:
        """Have `ask(scheduler, jobs)` answered between two turns; it returns plain values."""
        jobs = self.place
        return cast(T, await asyncio.wrap_future(self.runtime.read(lambda scheduler: ask(scheduler, jobs.jobs))))

    async def told(self, ask: Callable[[Scheduler], Any]) -> Any:
        """What `ask` says of the books between two turns, for an answer and nothing else."""
        return await self.read(lambda scheduler, _: ask(scheduler))

    async def do(self, act: Callable[[Turn], T]) -> T:
        """Have `act` done in turn; returns when it is durable. Raises `Refusal`."""
        return cast(T, await asyncio.wrap_future(self.runtime.do(act)))

    async def owners(self, keys: Sequence[str]) -> dict[str, Whose]:
        """Whose business some jobs are."""
        return await self.read(lambda s, jobs: {key: whose(s, job) for key in keys if (job := jobs.get(key))})


def desk_of(request: Request) -> Desk:
    """The service that this request came to."""
    return cast(Desk, request.app.state.desk)


def caller_of(request: Request) -> Caller:
    """Who is asking. Raises `Refusal` if nobody knows, or if he is not served here."""
    return desk_of(request).gate.caller(request.scope, request.headers.get("authorization"))


def reader_of(request: Request) -> Caller | None:
    """Who reads what is not about single users; None where the service lets everybody read that."""
    return None if desk_of(request).open_reads else caller_of(request)


DeskOf = Annotated[Desk, Depends(desk_of)]
CallerOf = Annotated[Caller, Depends(caller_of)]


def plain(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer as JSON, without another look at it."""
    return Response(msgspec.json.encode(content), status, dict(headers or {}), "application/json")
