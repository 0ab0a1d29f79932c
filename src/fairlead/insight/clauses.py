"""Clauses: how a change is said in words.

Decides the wording of each dimension; several amounts of one thing are said together. Never looks anything up.
Invariant: a clause completes the words "it runs if".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fairlead.core.quantities import format_exactly
from fairlead.insight.parts import Part, What
from fairlead.times import duration_exactly

Clause = Callable[[Part, str, str], str]
"""From the first part of the same subject, its amounts as they would be, and as they are."""


def clauses(parts: Sequence[Part]) -> Iterable[str]:
    """One for each thing that would be otherwise."""
    together: dict[tuple[What, str, str, str], list[Part]] = {}
    for part in parts:
        together.setdefault((part.what, part.subject, part.who, part.text), []).append(part)
    for same in together.values():
        amounts = format_exactly({p.resource: p.value for p in same if p.resource})
        before = format_exactly({p.resource: p.now for p in same if p.resource})
        yield _CLAUSES[same[0].what](same[0], amounts, before)


def _key(part: Part) -> str:
    return part.subject.rpartition("/")[2]


def _priority(part: Part, amounts: str, before: str) -> str:
    del amounts, before
    return f"its priority were {part.value} (now {part.now}; {part.value - 1} is not enough)"


def _nodes(part: Part, amounts: str, before: str) -> str:
    del amounts, before
    many = "one more node" if part.value == 1 else f"{part.value} more nodes"
    return f"there were {many} like {part.subject}"


def _property(part: Part, amounts: str, before: str) -> str:
    del amounts, before
    if part.text.startswith("-"):
        return f"{part.subject} had no {part.text[1:]}"
    name, _, value = part.text.partition("=")
    return f"{part.subject} had {name}: {value}"


def _attribute(part: Part, amounts: str, before: str) -> str:
    del amounts, before
    if part.text.startswith("-"):
        return f"node {part.subject} had no attribute {part.text[1:]}"
    return f"node {part.subject} had the attribute {part.text}"


def _where(part: Part, amounts: str, before: str) -> str:
    del amounts, before
    if part.text.startswith(TOLERATES):
        return f"it tolerated the taint {part.text.removeprefix(TOLERATES)}"
    return f"it were submitted without its {WITHOUT[part.text]}"


def _shorter(part: Part, amounts: str, before: str) -> str:
    del amounts, before
    now = f"now {duration_exactly(part.now)}" if part.now else "now it has none"
    return f"its time limit were {duration_exactly(part.value)} at most ({now})"


TOLERATES = "tolerates "
WITHOUT = {
    "selector": "node selector",
    "affinity": "affinity",
    "anti-affinity": "anti-affinity",
    "spread": "spread",
    "ports": "host ports",
}
"""Constraints that an ask could do without, by the filter that they are."""

_CLAUSES: dict[What, Clause] = {
    What.PRIORITY: _priority,
    What.QUEUE_MAX: lambda p, new, old: f"the maximum of {p.subject} were {new} (now {old})",
    What.QUEUE_APPLICATIONS: lambda p, _, __: f"{p.subject} might run {p.value} applications (now {p.now})",
    What.GUARANTEED: lambda p, new, old: f"the guarantee of {p.subject} were {new} (now {old})",
    What.LIMIT: lambda p, new, old: f"the limit of {p.who} in {p.subject} were {new} (now {old})",
    What.LIMIT_APPLICATIONS: lambda p, _, __: f"{p.who} might run {p.value} applications in {p.subject} (now {p.now})",
    What.PROPERTY: _property,
    What.QUOTA: lambda p, new, old: f"quota {p.text} of {p.subject} were {new} (now {old})",
    What.NODE_ROOM: lambda p, new, old: f"{new} were free on {p.subject} (now {old})",
    What.NODES: _nodes,
    What.ATTRIBUTE: _attribute,
    What.TAINT: lambda p, _, __: f"node {p.subject} had no taint {p.text}",
    What.DRAIN: lambda p, _, __: f"node {p.subject} were not drained",
    What.CANCEL: lambda p, _, __: f"{_key(p)} were gone",
    What.TURN: lambda p, _, __: f"the reservation of {_key(p)} were lifted",
    What.TIME: lambda p, _, __: f"nothing happened for {duration_exactly(p.value - p.now)} ({p.text})",
    What.QUEUE: lambda p, _, __: f"it were in {p.subject}",
    What.SMALLER: lambda _, new, old: f"it needed no more than {new} (now {old})",
    What.WHERE: _where,
    What.SHORTER: _shorter,
    What.PLAIN: lambda _, __, ___: "it were not idle",
    What.STOPS_OTHERS: lambda p, _, __: f"others might be stopped for it ({p.text})",
    What.ANY_NODE: lambda p, _, __: f"it might run on other nodes than {p.text}",
    What.ALONE: lambda p, _, __: f"it were no member of task group {p.text}",
}
