"""Routes about windows, and the clock that they go by.

Decides who may declare one (administrators), whether what it names is there, and when one that comes again begins where
clocks are changed. Never decides what waits for it: the scheduler does. Invariant: a window of every day or week begins
at the same time of day by the clock of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import grp
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fastapi import Path
from starlette.concurrency import run_in_threadpool

from fairlead.core.books.admission import WINDOW
from fairlead.core.books.windows import occurrence
from fairlead.core.model import events
from fairlead.core.model.decisions import WindowOpened
from fairlead.core.model.specs import DEFAULT_PARTITION, WindowSpec
from fairlead.local import accounts
from fairlead.local.job_names import job_of
from fairlead.runtime import Refusal, Turn
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf
from fairlead.times import clock_shift_ms, moment
from fairlead.wire import windows as wire
from fairlead.wire.fields import one_line
from fairlead.wire.jobs import Done

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.core.books.partition import Partition
    from fairlead.runtime import Entry
    from fairlead.scheduler import Scheduler

log = logging.getLogger("fairlead.service")
router = api("declarations")
Name = Annotated[str, Path(max_length=64, description="Its name.")]
DAY_MS = 86_400_000
LOOK_S = 60.0


# -- what goes out ------------------------------------------------------------------------------------------------


def views(scheduler: Scheduler) -> list[wire.Window]:
    """Every window that is open or to come, the next first."""
    partition = scheduler.cluster.partitions[DEFAULT_PARTITION]
    windows = scheduler.cluster.admission.windows
    waiting: dict[str, int] = {}
    for app in partition.applications.values() if windows else ():
        for ask in app.waiting_asks() if app.pending_count else ():
            for spec, _, _ in windows.ahead_of(ask, partition.now_ms):
                waiting[spec.name] = waiting.get(spec.name, 0) + 1
    found = [_view(partition, spec, waiting.get(spec.name, 0)) for spec in windows]
    return sorted((each for each in found if each is not None), key=lambda each: (each.starts_at_ms, each.name))


def _view(partition: Partition, spec: WindowSpec, waiting: int) -> wire.Window | None:
    times = occurrence(spec, partition.now_ms)
    if times is None:
        return None
    running = partition.admission.windows.runs_into(spec, partition, times[0])
    return wire.Window(
        name=spec.name,
        starts_at_ms=times[0],
        ends_at_ms=times[1],
        open=times[0] <= partition.now_ms,
        every_ms=spec.every_ms,
        nodes=list(spec.nodes),
        queues=list(spec.queues),
        users=list(spec.users),
        groups=list(spec.groups),
        stop_running=spec.stop_running,
        why=spec.why,
        waiting=waiting,
        running=[job_of(ask.key) for ask in running],
    )


# -- the routes ---------------------------------------------------------------------------------------------------


@router.get("/windows")
async def list_windows(place: MachineOf, page: PagesOf) -> wire.WindowPage:
    """The windows that are open or to come, the next one first, and the jobs that they concern."""
    found = await place.look(lambda scheduler, _: views(scheduler))
    return page.of(wire.WindowPage, found, lambda each: (each.starts_at_ms, each.name))


@router.put("/windows/{name}", responses=documented(409))
async def set_window(name: Name, body: wire.WindowDraft, place: MachineOf, caller: CallerOf) -> wire.Window:
    """Keep nodes free for a time, or change when (administrators).

    What would still run when it begins does not start, unless the window is for it. What runs already goes on, except
    with `stop_running`.
    """
    caller.require_admin("declare windows")
    try:
        one_line(name)
    except ValueError as problem:
        raise Refusal("invalid", f"the name {problem}", field="name") from None
    await run_in_threadpool(_require_known, body)

    def act(turn: Turn) -> None:
        spec = _spec(turn, name, body)
        reason = turn.scheduler.cluster.admission.of(WINDOW).why_not_set(spec)
        if reason is not None:
            raise Refusal("invalid", reason.sentence())
        turn.event(events.SetWindow(spec, caller.user))

    await place.do(act)
    found = next((each for each in await place.look(lambda s, _: views(s)) if each.name == name), None)
    if found is None:
        raise Refusal("conflict", f"window {name!r} is gone again")
    return found


@router.delete("/windows/{name}", responses=documented(404))
async def remove_window(name: Name, place: MachineOf, caller: CallerOf) -> Done:
    """Take a window back; what waited for it is looked at again (administrators)."""
    caller.require_admin("remove windows")

    def act(turn: Turn) -> None:
        if turn.scheduler.cluster.admission.of(WINDOW).why_not_remove(name) is not None:
            raise Refusal("not-found", f"there is no window {name!r}; `fairlead maintenance ls` lists them")
        turn.event(events.RemoveWindow(name, caller.user))

    await place.do(act)
    return Done(ok=True)


def _spec(turn: Turn, name: str, body: wire.WindowDraft) -> WindowSpec:
    """The window in the core's words. Raises `Refusal` for what is over, and for unknown nodes and queues."""
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    spec = WindowSpec(
        name=name,
        starts_ms=body.starts_at_ms,
        length_ms=body.length_ms,
        every_ms=body.every_ms,
        nodes=tuple(dict.fromkeys(body.nodes)),
        queues=tuple(dict.fromkeys(_path(partition, queue) for queue in body.queues)),
        users=tuple(dict.fromkeys(body.users)),
        groups=tuple(dict.fromkeys(body.groups)),
        stop_running=body.stop_running,
        why=body.why,
    )
    if occurrence(spec, turn.now_ms) is None:
        raise Refusal("invalid", f"it would have ended at {moment(spec.starts_ms + spec.length_ms)}, which is past")
    for node in spec.nodes:
        if node not in partition.nodes.nodes:
            raise Refusal("invalid", f"there is no node {node!r}; `fairlead nodes` lists them", field="nodes")
    return spec


