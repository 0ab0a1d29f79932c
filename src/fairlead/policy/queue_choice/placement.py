"""Placement: which queue an application goes to.

Decides the queue from the application's own words and the partition's rules, makes it where a rule may, or says why no
queue takes the application. Never looks at what runs. Invariant: the queue is a leaf that takes new applications, and
the user may submit to it (or the application was forced into the recovery queue).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fairlead.core.acts import queue_removal
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import RECOVERY_QUEUE, Queue
from fairlead.core.books.user_limits import groups_of
from fairlead.core.model.names import USER_NAME
from fairlead.core.model.properties import QueueProperties
from fairlead.core.model.reason import amounts_of
from fairlead.core.model.reasons import Reason, Refused, SubmitDenied
from fairlead.core.model.specs import TAG_FORCE_CREATE, ApplicationSpec, RuleSpec, TemplateSpec
from fairlead.policy.queue_choice.acl import may_submit
from fairlead.policy.queue_choice.dynamic import (
    CannotCreate,
    apply_namespace_tags,
    check_creatable,
    create_path,
    nearest,
    stated_limits,
)
from fairlead.policy.queue_choice.rules import Applicant, RuleError, build_rules

DEFAULT_QUEUE = "root.default"
AS_ASKED, AS_DEFAULT, AS_FORCED = "the request", "the default", "force"
"""What chose the queue where no rule of the file did."""
NOBODY, NOBODYS_GROUP = "nobody", "nogroup"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_NO_RULE = "application rejected: no placement rule matched"


def resolve_user(spec: ApplicationSpec) -> ApplicationSpec | Refused:
    """The application with a user that rules and access lists can work with, or why there is none.

    Without a user only an application that is forced in is taken; it runs as `nobody`.
    """
    if not spec.user:
        if not _is_forced(lower_names(spec.tags)):
            return Refused("empty user cannot resolve")
        return replace(spec, user=NOBODY, groups=(NOBODYS_GROUP,))
    if spec.groups and not USER_NAME.fullmatch(spec.user):
        return Refused("invalid username, it contains invalid characters")
    return spec


def place_application(partition: Partition, spec: ApplicationSpec) -> Queue | Refused:
    """The leaf for this application, made if need be, or why it is refused. `spec` has a resolved user."""
    applicant = _applicant(spec)
    try:
        path = next(attempt.path for attempt in attempts(partition, applicant) if attempt.obstacle is None)
    except RuleError as error:
        return Refused(f"failed to place application {spec.id}: {error}")
    queue = partition.root.find(path)
    if queue is None:
        try:
            queue = create_path(partition, path)
        except CannotCreate as why:  # a name of its own: compiled, a name has one type
            return Refused(f"failed to create rule based queue {path} for application {spec.id}\n{why}")
    if not queue.is_leaf:
        return Refused(f"failed to find queue {path} for application {spec.id}")
    apply_namespace_tags(partition, queue, applicant.tags)
    refused = gang_obstacle(queue, spec)
    if refused is None:
        return queue
    queue_removal.clean_if_leaving(partition, queue)
    return refused


def _applicant(spec: ApplicationSpec) -> Applicant:
    return Applicant(spec.user, groups_of(spec.user, spec.groups), spec.queue, lower_names(spec.tags))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to find a queue: by which rule, which path, and what is in the way of using it (None: nothing)."""

    rule: str
    path: str
    """Empty: the rule has no queue for this application."""
    obstacle: Reason | None = None


def attempts(partition: Partition, applicant: Applicant) -> Iterator[Attempt]:
    """The rules tried in their order, then what holds without rules; the first without an obstacle counts.

    Raises `RuleError` where the application has to be rejected at once, and after the last of them.
    """
    root, is_forced = partition.root, _is_forced(applicant.tags)
    try:
        rules = build_rules(partition.spec.placement_rules)
    except RuleError:
        raise RuleError(_NO_RULE) from None
    names = [_label(i, spec) for i, spec in enumerate(partition.spec.placement_rules, 1)] or [AS_ASKED]
    for name, rule in zip(names, rules, strict=True):
        path = rule.place(applicant, root)
        if not path:
            yield Attempt(name, "", Refused(f"{name} has no queue for it"))
        elif is_forced and path.lower() == RECOVERY_QUEUE:
            yield Attempt(name, path)
        else:
            yield Attempt(name, path, _obstacle(root, path, applicant))
    if is_forced:
        yield Attempt(AS_FORCED, RECOVERY_QUEUE)
    elif root.find(DEFAULT_QUEUE) is not None:
        yield Attempt(AS_DEFAULT, DEFAULT_QUEUE, _obstacle(root, DEFAULT_QUEUE, applicant))
    raise RuleError(_NO_RULE)


