"""Values as people type them, on the command line and in files: amounts, durations, and what the fields of a job mean.

Decides what `2`, `0.5`, `500m`, `4Gi`, `10m` or `NAME=N` mean, exactly, and refuses the rest with examples. Never
rounds, and never knows a field of a job by its name, but for those that have a meaning together. Invariant: what is
accepted has one meaning; cpu is counted in thousandths (and sent in cores), memory in bytes, durations in milliseconds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from fairlead import times
from fairlead.cli import jobfields
from fairlead.cli.app import complain, wrong_usage
from fairlead.core.model.quantities import VCORE, QuantityError, parse_quantity, resource_called
from fairlead.core.model.resources import INT64_MAX
from fairlead.wire import arrays
from fairlead.wire.fields import with_cpu

_DECIMAL = re.compile(r"\s*(\d+)\.(\d+)\s*([A-Za-z]*)\s*")
_EXAMPLES = {
    VCORE: "write cores or thousandths of a core, such as 2, 0.5 or 500m",
    "memory": "write bytes with a unit, such as 512Mi, 4Gi or 2G (Ki Mi Gi Ti count in 1024, k M G T in 1000)",
}
_LEAST_MEMORY = 2**20


def parse_amount(name: str, text: str, where: str) -> int:
    """The integer that `text` means for resource `name`: thousandths for `vcore`, units (bytes) for all others.

    A bare small number of bytes of memory is refused, because nobody means four. A decimal point is understood as long
    as the result is a whole number. `where` opens the sentence of the `Failure` (usage) that is raised for all else.
    """
    value = _amount(name, text, where)
    if name == "memory" and 0 < value < _LEAST_MEMORY:
        # Who knows Slurm means Mi; nobody means 4 of them, nor 4096 of the larger ones.
        meant = f"did you mean {text.strip()}{'Gi' if value < 64 else 'Mi'}?" if text.strip().isdecimal() else ""
        said = f"{where}: {text!r} means {value} bytes, too little to run anything"
        raise wrong_usage(f"{said}; {meant or 'write 1Mi or more'}")
    return value


def parse_size(text: str, where: str) -> int:
    """The bytes that `text` means, however few. Raises `Failure` (usage)."""
    return _amount("memory", text, where)


def _amount(name: str, text: str, where: str) -> int:
    example = _EXAMPLES.get(name, "write a whole number, with k M G or Ki Mi Gi if you like, such as 1 or 4Ki")
    try:
        decimal = _DECIMAL.fullmatch(text)
        if not decimal:
            return parse_quantity(name, text)
        unit = parse_quantity(name, f"1{decimal[3]}")
    except QuantityError as error:
        if "overflow" in error.kind:
            raise wrong_usage(f"{where}: {text!r} is too large; the largest is {INT64_MAX}") from None
        raise wrong_usage(f"{where}: {text!r} is not an amount; {example}") from None
    from fractions import Fraction

    value = Fraction(f"{decimal[1]}.{decimal[2]}") * unit
    if value.denominator != 1:
        raise wrong_usage(f"{where}: {text!r} is not a whole number of the smallest unit; {example}")
    if value > INT64_MAX:
        raise wrong_usage(f"{where}: {text!r} is too large; the largest is {INT64_MAX}")
    return int(value)


def parse_duration(text: str, where: str) -> int:
    """Milliseconds, as `times.parse_duration`; raises `Failure` (usage) for what is none."""
    try:
        return times.parse_duration(text)
    except ValueError as error:
        raise wrong_usage(f"{where}: {error}") from None


def parse_pairs(texts: Iterable[str], where: str, example: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping. Raises `Failure` (usage) without `=` or name, or for a name given twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise wrong_usage(f"{where}: {text!r} is not NAME=VALUE; write for example {example}")
        if name in pairs:
            raise wrong_usage(f"{where}: {name} is given twice; give it once")
        pairs[name] = value
    return pairs


def parse_resources(
    cpu: str | None, memory: str | None, gpu: int | None, others: Iterable[str], prefix: str = "--"
) -> dict[str, int]:
    """All amounts that one job asks for, without zeros. Raises `Failure` (usage) for a resource named twice."""
    amounts: dict[str, int] = {}
    if cpu is not None:
        amounts[VCORE] = parse_amount(VCORE, cpu, f"{prefix}cpu")
    if memory is not None:
        amounts["memory"] = parse_amount("memory", memory, f"{prefix}memory")
    if gpu is not None:
        amounts["gpu"] = gpu
    return {name: value for name, value in parse_amounts(others, prefix, amounts).items() if value}


def parse_amounts(texts: Iterable[str], prefix: str, known: Mapping[str, int] | None = None) -> dict[str, int]:
    """`NAME=N` texts beside amounts that are `known`; a 0 is one. Raises `Failure` (usage)."""
    from fairlead.cli import foreign

    amounts = dict(known or {})
    for name, text in parse_pairs(texts, f"{prefix}resource", "licence=1").items():
        resource = resource_called(name)
        if name.lower() in foreign.RESOURCES:
            raise wrong_usage(f"{prefix}resource: {name} is called {foreign.RESOURCES[name.lower()]} here")
        if resource in amounts:
            raise wrong_usage(f"{prefix}resource: {name} is given twice; give it once")
        amounts[resource] = parse_amount(resource, text, f"{prefix}resource {name}")
    return amounts


# -- what the fields of a job mean --------------------------------------------------------------------------------


PRIORITY_MIN, PRIORITY_MAX = -(2**31), 2**31 - 1


def _shown(value: Any) -> str:
    """The value as JSON would have it, cut short."""
    import json

    return json.dumps(value, default=str)[:60]


def one_text(value: Any, where: str) -> str:
    """A text; a number is one, too. Raises `Failure` (usage)."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong_usage(f"{where}: must be a text or a number, not {_shown(value)}")
    return str(value)


