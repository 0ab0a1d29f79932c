"""The report: outcomes as one HTML page that needs nothing else.

Decides what a reader sees first: the differences in words, then the figures, then the plots. Never computes a figure.
Invariant: the page refers to nothing outside itself; the same outcomes give the same bytes (CPU time is not in it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

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


CSS = """
:root{--ink:#1f2937;--soft:#6b7280;--rule:#e5e7eb;--back:#f8fafc;--card:#fff;--best:#dcfce7;--bestink:#166534}
@media (prefers-color-scheme:dark){:root{--ink:#e5e7eb;--soft:#9ca3af;--rule:#374151;--back:#0f172a;--card:#1e293b;
--best:#14532d;--bestink:#bbf7d0}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:960px;margin:0 auto;padding:32px 20px 64px}
header p{margin:0;color:var(--soft);letter-spacing:.08em;text-transform:uppercase;font-size:12px}
h1{margin:.1em 0 .5em;font-size:30px;line-height:1.2;overflow-wrap:anywhere}
h2{margin:0 0 4px;font-size:19px}
h3{margin:14px 0 2px;font-size:13px;font-weight:600;color:var(--soft)}
header dl{display:flex;flex-wrap:wrap;gap:8px 36px;margin:0 0 24px}
dt{font-size:12px;color:var(--soft)}
dd{margin:0;font-size:18px;font-weight:600}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:18px 22px;margin:0 0 18px;
position:relative}
.about{margin:0 0 8px;color:var(--soft);font-size:13.5px}
section>ul:not(.legend){margin:6px 0 0;padding-left:20px}
section>ul:not(.legend) li{margin:4px 0;overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
tbody th{text-align:left;font-weight:400;padding-left:14px}
thead th{font-size:13px}
tr.group th{font-weight:600;padding:12px 0 4px;border-bottom:1px solid var(--soft)}
td.best{background:var(--best);color:var(--bestink);font-weight:600}
th i,.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(340px,1fr));gap:0 28px}
.pair.three{grid-template-columns:1fr}
svg{display:block;width:100%;height:auto}
.plot{overflow-x:auto}
@media screen and (max-width:700px){main{padding:20px 10px 40px}section{padding:14px 12px}.plot svg{min-width:620px}
.pair{grid-template-columns:1fr}}
@media screen and (prefers-color-scheme:dark){.line,.legend i,.tip i,th i{filter:brightness(1.3)}}
.grid{stroke:var(--rule)}.axis{stroke:var(--soft)}
.tick{font-size:11px;fill:var(--soft)}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.area{opacity:.88}
.row{fill:var(--rule);opacity:.35}
.broken{fill:#dc2626}
.cross{stroke:var(--soft);stroke-dasharray:2 3}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:8px 0 0;padding:0;font-size:13px}
.tip{position:absolute;pointer-events:none;background:var(--card);border:1px solid var(--soft);border-radius:6px;
padding:5px 9px;font-size:12.5px;white-space:nowrap;z-index:2;box-shadow:0 2px 8px #0003}
.tip i{display:inline-block;width:8px;height:8px;border-radius:2px;margin-right:5px}
@media print{:root{--ink:#1f2937;--soft:#6b7280;--rule:#e5e7eb;--card:#fff;--best:#dcfce7;--bestink:#166534}
body{background:#fff;print-color-adjust:exact}section{break-inside:avoid;border-color:#ddd}.tip{display:none}}
"""

SCRIPT = """
(function(){
function span(s){return s<120?Math.round(s)+' s':s<7200?Math.round(s/60)+' min':s<172800?(s/3600).toFixed(1)+' h'
:(s/86400).toFixed(1)+' d'}
function value(v,kind){return kind==='part'?(v*100).toFixed(1)+' %':v.toFixed(v<10?1:0)}
document.querySelectorAll('svg[data-hover]').forEach(function(svg){
var data=JSON.parse(svg.dataset.hover),box=svg.closest('section'),tip=null,cross=null;
function hide(){if(tip){tip.remove();cross.remove();tip=cross=null}}
svg.addEventListener('pointerleave',hide);
svg.addEventListener('pointermove',function(event){
var area=svg.getBoundingClientRect(),view=svg.viewBox.baseVal,x=(event.clientX-area.left)*view.width/area.width;
var at=(x-data.left)/data.width*data.right;
if(at<0||at>data.right){hide();return}
if(!tip){tip=document.createElement('div');tip.className='tip';box.appendChild(tip);
cross=document.createElementNS(svg.namespaceURI,'line');cross.setAttribute('class','cross');
svg.appendChild(cross)}
cross.setAttribute('x1',x);cross.setAttribute('x2',x);cross.setAttribute('y1',8);
cross.setAttribute('y2',view.height-34);
tip.textContent='';var head=document.createElement('div');head.textContent='after '+span(at);tip.appendChild(head);
data.lines.forEach(function(line){var low=0,high=line.x.length-1;
while(low<high){var mid=(low+high)>>1;if(line.x[mid]<at)low=mid+1;else high=mid}
if(low>0&&at-line.x[low-1]<line.x[low]-at)low--;
var row=document.createElement('div'),dot=document.createElement('i');dot.style.background=line.c;
row.appendChild(dot);row.appendChild(document.createTextNode(line.n+': '+value(line.y[low],data.kind)));
tip.appendChild(row)});
var room=box.getBoundingClientRect(),left=event.clientX-room.left+14;
if(left+tip.offsetWidth>room.width-8)left=event.clientX-room.left-tip.offsetWidth-14;
tip.style.left=left+'px';tip.style.top=(event.clientY-room.top+12)+'px'})})})();
"""
