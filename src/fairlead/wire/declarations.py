"""What is declared beside the tree of queues (priority classes, quotas, budgets), who uses what, and tokens.

Decides the fields. Never whether a declaration makes sense: the scheduler does.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from fairlead.wire import fields
from fairlead.wire.fields import Amounts, AmountsDraft, Line, Name, Page, Request, Shape, said

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
Values = Annotated[list[Line], Meta(max_length=1000)]

# -- requests -------------------------------------------------------------------------------------------------------


class ClassDraft(Request, frozen=True, kw_only=True):
    """A name for a priority."""

    CHECKS: ClassVar = {"description": fields.one_line}

    value: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, description="The priority it stands for.")]
    global_default: Annotated[bool, said("Jobs that name neither class nor priority get it.")] = False
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    description: Line = ""
    limited: Annotated[bool, said("It may be used only where a quota selects it.")] = False
    min_runtime_ms: Annotated[
        int, Meta(ge=0, le=2**53, description="Its jobs are no victims before they have run for so long; 0: at once.")
    ] = 0


class ConditionDraft(Request, frozen=True, kw_only=True):
    """A condition on a label."""

    CHECKS: ClassVar = {"key": fields.one_line, "values": fields.each(fields.one_line)}

    key: Name
    operator: Operator = "In"
    values: Values = []


class ScopeDraft(Request, frozen=True, kw_only=True):
    """A condition on the priority class."""

    CHECKS: ClassVar = {"values": fields.each(fields.one_line)}

    operator: Operator
    values: Values = []


class QuotaDraft(Request, frozen=True, kw_only=True):
    """What all admitted jobs of a queue and below that match may ask for."""

    CHECKS: ClassVar = {"queue": fields.one_line, "resources": fields.most}

    queue: Annotated[Line, said("The whole path of the queue.")]
    resources: AmountsDraft = {}
    scopes: Annotated[list[ScopeDraft], Meta(max_length=100, description="All have to hold; none: all jobs.")] = []


class BudgetDraft(Request, frozen=True, kw_only=True):
    """How many of the jobs with these labels must stay; exactly one of the two bounds."""

    CHECKS: ClassVar = {
        "min_available": fields.share_or_count,
        "max_unavailable": fields.share_or_count,
        "namespace": fields.one_line,
    }

    selector: Annotated[list[ConditionDraft], Meta(max_length=100, description="All have to hold.")]
    min_available: Annotated[int | str | None, said("So many must stay, or such a part, as 50%.")] = None
    max_unavailable: Annotated[int | str | None, said("So many may stop at once, or such a part.")] = None
    namespace: Line = ""


TokenScope: TypeAlias = Literal["read", "submit", "administer"]
"""What a token is for: to read; also for all that is about one's own jobs; or for everything that its user may do."""


class TokenRequest(Request, frozen=True, kw_only=True):
    """A token to make."""

    CHECKS: ClassVar = {"name": fields.one_line, "user": fields.one_line, "queue": fields.one_line}

    name: Annotated[Line, said("What it is for.")] = ""
    user: Annotated[Line, said("Whose it shall be (administrators only); empty: the caller's.")] = ""
    scope: Annotated[
        TokenScope, said("`read`, `submit` (also all that is about jobs, as no administrator), or `administer`: all.")
    ] = "administer"
    queue: Annotated[Line, said("For jobs in this queue and those below it alone; empty: for all.")] = ""
    lifetime_ms: Annotated[Annotated[int, Meta(gt=0, le=10**12)] | None, said("For so long; null: always.")] = None


# -- answers --------------------------------------------------------------------------------------------------------


class PriorityClass(Shape, frozen=True, kw_only=True):
    """A priority class. `source`: `built-in`, `file` (the queue file) or `api`."""

    name: str
    value: int
    global_default: bool
    preemption_policy: str
    description: str
    limited: bool
    min_runtime_ms: int
    source: str


class PriorityClassPage(Page, frozen=True, kw_only=True):
    """Priority classes, highest value first."""

    priority_classes: list[PriorityClass]


class Condition(Shape, frozen=True, kw_only=True):
    """A condition on a label or class."""

    key: str
    operator: str
    values: list[str]


class Quota(Shape, frozen=True, kw_only=True):
    """A quota, and what has been admitted under it."""

    name: str
    queue: str
    resources: Amounts
    scopes: list[Condition]
    used: Amounts
    jobs: int
    source: str


class QuotaPage(Page, frozen=True, kw_only=True):
    """Quotas by name."""

    quotas: list[Quota]


class Budget(Shape, frozen=True, kw_only=True):
    """A disruption budget. `left`: how many more jobs it lets stop now."""

    name: str
    selector: list[Condition]
    min_available: int | str | None
    max_unavailable: int | str | None
    namespace: str
    left: int
    source: str


class BudgetPage(Page, frozen=True, kw_only=True):
    """Disruption budgets by name."""

    budgets: list[Budget]


class Use(Shape, frozen=True, kw_only=True):
    """What one user or group uses of one queue and those below it."""

    kind: str
    name: str
    queue: str
    used: Amounts
    running: int
    max: Annotated[Amounts | None, said("What may be used there; null: no limit.")]
    max_running: int | None


class UsePage(Page, frozen=True, kw_only=True):
    """Who uses what."""

    usage: list[Use]


class LimitUse(Shape, frozen=True, kw_only=True):
    """Somebody to whom a limit applies."""

    name: str
    used: Amounts
    running: int


class Limit(Shape, frozen=True, kw_only=True):
    """A limit on a user or a group in one queue and those below it; `*`: each user, or all other groups together."""

    queue: str
    kind: str
    name: str
    limit: str
    max: Amounts | None
    max_running: int | None
    using: list[LimitUse]


class LimitPage(Page, frozen=True, kw_only=True):
    """Limits of the queue file."""

    limits: list[Limit]


class Token(Shape, frozen=True, kw_only=True):
    """A token, without what is secret about it."""

    id: str
    name: str
    user: str
    created_at_ms: int
    used_at_ms: int | None
    scope: TokenScope = "administer"
    queue: str = ""
    expires_at_ms: int | None = None


class NewToken(Token, frozen=True, kw_only=True):
    """A token that was just made; its text is shown this once."""

    token: str


class TokenPage(Page, frozen=True, kw_only=True):
    """The caller's tokens (all of them, for administrators)."""

    tokens: list[Token]
