"""Checks of `limits`: each entry by itself, the entries of one queue together, and entries down the tree.

Decides whether limits of users and groups make sense, by YuniKorn's rules. Never applies a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fairlead.config.check_queues import described, first_over, warn_misnamed
from fairlead.config.decode import Findings, child_path
from fairlead.config.problems import Stage
from fairlead.config.tree import PlacedQueue, go_map
from fairlead.core.names import GROUP_NAME, USER_NAME
from fairlead.core.quantities import format_quantity
from fairlead.core.resources import UNLIMITED, Limits
from fairlead.core.specs import LimitSpec

ANYBODY = "*"


@dataclass(slots=True)
class _Seen:
    """Names met so far in the entries of one queue."""

    users: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)


def check_queue_limits(found: Findings, queue: PlacedQueue, group: int) -> None:
    """The limits of one queue, entry by entry."""
    seen = _Seen()
    for index, limit in enumerate(queue.spec.limits):
        _check_entry(found, queue, limit, f"{queue.limits_path}[{index}]", seen, group)


def _check_entry(found: Findings, queue: PlacedQueue, limit: LimitSpec, at: str, seen: _Seen, group: int) -> None:
    def report(path: str, message: str, reference: str) -> None:
        found.add(path, message, stage=Stage.QUEUES, group=group, reference=reference)

    if not limit.users and not limit.groups:
        report(
            at,
            "a limit needs users or groups; name at least one, or * for everybody",
            "empty user and group lists defined in limit",
        )
        return
    for path, message, reference in _names("user", limit.users, USER_NAME, seen.users, at):
        report(path, message, reference)
    for path, message, reference in _names("group", limit.groups, GROUP_NAME, seen.groups, at):
        report(path, message, reference)
    if list(seen.groups) == [ANYBODY]:
        report(
            f"{at}.groups",
            "a limit for all groups (*) needs a limit with a named group before it; add one",
            "should not specify only one group limit that is using the wildcard. There must be at least one limit with "
            "a group name defined ",
        )
    unread = found.report_unread(f"{at}.maxresources", Stage.QUEUES, group)
    most = limit.max_resources
    warn_misnamed(found, f"{at}.maxresources", most)
    if most and not most.is_set:
        report(
            f"{at}.maxresources",
            "all values are 0; give at least one above 0",
            f"MaxResources should be greater than zero in '{limit.limit}' limit",
        )
    if not most and not limit.max_applications and not unread:
        report(
            at,
            "the limit limits nothing; give maxresources or maxapplications",
            f"invalid resource combination for limit {limit.limit} all resource limits are null",
        )
    _check_against_queue(found, queue, limit, at, group)


def _check_against_queue(found: Findings, queue: PlacedQueue, limit: LimitSpec, at: str, group: int) -> None:
    of_queue = queue.spec.max_applications
    if of_queue and limit.max_applications > of_queue:
        found.add(
            f"{at}.maxapplications",
            f"{limit.max_applications} is more than the {of_queue} of {queue.full_name} itself; lower it",
            stage=Stage.QUEUES,
            group=group,
            reference="invalid MaxApplications settings for "
            f"limit {limit.limit} exceed current the queue MaxApplications",
        )
    if not queue.level:
        return
    found.report_unread(f"{queue.path}.resources.max", Stage.QUEUES, group)
    if over := first_over(limit.max_resources or UNLIMITED, queue.spec.max or UNLIMITED):
        found.add(
            child_path(f"{at}.maxresources", over),
            f"more than the maximum of {queue.full_name} itself ({described(queue.spec)}); lower it",
            stage=Stage.QUEUES,
            group=group,
            reference=f"invalid MaxResources settings for limit {limit.limit} exeecd current the queue MaxResources",
        )


def _names(
    kind: str, names: tuple[str, ...], rule: re.Pattern[str], seen: dict[str, str], at: str
) -> Iterator[tuple[str, str, str]]:
    """Path, message and reference of what is wrong with the names of an entry; adds them to `seen`."""
    for index, name in enumerate(names):
        path = f"{at}.{kind}s[{index}]"
        if name != ANYBODY and not rule.fullmatch(name):
            yield (
                path,
                f"'{name[:60]}' is no {kind} name; start with a letter or _",
                f"invalid limit {kind} name '{name}' in limit definition",
            )
        elif name in seen:
            yield (
                path,
                f"the {kind} {name} has a limit in this queue already ({seen[name]}); remove one",
                f"duplicated {kind} name '{name}'" + (", already exists" if kind == "user" else ""),
            )
        else:
            if ANYBODY in seen:
                yield (
                    path,
                    f"the {kind} {name} comes after * ({seen[ANYBODY]}); put the limit with * last",
                    f"should not set no wildcard {kind} {name} after wildcard {kind} limit",
                )
            seen[name] = path


@dataclass(frozen=True, slots=True)
class _Above:
    """The nearest limits on the way from the root, by name."""

    resources: Mapping[str, Limits] = field(default_factory=dict)
    applications: Mapping[str, int] = field(default_factory=dict)


def check_hierarchy(found: Findings, root: PlacedQueue, group: int) -> None:
    """No limit is looser than the nearest one above it for the same name, or than the nearest one for `*`."""
    for kind in ("user", "group"):
        _down(found, root, kind, _Above(), group)


def _down(found: Findings, queue: PlacedQueue, kind: str, above: _Above, group: int) -> None:
    resources, applications = dict(above.resources), dict(above.applications)
    for index, limit in enumerate(queue.spec.limits):
        at = f"{queue.limits_path}[{index}]"
        for name in limit.users if kind == "user" else limit.groups:
            if limit.max_resources is not None:
                resources[name] = _resources_under(found, queue, kind, name, limit.max_resources, above, at, group)
            _applications_under(found, queue, kind, name, limit.max_applications, above, at, group)
            if limit.max_applications or name not in applications:
                applications[name] = limit.max_applications
    below = _Above(resources, applications)
    for child in queue.children:
        _down(found, child, kind, below, group)


def _resources_under(
    found: Findings, queue: PlacedQueue, kind: str, name: str, own: Limits, above: _Above, at: str, group: int
) -> Limits:
    """Checks one entry's resources; returns what is carried down."""
    same = above.resources.get(name)
    ceiling = same if same is not None else above.resources.get(ANYBODY)
    if ceiling is None:
        return own
    if over := first_over(own, ceiling):
        whose, tail = ("", "") if same is not None else ("wildcard ", " of immediate or ancestor parent queue")
        words = (
            f"than {whose}maximum resource {go_map(ceiling)}{tail}"
            if whose
            else (f"than immediate or ancestor parent maximum resource {go_map(ceiling)}")
        )
        most = format_quantity(over, ceiling.get(over) or 0)
        found.add(
            child_path(f"{at}.maxresources", over),
            f"the {kind} {name} may use at most {over} {most} further up{' (limit for *)' if whose else ''}; lower it",
            stage=Stage.LIMIT_RESOURCES,
            group=group,
            reference=f"{kind} {name} max resource {go_map(own)} of queue {queue.spec.name} is greater {words}",
        )
    return own.min_with(ceiling) if same is not None else own


def _applications_under(
    found: Findings, queue: PlacedQueue, kind: str, name: str, own: int, above: _Above, at: str, group: int
) -> None:
    same = name in above.applications
    ceiling = above.applications[name] if same else above.applications.get(ANYBODY, 0)
    if not ceiling or 0 < own <= ceiling:
        return
    words = (
        f"immediate or ancestor parent max applications {ceiling}"
        if same
        else (f"wildcard max applications {ceiling} of immediate or ancestor parent queue")
    )
    found.add(
        f"{at}.maxapplications",
        f"the {kind} {name} may run at most {ceiling} applications further up"
        f"{'' if same else ' (limit for *)'}; give a number from 1 to {ceiling}",
        stage=Stage.LIMIT_APPLICATIONS,
        group=group,
        reference=f"{kind} {name} max applications {own} of queue {queue.spec.name} is greater than {words}",
    )
