"""What a queue says of each of its jobs: what counts where a job says nothing, and what it may ask for at most.

Decides the values that a job gets from its queue and which bound it breaks, with what to do about it. Never decides
which queue that is. Invariant: what passes is within every bound of its queue, whoever submits; only the bound on
priorities is not for those who administer the queue.

A property that is not set in a queue counts as above, also for queues that placement makes and that inherit nothing
else: a bound cannot be left by going deeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.books.classes import RESERVED_PREFIX
from fairlead.core.model import properties as names
from fairlead.core.model.properties import QueueProperties
from fairlead.core.model.quantities import VCORE, format_quantity
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import RetrySpec
from fairlead.policy.queue_choice.dynamic import nearest
from fairlead.times import duration_exactly

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.local.history_records import JobSpec

_Amount = tuple[str, str, int | None, int | None, Callable[[int], str], str]
"""Code, in words, what is asked for, what may be, how it is shown, the property."""

ONE_CORE = 1000
ANY_STATUS = tuple(range(1, 256))
"""Exit statuses that say that it failed by itself."""
PRIORITY = "priority-above-max"
UNSTATED = -1
"""Cores of a job that says nothing of cores, until its queue is known."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A bound that a job breaks; `code` is a fixed word."""

    code: str
    sentence: str


def properties_of(partition: Partition, path: str) -> QueueProperties:
    """What is set for jobs in the queue of this path, which need not be there yet."""
    queue, missing = nearest(partition.root, path)
    found: dict[str, str] = {}
    for above in reversed(queue.lineage):
        found |= {key: text for key, text in above.properties.raw.items() if key.startswith("job.")}
    if missing and queue.template is not None:
        found |= {str(key): str(text) for key, text in queue.template.properties.items()}
    return QueueProperties.of(found, leaf=True)


def with_defaults(spec: JobSpec, said: QueueProperties) -> JobSpec:
    """The job with what its queue says where it says nothing itself. A maximum alone is a default, too."""
    amounts = spec.resources.as_dict()
    if amounts.get(VCORE) == UNSTATED:
        amounts[VCORE] = said.job_cpu_default or ONE_CORE
    if "memory" not in amounts and (memory := _least(said.job_memory_default, said.job_memory_max)):
        amounts["memory"] = memory
    limit_ms = spec.time_limit_ms
    if limit_ms is None:
        limit_ms = _least(said.job_time_default_ms, said.job_time_max_ms)
    return replace(spec, resources=Resources(amounts), time_limit_ms=limit_ms, retry=_retry(spec, said))


def stated(resources: Resources) -> dict[str, int]:
    """What a job asks for, without cores where it says nothing of them and came into no queue."""
    return {name: amount for name, amount in resources.items if amount != UNSTATED}


def _retry(spec: JobSpec, said: QueueProperties) -> RetrySpec | None:
    """What fails by itself fails again: a queue lets come back only what was broken off. Idle work does so anyway, and
    at the terminal of a job that came back nobody would sit.
    """
    if spec.retry is not None:  # With a limit of 0, too: so that it counts for idle work, and when it is rerun.
        return spec.retry
    if not said.job_retry_default or spec.idle or spec.terminal:
        return None
    times = _least(said.job_retry_default, said.job_retry_max)
    return RetrySpec(limit=times, never_on=ANY_STATUS) if times else None


def _least(default: int | None, most: int | None) -> int | None:
    return min((each for each in (default, most) if each is not None), default=None)


def broken(spec: JobSpec, said: QueueProperties, path: str, *, administers: bool) -> list[Broken]:
    """The bounds that a job of this queue breaks. Without a time limit, or without one of memory, it is above any."""
    found = []
    if spec.priority_class.startswith(RESERVED_PREFIX) and not administers:
        sentence = (
            f"{spec.priority_class} is for what the machine itself needs; only administrators of {path} may use it: "
            "name another class, or a priority"
        )
        found.append(Broken("class-of-the-system", sentence))
    for code, what, asked, most, shown, key in _amounts(spec, said):
        if most is None or (asked is not None and asked <= most):
            continue
        otherwise = "for another queue"
        if code == PRIORITY:
            if administers or spec.priority_class:
                continue
            otherwise = "somebody who administers the queue"
        sentence = f"{what} of {'none' if asked is None else shown(asked)} is above {shown(most)}, the {key} of {path}"
        found.append(Broken(code, f"{sentence}; ask for at most {shown(most)}, or {otherwise}"))
    return found


@dataclass(frozen=True, slots=True)
class CountBound:
    """How many jobs may wait or run in a queue and below it, all of them or those of each user."""

    queue: str
    each_user: bool
    most: int

    def counts(self, queue: str, uid: int, whose: int) -> bool:
        """Whether a job of `uid` in this queue counts for what `whose` submits."""
        return f"{queue}.".startswith(f"{self.queue}.") and (not self.each_user or uid == whose)

    def sentence(self, there: int, more: int, act: str = "submit") -> str:
        """Why so many more do not come in."""
        key = names.JOB_USER_COUNT_MAX if self.each_user else names.JOB_COUNT_MAX
        whose = "of each user" if self.each_user else "of all users"
        return (
            f"{self.queue} takes {self.most} jobs {whose} that wait or run ({key}): {there} are there, and you {act} "
            f"{more} more; wait until some have ended, or use another queue"
        )


def count_bounds(partition: Partition, path: str) -> Iterator[CountBound]:
    """Each bound on the number of jobs that holds in the queue of this path, which need not be there yet."""
    queue, missing = nearest(partition.root, path)
    said = [(above.path, above.properties) for above in queue.lineage]
    if missing:
        said.append((path, properties_of(partition, path)))
    for name, each in said:
        if each.job_count_max is not None:
            yield CountBound(name, False, each.job_count_max)
        if each.job_count_user_max is not None:
            yield CountBound(name, True, each.job_count_user_max)


def _amounts(spec: JobSpec, said: QueueProperties) -> tuple[_Amount, ...]:
    """What is asked for and its maximum. A priority that comes from a class is what an administrator set for it."""
    retries = spec.retry.limit if spec.retry is not None else 0
    limit_ms, grace_ms, memory = spec.time_limit_ms, spec.grace_ms, spec.resources["memory"] or None
    return (
        ("time-limit-above-max", "a time limit", limit_ms, said.job_time_max_ms, duration_exactly, names.JOB_TIME_MAX),
        ("memory-above-max", "memory", memory, said.job_memory_max, _size, names.JOB_MEMORY_MAX),
        (PRIORITY, "a priority", spec.priority, said.job_priority_max, str, names.JOB_PRIORITY_MAX),
        ("grace-above-max", "a grace", grace_ms, said.job_grace_max_ms, duration_exactly, names.JOB_GRACE_MAX),
        ("retries-above-max", "a number of retries", retries, said.job_retry_max, str, names.JOB_RETRY_MAX),
    )


def _size(value: int) -> str:
    return format_quantity("memory", value)
