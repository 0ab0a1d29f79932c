"""Which queue a submitted job will go to and with which priority, before it is entered: so that a batch is taken in
as a whole or not at all.

Decides what a refusal says to the person who submitted. Never places anything: it asks the scheduler's own rules and
access lists what they will say. Invariant: what it lets pass the scheduler takes, as long as nothing happens between.

It is stricter than the scheduler in one point: who names a queue gets that queue or is refused. The scheduler, as
YuniKorn does, would put such work into `root.default` instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.core.model.conditions import Awaited, Dependency
from fairlead.core.model.properties import QueueProperties
from fairlead.core.model.reasons import Reason, SubmitDenied
from fairlead.core.model.specs import DEFAULT_PARTITION, ApplicationSpec, AskSpec
from fairlead.local import job_bounds
from fairlead.local.callers import Rights
from fairlead.local.history_records import JobSpec
from fairlead.local.job_names import job_of
from fairlead.policy.events.admission import Trial
from fairlead.policy.queue_choice.acl import may_submit
from fairlead.policy.queue_choice.placement import AS_DEFAULT, Foreseen, foresee
from fairlead.runtime import Refusal
from fairlead.wire.arrays import SAME_INDEX, split

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.scheduler import Scheduler

SUBMIT_DENIED = "submit-denied"
NO_QUEUE = "no-queue"
_SUGGESTED = 8


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a job is not taken in. `queue`: the one that would have to let him in, if it is about access."""

    code: str
    sentence: str
    queue: str = ""
    by_scheduler: bool = True
    """The scheduler refuses it too (and keeps it among the rejected applications)."""


@dataclass(frozen=True, slots=True)
class Placing:
    """What will become of one job: the full path of its queue where it names one, and what chose it."""

    spec: JobSpec
    queue: str
    rule: str = ""
    denial: Denial | None = None
    path: str = ""
    """Where it will be."""
    whole: JobSpec | None = None
    """A job that asks for the same, with what the queue says where it says nothing; None: there is nothing to add."""

    def job(self, key: str) -> JobSpec:
        """The job as it is entered."""
        whole = self.whole or self.spec
        return replace(
            self.spec,
            key=key,
            queue=self.queue,
            resources=whole.resources,
            time_limit_ms=whole.time_limit_ms,
            retry=whole.retry,
        )


def application_of(spec: JobSpec) -> ApplicationSpec:
    """The application that a job is to the scheduler."""
    at_once = spec.array.at_once if spec.array is not None else 0
    return ApplicationSpec(
        id=spec.application, queue=spec.queue, user=spec.user, groups=spec.groups, tags=spec.tags, at_once=at_once
    )


def plan(scheduler: Scheduler, specs: Sequence[JobSpec], rights: Rights) -> list[Placing]:
    """What will become of each. Raises `Refusal` for a queue that does not exist, with some that do."""
    partition = scheduler.cluster.partitions[DEFAULT_PARTITION]
    known: dict[object, _Place] = {}
    bounds: dict[object, Placing] = {}
    trial = Trial(partition.admission)
    placings = []
    for index, spec in enumerate(specs):
        alike = (spec.queue, spec.user, spec.groups, tuple(sorted(spec.tags.items())))
        if alike not in known:
            known[alike] = _one(partition, spec, index)
        place = known[alike]
        placed = Placing(spec, place.queue, place.rule, place.denial, place.path)
        if place.denial is None and not rights.caller.reaches(place.path):
            said = f"this token is for {rights.caller.within} alone, and the job would be in {place.path}"
            placed = replace(placed, denial=Denial(SUBMIT_DENIED, said, place.path, by_scheduler=False))
        elif place.denial is None:
            # Most jobs of a submission ask for the same: they are compared with the bounds once.
            asked = (alike, spec.resources, spec.time_limit_ms, spec.grace_ms, spec.priority, spec.priority_class)
            again = (spec.retry, spec.idle, spec.terminal, spec.limit_signal)
            first = bounds.get((asked, again))
            if first is None:
                first = bounds[asked, again] = _within_bounds(placed, place, rights)
            placed = Placing(spec, place.queue, place.rule, first.denial, place.path, first.spec)
        if placed.denial is None and (spec.priority_class or partition.admission.is_asked):
            placed = _admitted(trial, placed, place.path, enters=not _is_held(partition, spec))
        placings.append(placed)
    return placings


def _within_bounds(placed: Placing, place: _Place, rights: Rights) -> Placing:
    """The same with the defaults of its queue, or with which of its bounds keeps it out."""
    spec = job_bounds.with_defaults(placed.spec, place.said)
    broken = job_bounds.broken(spec, place.said, place.path, administers=rights.administers(place.path))
    if not broken:
        return replace(placed, spec=spec)
    denial = Denial(broken[0].code, broken[0].sentence, place.path, by_scheduler=False)
    return replace(placed, spec=spec, denial=denial)


def _at_once(spec: JobSpec) -> int:
    """How many of what is submitted count for quotas: what waits for its turn does when that comes."""
    return (spec.array.at_once if spec.array is not None else 0) or spec.count


def _is_held(partition: Partition, spec: JobSpec) -> bool:
    """Whether it is not in line at first: quotas are asked when it enters."""
    return spec.hold or spec.begin_ms > partition.now_ms or any(_is_to_come(partition, each) for each in spec.after)