def many_texts(value: Any, where: str) -> dict[str, str]:
    """Names and texts. Raises `Failure` (usage)."""
    if not isinstance(value, Mapping):
        raise wrong_usage(f"{where}: must be an object of names and texts")
    return {one_text(name, where): one_text(text, f"{where}.{name}") for name, text in value.items()}


def yes_or_no(value: Any, where: str) -> bool:
    """True or false. Raises `Failure` (usage)."""
    if not isinstance(value, bool):
        raise wrong_usage(f"{where}: {_shown(value)} is neither true nor false")
    return value


def priority(value: Any, where: str) -> int:
    """A priority. Raises `Failure` (usage)."""
    if isinstance(value, bool) or not isinstance(value, int) or not PRIORITY_MIN <= value <= PRIORITY_MAX:
        raise wrong_usage(f"{where}: {value!r} is not a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}")
    return value


def duration(value: Any, where: str) -> int:
    """Milliseconds. Raises `Failure` (usage)."""
    return parse_duration(one_text(value, where), where)


def time_limit(value: Any, where: str) -> int:
    """Milliseconds, not 0. Raises `Failure` (usage)."""
    from fairlead.cli import foreign

    if isinstance(value, str) and (said := foreign.about_time(value)):
        raise wrong_usage(f"{where}: {said}")
    if not (limit := duration(value, where)):
        sentence = f"{where}: 0 would end it at once; leave it out for a job without a limit (`fairlead update`: none)"
        raise wrong_usage(sentence)
    if where.startswith("--") and str(value).strip().isdecimal() and sys.stderr.isatty():
        # A number alone is minutes for Slurm, and it would end long before that.
        complain(f"{where}: {value} is {times.duration(limit)}; for minutes write {value}m")
    return limit


def limit_signal(value: Any, where: str) -> str:
    """A signal before the time limit, with the time in seconds. Raises `Failure` (usage)."""
    from fairlead.wire import limit_signals

    name, at, time = one_text(value, where).strip().partition("@")
    before_ms = parse_duration(time, where) if at else 1000 * limit_signals.DEFAULT_S
    if before_ms % 1000:
        raise wrong_usage(f"{where}: {time!r} is no whole number of seconds; {limit_signals.EXAMPLES}")
    try:
        return limit_signals.checked(f"{name}@{before_ms // 1000}")
    except ValueError as problem:
        raise wrong_usage(f"{where}: {problem}") from None


