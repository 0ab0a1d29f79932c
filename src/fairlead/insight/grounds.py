"""Grounds: levers on what others have set in an ask's way, and on what it says of itself beyond its size and priority.

Decides which things around an ask are worth a trial: attributes, taints and drains of nodes, kept turns, waiting work
that has nodes set aside or space held, guarantees, properties of queues, and time; and of its own words constraints,
that it is idle, that it may stop nobody, that it names one node, its gang, a time limit that is too long to pass a kept
turn. Each is a guess that `unblock` confirms or drops. Never tries anything itself. Invariant: every part says truly
what is so now.

Disruption budgets are none of them: work is stopped against a budget where there is no other choice, so that no budget
keeps an ask from starting. What a change would stop against one is said with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.acts.terminating import grace_left
from fairlead.core.books.classes import NEVER
from fairlead.core.books.timers import ATTEMPT
from fairlead.core.books.windows import TIMER as WINDOW
from fairlead.core.model.constraints import DOES_NOT_EXIST, EXISTS, GT, IN, NOT_IN, Requirement
from fairlead.core.model.matching import holds, keeps_away, matches, tolerates
from fairlead.insight.changes import spec_of_queue, text_of
from fairlead.insight.levers import Lever, grain, held_back_by, together
from fairlead.insight.line import pending
from fairlead.insight.parts import TOLERATES, Part, What
from fairlead.insight.places import DRAINING, Place
from fairlead.policy.eligibility import attempt_times
from fairlead.policy.eligibility.start_estimates import expected_start
from fairlead.policy.order.effective_priority import weaker_than

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.constraints import Taint

DAY_MS = 86_400_000


def grounds(partition: Partition, ask: Ask, around: Sequence[Place]) -> Iterator[Iterable[Lever]]:
    """Levers in groups: of each group the first that helps is enough."""
    yield from turns(partition, ask)
    yield drains(ask, around)
    yield described(ask, around)
    yield rivals(partition, ask, around)
    yield guarantees(partition, ask)
    yield protections(partition, ask)


# -- nodes --------------------------------------------------------------------------------------------------------


def drains(ask: Ask, around: Sequence[Place]) -> list[Lever]:
    """Drained nodes that would take it, those that lack least first; where all are too small the one that lacks least,
    for less of it might start there.
    """
    drained = [p.node for p in around if p.closed == DRAINING]
    large_enough = [node for node in drained if node.fits_total(ask.items)]
    return [together(Part(What.DRAIN, node.id, 0, 1)) for node in large_enough or drained[:1]]


def described(ask: Ask, around: Sequence[Place]) -> Iterator[Lever]:
    """What nodes would have to say of themselves: attributes that it asks for, and no taint that it does not bear."""
    for place in around:
        if ask.required_node not in ("", place.node.id) or not place.node.fits_total(ask.items):
            continue
        node = place.node
        wanted = attributes_for(ask, node)
        if wanted is None:
            continue
        parts = [Part(What.ATTRIBUTE, node.id, 0, 1, text=text) for text in wanted]
        parts += [Part(What.TAINT, node.id, 0, 1, text=text_of(taint)) for taint in not_tolerated(node, ask)]
        if parts and not node.schedulable:
            parts.append(Part(What.DRAIN, node.id, 0, 1))
        if parts:
            yield together(*parts)


def attributes_for(ask: Ask, node: Node) -> list[str] | None:
    """What the node would have to say so that the ask's selector and node terms name it; None: it cannot.

    Of several node terms the one that needs least.
    """
    where = ask.spec.where
    labels = dict(node.labels)
    if not _make_hold(where.selector, labels):
        return None
    best: dict[str, str] | None = labels if not where.node_terms else None
    for term in where.node_terms:
        tried = dict(labels)
        if _make_hold(term, tried) and (best is None or _distance(node, tried) < _distance(node, best)):
            best = tried
    if best is None or not matches(where.selector, best):
        return None
    new = [f"{key}={value}" for key, value in best.items() if node.labels.get(key) != value]
    return new + [f"-{key}" for key in node.labels if key not in best]


def _make_hold(conditions: Sequence[Requirement], labels: dict[str, str]) -> bool:
    """Change the labels so that all of these hold; False when that cannot be done one by one."""
    for condition in conditions:
        if holds(condition, labels):
            continue
        key, operator = condition.key, condition.operator
        if operator == IN:
            labels[key] = condition.values[0]
        elif operator == EXISTS:
            labels[key] = "yes"
        elif operator in (NOT_IN, DOES_NOT_EXIST):
            labels.pop(key, None)
        else:
            bound = int(condition.values[0])
            labels[key] = str(bound + 1 if operator == GT else bound - 1)
    return all(holds(condition, labels) for condition in conditions)


def _distance(node: Node, labels: dict[str, str]) -> int:
    return sum(node.labels.get(key) != labels.get(key) for key in {**node.labels, **labels})


# -- who is in the way --------------------------------------------------------------------------------------------


def turns(partition: Partition, ask: Ask) -> Iterator[list[Lever]]:
    """Reservations lifted (those that nobody ordered: the bound that gave them), or backfill past them."""
    found = held_back_by(partition, ask)
    if not found:
        return
    parts: dict[Part, None] = {}
    for holder, reservation in found:
        if reservation.by_itself:
            parts[Part(What.PROPERTY, holder.app.queue.path, 0, 1, text="-wait.max")] = None
        else:
            parts[Part(What.TURN, f"{holder.app.id}/{holder.key}", 0, 1)] = None
    if _are_in_file(partition, parts):
        yield [together(*parts)]
    leaf = ask.app.queue
    if not ask.spec.idle and not leaf.properties.easy_backfill:
        part = Part(What.PROPERTY, leaf.path, 0, 1, text="backfill=easy")
        yield [together(part)] if _are_in_file(partition, [part]) else []


def rivals(partition: Partition, ask: Ask, around: Sequence[Place]) -> list[Lever]:
    """Waiting work that has a turn kept, a node set aside, or space held: the end of one of them."""
    found: dict[Ask, None] = dict.fromkeys(holder for holder, _ in held_back_by(partition, ask))
    for place in around:
        if not place.closed or place.node.reservations:
            found |= dict.fromkeys([*place.node.reservations, *place.node.held])
    found |= dict.fromkeys(partition.nominations)
    others = [other for other in found if other is not ask and other.pending]
    return [together(Part(What.CANCEL, f"{a.app.id}/{a.key}", 0, 1)) for a in others]


def _are_in_file(partition: Partition, parts: Sequence[Part] | dict[Part, None]) -> bool:
    return all(
        part.what is not What.PROPERTY or spec_of_queue(partition.spec.root, part.subject) is not None for part in parts
    )


# -- what queues are promised and protected by --------------------------------------------------------------------


def guarantees(partition: Partition, ask: Ask) -> list[Lever]:
    """A higher guarantee of a queue on its way: those that are below theirs come first, and may have others stopped."""
    if partition.spec.preemption.rule == "priority" or ask.spec.idle:
        return []
    found = [lever for queue in ask.app.queue.lineage[:-1] if (lever := _guarantee(partition, queue, ask)) is not None]
    due_ms = attempt_times.due_ms(ask)
    if due_ms <= partition.now_ms or due_ms - partition.now_ms > DAY_MS:
        return found
    # Until then it stops nobody, whatever its queue is guaranteed.
    then = together(Part(What.TIME, "", partition.now_ms, due_ms, text=_OVER[ATTEMPT]))
    return [lever + then for lever in found]


def _guarantee(partition: Partition, queue: Queue, ask: Ask) -> Lever | None:
    if spec_of_queue(partition.spec.root, queue.path) is None:
        return None
    now, waits, rows = queue.guaranteed or {}, pending(partition)[queue][0], []
    for name, amount in ask.items:
        value = queue.allocated.get(name, 0) + amount
        if amount > 0 and value > now.get(name, 0):
            part = Part(What.GUARANTEED, queue.path, now.get(name, 0), value, name)
            rows.append((part, value + waits.get(name, 0), grain(partition, name)))
    return Lever(tuple(rows)) if rows else None


def protections(partition: Partition, ask: Ask) -> list[Lever]:
    """Queues that fence preemption in or keep it out: without that, own ones first."""
    if not partition.spec.preemption.enabled or ask.spec.idle or not ask.spec.allow_preempt_other:
        return []
    fenced = [q for q in ask.app.queue.lineage if q.properties.preemption_policy == "fence"]
    closed = [q for q in partition.root.walk() if q.properties.preemption_policy == "disabled"]
    parts = [Part(What.PROPERTY, queue.path, 0, 1, text="-preemption.policy") for queue in (*fenced, *closed)]
    return [together(part) for part in parts if _are_in_file(partition, [part])]


# -- time ---------------------------------------------------------------------------------------------------------

_OVER: dict[str, str] = {
    "backoff": "an application has rested long enough then",
    "application": "what is kept for a gang that has ended is given back then",
    "placeholders": "a gang has waited long enough then",
    "preempt": "others may be stopped then",
    "preempt-again": "work that is spared now may be stopped then",
    "quota": "a queue has to give back what it has above its maximum then",
    "reserve": "a node may be set aside for an ask then",
    "reservation": "a node that is set aside is given back then",
    "held": "what is held until then enters the line",
    "wait": "an ask has waited as long as its queue allows then",
    "queues": "queues that leave are gone then",
    WINDOW: "a window begins or ends then",
}
"""What is so at a time that a timer was set for, by its kind; others are of no use to anybody who waits."""


def horizon_ms(now_ms: int, pending: Sequence[tuple[int, str]]) -> int | None:
    """Up to when something may change by itself, but for windows a day at most; None: nothing does. `pending`: all
    timers, by kind.
    """
    ahead = [(due_ms, kind) for due_ms, kind in pending if due_ms > now_ms and kind != "ended"]
    return max((due_ms for due_ms, kind in ahead if due_ms <= now_ms + DAY_MS or kind == WINDOW), default=None)


def wait_until(now_ms: int, at_ms: int, pending: Sequence[tuple[int, str]]) -> Part:
    """That nothing happens until then, and what changes then."""
    kinds = {due_ms: kind for due_ms, kind in reversed(pending) if kind != "ended"}
    return Part(What.TIME, "", now_ms, at_ms, text=_OVER.get(kinds.get(at_ms, ""), "something falls due then"))


# -- what the ask says itself -------------------------------------------------------------------------------------


def terms(partition: Partition, ask: Ask, around: Sequence[Place]) -> Iterator[Iterable[Lever]]:
    """Levers in groups: of each group the first that helps is enough."""
    yield from constraints(ask)
    yield tolerations(ask, around)
    yield [together(Part(What.PLAIN, ask.key, 0, 1))] if ask.spec.idle else []
    yield may_stop_others(partition, ask)
    yield [together(Part(What.ANY_NODE, ask.key, 0, 1, text=ask.required_node))] if ask.required_node else []
    group = ask.app.groups.get(ask.spec.task_group)
    yield [together(Part(What.ALONE, ask.key, 0, 1, text=ask.spec.task_group))] if group is not None else []
    yield shorter(partition, ask)
    yield shorter_later(partition, ask)


def constraints(ask: Ask) -> Iterator[list[Lever]]:
    """Each kind of constraint that it has, dropped; and all of them, where it has several."""
    where = ask.spec.where
    has = {
        "selector": where.selector or where.node_terms,
        "affinity": where.affinity,
        "anti-affinity": where.anti_affinity,
        "spread": where.spread,
        "ports": where.ports,
    }
    parts = [Part(What.WHERE, ask.key, 0, 1, text=name) for name, there in has.items() if there]
    for part in parts:
        yield [together(part)]
    if len(parts) > 1:
        yield [together(*parts)]


def tolerations(ask: Ask, around: Sequence[Place]) -> list[Lever]:
    """The taints of a node that it would have to tolerate, for the nodes that lack least."""
    found: dict[tuple[Part, ...], None] = {}
    for place in around:
        taints = not_tolerated(place.node, ask)
        if taints:
            found[tuple(Part(What.WHERE, ask.key, 0, 1, text=f"{TOLERATES}{text_of(taint)}") for taint in taints)] = (
                None
            )
    return [together(*parts) for parts in found]


def not_tolerated(node: Node, ask: Ask) -> list[Taint]:
    """The taints of a node that keep the ask away."""
    mine = ask.spec.where.tolerations
    return [t for t in node.spec.taints if keeps_away(t) and not any(tolerates(each, t) for each in mine)]


def may_stop_others(partition: Partition, ask: Ask) -> list[Lever]:
    """That others might be stopped for it, where its class or it itself says no."""
    if ask.spec.allow_preempt_other or ask.spec.idle or not partition.spec.preemption.enabled:
        return []
    return [together(Part(What.STOPS_OTHERS, ask.key, 0, 1, text=says_never(partition, ask)))]


def says_never(partition: Partition, ask: Ask) -> str:
    """Who says that nothing is stopped for the ask: its class, as that is now, or what it was submitted as."""
    name = ask.spec.priority_class
    found = partition.admission.classes.get(name)
    is_class = found is not None and found.preemption_policy == NEVER
    return f"its priority class {name} says Never" if is_class else "it was submitted as work that stops nothing"


def shorter(partition: Partition, ask: Ask) -> list[Lever]:
    """A time limit with which it would be over when a window begins, or when those start that it has to let pass, where
    it may pass at all: of several the longest that helps.
    """
    now_ms, limit_ms = partition.now_ms, ask.spec.time_limit_ms or 0
    parts = _over_before_windows(partition, ask, now_ms)
    holders = [holder for holder, _ in held_back_by(partition, ask)]
    if holders and ask.app.queue.properties.easy_backfill and not ask.spec.idle:
        starts = [expected_start(partition, holder, weaker_than(partition, holder)) for holder in holders]
        ends = [start.start_ms - now_ms for start in starts if start is not None]
        if len(ends) == len(starts) and min(ends) > 0:
            parts.append(Part(What.SHORTER, ask.key, limit_ms, min(ends)))
    return [together(part) for part in sorted(parts, key=lambda part: -part.value)]


def shorter_later(partition: Partition, ask: Ask) -> Iterator[Lever]:
    """A time limit with which it would be over before a window that begins once another one is over."""
    ends = {ends_ms for _, _, ends_ms in partition.admission.windows.ahead_of(ask, partition.now_ms)}
    for ends_ms in sorted(ends):
        then = Part(What.TIME, "", partition.now_ms, ends_ms, text=_OVER[WINDOW])
        yield from (together(part, then) for part in _over_before_windows(partition, ask, ends_ms))


def _over_before_windows(partition: Partition, ask: Ask, at_ms: int) -> list[Part]:
    """If it started then, or after the grace of work that is stopped for it: the time limits with which it would run
    into one window less each, the longest first.
    """
    limit_ms, windows = ask.spec.time_limit_ms or 0, partition.admission.windows
    running = (other for node in partition.nodes.nodes.values() for other in node.allocations)
    graces = {0, *(grace_left(partition, other) for other in running)} if windows else {0}
    ahead = {starts_ms for _, starts_ms, _ in windows.ahead_of(ask, at_ms, max(graces)) if starts_ms > at_ms}
    ends = {starts_ms - at_ms - grace_ms for starts_ms in ahead for grace_ms in graces}
    fits = sorted((end for end in ends if end > 0 and (not limit_ms or end < limit_ms)), reverse=True)
    return [Part(What.SHORTER, ask.key, limit_ms, end) for end in fits]