def _is_to_come(partition: Partition, awaited: Dependency) -> bool:
    """Whether what is waited for has not come about: of the same submission nothing has."""
    app = partition.applications.get(split(awaited.application)[0])
    if app is None:
        return awaited.application.startswith("#")
    # Of parts of the same index some enter at once perhaps: each is asked then.
    is_whole, to_start = awaited.application in (app.id, f"{app.id}.{SAME_INDEX}"), awaited.awaited == Awaited.STARTED
    if is_whole and not to_start:
        return bool(app.asks) or partition.held_asks.has(app.id)
    left = [*app.asks, *(each.spec.key for each in partition.held_asks.of(app.id))]
    left = [key for key in left if is_whole or job_of(key) == awaited.application]
    if not to_start:
        return bool(left)
    # A further attempt (`KEY#2`) has started before.
    has_started = any("#" in key or ((ask := app.asks.get(key)) is not None and ask.node is not None) for key in left)
    return bool(left) and not has_started


def _admitted(trial: Trial, placed: Placing, path: str, *, enters: bool) -> Placing:
    """The same with the priority that its class stands for, or with why its class or a quota keeps it out."""
    spec = placed.job("")
    ask = AskSpec(
        application="", key="", resources=spec.resources, priority=spec.priority, priority_class=spec.priority_class
    )
    admitted = trial.admit(path, ask, enters=enters)
    for _ in range(_at_once(spec) - 1 if enters else 0):
        admitted = trial.admit(path, ask)
    if isinstance(admitted, Reason):
        return replace(placed, denial=Denial(admitted.code, admitted.sentence(), path, by_scheduler=False))
    priority, name = admitted.priority, admitted.priority_class
    return replace(placed, spec=replace(placed.spec, priority=priority, priority_class=name))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where jobs of one kind go: the queue that they name, and the one that the rules choose."""

    queue: str
    rule: str = ""
    denial: Denial | None = None
    path: str = ""
    said: QueueProperties = field(default_factory=QueueProperties)


def _one(partition: Partition, spec: JobSpec, index: int) -> _Place:
    given, asked = spec.queue, full_path(partition, spec.queue)
    spec = replace(spec, queue=asked)
    foreseen = foresee(partition, application_of(spec))
    elsewhere = bool(asked) and foreseen.rule == AS_DEFAULT and foreseen.path != asked
    if foreseen.refused is None and not elsewhere:
        return _Place(
            asked, foreseen.rule, None, foreseen.path, job_bounds.properties_of(partition, foreseen.path or asked)
        )
    denied = next((a.obstacle for a in foreseen.tried if isinstance(a.obstacle, SubmitDenied)), None)
    by_scheduler = foreseen.refused is not None
    if denied is not None:
        advice = f"ask an administrator to add you to the submitacl of {denied.queue} in the queue file"
        denial = Denial(SUBMIT_DENIED, f"{denied.sentence()}; {advice}", denied.queue, by_scheduler)
        return _Place(asked, "", denial)
    if not partition.spec.placement_rules:
        raise Refusal("invalid", _unknown(partition, spec, given), field=f"jobs[{index}].queue")
    return _Place(asked, "", Denial(NO_QUEUE, _no_rule(foreseen), "", by_scheduler))


def full_path(partition: Partition, queue: str) -> str:
    """The whole path of a leaf, in lower case, for a name that may lack `root.`; other texts as they are."""
    wanted = queue.lower()
    if wanted and wanted != "root" and not wanted.startswith("root."):
        wanted = f"root.{wanted}"
    return wanted if partition.root.find(wanted) is not None else queue


def suggestions(partition: Partition, queue: str, user: str, groups: tuple[str, ...]) -> str:
    """`, such as A or B`: leaves with a name like this that the user may submit to, or some of them all."""
    leaves = [each for each in partition.root.walk() if each.is_leaf and each.draining is None]
    known = [each.path for each in leaves if may_submit(each, user, groups)]
    close = difflib.get_close_matches(queue.lower(), known, 3, 0.6) or sorted(known)[:_SUGGESTED]
    return f", such as {' or '.join(filter(None, (', '.join(close[:-1]), close[-1])))}" if close else ""


def no_queue(partition: Partition, queue: str, user: str, groups: tuple[str, ...]) -> str:
    """That there is no queue of this name, and which there are for the user."""
    wanted = queue if queue.lower().startswith("root") else f"root.{queue}"
    there = suggestions(partition, wanted, user, groups)
    return f"there is no queue {queue}{f'; name one{there}' if there else ''}"


def _unknown(partition: Partition, spec: JobSpec, queue: str) -> str:
    found = partition.root.find(full_path(partition, queue)) if queue else None
    if not queue:
        there = suggestions(partition, queue, spec.user, spec.groups)
        return f"there is no root.default, where jobs go that name no queue; name one{there}" + (
            "" if there else f": but there is none to which {spec.user} may submit; ask an administrator"
        )
    if found is None:
        return no_queue(partition, queue, spec.user, spec.groups)
    if found.is_leaf:
        said = f"{(found.draining or found).path} is draining and takes nothing new; name another one"
    else:
        said = f"{found.path} has queues below it; name one of them"
    return said + suggestions(partition, found.path, spec.user, spec.groups)


def _no_rule(foreseen: Foreseen) -> str:
    """What each rule said, in one sentence."""
    said = [each.obstacle.sentence() for each in foreseen.tried if each.obstacle is not None]
    reason = foreseen.refused.sentence() if foreseen.refused is not None else ""
    if not said or (reason and "no placement rule matched" not in reason):
        return f"no queue takes it: {reason}"
    return f"no queue takes it: {'; '.join(said)}"
