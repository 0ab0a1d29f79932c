"""Jobs of one file that wait for each other by name.

Decides which job of the file a name means, and in which order the jobs are sent. Never asks the service. Invariant:
each job comes after those that it waits for; what waits in a circle is refused before anything is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cli.app import wrong_usage

if TYPE_CHECKING:
    from fairlead.cli.submit import Described

_KEY = re.compile(r"\d+(\..+)?")


def in_order(jobs: Sequence[Described]) -> list[int]:
    """The numbers of the jobs, each after those that it waits for; the names become `#N`, N in this order.

    Raises `Failure` (usage) for a name that no job of the file has, or several have, and for a circle.
    """
    waits = [dict(_awaited(jobs, number)) for number in range(len(jobs))]
    if not any(waits):
        return list(range(len(jobs)))
    order = _sorted(jobs, [set(found.values()) for found in waits])
    place = {number: at for at, number in enumerate(order)}
    for job, found in zip(jobs, waits, strict=True):
        for each in job.body.get("after", ()):
            if each["key"] in found:
                number = found[each["key"]]
                part = each["key"].removeprefix(_name(jobs[number].body))
                each["key"] = f"#{place[number]}{part}"
    return order


def with_keys(body: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The same job, where `keys` of this file are known already: they stand for the first `#N`, and then comes `#0`."""
    after = [each | {"key": _known(each["key"], keys)} for each in body.get("after", ())]
    return body | {"after": after} if after else body


def _known(key: str, keys: Sequence[str]) -> str:
    if not key.startswith("#"):
        return key
    number, dot, part = key[1:].partition(".")
    at = int(number)
    return f"{keys[at] if at < len(keys) else f'#{at - len(keys)}'}{dot}{part}"


def _name(body: dict[str, Any]) -> str:
    return str(body["name"])


def _awaited(jobs: Sequence[Described], number: int) -> Iterator[tuple[str, int]]:
    """What a job waits for by name, and the numbers of the jobs that are meant."""
    for each in jobs[number].body.get("after", ()):
        text = each["key"]
        if _KEY.fullmatch(text):
            continue
        found = [at for at, job in enumerate(jobs) if _name(job.body) == text]
        if not found and "." in text:
            found = [at for at, job in enumerate(jobs) if _name(job.body) == text.rpartition(".")[0]]
        where = jobs[number].where
        if not found:
            from difflib import get_close_matches

            close = get_close_matches(text, [_name(job.body) for job in jobs], 1)
            hint = f"; did you mean {close[0]!r}?" if close else "; name one of this file, or write a key such as 12"
            raise wrong_usage(f"{where}: after: no job of this file is named {text!r}{hint}")
        if len(found) > 1:
            raise wrong_usage(
                f"{where}: after: {len(found)} jobs of this file are named {text!r}; give each its own name"
            )
        yield text, found[0]


def _sorted(jobs: Sequence[Described], waits: Sequence[set[int]]) -> list[int]:
    order: list[int] = []
    state = [0] * len(jobs)
    for start in range(len(jobs)):
        way = [start]
        while way:
            number = way[-1]
            state[number] = state[number] or 1
            left = next((each for each in sorted(waits[number]) if state[each] < 2), None)
            if left is None:
                if state[number] < 2:
                    order.append(number)
                state[number] = 2
                way.pop()
            elif state[left] == 1:
                circle = " waits for ".join(_name(jobs[each].body) for each in [*way[way.index(left) :], left])
                raise wrong_usage(f"{jobs[left].where}: after: nothing in a circle ever runs: {circle}")
            else:
                way.append(left)
    return order
