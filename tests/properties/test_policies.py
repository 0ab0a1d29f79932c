"""Every policy at once, mixed at random: the laws that hold whatever happens, in whatever order.

Each law is worked out from the decisions and the books in the plainest way. Two schedulers get the same events: one
schedules in one go, the other a placement at a time, and that one is restarted from what the first wrote down now and
then; they have to decide the same. Some calls end with the first placement, and other things happen before the next.
Whenever nothing more is decided, a third one is made of what the first would write down: it knows nothing of who was
looked at before, and must not find anything to do either.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from invariants.books import check_books
from portions import where_compiled
from properties.laws import Before, every_wait_has_a_reason
from properties.policies import COURSES_OF_ONE, SettlingCourse, world
from properties.price import is_paid
from properties.promises import Promises, keep_apart
from properties.standing import may_be_owed, standings
from reference.constrained import meets, puts_up_with

from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import group_of
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import (
    Allocated,
    AskRejected,
    Decision,
    Evict,
    ReservationSwitched,
    Reserved,
    Unreserved,
)
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    Event,
    LabelNode,
    Release,
    RemoveNode,
    UndrainNode,
    UpdateNode,
)
from fairlead.journal.codec import encode_all
from fairlead.scheduler import Scheduler

STEPS_OF_ONE = 200
FRESH = 0.3
"""How often a scheduler without memories is asked: making it takes as long as several steps."""
CHECKED_EVERY = 5
"""The books as a whole are checked so often."""
HOUR_MS = 3_600_000
CAPACITY_CHANGES = (AddNode, UpdateNode, DrainNode, UndrainNode, RemoveNode, LabelNode, Configure)
MAKES_ROOM = frozenset({"priority", "guarantee", "reclaim", "required-node"})
"""Rules that stop work for one ask; the others clear what may not stay where it is, and name nobody."""
CLEARS = frozenset({"quota", "taint", "placeholder"})


class Course(SettlingCourse):
    """One course under way, with what is remembered of it to watch the laws."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        if number % 3 == 2 and not self.mixture.rule:
            self.mixture = replace(self.mixture, rule="both")
        spec = world(self.chance, self.mixture)
        self.scheduler, self.twin = Scheduler(spec, 0), Scheduler(spec, 0)
        self.steps = 0
        self.news = 0
        self.stopped_for: dict[tuple[str, str], int] = {}
        self.times: list[tuple[int, tuple[str, ...]]] = []
        """When work was stopped for others, and in which queues, since the last queue file."""
        self.gangs: dict[str, int] = {}
        """Of undisturbed hard gangs: placeholders that are still to be placed before anything may start."""
        self.promises = Promises(lambda: self.part.applications, lambda: self.part.nodes.nodes.values())
        self.digest = hashlib.sha256()
        for _ in range(self.chance.randint(1, 4)):
            self.handle(self.fresh_node())

    @property
    def part(self) -> Partition:
        return self.scheduler.cluster.partitions["default"]

    # -- what is done -----------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.now_ms += self.chance.choice([0, 0, 500, 1_000, 5_000, 20_000])
        for event in self.events(self.part):
            self.handle(event)
        if self.chance.random() < 0.05:
            written = json.dumps(self.scheduler.dump())
            self.twin = Scheduler.load(json.loads(written))
            check_books(self.twin)
            assert json.dumps(self.twin.dump()) == written, "what was written down is not what was read"
            assert memory(self.twin) == memory(self.scheduler), "something that is remembered was not written down"
        drawn = self.chance.random()
        if drawn < 0.6:
            self.schedule()
        elif drawn < 0.85:
            self.schedule_a_part()
        self.steps += 1
        if self.steps % CHECKED_EVERY == 0:
            check_books(self.scheduler)

    def handle(self, event: Event) -> None:
        if isinstance(event, CAPACITY_CHANGES) or (
            isinstance(event, AddAsks) and any(self.is_new(spec.application, spec.key) for spec in event.asks)
        ):
            self.news += 1
        if isinstance(event, Configure):
            self.times.clear()
        if isinstance(event, AddApplication) and event.application.gang_style == "Hard":
            self.gangs[event.application.id] = 0
        if isinstance(event, AddAsks):
            for spec in event.asks:
                if spec.placeholder and spec.application in self.gangs and self.is_new(spec.application, spec.key):
                    self.gangs[spec.application] += 1
        if isinstance(event, Release) and (ask := self.known(event.application, event.key)) and ask.spec.placeholder:
            self.gangs.pop(event.application, None)
        self.promises.event(event)
        decisions = self.scheduler.handle(event, self.now_ms)
        assert self.twin.handle(event, self.now_ms) == decisions, "the twin takes an event in another way"
        self.take(decisions)

    def is_new(self, app: str, key: str) -> bool:
        known = self.part.applications.get(app)
        return known is None or key not in known.asks

    def schedule(self) -> None:
        for _ in range(100):
            before = Before(self.part)
            held_back, turns, kept = self.held_back(), self.turns_of_the_choosy(), self.kept_turns()
            decisions = self.scheduler.schedule(self.now_ms)
            portions: list[Decision] = []
            while portion := self.twin.schedule(self.now_ms, 1):
                self.counts["needed victims"] += is_paid(self.twin.cluster.partitions["default"], portion)
                portions += portion
            assert portions == decisions, "one placement at a time gives another result"
            before.nothing_grew_beyond()
            self.no_idle_before_the_others(decisions, turns)
            self.no_idle_while_a_turn_is_kept(decisions, kept & self.kept_turns())
            self.nobody_passes(held_back, decisions)
            self.take(decisions)
            if not decisions:
                every_wait_has_a_reason(self.scheduler, self.part, settled=True)
                if self.chance.random() < FRESH:
                    fresh = Scheduler.load(self.scheduler.dump())
                    assert not (found := fresh.schedule(self.now_ms)), f"somebody was not woken: {found}"
                return
        raise AssertionError("it goes on deciding although nothing happens")

    def schedule_a_part(self) -> None:
        """A call that ends with the first placement, whatever could be done besides; then other things happen."""
        decisions = self.scheduler.schedule(self.now_ms, 1)
        assert self.twin.schedule(self.now_ms, 1) == decisions, "the twin places another one"
        self.take(decisions)

    def settle(self) -> None:
        """Nothing new comes, and it has to come to rest."""
        assert self.comes_to_rest(), f"it does not come to rest: {[str(a) for a in self.part.nominations]}"
        self.promises.at_rest()

    # -- what has to hold -------------------------------------------------------------------------------------------

    def take(self, decisions: list[Decision]) -> None:
        self.digest.update(encode_all(decisions))
        claimed: dict[tuple[str, str], list[str]] = {}
        for decision in decisions:
            if isinstance(decision, Reserved):
                claimed.setdefault((decision.application, decision.key), []).append(decision.node)
        for at, decision in enumerate(decisions):
            self.counts[type(decision).__name__] += 1
            if isinstance(decision, Evict):
                self.counts[f"rule {decision.rule}"] += 1
                self.orders.append(decision)
                given_up = [d for d in decisions[at:] if isinstance(d, Unreserved)]
                self.is_justified(decision, claimed, given_up)
            elif isinstance(decision, Allocated):
                self.is_placed_well(decision)
            elif isinstance(decision, AskRejected):
                self.gangs.pop(decision.application, None)
        self.orders = [order for order in self.orders if self.is_stopping(order)]
        self.promises.decisions(decisions)

    def is_stopping(self, order: Evict) -> bool:
        app = self.part.applications.get(order.application)
        ask = app.asks.get(order.key) if app is not None else None
        return ask is not None and ask.evict_cause is not None

    def is_justified(self, order: Evict, claimed: dict[tuple[str, str], list[str]], given_up: list[Unreserved]) -> None:
        """Who is stopped makes room for somebody above him who gets the room; or is cleared by a rule of its own.

        The claim is looked for among the decisions too: within the same call an ask that requires the node may have
        taken it, be it a new one or one (`given_up` after the order) that was there before. Who is stopped elsewhere
        than where the claim is makes room under a maximum that holds for both.
        """
        assert order.rule in MAKES_ROOM | CLEARS, f"{order}: nobody says by which rule"
        if order.rule in CLEARS:
            return
        victim = self.known(order.application, order.key)
        assert victim is not None, f"{order}: it is not there"
        preemptor = self.named(order.on_behalf_of)
        node = preemptor.held_on or preemptor.reserved_on
        where = claimed.get((preemptor.app.id, preemptor.key)) or ([node.id] if node is not None else [])
        where = where or [d.node for d in given_up if (d.application, d.key) == (preemptor.app.id, preemptor.key)]
        assert where, f"{order}: no space is kept for {preemptor}"
        elsewhere = order.rule in ("guarantee", "reclaim", "priority") and have_a_maximum(preemptor, victim)
        assert order.node in where or elsewhere, (
            f"{order}: {preemptor} has its space on {where}, and nothing that is full holds for both"
        )
        if order.rule == "reclaim":
            assert victim.spec.idle, f"{victim} is not idle"
            assert not preemptor.spec.idle, f"{preemptor} is idle"
            assert group_of(preemptor.app.queue) in victim.app.queue.lineage, f"{victim} borrows in another group"
            return
        assert preemptor.spec.allow_preempt_other or order.rule == "required-node", f"{preemptor} stops nobody"
        self.is_below(order, preemptor, victim)
        if order.rule in ("priority", "guarantee"):
            self.is_not_again(order, preemptor, victim)
            self.is_not_protected(order, victim)

    def is_below(self, order: Evict, preemptor: Ask, victim: Ask) -> None:
        """Nobody is stopped for work of the same or a lower effective priority, idle work that is taken back apart, and
        where guarantees count for the rank what a queue below its own takes back.

        Where the rules are YuniKorn's they say less, and the law says what they say. By guarantee: the victim is in
        another queue and not above the ask where their queues meet (the same is enough), and a guarantee on the ask's
        way to the root is the reason; idle work is in no queue's books and goes whatever its priority. For a required
        node: the victim is on that node and its own priority not above the ask's, whatever their queues say.
        """
        mine, theirs = standings(preemptor, victim)
        if order.rule == "priority":
            assert mine > theirs, f"{order}: {mine} is not above {theirs}"
        elif order.rule == "guarantee":
            assert any(queue.guaranteed for queue in preemptor.app.queue.lineage), f"{order}: nothing is guaranteed"
            if victim.spec.idle:
                assert not preemptor.spec.idle, f"{order}: both are idle"
                return
            if preemptor.app.queue.by_rank:
                assert may_be_owed(preemptor), f"{order}: it is within no guarantee"
                return
            assert mine >= theirs, f"{order}: {mine} is below {theirs}"
            assert victim.app.queue is not preemptor.app.queue, f"{order}: in one queue"
        else:
            assert preemptor.required_node == order.node, f"{order}: {preemptor} does not require it"
            assert victim.priority <= preemptor.priority, f"{order}: {preemptor} stands below {victim}"

    def is_not_again(self, order: Evict, preemptor: Ask, victim: Ask) -> None:
        pair = (work_name(preemptor), work_name(victim))
        assert self.stopped_for.get(pair, -1) < self.news, f"{order}: a second time, and nothing new has come"
        self.stopped_for[pair] = self.news
        assert self.part.disruption.was_stopped_for(preemptor, victim), f"{order}: nobody remembers it"

    def is_not_protected(self, order: Evict, victim: Ask) -> None:
        least_ms = max(victim.app.queue.properties.preemption_min_runtime_ms, victim.spec.min_runtime_ms)
        assert self.now_ms - (victim.allocated_ms or 0) >= least_ms, f"{order}: too young"
        self.times.append((self.now_ms, tuple(queue.path for queue in victim.app.queue.lineage)))
        for queue in victim.app.queue.lineage:
            most = queue.properties.preemption_evictions_max
            lost = sum(queue.path in paths and at_ms + HOUR_MS > self.now_ms for at_ms, paths in self.times)
            assert most is None or lost <= most, f"{order}: {queue.path} loses {lost} within the hour, at most {most}"

    def is_placed_well(self, decision: Allocated) -> None:
        """On a node that takes it, by what it says; of a hard gang nothing before room for all of it was there.

        Work of a task group only takes the place of its placeholders, as long as there are any. Who does so is looked
        at when that begins, which the decision does not show.
        """
        ask = self.known(decision.application, decision.key)
        node = self.part.nodes.nodes.get(decision.node)
        if ask is None or node is None or ask.node is not node or ask.spec.node or ask.stood_in_ms is not None:
            return
        where = ask.spec.where
        assert meets(node.labels, where.selector), f"{ask} is on a node that its selector excludes"
        for taint in node.spec.taints:
            kept_off = taint.effect != "PreferNoSchedule" and not any(puts_up_with(t, taint) for t in where.tolerations)
            assert not kept_off or ask.required_node, f"{ask} is on a node with {taint}"
        others = (a for app in self.part.applications.values() for a in app.asks.values() if a is not ask)
        near = [str(a) for a in others if a.node and keep_apart(ask.spec, node, a.spec, a.node)]
        assert not near, f"{ask} is placed where it must not be near {near}, or has a host port of theirs"
        if ask.spec.task_group and not ask.spec.placeholder:
            own = [a for a in ask.app.asks.values() if a.spec.placeholder and a.spec.task_group == ask.spec.task_group]
            standing = [str(a) for a in own if a.evict_cause is None]
            assert not standing, f"{ask} starts beside {standing}, which stand in for it"
        if ask.spec.placeholder and ask.app.id in self.gangs:
            self.gangs[ask.app.id] -= 1
        elif ask.spec.task_group:
            missing = self.gangs.get(ask.app.id, 0)
            assert missing <= 0, f"{ask} starts, and {missing} placeholders of its gang have no room yet"

    def no_idle_before_the_others(self, decisions: list[Decision], turns: set[Queue]) -> None:
        """In one call nobody who is not idle is placed after idle work.

        The specification starts idle work where nobody else can use the room. That leaves three exceptions, all because
        the start of idle work lets somebody start who could not before: who wants to be where certain other work is
        (affinity, spread), who waited behind the kept turn of such a one, which ends when that starts, and who finds
        the room that gathered for it elsewhere.
        """
        given_up = [d for d in decisions if isinstance(d, Unreserved)]
        choosy = (d.node for d in given_up if (a := self.known(d.application, d.key)) is not None and is_choosy(a))
        left = {*choosy}
        asks = [ask for d in decisions if isinstance(d, Allocated) and (ask := self.known(d.application, d.key))]
        excepted = (
            is_choosy(ask) or ask.app.queue in turns or (ask.node is not None and ask.node.id in left) for ask in asks
        )
        idle = [ask.spec.idle for ask, is_free in zip(asks, excepted, strict=True) if ask.spec.idle or not is_free]
        assert idle == sorted(idle), f"idle work was placed before others: {decisions}"

    def no_idle_while_a_turn_is_kept(self, decisions: list[Decision], kept: set[Ask]) -> None:
        """In the resource group of one whose turn was kept all the time no idle work starts; while a limit of its user
        is in its way, none that counts there.
        """
        limits = {holder: reservation.limit for holder, reservation in self.part.reserving.every()}
        switched = {(d.application, d.key) for d in decisions if isinstance(d, ReservationSwitched)}
        holders = [holder for holder in kept if (holder.app.id, holder.key) not in switched]
        for decision in decisions:
            ask = self.known(decision.application, decision.key) if isinstance(decision, Allocated) else None
            if ask is not None and ask.spec.idle:
                own = (None, *ask.app.ceilings)
                held = [h for h in holders if limits.get(h) in own]
                near = [str(h) for h in held if group_of(ask.app.queue) in h.app.queue.lineage]
                assert not near, f"{ask} is idle and starts while {near} of its group have a reservation"

    def kept_turns(self) -> set[Ask]:
        return {ask for ask, _ in self.part.reserving.every()}

    def turns_of_the_choosy(self) -> set[Queue]:
        """Queues in which the turn of one is kept who waits for other work to be somewhere."""
        return {leaf for leaf, own in self.part.reserving.of.items() if any(is_choosy(holder) for holder in own)}

    def held_back(self) -> dict[tuple[str, str], set[tuple[str, str]]]:
        """For each ask that has to wait, the asks with a reservation that it waits for.

        Those of a higher priority, and who waited for `wait.max` and stands before it in the order of the queue.
        """
        found = {}
        for leaf, own in self.part.reserving.of.items():
            if leaf.properties.easy_backfill:
                continue
            for app in leaf.applications.values():
                for ask in app.asks.values():
                    if ask.pending and not ask.spec.idle and ask.held_on is None:
                        first = [h for h in own if h.app is app and after(h, ask)]  # Its own application puts it first.
                        above = {
                            h
                            for h, r in own.items()
                            if h not in first and (ask.priority < h.priority or (r.by_itself and after(ask, h)))
                        }
                        found[app.id, ask.key] = {(h.app.id, h.key) for h in above}
        return found

    def nobody_passes(self, held_back: dict[tuple[str, str], set[tuple[str, str]]], decisions: list[Decision]) -> None:
        """Without `backfill: easy` nobody behind a reserved ask is placed while that waits."""
        over = {(d.application, d.key) for d in decisions if isinstance(d, ReservationSwitched) and not d.on}
        for decision in decisions:
            if isinstance(decision, Allocated):
                waits_for = held_back.get((decision.application, decision.key), set())
                assert waits_for <= over, f"{decision} passes {waits_for}"

    # -- who is meant -----------------------------------------------------------------------------------------------

    def known(self, app: str, key: str) -> Ask | None:
        found = self.part.applications.get(app)
        return found.asks.get(key) if found is not None else None

    def named(self, name: str) -> Ask:
        app, _, key = name.rpartition("/")
        found = self.known(app or key, key)
        assert found is not None, f"{name} is not there"
        return found


