"""The report: outcomes as one HTML page that needs nothing else.

Decides what a reader sees first: the differences in words, then the figures, then the plots. Never computes a figure.
Invariant: the page refers to nothing outside itself; the same outcomes give the same bytes (CPU time is not in it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources

from fairlead.sim.plots import Line, lines_over_time, part_text
from fairlead.sim.sheets import (
    Panel,
    Sheet,
    colour,
    course,
    longest,
    nodes,
    outcome_names,
    shares,
    tasks,
    utilisation,
    waits,
)
from fairlead.sim.verdicts import BREAKDOWNS, Outcome, Row, breakdown, in_words, rows
from fairlead.times import span

PLOTS: tuple[tuple[str, str, Callable[[Sequence[Outcome]], Sheet]], ...] = (
    (
        "Waiting times",
        "Which part of the tasks had started within a time after they were submitted. Higher is better.",
        waits,
    ),
    ("Tasks over time", "How many tasks waited and ran at once.", tasks),
    ("Utilisation", "The part of what the nodes offered that was in use.", utilisation),
    (
        "Shares by queue",
        "The part of the cluster that each queue had, by the resource of which it had most. Where queues have most of "
        "different resources the sum may be above 100 %.",
        shares,
    ),
)
NODES = ("Nodes", "What ran where on the first nodes, coloured by queue; a red end was evicted, lost or failed.")


def html_report(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    names = ", ".join(o["name"] for o in outcomes)
    parts = [_head(outcomes, names), _words(outcomes), _figures(outcomes)]
    parts += [_section(title, about, sheet(outcomes).html()) for title, about, sheet in PLOTS]
    parts += [_guarantees(outcomes), *_breakdowns(outcomes)]
    parts += [_section(*NODES, nodes(outcomes).html()), _notes(outcomes)]
    css, script = (
        resources.files("fairlead.sim").joinpath(f"report.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(names)}</title>'
        f"<style>{css}</style></head><body><main>{''.join(parts)}</main><script>{script}</script></body></html>\n"
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
        f'<th><i style="background:{colour(i)}"></i>{escape(o["name"])}</th>' for i, o in enumerate(outcomes)
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


def _guarantees(outcomes: Sequence[Outcome]) -> str:
    """The share of each guaranteed queue beside its guarantee, where there is one."""
    lasts = longest(outcomes)
    panels = []
    for path in sorted({path for o in outcomes for path in o["courses"]["shares"]}):
        lines = course(outcomes, lambda c, p=path: c["shares"].get(p))  # type: ignore[misc]
        bounds = []
        for i, outcome in enumerate(outcomes):
            part = outcome["figures"]["fairness"]["queues"].get(path, {}).get("guaranteed")
            if part is not None:
                level = [(0.0, part), (lasts, part)]
                bounds.append(Line(f"guaranteed by {outcome['name']}", level, colour(i), dashed=True))
        if bounds:
            panels.append(Panel(lines_over_time(path, [*lines, *bounds], part_text, "part"), path))
    if not panels:
        return ""
    about = "What guaranteed queues had (lines) beside their guarantee (dashed)."
    return _section("Share against guarantee", about, Sheet(panels, outcome_names(outcomes)).html())


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


def _notes(outcomes: Sequence[Outcome]) -> str:
    notes = list(dict.fromkeys(note for o in outcomes for note in o["notes"]))
    notes += [f"{o['name']}: {o['decisions']:,} decisions, sha256 {o['digest']}" for o in outcomes if o["digest"]]
    return _section("Notes", "", "<ul>" + "".join(f"<li>{escape(n)}</li>" for n in notes) + "</ul>") if notes else ""
