"""Everything that could be otherwise in a small state, dimension by dimension, with every value that could matter.

Written apart from what proposes changes (`fairlead.insight.levers`, `grounds`): it knows the books and the names of the
dimensions alone, and leaves nothing out because it looks hopeless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.specs import PRIORITY_MAX
from fairlead.insight.changes import spec_of_queue, text_of
from fairlead.insight.parts import Part, What

Parts = tuple[Part, ...]
WIDER = 10
NODES = 4
CANCELS = 12
TOGETHER = 60
"""So many single changes are tried in pairs at most."""


def priorities(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """One above each that there is, seen through every sum of offsets."""
    known = {other.priority for app in partition.applications.values() for other in app.asks.values()}
    offsets = {0}
    for queue in partition.root.walk():
        offsets |= {sum(above.properties.priority_offset for above in queue.lineage[:n]) for n in range(5)}
    tried = {p + up - down + more for p in known for up in offsets for down in offsets for more in (0, 1)}
    for value in sorted(value for value in tried if ask.priority < value <= PRIORITY_MAX):
        yield (Part(What.PRIORITY, ask.key, ask.priority, value),)


def maximums(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each maximum of each queue on the way to the root, wider by one and more."""
    for queue in ask.app.queue.lineage[:-1]:
        if spec_of_queue(partition.spec.root, queue.path) is not None:
            for name, most in (queue.max or {}).items():
                for more in range(1, WIDER + 1):
                    yield (Part(What.QUEUE_MAX, queue.path, most, most + more, name),)


