"""Verdicts: outcomes of several queue files side by side, and what the differences are in words.

Decides which figures are compared, in which direction each is better, and which differences are worth a sentence. Never
runs a trial and never draws. Invariant: rows come in one order, with one value for each outcome; a figure that an
outcome does not have is None and never counts as best.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from fairlead.core.model.quantities import people_call
from fairlead.sim.figures import GROUPS_MAX
from fairlead.times import span

Outcome = dict[str, Any]
LESS, MORE, NEITHER = "less", "more", ""
WORTH_SAYING = 0.05
"""Differences of a smaller part are noise to a reader."""
NEVER_STARTED, LAST_ENDED = "never started", "last one ended after"
TOLD = {
    "waiting time": ("mean", "p50", "p95", NEVER_STARTED),
    "bounded slowdown": ("mean", "p95"),
    "tasks": ("refused", "given up", LAST_ENDED),
    "stopped work": ("evictions", "run time lost"),
}
"""Which rows are told in words; of groups that are not named here, all. The table has the others."""
BREAKDOWNS = ("queue", "user", "priority", "size")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of all outcomes. `kind` says how it is written: `time`, `part`, `count` or `ratio`."""

    group: str
    name: str
    values: tuple[float | None, ...]
    kind: str
    better: str

    @property
    def best(self) -> frozenset[int]:
        """Which outcomes are best by this figure; none if all read the same or neither direction is better."""
        known = [v for v in self.values if v is not None]
        if not self.better or len({written(v, self.kind) for v in known}) < 2:
            return frozenset()
        top = written(min(known) if self.better == LESS else max(known), self.kind)
        return frozenset(i for i, v in enumerate(self.values) if v is not None and written(v, self.kind) == top)

    def text(self, number: int) -> str:
        """One value for people; `-` where there is none."""
        value = self.values[number]
        return "-" if value is None else written(value, self.kind)


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def written(value: float, kind: str) -> str:
    """A figure for people."""
    if kind == "time":
        return span(value)
    if kind == "part":
        return f"{value:.1%}"
    return f"{value:,.0f}" if kind == "count" else f"{value:,.2f}"


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Every figure that is compared."""
    return [*_general(outcomes), *_use(outcomes), *_fairness(outcomes)]


GENERAL: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    *(
        ("waiting time", name, "time", LESS, ("waits", "started", name))
        for name in ("mean", "p50", "p95", "p99", "max")
    ),
    ("waiting time", NEVER_STARTED, "count", LESS, ("waits", "not_started")),
    *(("bounded slowdown", name, "ratio", LESS, ("slowdown", name)) for name in ("mean", "p95", "p99")),
    ("tasks", "completed", "count", MORE, ("tasks", "completed")),
    ("tasks", "refused", "count", LESS, ("tasks", "refused")),
    ("tasks", "given up", "count", LESS, ("tasks", "given_up")),
    ("tasks", LAST_ENDED, "time", LESS, ("last_completed_s",)),
    ("stopped work", "evictions", "count", LESS, ("stops", "evicted")),
    ("stopped work", "lost with a node", "count", NEITHER, ("stops", "lost_with_node")),
    ("stopped work", "run time lost", "time", LESS, ("stops", "lost_run_s")),
)
"""Rows that every outcome has: group, name, kind, what is better, and where the value stands among the figures."""


def _value(outcome: Outcome, path: Sequence[str]) -> float | None:
    found: Any = outcome["figures"]
    for name in path:
        found = None if found is None else found.get(name)
    return None if found is None else float(found)


def _general(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    is_same_work = len({_value(o, ("tasks", "completed")) for o in outcomes}) == 1
    for group, name, kind, better, path in GENERAL:
        if name == LAST_ENDED and not is_same_work:
            better = NEITHER  # What refuses work, or never starts it, is done early.
        yield Row(group, name, tuple(_value(o, path) for o in outcomes), kind, better)


def _use(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """Utilisation up to the last submission."""
    for name in sorted({name for o in outcomes for name in o["figures"]["use"]}):
        values = tuple(o["figures"]["use"].get(name, {}).get("while_coming") for o in outcomes)
        yield Row("utilisation while work comes", people_call(name), values, "part", MORE)


def _fairness(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    jain = tuple(_value(o, ("fairness", "jain")) for o in outcomes)
    yield Row("fairness", "Jain's index over users", jain, "ratio", MORE)
    queues = [o["figures"]["fairness"]["queues"] for o in outcomes]
    for path in sorted({path for found in queues for path in found}):
        if any("met" in found.get(path, {}) for found in queues):
            values = tuple(found.get(path, {}).get("met") for found in queues)
            yield Row("fairness", f"guarantee met: {path}", values, "part", MORE)
    for path in sorted({path for found in queues for path in found}):
        values = tuple(found.get(path, {}).get("share") for found in queues)
        yield Row("share of the cluster", path, values, "part", NEITHER)


def breakdown(outcomes: Sequence[Outcome], by: str, figure: str = "mean", most: int | None = GROUPS_MAX) -> list[Row]:
    """The waits of each queue, user, priority or size; of more than `most` (None: all) those with most tasks."""
    found = [o["figures"]["waits_by"][by] for o in outcomes]
    tasks = {name: group["tasks"] for groups in found for name, group in groups.items()}
    largest = set(sorted(tasks, key=lambda name: (-tasks[name], name))[:most])
    names = [name for name in tasks if name in largest]
    return [
        Row(f"waiting time by {by}", name, tuple(_wait(g.get(name), figure) for g in found), "time", LESS)
        for name in names
    ]


def _wait(group: dict[str, Any] | None, figure: str) -> float | None:
    return None if group is None or group["started"] is None else float(group["started"][figure])


# -- in words ------------------------------------------------------------------------------------------------------


def in_words(outcomes: Sequence[Outcome]) -> list[str]:
    """Of each of the others three sentences at most: what becomes of waits, who gains and pays, what else changes."""
    first = outcomes[0]
    sentences = []
    for other in outcomes[1:]:
        if all(o["figures"]["tasks"]["refused"] == o["figures"]["tasks"]["submitted"] for o in (first, other)):
            continue  # Nothing ran: what was refused is said below.
        told = [said for said in (_about_waits(first, other), _who(first, other)) if said]
        also = _else(first, other)
        it = "Beside that it" if told else other["name"]
        told += [f"{it} is {also}."] if also else []
        sentences += told or [f"{other['name']} makes no difference worth mentioning against {first['name']}."]
    for o in outcomes:
        sentences += [f"{o['name']} refuses {counted(count, 'task')}: {why}" for why, count in o["refused"].items()]
    sentences += [
        f"{o['name']} was interrupted: its figures go only to {span(o['figures']['end_s'] - o['figures']['begin_s'])}."
        for o in outcomes
        if o["interrupted"]
    ]
    return sentences


def _about_waits(first: Outcome, other: Outcome) -> str:
    changes = [row for row in rows([first, other]) if row.group == "waiting time" and _is_told(row)]
    if len({o["figures"]["tasks"]["refused"] for o in (first, other)}) > 1:
        # What is refused waits for nothing: that is no shorter wait.
        changes = [row for row in changes if row.name != NEVER_STARTED]
    if not changes:
        return ""
    said = ", ".join(f"{row.name} {row.text(0)} → {row.text(1)}" for row in changes)
    better = {_improves(row) for row in changes}
    how = "are another" if len(better) > 1 else "get shorter" if True in better else "get longer"
    return f"With {other['name']}, waiting times {how}{_of_how_many(first, other)}: {said}."


def alike(new: int, old: int) -> bool:
    """Whether two counts differ by no more than is worth saying."""
    return abs(new - old) <= WORTH_SAYING * max(new, old)


def _of_how_many(first: Outcome, other: Outcome) -> str:
    """Where clearly more or fewer start: waits of other tasks are no merit, and no fault, of the file."""
    waits = [o["figures"]["waits"]["started"] for o in (first, other)]
    old, new = (0 if each is None else each["count"] for each in waits)
    return "" if alike(new, old) else f" (of {counted(new, 'task')} that started; {old:,} with {first['name']})"


def _who(first: Outcome, other: Outcome) -> str:
    """Which queue gains most and which pays most: the largest changes of the mean wait, as the picture has them."""
    changes = []
    for row in breakdown([first, other], "queue"):
        old, new = row.values
        if old is not None and new is not None and abs(new - old) > WORTH_SAYING * max(old, new, 1):
            changes.append((new - old, row))
    changes.sort(key=lambda c: (c[0], c[1].name))
    told = []
    if changes and changes[0][0] < 0:
        told.append(f"{changes[0][1].name} gains most ({changes[0][1].text(0)} → {changes[0][1].text(1)})")
    if changes and changes[-1][0] > 0:
        told.append(f"{changes[-1][1].name} pays most ({changes[-1][1].text(0)} → {changes[-1][1].text(1)})")
    said = [f"In the mean {' and '.join(told)}."] if told else []
    return " ".join(said + _never_start(first, other))


def _never_start(first: Outcome, other: Outcome) -> list[str]:
    """In which queue most tasks more never start: they have no wait that could get longer."""
    old, new = (
        {name: group["not_started"] for name, group in o["figures"]["waits_by"]["queue"].items()}
        for o in (first, other)
    )
    more = {name: count - old.get(name, 0) for name, count in new.items()}
    worst = max(more, key=lambda name: more[name], default="")
    if not worst or more[worst] <= WORTH_SAYING * new[worst]:
        return []
    starts = "task more never starts" if more[worst] == 1 else "tasks more never start"
    return [f"In {worst} {more[worst]:,} {starts}."]


def _else(first: Outcome, other: Outcome) -> str:
    changes = [row for row in rows([first, other]) if row.group != "waiting time" and _is_told(row)]
    better = [_changed(row) for row in changes if _improves(row)]
    worse = [_changed(row) for row in changes if not _improves(row)]
    parts = [f"better in {'; '.join(better)}"] if better else []
    parts += [f"worse in {'; '.join(worse)}"] if worse else []
    return ", and ".join(parts)


def _improves(row: Row) -> bool:
    old, new = row.values
    assert old is not None
    assert new is not None
    return (new < old) == (row.better == LESS)


def _is_told(row: Row) -> bool:
    """Whether a difference is worth a word."""
    old, new = row.values
    if not row.better or row.name not in TOLD.get(row.group, (row.name,)):
        return False
    if old is None or new is None or abs(new - old) <= WORTH_SAYING * max(abs(old), abs(new)):
        return False
    return not (row.kind == "time" and max(old, new) < 1)


def _changed(row: Row) -> str:
    return f"{row.group} {row.name} {row.text(0)} → {row.text(1)}"


def write_csv(outcomes: Sequence[Outcome], out: TextIO) -> None:
    """Every compared figure as `group,figure,NAME,NAME,...`, plain numbers in seconds and parts of 1."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["group", "figure", *(o["name"] for o in outcomes)])
    all_rows = rows(outcomes)
    for by in BREAKDOWNS:
        for figure in ("mean", "p50", "p95", "p99"):
            all_rows += [
                Row(r.group, f"{r.name} {figure}", r.values, r.kind, r.better)
                for r in breakdown(outcomes, by, figure, most=None)
            ]
    for row in all_rows:
        writer.writerow([row.group, row.name, *("" if v is None else repr(v) for v in row.values)])
