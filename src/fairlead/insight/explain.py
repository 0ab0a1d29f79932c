"""Explain: why an ask is where it is, with every number that matters, and what would change it.

Decides what belongs to an answer and in which words. The verdict itself is the scheduler's own (`policy.waiting`); the
levels, limits and nodes around it are read from the books. Never changes anything; smallest changes are found by
`unblock`, on copies. Invariant: every number is the scheduler's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.idle import payer
from fairlead.core.lifecycle import State
from fairlead.core.quantities import format_amounts
from fairlead.core.reasons import Reason
from fairlead.core.specs import DEFAULT_PARTITION
from fairlead.insight.places import Place, places
from fairlead.insight.trial import on_a_copy
from fairlead.insight.unblock import Effort, Ways, unblock, ways
from fairlead.policy.ordering import application_key

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Ask
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.scheduler import Scheduler

__all__ = ["Effort", "Verdict", "explain", "unblock"]

WAYS_BEGIN = "It runs if "
"""How the sentence begins that says what would start an ask."""
HOLDERS = 5
CLOSEST = 3
PASSED_OVER = 3

Visible = Callable[["Application"], bool]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why an ask is where it is."""

    partition: str
    application: str
    key: str
    queue: str
    state: str
    """`waiting` or `running`."""
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
            "passed_over": [asdict(each) for each in self.passed_over],
            "changes": None,
        }
        if self.ways is not None:
            plain["changes"] = [change.as_dict() for change in self.ways.changes]
            plain["starts_by_itself"] = self.ways.by_itself is not None
            plain["changes_complete"] = self.ways.is_complete
        return plain


def explain(
    scheduler: Scheduler,
    application: str,
    key: str,
    partition: str = DEFAULT_PARTITION,
    *,
    changes: Effort | None = None,
    visible: Visible | None = None,
    fork: bool | None = None,
) -> Verdict:
    """Why this ask waits, or why it runs before its neighbours.

    `changes`: also find the smallest changes that start it, with so much effort. `visible` says which applications
    the asker may see; others are counted, not named. Raises KeyError when there is no such ask.
    """
    part = scheduler.cluster.partitions[partition]
    ask = part.applications[application].asks[key]
    sees = visible or _everybody
    if not ask.pending:
        return _running(scheduler, part, ask, sees)
    reason = scheduler.why(application, key, partition)
    assert reason is not None
    levels = tuple(_levels(ask))
    around = places(part, ask)
    held = list(_holders(part, ask, levels, around))
    shown = [_holder(each) for each in held if sees(each.app)]
    found = ways(scheduler, (partition, application, key), changes, fork=fork) if changes is not None else None
    return Verdict(
        partition=partition,
        application=application,
        key=key,
        queue=ask.app.queue.path,
        state="waiting",
        sentence=reason.sentence(),
        reason=reason,
        needed=dict(ask.items),
        priority=ask.priority,
        position=_position(ask),
        waiting_in_queue=sum(app.pending_count for app in ask.app.queue.applications.values()),
        levels=levels,
        nodes=_count(around, ask),
        closest=tuple(_room(place) for place in around[:CLOSEST]),
        holders=tuple(shown[:HOLDERS]),
        hidden_holders=len(held) - len(shown),
        ways=found,
    )


def _everybody(app: Application) -> bool:
    del app
    return True


# -- what runs ----------------------------------------------------------------------------------------------------


def _running(scheduler: Scheduler, partition: Partition, ask: Ask, sees: Visible) -> Verdict:
    node = ask.node.id if ask.node is not None else ""
    passed = tuple(_passed_over(scheduler, partition, ask, sees))
    sentence = f"runs on {node}" if ask.evict_cause is None else f"was told to stop on {node} ({ask.evict_cause})"
    return Verdict(
        partition=partition.name,
        application=ask.app.id,
        key=ask.key,
        queue=ask.app.queue.path,
        state="running",
        sentence=sentence,
        needed=dict(ask.items),
        priority=ask.priority,
        node=node,
        waiting_in_queue=sum(app.pending_count for app in ask.app.queue.applications.values()),
        passed_over=passed,
    )


def _passed_over(scheduler: Scheduler, partition: Partition, ask: Ask, sees: Visible) -> Iterator[PassedOver]:
    """Asks of its queue that came before it and wait: the oldest ones, and why each still does."""
    earlier = [
        other
        for app in ask.app.queue.applications.values()
        if app.pending_count and sees(app)
        for other in app.asks.values()
        if other.pending and (other.created_ms, other.seq) < (ask.created_ms, ask.seq)
    ]
    earlier.sort(key=lambda other: (other.created_ms, other.seq))
    for other in earlier[:PASSED_OVER]:
        reason = scheduler.why(other.app.id, other.key, partition.name)
        yield PassedOver(other.key, other.priority, reason.sentence() if reason is not None else "")


# -- levels -------------------------------------------------------------------------------------------------------


