"""What evictions promise: whoever had work stopped for himself gets the room, if nothing disturbs that.

Decides which events and decisions excuse a promise; all else that takes the room away is a failure. Worked out from
the events, the decisions and the books alone.

A promise is made with each eviction that makes room for an ask. It is kept when the ask starts. Until then the ask has
a claim (space that is held, or a node that is set aside). It is excused:

* when its owner withdraws, resizes, moves or reprioritises the work, or somebody orders a turn or a move that concerns
  its queue;
* when machines or the queue file change, work is there that nobody asked this scheduler about (foreign or restored), or
  work grows where it runs; a node that is set aside also while some node is over its capacity because of that;
* when an ask of strictly higher standing takes the room, where rank decides (`docs/queues`), and with
  reservations when an ask that requires that very node is placed there or reserves it (YuniKorn cancels all other
  reservations of a node for an ask that requires it, before that is tried there: its rule for daemon sets);
* when a turn by `wait.max` begins in its queue: what was set aside for those who wait for it now goes back;
* when whom it wants to be with has gone, or the work that it is spread among: not when others started meanwhile
  (`_lacks_company`);
* where a node is set aside, also when it may not start there now because of who runs: work that started meanwhile has
  the last place among the running applications of a queue or user, or a host port, or one of the two keeps the other
  away (`_is_kept_off`). A reservation keeps a node, and nothing of others (YuniKorn's rule).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from properties.standing import stands_above
from reference.constrained import meets, puts_up_with

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.queues import Queue
from fairlead.core.model.constraints import AffinityTerm, Constraints
from fairlead.core.model.decisions import Allocated, Decision, Evict, ReservationSwitched, Reserved
from fairlead.core.model.events import (
    AddAsks,
    ChangeAsk,
    Configure,
    DrainNode,
    Event,
    LabelNode,
    MoveApplication,
    Release,
    RemoveApplication,
    RemoveNode,
    RemovePriorityClass,
    ReserveAsk,
    SetPriority,
    SetPriorityClass,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.lifecycle import State
from fairlead.core.model.specs import AskSpec

Name = tuple[str, str]
Labels = dict[str, str]
Running = list[tuple[Labels, Labels]]
"""Labels of each piece of work, and of its node."""
DISTURB_ALL = (
    Configure,
    DrainNode,
    UndrainNode,
    RemoveNode,
    UpdateNode,
    LabelNode,
    MoveApplication,
    ReserveAsk,
    SetPriorityClass,
    RemovePriorityClass,
)


class Promises:
    """The promises of one course that are neither kept nor excused."""

    def __init__(self, apps: Callable[[], dict[str, Application]], nodes: Callable[[], Iterable[Node]]) -> None:
        self.apps, self.nodes = apps, nodes
        self.counts: Counter[str] = Counter()
        """How many were made, kept, taken by a better one, and lost to what nobody keeps; the rest was disturbed."""
        self.open: dict[Name, Evict] = {}
        self.newcomers: dict[Name, set[Name]] = {}
        """What started since each of them got its claim."""
        self.claimed: dict[Name, str] = {}
        """On which node each of them has its claim, or had it: not always where the work was stopped."""

        self.of_node: dict[Name, None] = {}
        """Those for which a whole node is set aside."""

    def known(self, app: str, key: str) -> Ask | None:
        """The ask of this name, if it is there."""
        found = self.apps().get(app)
        return found.asks.get(key) if found is not None else None

    def event(self, event: Event) -> None:
        """What happens may excuse some of them."""
        if (
            isinstance(event, DISTURB_ALL)
            or (isinstance(event, AddAsks) and any(a.node for a in event.asks))
            or (isinstance(event, Release) and not event.application)
        ):
            self.open.clear()
        elif isinstance(event, AddAsks):
            for spec in event.asks:
                self.open.pop((spec.application, spec.key), None)
                if (ask := self.known(spec.application, spec.key)) is not None and ask.node is not None:
                    self.open.clear()  # It grows where it runs, whatever is promised there.
        elif isinstance(event, Release):
            self.open.pop((event.application, event.key), None)
        elif isinstance(event, ChangeAsk | SetPriority | RemoveApplication):
            self._drop(name for name in self.open if name[0] == _application(event))

    def decisions(self, decisions: list[Decision]) -> None:
        """Note new promises and those that are kept; who has no claim any more must have lost it to a better one."""
        takers: list[Ask] = []
        placed: list[Ask] = []
        for decision in decisions:
            if isinstance(decision, Evict) and decision.rule in ("priority", "guarantee", "reclaim"):
                app, _, key = decision.on_behalf_of.rpartition("/")
                self.counts["promises"] += (app or key, key) not in self.open
                self.open[app or key, key] = decision
                self.newcomers.setdefault((app or key, key), set())
                if decision.rule == "guarantee":
                    self.of_node[app or key, key] = None
                else:
                    self.of_node.pop((app or key, key), None)
            elif isinstance(decision, Allocated):
                self.counts["promises kept"] += (decision.application, decision.key) in self.open
                self.open.pop((decision.application, decision.key), None)
                for newcomers in self.newcomers.values():
                    newcomers.add((decision.application, decision.key))
                if ask := self.known(decision.application, decision.key):
                    placed.append(ask)
            elif isinstance(decision, Reserved) and (ask := self.known(decision.application, decision.key)):
                self.claimed[decision.application, decision.key] = decision.node
                self.newcomers[decision.application, decision.key] = set()
                takers.append(ask)
            elif isinstance(decision, ReservationSwitched) and decision.on:
                self._excuse_queue_of(decision)
        overfull = any(amount < 0 for node in self.nodes() for amount in node.available.values())
        for name, order in list(self.open.items()):
            ask = self.known(*name)
            if ask is not None and ask.reserved_on is not None:
                self.of_node[name] = None
            elif ask is not None and ask.held_on is not None:
                self.of_node.pop(name, None)
            if ask is None or not ask.pending or (overfull and name in self.of_node):
                del self.open[name]
            elif ask.held_on is not None and not ask.victims:
                # Room gathers for it by now: what was stopped for it went to a better one, or it is still open.
                better = [t for t in takers if t is not ask and _may_take(t, ask, order, order.node)]
                if any(t.held_on is not None and t.held_on.id == order.node for t in better):
                    self.counts["promises taken"] += 1
                    del self.open[name]
            elif ask.held_on is None and ask.reserved_on is None:
                where = self.claimed[name]
                others = (a for app in self.apps().values() for a in app.asks.values())
                claiming = [a for a in others if any(n and n.id == where for n in (a.held_on, a.reserved_on))]
                better = [t for t in (*takers, *placed, *claiming) if t is not ask and _may_take(t, ask, order, where)]
                assert better or self._is_kept_off(ask, order.node), f"{ask} lost what was stopped for it by {order}"
                self.counts["promises taken" if better else "promises lost"] += 1
                del self.open[name]

    def at_rest(self) -> None:
        """Everybody who was told to stop has, and nothing more is decided: who still waits was promised too much.

        With reservations (by guarantee) the node stays set aside, but room under a maximum or a limit is not kept:
        that is YuniKorn's rule. There the node must be his.
        """
        for name, order in self.open.items():
            ask = self.known(*name)
            if ask is None or not ask.pending or self._is_kept_off(ask, order.node):
                continue
            if order.rule != "guarantee":
                raise AssertionError(f"{ask} still waits, and work was stopped for it: {order}")

    def _is_kept_off(self, ask: Ask, where: str) -> bool:
        """Whether something is in its way on that node now that nobody keeps for it."""
        app, wanted = ask.app, ask.spec.where
        name = (app.id, ask.key)
        if name not in self.of_node:
            return self._lacks_company(ask, self.claimed.get(name, where), self.newcomers[name])
        if wanted.affinity or wanted.spread:
            return True
        ceilings = app.allowance.ceilings if app.allowance is not None else ()
        if app.state is State.ACCEPTED and (
            any(_has_no_place(queue, app) for queue in app.queue.lineage)
            or any(c.max_applications and len({*c.applications, app.id}) > c.max_applications for c in ceilings)
        ):
            return True
        node = next((n for n in self.nodes() if n.id == where), None)
        running = ((a.spec, a.node) for other in self.apps().values() for a in other.asks.values())
        return node is not None and any(n and keep_apart(ask.spec, node, spec, n) for spec, n in running)

    def _lacks_company(self, ask: Ask, where: str, newcomers: set[Name]) -> bool:
        """Whether it may not run there because of whom it wants to be with or is spread among, newcomers left out."""
        nodes = {node.id: node for node in self.nodes()}
        node = nodes.get(where)
        if node is None:
            return True
        running = [
            (dict(a.spec.labels), labels_of(a.node))
            for app in self.apps().values()
            for a in app.asks.values()
            if a.node is not None and (app.id, a.key) not in newcomers
        ]
        return not (is_drawn(ask, labels_of(node), running) and is_spread(ask, node, list(nodes.values()), running))

    def _excuse_queue_of(self, switched: ReservationSwitched) -> None:
        holder = self.known(switched.application, switched.key)
        leaf = holder.app.queue if holder is not None else None
        names = [n for n in self.open if (a := self.known(*n)) is not None and a is not holder and a.app.queue is leaf]
        self._drop(names)

    def _drop(self, names: Iterable[Name]) -> None:
        for name in list(names):
            self.open.pop(name, None)


def _application(event: ChangeAsk | SetPriority | RemoveApplication) -> str:
    return event.id if isinstance(event, RemoveApplication) else event.application


def _may_take(taker: Ask, ask: Ask, order: Evict, where: str) -> bool:
    if not ask.app.queue.by_rank:
        # It would be stopped for the taker as soon as it had started.
        return taker.required_node == where and (order.rule == "guarantee" or taker.priority >= ask.priority)
    return stands_above(taker, ask)


def _has_no_place(queue: Queue, app: Application) -> bool:
    """Whether as many applications run below the queue as may, without this one."""
    begun = queue.running + len({*queue.allocating_accepted} - {app.id})
    return bool(queue.max_applications) and begun >= queue.max_applications


def keep_apart(ask: AskSpec, node: Node, running: AskSpec, there: Node) -> bool:
    """Whether work that runs `there` has a host port that the ask needs on the node, or either must not be near the
    other.
    """
    if there is node and any(_is_same_port(p, q) for p in ask.where.ports for q in running.where.ports):
        return True
    return any(
        meets(dict(other.labels), term.selector) and _domain(node, term) and _domain(node, term) == _domain(there, term)
        for one, other in ((ask, running), (running, ask))
        for term in one.where.anti_affinity
    )


def labels_of(node: Node) -> dict[str, str]:
    """What topology keys and selectors look at."""
    return {**node.spec.attributes, "kubernetes.io/hostname": node.id}


def _domain(node: Node, term: AffinityTerm) -> str | None:
    return labels_of(node).get(term.topology_key)


def is_drawn(ask: Ask, here: Labels, running: Running) -> bool:
    """With work that matches all terms; the first of a group that matches itself may go where the keys are."""
    terms = ask.spec.where.affinity
    keys = [term.topology_key for term in terms]
    near = [there for labels, there in running if all(meets(labels, term.selector) for term in terms)]
    if any(key not in here for key in keys):
        return False
    if all(any(there.get(key) == here[key] for there in near) for key in keys):
        return True
    wanted = all(meets(dict(ask.spec.labels), term.selector) for term in terms)
    return wanted and not any(key in there for there in near for key in keys)


def is_spread(ask: Ask, node: Node, nodes: list[Node], running: Running) -> bool:
    """No domain gets ahead of the emptiest by more than the skew; nodes count that have all keys, and are named and
    tolerated where the term says so.
    """
    where, here = ask.spec.where, labels_of(node)
    keys = [term.topology_key for term in where.spread]
    if any(key not in here for key in keys):
        return False
    for term in where.spread:
        counting = [
            there
            for n in nodes
            if all(k in (there := labels_of(n)) for k in keys)
            and (is_named(where, there) or not term.only_selected)
            and (is_tolerated(where, n) or not term.only_tolerated)
        ]
        count = {there[term.topology_key]: 0 for there in counting}
        for labels, there in running:
            if there in counting and meets(labels, term.selector):
                count[there[term.topology_key]] += 1
        fewest = 0 if len(count) < term.min_domains else min(count.values(), default=0)
        mine = count.get(here[term.topology_key], 0) + meets(dict(ask.spec.labels), term.selector)
        if mine - fewest > term.max_skew:
            return False
    return True


def is_tolerated(where: Constraints, node: Node) -> bool:
    """Whether no taint keeps work with these constraints off the node."""
    keep_off = [taint for taint in node.spec.taints if taint.effect != "PreferNoSchedule"]
    return all(any(puts_up_with(t, taint) for t in where.tolerations) for taint in keep_off)


def is_named(where: Constraints, here: Labels) -> bool:
    return meets(here, where.selector) and (not where.node_terms or any(meets(here, t) for t in where.node_terms))


def _is_same_port(mine: str, theirs: str) -> bool:
    (protocol, address, port), (protocol2, address2, port2) = mine.split("/"), theirs.split("/")
    same = address == address2 or "0.0.0.0" in (address, address2)
    return same and (protocol, port) == (protocol2, port2)