def _path(partition: Partition, queue: str) -> str:
    found = partition.root.find(queue if f"{queue}.".lower().startswith("root.") else f"root.{queue}")
    if found is None:
        raise Refusal("invalid", f"there is no queue {queue!r}; `fairlead queues` lists them", field="queues")
    return found.path


def _require_known(body: wire.WindowDraft) -> None:
    """Raises `Refusal` for users and groups that this machine does not know: a misspelt one would be kept out."""
    for user in body.users:
        if accounts.by_name(user) is None:
            raise Refusal("invalid", f"this machine has no user {user!r}", field="users")
    for group in body.groups:
        try:
            grp.getgrnam(group)
        except KeyError:
            raise Refusal("invalid", f"this machine has no group {group!r}", field="groups") from None


# -- the clock ----------------------------------------------------------------------------------------------------


def by_the_clock(spec: WindowSpec, now_ms: int) -> WindowSpec:
    """The window as it comes next: clocks that were set forward or back in between move it with them."""
    times = occurrence(spec, now_ms)
    if times is None or times[0] <= now_ms or not spec.every_ms or spec.every_ms % DAY_MS:
        return spec
    shift_ms = clock_shift_ms(spec.starts_ms, times[0])
    return replace(spec, starts_ms=times[0] + shift_ms) if shift_ms else spec


async def keep_the_clock(place: MachinePlace) -> None:
    """Move windows when clocks are changed before they come next."""

    def moved(found: Iterable[WindowSpec], now_ms: int) -> list[WindowSpec]:
        return [new for spec in found if (new := by_the_clock(spec, now_ms)) is not spec]

    def act(turn: Turn) -> None:
        for spec in moved(list(turn.scheduler.cluster.admission.windows), turn.now_ms):
            turn.event(events.SetWindow(spec))

    while True:
        await asyncio.sleep(LOOK_S)
        if await place.look(lambda s, _: moved(s.cluster.admission.windows, s.cluster.now_ms)):
            # While nothing can be recorded a later look does it.
            with contextlib.suppress(Refusal):
                await place.do(act)


class Announcer:
    """Says in the log when a window begins over jobs that go on."""

    def offer(self, entries: Sequence[Entry]) -> None:
        """These became durable."""
        for entry in entries:
            for decision in entry.decisions:
                if isinstance(decision, WindowOpened) and decision.stays:
                    keys = ", ".join(map(job_of, decision.stays))
                    log.warning("window %s has begun, and jobs go on that it is not for: %s", decision.name, keys)
