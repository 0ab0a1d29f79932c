"""The signal that a job wants some time before its time limit.

Decides which of its processes get it, and what a job lacks that can never get it. Never sends it: the supervisor of the
run does, which counts the time. Invariant: of a script without `B:` or `A:` the script's own process is left out, as
with Slurm: a shell that has no trap would end, and its job with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.local.runs import LimitSignal
from fairlead.times import duration_exactly
from fairlead.wire import limit_signals
from fairlead.wire.statuses import signal_name

if TYPE_CHECKING:
    from fairlead.local.history_records import JobSpec

CODE = "signal-before-limit"


def of(spec: JobSpec) -> LimitSignal | None:
    """What the run of a job is told; None: there is none."""
    if not spec.limit_signal:
        return None
    number, before_s, whom = limit_signals.parse(spec.limit_signal)
    to = {"A": "all", "B": "first"}.get(whom, "others" if spec.is_script else "all")
    return LimitSignal(number=number, before_ms=before_s * 1000, to=to)


def flaw(spec: JobSpec) -> str:
    """Why the signal of a new job makes no sense beside its time limit; empty: it does.

    What is repeated is left as it is: nobody could say another signal for it. Without a time limit it does not come, as
    in Slurm; a limit may be given later.
    """
    wanted, limit_ms = of(spec), spec.time_limit_ms
    if wanted is None or spec.rerun_of or limit_ms is None or wanted.before_ms <= limit_ms:
        return ""
    before = duration_exactly(wanted.before_ms)
    said = f"{signal_name(wanted.number)} is to come {before} before the end of its time limit"
    most = duration_exactly(limit_ms)
    return f"{said}, which is only {most}; let it come at most {most} before, or ask for a longer time limit"
