"""What is said of jobs that were taken in: where they are, and that some cannot start.

Decides the words, and whether only a person at a terminal reads them. Never takes in a job.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.cli.app import complain

if TYPE_CHECKING:
    from fairlead.cli.submit import Described
    from fairlead.wire.jobs import Reason, SubmittedJob


def say_where(jobs: Sequence[Described], rows: Sequence[SubmittedJob]) -> None:
    """On standard error, where jobs are that named another queue; to a person also where those are that named none."""
    found: dict[tuple[str, str], list[str]] = {}
    for job, row in zip(jobs, rows, strict=False):
        found.setdefault((job.body.get("queue") or "", row.queue), []).append(row.key)
    for (asked, queue), (first, *others) in found.items():
        if queue in (asked, f"root.{asked}"):
            continue
        more = f" (and {len(others)} more)" if others else ""
        if asked and not f"{queue}.".startswith((f"{asked}.", f"root.{asked}.")):
            complain(f"{first}{more} is in {queue}, not in {asked}: the placement rules of the queue file say so")
        elif sys.stderr.isatty():
            complain(f"{first}{more} is in {queue}")


def say_when_signals_come(jobs: Sequence[Described], rows: Sequence[SubmittedJob]) -> None:
    """On standard error, the first job that wants a signal before a time limit that neither it nor its queue has, and
    the first that gets it as soon as it begins.
    """
    wanted = [(row, job.body["limit_signal"]) for job, row in zip(jobs, rows, strict=False) if _wants_signal(job)]
    if found := [row.key for row, _ in wanted if row.time_limit_ms is None]:
        never = "has no time limit, so the signal before that never comes; say --time-limit as well"
        complain(f"{found[0]}{_more(found)} {never}")
    limited = [(row.key, row.time_limit_ms, _before_ms(text)) for row, text in wanted if row.time_limit_ms is not None]
    if found := [key for key, limit_ms, before_ms in limited if before_ms > limit_ms]:
        short = "gets its signal as it begins: its time limit is shorter than the time before"
        complain(f"{found[0]}{_more(found)} {short}")


def _wants_signal(job: Described) -> bool:
    return bool(job.body.get("limit_signal"))


def _before_ms(limit_signal: str) -> int:
    from fairlead.wire import limit_signals

    return 1000 * limit_signals.parse(limit_signal).before_s


def _more(found: Sequence[str]) -> str:
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""


_HOPELESS = ("no-nodes", "too-big-for-every-node", "required-node-unknown", "never-runs")
"""Reasons to wait that no end of other work takes away."""
_LASTING = frozenset({"selector", "taint", "too-small"})
"""What keeps a job off nodes whatever runs there."""


def say_what_cannot_start(rows: list[SubmittedJob]) -> None:
    """On standard error, the first job that is too large, and the first that waits for what there is not."""
    if too_large := [row for row in rows if row.never is not None]:
        more = f" (and {len(too_large) - 1} more)" if len(too_large) > 1 else ""
        never = too_large[0].never.sentence if too_large[0].never is not None else ""
        complain(f"{too_large[0].key}{more} can never run as it is: {never}")
    rows = [row for row in rows if row.never is None]
    found = [row for row in rows if row.reason is not None and _is_hopeless(row.reason)]
    if found:
        more = f"; likewise {len(found) - 1} more" if len(found) > 1 else ""
        complain(
            f"{found[0].key} cannot start as things are: {found[0].reason.sentence if found[0].reason else ''}{more}"
        )


def _is_hopeless(reason: Reason) -> bool:
    excluded = reason.values.get("excluded", {})
    return reason.code in _HOPELESS or (reason.code == "no-node-suits" and set(excluded) <= _LASTING)
