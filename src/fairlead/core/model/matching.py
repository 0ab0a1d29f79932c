"""Suitability: whether labels, attributes and taints meet what `core.model.constraints` says. Pure matching.

Decides single conditions and whether constraints make sense at all. Never counts work and never knows a partition: what
running work means for a newcomer is added up in `core.books.constraints_index`. Invariant: the answer depends on the
arguments alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fairlead.core.model.constraints import (
    DEVICES,
    DOES_NOT_EXIST,
    EFFECTS,
    EXISTS,
    GT,
    IN,
    LT,
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_IN,
    OPERATORS,
    PREFER_NO_SCHEDULE,
    WEIGHT_MAX,
    WEIGHT_MIN,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    SpreadTerm,
    Taint,
    Toleration,
)
from fairlead.core.model.resources import INT64_MAX, INT64_MIN

ANY_ADDRESS = "0.0.0.0"
_INTEGER = re.compile(r"[+-]?[0-9]{1,64}")

Selector = tuple[Requirement, ...]
Labels = Mapping[str, str]


# -- conditions ---------------------------------------------------------------------------------------------------


def holds(condition: Requirement, labels: Labels) -> bool:
    """Whether one condition holds; what is absent is `NotIn` everything, and neither above nor below any number."""
    value, operator = labels.get(condition.key), condition.operator
    if operator == IN:
        return value is not None and value in condition.values
    if operator == NOT_IN:
        return value is None or value not in condition.values
    if operator == EXISTS:
        return value is not None
    if operator == DOES_NOT_EXIST:
        return value is None
    number, bound = _integer(value), _integer(condition.values[0])
    if number is None or bound is None:
        return False
    return number > bound if operator == GT else number < bound


def matches(selector: Selector, labels: Labels) -> bool:
    """Whether all conditions hold; without a condition everything matches."""
    return all(holds(condition, labels) for condition in selector)


def whole_number(text: str | None) -> int | None:
    """What some digits say; None: there are none, there is something else as well, or far too many."""
    return _integer(text) if text is not None and text.isdecimal() else None


def _integer(text: str | None) -> int | None:
    """What Kubernetes reads as an integer: of 64 bits, and of nothing but digits behind a sign."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def _plain_integer(text: str) -> int | None:
    """One of a taint or toleration: written as numbers are written, without a plus or leading zeros."""
    number = _integer(text)
    return number if str(number) == text else None


# -- nodes --------------------------------------------------------------------------------------------------------


def is_selected(where: Constraints, labels: Labels) -> bool:
    """Whether a node with these labels is one that the selector and the node terms name."""
    terms = where.node_terms
    return matches(where.selector, labels) and (not terms or any(matches(term, labels) for term in terms))


def has_devices(where: Constraints, labels: Labels) -> bool:
    """Whether a node with these attributes has left what is needed of devices."""
    return not where.devices or DEVICES + where.devices in labels


def keeps_away(taint: Taint) -> bool:
    """Whether a taint is a filter; `PreferNoSchedule` is none."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration puts up with a taint."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == EXISTS:
        return True
    if toleration.operator in (GT, LT):
        number, bound = _plain_integer(taint.value), _plain_integer(toleration.value)
        if number is None or bound is None:
            return False
        return number > bound if toleration.operator == GT else number < bound
    return toleration.key != "" and toleration.value == taint.value


def is_tolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Whether every taint that is a filter is put up with."""
    return all(any(tolerates(t, taint) for t in tolerations) for taint in taints if keeps_away(taint))


