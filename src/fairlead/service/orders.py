"""Orders about jobs: for one, or for each of several parts of an array.

Decides in which order parts are taken, and what is answered. Never decides whether an order makes sense for one of
them. Invariant: each part is ordered for itself; an order about several is refused when it is refused for all of them,
and what it makes no sense for is left alone.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.local import selection
from fairlead.local.callers import Caller, Rights
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal, Turn
from fairlead.scheduler import Scheduler
from fairlead.service import array_views
from fairlead.service.machine import EVERYTHING, MachinePlace
from fairlead.wire import jobs as wire

A_TURN = 100
"""Jobs that are entered, ordered about or shown in one turn of the writer: whoever else asks waits only for that."""


async def order_each(
    place: MachinePlace,
    caller: Caller,
    key: str,
    act: Callable[[Turn, str], str | None],
    *,
    last_first: bool = False,
) -> wire.Job:
    """Give an order for each job that the key means; how they are then. Raises `Refusal`.

    `act` refuses before it enters anything, or says what came in between. `last_first`: where others of the array would
    take the place of the first ones.
    """
    keys = await place.look(lambda scheduler, jobs: _keys(jobs, Rights(caller, scheduler), key))
    refused: list[Refusal] = []

    def some(turn: Turn, part: list[str]) -> None:
        for one in part:
            try:
                if said := act(turn, one):
                    refused.append(Refusal("conflict", said, field="queue"))
            except Refusal as refusal:
                refused.append(refusal)

    keys = keys[::-1] if last_first else keys
    for begin in range(0, len(keys), A_TURN):
        part = keys[begin : begin + A_TURN]
        await place.do(lambda turn, part=part: some(turn, part))  # type: ignore[misc]
    if len(refused) == len(keys):
        first = refused[0]
        if keys == [key]:
            raise first
        raise Refusal(
            first.code, f"that is for none of the {len(keys)} parts of {key}: {first.message}", field=first.field
        )
    return await place.look(lambda scheduler, jobs: row_of(jobs, scheduler, key))


def _keys(jobs: Jobs, rights: Rights, key: str) -> list[str]:
    return [job.key for job in selection.meant(jobs, rights, key)]


def row_of(jobs: Jobs, scheduler: Scheduler, key: str) -> wire.Job:
    """How a job is, or all that a key means. Raises `Refusal` if it has left the books."""
    return array_views.row(jobs, scheduler, key, selection.meant(jobs, Rights(EVERYTHING, scheduler), key))
