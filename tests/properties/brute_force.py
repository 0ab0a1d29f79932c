"""Answers to why, held against brute force over every dimension of small random states: `make brute-force`.

    python tests/properties/brute_force.py 1000

For each ask: every change that is stated starts it, one unit or one part less does not, the checks of queue files take
it, and it is the asker's where it is called so; where everything was tried, no dimension that helps was missed, and no
pair of changes helps where nothing was found.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from properties.course import Course
from properties.every_change import EVERYTHING, SAME, Parts, pairs
from properties.mixed import Mixed
from properties.test_questions import (
    KINDS,
    PART,
    counted,
    happen_to,
    not_refused,
    others,
    starts_with,
    states,
    waiting,
)

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.insight.advice import By
from fairlead.insight.parts import OF_THE_ASK, Part, What
from fairlead.insight.trial import Name
from fairlead.insight.unblock import Ways, ways
from fairlead.policy.queue_choice.acl import may_submit
from fairlead.scheduler import Scheduler

FIRST = 9_000
"""The number of the first state."""
State = dict[str, object]


@dataclass
class Tally:
    """What was compared."""

    states: int = 0
    asks: int = 0
    complete: int = 0
    tried: int = 0
    stated: int = 0
    failed: list[str] = field(default_factory=list)
    """Changes that were stated and do not start it."""
    smaller: list[str] = field(default_factory=list)
    """Where one unit, or one part, less starts it as well."""
    refused: list[str] = field(default_factory=list)
    not_his: list[str] = field(default_factory=list)
    """Called the asker's, and it may not do it."""
    helped: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    """Dimensions, or pairs, that help although "complete" was said without them."""
    stuck: int = 0
    """That do not start by themselves."""
    without: int = 0
    """Of these: no change, and nothing that says why it can never run."""

    @property
    def wrong(self) -> int:
        """All that must not be."""
        return sum(map(len, (self.failed, self.smaller, self.refused, self.not_his, self.missed)))

    def lines(self) -> list[str]:
        """For people."""
        helped = ", ".join(f"{kind} {count}" for kind, count in self.helped.most_common())
        part = self.without / max(self.stuck, 1)
        return [
            f"{self.states} states, {self.asks} asks; of {self.complete} everything was tried, again by {self.tried} "
            "trials",
            f"{self.stated} changes stated: {len(self.failed)} do not start it, {len(self.smaller)} could be smaller, "
            f"{len(self.refused)} are refused by the checks, {len(self.not_his)} are not the asker's to make",
            f"helped: {helped}; missed where everything was tried: {len(self.missed)}",
            f"stuck {self.stuck}: no change and no reason for never: {self.without} ({part:.1%})",
            *(f"  {kind}: {each}" for kind, found in self._found() for each in found),
        ]

    def _found(self) -> list[tuple[str, list[str]]]:
        names = ("failed", "smaller", "refused", "not_his", "missed")
        return [(name, getattr(self, name)) for name in names]


def compared(kind: str, numbers: range, most: int, tally: Tally, tell: Callable[[], None] = lambda: None) -> Tally:
    """Some asks of each of these states (at most so many), in every way."""
    for course in states(kind, numbers):
        state, names = course.scheduler.dump(), waiting(course.scheduler)
        random.Random(course.number).shuffle(names)
        tally.states += 1
        for name in names[:most]:
            _compare(course, state, name, tally)
        tell()
    return tally


def _compare(course: Course | Mixed, state: State, name: Name, tally: Tally) -> None:
    scheduler = course.scheduler
    partition = scheduler.cluster.partitions[PART]
    ask = partition.applications[name[1]].asks[name[2]]
    found = ways(scheduler, name, fork=False)
    tally.asks += 1
    if found.by_itself is not None:
        return
    where = f"{type(course).__name__.lower()} {course.number} {name[1]}/{name[2]}"
    tally.stuck += 1
    tally.without += not found.changes and found.never is None and not found.waits
    _stated(scheduler, state, name, ask, found, where, tally)
    if found.is_complete:
        tally.complete += 1
        _missed(scheduler, state, name, ask, found, where, tally)


