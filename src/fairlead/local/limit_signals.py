"""The signal that a job wants some time before its time limit.

Decides which of its processes get it. Never sends it: the supervisor of the run does, which counts the time. Invariant:
of a script without `B:` or `A:` the script's own process is left out, as with Slurm: a shell that has no trap would
end, and its job with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.local.runs import LimitSignal
from fairlead.wire import limit_signals

if TYPE_CHECKING:
    from fairlead.local.history_records import JobSpec


def of(spec: JobSpec) -> LimitSignal | None:
    """What the run of a job is told; None: there is none."""
    if not spec.limit_signal:
        return None
    number, before_s, whom = limit_signals.parse(spec.limit_signal)
    to = {"A": "all", "B": "first"}.get(whom, "others" if spec.is_script else "all")
    return LimitSignal(number=number, before_ms=before_s * 1000, to=to)