def ports(value: Any, where: str) -> list[str]:
    """Host ports in full. Raises `Failure` (usage) with the one that is none."""
    from fairlead.wire.fields import full_port

    try:
        return [full_port(one_text(each, where)) for each in (value if isinstance(value, list | tuple) else [value])]
    except ValueError as e:
        raise wrong_usage(f"{where}: {e}") from None


def begin(value: Any, where: str) -> int:
    """The moment at which a job may begin, in milliseconds since 1970. Raises `Failure` (usage)."""
    import time

    try:
        return times.parse_begin(one_text(value, where), int(time.time() * 1000))
    except ValueError as error:
        raise wrong_usage(f"{where}: {error}") from None


def on_never(value: Any, where: str) -> str:
    """`wait` or `cancel`. Raises `Failure` (usage)."""
    if value not in ("wait", "cancel"):
        raise wrong_usage(f"{where}: {_shown(value)} is neither wait nor cancel")
    return str(value)


def array(value: Any, where: str) -> str:
    """The indices of an array: text such as `1-200%8`, or one number."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else one_text(value, where)
    try:
        return arrays.checked(text)
    except ValueError as problem:
        raise wrong_usage(f"{where}: {problem}") from None


def pattern(value: Any, where: str) -> str:
    """The name of a file, with patterns that are known. Raises `Failure` (usage)."""
    from fairlead.wire.patterns import checked

    text = one_text(value, where)
    if text in ("json", "yaml", "text"):
        raise wrong_usage(f"{where}: {text} would be the name of a file here; write --format {text}, or ./{text}")
    try:
        return checked(text)
    except ValueError as error:
        raise wrong_usage(f"{where}: {error}") from None


def open_mode(value: Any, where: str) -> str:
    """`truncate` or `append`. Raises `Failure` (usage)."""
    if value not in ("truncate", "append"):
        raise wrong_usage(f"{where}: {str(value)[:60]!r} is neither truncate nor append")
    return str(value)


def umask(value: Any, where: str) -> str:
    """Three octal digits. Raises `Failure` (usage)."""
    # A number in YAML is another one by the time that it arrives here: 077 is 63.
    if not isinstance(value, str) or not re.fullmatch("0?[0-7]{3}", value):
        said = "write three octal digits, such as 077, in YAML in quotes"
        raise wrong_usage(f"{where}: {str(value)[:60]!r} is no umask; {said}")
    return value


def after(entry: Mapping[str, Any], where: str) -> list[dict[str, str]]:
    """All that a job waits for of others; a field is a key, a list of keys, or text such as `12,13`."""
    return [
        {"key": key, "awaited": awaited}
        for name, awaited in jobfields.AFTER.items()
        for key in _keys(entry.get(name), f"{where}: {name}")
    ]


def _keys(value: Any, where: str) -> list[str]:
    parts = value if isinstance(value, list | tuple) else [] if value is None else [value]
    keys = [key.strip() for part in parts for key in one_text(part, where).split(",")]
    if not all(keys):
        raise wrong_usage(f"{where}: {','.join(map(str, parts))!r} is no key of a job; write for example 12, or 12,13")
    return keys


def changes(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is sent for a change of these fields; nothing of what is not given. Raises `Failure` (usage)."""
    limit = entry.get("time_limit")
    unlimited = isinstance(limit, str) and limit.lower() in ("none", "unlimited", "infinite")
    stated = {name: value for name, value in entry.items() if name != "time_limit" or not unlimited}
    changed = jobfields.meant(stated, where)
    if unlimited:
        changed["time_limit_ms"] = 0
    texts = [(name, entry[name]) for name in ("cpu", "memory", "gpu") if entry.get(name) is not None]
    amounts = {}
    for name, text in (*texts, *(entry.get("resources") or {}).items()):
        resource = resource_called(name)
        if resource in amounts:
            raise wrong_usage(f"{where}: resources: {name} is given twice; give it once")
        amounts[resource] = parse_amount(resource, str(text), f"{where}: {name}")
    return changed | ({"resources": with_cpu(amounts)} if amounts else {})


