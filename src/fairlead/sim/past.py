"""Past work under another queue file: would it have been better? Sentences, and who would have waited how long.

Decides which figures answer that. Never changes the journal that it reads. `python -m fairlead.sim.past` is a process
of its own: it is asked on its standard input and answers on its standard output, or says on its standard error what is
in the way. Invariant: the answer follows from the records of the journal and the two texts; the process outlives nobody
who asked by more than the time that it was given.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from fairlead.sim import spread
from fairlead.sim.periods import LENGTHS
from fairlead.sim.rows import sentence
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, run_trial
from fairlead.sim.verdicts import Outcome, breakdown, in_words
from fairlead.sim.workloads.journalled import as_it_is, begins_ms, journal_workload
from fairlead.wire.configuration import ConfigPast, MeanWaits, PastQuestion

IN_FORCE, OTHER = "the file in force", "this file"
"""What the two are called in sentences."""
IN_THE_WAY = 2
NICENESS = 15
"""The process leaves the processor to everything else."""


def answered(asked: PastQuestion) -> ConfigPast:
    """Both files on the same work, one after the other. Raises OSError or ValueError: what is in the way."""
    # Both on the same work: the service goes on meanwhile.
    source = as_it_is(Source(workload=asked.state, since=asked.since_ms, now=asked.now_ms, journal=journal_workload))
    trial = Trial(name=IN_FORCE, text=asked.in_force, source=source, digest=False, period_ms=LENGTHS["day"])
    outcomes = [run_trial(trial), run_trial(replace(trial, name=OTHER, text=asked.other))]
    return ConfigPast(
        since_ms=max(asked.since_ms, begins_ms(asked.state)),
        tasks=outcomes[0]["figures"]["tasks"]["submitted"],
        sentences=[said[:1].upper() + said[1:] for said in (*in_words(outcomes), *_how_surely(outcomes))],
        queues=_waits(outcomes, "queue"),
        users=_waits(outcomes, "user"),
        notes=list(dict.fromkeys(note for outcome in outcomes for note in outcome["notes"])),
    )


def _how_surely(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """In how many of the days it is better; nothing where they are too few to tell."""
    days = list(zip(*(outcome["periods"] for outcome in outcomes), strict=False))
    if len(days) >= spread.FEWEST:
        draws = [[{"name": o["name"], "figures": f} for o, f in zip(outcomes, day, strict=True)] for day in days]
        yield next(spread.in_words(spread.compared(draws)[0], "day"))


def _waits(outcomes: Sequence[Outcome], by: str) -> list[MeanWaits]:
    return [MeanWaits(row.name, *map(_milliseconds, row.values)) for row in breakdown(outcomes, by)]


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(1000 * seconds)


def main() -> int:
    """Answer one question."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=PastQuestion)
    os.nice(NICENESS)
    signal.setitimer(signal.ITIMER_REAL, asked.patience_s)
    try:
        answer = answered(asked)
    except (OSError, ValueError) as no:
        sys.stderr.write(f"{sentence(no)}\n")
        return IN_THE_WAY
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
