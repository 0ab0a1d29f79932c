"""What a service does by itself while it runs: a machine's watches memory, and has noted what work waits for.

Decides when it looks, and brings what follows to the writer. Never decides what is stopped (`local.pressure`) or noted
(`local.waits`). Invariant: a look that fails, or that nothing can be recorded of, is made again, and so is a duty.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from fairlead.local.pressure import Step
from fairlead.local.waits import WaitNotes
from fairlead.runtime import Refusal, Unavailable

if TYPE_CHECKING:
    from fairlead.local.memory_guard import MemoryGuard
    from fairlead.local.pressure import Victim
    from fairlead.service.machine import MachinePlace

log = logging.getLogger("fairlead.service")

WAIT_NOTES_S = 0.2
MEMORY_LOOK_S = 0.5
AGAIN_S = 1.0
"""Before a duty that ended on a fault begins again."""
_MEMORY = {
    Step.BEGIN: "it is short, so nothing new starts",
    Step.END: "there is enough again, so work starts again",
}


async def again(what: str, duty: Callable[[], Awaitable[None]]) -> None:
    """Do it until it is done or cancelled. On a fault, which is said, it begins again: nobody looks at how it ended.

    That nothing can be recorded now, or the service is about to end, is no fault of it and said elsewhere.
    """
    while True:
        try:
            return await duty()
        except Unavailable as why:
            log.debug("what the service does by itself (%s) begins again: %s", what, why)
        except Exception as fault:
            log.error("a fault in what the service does by itself (%s); it begins again", what, exc_info=fault)
        await asyncio.sleep(AGAIN_S)


async def guard_memory(place: MachinePlace, guard: MemoryGuard) -> None:
    """See to it that memory does not run out, as long as work runs."""
    if not guard.threshold:
        # Memory may have been short when somebody last looked: nobody would ever open the node again.
        if place.local.jobs.memory_short is not None:
            await _enter_memory(place, guard, Step.END, None)
        return
    while True:
        await asyncio.sleep(MEMORY_LOOK_S)
        running = await place.look(lambda _, jobs: guard.running(jobs))
        if guard.idle(running):
            continue
        try:
            memory, uses = await run_in_threadpool(guard.measure, place.machine, running)
        except (OSError, ValueError) as problem:
            log.warning("memory could not be measured: %s", problem)
            continue
        step, victim = guard.decide(memory, uses, running)
        if step in (Step.BEGIN, Step.END) or victim is not None:
            log.warning("memory: %s", victim.sentence if victim is not None else _MEMORY[step])
            await _enter_memory(place, guard, step, victim)


async def _enter_memory(place: MachinePlace, guard: MemoryGuard, step: Step, victim: Victim | None) -> None:
    local = place.local
    try:
        told = await place.do(lambda turn: guard.enter(turn, local.jobs, step=step, victim=victim, node=local.node))
    except Refusal:
        # While nothing can be recorded nobody can be stopped either; a later look does it.
        guard.not_entered(step)
    else:
        guard.entered(told)


async def note_waits(place: MachinePlace) -> None:
    """Have noted, some at a time, what waiting work waits for."""
    notes = WaitNotes()
    while True:
        await asyncio.sleep(WAIT_NOTES_S)
        jobs = place.local.jobs
        if jobs.live_count:
            # While nothing can be recorded there is nothing to note either; the next look does it.
            with contextlib.suppress(Refusal):
                await place.do(lambda turn: notes.look(turn, place.local.jobs))