def memory(scheduler: Scheduler) -> dict[str, str]:
    """What is remembered of evictions, as it is and not as it is written down; what is kept is made from the holds."""
    known = scheduler.cluster.partitions["default"].disruption
    # A compiled class has no `__dict__`.
    named = {name: getattr(known, name) for name in dir(known) if not name.startswith("__")}
    named["going"] = sorted(map(str, known.going))  # Sums are made of it: its order says nothing.
    return {name: str(value) for name, value in named.items() if not callable(value)}


def have_a_maximum(one: Ask, other: Ask) -> bool:
    """Whether some maximum holds for both (that of the root is what all nodes have together)."""
    return any(queue.max is not None and queue in other.app.queue.lineage for queue in one.app.queue.lineage)


def is_choosy(ask: Ask) -> bool:
    """Whether it wants to be where certain other work is, or is not: the start of that may let it start."""
    return bool(ask.spec.where.affinity or ask.spec.where.spread)


def after(ask: Ask, other: Ask) -> bool:
    """Whether it comes behind the other in the order of a queue: retried, priority (where rank decides the other way
    round), creation, arrival.
    """

    def place(one: Ask) -> tuple[int, int, int, int]:
        first = (not one.spec.retried, -one.priority)
        return (*(first[::-1] if one.app.queue.by_rank else first), one.created_ms, one.seq)

    return ask is not other and place(ask) > place(other)


