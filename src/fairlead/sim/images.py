"""Pictures of outcomes, for papers and slides: PNG files drawn by matplotlib.

Decides which pictures there are and how they look. Never computes a figure. matplotlib is an extra: without it, a
sentence says how to get it. Invariant: one file for each kind of plot, of the same name each time.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlead.sim.fills import queue_fills
from fairlead.sim.plots import COLOURS, time_text
from fairlead.sim.verdicts import Outcome

DPI = 150
WAIT_MARKS = (1, 10, 60, 600, 3600, 21_600, 86_400, 604_800)
"""Seconds."""


class ImagesImpossible(RuntimeError):
    """matplotlib is not installed."""


def write_images(outcomes: Sequence[Outcome], folder: str) -> list[str]:
    """Write `waits.png`, `tasks.png`, `utilisation.png`, `shares.png`, `nodes.png`; returns their paths.

    Raises `ImagesImpossible` without matplotlib, OSError if the folder cannot be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ImagesImpossible("pictures need matplotlib: install fairlead[sim], or leave out --images")
    from matplotlib.figure import Figure

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in (
        ("waits", _waits),
        ("tasks", _tasks),
        ("utilisation", _use),
        ("shares", _shares),
        ("nodes", _nodes),
    ):
        figure: Any = Figure(layout="constrained")
        draw(figure, outcomes)
        path = place / f"{name}.png"
        figure.savefig(path, dpi=DPI, metadata={"Software": None})
        written.append(str(path))
    return written


def _axes(figure: Any, count: int, height: float = 2.4) -> list[Any]:
    figure.set_size_inches(9, max(height * count, 3.2))
    axes = figure.subplots(count, 1, squeeze=False)[:, 0]
    for ax in axes:
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    return list(axes)


def _unit(outcomes: Sequence[Outcome]) -> tuple[float, str]:
    """The length of a unit of the time axis in seconds, and its name."""
    lasted = max(o["figures"]["end_s"] - o["figures"]["begin_s"] for o in outcomes)
    return next(
        ((n, u) for n, u in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")) if lasted > 2 * n), (1.0, "s")
    )


def _time_axes(axes: Sequence[Any], unit: str) -> None:
    """All from 0 to the same end, so that what is above each other can be compared."""
    end = max(ax.get_xlim()[1] for ax in axes)
    for ax in axes:
        ax.set_xlim(0, end)
    axes[-1].set_xlabel(f"{unit} since the first job")


def _parts(ax: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))


def _legend(ax: Any) -> None:
    """Beside the plot, where it hides nothing."""
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _waits(figure: Any, outcomes: Sequence[Outcome]) -> None:
    (ax,) = _axes(figure, 1, 4.0)
    for i, outcome in enumerate(outcomes):
        points = outcome["wait_curve"]
        if points:
            xs, ys = [max(x, 1.0) for x, _ in points], [y for _, y in points]
            ax.step([1.0, *xs], [0.0, *ys], where="post", color=_colour(i), label=outcome["name"])
    ax.set_xscale("log")
    longest = max((o["wait_curve"][-1][0] for o in outcomes if o["wait_curve"]), default=1.0)
    marks = [s for s in WAIT_MARKS if s <= max(longest, 60)]
    ax.set_xticks(marks, ["≤ 1s" if s == 1 else time_text(s) for s in marks])
    ax.minorticks_off()
    _parts(ax)
    ax.set_xlabel("waiting time")
    ax.set_ylabel("part of the tasks started")
    _legend(ax)


def _tasks(figure: Any, outcomes: Sequence[Outcome]) -> None:
    length, unit = _unit(outcomes)
    axes = _axes(figure, 2)
    for ax, name in zip(axes, ("waiting", "running"), strict=True):
        for i, outcome in enumerate(outcomes):
            courses = outcome["courses"]
            ax.plot([t / length for t in courses["at_s"]], courses[name], color=_colour(i), label=outcome["name"])
        ax.set_ylabel(f"tasks {name}")
        ax.set_ylim(bottom=0)
    _legend(axes[0])
    _time_axes(axes, unit)


def _use(figure: Any, outcomes: Sequence[Outcome]) -> None:
    length, unit = _unit(outcomes)
    names = sorted({name for o in outcomes for name in o["courses"]["use"]}) or ["nothing"]
    axes = _axes(figure, len(names))
    for ax, name in zip(axes, names, strict=True):
        for i, outcome in enumerate(outcomes):
            courses = outcome["courses"]
            if name in courses["use"]:
                xs = [t / length for t in courses["at_s"]]
                ax.plot(xs, courses["use"][name], color=_colour(i), label=outcome["name"])
        _parts(ax)
        ax.set_ylabel(f"{name} in use")
    _legend(axes[0])
    _time_axes(axes, unit)


def _shares(figure: Any, outcomes: Sequence[Outcome]) -> None:
    length, unit = _unit(outcomes)
    fills = queue_fills(outcomes)
    axes = _axes(figure, len(outcomes), 3.0)
    for ax, outcome in zip(axes, outcomes, strict=True):
        courses = outcome["courses"]
        paths = list(courses["shares"])
        colours = [fills[path] for path in paths]
        xs = [t / length for t in courses["at_s"]]
        _parts(ax)
        ax.stackplot(xs, *[courses["shares"][p] for p in paths], labels=paths, colors=colours)
        ax.set_title(outcome["name"], loc="left", fontsize=10)
        ax.set_ylabel("share of the cluster")
        _legend(ax)
    _time_axes(axes, unit)


def _nodes(figure: Any, outcomes: Sequence[Outcome]) -> None:
    length, unit = _unit(outcomes)
    fills = queue_fills(outcomes)
    axes = _axes(figure, len(outcomes), 3.4)
    for ax, outcome in zip(axes, outcomes, strict=True):
        plan = outcome["gantt"]
        for node, queue, _, begin, end, _how in plan["bars"]:
            colour = fills[plan["queues"][queue]]
            ax.broken_barh([(begin / length, (end - begin) / length)], (node - 0.4, 0.8), color=colour, alpha=0.45)
        for queue in sorted({bar[1] for bar in plan["bars"]}):
            name = plan["queues"][queue]
            ax.broken_barh([], (0, 0), color=fills[name], alpha=0.7, label=name)
        ax.set_yticks(range(len(plan["nodes"])), plan["nodes"], fontsize=7)
        ax.set_ylim(len(plan["nodes"]) - 0.5, -0.5)
        ax.set_title(outcome["name"], loc="left", fontsize=10)
        _legend(ax)
    _time_axes(axes, unit)
