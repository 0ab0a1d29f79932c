"""Reasons and expected starts, held against what follows when the cause goes, over random states under every rule.

What is named as the cause is taken away on a state read back from its dump, by exactly as much as the reason says, and
by one unit less. What is told beside it (levels, nodes, when it has room) must not say otherwise. Where nothing else
wants the room and all ends by its time limit, an expected start comes true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from properties.mixed import STEPS, Mixed
from properties.test_questions import PART, waiting

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model import reasons
from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import Cause, Configure, Event, Release, UpdateNode
from fairlead.core.model.matching import TOO_SMALL
from fairlead.core.model.reasons import Reason
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ClusterSpec, LimitSpec, QueueSpec
from fairlead.insight.changes import current_spec, edit_queue
from fairlead.insight.explain import explain
from fairlead.insight.trial import Name
from fairlead.scheduler import Scheduler
from fairlead.wire.verdicts import Verdict

RULES = ("guarantee", "priority", "both")
STATES = 1_000
State = dict[str, object]


class Ruled(Mixed):
    """A course under one rule of preemption."""

    def __init__(self, number: int, rule: str) -> None:
        self.rule = rule
        super().__init__(number)

    def _file(self, spec: ClusterSpec) -> ClusterSpec:
        spec = super()._file(spec)
        part = spec.partitions[0]
        return replace(spec, partitions=(replace(part, preemption=replace(part.preemption, rule=self.rule)),))


def at_rest(number: int, rule: str) -> Scheduler:
    """Nothing more is decided now; who was told to stop may still run."""
    course = Ruled(number, rule)
    course.run(course.chance.randint(*STEPS))
    course.finish()
    course.scheduler.schedule(course.now_ms)
    return course.scheduler


# -- what is told beside it -----------------------------------------------------------------------------------------


def nothing_told_contradicts(reason: Reason, verdict: Verdict) -> None:
    """Levels and nodes say the same as the reason."""
    blocking = [level for level in verdict.levels if level.blocks]
    full = [level for level in blocking if level.queue != "root" or level.who]
    places = [level for level in blocking if level.resource == "applications"]
    nodes = verdict.nodes
    assert nodes is not None
    match reason:
        case reasons.QueueFull():
            assert any(level.queue == reason.queue and not level.who for level in verdict.levels if level.blocks)
        case reasons.LimitReached():
            assert any(level.queue == reason.queue and level.who for level in full)
        case reasons.ApplicationsAtMax() | reasons.LimitApplications():
            assert any(level.queue == reason.queue for level in places)
        case reasons.NoNodeHasRoom():
            assert (full, nodes.with_room, nodes.open) == ([], 0, reason.open_nodes)
        case reasons.NoNodeSuits():
            assert (full, nodes.large_enough) == ([], 0)
            assert nodes.open == reason.excluded.get(TOO_SMALL, 0)
        case reasons.TooBigForEveryNode():
            assert nodes.large_enough == 0
        case _:
            assert not isinstance(reason, reasons.NextInLine), "nothing is next in line when all is at rest"


# -- the cause goes -------------------------------------------------------------------------------------------------


def taken_away(s: Scheduler, reason: Reason, less: int) -> list[Event]:
    """What takes the cause away, or all but so many units of it; nothing where that is not tried."""
    match reason:
        case reasons.QueueFull():
            most = _enough(reason.needed, reason.free, reason.max, less)
            return _with_queue(s, reason.queue, lambda queue: replace(queue, max=_with(queue.max, most)))
        case reasons.LimitReached():
            most = _enough(reason.needed, reason.free, reason.max, less)
            return _with_queue(s, reason.queue, lambda queue: _with_limit(queue, reason, most))
        case reasons.ApplicationsAtMax():
            count = reason.running + 1 - less
            return _with_queue(s, reason.queue, lambda queue: replace(queue, max_applications=count))
        case reasons.NoNodeHasRoom() if reason.node:
            node = s.cluster.partitions[PART].nodes.nodes[reason.node]
            if less and any(node.free.get(r, 0) < node.available.get(r, 0) for r in reason.needed):
                return []  # What is kept may be given back for less: who it is kept for may then have enough.
            # Of what others have yet to leave some may be kept as well: that has to be there, too.
            left, total = {r: node.free.get(r, 0) for r in reason.needed}, node.total
            more = {r: max(reason.needed[r] - left[r] - less, 0) for r in left if reason.needed[r] > left[r]}
            return [
                UpdateNode(reason.node, Resources({r: total.get(r, 0) + more.get(r, 0) for r in {**total, **more}}))
            ]
        case reasons.HeldForReservation() if not less:
            return _ends((reason.reserved_for,))
        case reasons.NodeReserved() if not less:
            return _ends(reason.reserved_for)
        case reasons.QueuePromised() | reasons.LimitPromised() if not less:
            return _ends(reason.promised_to)
        case _:
            return []


def _enough(needed: Mapping[str, int], free: Mapping[str, int], most: Mapping[str, int], less: int) -> dict[str, int]:
    return {name: most[name] + needed[name] - free[name] - less for name in needed}


def _with(limits: Limits | None, more: Mapping[str, int]) -> Limits:
    return Limits((limits.as_dict() if limits is not None else {}) | more)


def _with_limit(queue: QueueSpec, reason: reasons.LimitReached, most: Mapping[str, int]) -> QueueSpec:
    def of(limit: LimitSpec) -> tuple[str, ...]:
        return limit.users if reason.kind == "user" else limit.groups

    name = reason.name if any(reason.name in of(limit) for limit in queue.limits) else "*"
    limits = (replace(x, max_resources=_with(x.max_resources, most)) if name in of(x) else x for x in queue.limits)
    return replace(queue, limits=tuple(limits))


def _with_queue(s: Scheduler, path: str, edit: Callable[[QueueSpec], QueueSpec]) -> list[Event]:
    spec = current_spec(s)
    part = spec.partitions[0]
    try:
        return [Configure(replace(spec, partitions=(replace(part, root=edit_queue(part.root, path, edit)),)))]
    except KeyError:  # It is in no queue file.
        return []


def _ends(names: tuple[str, ...]) -> list[Event]:
    assert names, "nobody is named"
    return [Release(app or key, key) for app, _, key in (name.rpartition("/") for name in names)]


def _same(reason: Reason, other: Reason | None) -> bool:
    """Whether both name the same cause."""
    about = ("queue", "kind", "name", "reserved_for")
    return type(other) is type(reason) and all(getattr(reason, n, "") == getattr(other, n, "") for n in about)


def the_cause_is_the_cause(s: Scheduler, state: State, name: Name, reason: Reason) -> int:
    """Without it there is another reason or none, with one unit of it left it is the same. How many were tried."""
    tried = 0
    for less in (0, 1):
        events = taken_away(s, reason, less)
        if events:
            copy = Scheduler.load(state)
            for event in events:
                copy.handle(event, copy.cluster.now_ms)
            assert _same(reason, copy.why(*name[1:])) is bool(less), (reason, less, copy.why(*name[1:]))
            tried += 1
    return tried


# -- when it has room -----------------------------------------------------------------------------------------------


def it_starts_as_expected(state: State, name: Name, at_ms: int) -> None:
    """Nothing else waits or comes back, and what runs ends by its time limit: it starts by the time that was told."""
    s = Scheduler.load(state)
    part = s.cluster.partitions[PART]
    others = [each for each in waiting(s) if each != name]
    others += [(PART, app, held.spec.key) for app, held in part.held_asks]
    for _, app, key in others:
        s.handle(Release(app, key), s.cluster.now_ms)
    now = s.cluster.now_ms
    while True:
        leave = [Release(ask.app.id, ask.key, ask.evict_cause) for ask in _running(part) if ask.evict_cause is not None]
        decided = [*_told(s, leave, now), *s.schedule(now)]
        decided += _told(s, [Release(d.application, d.key, d.cause) for d in decided if isinstance(d, Evict)], now)
        decided += s.schedule(now)
        if any(isinstance(d, Allocated) and (d.application, d.key) == name[1:] for d in decided):
            return
        ends = {ask: end for ask in _running(part) if (end := _end_ms(ask)) is not None}
        moments = [max(end, now) for end in ends.values()]
        moments += [max(due, now + 1) for due in (s.next_wakeup_ms(),) if due is not None]
        assert moments, f"{name} has no room: {s.why(*name[1:])}"
        now = min(moments)
        assert now <= at_ms, f"{name} has no room by {at_ms}: {s.why(*name[1:])}"
        _told(s, [Release(a.app.id, a.key, Cause.FINISHED, exit_code=0) for a, end in ends.items() if end <= now], now)


def _running(part: Partition) -> Iterator[Ask]:
    return (ask for node in part.nodes.nodes.values() for ask in node.allocations)


def _told(s: Scheduler, events: list[Release], now_ms: int) -> list[Decision]:
    return [each for event in events for each in s.handle(event, now_ms)]


def _end_ms(ask: Ask) -> int | None:
    limit_ms = ask.spec.time_limit_ms
    return ask.allocated_ms + limit_ms if limit_ms is not None and ask.allocated_ms is not None else None


def _is_foreseeable(part: Partition, ask: Ask) -> bool:
    """Whether nothing that is told to stop comes back, or was what the ask wants to be with."""
    leaves = [other for other in _running(part) if other.evict_cause is not None]
    return not any(other.spec.retry is not None for other in leaves) and not (ask.where.affinity and leaves)


# -- all of it ------------------------------------------------------------------------------------------------------


def reasons_hold(rule: str, numbers: range) -> tuple[int, int]:
    """How many causes were taken away, and how many expected starts came true."""
    causes = starts = 0
    for number in numbers:
        s = at_rest(number, rule)
        state, part = s.dump(), s.cluster.partitions[PART]
        for name in waiting(s):
            reason = s.why(*name[1:])
            assert reason is not None
            assert Scheduler.load(state).why(*name[1:]) == reason, (number, name)
            nothing_told_contradicts(reason, explain(s, *name[1:]))
            causes += the_cause_is_the_cause(s, state, name, reason)
            at_ms = s.expected_start_ms(*name[1:])
            if at_ms is not None and _is_foreseeable(part, part.applications[name[1]].asks[name[2]]):
                it_starts_as_expected(state, name, at_ms)
                starts += 1
        assert s.dump() == state, f"{number}: asking changed the state"
    return causes, starts


@pytest.mark.parametrize("rule", RULES)
def test_a_reason_is_the_cause_and_an_expected_start_comes_true(steps: int, rule: str) -> None:
    """On some random states; on many in the slow tests."""
    many = max(steps // 500, 20)
    causes, starts = reasons_hold(rule, range(many))
    assert causes > many
    assert starts > many // 4


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rule", RULES)
def test_reasons_hold_on_many_states(rule: str) -> None:
    """With much of gangs and of what is protected, too."""
    causes, starts = reasons_hold(rule, range(20, STATES))
    print(f"\n{rule}: {causes} causes taken away, {starts} expected starts came true")
    assert causes > STATES
