"""Queue properties: what the keys of a `properties` map mean, and which of them a child inherits.

Decides how each known key is read, its default, and that a value that cannot be read means the default (as in
YuniKorn). Never refuses a value and never drops a key: unknown ones stay in `raw` and are inherited. The reader of
queue files asks `unreadable` for what deserves a warning. Invariant: `QueueProperties.of` depends on its arguments
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TypeVar

from fairlead.core.model.quantities import VCORE, QuantityError, parse_quantity
from fairlead.core.model.resources import INT64_MAX
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN

SORT_PRIORITY = "application.sort.priority"
PRIORITY_POLICY = "priority.policy"
PRIORITY_OFFSET = "priority.offset"
PREEMPTION_POLICY = "preemption.policy"
PREEMPTION_DELAY = "preemption.delay"
QUOTA_PREEMPTION_DELAY = "quota.preemption.delay"
QUOTA_PREEMPTION_DELAY_1_8 = "preemption.quota.delay"
"""How YuniKorn 1.8 writes it; the newer name wins where both are given."""
RESOURCE_GROUP = "resource.group"
WAIT_MAX = "wait.max"
JOB_TIME_MAX = "job.time.max"
JOB_MEMORY_MAX = "job.memory.max"
JOB_PRIORITY_MAX = "job.priority.max"
JOB_GRACE_MAX = "job.grace.max"
JOB_RETRY_MAX = "job.retry.max"
JOB_COUNT_MAX = "job.count.max"
JOB_USER_COUNT_MAX = "job.count.user.max"

T = TypeVar("T")
DEFAULT_DELAY_MS = 30_000

_UINT64_MAX = 2**64 - 1
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_DURATION_PART = re.compile(r"(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h|d)")
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 24 * 3600 * 10**9,
}


def parse_duration_ms(text: str) -> int | None:
    """Milliseconds of a positive Go duration (`1h2m3.5s`, `500ms`), or one with days of 24 hours (`7d`), which Go does
    not know; rounded up to a whole one. None when it is none.

    A bare number, zero, a negative one and one beyond 292 years are none.
    """
    if len(text) > 100:
        return None
    body, total = text.removeprefix("+"), 0
    for whole, fraction, unit in _DURATION_PART.findall(body):
        each = _NANOSECONDS[unit]
        total += int(whole or "0") * each + int(fraction or "0") * each // 10 ** len(fraction)
    if _DURATION_PART.sub("", body) or not 0 < total <= INT64_MAX:
        return None
    return -(-total // 10**6)


def _whole(form: re.Pattern[str], least: int, most: int, text: str) -> int | None:
    if not form.fullmatch(text) or len(text) > 64:
        return None
    value = int(text)
    return value if least <= value <= most else None


def _quantity(name: str, text: str) -> int | None:
    try:
        return parse_quantity(name, text) or None
    except QuantityError:
        return None


Reading = tuple[Callable[[str], object | None], str]
"""How a text is read (None: it cannot be), and what may be written, for people."""


def _words(meant: Mapping[str, object], any_case: bool = True) -> Reading:
    *others, last = meant
    allowed = f"{', '.join(others)} or {last}"
    if any_case:
        return (lambda text: meant.get(text.lower())), allowed
    return meant.get, f"{allowed} (lower case)"


@dataclass(frozen=True, slots=True)
class PropertyRule:
    """How one key is read. `read` gives None for a text it cannot read; then the default counts."""

    key: str
    field: str
    read: Callable[[str], object | None]
    allowed: str
    """What may be written, for people."""
    leaf: bool | None = None
    """Whether it means something on leaves alone (True), or on parents alone (False); None: on both."""


_DURATION: Reading = (parse_duration_ms, "a positive duration with units, such as 30s, 1h30m or 7d")
_WHOLE: Reading = (partial(_whole, _DIGITS, 0, _UINT64_MAX), "a whole number, 0 or more")
_BYTES: Reading = (partial(_quantity, "memory"), "an amount of bytes above 0, such as 512Mi or 4Gi")
_CORES: Reading = (partial(_quantity, VCORE), "cores above 0, such as 2 or 500m")
_OFFSET: Reading = (
    partial(_whole, _INTEGER, PRIORITY_MIN, PRIORITY_MAX),
    "a whole number of 32 bits, such as 100 or -100",
)
_SORT = _words({"fifo": "fifo", "fair": "fair", "stateaware": "fifo"}, any_case=False)
_PREEMPTION = _words({"default": "default", "fence": "fence", "disabled": "disabled"})


def _read(*keys: str, how: Reading, default: T, leaf: bool | None = None) -> T:
    """A field that is read from the text of this key (one of these); where that cannot be read the default counts."""
    return field(default=default, metadata={"keys": keys, "rule": (*how, leaf)})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueProperties:
    """The typed reading of one queue's merged property map; times in milliseconds."""

    sort_policy: str = _read("application.sort.policy", how=_SORT, default="fifo", leaf=True)
    """Order of the applications of a leaf, `fifo` or `fair`; the children of a parent are always `fair`."""
    priority_sorting: bool = _read(SORT_PRIORITY, how=_words({"enabled": True, "disabled": False}), default=True)
    """Whether priority comes first in that order."""
    priority_fence: bool = _read(PRIORITY_POLICY, how=_words({"default": False, "fence": True}), default=False)
    """Upwards the queue reports only its offset, whatever waits inside."""
    priority_offset: int = _read(PRIORITY_OFFSET, how=_OFFSET, default=0)
    preemption_policy: str = _read(PREEMPTION_POLICY, how=_PREEMPTION, default="default")
    """`default`, `fence` (victims for work inside are looked for inside) or `disabled` (no victims from here)."""
    preemption_delay_ms: int = _read(PREEMPTION_DELAY, how=_DURATION, default=DEFAULT_DELAY_MS, leaf=True)
    preemption_min_runtime_ms: int = _read("preemption.min.runtime", how=_DURATION, default=0)
    """Work that has run for less is no victim."""
    preemption_evictions_max: int | None = _read("preemption.evictions.max", how=_WHOLE, default=None)
    """So much work of the queue and below is stopped for other work within an hour at most; None: no bound."""
    quota_preemption_delay_ms: int = _read(QUOTA_PREEMPTION_DELAY, QUOTA_PREEMPTION_DELAY_1_8, how=_DURATION, default=0)
    """0 is off."""
    backoff_threshold: int = _read("application.unschedasks.backoff", how=_WHOLE, default=0, leaf=True)
    """After so many asks in a row that fit nowhere the application rests; 0 is off."""
    backoff_delay_ms: int = _read(
        "application.unschedasks.backoff.delay", how=_DURATION, default=DEFAULT_DELAY_MS, leaf=True
    )
    resource_group: bool = _read(RESOURCE_GROUP, how=_words({"true": True, "false": False}), default=False, leaf=False)
    """Idle work of the leaves below borrows in this queue; it is not passed on to parents below."""
    wait_max_ms: int = _read(WAIT_MAX, how=_DURATION, default=0, leaf=True)
    """Work that waited so long has its turn kept; 0 is off."""
    easy_backfill: bool = _read("backfill", how=_words({"free": False, "easy": True}), default=False, leaf=True)
    """Work that is held back by a kept turn may start where it cannot delay it."""
    job_time_default_ms: int | None = _read("job.time.default", how=_DURATION, default=None)
    """For jobs that say none. This and all below are about jobs submitted to a machine; None: it is not set."""
    job_time_max_ms: int | None = _read(JOB_TIME_MAX, how=_DURATION, default=None)
    job_memory_default: int | None = _read("job.memory.default", how=_BYTES, default=None)
    job_memory_max: int | None = _read(JOB_MEMORY_MAX, how=_BYTES, default=None)
    job_cpu_default: int | None = _read("job.cpu.default", how=_CORES, default=None)
    """In thousandths of a core."""
    job_priority_max: int | None = _read(JOB_PRIORITY_MAX, how=_OFFSET, default=None)
    """For those who do not administer the queue."""
    job_grace_max_ms: int | None = _read(JOB_GRACE_MAX, how=_DURATION, default=None)
    job_retry_default: int | None = _read("job.retry.default", how=_WHOLE, default=None)
    """Further attempts of a job that was broken off and says nothing of retries."""
    job_retry_max: int | None = _read(JOB_RETRY_MAX, how=_WHOLE, default=None)
    job_count_max: int | None = _read(JOB_COUNT_MAX, how=_WHOLE, default=None)
    """Jobs that wait or run, in the queue and below."""
    job_count_user_max: int | None = _read(JOB_USER_COUNT_MAX, how=_WHOLE, default=None)
    """The same for each user."""
    job_output_max: int | None = _read("job.output.max", how=_BYTES, default=None)
    """Bytes of each of the two outputs of an attempt that are kept."""
    raw: Mapping[str, str] = field(default_factory=dict)
    """The map it was read from, unknown keys included."""

    @classmethod
    def of(cls, mapping: Mapping[str, str], leaf: bool) -> QueueProperties:
        """Read a merged property map of a leaf or a parent; what is absent or cannot be read is the default."""
        values: dict[str, object] = {} if leaf else {"sort_policy": "fair"}
        for key, text in mapping.items():
            rule = KNOWN.get(key)
            if rule is None or rule.leaf not in (None, leaf):
                continue
            if key == QUOTA_PREEMPTION_DELAY_1_8 and QUOTA_PREEMPTION_DELAY in mapping:
                continue
            value = rule.read(text)
            if value is not None:
                values[rule.field] = value
        return cls(**values, raw=dict(mapping))  # type: ignore[arg-type]


