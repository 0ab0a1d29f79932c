"""The cluster made from a snapshot again, with all the orders and lines that are not written down (`dump`).

Decides how what is kept follows from what is state. Never decides what happens next. Invariant: a cluster that was
dumped and loaded decides exactly as the one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlead.core.acts import gangs, infeasible, reserve_turn, room_changes, shapes, waiting_asks
from fairlead.core.acts.nominate import enter
from fairlead.core.acts.reconfigure import recount_priorities
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.cluster import Cluster
from fairlead.core.books.eviction_history import Disruption
from fairlead.core.books.guarantees import find_guarantees
from fairlead.core.books.held_asks import HeldAsks
from fairlead.core.books.idle_work import count_use, payer
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import Nomination
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue, QueueState
from fairlead.core.books.timers import RESERVATION, Timer
from fairlead.core.books.usage_history import Consumption
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.events import Cause
from fairlead.core.model.lifecycle import LIVE, State
from fairlead.core.model.plain import from_plain, to_plain
from fairlead.core.snapshot.dump import (
    APP_STATE,
    ASK_STATE,
    GROUP_STATE,
    PARTITION_STATE,
    QUEUE_BOOKS,
    QUEUE_STATE,
    VERSION,
)

READ = (2, 3, 4, VERSION)
"""The older ones say more than is needed."""


def load_cluster(state: dict[str, Any]) -> Cluster:
    """The cluster that `dump_cluster` wrote down. Raises ValueError when it was written by another version."""
    if state.get("version") not in READ:
        raise ValueError(f"a state of version {state.get('version')!r}; this program reads {READ[0]} to {VERSION}")
    cluster = Cluster()
    cluster.now_ms = state["now_ms"]
    cluster.started_ms = state["started_ms"]
    cluster.checksum = state["checksum"]
    cluster.text = state["text"]
    cluster.last_seq = state["seq"]
    cluster.admission.load(state.get("admission"))
    cluster.timers.restore([Timer(*t) for t in state["timers"]], state["timer_seq"])
    for part in state["partitions"]:
        _load_partition(cluster, part)
    return cluster


def _load_partition(cluster: Cluster, state: dict[str, Any]) -> None:
    spec = from_plain(state["spec"])
    queues: dict[str, Queue] = {}
    for row in state["queues"]:
        queue = _load_queue(row, queues)
        queue.by_rank = spec.preemption.rule != "guarantee"
        queues[queue.path] = queue
    root = next(iter(queues.values()))
    find_guarantees(root, spec.preemption.rule == "both")
    partition = Partition(spec, root, cluster.timers, cluster.out, cluster.next_seq, cluster.now_ms)
    partition.admission = cluster.admission
    cluster.partitions[partition.name] = partition
    for row in state["nodes"]:
        node = _load_node(row)
        partition.nodes.add(node)
        partition.nodes.images.report(node, row.get("images", {}))
    asks: dict[tuple[str, str], Ask] = {}
    for row in state["applications"]:
        app = _load_application(row, queues[row["queue"]])
        partition.applications[app.id] = app
        app.queue.applications[app.id] = app
        partition.trackers.join(app)
        asks |= {(app.id, key): ask for key, ask in app.asks.items()}
        for ask in app.asks.values():
            partition.admission.enter(ask)
    partition.ended = {key: _load_ended(row, queues) for key, row in state["ended"]}
    partition.rejected = {row["spec"]["id"]: _load_ended(row, queues) for row in state["rejected"]}
    foreign = [(spec, node) for node in partition.nodes.nodes.values() for spec, _ in node.foreign.values()]
    for spec, node in foreign:
        partition.nodes.terrain.count(spec, node, 1)
    partition.nodes.terrain.label_keys.load(state["label_keys"], asks.values(), [spec for spec, _ in foreign])
    _link(partition, state, asks)
    _set_timers(partition)
    for row in state["applications"]:
        for younger in row["awaited_by"]:
            gangs.give_way(partition.applications[younger], partition.applications[row["spec"]["id"]])
    _restore(partition, PARTITION_STATE, {"started_seq": 0, "changed_seq": cluster.last_seq} | state)
    partition.disruption = Disruption.load(state["disruption"], asks)
    held = state.get("held_asks")
    if held is None:  # Version 2 wrote further attempts in their back-off alone.
        held = [[app, to_plain(Conditions(begin_ms=due_ms)), attempt] for app, due_ms, attempt in state["retries"]]
    partition.held_asks = HeldAsks.load(held, partition.now_ms)
    reserve_turn.load(partition, state["reserving"])
    recount_priorities(partition)
    room_changes.reshare(partition)
    room_changes.wake_all(partition)
    partition.timers.look(cluster.now_ms, partition.name)
    _load_batches(partition, state, asks)


def _restore(thing: Any, names: tuple[str, ...], row: dict[str, Any]) -> None:
    for name in names:
        setattr(thing, name, row[name])


def _load_ended(row: dict[str, Any], queues: dict[str, Queue]) -> Application:
    """An application that has ended. Where its queue is not there any more, all that is left of that is the path."""
    queue = queues.get(row["queue"])
    if queue is None:
        queue = Queue(row["queue"].rpartition(".")[2], None, 0, leaf=True, managed=False)
        queue.path = row["queue"]
    return _load_application(row, queue)


def _load_batches(partition: Partition, state: dict[str, Any], asks: dict[tuple[str, str], Ask]) -> None:
    """What was known of batches, beside what their asks say."""
    attempts = state.get("attempts", ())  # Older versions did not write them.
    for batch, row in zip(_batches([row[:2] for row in attempts], asks), attempts, strict=True):
        batch.attempt_ms, batch.oldest_ms = row[2:]
    for batch in _batches(state["resting"], asks):
        infeasible.rest(partition.nodes, batch)
    for batch in _batches(state["resting_in_leaves"], asks):
        infeasible.rest_in_leaf(batch)


def _batches(rows: list[Any], asks: dict[tuple[str, str], Ask]) -> Iterator[Batch]:
    """Those that were written down by an ask of each."""
    for app, key in rows:
        batch = asks[app, key].batch
        assert batch is not None, f"{app}/{key} is in no line"
        yield batch


def _load_queue(row: dict[str, Any], queues: dict[str, Queue]) -> Queue:
    parent = queues[row["parent"]] if row["parent"] else None
    queue = Queue(row["name"], parent, row["seq"], leaf=row["is_leaf"], managed=row["managed"])
    queue.state = QueueState(row["state"])
    _restore(queue, QUEUE_STATE, row)
    for name in QUEUE_BOOKS:
        setattr(queue, name, None if row[name] is None else dict(row[name]))
    queue.set_properties(row["properties"])
    queue.template = from_plain(row["template"])
    queue.allocating_accepted = dict.fromkeys(row["allocating_accepted"])
    return queue


def _load_node(row: dict[str, Any]) -> Node:
    node = Node(from_plain(row["spec"]), row["seq"])
    node.schedulable = row["schedulable"]
    node.total = dict(row["total"])
    node.foreign = {key: (from_plain(spec), at_ms) for key, (spec, at_ms) in row["foreign_notes"].items()}
    node.recount_foreign()
    return node


def _load_application(row: dict[str, Any], queue: Queue) -> Application:
    app = Application(from_plain(row["spec"]), queue, row["seq"], row["submitted_ms"])
    app.state = State(row["state"])
    if app.state in LIVE:
        queue.count_running(1)
    app.state_log = [(at, State(state)) for at, state in row["state_log"]]
    app.rejected = from_plain(row["rejected"])
    _restore(app, APP_STATE, row)
    app.consumed = Consumption.of_plain(row["consumed"]) if row["consumed"] is not None else None
    for ask_row in row["asks"]:
        ask = Ask(app, from_plain(ask_row["spec"]), ask_row["seq"], ask_row["created_ms"])
        for name, value in ask_row.items():
            if name in ASK_STATE:
                setattr(ask, name, value)
        ask.place_in_line()
        cause, by = ask_row.get("evict_cause"), ask_row.get("evicted_by")
        ask.evict_cause = Cause(cause) if cause else None
        ask.evicted_by = (by[0], by[1]) if by else None
        app.asks[ask.key] = ask
    for group_row in row["groups"]:
        group = app.task_group(group_row["name"])
        _restore(group, GROUP_STATE, group_row)
        group.smallest = tuple((name, amount) for name, amount in group_row["smallest"])
        group.standing = {app.asks[key]: None for key in group_row["standing"]}
    return app


def _link(partition: Partition, state: dict[str, Any], asks: dict[tuple[str, str], Ask]) -> None:
    """Tie asks to nodes, to each other and to the lines of their applications."""
    nodes = partition.nodes.nodes
    for row in state["nodes"]:
        node = nodes[row["spec"]["id"]]
        for app_id, key in row["allocations"]:
            node.take(asks[app_id, key])
        node.held = {asks[app, key]: asks[app, key].items for app, key in row["held"]}  # Also of swaps under way.
        node.reservations = {asks[app, key]: since_ms for app, key, since_ms in row["reservations"]}
        node.recompute(node.allocated)
        partition.nodes.touch(node)
    ask_rows = [row for app_row in state["applications"] for row in app_row["asks"]]
    for ask, row in zip(asks.values(), ask_rows, strict=True):
        ask.node, ask.reserved_on, ask.bound_for = (
            nodes[row[name]] if row.get(name) else None for name in ("node", "reserved_on", "bound_for")
        )
        ask.replaces = asks.get(tuple(row["replaces"])) if row.get("replaces") else None
        ask.evicted_for = asks[tuple(row["evicted_for"])] if row.get("evicted_for") else None
        if ask.replaces is not None and not ask.spec.placeholder:
            ask.app.swapping += 1
            ask.where = partition.admission.windows.narrow(partition, ask)
        if ask.node is not None:
            partition.nodes.terrain.count(ask.spec, ask.node, 1)
            ask.app.count_allocated(ask)
            payer(ask).add_allocated(ask.items)
            count_use(ask, 1)
            if ask.spec.idle:
                partition.idle.running[ask] = None
        if ask.pending:
            _put_in_line(partition, ask)
    for row in state["nominations"]:
        ask = asks[tuple(row["ask"])]
        victims = tuple(asks[app, key] for app, key in row["victims"] if (app, key) in asks)
        if not row["in_line"]:
            ask.app.leave(ask)
        enter(partition, Nomination(ask, nodes[row["node"]], victims, row["gathers"]))
    partition.nodes.suspects = dict.fromkeys(partition.nodes.nodes.values())
    for app in partition.applications.values():
        gangs.look_again(partition, app)


def _set_timers(partition: Partition) -> None:
    """Older versions looked but once at a node that is set aside, after an hour."""
    for node in partition.nodes.nodes.values():
        for ask in node.reservations:
            if partition.timers.due_ms(partition.name, ask.app.id, RESERVATION) is None:
                partition.timers.set(partition.now_ms, partition.name, ask.app.id, RESERVATION)


def _put_in_line(partition: Partition, ask: Ask) -> None:
    app = ask.app
    shapes.join(partition, ask)
    partition.nodes.terrain.label_keys.carries(ask, ask.spec.labels)
    app.count_pending(ask)
    app.queue.add_pending(ask.items)
    if app.limit_group is None:
        partition.unseen[app] = None
    waiting_asks.line_up(partition, ask)
    app.priority = app.highest_priority()
