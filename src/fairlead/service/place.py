"""What is served, behind one protocol: a machine or a cluster.

Decides what every route may ask of a place, and nothing else. What differs is in the two that implement it: who a
caller is, how a job is named, what is known of it, what can be done. Invariant: routes touch the books through a
`Moment`, as long as they stand still; what takes long is worked out on a copy, in a process of its own.
"""

from __future__ import annotations

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, cast

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from prometheus_client.core import Metric
from starlette.concurrency import run_in_threadpool

from fairlead.apart import NoAnswer, ask_apart
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec
from fairlead.insight.arrivals import Arrivals
from fairlead.insight.forecast import Expected
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.scorecard import Scorecard
from fairlead.insight.suppositions import Supposition, submitted
from fairlead.insight.trial import Name
from fairlead.local.callers import Caller
from fairlead.local.history_records import where_of
from fairlead.runtime import Refusal
from fairlead.runtime.measures import Measures
from fairlead.scheduler import Scheduler
from fairlead.service.identity import CONNECTION
from fairlead.service.pages import Pages
from fairlead.service.passes import STRANGERS, Passes, asking
from fairlead.service.yunikorn import history
from fairlead.service.yunikorn.history import HistoryRecords, HistorySamples, Streams
from fairlead.wire.cluster import Service
from fairlead.wire.fields import with_vcore
from fairlead.wire.jobs import Job, JobDetails, JobDraft, Reason
from fairlead.wire.questions import DRAFT
from fairlead.wire.verdicts import Why

T = TypeVar("T")
AT_ONCE = 2
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are listed; empty: all. Of several of one kind one is enough; `*` and `?` stand for others."""

    states: frozenset[str] = frozenset()
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """`NAME=VALUE`, or `NAME` for any value; of several names each has to be there."""
    namespace: str | None = None
    array: str | None = None
    """Only the parts of this array."""
    parts: bool = False
    """The parts of arrays in their place."""

    def passes(
        self,
        state: str,
        queue: str,
        user: str,
        name: str,
        namespace: str | None = None,
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Whether a job with these is among them."""
        return (
            (not self.states or state in self.states)
            and self.namespace in (None, namespace)
            and (not self.users or any(_glob(each).fullmatch(user) for each in self.users))
            and (not self.names or any(_glob(each).fullmatch(name) for each in self.names))
            and (not self.queues or any(_within(each).fullmatch(queue) for each in self.queues))
            and (not self.tags or self._tagged(tags))
        )

    def _tagged(self, tags: Mapping[str, str]) -> bool:
        wanted: dict[str, list[str]] = {}
        for text in self.tags:
            name, equals, value = text.partition("=")
            wanted.setdefault(name, []).append(value if equals else "*")
        return all(any(_says(each, tags[each], name, values) for each in tags) for name, values in wanted.items())


def _says(name: str, value: str, wanted: str, values: Sequence[str]) -> bool:
    return bool(_glob(wanted).fullmatch(name)) and any(_glob(each).fullmatch(value) for each in values)


@lru_cache(256)
def _glob(pattern: str) -> re.Pattern[str]:
    """A text in which `*` stands for any text and `?` for any character.

    What is between two stars is looked for once, at its first place (`(?>`): to try the others would change nothing,
    and would let a short pattern take for ever.
    """
    first, *others = (re.escape(piece).replace(r"\?", ".") for piece in pattern.split("*"))
    if not others:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)


@lru_cache(256)
def _within(path: str) -> re.Pattern[str]:
    """A queue and those below it; the root may be left out."""
    whole = path.lower() if path.lower().partition(".")[0] == "root" else f"root.{path.lower()}"
    return re.compile(_glob(whole).pattern + r"(\..*)?")


