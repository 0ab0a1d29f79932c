"""Routes about who has what of a machine, for everybody who shares it.

Decides that each may see whose jobs have the room and for how long, since that is what one waits for; the names of
others' jobs are left out where the administrator wants it (`up --private-names`). Never shows commands or output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query

from fairlead.local.callers import Caller, Rights
from fairlead.local.job import Job
from fairlead.local.job_states import ON_THE_MACHINE
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf
from fairlead.wire import occupancy as wire
from fairlead.wire.arrays import order
from fairlead.wire.fields import with_cpu

if TYPE_CHECKING:
    from fairlead.local.jobs import Jobs
    from fairlead.scheduler import Scheduler

router = api("cluster")


@router.get("/occupants")
async def list_occupants(
    place: MachineOf,
    caller: CallerOf,
    page: PagesOf,
    node: Annotated[str | None, Query(max_length=253, description="Only on this node.")] = None,
) -> wire.OccupantPage:
    """The jobs that have room, everybody's: on which node, since when, and until when at most."""

    def ask(scheduler: Scheduler, jobs: Jobs) -> wire.OccupantPage:
        names = _Names(place, caller, scheduler)
        found = (job for job in _running(jobs) if node in (None, job.node))
        return page.of(wire.OccupantPage, found, lambda job: (job.node, *order(job.key)), names.occupant)

    return await place.look(ask)


@router.get("/gpus")
async def list_gpus(place: MachineOf, caller: CallerOf, page: PagesOf) -> wire.GpuPage:
    """The GPUs of the machine, and parts of them that are given out apart: what each is, and which job has it."""

    def ask(scheduler: Scheduler, jobs: Jobs) -> dict[int, wire.RunningJob]:
        names = _Names(place, caller, scheduler)
        return {number: names.holder(job) for job in _running(jobs) for number in job.gpus}

    holders = await place.look(ask)
    found = [
        wire.Gpu(
            number=each.number,
            resource=each.kind,
            uuid=each.uuid,
            model=each.model,
            memory_bytes=each.memory_bytes,
            holder=holders.get(each.number),
        )
        for each in place.machine.gpus
    ]
    return page.of(wire.GpuPage, found, lambda each: each.number)


def _running(jobs: Jobs) -> Iterator[Job]:
    return (job for job in jobs.live() if job.state in ON_THE_MACHINE)


class _Names:
    """What one caller may read of jobs that have room."""

    def __init__(self, place: MachinePlace, caller: Caller, scheduler: Scheduler) -> None:
        self._private = place.private_names
        self._rights = Rights(caller, scheduler)

    def holder(self, job: Job) -> wire.RunningJob:
        """A job that has room."""
        return wire.RunningJob(**self._said(job))

    def occupant(self, job: Job) -> wire.Occupant:
        """The same with what it has."""
        resources = with_cpu(job.spec.resources.as_dict())
        return wire.Occupant(**self._said(job), node=job.node, resources=resources, gpus=list(job.gpus))

    def _said(self, job: Job) -> dict[str, Any]:
        limit_ms, begun_ms, visible = job.limit_ms, job.started_at_ms, self._rights.may_act(job)
        return {
            "key": job.key,
            "user": job.spec.user,
            "name": job.spec.name if not self._private or visible else "",
            "queue": job.queue,
            "state": job.state.value,
            "started_at_ms": begun_ms,
            "ends_at_ms": None if limit_ms is None or begun_ms is None else begun_ms + limit_ms,
            "visible": visible,
        }
