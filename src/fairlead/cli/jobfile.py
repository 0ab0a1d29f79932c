"""Jobs as a file or the command line describes them, turned into what the service takes.

Decides which fields a description may have and what they mean; refuses every other with its place. Never submits.
Invariant: a description that passes is complete: command, directory and resources are all said.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fairlead.cli.failures import Failure, wrong_usage
from fairlead.cli.values import parse_duration, parse_resources
from fairlead.core.quantities import resource_called
from fairlead.core.specs import PRIORITY_MAX, PRIORITY_MIN
from fairlead.local.whereabouts import full_port

FIELDS: Final = (
    "command",
    "name",
    "queue",
    "priority",
    "cpu",
    "memory",
    "gpu",
    "resources",
    "env",
    "cwd",
    "grace",
    "time_limit",
    "tags",
    "labels",
    "node_selector",
    "ports",
    "beside",
    "apart_from",
    "retry",
    "retry_backoff",
    "no_retry_on",
    "idle",
    "priority_class",
)
_LARGEST_FILE = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Described:
    """One job as the service takes it, and where its description stands (for messages)."""

    where: str
    body: dict[str, Any] = field(default_factory=dict)


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
        if Path(path).stat().st_size > _LARGEST_FILE:
            raise wrong_usage(f"{path}: larger than {_LARGEST_FILE} bytes; split it")
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise wrong_usage(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise wrong_usage(f"{path}: cannot be read: {error.strerror}") from None


def _entries(path: str, text: str) -> Iterator[tuple[str, Any]]:
    suffix = Path(path).suffix.lower()
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
        raise wrong_usage(f"{where}: a job is an object with a command, not {json.dumps(entry, default=str)[:60]}")
    for name in entry:
        if name not in FIELDS:
            raise wrong_usage(
                f"{where}: there is no field {name!r}{_close(str(name))}; the fields are {', '.join(FIELDS)}"
            )
    return entry


def _close(name: str) -> str:
    import difflib

    found = difflib.get_close_matches(name, FIELDS, 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def describe(entry: Mapping[str, Any], where: str) -> Described:
    """What the service takes, for one described job. Raises `Failure` (usage) naming the field."""
    body: dict[str, Any] = {"command": _command(entry.get("command"), where)}
    for name in ("name", "queue", "cwd", "priority_class"):
        if entry.get(name) is not None:
            body[name] = _text(entry[name], f"{where}: {name}")
    if entry.get("priority") is not None:
        body["priority"] = _priority(entry["priority"], where)
    body |= _times(entry, where)
    if entry.get("idle") is not None:
        body["idle"] = _yes_or_no(entry["idle"], f"{where}: idle")
    if (retry := _retry(entry, where)) is not None:
        body["retry"] = retry
    if entry.get("ports"):
        body["ports"] = _ports(entry["ports"], f"{where}: ports")
    for name in ("env", "tags", "labels", "node_selector", "beside", "apart_from"):
        if entry.get(name):
            body[name] = _texts(entry[name], f"{where}: {name}")
    body["resources"] = _resources(entry, where)
    if not body["resources"]:
        raise wrong_usage(f"{where}: cpu: the job asks for nothing; ask for a little, such as 0.1")
    body.setdefault("name", Path(body["command"][0]).name)
    return Described(where, body)


def _times(entry: Mapping[str, Any], where: str) -> dict[str, int]:
    found = {
        f"{name}_ms": parse_duration(_text(entry[name], f"{where}: {name}"), f"{where}: {name}")
        for name in ("grace", "time_limit")
        if entry.get(name) is not None
    }
    if found.get("time_limit_ms") == 0:
        raise wrong_usage(f"{where}: time_limit: 0 would end it at once; leave it out for a job without a limit")
    return found


def _command(value: Any, where: str) -> list[str]:
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise wrong_usage(f"{where}: command: {error} in {value!r}") from None
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        words = list(value)
    else:
        raise wrong_usage(f'{where}: command: is missing or not a list of texts; write ["python", "train.py"]')
    if not words or not words[0]:
        raise wrong_usage(f'{where}: command: is empty; write ["python", "train.py"]')
    if any("\0" in word for word in words):
        raise wrong_usage(f"{where}: command: no part of it can have a NUL character")
    return words


def _ports(value: Any, where: str) -> list[str]:
    """Host ports in full. Raises `Failure` (usage) with the one that is none."""
    try:
        return [full_port(_text(each, where)) for each in (value if isinstance(value, list) else [value])]
    except ValueError as e:
        raise wrong_usage(f"{where}: {e}") from None


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong_usage(f"{where}: must be a text or a number, not {json.dumps(value, default=str)[:60]}")
    return str(value)


def _texts(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise wrong_usage(f"{where}: must be an object of names and texts")
    return {_text(name, where): _text(text, f"{where}.{name}") for name, text in value.items()}


def _yes_or_no(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_usage(f"{where}: {json.dumps(value, default=str)[:60]} is neither true nor false")
    return value


def _retry(entry: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """How often, after which back-off, and after which exit statuses not; None where it is not tried again."""
    limit, backoff, never = (entry.get(name) for name in ("retry", "retry_backoff", "no_retry_on"))
    if limit is None or limit == 0:
        for name, value in (("retry_backoff", backoff), ("no_retry_on", never)):
            if value is not None and limit is None:
                raise wrong_usage(f"{where}: {name}: says how it is tried again, but retry does not say how often")
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise wrong_usage(f"{where}: retry: {limit!r} is not a number of further attempts")
    retry: dict[str, Any] = {"limit": limit}
    if backoff is not None:
        retry["backoff_ms"] = parse_duration(_text(backoff, f"{where}: retry_backoff"), f"{where}: retry_backoff")
    if never is not None:
        retry["never_on"] = _statuses(never, f"{where}: no_retry_on")
    return retry


def _statuses(value: Any, where: str) -> list[int]:
    """Exit statuses, as a list of numbers or as text such as `2,3`."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    found = []
    for part in parts:
        text = str(part).strip()
        if isinstance(part, bool) or not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 255:
            raise wrong_usage(f"{where}: {text!r} is not an exit status; write numbers from 1 to 255, such as 2,3")
        found.append(int(text))
    return found


