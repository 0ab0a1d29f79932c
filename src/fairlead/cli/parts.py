"""Arrays on the command line: how their parts are counted and named.

Decides in which words several parts are said. Never asks the service. Invariant: a count of 0 is not said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.wire.arrays import in_words, shown

if TYPE_CHECKING:
    from fairlead.wire.arrays import Parts
    from fairlead.wire.jobs import Job
    from fairlead.wire.verdicts import Why


def counted(parts: Parts) -> str:
    """`[1-200%8] waiting 120, running 8, done 70, failed 2`."""
    return f"[{shown(parts.indices, parts.at_once)}] {in_words(parts)}"


def reason_text(job: Job) -> str:
    """Why a job is how it is; of an array first how many parts are how."""
    reason = job.reason.sentence if job.reason else ""
    if job.parts is None:
        return reason
    return f"{counted(job.parts)}; {reason}" if reason and job.state == "waiting" else counted(job.parts)


def after_order(job: Job) -> str:
    """What came of an order, of several parts how many are how."""
    return f"{job.key} {job.state}" if job.parts is None else f"{job.key} {counted(job.parts)}"


def why_lines(answer: Why) -> Iterator[str]:
    """Why the parts of an array are how they are, those alike together."""
    yield f"{answer.key}: {answer.state}: {answer.sentence}"
    for each in answer.parts:
        yield f"  {answer.key.partition('.')[0]}.{each.indices} ({each.count}): {each.state}: {each.sentence}"