def applications(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each number of applications of each queue on the way, by one and more."""
    for queue in ask.app.queue.lineage:
        if queue.max_applications and spec_of_queue(partition.spec.root, queue.path) is not None:
            for more in range(1, WIDER + 1):
                most = queue.max_applications
                yield (Part(What.QUEUE_APPLICATIONS, queue.path, most, most + more),)


def guaranteed(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """A higher guarantee of each queue on its way, of one resource and of all."""
    for queue in ask.app.queue.lineage[:-1]:
        if spec_of_queue(partition.spec.root, queue.path) is None:
            continue
        now = queue.guaranteed or {}
        for more in range(1, WIDER + 1):
            parts = [Part(What.GUARANTEED, queue.path, now.get(n, 0), now.get(n, 0) + more, n) for n, _ in ask.items]
            yield from ((part,) for part in parts)
            if len(parts) > 1:
                yield tuple(parts)


def limits(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each limit of its user and group, by one and more; the amounts, and the number of applications."""
    for ceiling in ask.app.allowance.ceilings if ask.app.allowance is not None else ():
        spec = spec_of_queue(partition.spec.root, ceiling.queue)
        entries = [] if spec is None else spec.limits
        for name in (ceiling.name, "*"):
            if not any(name in (e.users if ceiling.kind == "user" else e.groups) for e in entries):
                continue
            who = f"{ceiling.kind} {name}"
            for more in range(1, WIDER + 1):
                for resource, most in (ceiling.max or {}).items():
                    yield (Part(What.LIMIT, ceiling.queue, most, most + more, resource, who),)
                if most := ceiling.max_applications:
                    yield (Part(What.LIMIT_APPLICATIONS, ceiling.queue, most, most + more, who=who),)
            break


PROPERTIES = ("-wait.max", "-preemption.policy", "backfill=easy")


def properties(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each property of each queue that holds work back, gone; and backfill where there is none."""
    del ask
    for queue in partition.root.walk():
        spec = spec_of_queue(partition.spec.root, queue.path)
        for text in PROPERTIES if spec is not None else ():
            assert spec is not None
            if not text.startswith("-") or text[1:] in spec.properties:
                yield (Part(What.PROPERTY, queue.path, 0, 1, text=text),)


def ends(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each work that runs, or waits and is not of its own application."""
    running = [a for node in partition.nodes.nodes.values() for a in node.allocations if a.app is not ask.app]
    for other in running[:CANCELS]:
        if other.evict_cause is None:
            yield (Part(What.CANCEL, f"{other.app.id}/{other.key}", 0, 1),)


def queues(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each other leaf."""
    for queue in partition.root.walk():
        if queue.is_leaf and queue.managed and queue is not ask.app.queue:
            yield (Part(What.QUEUE, queue.path, 0, 1),)


def nodes(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """More like each."""
    for node_id in partition.nodes.nodes if not ask.required_node else ():
        for count in range(1, NODES + 1):
            yield (Part(What.NODES, node_id, 0, count),)


def sizes(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Every size that is smaller, but something of everything; the size of a placeholder is not its own."""
    del partition
    if ask.spec.placeholder:
        return
    items = [(name, amount) for name, amount in ask.items if amount > 0]
    for values in product(*(range(1, amount + 1) for _, amount in items)):
        parts = [
            Part(What.SMALLER, ask.key, amount, value, name)
            for (name, amount), value in zip(items, values, strict=True)
            if value < amount
        ]
        if parts:
            yield tuple(parts)


def drains(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each node that takes no new work, taking it again."""
    del ask
    for node in partition.nodes.nodes.values():
        if not node.schedulable:
            yield (Part(What.DRAIN, node.id, 0, 1),)


def taints(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each taint gone, all of a node gone, and each tolerated."""
    for node in partition.nodes.nodes.values():
        parts = tuple(Part(What.TAINT, node.id, 0, 1, text=text_of(taint)) for taint in node.spec.taints)
        yield from ((part,) for part in parts)
        if len(parts) > 1:
            yield parts
    del ask


def turns(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each turn that is kept for another ask, lifted."""
    for app in partition.applications.values():
        for other in app.asks.values():
            reservation = partition.reserving.get(other)
            if other is not ask and reservation is not None and not reservation.by_itself:
                yield (Part(What.TURN, f"{app.id}/{other.key}", 0, 1),)


def constraints(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Each subset of what it says about where it may run, not said."""
    del partition
    where = ask.spec.where
    has = {
        "selector": where.selector or where.node_terms,
        "affinity": where.affinity,
        "anti-affinity": where.anti_affinity,
        "spread": where.spread,
        "ports": where.ports,
    }
    parts = [Part(What.WHERE, ask.key, 0, 1, text=name) for name, there in has.items() if there]
    for count in range(1, len(parts) + 1):
        yield from combinations(parts, count)


def words(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """What it says of itself: that it is idle, stops nobody, names a node, is of a gang."""
    if ask.spec.idle:
        yield (Part(What.PLAIN, ask.key, 0, 1),)
    if not ask.spec.allow_preempt_other and not ask.spec.idle and partition.spec.preemption.enabled:
        yield (Part(What.STOPS_OTHERS, ask.key, 0, 1),)
    if ask.required_node:
        yield (Part(What.ANY_NODE, ask.key, 0, 1, text=ask.required_node),)
    if ask.spec.task_group in ask.app.groups:
        yield (Part(What.ALONE, ask.key, 0, 1, text=ask.spec.task_group),)


Every = Callable[[Partition, Ask], Iterator[Parts]]
EVERYTHING: dict[str, Every] = {
    "priority": priorities,
    "queue-max": maximums,
    "queue-applications": applications,
    "guaranteed": guaranteed,
    "limit": limits,
    "queue-property": properties,
    "cancel": ends,
    "queue": queues,
    "nodes": nodes,
    "smaller-request": sizes,
    "drain": drains,
    "taint": taints,
    "reservation": turns,
    "constraints": constraints,
    "words": words,
}
SAME = {
    "limit": {"limit", "limit-applications", "queue-max", "queue-applications"},
    "queue-applications": {"queue-applications", "limit-applications", "queue-max", "limit"},
    "queue-max": {"queue-max", "limit", "queue-applications", "limit-applications"},
    "queue-property": {"queue-property", "reservation"},
    "reservation": {"reservation", "queue-property"},
    "taint": {"taint", "node-attribute", "drain"},
    "drain": {"drain", "taint", "node-attribute"},
    "words": {"not-idle", "may-preempt", "any-node", "no-gang"},
}
"""What an answer may call a change of a kind: limits above the nodes are answered together, and so are nodes."""


def pairs(partition: Partition, ask: Ask) -> Iterator[Parts]:
    """Of each thing its strongest value, two things at a time."""
    strongest: dict[tuple[str, str, str, str, str], Parts] = {}
    for every in EVERYTHING.values():
        for parts in every(partition, ask):
            about = tuple((p.what, p.subject, p.resource, p.who, p.text) for p in parts)
            if len(parts) == 1:
                strongest[about[0]] = parts
    # The smallest size is all amounts at once.
    items = () if ask.spec.placeholder else ask.items
    least = tuple(Part(What.SMALLER, ask.key, amount, 1, name) for name, amount in items if amount > 1)
    single = [parts for about, parts in strongest.items() if about[0] is not What.SMALLER]
    single += [least] if least else []
    for one, other in combinations(single[:TOGETHER], 2):
        yield (*one, *other)
