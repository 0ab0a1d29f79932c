"""The report: outcomes as one HTML page that needs nothing else, and each of its plots alone as an SVG file.

Decides what a reader sees first (the differences in words, then the figures, then the plots), which plots there are,
what is in them, and the colour of each queue. Never computes a figure. Invariant: page and files refer to nothing
outside themselves and show the same drawings; a queue has one colour in all of them; the same outcomes give the same
bytes (CPU time is not in them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from fairlead.core.model.quantities import people_call
from fairlead.sim import gains, plots
from fairlead.sim.verdicts import BREAKDOWNS, Outcome, Row, breakdown, in_words, rows
from fairlead.times import span

OTHERS = "#adb5bd"
_STYLE = """
text{font-family:system-ui,sans-serif;font-size:12px;fill:#1f2937}.head{font-weight:600}.tick{font-size:11px;fill:#6b7280}
.grid{stroke:#e5e7eb}.axis{stroke:#6b7280}.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.area{opacity:.88}
.row{fill:#e5e7eb;opacity:.35}.broken{fill:#dc2626}
"""
"""The looks of the report, by day, without what only a page has."""
_HEAD, _NAMES = 24, 20
"""The height of a heading, and of a line of the legend."""
_LETTER = 7
"""About how wide a letter of the legend is."""

Named = Sequence[tuple[str, str]]
"""Names with their colours."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a sheet. Without a heading in the report where its section says what it is."""

    drawing: plots.Drawing
    heading: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Plots under each other, with one legend for all of them."""

    panels: Sequence[Panel]
    legend: Named

    def html(self) -> str:
        """For the report."""
        body = []
        for panel in self.panels:
            body.append(f"<h3>{escape(panel.heading)}</h3>" if panel.heading else "")
            body.append(panel.drawing.html())
            body.append(f'<p class="about">{escape(panel.note)}</p>' if panel.note else "")
        items = "".join(f'<li><i style="background:{colour}"></i>{escape(name)}</li>' for name, colour in self.legend)
        return "".join(body) + f'<ul class="legend">{items}</ul>'

    def svg(self) -> str:
        """A file of its own."""
        y, parts = 0, []
        for panel in self.panels:
            for text in (panel.heading or panel.drawing.label, panel.note):
                if text:
                    parts.append(f'<text class="head" x="8" y="{y + 17}">{escape(text)}</text>')
                    y += _HEAD
            label = escape(panel.drawing.label, quote=True)
            parts.append(
                f'<g transform="translate(0 {y})" role="img" aria-label="{label}">{panel.drawing.elements}</g>'
            )
            y += panel.drawing.height
        x = 8
        for name, colour in self.legend:
            width = 24 + _LETTER * len(name)
            if x > 8 and x + width > plots.WIDTH:
                x, y = 8, y + _NAMES
            parts.append(f'<rect x="{x}" y="{y + 4}" width="10" height="10" rx="3" fill="{colour}"/>')
            parts.append(f'<text x="{x + 16}" y="{y + 13}">{escape(name)}</text>')
            x += width + 16
        height = y + _NAMES + 4
        wide = plots.WIDTH
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}" height="{height}">'
            f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
        )


def write_images(outcomes: Sequence[Outcome], folder: str) -> list[str]:
    """Write `gains.svg` (of a comparison), `waits.svg`, `tasks.svg`, `utilisation.svg`, `shares.svg`, `nodes.svg`.

    Returns their paths.

    Raises OSError if the folder cannot be written.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, (_, _, sheet) in sheets_of(outcomes).items():
        path = place / f"{name}.svg"
        path.write_text(sheet(outcomes).svg(), encoding="utf-8")
        written.append(str(path))
    return written


# -- which there are ----------------------------------------------------------------------------------------------


def colour(number: int) -> str:
    """Of an outcome, by its place."""
    return plots.COLOURS[number % len(plots.COLOURS)]


def outcome_names(outcomes: Sequence[Outcome]) -> Named:
    """The outcomes with their colours."""
    return [(o["name"], colour(i)) for i, o in enumerate(outcomes)]


def course(outcomes: Sequence[Outcome], get: Callable[[Any], Any]) -> list[plots.Line]:
    """A line for each outcome: what `get` takes from its courses (None: it has none)."""
    lines = []
    for i, outcome in enumerate(outcomes):
        values = get(outcome["courses"])
        if values is not None:
            points = list(zip(outcome["courses"]["at_s"], values, strict=True))
            lines.append(plots.Line(outcome["name"], points, colour(i)))
    return lines


def longest(outcomes: Sequence[Outcome]) -> float:
    """How long the longest simulation lasted, in seconds: plots that stand above each other have one time axis."""
    return max(float(o["figures"]["end_s"] - o["figures"]["begin_s"]) for o in outcomes)


def gains_and_pays(outcomes: Sequence[Outcome]) -> Sheet:
    """Who waits less and who longer with each of the others."""
    panels = [Panel(drawn, heading) for heading, drawn in gains.drawings(outcomes)]
    return Sheet(panels, [("waits less", gains.LESS_COLOUR), ("waits longer", gains.MORE_COLOUR)])


def waits(outcomes: Sequence[Outcome]) -> Sheet:
    """Which part of the tasks had started within a time."""
    lines = [plots.Line(o["name"], o["wait_curve"], colour(i)) for i, o in enumerate(outcomes)]
    return Sheet([Panel(plots.distribution("waiting times", lines))], outcome_names(outcomes))


def tasks(outcomes: Sequence[Outcome]) -> Sheet:
    """How many tasks waited and ran at once."""
    waiting = plots.lines_over_time(
        "tasks waiting", course(outcomes, lambda c: c["waiting"]), plots.count_text, "count"
    )
    running = plots.lines_over_time(
        "tasks running", course(outcomes, lambda c: c["running"]), plots.count_text, "count"
    )
    return Sheet([Panel(waiting, "waiting"), Panel(running, "running")], outcome_names(outcomes))


def utilisation(outcomes: Sequence[Outcome]) -> Sheet:
    """The part of each resource that was in use."""
    names = sorted({name for o in outcomes for name in o["courses"]["use"]})
    panels = []
    for name in names:
        lines, called = course(outcomes, lambda c, n=name: c["use"].get(n)), people_call(name)  # type: ignore[misc]
        panels.append(Panel(plots.lines_over_time(called, lines, plots.part_text, "part", 1.0), called))
    return Sheet(panels, outcome_names(outcomes))


def shares(outcomes: Sequence[Outcome]) -> Sheet:
    """The part of the cluster that each queue had; those that had least are summed up."""
    every = {path for o in outcomes for path in o["courses"]["shares"]}
    shown, fills = largest_queues(outcomes), queue_fills(outcomes)
    panels = []
    for outcome in outcomes:
        had = outcome["courses"]["shares"]
        layers = [(path, had[path], fills[path]) for path in shown if path in had]
        rest = [values for path, values in had.items() if path not in shown]
        if rest:
            layers.append(("all others", [sum(column) for column in zip(*rest, strict=True)], OTHERS))
        drawn = plots.stacked("share by queue", outcome["courses"]["at_s"], layers, longest(outcomes))
        panels.append(Panel(drawn, outcome["name"]))
    named = [(path, fills[path]) for path in shown]
    if len(every) > len(shown):
        named.append(("all others", OTHERS))
    return Sheet(panels, named)


def nodes(outcomes: Sequence[Outcome]) -> Sheet:
    """What ran where on the first nodes."""
    fills, there, panels = queue_fills(outcomes), set[str](), []
    for outcome in outcomes:
        plan = outcome["gantt"]
        there.update(plan["queues"])
        drawn = plots.gantt("nodes", plan["nodes"], plan["bars"], longest(outcomes), [fills[q] for q in plan["queues"]])
        left = f"{plan['left_out']:,} shorter runs are not shown." if plan["left_out"] else ""
        panels.append(Panel(drawn, outcome["name"], left))
    return Sheet(panels, [(path, fill) for path, fill in fills.items() if path in there][: len(plots.FILLS)])


LAYERS_MAX = 11
"""So many queues have a layer of their own; the others are summed up."""


def largest_queues(outcomes: Sequence[Outcome]) -> list[str]:
    """The queues that had most, by name."""
    every = sorted({path for o in outcomes for path in o["courses"]["shares"]})
    weight = {path: sum(sum(o["courses"]["shares"].get(path, [0.0])) for o in outcomes) for path in every}
    return sorted(sorted(every, key=lambda path: (-weight[path], path))[:LAYERS_MAX])


def queue_fills(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """A colour for each queue: no two of the largest have the same."""
    first = largest_queues(outcomes)
    every = {path for o in outcomes for path in (*o["courses"]["shares"], *o["gantt"]["queues"])}
    return {
        path: plots.FILLS[i % len(plots.FILLS)] for i, path in enumerate([*first, *sorted(every.difference(first))])
    }


Sheets = dict[str, tuple[str, str, Callable[[Sequence[Outcome]], Sheet]]]
SHEETS: Sheets = {
    "gains": (
        "Who gains and who pays",
        "How the mean wait of each queue and user changes: to the left it gets shorter, to the right longer.",
        gains_and_pays,
    ),
    "waits": (
        "Waiting times",
        "Which part of the tasks had started within a time after they were submitted. Higher is better.",
        waits,
    ),
    "tasks": ("Tasks over time", "How many tasks waited and ran at once.", tasks),
    "utilisation": ("Utilisation", "The part of what the nodes offered that was in use.", utilisation),
    "shares": (
        "Shares by queue",
        "The part of the cluster that each queue had, by the resource of which it had most. Where queues have most of "
        "different resources the sum may be above 100 %.",
        shares,
    ),
    "nodes": (
        "Nodes",
        f"What ran where on the first nodes, of each {plots.LANES_MAX} runs at a time at most, coloured by queue; "
        "a red end was evicted, lost or failed.",
        nodes,
    ),
}
"""By the name of the file: heading, explanation, plots."""


def sheets_of(outcomes: Sequence[Outcome]) -> Sheets:
    """Those that there are: with one outcome nobody gains and nobody pays."""
    return {name: sheet for name, sheet in SHEETS.items() if name != "gains" or len(outcomes) > 1}


def html_report(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    names = ", ".join(o["name"] for o in outcomes)
    drawn = {
        name: _section(title, about, sheet(outcomes).html())
        for name, (title, about, sheet) in sheets_of(outcomes).items()
    }
    parts = [_head(outcomes, names), _words(outcomes), drawn.pop("gains", ""), _figures(outcomes)]
    *plots, on_nodes = drawn.values()
    parts += [*plots, _guarantees(outcomes), *_breakdowns(outcomes), on_nodes, _notes(outcomes)]
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
                bounds.append(plots.Line(f"guaranteed by {outcome['name']}", level, colour(i), dashed=True))
        if bounds:
            panels.append(Panel(plots.lines_over_time(path, [*lines, *bounds], plots.part_text, "part"), path))
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
