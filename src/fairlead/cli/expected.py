"""When something is expected to start, in lines of text.

Decides in which words an interval is said, and that none is known yet. Never asks the service. Invariant: what was not
seen is said to be later, never made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.cli import render
from fairlead.times import clock_time

if TYPE_CHECKING:
    from fairlead.wire.questions import Begin, Score, When


def score_lines(score: Score) -> Iterator[str]:
    """How often forecasts were right."""
    if score.observed is not None:
        yield (
            f"So far {100 * score.observed:.0f} % of {score.scored} starts came inside their interval "
            f"({100 * score.promised:.0f} % should); {score.early} earlier, {score.late} later."
        )
    else:
        yield f"No forecast has come true or failed yet; {score.open} are open."


def lines(answer: When, now_ms: int) -> Iterator[str]:
    """When something is expected to start, and what that rests on."""
    yield from interval(answer, now_ms)
    played = "Played" if answer.broken_off else "Played through"
    yield f"{played} {answer.draws} {'future' if answer.draws == 1 else 'futures'}; taken for granted:"
    for each in answer.assumptions:
        yield f"  {each}"


def interval(answer: When | Begin, now_ms: int) -> Iterator[str]:
    """When something is expected to start."""
    ahead = "nobody" if not answer.ahead else str(answer.ahead)
    early, late, median = answer.earliest_ms, answer.latest_ms, answer.median_ms
    if not answer.known:
        until = (
            f"at {_time(late, now_ms)} if all takes its time limit"
            if late is not None
            else "not all that runs and waits declares a time limit"
        )
        yield f"{answer.key}: it is not known yet when: nothing has ended here so far; {until}."
    elif answer.broken_off and early is not None:
        yield (
            f"{answer.key}: later than {_time(early, now_ms)} in nine of ten futures; {answer.ahead} or more "
            "ahead of it."
        )
        yield (
            f"The time for an answer was over before its start was seen in {answer.broken_off} of {answer.draws} "
            "futures; `--spend 1m` looks farther."
        )
    elif median is None or early is None:
        yield f"{answer.key}: no start in sight; {ahead} ahead of it."
    else:
        until = _time(late, now_ms) if late is not None else "no time in sight"
        yield (
            f"{answer.key}: {100 * answer.coverage:.0f} %: {_time(early, now_ms)} to {until}, most likely about "
            f"{_time(median, now_ms)}; {ahead} ahead of it."
        )
    if answer.never:
        yield f"In {100 * answer.never:.0f} % of {answer.draws} futures it does not start within 30 days."


def _time(at_ms: int, now_ms: int) -> str:
    """The time of day, with the date when that is another one."""
    same_day = render.moment(at_ms)[:10] == render.moment(now_ms)[:10]
    return clock_time(at_ms) if same_day else render.moment(at_ms)
