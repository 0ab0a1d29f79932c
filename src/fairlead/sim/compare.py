"""Check a file of scenarios against what was recorded for them.

Decides what counts as a difference at each level (`exact` everything in order, `set` the same rows in any order,
`coarse` as many rows of each application in each step), and what passes: a scenario without a difference, or one whose
deviation was accepted by a written decision. Wording of reasons is never compared, only whether something was refused.
Never changes an expectation. Invariant: a result has no differences from itself at any level; every scenario of the
file is counted exactly once, and one that crashes is a difference of its own, not the end of the run.
"""

from __future__ import annotations

import sys
import tomllib
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import msgspec

from fairlead.sim.additions import ScenarioError
from fairlead.sim.outcome import ADDED
from fairlead.sim.rows import sentence
from fairlead.sim.scenario import open_lines, run_steps
from fairlead.sim.steps import Scenario, read_scenarios


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one scenario came out; `accepted` is the written reason for its differences, if there is one."""

    name: str
    category: str
    level: str
    found: tuple[Difference, ...]
    accepted: str = ""

    @property
    def failed(self) -> bool:
        """It differs and nobody accepted that."""
        return bool(self.found) and not self.accepted


@dataclass(slots=True)
class Report:
    """The verdicts of a whole file, in its order, and what the decisions file says in vain."""

    verdicts: list[Verdict] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    """Names of accepted deviations that no longer differ, or that no scenario has."""

    @property
    def failures(self) -> list[Verdict]:
        """Those that differ and were not accepted."""
        return [v for v in self.verdicts if v.failed]

    def by_category(self) -> dict[str, dict[str, int]]:
        """`{category: {"passed", "accepted", "failed", "total"}}`, by name."""
        table: dict[str, dict[str, int]] = {}
        for v in sorted(self.verdicts, key=lambda v: v.category):
            row = table.setdefault(v.category, {"passed": 0, "accepted": 0, "failed": 0, "total": 0})
            row["failed" if v.failed else "accepted" if v.found else "passed"] += 1
            row["total"] += 1
        return table


def check(scenario: Scenario, accepted: str = "") -> Verdict:
    """Run one scenario and compare it with its expectation; raises `ScenarioError` when it has none."""
    if scenario.expect is None:
        raise ScenarioError(f"scenario {scenario.name!r} has no `expect`: there is nothing to compare with")
    try:
        result = run_steps(scenario)["result"]
        found = differences(scenario.expect, result, scenario.compare)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        found = [Difference("run", ABSENT, f"crashed in {place} with {type(e).__name__}: {e}")]
    return Verdict(scenario.name, scenario.category, scenario.compare, tuple(found), accepted)


def check_scenarios(
    scenarios: Iterable[Scenario], decisions: dict[str, str] | None = None, whole: bool = True
) -> Report:
    """Check many; `decisions` gives the reason for every accepted deviation by the scenario's name.

    `whole` says that no other scenarios exist, so that a decision about an unknown one is stale.
    """
    decided = decisions or {}
    report = Report()
    for scenario in scenarios:
        report.verdicts.append(check(scenario, decided.get(scenario.name, "")))
    differing = {v.name for v in report.verdicts if v.found}
    seen = {v.name for v in report.verdicts}
    report.stale = [n for n in decided if n not in differing and (whole or n in seen)]
    return report


def read_decisions(path: str) -> dict[str, str]:
    """Accepted deviations, `{name: reason}`, from TOML or JSON; raises `ScenarioError` when it is anything else."""
    try:
        raw = Path(path).read_bytes()
        plain = msgspec.json.decode(raw) if path.endswith(".json") else tomllib.loads(raw.decode())
        return msgspec.convert(plain, dict[str, str])
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise ScenarioError(f"{path}: not a table of scenario names with a reason each: {e}") from None


def check_file(
    path: str,
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    decisions: str = "",
    categories: Collection[str] = (),
    names: Collection[str] = (),
    shown: int = 10,
    as_json: bool = False,
) -> int:
    """Check a file of JSON lines (`-`: standard input) and print a table by category and the first differences.

    `decisions` is a file of accepted deviations; `categories` and `names` narrow the choice; `shown` is how many
    scenarios and how many differences of each are printed. Returns 0 when all pass or are accepted, 1 when any differs,
    2 when something cannot be read (or nothing was chosen).
    """
    try:
        decided = read_decisions(decisions) if decisions else {}
        with open_lines(path) as lines:
            every = read_scenarios(iter(lines), path)
            chosen = (
                s for s in every if (not categories or s.category in categories) and (not names or s.name in names)
            )
            report = check_scenarios(chosen, decided, whole=not (categories or names))
    except (OSError, ScenarioError) as e:
        print(f"cannot check the scenarios: {sentence(e)}", file=err or sys.stderr)
        return 2
    if not report.verdicts:
        print(f"cannot check the scenarios: none of {path} was chosen", file=err or sys.stderr)
        return 2
    text = report_json(report) if as_json else report_text(report, shown)
    print(text, file=out or sys.stdout)
    return 1 if report.failures else 0


def report_json(report: Report) -> str:
    """The report as one JSON object: `categories`, `failures`, `accepted`, `stale`."""
    plain = {
        "categories": report.by_category(),
        "failures": [_verdict_plain(v) for v in report.failures],
        "accepted": [_verdict_plain(v) | {"reason": v.accepted} for v in report.verdicts if v.found and v.accepted],
        "stale": report.stale,
    }
    return msgspec.json.encode(plain).decode()


def _verdict_plain(v: Verdict) -> dict[str, object]:
    return {
        "name": v.name,
        "category": v.category,
        "compare": v.level,
        "differences": [
            {"path": d.path} | {k: s for k, s in (("expected", d.expected), ("got", d.got)) if s is not ABSENT}
            for d in v.found
        ],
    }


def report_text(report: Report, shown: int = 10) -> str:
    """The report for people: the table, then the first differences, then what was accepted and what is stale."""
    table = report.by_category()
    total = {k: sum(row[k] for row in table.values()) for k in ("passed", "accepted", "failed", "total")}
    width = max(len(name) for name in [*table, "category", "total"])
    lines = [f"{'category':{width}}  {'passed':>6}  {'accepted':>8}  {'failed':>6}  {'total':>6}"]
    for name, row in [*table.items(), ("total", total)]:
        lines.append(f"{name:{width}}  {row['passed']:6}  {row['accepted']:8}  {row['failed']:6}  {row['total']:6}")
    for v in report.failures[:shown]:
        lines += ["", f"{v.name} ({v.level}): {len(v.found)} difference{'s' * (len(v.found) != 1)}"]
        lines += [f"  {d}" for d in v.found[:shown]]
        if len(v.found) > shown:
            lines.append(f"  ... and {len(v.found) - shown} more")
    if len(report.failures) > shown:
        lines += ["", f"... and {len(report.failures) - shown} more scenarios differ"]
    accepted = [v for v in report.verdicts if v.found and v.accepted]
    if accepted:
        lines += ["", "accepted deviations:", *(f"  {v.name}: {v.accepted}" for v in accepted)]
    if report.stale:
        lines += ["", "accepted, but there is no such difference: " + ", ".join(report.stale)]
    return "\n".join(lines)


Plain = Any

_AMOUNTS = {"allocated", "pending", "placeholder", "allocatedResource", "pendingResource", "preemptingResource"}
_REFUSALS = ("apps_rejected", "asks_rejected", "nodes_rejected")
_SECTIONS = ("allocated", "released", "apps_accepted", *_REFUSALS, "apps", "queues")
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
    """Every difference between an expectation and a result (of a run, or recorded at `exact`), in one order.

    No recording has one of `ADDED`. An expectation that has was written by hand: what it leaves out altogether is not
    compared, nor are fields of what waits that it leaves out.
    """
    refused = [side.get("rejected") for side in (expect, result)]
    if any(r is not None for r in refused):
        if all(r is not None for r in refused):
            return []
        accepted = "accepted"
        return [Difference("configuration", *(accepted if r is None else f"refused: {r}" for r in refused))]
    left, right = viewed(expect, level), viewed(result, level)
    found: list[Difference] = []
    partly = not ADDED.isdisjoint(expect)
    for section in _SECTIONS:
        if section in expect if partly else (section in left or section in right):
            _compare(section, left.get(section, ABSENT), right.get(section, ABSENT), found)
    for section in sorted(ADDED & expect.keys()):
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
            # Rows of a list are shown whole: a single field of one says little.
            left, right = (side[i] if i < len(side) else ABSENT for side in (expected, got))
            if left != right:
                found.append(Difference(f"{path}[{i}]", left, right))
    elif expected != got:
        found.append(Difference(path, expected, got))
