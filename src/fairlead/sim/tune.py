"""What `fairlead sim tune` does: search, print what was found and how sure it is, write the file.

Decides what is printed. Never searches by itself (`tuning` does). Invariant: a file is written only if it is better on
work that it was not chosen by, and surely so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fairlead.config import file_text, load_file
from fairlead.config.edit import difference
from fairlead.sim.rows import sentence
from fairlead.sim.simulate import INTERRUPTED
from fairlead.sim.spread import FEWEST
from fairlead.sim.trials import Trial, TrialFailed, run_trials
from fairlead.sim.tuning import Candidate, Found, Interrupted, Plan, Tuning
from fairlead.sim.verdicts import counted


def tune(
    trial: Trial,
    plan: Plan,
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    processes: int = 2,
    write: str = "",
    as_json: bool = False,
) -> int:
    """Search, and print what was found. Returns 0, 130 after Ctrl-C, 2 after a sentence on `err`."""
    out, err = out or sys.stdout, err or sys.stderr
    try:
        base = file_text(trial.queues)
        load_file(trial.queues)  # What is wrong with it is said with its name.
        with TemporaryDirectory(prefix="fairlead-") as folder:
            shown = _Shown(err, processes)
            tuning = Tuning(trial, plan, base, Path(folder), shown.simulate)
            found = tuning.run()
    except Interrupted:
        print("interrupted: nothing is recommended", file=err)
        return INTERRUPTED
    except (OSError, ValueError, TrialFailed) as e:
        print(f"cannot tune: {sentence(e)}", file=err)
        return 2
    failed = ""
    if write and found.best is not None and found.is_sure and not found.broken:
        try:
            Path(write).write_text(found.best.text, encoding="utf-8")
        except OSError as e:  # What was found is not lost with the file.
            failed, write = sentence(e), ""
    if as_json:
        print(msgspec.json.encode(_plain(found, plan) | {"notes": tuning.notes}).decode(), file=out)
    else:
        notes = (f"note: {note}" for note in tuning.notes)
        print("\n".join((*in_words(found, plan, trial.queues, write), *notes)), file=out)
    if failed:
        print(f"cannot write it down: {failed}", file=err)
    return 2 if failed else 0


class _Shown:
    """Simulations with a bar for those of a round, where there is a terminal; else a line for each round."""

    def __init__(self, err: TextIO, processes: int) -> None:
        self.err, self.processes = err, processes

    def simulate(self, about: str, trials: list[Trial]) -> list[dict[str, Any]]:
        """Run them."""
        if not self.err.isatty():
            print(about, file=self.err, flush=True)
            return run_trials(trials, self.processes)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("tasks came or ended"),
        )
        done: dict[int, int] = {}
        with Progress(*columns, console=Console(file=self.err), transient=True) as bars:
            task = bars.add_task(about, total=None)

            def tell(number: int, count: int) -> None:
                done[number] = count
                bars.update(task, completed=sum(done.values()))

            return run_trials(trials, self.processes, tell)


def in_words(found: Found, plan: Plan, file: str, write: str) -> Iterator[str]:
    """What was found, for people."""
    goal = plan.goal
    files = counted(found.tried, "file") + _others(found, plan)
    if found.best is None:
        now = goal.of(found.base.figures)
        if now is None:
            yield f"Nothing better: in the work by which is chosen there is no {goal.said}; does any of it go there?"
        else:
            better = f"a better {goal.said} than {goal.text(now)}"
            yield f"Nothing better: of {files} none has {better} and keeps the conditions."
        if found.nearest is not None:
            better = f"{goal.text(goal.of(found.base.figures))} → {goal.text(goal.of(found.nearest.figures))}"
            yield f"Against conditions: {_values(found.nearest)}: {goal.said} {better}, but {'; '.join(found.against)}."
        return
    yield f"Best of {files}: {_values(found.best)}."
    train = f"{goal.text(goal.of(found.base.figures))} → {goal.text(goal.of(found.best.figures))}"
    yield f"Where it was chosen: {goal.said} {train}."
    yield _held_out(found, plan)
    if found.broken:
        yield f"There it breaks conditions: {'; '.join(found.broken)}."
    is_good = found.is_sure and not found.broken
    if is_good:
        yield f"{'Written to ' + write if write else 'The change'}:"
        yield difference(found.base.text, found.best.text, Path(file).name)
    else:
        yield "So keep what you have, or try again with more work" + (f"; {write} is not written." if write else ".")


def _others(found: Found, plan: Plan) -> str:
    """What could have been tried, and was not."""
    could = prod(len(setting.values) for setting in plan.settings) - found.tried - found.refused
    not_tried = [f"{found.refused} more are refused by the checks"] if found.refused else []
    not_tried += [f"{could:,} were not tried: --files tries more"] if could > 0 else []
    return f" ({'; '.join(not_tried)})" if not_tried else ""


def _values(candidate: Candidate) -> str:
    return ", ".join(f"{setting.name}={value}" for setting, value in candidate.choice.items())


def _held_out(found: Found, plan: Plan) -> str:
    goal, change, by = plan.goal, found.held_out, plan.period
    if change is None:
        return f"In the {counted(found.periods, by)} that nothing was chosen by the figure is not to be had."
    better, worse = (change["less"], change["more"]) if goal.better == "less" else (change["more"], change["less"])
    low, high = sorted((abs(change["low_s"]), abs(change["high_s"])))
    how = f"better in {better} of {counted(change['of'], by)}, worse in {worse}"
    if found.is_sure:
        word = "less" if change["mean_s"] < 0 else "more"
        size = f"{goal.text(abs(change['mean_s']))} ({goal.text(low)} to {goal.text(high)}) {word}"
        sure = f"surely better: {size}"
    else:
        few = (
            f" ({counted(change['of'], by)} {'is' if change['of'] == 1 else 'are'} too few to tell)"
            if change["of"] < FEWEST
            else ""
        )
        sure = f"not surely better{few}"
    means = f"{goal.text(found.before)} → {goal.text(found.after)}"
    return f"In the {counted(found.periods, by)} that nothing was chosen by it is {sure}; {goal.said} {means}, {how}."


def _plain(found: Found, plan: Plan) -> dict[str, Any]:
    best = found.best
    return {
        "goal": plan.goal.said,
        "tried": found.tried,
        "refused": found.refused,
        "best": None if best is None else {setting.name: value for setting, value in best.choice.items()},
        "chosen_by": None if best is None else [plan.goal.of(each.figures) for each in (found.base, best)],
        "by": plan.period,
        "held_out": found.held_out,
        "broken": list(found.broken),
        "nearest": None if found.nearest is None else {s.name: value for s, value in found.nearest.choice.items()},
        "against": list(found.against),
        "is_sure": found.is_sure,
        "file": None if best is None else best.text,
    }