class Moment(Protocol):
    """The books while they stand still, as far as one caller sees them. A `Refusal` says what it does not see."""

    scheduler: Scheduler
    partition: str
    caller: Caller

    def found(self, wanted: JobFilter) -> Iterable[Any]:
        """The jobs that pass, in whatever form the place knows them."""

    def order(self, job: Any) -> Any:
        """By what one of them is sorted: the order of submission."""

    def row(self, job: Any) -> Job:
        """One of them as it is shown."""

    def details(self, key: str) -> JobDetails:
        """Everything about a job."""

    def why(self, key: str) -> Why:
        """Why a job is where it is, without the verdict."""

    def last_waiting(self, key: str) -> str:
        """Of an array the part that waits and comes last; else the same key."""

    def name(self, key: str) -> Name:
        """What the books call a job that has not ended."""

    def sees(self, application: str) -> bool:
        """Whether the caller may know of this application."""

    def called(self, ask: Ask) -> tuple[str, str, bool]:
        """Key and name of what waits, and whether the caller may act on it."""

    def in_line(self, ask: Ask) -> tuple[str, str, Reason | None, bool]:
        """Of what waits: its key, and its name and reason as far as the caller may know them; whether it may act."""

    def submission(self, draft: JobDraft) -> Supposition:
        """What happens when the caller submits this."""

    def target(self, key: str, queue: str) -> str:
        """The full path of the queue that a job would be moved to."""

    def future(self) -> tuple[Runtimes, Callable[[Ask], Kind]]:
        """What is known about run times, and which jobs are alike. On a copy only."""

    def arrivals(self) -> Arrivals | None:
        """What came so far, so that a forecast knows what may come; None: nobody remembers. On a copy only."""

    def knows(self, key: str) -> bool:
        """Whether the scheduler has to do with a job: it waits, it runs, or it waits for its back-off to be over."""


def ask_of(moment: Moment, name: Name) -> Ask | None:
    """An ask in the books."""
    app = application_of(moment, name[1])
    return app.asks.get(name[2]) if app is not None else None


def application_of(moment: Moment, application: str) -> Application | None:
    """An application in the books."""
    partition = moment.scheduler.cluster.partitions.get(moment.partition)
    return partition.applications.get(application) if partition is not None else None


def drafted(draft: JobDraft, partition: str, least: Mapping[str, int] = MappingProxyType({})) -> Supposition:
    """That a draft is submitted where work has no user that counts; its command does not matter. It asks for one core
    if it says nothing else; `least`: what else all work there asks for.
    """
    ask = AskSpec(
        application=DRAFT,
        key=DRAFT,
        resources=Resources({**least, "vcore": 1000, **with_vcore(draft.resources or {})}),
        priority=draft.priority,
        labels=draft.labels,
        where=where_of(draft.node_selector, draft.ports, draft.beside, draft.apart_from),
        priority_class=draft.priority_class,
        idle=draft.idle,
        time_limit_ms=draft.time_limit_ms,
    )
    return submitted(ApplicationSpec(id=DRAFT, queue=draft.queue, user="nobody", partition=partition), [ask])