def _levels(ask: Ask) -> Iterator[Level]:
    """Every maximum that the ask counts against, from its queue up, then the limits of its user and group."""
    app = ask.app
    paid = payer(ask).lineage
    for queue in app.queue.lineage:
        if queue in paid:
            yield from _amounts(queue.path, "", queue.max or {}, queue.allocated, ask)
        if queue.max_applications and app.state is State.ACCEPTED and app.id not in queue.allocating_accepted:
            running = queue.running + len(queue.allocating_accepted)
            yield Level(queue.path, "", "applications", 1, running, queue.max_applications)
    for ceiling in app.allowance.ceilings if app.allowance is not None else ():
        who = f"{ceiling.kind} {ceiling.name}"
        yield from _amounts(ceiling.queue, who, ceiling.max or {}, ceiling.used, ask)
        if ceiling.max_applications and app.state is State.ACCEPTED and app.id not in ceiling.applications:
            yield Level(ceiling.queue, who, "applications", 1, len(ceiling.applications), ceiling.max_applications)


def _amounts(queue: str, who: str, most: Mapping[str, int], used: Mapping[str, int], ask: Ask) -> Iterator[Level]:
    for name, amount in ask.items:
        if name in most and amount > 0:
            yield Level(queue, who, name, amount, used.get(name, 0), most[name])


def _position(ask: Ask) -> int:
    """How many asks of its queue come before it in the order of applications, then of asks, plus one."""
    app = ask.app
    mine = application_key(app)
    before = 0
    for other in app.queue.applications.values():
        if not other.pending_count or other is app:
            continue
        if application_key(other) < mine:
            before += other.pending_count
    return before + 1 + sum(1 for a in app.asks.values() if a.pending and a.line_key < ask.line_key)


# -- nodes --------------------------------------------------------------------------------------------------------


def _count(around: list[Place], ask: Ask) -> NodeCount:
    opened = [place for place in around if place.is_open]
    return NodeCount(
        total=len(around),
        open=len(opened),
        with_room=sum(not place.missing for place in opened),
        large_enough=sum(place.node.fits_total(ask.items) for place in opened),
        closed=dict(sorted(Counter(place.closed for place in around if place.closed).items())),
    )


def _room(place: Place) -> NodeRoom:
    names = [name for name in place.node.total if name in place.missing] or list(place.node.total)
    return NodeRoom(
        place.node.id,
        {name: place.node.free.get(name, 0) for name in names},
        dict(place.missing),
        place.closed,
        _frees_ms(place),
    )


def _frees_ms(place: Place) -> int | None:
    """When the time limits of what runs there have given back what is missing."""
    missing = dict(place.missing)
    if not missing:
        return None
    ends = [(until, ask) for ask in place.node.allocations if (until := _until_ms(ask)) is not None]
    for until, ask in sorted(ends, key=lambda each: (each[0], each[1].seq)):
        back = dict(ask.items)
        missing = {name: lack - back.get(name, 0) for name, lack in missing.items() if lack > back.get(name, 0)}
        if not missing:
            return until
    return None


def _until_ms(ask: Ask) -> int | None:
    limit = ask.spec.time_limit_ms
    return ask.allocated_ms + limit if limit is not None and ask.allocated_ms is not None else None


# -- holders ------------------------------------------------------------------------------------------------------


def _holders(partition: Partition, ask: Ask, levels: Iterable[Level], around: list[Place]) -> Iterator[Ask]:
    """Who has what is short: under the first level that blocks, else on the nodes that come closest."""
    level = next((each for each in levels if each.blocks), None)
    if level is not None and level.queue != "root":
        queue = partition.root.find(level.queue)
        held = [a for q in (queue.walk() if queue is not None else ()) for a in _allocations(q, level, ask)]
        name = level.resource
        yield from sorted(held, key=lambda a: (-dict(a.items).get(name, 0), a.seq))
        return
    for place in [p for p in around if p.is_open and p.missing][:CLOSEST]:
        having = [a for a in place.node.allocations if any(dict(a.items).get(name) for name in place.missing)]
        yield from sorted(having, key=lambda a: a.seq)


def _allocations(queue: Queue, level: Level, ask: Ask) -> Iterator[Ask]:
    kind, _, who = level.who.partition(" ")
    for app in queue.applications.values():
        counts = not kind or (app.user == ask.app.user if kind == "user" else app.limit_group == who)
        if app.allocations and counts:
            for each in app.allocated_asks():
                if level.resource == "applications" or dict(each.items).get(level.resource):
                    yield each


def _holder(ask: Ask) -> Holder:
    return Holder(
        ask.app.id,
        ask.key,
        ask.app.user,
        ask.app.queue.path,
        ask.node.id if ask.node is not None else "",
        dict(ask.items),
        ask.priority,
        ask.allocated_ms,
        _until_ms(ask),
    )


# -- words --------------------------------------------------------------------------------------------------------


def _sentences(verdict: Verdict) -> Iterator[str]:
    yield f"{verdict.key} {'waits: it ' if verdict.state == 'waiting' else ''}{verdict.sentence}."
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
    yield f"Of {nodes.total} nodes {nodes.open} are open to it{of} and {nodes.with_room} have room."
    near = verdict.closest[0] if verdict.closest else None
    if not nodes.with_room and near is not None and near.missing and not near.closed:
        yield f"{near.node} lacks least: {format_amounts(dict(near.missing))}."


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


def explained(scheduler: Scheduler, application: str, key: str, partition: str = DEFAULT_PARTITION) -> dict[str, Any]:
    """`explain` with changes, as plain values, on a copy of the scheduler."""
    return on_a_copy(scheduler, lambda copy: explain(copy, application, key, partition, changes=Effort()).as_dict())
