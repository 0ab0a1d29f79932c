"""Placement rules: for which applications each one is, and how each kind makes a queue's path from an application.

Decides a path or "no match" for one rule; never whether the application may go there, and never changes the tree.
Invariant: a path that a rule returns begins with the root, and each of its parts is a queue name; a filter that was
given names and could use none of them matches no user.

`create` of a rule says whether its whole path may be missing; a parent rule decides that for the path above.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from fairlead.core.books.queues import Queue
from fairlead.core.model.names import (
    EXPRESSION_SIGNS,
    GROUP_NAME,
    QUEUE_NAME,
    QUEUE_NAME_RULE,
    QUEUE_PATH,
    USER_NAME,
)
from fairlead.core.model.specs import FilterSpec, RuleSpec

Matches = Callable[[str], object]
ROOT = "root"
BELOW_ROOT = "root."
DOT = "_dot_"
"""What a dot in a name becomes: dots separate the levels of a path."""
NO_MATCH = ""


class RuleError(ValueError):
    """A rule that cannot be built, or an application for which a rule makes no sense; the text says why."""


# -- for whom a rule is -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter, read. `user` and `group` say whether a name is on the list; without names it lists everybody."""

    allow: bool = True
    user: Matches = bool
    group: Matches = bool

    def lets_pass(self, user: str, groups: tuple[str, ...]) -> bool:
        """Whether the rule is for this user: those on the lists are allowed (or denied), all others the opposite."""
        listed = self.user(user) or any(self.group(group) for group in groups)
        return self.allow if listed else not self.allow


EVERYBODY = Filter()


def build_filter(spec: FilterSpec | None) -> Filter:
    """The filter that a rule declares. Raises `RuleError` for an unknown type or a broken expression.

    The type is read in any case of letters: who writes `DENY` means it.
    """
    if spec is None:
        return EVERYBODY
    kind = spec.type.lower()
    if kind not in ("", "allow", "deny"):
        raise RuleError(f"invalid rule filter type {spec.type}, filter type must be either '', allow or deny")
    if not spec.users and not spec.groups:
        return Filter(allow=kind != "deny")
    users, groups = _matcher(spec.users, USER_NAME, "user"), _matcher(spec.groups, GROUP_NAME, "group")
    return Filter(kind != "deny", users, groups)


def _matcher(entries: tuple[str, ...], name: re.Pattern[str], kind: str) -> Matches:
    """One entry may be an expression, which matches anywhere in a name; several are names."""
    if len(entries) == 1 and EXPRESSION_SIGNS & set(entries[0]):
        try:
            return re.compile(entries[0], re.ASCII).search
        except (re.error, ValueError, OverflowError, RecursionError) as error:
            text = f"invalid rule filter {kind} list is not a proper list or regexp: {entries[0]}: {error}"
            raise RuleError(text) from None
    return frozenset(entry for entry in entries if name.fullmatch(entry)).__contains__


# -- the kinds of rules -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applicant:
    """What rules look at. The names of the tags are lower case; `groups` are those that count."""

    user: str
    groups: tuple[str, ...]
    queue: str = ""
    """The queue that was asked for; may be nothing."""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with the rule that makes the path above it.

    Its kind says what it makes a path from: `provided` (the queue that the application asks for), `user` (its user's
    name), `fixed` (always `value`, which may have several levels), `tag` (the tag of the application named `value`).
    """

    kind: str = "provided"
    value: str = ""
    """In lower case."""
    create: bool = False
    filter: Filter = EVERYBODY
    parent: Rule | None = None

    def place(self, applicant: Applicant, root: Queue) -> str:
        """The path for this application, or `NO_MATCH`. Raises `RuleError` when the application has to be rejected."""
        if not self.filter.lets_pass(applicant.user, applicant.groups):
            return NO_MATCH
        if self.kind == "user":
            return self._below_parent(_one_name(applicant.user), applicant, root)
        if self.kind == "fixed":
            is_whole = _starts_at_root(self.value)
            return self._known(self.value, root) if is_whole else self._below_parent(self.value, applicant, root)
        text = applicant.queue if self.kind == "provided" else applicant.tags.get(self.value, "")
        return self._named(text, applicant, root) if text else NO_MATCH

    def _below_parent(self, name: str, applicant: Applicant, root: Queue) -> str:
        """`name` below the path of the parent rule (or the root)."""
        if self.parent is None:
            return self._known(f"{BELOW_ROOT}{name}", root)
        above = self.parent.place(applicant, root)
        if above == NO_MATCH:
            return NO_MATCH
        queue = root.find(above)
        if queue is not None and queue.is_leaf:
            raise RuleError(f"parent rule returned a leaf queue: {above}")
        return self._known(f"{above}.{name}", root)

    def _named(self, text: str, applicant: Applicant, root: Queue) -> str:
        """The path for a text that an application brings: a whole path from the root, or one name below the parent."""
        if not text.startswith(BELOW_ROOT):
            return self._below_parent(_one_name(text), applicant, root)
        _check_parts(text)
        return self._known(text, root)

    def _known(self, path: str, root: Queue) -> str:
        """`path` when it exists or may be created."""
        return path if self.create or root.find(path) is not None else NO_MATCH


def _one_name(text: str) -> str:
    """One level of a path: dots are replaced; the name that results must be one."""
    name = text.replace(".", DOT)
    if not QUEUE_NAME.fullmatch(name):
        raise RuleError(QUEUE_NAME_RULE)
    return name


def _check_parts(path: str) -> None:
    if not QUEUE_PATH.fullmatch(path):
        raise RuleError(QUEUE_NAME_RULE)


def _starts_at_root(value: str) -> bool:
    return value == ROOT or value.startswith(BELOW_ROOT)


# -- building -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def build_rules(specs: tuple[RuleSpec, ...]) -> tuple[Rule, ...]:
    """The rules of a partition in their order; none means that applications go where they ask, if that queue exists.

    Raises `RuleError` when one of them cannot be built.
    """
    return tuple(_build(spec) for spec in specs) or (Rule(),)


def _build(spec: RuleSpec) -> Rule:
    parent = _build(spec.parent) if spec.parent is not None else None
    passes = build_filter(spec.filter)
    kind, value = spec.name.lower(), spec.value.lower()
    if kind == "recovery":
        raise RuleError("recovery rule cannot be part of the config, failing placement rule config")
    if kind not in ("provided", "user", "fixed", "tag"):
        raise RuleError(f"unknown rule name specified {spec.name}, failing placement rule config")
    if kind == "tag" and not value:
        raise RuleError("a tag queue rule must have a tag name set")
    if kind == "fixed":
        if not value:
            raise RuleError("a fixed queue rule must have a queue name set")
        _check_parts(value)
        if _starts_at_root(value) and parent is not None:
            text = "cannot have a fixed queue rule with qualified queue getName and a parent rule"
            raise RuleError(f"{text}: {spec.value}")
    return Rule(kind, value, spec.create, passes, parent)
