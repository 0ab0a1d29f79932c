"""Checks of queues: names, access lists, resources down the tree, numbers of applications, properties, and limits.

Decides whether the queues of one partition, and the limits of users and groups in them, can stand together, by
YuniKorn's rules. Never stops at the first failure, and never applies a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fairlead.config.declare import QUEUE_KEYS, TEMPLATE_KEYS
from fairlead.config.decode import Findings, child_path
from fairlead.config.tree import PlacedQueue
from fairlead.core.model.names import ACL_GROUP, ACL_USER, GROUP_NAME, QUEUE_NAME, USER_NAME
from fairlead.core.model.properties import KNOWN, PREEMPTION_DELAY, RESOURCE_GROUP, SORT_PRIORITY, unreadable
from fairlead.core.model.quantities import format_quantity
from fairlead.core.model.resources import UNLIMITED, Limits
from fairlead.core.model.specs import LimitSpec, PreemptionSpec, QueueSpec


def check_names(found: Findings, queue: PlacedQueue) -> None:
    """Names of the children: allowed characters, no two alike on one level whatever their case."""
    seen: dict[str, str] = {}
    for child in queue.children:
        name, at = child.spec.name, f"{child.path}.name"
        if not QUEUE_NAME.fullmatch(name):
            what = f"invalid queue name '{name[:70]}'" if name else "a queue needs a name"
            found.add(at, f"{what}; use 1 to 64 of: letters, digits and - _ # @ / :")
        elif name.lower() in seen:
            found.add(
                at,
                f"{queue.full_name} has a second child named '{name}' (the first is '{seen[name.lower()]}'; "
                "case does not count); rename one",
            )
        else:
            seen[name.lower()] = name


def check_acls(found: Findings, queue: PlacedQueue) -> None:
    """Access lists: at most users and groups with one blank between; names that can never match are warned about."""
    for key, text in (("adminacl", queue.spec.admin_acl), ("submitacl", queue.spec.submit_acl)):
        at = f"{queue.path}.{key}"
        if len(text.split(" ")) > 2 or len(text.split()) > 2:
            found.add(at, f"too many blanks in '{text[:60]}'; write users, one blank, groups: alice,bob devs")
        elif text.strip() != "*":
            _warn_acl_names(found, at, text)


def _warn_acl_names(found: Findings, at: str, text: str) -> None:
    users, _, groups = text.partition(" ")
    for kind, names, rule in (("user", users, ACL_USER), ("group", groups, ACL_GROUP)):
        if names in ("", "*"):
            continue
        for name in names.split(","):
            if not rule.fullmatch(name):
                alone = " (* counts only as the whole list)" if name == "*" else ""
                found.warn(at, f"'{name[:60]}' is no {kind} name and matches nobody{alone}; correct or remove it")


def check_properties(found: Findings, queue: PlacedQueue) -> None:
    """Warns of property values that cannot be read (the default counts) and of unknown properties.

    What cannot be read of the bounds on jobs is an error.
    """
    for path, properties in _property_maps(queue):
        for rule in unreadable(properties):
            at, needs = child_path(path, rule.key), f"{rule.key} needs {rule.allowed}"
            if rule.key.startswith("job."):
                # A bound that cannot be read would be no bound.
                found.add(at, f"{needs}, not '{properties[rule.key][:60]}'")
            else:
                found.warn(at, f"{needs}, not '{properties[rule.key][:60]}'; the default counts instead")
        rule = KNOWN[RESOURCE_GROUP]
        if rule.read(properties.get(RESOURCE_GROUP, "")) and (not queue.children and not queue.spec.parent):
            found.warn(
                child_path(path, RESOURCE_GROUP),
                f"{RESOURCE_GROUP} means something on a parent only: idle work borrows among the leaves below it; "
                f"write it at the parent of {queue.full_name}",
            )
        keys = TEMPLATE_KEYS if ".childtemplate." in path else QUEUE_KEYS
        for key in properties:
            if key not in KNOWN:
                slipped = "; it is a key of its own: write it beside properties" if key.lower() in keys else ""
                text = f"{key[:60]} is no property that is acted on; it is kept and inherited"
                found.warn(child_path(path, key), text + (slipped or found.did_you_mean(key, KNOWN)))


def _property_maps(queue: PlacedQueue) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield f"{queue.path}.properties", queue.spec.properties
    if queue.spec.child_template:
        yield f"{queue.path}.childtemplate.properties", queue.spec.child_template.properties


def warn_ignored(found: Findings, queue: PlacedQueue, switches: PreemptionSpec) -> None:
    """Warns of what a queue says that means nothing with these switches of its partition."""
    by_guarantee = "means something with preemption.rule guarantee only: by the other rules"
    ignored: dict[str, str] = {}
    if switches.rule in ("priority", "both"):
        says = "the higher priority goes first, or it would have what went before it stopped"
        ignored[SORT_PRIORITY] = f": disabled {by_guarantee} {says}"
        says = "work is stopped at once; preemption.min.runtime spares what is young"
        ignored[PREEMPTION_DELAY] = f" {by_guarantee} {says}"
    if not switches.quota_enabled:
        only = (
            "means something with preemption.quotapreemptionenabled: true in the partition only: without it what runs"
        )
        says = f" {only} above a lowered maximum goes on"
        ignored |= {key: says for key, rule in KNOWN.items() if rule.field == "quota_preemption_delay_ms"}
    for path, properties in _property_maps(queue):
        for key, why in ignored.items():
            if key in properties and (key != SORT_PRIORITY or KNOWN[key].read(properties[key]) is False):
                found.warn(child_path(path, key), f"{key}{why}")


_DEFAULTS = {f"job.{what}.default": f"job.{what}.max" for what in ("time", "memory", "retry")}


def check_job_defaults(found: Findings, queue: PlacedQueue, above: Mapping[str, str] | None = None) -> None:
    """What jobs get that say nothing is not more than jobs may ask for, in a queue and in all below it."""
    own = queue.spec.properties
    merged = {**(above or {}), **{key: text for key, text in own.items() if key.startswith("job.")}}
    for default, most in _DEFAULTS.items():
        amounts = [KNOWN[key].read(merged.get(key, "")) for key in (default, most)]
        if None not in amounts and amounts[0] > amounts[1] and {default, most} & own.keys():  # type: ignore[operator]
            found.add(
                child_path(f"{queue.path}.properties", default if default in own else most),
                f"in {queue.full_name} the {default}, {merged[default]}, is above the {most}, {merged[most]}; "
                "lower the one or raise the other",
            )
    for child in queue.children:
        check_job_defaults(found, child, merged)


_MEANT = dict.fromkeys(("cpu", "cpus", "core", "cores", "vcores", "vcpu", "vcpus"), "vcore") | dict.fromkeys(
    ("mem", "ram"), "memory"
)


def warn_misnamed(found: Findings, at: str, names: Iterable[str]) -> None:
    """Warns of what other programs call cores or memory: it would be a resource that nothing asks for."""
    for name in names:
        if meant := _MEANT.get(name.lower(), "memory" if name.lower() == "memory" != name else ""):
            found.warn(child_path(at, name), f"nothing asks for a resource named {name}; did you mean {meant}?")


def check_amounts(found: Findings, queue: PlacedQueue) -> None:
    """Warns of a maximum, guarantee or template without effect: of misnamed resources, with all values 0, of a leaf."""
    template = queue.spec.child_template
    given = [("resources.max", queue.spec.max), ("resources.guaranteed", queue.spec.guaranteed)]
    if template:
        given += [
            ("childtemplate.resources.max", template.max),
            ("childtemplate.resources.guaranteed", template.guaranteed),
        ]
        if not (queue.children or queue.spec.parent):
            found.warn(
                f"{queue.path}.childtemplate",
                f"{queue.full_name} is a leaf: nothing is made below it, so the template counts for nothing; write "
                "parent: true, or what it says at the queue itself",
            )
    for key, limits in given:
        warn_misnamed(found, f"{queue.path}.{key}", dict(limits or ()))
        if limits and not limits.is_set:
            found.warn(
                f"{queue.path}.{key}",
                "all values are 0, which counts as not set (unlimited for max); remove it or give a value above 0",
            )


def check_root(found: Findings, root: PlacedQueue) -> None:
    """The root has no resources of its own (it is the sum of the nodes) and is spelled `root`."""
    for key in ("max", "guaranteed"):
        if getattr(root.spec, key) is not None:
            found.add(
                f"{root.path}.resources.{key}",
                "the root queue is as large as all nodes together; move this to a queue below it",
            )
    if root.spec.name != "root":
        found.add(f"{root.path}.name", f"the root queue must be spelled root, not {root.spec.name}")


def first_over(amounts: Limits, ceiling: Limits) -> str | None:
    """The first resource of `amounts` above `ceiling`; a name that the ceiling lacks is unlimited."""
    for name, value in amounts:
        most = ceiling.get(name)
        if most is not None and value > most:
            return name
    return None


def _all_zero(limits: Limits) -> bool:
    return all(value == 0 for _, value in limits)


def _sum(parts: list[Limits]) -> Limits:
    total: dict[str, int] = {}
    for part in parts:
        for name, value in part:
            total[name] = total.get(name, 0) + value
    return Limits(total)


def check_resources(found: Findings, queue: PlacedQueue, above: Limits) -> Limits:
    """Guarantees and maxima of a queue and all below it; `above` is the tightest maximum of its ancestors.

    Returns what the queue guarantees as its parent sees it: its own guarantee, or its children's sum when it has none.
    """
    guaranteed, own_max = queue.spec.guaranteed or UNLIMITED, queue.spec.max or UNLIMITED
    name, at = queue.full_name, f"{queue.path}.resources"

    def report(key: str, over: str, message: str) -> None:
        found.add(child_path(f"{at}.{key}", over), message)

    def text(limits: Limits, resource: str) -> str:
        return format_quantity(resource, limits.get(resource) or 0)

    if over := first_over(guaranteed, own_max):
        report(
            "guaranteed",
            over,
            f"{name} guarantees {over} {text(guaranteed, over)} but its maximum is "
            f"{text(own_max, over)}; lower the one or raise the other",
        )
    if over := first_over(own_max, above):
        report(
            "max",
            over,
            f"the maximum of {name}, {over} {text(own_max, over)}, is above what the queues over it allow, "
            f"{text(above, over)}; lower it",
        )
    tightest = own_max.min_with(above)
    below = _sum([check_resources(found, child, tightest) for child in queue.children])
    if not _all_zero(guaranteed) and (over := first_over(below, guaranteed)):
        report(
            "guaranteed",
            over,
            f"the children of {name} are guaranteed {over} {text(below, over)} together, more than "
            f"its own {text(guaranteed, over)}; raise it or lower theirs",
        )
    if over := first_over(below, tightest):
        report(
            "max",
            over,
            f"the children of {name} are guaranteed {over} {text(below, over)} together, more than the "
            f"maximum {text(tightest, over)}; raise it or lower theirs",
        )
    return below if _all_zero(guaranteed) else guaranteed


def check_max_applications(found: Findings, queue: PlacedQueue) -> None:
    """Below a queue with `maxapplications` every child has one too, and none a larger one."""
    most = queue.spec.max_applications
    for child in queue.children:
        count, at = child.spec.max_applications, f"{child.path}.maxapplications"
        if most and not count:
            found.add(
                at, f"{child.full_name} needs maxapplications from 1 to {most}, because {queue.full_name} has {most}"
            )
        elif most and count > most:
            found.add(at, f"{child.full_name} has {count}, more than the {most} of {queue.full_name}; lower it")
        check_max_applications(found, child)


def described(spec: QueueSpec) -> str:
    """The queue's maximum in words, for messages."""
    amounts = sorted(spec.max.as_dict().items()) if spec.max else ()
    return ", ".join(f"{name} {format_quantity(name, value)}" for name, value in amounts) or "unlimited"


# -- limits of users and groups ---------------------------------------------------------------------------------------


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
    warn_misnamed(found, f"{at}.maxresources", dict(most or ()))
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
