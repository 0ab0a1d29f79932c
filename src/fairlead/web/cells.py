"""A node as cells: each core, each GPU and the memory in the colour of the queue whose job has it.

Decides how many cells there are (a core each, or more where there are many) and in which order jobs fill them.
Invariant: a cell that is drawn full is in use; what is free is never coloured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlead import times
from fairlead.core.model.quantities import is_bytes
from fairlead.web.colours import Colours
from fairlead.web.frame import act_button
from fairlead.web.html import Html, a, div, element, h3, span
from fairlead.web.stairs import meter
from fairlead.web.words import amount, amounts, counted, job_link, job_path, short_queue
from fairlead.web.words import time as moment
from fairlead.wire.cluster import Node
from fairlead.wire.occupancy import Occupant
from fairlead.wire.pages import Kept

MOST_CELLS = 96


def share_of(node: Node) -> float:
    """How much of what is fullest is in use, from 0 to 1."""
    parts = [node.allocated.get(name, 0) / most for name, most in node.capacity.items() if most and name != "pods"]
    return min(1.0, max(parts, default=0.0))


def shortage(nodes: Sequence[Node]) -> Html:
    """Of each resource how much of all nodes together is in use."""
    whole: dict[str, int | float] = {}
    used: dict[str, int | float] = {}
    for node in nodes:
        for name, most in node.capacity.items():
            whole[name] = whole.get(name, 0) + most
            used[name] = used.get(name, 0) + node.allocated.get(name, 0)
    rows = []
    for name, most in sorted(whole.items()):
        if most:
            words = f"{amount(name, used[name])} of {amount(name, most)}"
            bar = meter([("used", used[name] / most, words)], f"{name}: {words} in use")
            rows.append(div(span(name, class_="name"), bar, span(words, class_="quiet small number"), class_="use"))
    return div(rows, class_="uses")


def node_card(node: Node, jobs: Sequence[Occupant], kept: Sequence[Kept], colours: Colours, *, may_drain: bool) -> Html:
    """One node with its jobs, and with what is kept on it."""
    rows = []
    for name, most in sorted(node.capacity.items(), key=lambda each: (is_bytes(each[0]), each[0])):
        if not most or name in ("pods", "ephemeral-storage"):
            continue
        words = f"{amount(name, node.allocated.get(name, 0))} of {amount(name, most)}"
        promised = sum(each.resources.get(name, 0) for each in kept)
        picture = (
            _bar(name, most, jobs, colours) if is_bytes(name) else _cells(name, most, jobs, colours, promised=promised)
        )
        rows.append(
            div(div(span(name, class_="name"), span(words, class_="quiet small number"), class_="spread"), picture)
        )
    drained = span("drained: takes no new work", class_="tag warn") if not node.schedulable else None
    taints = [span(f"{each.key}={each.value}:{each.effect}", class_="tag") for each in node.taints]
    attributes = [span(f"{name}={value}", class_="tag") for name, value in sorted(node.attributes.items())[:6]]
    order = (
        act_button("Drain", "drain", node=node.id, confirm=f"Take no new work on {node.id}? What runs there goes on.")
        if node.schedulable
        else act_button("Undrain", "drain", node=node.id, on=1)
    )
    return element(
        "article",
        div(
            h3(node.id),
            drained,
            taints,
            attributes,
            div(order, class_="push") if may_drain else None,
            class_="node-head",
        ),
        rows,
        element("ul", [_row(job, colours) for job in jobs], class_="runs tight")
        if jobs
        else span("Nothing runs here.", class_="quiet small"),
        kept_list(kept, colours) if kept else None,
        class_="node",
        data_k=node.id,
    )


def kept_list(kept: Sequence[Kept], colours: Colours, *, with_node: bool = False) -> Html:
    """For whom room is kept."""
    return element("ul", [_kept(each, colours, with_node=with_node) for each in kept], class_="runs tight")


def _kept(each: Kept, colours: Colours, *, with_node: bool) -> Html:
    what = "the whole node is" if each.whole else f"{amounts(each.resources)} is"
    where = f" on {each.node}" if with_node else ""
    waits = f", until {counted(each.leaving, 'job')} that must make room {'has' if each.leaving == 1 else 'have'} gone"
    return element(
        "li",
        div(job_link(each.key, each.name, visible=each.visible), " ", colours.chip(each.queue)),
        div(f"{each.user} · {what} kept for it{where}{waits if each.leaving else ''}", class_="quiet small"),
        class_="kept",
        data_k=f"kept-{each.node}-{each.key}",
    )


def ends(job: Occupant) -> Html | str:
    """When it is over at the latest; of what stands still nobody knows."""
    return span("ends ", moment(job.ends_at_ms, "in"), " at the latest") if job.ends_at_ms else _without_end(job)


def _without_end(job: Occupant) -> str:
    return "stands still" if job.state == "suspended" else "no time limit"


def _said(job: Occupant) -> str:
    since = f", since {times.moment(job.started_at_ms)}" if job.started_at_ms else ""
    until = f", until {times.moment(job.ends_at_ms)} at the latest" if job.ends_at_ms else f", {_without_end(job)}"
    return f"{job.key} {job.name} of {job.user} in {short_queue(job.queue)}{since}{until}"


def _cells(name: str, most: int | float, jobs: Sequence[Occupant], colours: Colours, *, promised: int | float) -> Html:
    """A cell for each unit, or for each few where there are many; a part of one is paler; `promised` is kept."""
    unit = max(1, math.ceil(most / MOST_CELLS))
    count = math.ceil(most / unit)
    cells, at, filled = [], 0, 0.0
    for job in jobs:
        left = job.resources.get(name, 0) / unit
        while left > 1e-9 and at < count:
            part = min(left, 1 - filled)
            kind = f"cell q{colours.of(job.queue)}"
            style = f"opacity:{0.35 + 0.65 * part:.2f}" if part < 1 else None
            cell = (
                a(
                    "",
                    href=job_path(job.key),
                    class_=kind,
                    style=style,
                    title=_said(job),
                    tabindex="-1",
                    aria_hidden="true",
                )
                if job.visible
                else span("", class_=kind, style=style, title=_said(job))
            )
            if filled < 1e-9:
                cells.append(cell)
            left, filled = left - part, filled + part
            if filled > 1 - 1e-9:
                at, filled = at + 1, 0.0
    free = max(0, count - len(cells))
    kept = min(free, math.ceil(promised / unit))
    cells += [span("", class_="cell promised", title="kept for a job that waits")] * kept
    cells += [span("", class_="cell", title="free")] * (free - kept)
    each = f" (a square is {unit} of them)" if unit > 1 else ""
    return div(
        cells,
        class_="cells",
        role="group",
        aria_label=f"{name}: {counted(count - free, 'square')} of {count} in use{each}",
    )


def _bar(name: str, most: int | float, jobs: Sequence[Occupant], colours: Colours) -> Html:
    parts = [
        (
            f"q{colours.of(job.queue)}",
            job.resources.get(name, 0) / most,
            f"{amount(name, job.resources.get(name, 0))}: {_said(job)}",
        )
        for job in jobs
        if job.resources.get(name)
    ]
    words = ", ".join(f"{amount(name, job.resources[name])} {job.key}" for job in jobs if job.resources.get(name))
    return meter(parts, f"{name}: {words or 'none in use'}")


def _row(job: Occupant, colours: Colours) -> Html:
    gpus = f" · GPU {', '.join(map(str, job.gpus))}" if job.gpus else ""
    return element(
        "li",
        div(job_link(job.key, job.name, visible=job.visible), " ", colours.chip(job.queue)),
        div(
            f"{job.user} · {amounts(job.resources)}{gpus} · since ",
            moment(job.started_at_ms, "since"),
            " · ",
            ends(job),
            class_="quiet small",
        ),
        data_k=job.key,
    )
