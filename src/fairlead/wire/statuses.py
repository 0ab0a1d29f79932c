"""Exit statuses: what the command ends with, and which one stands for how a job ended.

Decides the numbers that scripts rely on. Never changes one. Invariant: a job that ended by itself has its own.
"""

from __future__ import annotations

FAILED, REFUSED, TIMED_OUT = 1, 4, 124


def exit_status(state: str, *, started: bool, exit_code: int | None, signal: int | None) -> int:
    """That of a job that has ended like this, as `fairlead submit --help` says."""
    if state == "succeeded":
        return 0
    if state == "timed_out":
        return TIMED_OUT
    if state == "rejected" or (state == "cancelled" and not started):
        return REFUSED
    if signal:
        return 128 + signal
    if state == "lost":
        return FAILED
    return exit_code or FAILED


def signal_name(number: int) -> str:
    """`SIGTERM` for 15; `signal 99` for one without a name."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def signal_number(name: str) -> int:
    """10 for `SIGUSR1`, `usr1` and `10`; 0: there is no such signal."""
    import signal

    if name.isascii() and name.isdecimal():
        return int(name) if len(name) < 3 and 1 <= int(name) <= 64 else 0
    known = signal.Signals.__members__
    found = known.get(name.upper()) or known.get(f"SIG{name.upper()}")
    return int(found) if found else 0
