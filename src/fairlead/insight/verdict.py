"""Verdicts: why an ask is where it is, as values and in words.

Decides what belongs to an answer, its names, and the sentences that it is told in. Never looks anything up: `explain`
does. Invariant: what the words say is in the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.reasons import Reason

if TYPE_CHECKING:
    from fairlead.insight.unblock import Ways

OF_THE_ASK = ("needs", "may", "takes", "waits", "fits", "stops")
"""First words of reasons that say something of the ask itself."""
WAYS_BEGIN = "It runs if "
"""How the sentence begins that says what would start an ask."""


@dataclass(frozen=True, slots=True)
class Level:
    """A maximum on the way to the root: a queue's own, or the limit of a user or group there."""

    queue: str
    who: str
    """Empty: the queue's own maximum; else `user NAME` or `group NAME`."""
    resource: str
    """`applications` for a number of applications."""
    needed: int
    used: int
    max: int

    @property
    def blocks(self) -> bool:
        """Whether it has no room."""
        return self.used + self.needed > self.max


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody who has what is short."""

    application: str
    key: str
    user: str
    queue: str
    node: str
    amounts: Mapping[str, int]
    priority: int
    since_ms: int | None
    until_ms: int | None
    """When its time limit ends it; None: it declared none."""


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """A node that comes close."""

    node: str
    free: Mapping[str, int]
    missing: Mapping[str, int]
    closed: str
    """Why it is out of the question whatever is free; empty: it is not."""
    frees_ms: int | None
    """When enough of what runs there is over by its time limits; None: they do not say."""


@dataclass(frozen=True, slots=True)
class NodeCount:
    """All nodes, as the ask sees them."""

    total: int
    open: int
    with_room: int
    large_enough: int
    """Open ones that would take it if they were empty."""
    closed: Mapping[str, int]
    """How many are out of the question, by why."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An ask that came earlier to the same queue and still waits, while this one runs."""

    key: str
    priority: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """That a running work was told to stop, and has not yet."""

    cause: str
    rule: str
    """By which rule of the scheduler; empty: it was told by somebody else, or before a restart."""
    for_whom: str
    """Whom it makes room for, as `application/key` or a key; empty: nobody."""

    def words(self) -> str:
        """As part of a sentence."""
        room = f" to make room for {self.for_whom.rpartition('/')[2]}" if self.for_whom else ""
        return f"{room}{why_stopped(self.rule) or f' ({self.cause})'}"


RULES = {
    "priority": "rule priority: that has a strictly higher priority",
    "guarantee": "rule guarantee: its queue has less than it is guaranteed",
    "reclaim": "rule reclaim: idle work gives back what it borrowed",
    "required-node": "rule required-node: that can run on this node only",
    "quota": "rule quota: its queue has to give back what it has above its maximum",
    "taint": "rule taint: the node has a taint that it does not tolerate",
    "placeholder": "rule placeholder: it kept room for others of its gang",
    "gang-deadlock": "rule gang-deadlock: its gang gives way to one that it held back, and comes back",
}
"""Why the rules of the scheduler stop work, by the names that `Evict` gives them."""


