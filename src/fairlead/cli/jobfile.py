"""Jobs as a file or the command line describes them, turned into what the service takes.

Decides how a file is read, and where each description in it stands; refuses fields that do not exist. Never submits.
Invariant: a description that passes is complete: command, directory and resources are all said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairlead.cli.app import REFUSED, Failure, wrong_usage
from fairlead.cli.jobfields import NAMES, described
from fairlead.client.errors import Refused

_LARGEST_FILE = 256 * 2**20


class Described(msgspec.Struct, frozen=True):
    """One job as the service takes it, and where its description stands (for messages)."""

    where: str
    body: dict[str, Any] = {}


def read_jobs(path: str, text: str, defaults: Mapping[str, Any]) -> list[Described]:
    """All jobs of a file: `.json` (one array or one object), `.yaml`/`.yml` (the same), else one JSON object a line.

    `defaults` are fields, as in the file, for jobs that do not say. Raises `Failure` (usage) with the place of the
    first mistake.
    """
    jobs = [describe({**defaults, **_checked(entry, where)}, where) for where, entry in _entries(path, text)]
    if not jobs:
        raise wrong_usage(f"{path}: there is no job in it")
    return jobs


def read_text(path: str) -> str:
    """The content of a file, or of standard input for `-`. Raises `Failure` (usage) if it cannot be read."""
    import sys

    try:
        if path == "-":
            return sys.stdin.read()
        if os.stat(path).st_size > _LARGEST_FILE:
            raise wrong_usage(f"{path}: larger than {_LARGEST_FILE} bytes; split it")
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise wrong_usage(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise wrong_usage(f"{path}: cannot be read: {error.strerror}") from None


def _entries(path: str, text: str) -> Iterator[tuple[str, Any]]:
    suffix = os.path.splitext(path)[1].lower()
    if suffix in (".yaml", ".yml"):
        yield from _numbered(path, _load_yaml(path, text))
    elif suffix == ".json":
        yield from _numbered(path, _load_json(text, path, 0))
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"{path}:{number}", _load_json(line, path, number)


def _numbered(path: str, loaded: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(loaded, dict) and set(loaded) == {"jobs"}:
        loaded = loaded["jobs"]
    if isinstance(loaded, list):
        yield from ((f"{path}: job {number}", entry) for number, entry in enumerate(loaded, 1))
    elif loaded is not None:
        yield path, loaded


def _load_json(text: str, path: str, line: int) -> Any:
    import json

    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise wrong_usage(f"{path}:{line or error.lineno}:{error.colno}: is not JSON: {error.msg}") from None
    except _Repeated as error:
        raise wrong_usage(f"{path}{f':{line}' if line else ''}: {error.args[0]} is given twice; give it once") from None


class _Repeated(Exception):
    """A key that stands twice in one object."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Repeated(name)
        found[name] = value
    return found


def _load_yaml(path: str, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise wrong_usage(f"{path}{place}: is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise wrong_usage(f"{path}: is not YAML: {error}") from None


def _checked(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise wrong_usage(f"{where}: a job is an object with a command, not {str(entry)[:60]}")
    for name in entry:
        if name not in NAMES:
            raise wrong_usage(
                f"{where}: there is no field {name!r}{_close(str(name))}; the fields are {', '.join(NAMES)}"
            )
    return entry


def _close(name: str) -> str:
    import difflib

    found = difflib.get_close_matches(name, NAMES, 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def describe(entry: Mapping[str, Any], where: str) -> Described:
    """What the service takes, for one described job. Raises `Failure` (usage) naming the field."""
    return Described(where, described(entry, where))


def as_failure_of(jobs: list[Described], refused: Refused, accepted: int) -> Failure:
    """The service's refusal with the place in the file instead of the place in the request."""
    import re

    match = re.match(r"(?:body\.)?jobs[.\[](\d+)\]?\.?(.*)", refused.field or "")
    if not match or int(match[1]) >= len(jobs):
        message = refused.message
    else:
        text = refused.message.removeprefix(f"{refused.field}: ")
        message = f"{jobs[int(match[1])].where}: {match[2]}{': ' if match[2] else ''}{text}"
    if accepted:
        message += f" ({accepted} jobs before it are submitted already)"
    return Failure(message, REFUSED, refused.details)
