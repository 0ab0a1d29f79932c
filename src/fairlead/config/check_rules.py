"""Checks of placement rules: names, filters, values, and fixed paths against the configured queues.

Decides whether the rules can ever place an application, by YuniKorn's rules. Never places one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fairlead.config.declare import RULES
from fairlead.config.decode import WARNING, Findings
from fairlead.config.tree import ROOT, PlacedQueue
from fairlead.core.model.names import EXPRESSION_SIGNS, GROUP_NAME, QUEUE_NAME, USER_NAME
from fairlead.core.model.specs import FilterSpec, RuleSpec

RULE_NAME = re.compile(r"[_a-zA-Z][a-zA-Z0-9_]*")
_NAMELESS = "a fixed rule needs a queue name as value"
_NOT_IN_GO = re.compile(r"\(\?(?:<?[=!]|P=|>|\()|\\[1-9]|[*+?}]\+")
"""Look-around, back references, atomic groups and possessive repeats: Python has them, Go's expressions do not."""


def check_rules(found: Findings, rules: tuple[RuleSpec, ...], path: str, root: PlacedQueue, broken: str) -> None:
    """The rules of one partition, first each by itself, then their fixed paths.

    `broken` is the severity of what YuniKorn meets only when it makes the partition.
    """
    for index, rule in enumerate(rules):
        _check_rule(found, rule, f"{path}[{index}]", broken)
    fixed = [_fixed_path(found, rule, f"{path}[{index}]") for index, rule in enumerate(rules)]
    for known in fixed:
        if known:
            _check_path(found, known, root)


def _check_rule(found: Findings, rule: RuleSpec, at: str, broken: str) -> None:
    """One rule and its parents. `broken` is the severity of what YuniKorn meets only when it makes the partition."""
    if not RULE_NAME.fullmatch(rule.name):
        found.add(f"{at}.name", f"'{rule.name[:60]}' is no rule name; use one of {', '.join(RULES)}")
    else:
        _check_buildable(found, rule, at, broken)
    if rule.parent:
        _check_rule(found, rule.parent, f"{at}.parent", broken)
    if rule.filter:
        _check_filter(found, rule.filter, f"{at}.filter")


def _check_buildable(found: Findings, rule: RuleSpec, at: str, severity: str) -> None:
    """What makes the whole list of rules unusable; YuniKorn then starts and rejects every application."""
    note = " (every application would be rejected)" if severity == WARNING else ""

    def report(key: str, message: str) -> None:
        found.add(f"{at}.{key}", message + note, severity=severity)

    kind = rule.name.lower()
    if kind == "recovery":
        report("name", "the recovery rule is always there and cannot be configured; remove it")
    elif kind not in RULES:
        report("name", f"unknown rule {rule.name[:60]}; use one of {', '.join(RULES)}{found.did_you_mean(kind, RULES)}")
    elif kind == "tag" and not rule.value:
        report("value", "a tag rule needs the name of the tag as value")
    elif kind == "fixed" and not rule.value:
        report("value", _NAMELESS)
    elif kind == "fixed":
        _check_fixed(rule, report)


def _check_fixed(rule: RuleSpec, report: Callable[[str, str], None]) -> None:
    for part in rule.value.split("."):
        if not QUEUE_NAME.fullmatch(part):
            report("value", f"'{part[:60]}' in '{rule.value[:60]}' is no queue name")
            return
    if rule.value.lower().startswith("root") and rule.parent:
        report(
            "value", f"'{rule.value[:60]}' starts at the root, so the rule cannot have a parent; remove one of the two"
        )


