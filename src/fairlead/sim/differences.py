"""Compare what happened with what was expected.

Decides what counts as a difference at each level: `exact` everything in order, `set` the same rows in any order,
`coarse` as many rows of each application in each step. Wording of reasons is never compared, only whether something was
refused. Never runs anything. Invariant: a result has no differences from itself at any level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Plain = Any

_AMOUNTS = {"allocated", "pending", "placeholder", "allocatedResource", "pendingResource", "preemptingResource"}
_REFUSALS = ("apps_rejected", "asks_rejected", "nodes_rejected")
_SECTIONS = ("allocated", "released", "apps_accepted", *_REFUSALS, "apps", "queues")
_ADDED = {"evicted", "nominated", "waiting", "declarations_rejected"}
"""Sections that no recording has. An expectation with one of them was written by hand: what it leaves out altogether is
not compared, nor are fields of what waits that it leaves out.
"""
ABSENT = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where expectation and result part; `expected` or `got` is `ABSENT` where there is nothing."""

    path: str
    expected: Plain
    got: Plain

    def __str__(self) -> str:
        return f"{self.path}: expected {_shown(self.expected)}, got {_shown(self.got)}"


def _shown(value: Plain) -> str:
    if value is ABSENT:
        return "nothing"
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."


def differences(expect: Mapping[str, Plain], result: Mapping[str, Plain], level: str) -> list[Difference]:
    """Every difference between an expectation and a result (of a run, or recorded at `exact`), in one order."""
    refused = [side.get("rejected") for side in (expect, result)]
    if any(r is not None for r in refused):
        if all(r is not None for r in refused):
            return []
        accepted = "accepted"
        return [Difference("configuration", *(accepted if r is None else f"refused: {r}" for r in refused))]
    left, right = viewed(expect, level), viewed(result, level)
    found: list[Difference] = []
    partly = not _ADDED.isdisjoint(expect)
    for section in _SECTIONS:
        if section in expect if partly else (section in left or section in right):
            _compare(section, left.get(section, ABSENT), right.get(section, ABSENT), found)
    for section in sorted(_ADDED & expect.keys()):
        want, got = expect[section], result.get(section, ABSENT)
        if section == "waiting" and isinstance(got, Mapping):
            got = {key: _same_fields(row, want.get(key)) for key, row in got.items()}
        elif section == "declarations_rejected" and isinstance(got, Mapping):
            want, got = sorted(want), sorted(got)
        _compare(section, want, got, found)
    return found


def _same_fields(row: Plain, expected: Plain) -> Plain:
    """Of a row about what waits only the fields that the expectation has, if it is about that at all."""
    return {name: row[name] for name in expected if name in row} if isinstance(expected, Mapping) else row


def viewed(rows: Mapping[str, Plain], level: str) -> dict[str, Plain]:
    """The part of an outcome that `level` compares, in one form; rows that are counted already stay so."""
    seen = {k: rows[k] for k in _SECTIONS if k in rows}
    seen |= {k: sorted(rows[k]) for k in _REFUSALS if k in rows}
    seen["apps"] = {name: _plain_app(app, level) for name, app in rows.get("apps", {}).items()}
    seen["queues"] = {name: _without_zeros(q) for name, q in rows.get("queues", {}).items()}
    if level == "set":
        seen["allocated"] = sorted(rows.get("allocated", ()), key=lambda r: (r["step"], r["key"], r["app"]))
    elif level == "coarse":
        seen["allocated"] = _tally(rows.get("allocated", ()), ("step", "app"))
        seen["released"] = _tally(rows.get("released", ()), ("step", "app", "by"))
    return seen


def _tally(rows: Sequence[Mapping[str, Plain]], names: tuple[str, ...]) -> dict[str, int]:
    """How many rows there are for each combination of `names`, as one flat map that reads well in a difference."""
    count: Counter[tuple[Plain, ...]] = Counter()
    for row in rows:
        count[tuple(row[n] for n in names)] += row.get("count", 1)
    return {", ".join(f"{n} {v}" for n, v in zip(names, key, strict=True)): count[key] for key in sorted(count)}


def _plain_app(app: Mapping[str, Plain], level: str) -> dict[str, Plain]:
    kept = _without_zeros(app)
    allocations = kept.pop("allocations", None)
    if level != "coarse":
        kept["allocations"] = sorted(allocations or ())
    return kept


def _without_zeros(fields: Mapping[str, Plain]) -> dict[str, Plain]:
    """In an amount 0 is the same as nothing, and nothing the same as an absent amount; limits are kept as they are."""
    kept = dict(fields)
    for name in _AMOUNTS & kept.keys():
        kept[name] = {k: v for k, v in (kept[name] or {}).items() if v}
        if not kept[name]:
            del kept[name]
    return kept


def _compare(path: str, expected: Plain, got: Plain, found: list[Difference]) -> None:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for name in sorted(expected.keys() | got.keys()):
            _compare(f"{path}[{name!r}]", expected.get(name, ABSENT), got.get(name, ABSENT), found)
    elif isinstance(expected, list) and isinstance(got, list):
        for i in range(max(len(expected), len(got))):
            left, right = (side[i] if i < len(side) else ABSENT for side in (expected, got))
            _compare_rows(f"{path}[{i}]", left, right, found)
    elif expected is ABSENT or got is ABSENT or expected != got:
        found.append(Difference(path, expected, got))


def _compare_rows(path: str, expected: Plain, got: Plain, found: list[Difference]) -> None:
    """Rows of a list are shown whole: a single field of one says little."""
    if expected is ABSENT or got is ABSENT or expected != got:
        found.append(Difference(path, expected, got))