def discouraging(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> int:
    """How many taints would rather have the node left alone, and are not put up with."""
    soft = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
    return sum(not any(tolerates(t, taint) for t in tolerations) for taint in soft)


def must_leave(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Whether running work has to go: a `NoExecute` taint that it does not put up with."""
    return not is_tolerated((t for t in taints if t.effect == NO_EXECUTE), tolerations)


# -- ports --------------------------------------------------------------------------------------------------------


def port_of(text: str) -> tuple[tuple[str, str], str]:
    """A host port `protocol/ip/port` as ((protocol, port), address); no address is every address."""
    protocol, address, port = text.split("/")
    return (protocol.upper(), str(int(port))), address or ANY_ADDRESS


def collide(mine: str, theirs: str) -> bool:
    """Whether two addresses of one port cannot be used at once: they are the same, or one is every address."""
    return mine == theirs or ANY_ADDRESS in (mine, theirs)


# -- filters in words ---------------------------------------------------------------------------------------------

SELECTOR, TAINT, NO_DEVICES, PORTS, VOLUMES, AFFINITY = "selector", "taint", "devices", "ports", "volumes", "affinity"
ANTI_AFFINITY, REPELLED, SPREAD, PROMISED = "anti-affinity", "repelled", "spread", "promised"
WINDOW, TOO_SMALL = "window", "too-small"
"""What can keep an ask off a node, in this order; `repelled` by the anti-affinity of running work, `promised` where one
of these is kept for an ask that is to start, `window` where it would run into one, `too-small` though nothing ran."""
_IN_WORDS = {
    SELECTOR: "without an attribute that it asks for",
    TAINT: "with a taint that it does not tolerate",
    NO_DEVICES: "without the devices that it claims",
    PORTS: "with one of its host ports in use",
    VOLUMES: "to which no more volumes can be attached",
    AFFINITY: "without the work that it wants to be with",
    ANTI_AFFINITY: "with work that it must not be with",
    REPELLED: "with work that keeps it away",
    SPREAD: "with more than its share already",
    WINDOW: "for which a window is ahead",
    PROMISED: "where it would be in the way of work that is to start",
    TOO_SMALL: "too small",
}


def filters_in_words(excluded: Mapping[str, int]) -> str:
    """How many nodes each filter keeps an ask off, for people."""
    return ", ".join(f"{count} {_IN_WORDS.get(name, name)}" for name, count in excluded.items())


# -- what terms look at -------------------------------------------------------------------------------------------


def all_of(terms: tuple[AffinityTerm, ...]) -> Selector:
    """The selector of work that matches every one of the terms."""
    return terms[0].selector if len(terms) == 1 else tuple(dict.fromkeys(c for term in terms for c in term.selector))


def drawn_by(where: Constraints) -> dict[Selector, None]:
    """The work that these constraints want to be with, or are spread among."""
    company = {all_of(where.affinity): None} if where.affinity else {}
    return company | dict.fromkeys(term.selector for term in where.spread)


def counted_for(where: Constraints) -> dict[Selector, None]:
    """What has to be counted so that the best node is known as well."""
    company = dict.fromkeys(wish.term.selector for wish in where.preferred_work)
    return looked_at(where) | company | dict.fromkeys(term.selector for term in where.preferred_spread)


def looked_at(where: Constraints) -> dict[Selector, None]:
    """What has to be counted so that it is known where work with these constraints may run."""
    return drawn_by(where) | dict.fromkeys(term.selector for term in where.anti_affinity)


# -- what makes sense ---------------------------------------------------------------------------------------------


def flaw(where: Constraints) -> str:
    """What is wrong with the constraints of an ask, and where; nothing when they make sense."""
    checks: tuple[tuple[str, Callable[[Any], str], tuple[Any, ...]], ...] = (
        ("selector", _conditions_flaw, (where.selector,)),
        ("node_terms", _conditions_flaw, where.node_terms),
        ("tolerations", _toleration_flaw, where.tolerations),
        ("affinity", _term_flaw, where.affinity),
        ("anti_affinity", _term_flaw, where.anti_affinity),
        ("spread", _term_flaw, where.spread),
        ("ports", _port_flaw, where.ports),
        ("volumes", _volume_flaw, where.volumes),
        ("preferred_nodes", _conditions_flaw, tuple(wish.term for wish in where.preferred_nodes)),
        ("preferred_work", _term_flaw, tuple(wish.term for wish in where.preferred_work)),
        ("preferred_spread", _term_flaw, where.preferred_spread),
        ("preferred_nodes", _weight_flaw, where.preferred_nodes),
        ("preferred_work", _weight_flaw, where.preferred_work),
    )
    for place, flaw_of, parts in checks:
        for part in parts:
            if bad := flaw_of(part):
                return f"{place}: {bad}"
    return ""


def taint_flaw(taint: Taint) -> str:
    """What is wrong with a taint; nothing when it makes sense."""
    return _effect_flaw(taint.effect) if taint.key else "a taint has no key"


def _effect_flaw(effect: str) -> str:
    return "" if effect in EFFECTS else f"{effect!r} is not an effect; known: {', '.join(EFFECTS)}"


def _conditions_flaw(conditions: Selector) -> str:
    for condition in conditions:
        many, operator = len(condition.values), condition.operator
        if not condition.key:
            return "a condition has no key"
        if operator not in OPERATORS:
            return f"{operator!r} is not an operator; known: {', '.join(OPERATORS)}"
        if operator in (IN, NOT_IN) and not many:
            return f"{condition.key} {operator} needs at least one value"
        if operator in (EXISTS, DOES_NOT_EXIST) and many:
            return f"{condition.key} {operator} takes no value"
        if operator in (GT, LT) and (many != 1 or _integer(condition.values[0]) is None):
            return f"{condition.key} {operator} needs exactly one integer"
    return ""


def _toleration_flaw(toleration: Toleration) -> str:
    if toleration.operator not in ("Equal", EXISTS, GT, LT):
        return f"{toleration.operator!r} is not an operator; known: Equal, {EXISTS}, {GT}, {LT}"
    if not toleration.key and toleration.operator != EXISTS:
        return f"without a key the operator must be {EXISTS}"
    if toleration.operator in (GT, LT) and _plain_integer(toleration.value) is None:
        return f"{toleration.key} {toleration.operator} needs an integer"
    return _effect_flaw(toleration.effect) if toleration.effect else ""


def _term_flaw(term: AffinityTerm | SpreadTerm) -> str:
    if not term.topology_key:
        return "a term has no topology key"
    if isinstance(term, SpreadTerm) and (term.max_skew < 1 or term.min_domains < 1):
        return "max_skew and min_domains must be at least 1"
    if any(condition.operator in (GT, LT) for condition in term.selector):
        return f"{GT} and {LT} are for attributes of nodes, not for labels of work"
    return _conditions_flaw(term.selector)


def _weight_flaw(wish: PreferredNodes | PreferredWork) -> str:
    return "" if WEIGHT_MIN <= wish.weight <= WEIGHT_MAX else f"weight {wish.weight} is not a 32-bit integer"


def _volume_flaw(text: str) -> str:
    name, _, driver = text.rpartition("@")
    return "" if name and driver else f"{text!r} is not name@driver"


def _port_flaw(text: str) -> str:
    parts = text.split("/")
    number = whole_number(parts[2]) if len(parts) == 3 and parts[0] else None
    if number is None or not 0 < number < 65536:
        return f"{text!r} is not protocol/ip/port, such as TCP/{ANY_ADDRESS}/8080"
    return ""
