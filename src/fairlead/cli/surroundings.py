"""Surroundings: what a job takes over from where it is submitted: the directory, and the umask.

Decides what holds where nothing is said. Never changes what is said, nor the environment (`environment`). Invariant:
others see no more of the files that a job makes than of those that its user makes here.
"""

from __future__ import annotations

import os
from typing import Any

from fairlead.cli.app import complain, wrong_usage
from fairlead.wire.streams import UMASK


def as_here(stated: dict[str, Any]) -> dict[str, Any]:
    """The fields of a job with what holds here where nothing else is said. Raises `Failure` (usage)."""
    found = in_directory(stated)
    if os.path.isdir(found["cwd"]):
        _say_what_is_missing(found)
    return _umask() | found


def in_directory(stated: dict[str, Any]) -> dict[str, Any]:
    """Where nothing else is said, a job runs in this directory. One that is not there yet is taken, and said."""
    if "cwd" not in stated:
        return stated | {"cwd": _here()}
    # From the root it means the same wherever this is, also where this is gone.
    place = stated["cwd"] if os.path.isabs(stated["cwd"]) else os.path.join(_here(), stated["cwd"])
    if not os.path.isdir(place):
        complain(f"there is no directory {place} here now; where it is not there when the job begins, the job fails")
    return stated | {"cwd": place}


def _say_what_is_missing(stated: dict[str, Any]) -> None:
    """The directories of the files that the job is to write to, where they are not there."""
    for option, name in (("--output", "stdout"), ("--error", "stderr")):
        directory = os.path.dirname(str(stated.get(name) or ""))
        if "%" not in directory and not os.path.isdir(os.path.join(stated["cwd"], directory)):
            said = "where it is not there when the job begins, the job fails"
            complain(f"{option}: there is no directory {directory} here now; {said}")


def _here() -> str:
    """The directory of the caller. Raises `Failure` (usage) if somebody has removed it."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise wrong_usage("this directory is gone; cd somewhere, or say --cwd") from None


def _umask() -> dict[str, str]:
    """Nothing for the usual one, which a service before this field has too."""
    mask = os.umask(0o077)
    os.umask(mask)
    found = f"{mask:03o}"
    return {"umask": found} if found != UMASK else {}
