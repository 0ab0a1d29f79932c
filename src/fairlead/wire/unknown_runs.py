"""Unknown runs: processes on a machine that were started as jobs and are in no record any more.

Decides the fields. Never who may see or end them.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fairlead.wire.fields import Amounts, Page, Request, Shape, said
from fairlead.wire.jobs import LONGEST_MS


class UnknownRun(Shape, frozen=True, kw_only=True):
    """A run that goes on and is not in the journal."""

    run: Annotated[str, said("Its name: the key of the job that it was, and the number of its attempt.")]
    user: Annotated[str, said("As whom it runs.")]
    pid: int | None
    started_at_ms: int | None
    command: Annotated[list[str], said("Empty: not known any more.")]
    resources: Annotated[Amounts, said("What it holds; nobody else gets it until it is over.")]
    gpus: list[int]


class UnknownRunPage(Page, frozen=True, kw_only=True):
    """Unknown runs by name."""

    runs: list[UnknownRun]


class Stop(Request, frozen=True, kw_only=True):
    """How it is to end."""

    grace_ms: Annotated[
        Annotated[int, Meta(ge=0, le=LONGEST_MS)], said("From the polite request to end to the killing of all of it.")
    ] = 30_000