def _obstacle(root: Queue, path: str, applicant: Applicant) -> Reason | None:
    """Why the applicant may not submit there: to a leaf that takes applications, or below the queue it is made in."""
    if path.lower() == RECOVERY_QUEUE:
        return Refused(f"nobody submits to {RECOVERY_QUEUE}")
    queue, missing = nearest(root, path)
    if not missing and not queue.is_leaf:
        return Refused(f"{queue.path} has queues below it; applications go to leaves")
    if not missing and (draining := queue.draining) is not None:
        return Refused(f"{draining.path} is draining and takes nothing new")
    if may_submit(queue, applicant.user, applicant.groups):
        return None
    return SubmitDenied(queue.path, applicant.user, applicant.groups)


def _label(number: int, rule: RuleSpec) -> str:
    value = f" {rule.value}" if rule.value else ""
    return f"placement rule {number} ({rule.name.lower()}{value})"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What would become of an application: its queue and the rule that chose it, or why it would be refused."""

    path: str = ""
    rule: str = ""
    tried: tuple[Attempt, ...] = ()
    """Every rule that was tried, with what was in its way."""
    refused: Reason | None = None
    """Why it is refused in spite of the rules, or because of them all; None: it would be taken in."""


def foresee(partition: Partition, spec: ApplicationSpec) -> Foreseen:
    """Where `place_application` would put an application now. Changes nothing."""
    resolved = resolve_user(spec)
    if isinstance(resolved, Refused):
        return Foreseen(refused=resolved)
    tried: list[Attempt] = []
    try:
        for attempt in attempts(partition, _applicant(resolved)):
            tried.append(attempt)
            if attempt.obstacle is None:
                break
        path = tried[-1].path.lower()
        return Foreseen(path, tried[-1].rule, tuple(tried), _foreseen_obstacle(partition, path, resolved))
    except (RuleError, CannotCreate) as error:
        return Foreseen(tried=tuple(tried), refused=Refused(str(error)))


def _foreseen_obstacle(partition: Partition, path: str, spec: ApplicationSpec) -> Refused | None:
    """Why its gang could never run in the leaf that it would find, or make, there. Raises `CannotCreate`."""
    if path == RECOVERY_QUEUE:
        return None
    queue, missing = check_creatable(partition, path)
    policy, maxima = queue.properties.sort_policy, [above.max for above in queue.lineage[:-1]]
    if missing:
        template = queue.template or TemplateSpec()
        policy = QueueProperties.of(template.properties, True).sort_policy
        maxima.insert(0, template.max.as_dict() if template.max is not None and template.max.is_set else None)
    if (missing or not queue.managed) and (stated := stated_limits(lower_names(spec.tags))) is not None:
        maxima[0] = stated[0]
    return _why_not_gang(spec, path, policy, maxima)


def gang_obstacle(queue: Queue, spec: ApplicationSpec) -> Refused | None:
    """Why the application's gang can never run in `queue`; None when it can, or when there is no gang."""
    return _why_not_gang(spec, queue.path, queue.properties.sort_policy, [above.max for above in queue.lineage[:-1]])


def _why_not_gang(
    spec: ApplicationSpec, path: str, sort_policy: str, maxima: Sequence[Mapping[str, int] | None]
) -> Refused | None:
    gang = spec.placeholder_ask.items
    if not any(amount > 0 for _, amount in gang):
        return None
    if sort_policy != "fifo":
        text = f"queue {path} cannot run application {spec.id} with task group request: unsupported sort type"
        return Refused(text)
    room: dict[str, int] = {}
    for most in maxima:
        for name, limit in (most or {}).items():
            room[name] = min(limit, room.get(name, limit))
    short = [name for name, amount in gang if name in room and amount > room[name]]
    if not short:
        return None
    needed = amounts_of(dict(gang), short, up=True)
    return Refused(
        f"queue {path} cannot fit application {spec.id}: its gang needs {needed} together, "
        f"and {amounts_of(room, short)} is all that may be used there"
    )


def lower_names(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags by name in lower case; of names that then are alike the first in order counts."""
    return {name.lower(): tags[name] for name in sorted(tags, reverse=True)}


def _is_forced(tags: Mapping[str, str]) -> bool:
    return tags.get(TAG_FORCE_CREATE, "") in _TRUE
