"""The recorded core's rules to the letter, each in the place of the decision that we took instead.

Decides nothing of its own: every rule is what the recorded core was seen to do, where ours differs on purpose (the rows
of the compatibility page). With a rule in force, a scenario that differs for that decision alone must agree; so each
difference is explained by a named decision, or it is none. Invariant: outside of `literal` nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from fairlead.core.acts import quota_clocks
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue, QueueState
from fairlead.core.model.resources import add_to, fits_in, take_from
from fairlead.policy.preemption import guarantee, quota, required_node, victims
from fairlead.policy.preemption.queue_snapshot import QueueSnapshots

Amounts = Mapping[str, int]


def larger(left: Amounts, right: Amounts) -> bool:
    """Whether `left` is larger by the names that both have: nowhere smaller, and somewhere larger."""
    shared = [(v, right[n]) for n, v in left.items() if n in right]
    return all(a >= b for a, b in shared) and (not shared or any(a != b for a, b in shared))


def as_large_as_the_ask(_: Partition, ask: Ask, node: Node, found: list[Ask]) -> tuple[Ask, ...]:
    """By guarantee: victims until together they are as large as the ask, whatever is free; none if they never are."""
    if not fits_in(ask.items, node.free):
        found = [v for v in found if v.node is node]
    total: dict[str, int] = {}
    taken: list[Ask] = []
    for victim in found:
        if not larger(dict(ask.items), total):
            break
        add_to(total, victim.items)
        taken.append(victim)
    return () if larger(dict(ask.items), total) else tuple(taken)


def below_its_guarantee(snapshots: QueueSnapshots, ask: Ask, work: Iterable[Ask]) -> Iterator[Ask]:
    """By guarantee: a queue above its guarantee may lose work that brings it below."""
    mine = snapshots.ask_queue
    for victim in work:
        theirs = snapshots.of(victim.app.queue)
        left = theirs.remaining()
        if left and all(left.get(n, 0) >= 0 for n, _ in ask.items):
            continue
        mark = snapshots.mark()
        snapshots.remove(theirs, victim.items)
        entitled = mine.remaining()
        if not entitled or any(v > entitled[n] for n, v in victim.items if n in entitled):
            snapshots.undo(mark)
            return
        snapshots.add(mine, victim.items)
        yield victim


def on_a_node_of_its_own(*_: object) -> None:
    """By guarantee: each ask has work stopped on another node, whatever room comes beside those that did before."""


def with_the_shared_offset(leaf: Queue, standing: int) -> dict[Queue, int]:
    """By guarantee: the offset of a queue that ask and victim share is added to the ask alone."""
    seen: dict[Queue, int] = {}
    for queue in leaf.lineage:
        rules = queue.properties
        standing = rules.priority_offset if rules.priority_fence else standing + rules.priority_offset
        seen[queue] = standing
    return seen


def whatever_is_free_there(_: Partition, ask: Ask, node: Node, *_nominees: object, **_more: object) -> list[Ask]:
    """Required node: victims until they alone are as large as the ask."""
    names = {name for name, _ in ask.items}
    found = [
        a
        for a in node.allocations
        if not a.required_node
        and a.priority <= ask.priority
        and a.evict_cause is None
        and any(name in names for name, _ in a.items)
    ]
    found.sort(key=victims.reluctance)
    free, total = dict(node.free), dict[str, int]()
    taken: list[Ask] = []
    for victim in found:
        add_to(free, victim.items)
        add_to(total, victim.items)
        taken.append(victim)
        if fits_in(ask.items, total):
            break
    return taken if fits_in(ask.items, free) else []


def one_resource_is_enough(_: Partition, __: Queue, leaf: Queue, share: Amounts) -> list[Ask]:
    """By quota: enough is taken when one resource is covered; a victim that is put back for the guarantee is taken off
    the sum twice; and the leaf's own clock is stopped.
    """
    leaf.quota_due_ms = None
    found = [
        a
        for app in leaf.applications.values()
        for a in app.asks.values()
        if a.node is not None
        and a.evict_cause is None
        and not a.required_node
        and all(v <= share[n] for n, v in a.items if n in share)
    ]
    found.sort(key=victims.reluctance)
    total: dict[str, int] = {}
    left = dict(leaf.allocated)
    taken: list[Ask] = []
    for victim in found:
        if not larger(share, total):
            continue
        take_from(left, victim.items)
        if leaf.guaranteed and larger(leaf.guaranteed, left):
            add_to(left, victim.items)
            for name, amount in victim.items:
                total[name] = total.get(name, 0) - amount
            continue
        add_to(total, victim.items)
        taken.append(victim)
    return taken


def only_what_is_guaranteed(partition: Partition, queue: Queue) -> Amounts:
    """By quota: a queue with a guarantee gives of the resources that this names, and of no others."""
    used = quota._staying(partition, queue)
    return used if queue.guaranteed is None else {n: max(used.get(n, 0) - v, 0) for n, v in queue.guaranteed.items()}


def the_leaf_alone(_: Queue, leaf: Queue) -> list[Queue]:
    """By quota: work may bring a queue above its leaf below its guarantee."""
    return [leaf] if leaf.guaranteed else []


def only_its_part(*_: object) -> Iterator[tuple[Queue, Amounts]]:
    """By quota: no leaf gives more than its part of what is too much, also where others cannot give theirs."""
    yield from ()


def wholly_lower(new: Amounts, old: Amounts | None) -> bool:
    """By quota: a change starts the clock when every resource is lowered or equal; a first maximum does not."""
    if old is None:
        return False
    names = new.keys() | old.keys()
    return all(old.get(n, 0) >= new.get(n, 0) for n in names) and any(old.get(n, 0) != new.get(n, 0) for n in names)


def no_more_than_may(queue: Queue, change: int) -> None:
    """`maxapplications`: those that run beyond it are not counted, and each that ends is taken off."""
    for above in queue.lineage:
        running = max(above.running + change, 0)
        above.running = min(running, above.max_applications) if change > 0 and above.max_applications else running
    if change < 0:
        queue.open_gates()


def draining_by_itself(queue: Queue) -> Queue | None:
    """A queue that drains: what placement made below it does not."""
    return queue if queue.state is QueueState.DRAINING else None


RULES: dict[str, tuple[Any, str, Any]] = {
    "leaf that placement made, below a queue that drains": (Queue, "draining", property(draining_by_itself)),
    "`maxapplications` is exceeded": (Queue, "count_running", no_more_than_may),
    "guarantee: how many victims": (guarantee, "_as_many_as_needed", as_large_as_the_ask),
    "guarantee: law 2": (guarantee, "_taken", below_its_guarantee),
    "guarantee: an ask that fits on the node of another one": (guarantee, "_beside_others", on_a_node_of_its_own),
    "guarantee: offset of a queue that ask and victim share": (victims, "standing_by_queue", with_the_shared_offset),
    "required node: how many victims": (required_node, "_victims", whatever_is_free_there),
    "quota: when enough is taken": (quota, "_victims", one_resource_is_enough),
    "quota: what a guarantee does not name": (quota, "_weight", only_what_is_guaranteed),
    "quota: what single leaves cannot give": (quota, "_rest", only_its_part),
    "quota: guarantee above the leaf": (quota, "_guaranteed", the_leaf_alone),
    "quota: which change starts the clock": (quota_clocks, "_is_lower", wholly_lower),
}
"""The decisions, as the compatibility page names them, each with what takes its place."""


@contextmanager
def literal(*names: str) -> Iterator[None]:
    """The named rules are as in the recorded core inside, and ours outside."""
    with ExitStack() as stack:
        for name in names:
            module, attribute, rule = RULES[name]
            stack.enter_context(patch.object(module, attribute, rule))
        yield