def _check_filter(found: Findings, spec: FilterSpec, at: str) -> None:
    if spec.type.lower() not in ("", "allow", "deny"):
        found.add(f"{at}.type", f"'{spec.type[:60]}' is no filter type; use allow or deny")
    elif spec.type != spec.type.lower():
        found.warn(f"{at}.type", f"Apache YuniKorn takes {spec.type} for allow; write {spec.type.lower()}")
    for kind, names, rule in (("user", spec.users, USER_NAME), ("group", spec.groups, GROUP_NAME)):
        if len(names) == 1 and not rule.fullmatch(names[0]):
            _check_expression(found, kind, names[0], f"{at}.{kind}s[0]")
        for index, name in enumerate(names if len(names) > 1 else ()):
            if not rule.fullmatch(name):
                found.warn(
                    f"{at}.{kind}s[{index}]",
                    f"'{name[:60]}' is no {kind} name and matches nobody; in a list of "
                    "several there are no expressions",
                )


def _check_expression(found: Findings, kind: str, text: str, at: str) -> None:
    reason = ""
    if not EXPRESSION_SIGNS & set(text):
        reason = f"it is neither a {kind} name nor an expression (none of ^ $ * + ? ( ) [ {{ }} |)"
    elif _NOT_IN_GO.search(text):
        reason = "look-around, back references and possessive repeats are not allowed in expressions"
    else:
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            reason = f"the expression is broken: {error}"
    if reason:
        found.add(at, f"'{text[:60]}' matches nobody: {reason}")


@dataclass(frozen=True, slots=True)
class _FixedPath:
    """The part of a rule's path that is known beforehand."""

    path: str
    at: str
    """The place of the last fixed value, or of the first that is missing."""
    nameless: bool
    """Whether a fixed value is missing."""
    goes_on: bool
    """Whether a rule whose result is not known adds to it."""
    create: bool


def _fixed_path(found: Findings, rule: RuleSpec, at: str) -> _FixedPath | None:
    """The leading `fixed` values of a chain, outermost parent first; None where it begins with another rule."""
    chain, places = [rule], [at]
    while chain[0].parent:
        chain.insert(0, chain[0].parent)
        places.insert(0, f"{places[0]}.parent")
    path, last, nameless = "", 0, ""
    for last, link in enumerate([*chain, None]):
        if link is None or link.name != "fixed":
            break
        nameless = nameless or ("" if link.value else f"{places[last]}.value")
        qualified = link.value.startswith(ROOT)
        if path and qualified:
            found.add(
                f"{places[last]}.value",
                f"'{link.value[:60]}' starts at the root but is below {path[:60]}; leave out the first part",
            )
            return None
        path = link.value if qualified else f"{path or ROOT}.{link.value}"
    if not path:
        return None
    at = nameless or f"{places[last - 1]}.value"
    return _FixedPath(path, at, bool(nameless), last < len(chain), rule.create)


def _check_path(found: Findings, fixed: _FixedPath, root: PlacedQueue) -> None:
    """A fixed path against the configured queues: it leads to a leaf, or to where a queue may be made."""
    path, shown = fixed.path, fixed.path[:200]
    queue, missing = _deepest(path, root)

    def report(message: str) -> None:
        # YuniKorn looks for the queue of a rule without a value, and does not find it.
        found.add(fixed.at, _NAMELESS if fixed.nameless else message)

    if not missing:
        if fixed.goes_on and not queue.spec.parent:
            report(f"{shown} is not marked parent: true, so nothing can be placed below it; mark it")
        elif not fixed.goes_on and queue.spec.parent:
            report(f"{shown} is a parent, and applications run in leaves; name a leaf")
    elif not queue.spec.parent and not queue.children:
        report(
            f"{shown} cannot be made, because {queue.full_name} is a leaf; name another queue or mark it parent: true"
        )
    elif not fixed.create:
        report(f"there is no queue {shown}; add it to the queues, or create: true to the rule")


def _deepest(path: str, root: PlacedQueue) -> tuple[PlacedQueue, list[str]]:
    """The last configured queue on a path, and the parts after it. Configured names count as written."""
    first, *parts = path.lower().split(".")
    queue = root
    if first != root.spec.name.lower():
        return queue, [first, *parts]
    for index, part in enumerate(parts):
        child = next((c for c in queue.children if c.spec.name == part), None)
        if child is None:
            return queue, parts[index:]
        queue = child
    return queue, []
