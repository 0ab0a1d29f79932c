"""Checks of `limits`: each entry by itself, the entries of one queue together, and entries down the tree.

Decides whether limits of users and groups make sense, by YuniKorn's rules. Never applies a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.config.check_queues import described, first_over, warn_misnamed
from fairlead.config.decode import Findings, child_path
from fairlead.config.tree import PlacedQueue
from fairlead.core.model.names import GROUP_NAME, USER_NAME
from fairlead.core.model.quantities import format_quantity
from fairlead.core.model.resources import UNLIMITED, Limits
from fairlead.core.model.specs import LimitSpec

ANYBODY = "*"


@dataclass(slots=True)
class _Seen:
    """Names met so far in the entries of one queue."""

    users: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)


def check_queue_limits(found: Findings, queue: PlacedQueue) -> None:
    """The limits of one queue, entry by entry."""
    seen = _Seen()
    for index, limit in enumerate(queue.spec.limits):
        _check_entry(found, queue, limit, f"{queue.limits_path}[{index}]", seen)


def _check_entry(found: Findings, queue: PlacedQueue, limit: LimitSpec, at: str, seen: _Seen) -> None:
    if not limit.users and not limit.groups:
        found.add(at, "a limit needs users or groups; name at least one, or * for everybody")
        return
    _check_names(found, "user", limit.users, USER_NAME, seen.users, at)
    _check_names(found, "group", limit.groups, GROUP_NAME, seen.groups, at)
    if list(seen.groups) == [ANYBODY]:
        found.add(f"{at}.groups", "a limit for all groups (*) needs a limit with a named group before it; add one")
    most = limit.max_resources
    warn_misnamed(found, f"{at}.maxresources", most)
    if most and not most.is_set:
        found.add(f"{at}.maxresources", "all values are 0; give at least one above 0")
    if not most and not limit.max_applications and not found.any_below(f"{at}.maxresources"):
        found.add(at, "the limit limits nothing; give maxresources or maxapplications")
    _check_against_queue(found, queue, limit, at)


def _check_against_queue(found: Findings, queue: PlacedQueue, limit: LimitSpec, at: str) -> None:
    of_queue = queue.spec.max_applications
    if of_queue and limit.max_applications > of_queue:
        found.add(
            f"{at}.maxapplications",
            f"{limit.max_applications} is more than the {of_queue} of {queue.full_name} itself; lower it",
        )
    if not queue.level:
        return
    if over := first_over(limit.max_resources or UNLIMITED, queue.spec.max or UNLIMITED):
        found.add(
            child_path(f"{at}.maxresources", over),
            f"more than the maximum of {queue.full_name} itself ({described(queue.spec)}); lower it",
        )


def _check_names(
    found: Findings, kind: str, names: tuple[str, ...], rule: re.Pattern[str], seen: dict[str, str], at: str
) -> None:
    """The names of one entry; those that count are added to `seen`."""
    for index, name in enumerate(names):
        path = f"{at}.{kind}s[{index}]"
        if name != ANYBODY and not rule.fullmatch(name):
            found.add(path, f"'{name[:60]}' is no {kind} name; start with a letter or _")
        elif name in seen:
            found.add(path, f"the {kind} {name} has a limit in this queue already ({seen[name]}); remove one")
        else:
            if ANYBODY in seen:
                found.add(path, f"the {kind} {name} comes after * ({seen[ANYBODY]}); put the limit with * last")
            seen[name] = path


@dataclass(frozen=True, slots=True)
class _Above:
    """The nearest limits on the way from the root, by name."""

    resources: Mapping[str, Limits] = field(default_factory=dict)
    applications: Mapping[str, int] = field(default_factory=dict)


def check_hierarchy(found: Findings, root: PlacedQueue) -> None:
    """No limit is looser than the nearest one above it for the same name, or than the nearest one for `*`."""
    for kind in ("user", "group"):
        _down(found, root, kind, _Above())


def _down(found: Findings, queue: PlacedQueue, kind: str, above: _Above) -> None:
    resources, applications = dict(above.resources), dict(above.applications)
    for index, limit in enumerate(queue.spec.limits):
        at = f"{queue.limits_path}[{index}]"
        for name in limit.users if kind == "user" else limit.groups:
            if limit.max_resources is not None:
                resources[name] = _resources_under(found, kind, name, limit.max_resources, above, at)
            _applications_under(found, kind, name, limit.max_applications, above, at)
            if limit.max_applications or name not in applications:
                applications[name] = limit.max_applications
    below = _Above(resources, applications)
    for child in queue.children:
        _down(found, child, kind, below)


def _resources_under(found: Findings, kind: str, name: str, own: Limits, above: _Above, at: str) -> Limits:
    """Checks one entry's resources; returns what is carried down."""
    same = above.resources.get(name)
    ceiling = same if same is not None else above.resources.get(ANYBODY)
    if ceiling is None:
        return own
    if over := first_over(own, ceiling):
        whose = "" if same is not None else " (limit for *)"
        most = format_quantity(over, ceiling.get(over) or 0)
        found.add(
            child_path(f"{at}.maxresources", over),
            f"the {kind} {name} may use at most {over} {most} further up{whose}; lower it",
        )
    return own.min_with(ceiling) if same is not None else own


def _applications_under(found: Findings, kind: str, name: str, own: int, above: _Above, at: str) -> None:
    same = name in above.applications
    ceiling = above.applications[name] if same else above.applications.get(ANYBODY, 0)
    if not ceiling or 0 < own <= ceiling:
        return
    found.add(
        f"{at}.maxapplications",
        f"the {kind} {name} may run at most {ceiling} applications further up"
        f"{'' if same else ' (limit for *)'}; give a number from 1 to {ceiling}",
    )