KNOWN: Mapping[str, PropertyRule] = {
    key: PropertyRule(key, each.name, *each.metadata["rule"])
    for each in fields(QueueProperties)
    for key in each.metadata.get("keys", ())
}
"""The rule of every known key, in the order of the fields that are read from them."""


def unreadable(mapping: Mapping[str, str]) -> Iterator[PropertyRule]:
    """The rules of the known keys whose value cannot be read, so that the default counts, in the order of the map."""
    known = ((KNOWN[key], text) for key, text in mapping.items() if key in KNOWN)
    return (rule for rule, text in known if rule.read(text) is None)


def inherited(parent: Mapping[str, str], child: Mapping[str, str]) -> dict[str, str]:
    """The property map of a configured child: its parent's merged map, filtered, overlaid by its own.

    A priority policy and offset of the parent are not passed on (the keys are, with their defaults); of the
    preemption policy only `disabled` is. A queue made by placement inherits nothing this way.
    """
    policy = "disabled" if parent.get(PREEMPTION_POLICY, "").lower() == "disabled" else "default"
    reset = {PRIORITY_POLICY: "default", PRIORITY_OFFSET: "0", PREEMPTION_POLICY: policy}
    passed = {key: reset.get(key, text) for key, text in parent.items() if key != RESOURCE_GROUP}
    return {**passed, **child}
