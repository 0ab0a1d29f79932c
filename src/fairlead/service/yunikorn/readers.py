"""Who reads /ws/v1, and what is seen there.

Decides that a reader who is no administrator sees nothing of others' applications: they are left out of lists and are
not found by name. Totals of queues, nodes and groups are everybody's. Invariant: the same rule holds for lists, single
reads, event records and the state dump.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from fairlead.core.books.partition import Partition
from fairlead.insight.history_records import Record
from fairlead.local.callers import Caller
from fairlead.scheduler import Scheduler
from fairlead.service.place import Moment, Place, caller_of
from fairlead.service.yunikorn import transport

Sees = Callable[[str], bool]


def sees_all(who: Caller | None) -> bool:
    """Whether nothing is hidden."""
    return who is None or who.is_admin


def administrator(request: Request) -> Caller:
    """Who asks for everything at once: an administrator, also where everybody may read the rest. Raises `Refusal`."""
    who = caller_of(request)
    who.require_admin("read everything at once")
    return who


Administrator = Annotated[Caller, Depends(administrator)]


def visible(place: Place, who: Caller | None) -> Callable[[Sequence[Record]], Awaitable[list[Record]]]:
    """Leaves out the records about applications that the reader may not see."""

    async def keep(records: Sequence[Record]) -> list[Record]:
        if sees_all(who):
            return list(records)
        keys = {record.owner for record in records if record.owner}
        seen = await place.read(lambda moment: {key for key in keys if moment.sees(key)}, who)
        return [record for record in records if not record.owner or record.owner in seen]

    return keep


def partition_of(scheduler: Scheduler, name: str) -> Partition:
    """The partition of a name. Raises `Refusal`."""
    found = scheduler.cluster.partitions.get(transport.whole(name))
    if found is None:
        raise transport.missing("Partition not found")
    return found


async def read(place: Place, who: Caller | None, ask: Callable[[Moment], Any], *, pretty: bool = False) -> Response:
    """What `ask` says of the books, as an answer; what is long is written beside the loop."""

    def encoded(content: Any) -> bytes:
        return transport.as_text(content, pretty=pretty)

    found = await place.shown(ask, who, encoded)
    return transport.answer(found if isinstance(found, bytes) else await run_in_threadpool(encoded, found))