@dataclass(slots=True, kw_only=True)
class Place(ABC):
    """One running service."""

    version: str
    started_at_ms: int
    open_reads: bool = False
    """Everybody may read what is not about single users, without a token."""
    nodes_may_join: ClassVar[bool] = True
    """False where there is one machine."""
    has_pods: ClassVar[bool] = False
    streams: Streams = field(default_factory=Streams)
    history_samples: HistorySamples = field(default_factory=HistorySamples)
    questions: Passes = field(default_factory=lambda: Passes(AT_ONCE))
    """Passes for questions that are answered in processes of their own."""
    looks: Passes = field(default_factory=lambda: Passes(AT_ONCE))
    """Passes for views of much, which are quicker than questions and do not wait for them."""
    pages: Pages = field(default_factory=Pages)

    # -- what the places do differently -------------------------------------------------------------------------------

    @abstractmethod
    def routers(self) -> list[APIRouter]:
        """Routes that only this place has; they come after those of all."""

    @abstractmethod
    def caller(self, request: Request) -> Caller:
        """Who is asking. Raises `Refusal` if nobody knows, or if that user is not served here."""

    @abstractmethod
    async def read(self, ask: Callable[[Moment], T], caller: Caller | None = None) -> T:
        """Have `ask(moment)` answered while the books stand still; it returns values. None: who sees everything."""

    @property
    @abstractmethod
    def history_records(self) -> HistoryRecords:
        """Event records, as /ws/v1 tells them. Raises `Refusal` while there are none."""

    @abstractmethod
    def problems(self) -> list[str]:
        """What is wrong at the moment, as sentences."""

    @abstractmethod
    def failing(self) -> bool:
        """Whether it had better be started anew."""

    @abstractmethod
    def faults(self) -> int:
        """Faults in the program so far."""

    @abstractmethod
    async def info(self, caller: Caller) -> Service:
        """What this service is."""

    @abstractmethod
    async def details(self, key: str, caller: Caller) -> JobDetails:
        """Everything about a job, with what the place knows beside the books."""

    @abstractmethod
    def events(self, caller: Caller, after: tuple[int, int] | None) -> AsyncGenerator[bytes, None]:
        """Server-sent events: what came after `after` (None: only what is new), then what happens."""

    @abstractmethod
    def card(self) -> Scorecard:
        """How often forecasts came true so far."""

    @abstractmethod
    def expect(self, made_ms: int, plain: Expected) -> Expected:
        """A forecast before it is given out: with its interval as wide as was learned."""

    @abstractmethod
    def figures(self, moment: Moment) -> tuple[list[Metric], Measures]:
        """Figures of its own, and the measures of its scheduler."""

    def before_books(self) -> list[Metric] | None:
        """Figures while there are no books to look at; None: there are."""
        return None

    def is_large(self) -> bool:
        """Whether a view of everything would keep others waiting for long."""
        return False

    def user_of(self, scope: Mapping[str, Any]) -> int | None:
        """In whose line a request waits for its turn, by what it shows; None: in none. Says nothing about rights."""
        del scope
        return None

    def encode(self, content: Any) -> bytes:
        """An answer as JSON."""
        return msgspec.json.encode(content)

    # -- what they do alike -------------------------------------------------------------------------------------------

    async def shown(
        self, ask: Callable[[Moment], T], caller: Caller | None = None, encode: Callable[[Any], bytes] | None = None
    ) -> T | bytes:
        """What `ask` says of the books; where there is much, encoded by a copy while everything goes on."""
        if not self.is_large():
            return await self.read(ask, caller)
        return await self.apart(lambda moment: lambda: (encode or self.encode)(ask(moment)), caller, self.looks)

    async def apart(
        self,
        ask: Callable[[Moment], Callable[[], T]],
        caller: Caller | None = None,
        passes: Passes | None = None,
        took: Callable[[float], object] = float,
    ) -> T:
        """The question that `ask` makes of the moment, answered on a copy of everything. Raises `Refusal`.

        `took` is told how many seconds on a processor that cost, whatever came of it.
        """

        def guarded(question: Callable[[], T]) -> T | Refusal:
            try:
                return question()
            except Refusal as no:
                return no

        def fork(moment: Moment) -> Any:
            question = ask(moment)
            return ask_apart(lambda: guarded(question), PATIENCE_S)

        async with (passes or self.questions).one():
            asked = await self.read(fork, caller)
            try:
                found = await asyncio.to_thread(asked.answer)
            except NoAnswer as problem:
                raise Refusal("unavailable", f"the question could not be answered: {problem}; try again") from problem
            finally:
                took(asked.cpu_s)
        if isinstance(found, Refusal):
            raise found
        return cast(T, found)

    def one_stream(self, caller: Caller | None) -> AbstractContextManager[None]:
        """Open while a stream of this caller is; no bound where a place has none. Raises `Refusal` before it begins."""
        del caller
        return nullcontext()

    async def keep_samples(self) -> None:
        """Note once a minute how much there is, until cancelled."""
        count = history.count
        await history.keep(self.history_samples, lambda: self.read(lambda m: count(m.scheduler, time.time_ns())))


def now_ms() -> int:
    """The wall clock in milliseconds, for what people are shown."""
    return time.time_ns() // 1_000_000


async def place_of(request: Request) -> Any:
    """The service that this request came to."""
    return request.app.state.place


async def caller_of(request: Request) -> Caller:
    """Who is asking, in whose line the request waits from now on. Raises `Refusal`."""
    caller: Caller = await run_in_threadpool(request.app.state.place.caller, request)
    asking.set(caller.uid)
    if (connection := request.scope.get(CONNECTION)) is not None:
        connection.known_as(caller.uid)
    return caller


async def reader_of(request: Request) -> Caller | None:
    """Who reads what is not about single users; None where everybody may. Raises `Refusal`."""
    if not request.app.state.place.open_reads:
        return await caller_of(request)
    asking.set(STRANGERS)
    return None


PlaceOf = Annotated[Place, Depends(place_of)]
CallerOf = Annotated[Caller, Depends(caller_of)]
ReaderOf = Annotated[Caller | None, Depends(reader_of)]


def plain(content: Any, status: int = 200) -> Response:
    """An answer as JSON that is not declared as a shape."""
    return Response(msgspec.json.encode(content), status, media_type="application/json")
