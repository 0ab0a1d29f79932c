"""Routes about runs that go on and are not in the journal.

Decides who may see and stop them: their user, and administrators. Never stops one by itself.
"""

from __future__ import annotations

from fairlead.local import accounts
from fairlead.local.callers import Caller
from fairlead.local.unknown_runs import UnknownRun
from fairlead.runtime import Refusal
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf
from fairlead.wire import unknown_runs as wire
from fairlead.wire.fields import with_cpu
from fairlead.wire.jobs import Done

router = api("cluster")


@router.get("/unknown-runs")
async def list_unknown_runs(place: MachineOf, caller: CallerOf, page: PagesOf) -> wire.UnknownRunPage:
    """Runs that go on and are not in the journal: the caller's; for administrators all."""
    seen = sorted(await _seen(place, caller), key=lambda each: each.run)
    return page.of(wire.UnknownRunPage, seen, lambda each: each.run, lambda each: _shown(place, each))


@router.post("/unknown-runs/{run}/stop", responses=documented(404))
async def stop_unknown_run(run: str, place: MachineOf, caller: CallerOf, body: wire.Stop | None = None) -> Done:
    """End such a run: SIGTERM, and SIGKILL after the grace."""
    if run not in [each.run for each in await _seen(place, caller)]:
        raise Refusal("not-found", f"there is no unknown run {run!r}; `fairlead unknown` lists them")
    place.local.stop_unknown(run, (body or wire.Stop()).grace_ms)
    return Done(ok=True)


async def _seen(place: MachinePlace, caller: Caller) -> list[UnknownRun]:
    found = await place.look(lambda *_: list(place.local.unknown))
    return [each for each in found if caller.is_admin or (not caller.within and _uid(place, each) == caller.uid)]


def _uid(place: MachinePlace, run: UnknownRun) -> int:
    return place.gate.own_uid if run.uid is None else run.uid


def _shown(place: MachinePlace, run: UnknownRun) -> wire.UnknownRun:
    return wire.UnknownRun(
        run=run.run,
        user=accounts.by_uid(_uid(place, run)).name,
        pid=run.pid,
        started_at_ms=run.started_at_ms,
        command=list(run.command),
        resources=with_cpu(run.resources.as_dict()),
        gpus=list(run.gpus),
    )
