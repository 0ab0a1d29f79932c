"""Who reads /ws/v1, and what he sees there.

Decides that a reader who is no administrator sees nothing of others' applications: they are left out of lists and are
not found by name. Totals of queues, nodes and groups are everybody's. Invariant: the same rule holds for lists, single
reads, event records and the state dump.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from fairlead.core.partition import Partition
from fairlead.insight.history_records import Record
from fairlead.local.access import Rights
from fairlead.local.callers import Caller
from fairlead.scheduler import Scheduler
from fairlead.service.desk import Desk, caller_of, reader_of
from fairlead.service.yunikorn import transport
from fairlead.service.yunikorn.transport import Plainly

Sees = Callable[[str], bool]


def reader(request: Request) -> Caller | None:
    """Who reads; None: everybody may. Raises `Refusal`."""
    return reader_of(request)


Reader = Annotated["Caller | None", Depends(reader)]


def sees_all(who: Caller | None) -> bool:
    """Whether nothing is hidden from him."""
    return who is None or who.is_admin


def administrator(request: Request) -> Caller:
    """Who asks for everything at once: an administrator, also where everybody may read the rest. Raises `Refusal`."""
    who = caller_of(request)
    who.require_admin("read everything at once")
    return who


Administrator = Annotated[Caller, Depends(administrator)]


def sees(desk: Desk, who: Caller | None, scheduler: Scheduler) -> Sees:
    """Whether the reader may see the application of an id, as long as the books stand still."""
    if who is None or who.is_admin:
        return lambda _: True
    jobs, rights = desk.place.jobs, Rights(who, scheduler)

    def may_see(key: str) -> bool:
        job = jobs.get(key)
        return job is not None and rights.may_act(job)

    return may_see


def visible(desk: Desk, who: Caller | None) -> Callable[[Sequence[Record]], Awaitable[list[Record]]]:
    """Leaves out the records about applications that the reader may not see."""

    async def keep(records: Sequence[Record]) -> list[Record]:
        if who is None or who.is_admin:
            return list(records)
        keys = {record.owner for record in records if record.owner}
        seen = await desk.read(lambda scheduler, _: set(filter(sees(desk, who, scheduler), keys)))
        return [record for record in records if not record.owner or record.owner in seen]

    return keep


def partition_of(scheduler: Scheduler, name: str) -> Partition:
    """The partition of a name. Raises `Plainly`."""
    found = scheduler.cluster.partitions.get(transport.whole(name))
    if found is None:
        raise Plainly(404, "Partition not found")
    return found


async def read(request: Request, desk: Desk, ask: Callable[[Scheduler], Any]) -> Response:
    """What `ask` says of the books between two turns, or its error, as an answer."""
    return await transport.answered(request, desk.told(ask))
