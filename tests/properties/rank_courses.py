"""Random courses that watch the laws of rank: who is started, who is stopped for whom, and who waits meanwhile.

Each law is worked out from events, decisions and the plainest facts of the books; nothing is taken from the policy, so
that they hold for any way to the same decisions.

* `started-and-stopped` (L1): nothing is started and stopped for another at one time, with no event in between.
* `stopped-for-one-that-waited` (L2): the same at a later time, as long as nothing but new work came: no other event was
  handled, and no time has passed at which the scheduler asked to be woken.
* `looking-again` (L3): when a call decides nothing more, a scheduler that is read back from what this one would write
  down decides nothing either, nor does it once it was told to forget what it remembers (if it can be), nor once
  something waits that can never run.
* `weaker-went-first` (L4): when an ask is placed on a node, no waiting ask that comes before it would have fitted.
* `below-guarantee` (G1, rule `both`): nobody pushes a queue that it is not in below its guarantee.
* `books`: every invariant of the books (`invariants.books`).
* `rest`: a call, and a course in which nothing new comes, come to an end.
* `portions`: one placement at a time decides the same as one call.

Where a law has exceptions, they stand with the code that grants them. A course goes on after a law was broken, and
keeps what it saw first of each law. `python tests/properties/rank_courses.py RULE FROM TO` prints one line for each
counterexample of courses FROM to TO - 1, and a count.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from invariants.books import check_books
from properties.course_numbers import asked_for
from properties.policies import EVERYTHING, OTHERS, SETTLING_MAX, SettlingCourse, world
from properties.rank_fit import (
    Kept,
    Name,
    View,
    comes_before,
    counted_in,
    is_of_gang,
    known,
    may_start,
    named,
    waiting,
    waits_for_turn,
)

from fairlead.config import check_text
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Allocated, Decision, Evict, ReservationSwitched, Reserved
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Event
from fairlead.core.model.resources import Resources, fits_in
from fairlead.core.model.specs import TAG_FOREIGN, ApplicationSpec, AskSpec, ClusterSpec
from fairlead.scheduler import Scheduler

STEPS_OF_ONE = 60
COURSE_S = 60
"""A course takes less than a second of the processor; one that takes so long does not end."""
ROUNDS_MAX = 100
"""So many calls at one time have to be enough."""
MIXTURES = (EVERYTHING, *OTHERS)
CLEARS = frozenset({"quota", "taint", "placeholder"})
"""Rules that clear what may not stay where it is; all others make room for another ask."""
GIVES_BACK = "gang-deadlock"
"""Placeholders, in which nothing has run, may have to be given back though the other gang waited when they started."""
FOR_GUARANTEES = frozenset({"priority", "guarantee", "both", "reclaim"})
"""Rules by which no queue may fall below its guarantee: what has one node to run on is no matter of guarantees."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A law was broken: which, in which step, and how."""

    law: str
    step: int
    how: str


@dataclass(frozen=True, slots=True)
class Start:
    """In which epoch and when an allocation was started, and which asks waited then with only room in their way."""

    epoch: int
    at_ms: int
    at_hand: set[Name]


