"""The columns of `fairlead ls`: which there are, which are shown, and by which rows stand in order.

Decides what a column says of a job, and what makes one row come before another. Never asks the service. Invariant: a
column is said here once: its title, its text and its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fairlead.cli import render
from fairlead.cli.app import wrong_usage
from fairlead.cli.jobfields import elapsed_ms, exit_text
from fairlead.cli.parts import reason_text
from fairlead.cli.render import Column
from fairlead.core.model.quantities import format_bytes
from fairlead.wire.arrays import order

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job


class JobColumn(NamedTuple):
    """One column, with its text for a job at a time, and by what rows are sorted."""

    column: Column
    text: Callable[[Job, int], str]
    rank: Callable[[Job], Any]

    @property
    def name(self) -> str:
        """As it is typed."""
        return self.column.title.lower()


def _amount(name: str) -> tuple[Callable[[Job, int], str], Callable[[Job], Any]]:
    def text(job: Job, _now_ms: int) -> str:
        return render.amount(name, job.resources[name]) if name in job.resources else ""

    return text, lambda job: job.resources.get(name, 0)


def _left_ms(job: Job, now_ms: int) -> int | None:
    """How long it may run on, at most; None: it does not run, or has no limit."""
    if job.time_limit_ms is None or job.started_at_ms is None or job.ended_at_ms is not None or job.parts is not None:
        return None
    return max(job.time_limit_ms - elapsed_ms(job, now_ms), 0)


def _bound(of: Callable[[Job, int], int | None]) -> tuple[Callable[[Job, int], str], Callable[[Job], Any]]:
    """A time as text, and in order; where there is none, it is longer than any."""

    def text(job: Job, now_ms: int) -> str:
        return "" if (found := of(job, now_ms)) is None else render.duration(found)

    def rank(job: Job) -> float:
        return float("inf") if (found := of(job, render.now_ms())) is None else found

    return text, rank


def _moment(name: str) -> tuple[Callable[[Job, int], str], Callable[[Job], Any]]:
    return lambda job, _: render.moment(getattr(job, name)), lambda job: getattr(job, name) or float("inf")


def _exit_rank(job: Job) -> int:
    """As a shell counts: 128 + N for signal N."""
    return 128 + job.signal if job.signal else job.exit_code or 0


USUAL: Final = (
    JobColumn(Column("KEY"), lambda job, _: job.key, lambda job: order(job.key)),
    JobColumn(Column("NAME", least=10), lambda job, _: job.name, lambda job: job.name),
    JobColumn(Column("QUEUE", least=12, keep_end=True), lambda job, _: job.queue, lambda job: job.queue),
    JobColumn(Column("USER", least=6, drop=1), lambda job, _: job.user, lambda job: job.user),
    JobColumn(Column("PRIORITY", right=True, drop=5), lambda job, _: str(job.priority), lambda job: job.priority),
    JobColumn(Column("STATE"), lambda job, _: job.state, lambda job: job.state),
    JobColumn(
        Column("TIME", right=True),
        lambda job, now_ms: render.duration(elapsed_ms(job, now_ms)),
        lambda job: elapsed_ms(job, render.now_ms()),
    ),
    JobColumn(Column("CPU", right=True, drop=3), *_amount("cpu")),
    JobColumn(Column("MEMORY", right=True, drop=2), *_amount("memory")),
    JobColumn(Column("NODE", least=8, drop=4), lambda job, _: job.node, lambda job: job.node),
    JobColumn(Column("EXIT", right=True, drop=6), lambda job, _: exit_text(job), _exit_rank),
    JobColumn(Column("REASON", least=24), lambda job, _: reason_text(job), reason_text),
)
"""Those that are shown if none are named."""
MORE: Final = (
    JobColumn(Column("GPU", right=True), *_amount("gpu")),
    JobColumn(Column("SUBMITTED"), *_moment("submitted_at_ms")),
    JobColumn(Column("STARTED"), *_moment("started_at_ms")),
    JobColumn(Column("ENDED"), *_moment("ended_at_ms")),
    JobColumn(Column("LIMIT", right=True), *_bound(lambda job, _: job.time_limit_ms)),
    JobColumn(Column("LEFT", right=True), *_bound(_left_ms)),
    JobColumn(
        Column("CPU-TIME", right=True),
        lambda job, _: render.duration(job.cpu_ms) if job.cpu_ms else "",
        lambda job: job.cpu_ms,
    ),
    JobColumn(
        Column("PEAK", right=True),
        lambda job, _: format_bytes(job.peak_memory_bytes) if job.peak_memory_bytes else "",
        lambda job: job.peak_memory_bytes,
    ),
)
_BY_NAME: Final = {each.name: each for each in (*USUAL, *MORE)}
NAMES: Final = tuple(_BY_NAME)


def chosen(text: str) -> list[JobColumn]:
    """The columns that are named. Raises `Failure` (usage)."""
    return [_named(word, "--columns") for word in text.split(",")]


def in_order(jobs: Sequence[Job], text: str) -> list[Job]:
    """Jobs by these columns, the first counts most; `-NAME`: the other way round. Raises `Failure` (usage)."""
    found = list(jobs)
    for word in reversed(text.split(",")):
        name = word.strip().removeprefix("-")
        found.sort(key=_named(name, "--sort").rank, reverse=word.strip().startswith("-"))
    return found


def _named(word: str, option: str) -> JobColumn:
    found = _BY_NAME.get(word.strip().lower())
    if found is None:
        raise wrong_usage(f"{option}: there is no column {word.strip()!r}; there are {', '.join(NAMES)}")
    return found