def work_name(ask: Ask) -> str:
    return f"{ask.app.id}/{ask.spec.first_key or ask.key}"


@pytest.mark.timeout(14_400)
def test_the_laws_hold_with_all_policies_at_once(courses: int) -> None:
    """Whatever happens, in whatever order; and when nothing happens any more, it comes to rest.

    Few courses are half of the one mixture and half of the others; many are all of the one first.
    """
    counts: Counter[str] = Counter()
    of_one = range(min(courses, COURSES_OF_ONE) if courses >= COURSES_OF_ONE else courses - courses // 2)
    of_others = range(COURSES_OF_ONE, COURSES_OF_ONE + courses - len(of_one))
    for number in (*of_one, *of_others):
        course = Course(number)
        try:
            for _ in range(STEPS_OF_ONE):
                course.step()
            course.settle()
        except AssertionError as e:
            raise AssertionError(f"course {number}, step {course.steps}: {e}") from e
        counts += course.counts + course.promises.counts
    rules = ("rule priority", "rule guarantee", "rule reclaim")
    expected = (*rules, "Retried", "ReservationSwitched", "promises kept", "needed victims")
    assert courses < 50 or all(counts[name] > 10 for name in expected), counts


@where_compiled
def test_courses_do_not_depend_on_hashes() -> None:
    """Under two hash seeds a process of its own decides byte by byte the same."""
    root = Path(__file__).resolve().parents[2]
    said = []
    for seed in ("1", "4242"):
        paths = os.pathsep.join([str(root / "src"), str(root / "tests")])
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": paths}
        command = [sys.executable, __file__, "7", "300"]
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert said[0] == said[1]
    assert int(said[0].split()[1]) > 300


if __name__ == "__main__":
    taken = Course(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        taken.step()
    print(taken.digest.hexdigest(), taken.counts.total())