def why_stopped(rule: str) -> str:
    """The rule in words, in brackets after a space; nothing for no rule."""
    return f" ({RULES.get(rule, f'rule {rule}')})" if rule else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why an ask is where it is."""

    partition: str
    application: str
    key: str
    queue: str
    state: str
    """`waiting`, `running`, or `refused` (its application was not taken in)."""
    sentence: str
    reason: Reason | None = None
    needed: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0
    node: str = ""
    position: int = 0
    """Its place among what waits in its queue, from 1; 0: it does not wait."""
    waiting_in_queue: int = 0
    levels: tuple[Level, ...] = ()
    nodes: NodeCount | None = None
    closest: tuple[NodeRoom, ...] = ()
    holders: tuple[Holder, ...] = ()
    hidden_holders: int = 0
    """How many more have what is short that the asker may not see."""
    stopped: Stopped | None = None
    """It runs still and was told to stop."""
    passed_over: tuple[PassedOver, ...] = ()
    ways: Ways | None = None
    """None: changes were not asked for."""

    def paragraph(self) -> str:
        """The whole of it for people, in one paragraph."""
        return " ".join(_sentences(self))

    def as_dict(self) -> dict[str, Any]:
        """As plain values, JSON-ready."""
        plain = {
            "partition": self.partition,
            "application": self.application,
            "key": self.key,
            "queue": self.queue,
            "state": self.state,
            "sentence": self.sentence,
            "paragraph": self.paragraph(),
            "details": list(_details(self)),
            "reason": self.reason.as_dict() if self.reason is not None else None,
            "needed": dict(self.needed),
            "priority": self.priority,
            "node": self.node,
            "position": self.position,
            "waiting_in_queue": self.waiting_in_queue,
            "levels": [asdict(level) | {"blocks": level.blocks} for level in self.levels],
            "nodes": asdict(self.nodes) if self.nodes is not None else None,
            "closest": [asdict(node) for node in self.closest],
            "holders": [asdict(holder) for holder in self.holders],
            "hidden_holders": self.hidden_holders,
            "stopped": asdict(self.stopped) if self.stopped is not None else None,
            "passed_over": [asdict(each) for each in self.passed_over],
            "changes": None,
        }
        if self.ways is not None:
            plain["changes"] = [change.as_dict() for change in self.ways.changes]
            plain["starts_by_itself"] = self.ways.by_itself is not None
            plain["changes_complete"] = self.ways.is_complete
        return plain


# -- words --------------------------------------------------------------------------------------------------------


def _sentences(verdict: Verdict) -> Iterator[str]:
    waits = verdict.state == "waiting"
    # Reasons begin with what the ask does ("needs ..."), or with whatever is in its way ("queue root.a runs ...").
    it = "it " if waits and verdict.sentence.partition(" ")[0] in OF_THE_ASK else ""
    yield f"{verdict.key} {'waits: ' if waits else ''}{it}{verdict.sentence}."
    yield from _details(verdict)


def _details(verdict: Verdict) -> Iterator[str]:
    """Everything beyond the verdict itself."""
    if verdict.state != "waiting":
        yield from _before_neighbours(verdict)
        return
    if verdict.waiting_in_queue > 1:
        yield f"It is number {verdict.position} of {verdict.waiting_in_queue} that wait in {verdict.queue}."
    yield from _about_levels(verdict)
    yield from _about_nodes(verdict)
    if verdict.holders:
        named = ", ".join(f"{h.key} of {h.user} ({format_amounts(dict(h.amounts))})" for h in verdict.holders[:3])
        count = len(verdict.holders) + verdict.hidden_holders
        yield f"Held by {named}{f' and {count - 3} more' if count > 3 else ''}."
    elif verdict.hidden_holders:
        yield f"Held by work of others ({verdict.hidden_holders})."
    if verdict.ways is not None:
        yield from _about_ways(verdict.ways)


def _before_neighbours(verdict: Verdict) -> Iterator[str]:
    for each in verdict.passed_over:
        than = "lower" if each.priority < verdict.priority else "higher" if each.priority > verdict.priority else "same"
        yield f"{each.key} came earlier and waits (priority {each.priority}, {than}): {each.reason}."


def _about_levels(verdict: Verdict) -> Iterator[str]:
    blocking = [
        level for level in verdict.levels if (level.blocks and level.queue != "root") or (level.blocks and level.who)
    ]
    for level in blocking[1:]:
        who = f"the limit of {level.who} in {level.queue}" if level.who else f"queue {level.queue}"
        if level.resource == "applications":
            yield f"Also {who} runs {level.used} of {level.max} applications."
        else:
            left, most = ({level.resource: n} for n in (max(level.max - level.used, 0), level.max))
            yield f"Also {who} has {format_amounts(left)} left of {format_amounts(most)}."


def _about_nodes(verdict: Verdict) -> Iterator[str]:
    nodes = verdict.nodes
    if nodes is None or not nodes.total:
        return
    ruled_out = ", ".join(f"{count} {why}" for why, count in nodes.closed.items())
    of = f" ({ruled_out})" if ruled_out else ""
    if nodes.total == 1:
        is_open, room = "is open" if nodes.open else "is not open", "room" if nodes.with_room else "no room"
        yield f"The only node {is_open} to it{of} and has {room}."
    else:
        yield f"Of {nodes.total} nodes {nodes.open} are open to it{of} and {nodes.with_room} have room."
    near = verdict.closest[0] if verdict.closest else None
    if not nodes.with_room and near is not None and near.missing and not near.closed:
        least = " least" if nodes.total > 1 else ""
        yield f"{near.node} lacks{least}: {format_amounts(dict(near.missing), up=True)}."


def _about_ways(found: Ways) -> Iterator[str]:
    if found.by_itself is not None:
        stops = ", ".join(key for _, _, key in found.by_itself.evicted[:3])
        yield f"It starts on {found.by_itself.node} without any change{f' once {stops} stopped' if stops else ''}."
    elif found.changes:
        clauses = [change.sentence().removeprefix("runs if ") for change in found.changes]
        yield f"{WAYS_BEGIN}{'; or it runs if '.join(clauses)}."
    elif found.is_complete:
        yield "No single change that was tried would start it now."
    else:
        yield "No change that would start it was found in the time allowed."
