"""The queue file: in force, checked, compared, applied, put back.

Decides the fields. Never looks into a queue file. Invariant: what a change would do to jobs is counted in full, also
where not all of them are named.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from fairlead.wire import fields
from fairlead.wire.fields import Amounts, Page, Request, Shape, Wrong, said
from fairlead.wire.jobs import Reason

Text = Annotated[str, Meta(max_length=4 * 2**20)]
Version = Annotated[int, Meta(ge=1, le=2**31)]
Base = Annotated[
    Annotated[str, Meta(max_length=64)] | None,
    said("The checksum that must be in force, such as `base` of a difference; else 409."),
]

# -- requests -------------------------------------------------------------------------------------------------------


class ConfigText(Request, frozen=True, kw_only=True):
    """A queue file."""

    CHECKS: ClassVar = {"text": fields.clean_text}

    text: Text


class ConfigReplacement(ConfigText, frozen=True, kw_only=True):
    """A queue file to put in force."""

    base: Base = None


class ConfigProposal(Request, frozen=True, kw_only=True):
    """A queue file, or the number of an earlier version, to compare with what is in force."""

    CHECKS: ClassVar = {"text": fields.clean_text}

    text: Text | None = None
    version: Version | None = None

    def __post_init__(self) -> None:
        """Raises `Wrong` unless it is one of the two."""
        super().__post_init__()
        if (self.text is None) == (self.version is None):
            raise Wrong("", "give either a text or a version")


PAST_DAYS_MAX = 31
PAST_S = 60.0
"""So long may it take to simulate past work."""


class ConfigOnPast(ConfigProposal, frozen=True, kw_only=True):
    """A queue file, or an earlier version, to try on the work of the last days."""

    days: Annotated[Annotated[int, Meta(ge=1, le=PAST_DAYS_MAX)], said("The work of so many days.")] = 7


class ConfigRollback(Request, frozen=True, kw_only=True):
    """Which version to put in force again."""

    version: Annotated[Version | None, said("Absent: the one before the one in force.")] = None
    base: Base = None


# -- answers --------------------------------------------------------------------------------------------------------


class ConfigVersion(Shape, frozen=True, kw_only=True):
    """A queue file that was put in force."""

    version: int
    at_ms: int
    who: str
    source: Annotated[str, said("`file PATH`, `api`, `rollback` or `built-in`.")]
    checksum: str
    origin: Annotated[int, said("The version whose text it is: itself, or the one that was put back.")]
    in_force: bool


class ConfigAnswer(ConfigVersion, frozen=True, kw_only=True):
    """A queue file with its text."""

    text: str


class ConfigApplied(ConfigAnswer, frozen=True, kw_only=True):
    """What is in force after a change."""

    changed: Annotated[bool, said("False: it was in force already, and no new version was made.")]


class ConfigPage(Page, frozen=True, kw_only=True):
    """Versions that are kept, the newest first."""

    versions: list[ConfigVersion]


class ConfigProblem(Shape, frozen=True, kw_only=True):
    """Something wrong with a queue file, and where."""

    line: int
    column: int
    path: str
    value: str
    message: str
    severity: str


class ConfigFileStatus(Shape, frozen=True, kw_only=True):
    """How the watched file stands to what is in force."""

    path: str
    state: Annotated[str, said("`in-force`, `differs` (something else was applied since), `refused` or `missing`.")]
    checksum: str | None
    checked_at_ms: int
    refused: Annotated[str, said("Why the scheduler refused it, or empty.")]
    problems: list[ConfigProblem]


class ConfigStatus(ConfigVersion, frozen=True, kw_only=True):
    """What is in force, and the file."""

    file: ConfigFileStatus | None


class ConfigVerdict(Shape, frozen=True, kw_only=True):
    """Whether a queue file could be used."""

    ok: bool
    errors: list[ConfigProblem]
    warnings: list[ConfigProblem]


# -- a difference ---------------------------------------------------------------------------------------------------


class Change(Shape, frozen=True):
    """A setting that would have another value; null: none."""

    what: str
    old: Any
    new: Any


class DeclarationDifference(Shape, frozen=True):
    """A priority class, quota or budget that would be added, removed or changed."""

    what: str
    name: str
    kind: str
    changes: list[Change]


class Setting(Change, frozen=True):
    """A setting of a partition that would have another value."""

    partition: str


class QueueDifference(Shape, frozen=True):
    """A queue that would be added, removed or changed."""

    partition: str
    queue: str
    kind: Annotated[str, said("`added`, `changed`, `restarted`, `draining` (it has work) or `removed`.")]
    jobs: Annotated[int, said("How many it has now, with all below it.")]
    changes: list[Change]


class NamedJob(Shape, frozen=True):
    """A job that a change would touch."""

    key: str
    user: str
    name: str = ""
    queue: str = ""
    reason: Annotated[Reason | None, said("Why it would wait.")] = None
    instead_of: Annotated[Reason | None, said("Why it waits now.")] = None


class NamedJobs(Shape, frozen=True):
    """Jobs that a change would touch; not all of many are named."""

    count: int = 0
    jobs: list[NamedJob] = []


class OverLimit(Shape, frozen=True):
    """Somebody would use more than a limit; jobs go on."""

    partition: str
    queue: str
    who: Annotated[str, said("`user NAME` or `group NAME` whose limit there it is; empty: the queue's own.")]
    what: Annotated[str, said("`max` or `maxapplications`.")]
    used: Amounts
    limit: Amounts
    count: int
    jobs: list[NamedJob]


class ConfigDifference(Shape, frozen=True, kw_only=True):
    """What a queue file would change."""

    base: Annotated[str, said("The checksum of what it was compared with.")] = ""
    base_version: int = 0
    checksum: str = ""
    refused: Annotated[Reason | None, said("Why the scheduler would refuse it; null: it would not.")] = None
    empty: Annotated[bool, said("Nothing at all would change.")] = True
    partitions_added: list[str] = []
    partitions_removed: list[str] = []
    declared: list[DeclarationDifference] = []
    settings: list[Setting] = []
    queues: list[QueueDifference] = []
    over: Annotated[list[OverLimit], said("Queues, users and groups that are within their limits now.")] = []
    would_wait: Annotated[NamedJobs, said("They would start now.")] = NamedJobs()
    would_wait_for_else: NamedJobs = NamedJobs()
    would_start: Annotated[NamedJobs, said("They would wait now.")] = NamedJobs()
    would_be_stopped: NamedJobs = NamedJobs()
    would_fail: Annotated[NamedJobs, said("Their partition would be removed.")] = NamedJobs()


# -- on past work ---------------------------------------------------------------------------------------------------


class MeanWaits(Shape, frozen=True):
    """How long the work of a queue or a user waits in the mean; null: none of it starts."""

    name: str
    now_ms: Annotated[int | None, said("Under the file that is in force.")]
    then_ms: Annotated[int | None, said("Under the other one.")]


class PastQuestion(Shape, frozen=True, kw_only=True):
    """What the service asks of a process of its own: two files on the work of a state directory from a moment on."""

    state: str
    since_ms: int
    now_ms: int = 0
    """What runs by the record still ran then; 0: when the record ends."""
    in_force: str
    other: str
    patience_s: float = PAST_S
    """It ends itself after so long, whatever became of whoever asked."""


class ConfigPast(Shape, frozen=True, kw_only=True):
    """What a queue file would have made of the work of the last days, by simulation."""

    since_ms: int
    tasks: Annotated[int, said("Jobs and parts of arrays that both were tried on.")]
    sentences: Annotated[list[str], said("Whether it would have been better, who gains and who pays.")]
    queues: list[MeanWaits]
    users: list[MeanWaits]
    notes: Annotated[list[str], said("What of the record was not taken as it was.")]
