"""Orders about jobs: for one, or for each of several parts of an array; and submissions of many jobs.

Decides in which order parts are taken, and what is answered. Never decides whether an order makes sense for one of
them. Invariant: each part is ordered for itself; an order about several is refused when it is refused for all of them,
and what it makes no sense for is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.local import selection
from fairlead.local.callers import Caller, Rights
from fairlead.local.history_records import ArrayBrokenOff
from fairlead.local.jobs import Jobs
from fairlead.local.requests import Intake, Submitted
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

    def some(turn: Turn, part: list[str]) -> list[Refusal]:
        found = []  # Its own: it is done again where the fault of another request takes the turn back.
        for one in part:
            try:
                if said := act(turn, one):
                    found.append(Refusal("conflict", said, field="queue"))
            except Refusal as refusal:
                found.append(refusal)
        return found

    keys = keys[::-1] if last_first else keys
    for begin in range(0, len(keys), A_TURN):
        part = keys[begin : begin + A_TURN]
        try:
            refused += await place.do(lambda turn, part=part: some(turn, part))  # type: ignore[misc]
        except Refusal as refusal:
            if begin:
                done = f"it was ordered for {begin} of the {len(keys)} parts of {key}; give it again for the rest"
                refusal.message = f"{done}: {refusal.message}"
            raise
    if len(refused) == len(keys):
        first = refused[-1] if last_first else refused[0]
        if keys == [key]:
            raise first
        said = f"nothing was done to any of the {len(keys)} parts of {key}: {first.message}"
        raise Refusal(first.code, said, field=first.field)
    return await place.look(lambda scheduler, jobs: row_of(jobs, scheduler, key))


async def submit_some_a_turn(place: MachinePlace, intake: Intake) -> Submitted:
    """Enter a submission. What is refused on the way says which jobs are in already. Raises `Refusal`."""
    submitted: Submitted | None = None
    entered: Sequence[str] = ()
    while submitted is None:
        try:
            submitted = await place.do(lambda turn: intake.step(place.local.jobs, turn, A_TURN))
        except Refusal as refusal:
            if entered:
                said = f"{entered[0]} to {entered[-1]} of this submission are in already, at least in part; the rest is"
                refusal.message = f"{said} not: {refusal.message}"
                _break_off(place, entered[-1])
            raise
        entered = intake.keys
    return submitted


def _break_off(place: MachinePlace, key: str) -> None:
    """No more of this comes unless it is submitted again: what waits for an array waits for the parts that came."""

    def note(turn: Turn) -> None:
        array = place.local.jobs.arrays.get(key)
        if array is not None and not array.is_whole:
            turn.note(ArrayBrokenOff(key=key))

    place.runtime.do(note, must=True)


def _keys(jobs: Jobs, rights: Rights, key: str) -> list[str]:
    return [job.key for job in selection.meant(jobs, rights, key)]


def row_of(jobs: Jobs, scheduler: Scheduler, key: str) -> wire.Job:
    """How a job is, or all that a key means. Raises `Refusal` if it has left the books."""
    return array_views.row(jobs, scheduler, key, selection.meant(jobs, Rights(EVERYTHING, scheduler), key))
