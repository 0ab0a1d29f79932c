"""The environment that a job is given: from a file, from the shell that submits it, and by single variables.

Decides which variables go along. Nothing of the shell does unless it is asked for. Invariant: what is said more closely
counts: `--env` before `--export`, and that before `--env-file`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from fairlead.cli.app import complain, wrong_usage

_F = TypeVar("_F", bound=Callable[..., Any])
_OF_DEVICES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""What a service that gives out devices sets, whatever was given."""


def environment_options(function: _F) -> _F:
    """The options --env-file and --export."""
    file = click.option(
        "--env-file", metavar="FILE", help="Environment variables from a file: NAME=VALUE a line; # begins a comment."
    )
    export = click.option(
        "--export",
        metavar="NAMES",
        help="Variables of this shell to pass on: NAME[=VALUE],..., all or none; none if not given.",
    )
    return file(export(function))


def given(params: Mapping[str, Any], by_name: Mapping[str, str]) -> dict[str, str]:
    """All variables that these options give; `by_name`: those of --env. Raises `Failure` (usage)."""
    file, export = params.get("env_file"), params.get("export")
    for name in _OF_DEVICES:
        if name in by_name:
            complain(f"--env: {name} is set by a service that has devices, to those that --gpu N gets")
    return {**(_of_file(file) if file else {}), **(_exported(export) if export else {}), **by_name}


def passed_on(texts: Sequence[str]) -> list[str]:
    """`NAME=VALUE`, also for a `NAME` alone: the value that it has here. Raises `Failure` (usage) if it has none."""
    for text in texts:
        if "=" not in text and text not in os.environ:
            # As `sbatch -e err.txt` has it.
            other = "" if text.isidentifier() else f", or --error {text} for what it writes to standard error"
            raise wrong_usage(f"--env: {text!r} is not set here; write {text}=VALUE{other}")
    return [text if "=" in text else f"{text}={os.environ[text]}" for text in texts]


def _of_file(path: str) -> dict[str, str]:
    from fairlead.cli.submit import read_text

    found: dict[str, str] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        text = line.lstrip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name or name != name.strip() or " " in name:
            raise wrong_usage(f"--env-file: {path}:{number}: {text[:60]!r} is not NAME=VALUE")
        found[name] = value
    return found


def _exported(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    words = [word.strip() for word in text.split(",")]
    for word in words:
        name, equals, value = word.partition("=")
        if word.lower() == "all":
            found = _shell() | found
        elif word.lower() == "none":
            if len(words) > 1:
                raise wrong_usage("--export: none stands alone; leave it out, or the names")
        elif not name:
            raise wrong_usage(f"--export: {text!r} has an empty name; write NAME, NAME=VALUE, all or none")
        elif not equals and name not in os.environ:
            raise wrong_usage(f"--export: {name} is not set here; write {name}=VALUE")
        else:
            found[name] = value if equals else os.environ[name]
    return found


def _shell() -> dict[str, str]:
    """This environment without what is about this shell alone, or about the way to the service."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.replace("_", "a").isalnum()
        and not name.startswith("FAIRLEAD_")
        and name not in ("_", "SHLVL", "OLDPWD")
    }
