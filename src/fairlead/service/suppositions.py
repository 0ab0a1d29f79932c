"""The bodies of questions about what is not so, and of their answers.

Decides which values they may have; everything else is refused with its place. Never asks anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairlead.service.fields import Line, Priority, clean_text
from fairlead.service.forecaster import SPEND_MAX_S, SPEND_S
from fairlead.service.models import JobDraft, Strict

Seconds = Annotated[
    float,
    Query(
        alias="seconds",
        gt=0,
        le=SPEND_MAX_S,
        description="Play futures for so long; what is not seen by then is answered as later.",
    ),
]
JobKey = Annotated[str, Field(max_length=32)]


class NewPriority(Strict):
    """A job that waits gets another priority."""

    key: JobKey
    priority: Priority


class NewQueue(Strict):
    """A job goes to another queue."""

    key: JobKey
    queue: Line


class MoreNodes(Strict):
    """So many nodes like one that is there join."""

    like: Line
    count: Annotated[int, Field(ge=1, le=10_000)]


class Supposed(Strict):
    """One change to suppose; exactly one of them."""

    submit: JobDraft | None = Field(None, description="The caller submits this.")
    cancel: Annotated[list[JobKey], Field(min_length=1, max_length=1000)] | None = Field(
        None, description="These jobs are gone, at once."
    )
    priority: NewPriority | None = None
    move: NewQueue | None = None
    config: Annotated[str, Field(max_length=4 * 2**20), AfterValidator(clean_text)] | None = Field(
        None, description="A queue file takes effect (administrators)."
    )
    drain: Annotated[list[Line], Field(min_length=1, max_length=10_000)] | None = Field(
        None, description="These nodes take no new work (administrators)."
    )
    add_nodes: MoreNodes | None = Field(None, description="More nodes join (administrators).")
    forecast: bool = Field(False, description="Also say whose expected start would move; takes longer.")
    seconds: Annotated[float, Field(gt=0, le=SPEND_MAX_S, allow_inf_nan=False)] = Field(
        SPEND_S, description="With `forecast`: play futures for so long; of what is not seen by then nothing is said."
    )

    @model_validator(mode="after")
    def names_one(self) -> Self:  # noqa: N804 - a model that is there, no class
        """Exactly one change."""
        given = [name for name in CHANGES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(CHANGES)}")
        return self


CHANGES = ("submit", "cancel", "priority", "move", "config", "drain", "add_nodes")


class Otherwise(BaseModel):
    """What would be otherwise. Jobs that the caller may not see are counted, not named."""

    model_config = ConfigDict(extra="allow")
    supposed: str = Field(description="The change in words.")
    empty: bool = Field(description="Nothing would be otherwise now.")
    refused: list[dict[str, Any]] = Field(description="Why the change, or a part of it, would not be taken in.")
    admitted: dict[str, Any] | None = Field(
        description="What quotas by class would have to be so that it were taken in; null: it is, or none would help."
    )
    starts: dict[str, Any] = Field(description="Who would start, and would not without the change.")
    starts_not: dict[str, Any] = Field(description="Who would not start, and would without it.")
    elsewhere: dict[str, Any] = Field(description="Who would start on another node.")
    evicted: dict[str, Any] = Field(description="Who would be told to stop, and would not without it.")
    spared: dict[str, Any] = Field(description="Who would not be told to stop, and would without it.")
    ends: dict[str, Any] = Field(description="Who runs and would be gone.")
    waits: list[dict[str, Any]] = Field(description="What the change is about, where it would wait, and why.")
    shares: list[dict[str, Any]] = Field(description="Queues that would use something else.")
    expected: list[dict[str, Any]] = Field(description="Starts that would be expected at another time.")
    unseen: int = Field(
        description="With `forecast`: of so many that wait it is not known whether their start would move, for lack of "
        "time."
    )


class Score(BaseModel):
    """How often the service's own forecasts came true."""

    promised: float = Field(description="The part of starts that should be inside their interval.")
    observed: float | None = Field(description="The part that was; null: none came true yet.")
    scored: int
    inside: int
    early: int
    late: int
    open: int = Field(description="Forecasts that have yet to come true.")
    dropped: int = Field(description="Forecasts for what was cancelled or changed.")


class When(BaseModel):
    """When a job that waits is expected to start."""

    key: str
    made_ms: int
    median_ms: int | None = Field(description="Half of the futures have it started by then; null: not in sight.")
    earliest_ms: int | None
    latest_ms: int | None
    coverage: float = Field(description="How often a start should be between the two.")
    ahead: int = Field(description="How many of those that wait start before it.")
    never: float = Field(description="The part of the futures in which it does not start.")
    broken_off: int = Field(
        description="Futures that were broken off, for lack of time, before it started: it starts later than "
        "`earliest_ms`, and what could not be seen is null."
    )
    draws: int
    assumptions: list[str]
    score: Score
