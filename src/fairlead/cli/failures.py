"""How a command ends when it does not succeed.

Decides the exit statuses that scripts rely on, and the one exception that carries a sentence to the user. Never prints.
Invariant: a status here never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.client.errors import ClientError, Misconfigured, Refused, Unreachable

OK: Final = 0
FAILED: Final = 1
"""The thing itself failed or differs: a scenario differs, a journal is damaged, a file cannot be used."""
USAGE: Final = 2
"""The command line is wrong."""
UNREACHABLE: Final = 3
"""No service answers at the address."""
REFUSED: Final = 4
"""The service said no: unknown key, not allowed, invalid request."""
SERVICE_ERROR: Final = 5
"""The service answered, but failed or made no sense."""
TIMED_OUT: Final = 124
"""`submit --wait`: the job was stopped by its time limit (as coreutils' `timeout` says it)."""
INTERRUPTED: Final = 130

STATUSES_TEXT = """\
Exit status:
  0  done                          3  no service answers
  1  it failed, or differs         4  the service refused: not found, not allowed, invalid
  2  the command line is wrong     5  the service failed
"""


class Failure(Exception):
    """A command cannot go on: one sentence, further lines, and an exit status."""

    def __init__(self, message: str, status: int = FAILED, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message, self.status, self.details = message, status, tuple(details)


def wrong_usage(message: str) -> Failure:
    """A `Failure` for something wrong on the command line or in a file of jobs."""
    return Failure(message, USAGE)


def status_of(error: ClientError) -> int:
    """The exit status for what went wrong with a call."""
    if isinstance(error, Misconfigured):
        return USAGE
    if isinstance(error, Unreachable):
        return UNREACHABLE
    return REFUSED if isinstance(error, Refused) else SERVICE_ERROR


def of_files(status: int) -> int:
    """The status of a simulation or of scenarios, where 2 is for files that cannot be used: not for a command line."""
    return FAILED if status == USAGE else status
