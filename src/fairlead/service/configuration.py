"""Routes about the queue file: in force, check, difference, apply, history, rollback.

Decides who may change it. Never decides whether a queue file is good (`fairlead.config` and the scheduler do).
Invariant: a file with an error, or with something that would be ignored, changes nothing; what is applied is one entry
of the journal, with who and from where.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError
from fairlead.core.specs import ClusterSpec
from fairlead.insight.preview import preview_of
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal, Turn
from fairlead.runtime.configurations import Version
from fairlead.runtime.configuring import Applied, configure
from fairlead.scheduler import Scheduler
from fairlead.service import diffs, models, proposals
from fairlead.service.desk import CallerOf, Desk, DeskOf, plain
from fairlead.service.errors import documented
from fairlead.service.queue_texts import problems_of, shown_problem, usable

router = APIRouter(prefix="/api/v1/config", tags=["config"])

FROM_API = "api"
BUILT_IN = "built-in"
VersionQuery = Annotated[int | None, Query(ge=1, le=2**31, description="Of this version; absent: the one in force.")]


def shown_version(version: Version, current: Version) -> dict[str, Any]:
    """A version without its text."""
    return {
        "version": version.number,
        "at_ms": version.at_ms,
        "who": version.who,
        "source": version.source,
        "checksum": version.checksum,
        "origin": version.origin,
        "in_force": version.number == current.number,
    }


def _pick(desk: Desk, number: int | None) -> tuple[Version, Version]:
    """A version (None: the one in force) and the one in force; called between two turns."""
    history = desk.runtime.books.configurations
    current = history.current
    if current is None:
        raise Refusal("unavailable", "no configuration is in force yet; try again in a moment")
    found = current if number is None else history.get(number)
    if found is None:
        raise Refusal("not-found", f"version {number} is not kept; `fairlead config history` lists those that are")
    return found, current


@router.get("", response_model=models.ConfigAnswer, responses=documented(404))
async def get_config(desk: DeskOf, caller: CallerOf, version: VersionQuery = None) -> Response:
    """The queue file in force, or that of an earlier version."""
    del caller
    found, current = await desk.read(lambda *_: _pick(desk, version))
    return plain({"text": found.text} | shown_version(found, current))


@router.get("/history", response_model=models.ConfigHistory, responses=documented())
async def list_config_versions(desk: DeskOf, caller: CallerOf) -> Response:
    """Every version that is kept, the newest first: who put it in force, when, from where."""
    del caller

    def ask(*_: Any) -> list[dict[str, Any]]:
        kept = list(desk.runtime.books.configurations)
        return [shown_version(version, kept[-1]) for version in reversed(kept)]

    return plain({"versions": await desk.read(ask)})


@router.get("/status", response_model=models.ConfigStatus, responses=documented())
async def get_config_status(desk: DeskOf, caller: CallerOf) -> Response:
    """What is in force, and how the watched file stands to it: its errors, if it was refused."""
    del caller
    return plain(await status_of(desk))


async def status_of(desk: Desk) -> dict[str, Any]:
    """What `GET /config/status` answers."""
    found, current = await desk.read(lambda *_: _pick(desk, None))
    watched = desk.config_file
    file = watched.status(current.checksum) if watched is not None else None
    return shown_version(found, current) | {"file": file}


@router.post("/check", response_model=models.ConfigVerdict, responses=documented(413))
async def check_config(body: models.ConfigText, caller: CallerOf) -> Response:
    """Whether a queue file could be used, with everything that is wrong with it."""
    del caller
    found = await run_in_threadpool(problems_of, body.text)
    errors = [shown_problem(problem) for problem in found if problem.severity == "error"]
    warnings = [shown_problem(problem) for problem in found if problem.severity != "error"]
    return plain({"ok": not errors, "errors": errors, "warnings": warnings})


@router.post("/diff", response_model=proposals.ConfigDifference, responses=documented(404, 413))
async def diff_config(body: proposals.ConfigProposal, desk: DeskOf, caller: CallerOf) -> Response:
    """What a queue file, or an earlier version, would change now: queues, limits, rules, and jobs (administrators)."""
    caller.require_admin("see what a change of the queues would do to everybody's work")

    def look(scheduler: Scheduler, jobs: Jobs) -> tuple[Version, Version, bytes, dict[str, tuple[str, str, str]]]:
        found, current = _pick(desk, body.version)
        # Encoded at once: nothing of it may be shared with the books, which go on.
        state = msgspec.json.encode(scheduler.dump())
        known = {job.key: (job.spec.user, job.spec.name, job.queue) for job in jobs.live()}
        return found, current, state, known

    if body.text is not None:
        spec = await run_in_threadpool(_usable, body.text)
        _, current, state, known = await desk.read(look)
    else:
        found, current, state, known = await desk.read(look)
        spec = await run_in_threadpool(_usable, found.text)

    def compare() -> dict[str, Any]:
        return diffs.view(preview_of(msgspec.json.decode(state), spec), known)

    shown = await run_in_threadpool(compare)
    return plain({"base": current.checksum, "base_version": current.number, "checksum": spec.checksum} | shown)


def _usable(text: str) -> ClusterSpec:
    try:
        return usable(text)
    except ConfigurationError as error:
        details = [shown_problem(problem) for problem in error.problems]
        first = error.errors[0]
        place = f"{first.path}: " if first.path else ""
        more = f" (and {len(error.errors) - 1} more)" if len(error.errors) > 1 else ""
        message = f"line {first.line}: {place}{first.message}{more}"
        raise Refusal("invalid", message, field="text", details=details) from error


@router.put("", response_model=proposals.ConfigApplied, responses=documented(409, 413))
async def apply_config(body: proposals.ConfigReplacement, desk: DeskOf, caller: CallerOf) -> Response:
    """Put a queue file in force, as one step (administrators)."""
    caller.require_admin("change the queues")
    spec = await run_in_threadpool(_usable, body.text)

    def act(turn: Turn) -> Applied:
        _require_base(turn, body.base)
        return configure(turn, spec, who=caller.user, source=FROM_API)

    return await _applied(desk, await desk.do(act))


@router.post("/rollback", response_model=proposals.ConfigApplied, responses=documented(404, 409))
async def roll_back_config(body: proposals.ConfigRollback, desk: DeskOf, caller: CallerOf) -> Response:
    """Put an earlier version in force again (administrators). It becomes a new version; nothing of history is lost."""
    caller.require_admin("change the queues")

    def target(*_: Any) -> Version:
        if body.version is not None:
            return _pick(desk, body.version)[0]
        earlier = desk.runtime.books.configurations.before()
        if earlier is None:
            raise Refusal("conflict", "there is no earlier version; `fairlead config history` lists what there is")
        return earlier

    wanted = await desk.read(target)
    spec = await run_in_threadpool(_usable, wanted.text)

    def act(turn: Turn) -> Applied:
        _require_base(turn, body.base)
        return configure(turn, spec, who=caller.user, source="rollback", restores=wanted.number)

    return await _applied(desk, await desk.do(act))


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


async def _applied(desk: Desk, applied: Applied) -> Response:
    if applied.refused:
        raise Refusal("invalid", applied.refused, field="text")
    found, current = await desk.read(lambda *_: _pick(desk, applied.version))
    return plain({"text": found.text, "changed": applied.changed} | shown_version(found, current))