class RankCourse(SettlingCourse):
    """One course under one rule of preemption."""

    def __init__(self, rule: str, number: int) -> None:
        super().__init__(number)
        self.rule, self.number = rule, number
        self.mixture = replace(MIXTURES[number % len(MIXTURES)], rule=rule)
        spec = self.file()
        self.scheduler, self.twin = Scheduler(spec, 0), Scheduler(spec, 0)
        self.kept = Kept()
        self.broken: dict[str, Broken] = {}
        """What was seen first of each law."""
        self.steps = 0
        self.epoch = 0
        """Goes up when something comes that is more than new work."""
        self.started: dict[Name, Start] = {}

    @property
    def part(self) -> Partition:
        return self.scheduler.cluster.partitions["default"]

    def begins(self) -> Iterator[Event]:
        """What is there before the first step."""
        for _ in range(self.chance.randint(1, 4)):
            yield self.fresh_node()

    def file(self) -> ClusterSpec:
        """The queue file that it begins with."""
        return world(self.chance, self.mixture)

    def happens(self) -> Iterator[Event]:
        """What happens in a step."""
        yield from self.events(self.part)

    def take(self) -> RankCourse:
        """All of the course: its steps, and the time after them. What the scheduler raises names course and step."""
        try:
            for event in self.begins():
                self.handle(event)
            for _ in range(STEPS_OF_ONE):
                self.step()
            self.settle()
        except AssertionError as e:
            self.breaks("books", str(e))
        except Exception as e:
            e.add_note(f"in {self.rule} course {self.number}, step {self.steps}")
            raise
        return self

    # -- what is done -----------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.steps += 1
        self.now_ms += self.chance.choice([0, 0, 500, 1_000, 5_000, 20_000])
        for event in self.happens():
            self.handle(event)
        drawn = self.chance.random()
        if drawn < 0.6:
            self.schedule()
        elif drawn < 0.8:
            self.schedule_a_part()
        if self.chance.random() < 0.2:
            self.now_ms += self.chance.choice([1, 100, 900])
            self.schedule()

    def handle(self, event: Event) -> None:
        self.epoch += self.something_is_due() or not is_only_new_work(self.part, event)
        decisions = self.scheduler.handle(event, self.now_ms)
        self.twin.handle(event, self.now_ms)
        self.kept.take(decisions)
        self.note(decisions)
        for decision in decisions:
            if isinstance(decision, Allocated):
                self.started.pop((decision.application, decision.key), None)

    def something_is_due(self) -> bool:
        """Whether time brings something new with what is done next, e.g. that a victim did not go in its time."""
        wake_ms = self.scheduler.next_wakeup_ms()
        return wake_ms is not None and wake_ms <= self.now_ms

    def schedule(self) -> None:
        self.epoch += self.something_is_due()
        for _ in range(ROUNDS_MAX):
            decisions = self.scheduler.schedule(self.now_ms)
            portions: list[Decision] = []
            while portion := self.portion():
                portions += portion
            if portions != decisions:
                self.breaks("portions", f"{_difference(portions, decisions)}")
            self.note(decisions)
            if not decisions:
                check_books(self.scheduler)
                self.looking_again_changes_nothing()
                return
        self.breaks("rest", f"{ROUNDS_MAX} calls at one time are not enough")

    def schedule_a_part(self) -> None:
        """A call that ends with the first placement, whatever could be done besides; then other things happen."""
        self.epoch += self.something_is_due()
        decisions = self.scheduler.schedule(self.now_ms, 1)
        portion = self.portion()
        if portion != decisions:
            self.breaks("portions", f"{_difference(portion, decisions)}")
        self.note(decisions)

    def portion(self) -> list[Decision]:
        """What the twin decides until it placed one ask."""
        part = self.twin.cluster.partitions["default"]
        self.kept.look(part)
        candidates = [a for a in waiting(part) if may_start(part, a, self.kept, self.now_ms)]
        reserved = {n.id: list(n.reservations) for n in part.nodes.nodes.values()}
        decisions = self.twin.schedule(self.now_ms, 1)
        then, meanwhile = self.kept.copy(), self.kept.copy()
        then.take(takewhile(lambda d: not isinstance(d, Allocated), decisions))
        meanwhile.take(
            d for d in decisions if isinstance(d, Reserved | Evict) or (isinstance(d, ReservationSwitched) and d.on)
        )
        self.kept.take(decisions)
        self.nothing_started_is_stopped(part, decisions, candidates)
        if self.rule == "both":
            self.no_queue_falls_below_its_guarantee(part, decisions)
        for decision in decisions:
            if isinstance(decision, Allocated):
                ask = known(part, (decision.application, decision.key))
                assert ask is not None, f"{decision}: it is not there"
                aside = [*reserved.get(decision.node, []), *self.set_aside(decision.node, decisions, part)]
                if ask not in aside and not self.had_its_own_room(decision, meanwhile):
                    rivals = [a for a in candidates if all(h is a and not self.loses_its_node(a, ask) for h in aside)]
                    made_on = room_made_for(decision, meanwhile)
                    if made_on == decision.node:
                        rivals = [a for a in rivals if not is_of_gang(a)]
                    view = View(part, self.rule, ask, then, bool(made_on))
                    self.nothing_before_it_would_fit(view, rivals, meanwhile)
        return decisions

    def set_aside(self, node: str, decisions: list[Decision], part: Partition) -> list[Ask]:
        """For what the node was set aside in this call (by guarantee): others could not have it when their turn came.

        What requires the node takes it from those, in a later turn.
        """
        if self.rule != "guarantee":
            return []
        names = [(d.application, d.key) for d in decisions if isinstance(d, Reserved) and d.node == node]
        return [ask for name in names if (ask := known(part, name)) is not None]

    def loses_its_node(self, holder: Ask, placed: Ask) -> bool:
        """Whether a node was set aside for an ask that would have been stopped there for what was placed.

        By guarantee what requires the node may stop work of its own priority there, though that comes before it in
        line; so it has the node first (a decision beside YuniKorn's: nothing is started and stopped at once).
        """
        node = placed.node
        assert node is not None
        may_stop_it = placed.required_node and not holder.required_node and holder.priority <= placed.priority
        return self.rule == "guarantee" and bool(may_stop_it) and not fits_in(holder.items, node.free)

    def had_its_own_room(self, decision: Allocated, meanwhile: Kept) -> bool:
        """Whether room was kept for it that others leave alone whatever their rank.

        Where an administrator had its turn kept, that is so. By guarantee asks for which a node is set aside go before
        all others, on whatever node they start.
        """
        name = (decision.application, decision.key)
        if self.rule == "guarantee":
            return name in meanwhile.node
        return meanwhile.node.get(name) == decision.node and meanwhile.turn.get(name, False)

    def settle(self) -> None:
        """Nothing new comes, and it has to come to rest."""
        if self.comes_to_rest():
            check_books(self.scheduler)
        else:
            self.breaks("rest", f"after {SETTLING_MAX} rounds it still decides: {self.orders[:3]}")

    def note(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            self.counts[type(decision).__name__] += 1
            if isinstance(decision, Evict):
                self.orders.append(decision)
        self.orders = [o for o in self.orders if (a := known(self.part, (o.application, o.key))) and a.evict_cause]

    def breaks(self, law: str, how: str) -> None:
        self.broken.setdefault(law, Broken(law, self.steps, how))

    # -- the laws ---------------------------------------------------------------------------------------------------

    def nothing_started_is_stopped(self, part: Partition, decisions: list[Decision], candidates: list[Ask]) -> None:
        """L1 and L2, from the order of the decisions; `candidates` waited before them, with only room in their way.

        It is no fault where the preemptor could not have been helped before the start: something else was in its way
        then, or it wants to be where certain other work is, or is spread among it, and that has started meanwhile. Nor
        where YuniKorn's rules say so: what may run on one node only stops work of its own rank there, and by guarantee
        a queue whose turn is later in the walk, which goes by shares, takes what it is guaranteed from those before it.
        """
        at_hand = {(a.app.id, a.key) for a in candidates if not (a.spec.where.affinity or a.spec.where.spread)}
        for decision in decisions:
            if isinstance(decision, Allocated):
                self.started[decision.application, decision.key] = Start(self.epoch, self.now_ms, at_hand)
            elif isinstance(decision, Evict) and decision.on_behalf_of and decision.rule not in (*CLEARS, GIVES_BACK):
                start = self.started.get((decision.application, decision.key))
                preemptor, victim = (
                    named(part, decision.on_behalf_of),
                    known(part, (decision.application, decision.key)),
                )
                if start is None or start.epoch != self.epoch or preemptor is None or victim is None:
                    continue
                if (preemptor.app.id, preemptor.key) not in start.at_hand or decision.rule == "guarantee" == self.rule:
                    continue
                if decision.rule == "required-node" and not comes_before(self.rule, preemptor, victim, victim):
                    continue
                law = "started-and-stopped" if start.at_ms == self.now_ms else "stopped-for-one-that-waited"
                self.breaks(law, f"{_told(decision)}, started at {start.at_ms}")

    def looking_again_changes_nothing(self) -> None:
        """L3, watched on a scheduler that was read back; what it remembers of failures may have been written down too.

        So work is added that no node could ever hold, of the lowest priority: it changes nothing, but has others
        looked at again. It is a further attempt, since new work may have work stopped again for the same ask.
        """
        fresh = Scheduler.load(self.scheduler.dump())
        if found := fresh.schedule(self.now_ms):
            self.breaks("looking-again", f"once it was read back: {_told(found[0])}")
        if (forget := getattr(fresh, "forget", None)) is not None:
            forget()
            if found := fresh.schedule(self.now_ms):
                self.breaks("looking-again", f"once it forgot: {_told(found[0])}")
        fresh.handle(AddApplication(ApplicationSpec(id="vast", queue="root.c", user="nobody")), self.now_ms)
        vast = AskSpec(
            application="vast", key="vast", resources=Resources({"vcore": 10**6}), priority=-1_000, attempt=2
        )
        fresh.handle(AddAsks((vast,)), self.now_ms)
        if found := fresh.schedule(self.now_ms):
            self.breaks("looking-again", f"once something vast waited: {_told(found[0])}")

    def nothing_before_it_would_fit(self, view: View, candidates: list[Ask], meanwhile: Kept) -> None:
        """L4: `candidates` waited before the call with nothing but room in their way, which may have changed in it.

        `view` is of the moment before the placement; `meanwhile` has what was kept at any time of the call.
        """
        part, placed = view.part, view.less
        node = placed.node
        if node is None:
            return
        for ask in candidates:
            if ask is placed or not ask.pending or not comes_before(self.rule, ask, placed, placed):
                continue
            if waits_for_turn(part, ask, meanwhile, placed) or not may_start(part, ask, self.kept, self.now_ms):
                continue
            if view.fits(ask, node):
                self.breaks("weaker-went-first", f"{placed} was placed on {node.id}, where {ask} would fit")

    def no_queue_falls_below_its_guarantee(self, part: Partition, decisions: list[Decision]) -> None:
        """G1: what was told to stop counts as gone, what was placed in the same call comes after it. A placeholder that
        is replaced is there until its real ask has its room.
        """
        later = {(d.application, d.key) for d in decisions if isinstance(d, Evict | Allocated)}
        left = {q: dict[str, int]() for q in part.root.walk() if q.guaranteed}
        for app in part.applications.values():
            for ask in app.asks.values():
                is_placed = (app.id, ask.key) in later and ask.evict_cause is None
                is_leaving = (app.id, ask.key) not in later and ask.evict_cause not in (
                    None,
                    Cause.PLACEHOLDER_REPLACED,
                )
                if ask.node is not None and not ask.spec.idle and not is_placed and not is_leaving:
                    for queue in app.queue.lineage:
                        if queue in left:
                            for name, amount in ask.items:
                                left[queue][name] = left[queue].get(name, 0) + amount
        for order in decisions:
            victim = known(part, (order.application, order.key)) if isinstance(order, Evict) else None
            if victim is None or not isinstance(order, Evict):
                continue
            if victim.spec.idle:
                continue  # It counts for no guarantee.
            preemptor = named(part, order.on_behalf_of) if order.rule in FOR_GUARANTEES else None
            for queue in counted_in(victim):
                for name, amount in victim.items if queue in left else ():
                    left[queue][name] -= amount
                    least = (queue.guaranteed or {}).get(name, 0)
                    if preemptor and queue not in preemptor.app.queue.lineage and left[queue][name] < least:
                        how = f"{_told(order)}: {queue.path} keeps {left[queue][name]} of {name}, guaranteed {least}"
                        self.breaks("below-guarantee", how)


def room_made_for(placed: Allocated, meanwhile: Kept) -> str:
    """The node where work was stopped for it, if any was. A gang that cannot be whole leaves that room alone: else one
    work after another would be stopped for what never starts.
    """
    name = (placed.application, placed.key)
    return meanwhile.node.get(name, "") if not meanwhile.only_gathers(name) else ""


def is_only_new_work(part: Partition, event: Event) -> bool:
    """Whether an event says of nothing but work that waits from now on."""
    if isinstance(event, AddAsks):
        known_already = any(known(part, (ask.application, ask.key)) for ask in event.asks)
        return not known_already and not any(ask.node or TAG_FOREIGN in ask.tags for ask in event.asks)
    return isinstance(event, AddApplication)


def rules_of_configuration() -> tuple[str, ...]:
    """The rules of preemption that a queue file may name."""
    text = "partitions: [{{name: default, preemption: {{rule: {}}}, queues: [{{name: root}}]}}]"
    return tuple(rule for rule in ("priority", "guarantee", "both") if not check_text(text.format(rule)))


def _told(decision: Decision) -> str:
    if isinstance(decision, Evict):
        name = f"{decision.application}/{decision.key}"
        return f"{name} is stopped on {decision.node} for {decision.on_behalf_of} by {decision.rule}"
    return str(decision)


def _difference(portions: list[Decision], decisions: list[Decision]) -> str:
    for one, other in zip(portions, decisions, strict=False):
        if one != other:
            return f"{one} and not {other}"
    return f"{len(portions)} decisions and not {len(decisions)}"


def _too_long(*_: object) -> None:
    raise TimeoutError


class Recorded(RankCourse):
    """A course that keeps what was decided."""

    def __init__(self, rule: str, number: int) -> None:
        self.decided: list[Decision] = []
        super().__init__(rule, number)

    def note(self, decisions: list[Decision]) -> None:
        self.decided += decisions
        super().note(decisions)


def decided_in(rule: str, number: int) -> list[Decision]:
    """All that is decided in one course: to be compared with what is decided otherwise."""
    return Recorded(rule, number).take().decided


def main(rule: str, first: int, last: int, kind: type[RankCourse] = RankCourse) -> int:
    """Take courses `first` to `last` - 1 and print what they broke; returns how many broke a law."""
    laws: Counter[str] = Counter()
    failed = 0
    signal.signal(signal.SIGPROF, _too_long)
    for number in range(first, last):
        course = kind(rule, number)
        signal.setitimer(signal.ITIMER_PROF, COURSE_S)
        try:
            course.take()
        except TimeoutError:
            course.breaks("rest", f"a call has no end, or none within {COURSE_S} s")
        except Exception as e:
            course.breaks("crash", f"{type(e).__name__}: {e}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        for broken in course.broken.values():
            print(f"{rule} course {number}, step {broken.step}: {broken.law}: {broken.how}", flush=True)
            laws[broken.law] += 1
        failed += bool(course.broken)
    of_laws = "".join(f", {law} {count}" for law, count in sorted(laws.items()))
    print(f"{failed} of {last - first} courses under {rule} broke a law{of_laws}")
    return failed


def command_line(kind: type[RankCourse], target: str, texts: Sequence[str] | None = None) -> int:
    """RULE FIRST LAST; returns the status. `target` of the Makefile takes such courses too."""
    said = "Watch the laws of rank in random courses, by number."
    given = asked_for(texts, said, target, rules_of_configuration())
    return int(main(given.rule, given.first, given.last, kind) > 0)


if __name__ == "__main__":
    sys.exit(command_line(RankCourse, "courses"))
