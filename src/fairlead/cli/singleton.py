"""`--singleton`: one job of a name at a time, as Slurm's `--dependency=singleton`.

Decides which jobs a new one waits for: those of its user and name that there are when it is submitted. Never submits.
Invariant: what is submitted later waits for it in turn, if it says the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.cli.filters import LIVE_STATES, jobs_of

if TYPE_CHECKING:
    from fairlead.client.sync import Client

_F = TypeVar("_F", bound=Callable[..., Any])
NAME = "singleton"


def singleton_option(function: _F) -> _F:
    """The option of `submit` and `run`, and of the lines in a script."""
    text = "Start once all your jobs that have its name have ended; those that there are now."
    return click.option(f"--{NAME}", is_flag=True, help=text)(function)


def behind_its_like(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    """The description of a job that waits for those of its name, too."""
    found = jobs_of(client, {"me": True, "name": (body["name"],)}, LIVE_STATES)
    # In a filter `*` and `?` stand for others.
    like = [{"key": job.key, "awaited": "any"} for job in found if job.name == body["name"]]
    return body | {"after": [*body.get("after", ()), *like]}
