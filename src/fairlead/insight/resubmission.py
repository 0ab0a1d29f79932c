"""Resubmission: what an ask says of itself, said otherwise.

Decides what the new ask is like and by which events it takes the place of the old one: it comes first, under a key of
its own, then the old one is withdrawn, so that its application goes on. It is as young as it is: that is what would
happen to its owner. Never tries anything. Invariant: what is not named by a part stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.constraints import Constraints, Toleration
from fairlead.core.events import AddAsks, Event, Release, SetPriority
from fairlead.core.specs import TAG_REQUIRED_NODE, AskSpec
from fairlead.insight.clauses import TOLERATES
from fairlead.insight.parts import OF_THE_ASK, Part, What

if TYPE_CHECKING:
    from fairlead.core.applications import Ask

AGAIN = "~again"
"""How the key of the new ask ends."""
Name = tuple[str, str, str]


def renamed(name: Name, parts: Sequence[Part]) -> Name:
    """The name under which the ask is known once these parts are as they say."""
    if any(part.what in OF_THE_ASK for part in parts):
        return (name[0], name[1], f"{name[2]}{AGAIN}")
    return name


def submitted_again(ask: Ask, partition: str, parts: Sequence[Part]) -> list[Event]:
    """The ask takes its own place with these parts as they say."""
    spec = replace(ask.spec, key=f"{ask.key}{AGAIN}", resources=ask.spec.resources)
    for part in parts:
        spec = _with(spec, part)
    events: list[Event] = [AddAsks((spec,), partition)]
    if ask.priority != ask.spec.priority or spec.priority_class != ask.spec.priority_class:
        events.append(SetPriority(ask.app.id, spec.key, ask.priority, partition=partition))
    events.append(Release(ask.app.id, ask.key, partition=partition))
    return events


def _with(spec: AskSpec, part: Part) -> AskSpec:
    if part.what is What.WHERE:
        return replace(spec, where=_where(spec.where, part.text))
    if part.what is What.SHORTER:
        return replace(spec, time_limit_ms=part.value)
    if part.what is What.PLAIN:
        return replace(spec, idle=False)
    if part.what is What.STOPS_OTHERS:
        # The class would forbid it again: it keeps the priority alone.
        return replace(spec, allow_preempt_other=True, priority_class="")
    if part.what is What.ANY_NODE:
        return replace(spec, tags={name: value for name, value in spec.tags.items() if name != TAG_REQUIRED_NODE})
    if part.what is What.ALONE:
        return replace(spec, task_group="", placeholder=False)
    return spec


def _where(where: Constraints, text: str) -> Constraints:
    if text.startswith(TOLERATES):
        named, _, effect = text.removeprefix(TOLERATES).rpartition(":")
        key, _, value = named.partition("=")
        return replace(where, tolerations=(*where.tolerations, Toleration(key, "Equal", value, effect)))
    if text == "selector":
        return replace(where, selector=(), node_terms=())
    if text == "affinity":
        return replace(where, affinity=())
    if text == "anti-affinity":
        return replace(where, anti_affinity=())
    if text == "spread":
        return replace(where, spread=())
    return replace(where, ports=())
