"""The report: outcomes as one HTML page that needs nothing else.

Decides what a reader sees first: the differences in words, then the figures, then the plots. Never computes a figure.
Invariant: the page refers to nothing outside itself; the same outcomes give the same bytes (CPU time is not in it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from fairlead.sim.fills import largest_queues, queue_fills
from fairlead.sim.page import CSS, SCRIPT
from fairlead.sim.plots import (
    COLOURS,
    FILLS,
    Line,
    count_text,
    distribution,
    gantt,
    lines_over_time,
    part_text,
    stacked,
)
from fairlead.sim.verdicts import BREAKDOWNS, Outcome, Row, breakdown, in_words, rows, span


def html_report(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    names = ", ".join(o["name"] for o in outcomes)
    parts = [_head(outcomes, names), _words(outcomes), _figures(outcomes)]
    parts += [_waits(outcomes), _queue_length(outcomes), _use(outcomes), _shares(outcomes), _guarantees(outcomes)]
    parts += [*_breakdowns(outcomes), _gantts(outcomes), _notes(outcomes)]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(names)}</title>'
        f"<style>{CSS}</style></head><body><main>{''.join(parts)}</main><script>{SCRIPT}</script></body></html>\n"
    )


def _lasted(outcomes: Sequence[Outcome]) -> str:
    spans = [span(o["figures"]["end_s"] - o["figures"]["begin_s"]) for o in outcomes]
    return ", ".join(dict.fromkeys(spans))


def _head(outcomes: Sequence[Outcome], names: str) -> str:
    first = outcomes[0]
    figures = first["figures"]
    facts = [
        ("workload", first["workload"]),
        ("tasks", f"{figures['tasks']['submitted']:,}"),
        ("nodes", f"{first['nodes']:,}"),
        ("until all was over", _lasted(outcomes)),
    ]
    shown = "".join(f"<div><dt>{escape(n)}</dt><dd>{escape(str(v))}</dd></div>" for n, v in facts)
    return f"<header><p>Simulation</p><h1>{escape(names)}</h1><dl>{shown}</dl></header>"


def _section(title: str, about: str, body: str) -> str:
    said = f'<p class="about">{escape(about)}</p>' if about else ""
    return f"<section><h2>{escape(title)}</h2>{said}{body}</section>"


def _words(outcomes: Sequence[Outcome]) -> str:
    sentences = in_words(outcomes)
    if not sentences:
        return ""
    return _section("In short", "", "<ul>" + "".join(f"<li>{escape(s)}</li>" for s in sentences) + "</ul>")


def _figures(outcomes: Sequence[Outcome]) -> str:
    about = "The best of each row is marked." if len(outcomes) > 1 else ""
    return _section("Figures", about, _table(rows(outcomes), outcomes, grouped=True))


def _table(found: Sequence[Row], outcomes: Sequence[Outcome], grouped: bool = False) -> str:
    heads = "".join(
        f'<th><i style="background:{COLOURS[i % len(COLOURS)]}"></i>{escape(o["name"])}</th>'
        for i, o in enumerate(outcomes)
    )
    body, group = [], None
    for row in found:
        if grouped and row.group != group:
            group = row.group
            body.append(f'<tr class="group"><th colspan="{len(outcomes) + 1}">{escape(group)}</th></tr>')
        cells = "".join(
            f"<td{' class=best' if i in row.best else ''}>{escape(row.text(i))}</td>" for i in range(len(outcomes))
        )
        body.append(f"<tr><th>{escape(row.name)}</th>{cells}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def _legend(named: Sequence[tuple[str, str]]) -> str:
    items = "".join(f'<li><i style="background:{colour}"></i>{escape(name)}</li>' for name, colour in named)
    return f'<ul class="legend">{items}</ul>'


def _outcome_legend(outcomes: Sequence[Outcome]) -> str:
    return _legend([(o["name"], COLOURS[i % len(COLOURS)]) for i, o in enumerate(outcomes)])


def _course(outcomes: Sequence[Outcome], get: Any) -> list[Line]:
    lines = []
    for i, outcome in enumerate(outcomes):
        values = get(outcome["courses"])
        if values is not None:
            points = list(zip(outcome["courses"]["at_s"], values, strict=True))
            lines.append(Line(outcome["name"], points, COLOURS[i % len(COLOURS)]))
    return lines


def _waits(outcomes: Sequence[Outcome]) -> str:
    lines = [Line(o["name"], o["wait_curve"], COLOURS[i % len(COLOURS)]) for i, o in enumerate(outcomes)]
    about = "Which part of the tasks had started within a time after they were submitted. Higher is better."
    return _section("Waiting times", about, distribution("waiting times", lines) + _outcome_legend(outcomes))


def _queue_length(outcomes: Sequence[Outcome]) -> str:
    plot = lines_over_time("tasks waiting", _course(outcomes, lambda c: c["waiting"]), count_text, "count")
    more = lines_over_time("tasks running", _course(outcomes, lambda c: c["running"]), count_text, "count")
    body = f"<h3>waiting</h3>{plot}<h3>running</h3>{more}{_outcome_legend(outcomes)}"
    return _section("Tasks over time", "How many tasks waited and ran at once.", body)


def _use(outcomes: Sequence[Outcome]) -> str:
    names = sorted({name for o in outcomes for name in o["courses"]["use"]})
    body = "".join(
        f"<h3>{escape(name)}</h3>"
        + lines_over_time(name, _course(outcomes, lambda c, n=name: c["use"].get(n)), part_text, "part", 1.0)
        for name in names
    )
    return _section(
        "Utilisation", "The part of what the nodes offered that was in use.", body + _outcome_legend(outcomes)
    )


def _longest(outcomes: Sequence[Outcome]) -> float:
    """How long the longest simulation lasted, in seconds: plots that stand above each other have one time axis."""
    return max(float(o["figures"]["end_s"] - o["figures"]["begin_s"]) for o in outcomes)


def _shares(outcomes: Sequence[Outcome]) -> str:
    every = sorted({path for o in outcomes for path in o["courses"]["shares"]})
    shown, fills = largest_queues(outcomes), queue_fills(outcomes)
    body = []
    for outcome in outcomes:
        shares = outcome["courses"]["shares"]
        at_s = outcome["courses"]["at_s"]
        layers = [(path, shares[path], fills[path]) for path in shown if path in shares]
        rest = [values for path, values in shares.items() if path not in shown]
        if rest:
            layers.append(("all others", [sum(column) for column in zip(*rest, strict=True)], "#adb5bd"))
        drawn = stacked("share by queue", at_s, layers, _longest(outcomes))
        body.append(f"<h3>{escape(outcome['name'])}</h3>{drawn}")
    named = [(path, fills[path]) for path in shown]
    if len(every) > len(shown):
        named.append(("all others", "#adb5bd"))
    about = (
        "The part of the cluster that each queue had, by the resource of which it had most. Where queues have most of "
        "different resources the sum may be above 100 %."
    )
    return _section("Shares by queue", about, "".join(body) + _legend(named))


def _guarantees(outcomes: Sequence[Outcome]) -> str:
    """The share of each guaranteed queue beside its guarantee, where there is one."""
    lasts = _longest(outcomes)
    body = []
    for path in sorted({path for o in outcomes for path in o["courses"]["shares"]}):
        lines = _course(outcomes, lambda c, p=path: c["shares"].get(p))
        bounds = []
        for i, outcome in enumerate(outcomes):
            part = outcome["figures"]["fairness"]["queues"].get(path, {}).get("guaranteed")
            if part is not None:
                level = [(0.0, part), (lasts, part)]
                bounds.append(Line(f"guaranteed by {outcome['name']}", level, COLOURS[i % len(COLOURS)], dashed=True))
        if bounds:
            body.append(f"<h3>{escape(path)}</h3>{lines_over_time(path, [*lines, *bounds], part_text, 'part')}")
    if not body:
        return ""
    about = "What guaranteed queues had (lines) beside their guarantee (dashed)."
    return _section("Share against guarantee", about, "".join(body) + _outcome_legend(outcomes))


def _breakdowns(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for by in BREAKDOWNS:
        found = breakdown(outcomes, by)
        if len(found) < 2:
            continue
        tails = breakdown(outcomes, by, "p95")
        wide = " three" if len(outcomes) > 2 else ""
        both = f'<div class="pair{wide}"><div><h3>mean</h3>{_table(found, outcomes)}</div>'
        both += f"<div><h3>p95</h3>{_table(tails, outcomes)}</div></div>"
        yield _section(f"Waiting times by {by}", "", both)


def _gantts(outcomes: Sequence[Outcome]) -> str:
    body: list[str] = []
    fills, there = queue_fills(outcomes), set[str]()
    for outcome in outcomes:
        plan = outcome["gantt"]
        there.update(plan["queues"])
        drawn = gantt("nodes", plan["nodes"], plan["bars"], _longest(outcomes), [fills[q] for q in plan["queues"]])
        left = f'<p class="about">{plan["left_out"]:,} shorter runs are not shown.</p>' if plan["left_out"] else ""
        body.append(f"<h3>{escape(outcome['name'])}</h3>{drawn}{left}")
    about = "What ran where on the first nodes, coloured by queue; a red end was evicted, lost or failed."
    named = [(path, fill) for path, fill in fills.items() if path in there][: len(FILLS)]
    return _section("Nodes", about, "".join(body) + _legend(named))


def _notes(outcomes: Sequence[Outcome]) -> str:
    notes = list(dict.fromkeys(note for o in outcomes for note in o["notes"]))
    notes += [f"{o['name']}: {o['decisions']:,} decisions, sha256 {o['digest']}" for o in outcomes if o["digest"]]
    return _section("Notes", "", "<ul>" + "".join(f"<li>{escape(n)}</li>" for n in notes) + "</ul>") if notes else ""