def _priority(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not PRIORITY_MIN <= value <= PRIORITY_MAX:
        raise wrong_usage(f"{where}: priority: {value!r} is not a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}")
    return value


def _resources(entry: Mapping[str, Any], where: str) -> dict[str, int]:
    cpu, memory = (
        None if entry.get(name) is None else _text(entry[name], f"{where}: {name}") for name in ("cpu", "memory")
    )
    gpu = entry.get("gpu")
    if gpu is not None and (isinstance(gpu, bool) or not isinstance(gpu, int) or gpu < 0):
        raise wrong_usage(f"{where}: gpu: {gpu!r} is not a number of devices")
    others = [f"{name}={text}" for name, text in _texts(entry.get("resources") or {}, f"{where}: resources").items()]
    names = [resource_called(other.partition("=")[0]) for other in others]
    return parse_resources("1" if cpu is None and "vcore" not in names else cpu, memory, gpu, others, f"{where}: ")


def as_failure_of(jobs: list[Described], failure: Failure, accepted: int) -> Failure:
    """The service's refusal with the place in the file instead of the place in the request."""
    import re

    field_path = str(getattr(failure, "field", None) or "")
    match = re.match(r"(?:body\.)?jobs[.\[](\d+)\]?\.?(.*)", field_path)
    if not match or int(match[1]) >= len(jobs):
        message = failure.message
    else:
        text = failure.message.removeprefix(f"{field_path}: ")
        message = f"{jobs[int(match[1])].where}: {match[2]}{': ' if match[2] else ''}{text}"
    if accepted:
        message += f" ({accepted} jobs before it are submitted already)"
    return Failure(message, failure.status, failure.details)
