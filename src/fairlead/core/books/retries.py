"""Retries: when work gets a further attempt.

Decides whether an end is followed by a further attempt, what that attempt asks for, and how long it is held back. Never
makes it (`policy.events.retry` does) nor keeps it (`core.books.held_asks`). Invariant: the attempts of one piece of
work are linked by the key of the first.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.model.events import Cause
from fairlead.core.model.specs import TAG_CREATION_TIME, AskSpec

BACKOFF_MAX_MS = 3_600_000
"""No attempt is held back for longer, however many failed before it."""
GAVE_WAY = "gang-deadlock"
"""The rule by which placeholders are told to go so that another gang gets through: they come back."""
BROKEN_OFF = frozenset({Cause.INTERRUPTED, Cause.PREEMPTED_BY_SCHEDULER})
"""Ends that say nothing against the work: it was stopped from outside."""


def why_final(spec: AskSpec, cause: Cause, exit_code: int | None = None) -> str:
    """Why this end is not followed by a further attempt, as part of a sentence; nothing: it is.

    `exit_code` counts where the work ended by itself (`FINISHED`); work that a signal N ended has 128 + N.
    """
    if cause is Cause.REQUEUED and not spec.placeholder:
        return ""
    if spec.retry is None:
        # Idle work gives back what it borrowed and goes back to its queue, as often as that happens.
        if spec.idle and cause is Cause.PREEMPTED_BY_SCHEDULER:
            return ""
        return "it was submitted without retry"
    if spec.placeholder:
        return "it is a placeholder"
    if cause is Cause.FINISHED:
        if exit_code is None:
            return "how it ended is not known"
        if exit_code == 0:
            return "it ended well"
        if exit_code in spec.retry.never_on:
            return f"exit status {exit_code} is one after which it is not tried again"
    elif cause is Cause.STOPPED_BY_RM:
        return "it was ended on request"
    elif cause not in BROKEN_OFF:
        return f"an end by {cause} is not tried again"
    if spec.tries > spec.retry.limit:
        return f"it had all its {spec.retry.limit + 1} attempts"
    return ""


def flaw_of_times(spec: AskSpec) -> str:
    """What is wrong with the times and attempts of an ask, as a sentence; nothing: they make sense."""
    if not 0 <= spec.requeues < spec.attempt:
        return f"attempt {spec.attempt} cannot come after {spec.requeues} that were requeued; the first attempt is 1"
    said: list[tuple[str, int | None]] = [
        ("grace_ms", spec.grace_ms),
        ("time_limit_ms", spec.time_limit_ms),
        ("min_runtime_ms", spec.min_runtime_ms),
    ]
    if spec.retry is not None:
        said += [("retry.limit", spec.retry.limit), ("retry.backoff_ms", spec.retry.backoff_ms)]
    for name, number in said:
        if number is not None and number < 0:
            return f"{name} is {number}; it cannot be below 0"
    return ""


def backoff_ms(spec: AskSpec, cause: Cause) -> int:
    """How long the attempt after this one is held back: the stated time, doubled for each further one, at most 1 h.

    Idle work without retry is not held back, nor what was requeued.
    """
    if spec.retry is None or cause is Cause.REQUEUED:
        return 0
    return min(spec.retry.backoff_ms << min(spec.tries - 1, 32), BACKOFF_MAX_MS)


def next_spec(spec: AskSpec, priority: int, cause: Cause) -> AskSpec:
    """What the attempt after this one asks for: the same, with the priority that the ask has now.

    It is created when it enters. A member of a gang comes back as a plain ask: the placeholder that kept room for it is
    used up, and one that still stands keeps room for another member.
    """
    first = spec.first_key or spec.key
    attempt = spec.attempt + 1
    tags = {name: value for name, value in spec.tags.items() if name != TAG_CREATION_TIME}
    return replace(
        spec,
        key=f"{first}#{attempt}",
        first_key=first,
        attempt=attempt,
        requeues=spec.requeues + (cause is Cause.REQUEUED),
        priority=priority,
        tags=tags,
        node="",
        task_group="",
    )


def next_placeholder(spec: AskSpec, priority: int, cause: Cause) -> AskSpec:
    """What a placeholder asks for that was given back so that another gang gets through: all as before, its age too."""
    return replace(next_spec(spec, priority, cause), task_group=spec.task_group, tags=spec.tags)
