"""Routes about the queue file: in force, check, difference, apply, history, rollback.

Decides who may change it. Never decides whether a queue file is good (`fairlead.config` and the scheduler do).
Invariant: a file with an error, or with something that would be ignored, changes nothing; what is applied is one entry
of the journal, with who and from where.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Query
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool

from fairlead.config import problems_of
from fairlead.insight.preview import preview_of
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal, Turn
from fairlead.runtime.configurations import Applied, Version, configure
from fairlead.scheduler import Scheduler
from fairlead.service.configfile import shown_problem, taken
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf
from fairlead.wire import configuration as wire

router = api("config", "/config")

FROM_API = "api"
BUILT_IN = "built-in"
VersionQuery = Annotated[int | None, Query(ge=1, le=2**31, description="Of this version; absent: the one in force.")]


def _fields(version: Version, current: Version) -> dict[str, Any]:
    named = {name: getattr(version, name) for name in ("at_ms", "who", "source", "checksum", "origin")}
    return named | {"version": version.number, "in_force": version.number == current.number}


def _pick(place: MachinePlace, number: int | None) -> tuple[Version, Version]:
    """A version (None: the one in force) and the one in force; called between two turns."""
    history = place.runtime.books.configurations
    current = history.current
    if current is None:
        raise Refusal("unavailable", "no configuration is in force yet; try again in a moment")
    found = current if number is None else history.get(number)
    if found is None:
        raise Refusal("not-found", f"version {number} is not kept; `fairlead config history` lists those that are")
    return found, current


@router.get("", responses=documented(404))
async def get_config(place: MachineOf, version: VersionQuery = None) -> wire.ConfigAnswer:
    """The queue file in force, or that of an earlier version."""
    found, current = await place.look(lambda *_: _pick(place, version))
    return wire.ConfigAnswer(text=found.text, **_fields(found, current))


@router.get("/history")
async def list_config_versions(
    place: MachineOf,
    page: PagesOf,
    who: Annotated[str | None, Query(max_length=256, description="Only those that this user put in force.")] = None,
) -> wire.ConfigPage:
    """Every version that is kept, the newest first: who put it in force, when, from where."""
    kept = await place.look(lambda *_: list(place.runtime.books.configurations))
    found = [wire.ConfigVersion(**_fields(each, kept[-1])) for each in kept if who in (None, each.who)]
    return page.of(wire.ConfigPage, found, lambda each: -each.version)


@router.get("/status")
async def get_config_status(place: MachineOf) -> wire.ConfigStatus:
    """What is in force, and how the watched file stands to it: its errors, if it was refused."""
    return await status_of(place)


async def status_of(place: MachinePlace) -> wire.ConfigStatus:
    """What `GET /config/status` answers."""
    found, current = await place.look(lambda *_: _pick(place, None))
    watched = place.config_file
    file = watched.status(current.checksum) if watched is not None else None
    return wire.ConfigStatus(file=file, **_fields(found, current))


@router.post("/check", responses=documented(413))
async def check_config(body: wire.ConfigText) -> wire.ConfigVerdict:
    """Whether a queue file could be used, with everything that is wrong with it."""
    found = await run_in_threadpool(problems_of, body.text)
    errors = [shown_problem(problem) for problem in found if problem.severity == "error"]
    warnings = [shown_problem(problem) for problem in found if problem.severity != "error"]
    return wire.ConfigVerdict(ok=not errors, errors=errors, warnings=warnings)


@router.post("/diff", responses=documented(404, 413))
async def diff_config(body: wire.ConfigProposal, place: MachineOf, caller: CallerOf) -> wire.ConfigDifference:
    """What a queue file, or an earlier version, would change now: queues, limits, rules, and jobs (administrators)."""
    caller.require_admin("see what a change of the queues would do to everybody's work")

    def look(scheduler: Scheduler, jobs: Jobs) -> tuple[Version, Version, bytes, dict[str, tuple[str, str, str]]]:
        found, current = _pick(place, body.version)
        # Encoded at once: nothing of it may be shared with the books, which go on.
        state = msgspec.json.encode(scheduler.dump())
        known = {job.key: (job.spec.user, job.spec.name, job.queue) for job in jobs.live()}
        return found, current, state, known

    if body.text is not None:
        spec = await run_in_threadpool(taken, body.text)
        _, current, state, known = await place.look(look)
    else:
        found, current, state, known = await place.look(look)
        spec = await run_in_threadpool(taken, found.text)

    def named(key: str, user: str) -> wire.NamedJob:
        return wire.NamedJob(key, *known.get(key, (user,)))

    def compare() -> wire.ConfigDifference:
        found = preview_of(msgspec.json.decode(state), spec, named)
        return replace(found, base=current.checksum, base_version=current.number, checksum=spec.checksum)

    return await run_in_threadpool(compare)


@router.post("/compare", responses=documented(404, 409, 413))
async def compare_config(body: wire.ConfigOnPast, place: MachineOf, caller: CallerOf) -> wire.ConfigPast:
    """What a queue file, or an earlier version, would have made of the work of the last days (administrators).

    By simulation of what the journal has, with the file in force and with this one, as `fairlead sim compare` does it.
    """
    caller.require_admin("see what a change of the queues would have done to everybody's work")
    found, current = await place.look(lambda *_: _pick(place, body.version))
    text = found.text if body.text is None else body.text
    await run_in_threadpool(taken, text)
    with place.users.one_more("questions", caller):
        return await place.past_work.compared(current.text, text, body.days)


@router.put("", responses=documented(409, 413))
async def apply_config(body: wire.ConfigReplacement, place: MachineOf, caller: CallerOf) -> wire.ConfigApplied:
    """Put a queue file in force, as one step (administrators)."""
    caller.require_admin("change the queues")
    spec = await run_in_threadpool(taken, body.text)

    def act(turn: Turn) -> Applied:
        if turn.scheduler.cluster.text != spec.text:  # It may be sent again because the answer was lost.
            _require_base(turn, body.base)
        return configure(turn, spec, who=caller.user, source=FROM_API)

    return await _applied(place, await place.do(act))


@router.post("/rollback", responses=documented(404, 409))
async def roll_back_config(body: wire.ConfigRollback, place: MachineOf, caller: CallerOf) -> wire.ConfigApplied:
    """Put an earlier version in force again (administrators). It becomes a new version; nothing of history is lost."""
    caller.require_admin("change the queues")

    def target(*_: Any) -> Version:
        if body.version is not None:
            return _pick(place, body.version)[0]
        earlier = place.runtime.books.configurations.before()
        if earlier is None:
            raise Refusal("conflict", "there is no earlier version; `fairlead config history` lists what there is")
        return earlier

    wanted = await place.look(target)
    spec = await run_in_threadpool(taken, wanted.text)

    def act(turn: Turn) -> Applied:
        _require_base(turn, body.base)
        return configure(turn, spec, who=caller.user, source="rollback", restores=wanted.number)

    return await _applied(place, await place.do(act))


def _require_base(turn: Turn, base: str | None) -> None:
    """Refuse if something else is in force than the caller thinks."""
    current = turn.books.configurations.current
    if base is not None and current is not None and current.checksum != base:
        raise Refusal(
            "conflict",
            f"version {current.number} by {current.who or 'nobody'} was put in force meanwhile; look at "
            f"`fairlead config diff` again, then apply",
            field="base",
        )


async def _applied(place: MachinePlace, applied: Applied) -> wire.ConfigApplied:
    if applied.refused:
        raise Refusal("invalid", applied.refused, field="text")
    found, current = await place.look(lambda *_: _pick(place, applied.version))
    return wire.ConfigApplied(text=found.text, changed=applied.changed, **_fields(found, current))
