"""Filters: for whom a placement rule is.

Decides whether a rule looks at an application at all, from its user and groups. Never reads anything else of it.
Invariant: a filter that was given names and could use none of them matches nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fairlead.core.model.names import EXPRESSION_SIGNS, GROUP_NAME, USER_NAME
from fairlead.core.model.specs import FilterSpec

Matches = Callable[[str], object]


class RuleError(ValueError):
    """A rule that cannot be built, or an application for which a rule makes no sense; the text says why."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter, read. `user` and `group` say whether a name is on the list."""

    allow: bool = True
    is_empty: bool = True
    user: Matches = bool
    group: Matches = bool

    def lets_pass(self, user: str, groups: tuple[str, ...]) -> bool:
        """Whether the rule is for this user: those on the lists are allowed (or denied), all others the opposite."""
        if self.is_empty:
            return self.allow
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
    users = _matcher(spec.users, USER_NAME, "user")
    groups = _matcher(spec.groups, GROUP_NAME, "group")
    return Filter(kind != "deny", False, users, groups)


def _matcher(entries: tuple[str, ...], name: re.Pattern[str], kind: str) -> Matches:
    """One entry may be an expression, which matches anywhere in a name; several are names."""
    if len(entries) == 1 and EXPRESSION_SIGNS & set(entries[0]):
        try:
            return re.compile(entries[0], re.ASCII).search
        except (re.error, ValueError, OverflowError, RecursionError) as error:
            text = f"invalid rule filter {kind} list is not a proper list or regexp: {entries[0]}: {error}"
            raise RuleError(text) from None
    return frozenset(entry for entry in entries if name.fullmatch(entry)).__contains__