def statuses(value: Any, where: str) -> list[int]:
    """Exit statuses, as a list of numbers or as text such as `2,3`; `any`: all of them."""
    if value == "any":
        return list(range(1, 256))
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    found = []
    for part in parts:
        text = str(part).strip()
        if isinstance(part, bool) or not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 255:
            raise wrong_usage(f"{where}: {text!r} is not an exit status; write numbers from 1 to 255, such as 2,3")
        found.append(int(text))
    return found


def command(value: Any, where: str) -> list[str]:
    """The words of a command, also of one that is written as a line for a shell. Raises `Failure` (usage)."""
    if isinstance(value, str):
        import shlex

        try:
            words = shlex.split(value)
        except ValueError as error:
            raise wrong_usage(f"{where}: command: {error} in {value!r}") from None
    elif isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        words = [str(word) for word in value]
    else:
        raise wrong_usage(f'{where}: command: is missing or not a list of texts; write ["python", "train.py"]')
    if not words or not words[0]:
        raise wrong_usage(f'{where}: command: is empty; write ["python", "train.py"]')
    if any("\0" in word for word in words):
        raise wrong_usage(f"{where}: command: no part of it can have a NUL character")
    return words


def retry(entry: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """How often, after which back-off, and after which exit statuses not; None where it is not said."""
    limit, backoff, never = (entry.get(name) for name in ("retry", "retry_backoff", "no_retry_on"))
    if limit is None:
        for name, value in (("retry_backoff", backoff), ("no_retry_on", never)):
            if value is not None:
                raise wrong_usage(f"{where}: {name}: says how it is tried again, but retry does not say how often")
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise wrong_usage(f"{where}: retry: {limit!r} is not a number of further attempts")
    retry: dict[str, Any] = {"limit": limit}
    if backoff is not None:
        retry["backoff_ms"] = parse_duration(one_text(backoff, f"{where}: retry_backoff"), f"{where}: retry_backoff")
    if never is not None:
        retry["never_on"] = statuses(never, f"{where}: no_retry_on")
    return retry


def notices(entry: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Messages about a job: to whom, and when. Raises `Failure` (usage)."""
    from fairlead.wire.notices import address

    to, on = entry.get("notify"), entry.get("notify_on")
    targets = [one_text(each, f"{where}: notify") for each in (to if isinstance(to, list | tuple) else [to]) if each]
    events = [one_text(each, f"{where}: notify_on") for each in (on if isinstance(on, list | tuple) else [on]) if each]
    events = [word.strip() for each in events for word in each.split(",")]
    if events and not targets:
        raise wrong_usage(f"{where}: notify_on: says when, but notify does not say to whom")
    for word in events:
        if word not in ("start", "end", "fail", "parts"):
            raise wrong_usage(f"{where}: notify_on: {word!r} is none of start, end, fail and parts")
    try:
        return [
            {"to": address(each), "on": ["end", "parts"] if events == ["parts"] else events or ["end"]}
            for each in targets
        ]
    except ValueError as error:
        raise wrong_usage(f"{where}: notify: {error}") from None


def resources(entry: Mapping[str, Any], where: str) -> Any:
    """All amounts that are said; a 0 is kept for cores, where saying nothing means something else. Raises `Failure`."""
    cpu, memory = (
        None if entry.get(name) is None else one_text(entry[name], f"{where}: {name}") for name in ("cpu", "memory")
    )
    gpu = entry.get("gpu")
    if gpu is not None and (isinstance(gpu, bool) or not isinstance(gpu, int) or gpu < 0):
        raise wrong_usage(f"{where}: gpu: {gpu!r} is not a number of devices")
    others = [
        f"{name}={text}" for name, text in many_texts(entry.get("resources") or {}, f"{where}: resources").items()
    ]
    names = [resource_called(other.partition("=")[0]) for other in others]
    amounts = parse_resources(cpu, memory, gpu, others, f"{where}: ")
    return with_cpu({VCORE: 0, **amounts} if cpu is not None or VCORE in names else amounts)