def _stated(scheduler: Scheduler, state: State, name: Name, ask: Ask, found: Ways, where: str, tally: Tally) -> None:
    """Every change that is stated."""
    partition = scheduler.cluster.partitions[PART]
    # Some are about a state in which nothing else runs or waits.
    alone = Scheduler.load(state)
    happen_to(alone, others(alone, name))
    now, empty = (scheduler, state), (alone, alone.dump())
    for change in found.changes:
        scheduler, state = now if change.at_once else empty
        tally.stated += 1
        parts, said = tuple(map(counted, change.parts)), f"{where}: {change.sentence}"
        if not starts_with(scheduler, state, name, parts):
            tally.failed.append(said)
        if not not_refused(scheduler, parts):
            tally.refused.append(said)
        if change.by == By.ASKER and not all(_is_his(partition, ask, part) for part in parts):
            tally.not_his.append(said)
        for at, part in enumerate(parts):
            rest = (*parts[:at], *parts[at + 1 :])
            less = (*parts[:at], part.less(), *parts[at + 1 :]) if part.is_counted else None
            # What the checks of queue files refuse (a limit above its queue's maximum) is no smaller change.
            tried = [each for each in (less, rest) if each and not_refused(scheduler, each)]
            if any(starts_with(scheduler, state, name, each) for each in tried):
                tally.smaller.append(said)


def _is_his(partition: Partition, ask: Ask, part: Part) -> bool:
    """Whether the owner of an ask may do this without being an administrator, told from the rules of access alone."""
    if part.what in OF_THE_ASK or part.what in (What.SMALLER, What.TIME):
        return True
    if part.what is What.QUEUE:
        queue = partition.root.find(part.subject)
        return queue is not None and may_submit(queue, ask.app.spec.user, ask.app.spec.groups)
    if part.what is What.CANCEL:
        return partition.applications[part.subject.rpartition("/")[0]].user == ask.app.user
    if part.what is What.PRIORITY:
        bounds = [queue.properties.job_priority_max for queue in ask.app.queue.lineage]
        return all(bound is None or part.value <= bound for bound in bounds)
    return False


def _missed(scheduler: Scheduler, state: State, name: Name, ask: Ask, found: Ways, where: str, tally: Tally) -> None:
    """Every dimension by brute force; and pairs where nothing at all was found."""
    partition = scheduler.cluster.partitions[PART]
    told = {part.what for change in found.changes if change.at_once for part in change.parts}

    def starts(parts: Parts) -> bool:
        tally.tried += 1
        return not_refused(scheduler, parts) and starts_with(scheduler, state, name, parts)

    alone = False
    for kind, every in EVERYTHING.items():
        helps = next((parts for parts in every(partition, ask) if starts(parts)), None)
        if helps is not None:
            alone = True
            tally.helped[kind] += 1
            if not SAME.get(kind, {kind}) & told:
                tally.missed.append(f"{where}: {helps}")
    if not alone and not found.changes:
        helps = next((parts for parts in pairs(partition, ask) if starts(parts)), None)
        if helps is not None:
            tally.helped["pair"] += 1
            tally.missed.append(f"{where}: {helps}")


def _tell(tally: Tally) -> None:
    """How far it is, for whoever waits."""
    if tally.states % 50 == 0:
        print(f"{tally.states} states, {tally.wrong} wrong", file=sys.stderr, flush=True)


def main() -> int:
    """A third of the states by YuniKorn's rules alone, one with every policy, one with windows and `both` too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=FIRST, help="the number of the first state")
    parser.add_argument("--asks", type=int, default=2, help="of each state at most")
    given = parser.parse_args()
    tally = Tally()
    for number, kind in enumerate(KINDS):
        count = (given.states + number) // len(KINDS)
        compared(kind, range(given.first, given.first + count), given.asks, tally, lambda: _tell(tally))
    print("\n".join(tally.lines()))
    return int(tally.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
