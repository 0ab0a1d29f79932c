"""The engine: a workload, a queue file, nodes and faults through the production scheduler, in virtual time.

Decides what happens next: the earliest of what ends, what fails, what comes, and the scheduler's own timers. Never
decides who runs. Invariants: the same input gives the same decisions, byte for byte; each task has exactly one fate;
the work for one event does not depend on how long the workload is.

At one moment first ends what ends (what is free can be used at once), then nodes are lost and come back, then comes
what comes, then the scheduler runs, again and again until nothing it stopped has made more room.

What an engine does that a place with real work does too: it tells of ends, confirms stops (at once, or after the ask's
grace), and gives a gang its real asks once its placeholders stand. Work that was stopped or lost comes back by the
scheduler's own retry if its ask has one; otherwise its owner submits it again, as an ask `KEY#2`, unless `resubmit` is
off or it never gets through (`STARTS_MAX`). A task that reaches its declared time limit is cut off there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    Decision,
    Evict,
    NodeRejected,
    Released,
    Retried,
)
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Release, RemoveNode
from fairlead.core.model.reasons import Reason
from fairlead.core.model.specs import AskSpec, ClusterSpec, NodeSpec
from fairlead.scheduler import Scheduler
from fairlead.sim.attempts import ENDED, FAILED, STARTS_MAX, Attempt, Gang, Reasons, Room, Settings, Standstill, sized
from fairlead.sim.columns import Columns, End, Fate
from fairlead.sim.jobs import LOST, Fault, Job, Upcoming, counted_from, in_order
from fairlead.sim.lines import Account
from fairlead.virtual_time import VirtualTime

PROGRESS_EVERY = 512
NO_QUEUE = "no queue named"
Id = tuple[str, str]
"""Application and key of an ask."""


class Refused(ValueError):
    """The queue file or a node was refused; the text is the scheduler's reason."""


def _earlier(one_ms: int | None, other_ms: int | None) -> int | None:
    return other_ms if one_ms is None or (other_ms is not None and other_ms < one_ms) else one_ms


class Engine(VirtualTime):
    """A simulation under way."""

    def __init__(
        self,
        spec: ClusterSpec,
        nodes: Iterable[NodeSpec],
        jobs: Iterable[Job],
        faults: Iterable[Fault] = (),
        settings: Settings | None = None,
    ) -> None:
        """Takes the queue file and the nodes in at the time of the first job; raises `Refused` if one is refused."""
        self.settings = settings or Settings()
        self._jobs = Upcoming(in_order(jobs))
        self.begin_ms = self._jobs.next_ms or 0
        self._faults = Upcoming(counted_from(self.begin_ms, faults))
        super().__init__(Scheduler(now_ms=self.begin_ms), self.begin_ms)
        self.recorder = self.settings.recorder
        self.columns = Columns()
        self.columns.begin_ms = self.columns.end_ms = self.now_ms
        self.tasks = self.ended = self.decisions = 0
        self.refused = Reasons()
        """Why tasks were refused (names left out of the sentence), and how many."""
        self.waiting: dict[Id, Attempt] = {}
        self.running: dict[Id, Attempt] = {}
        self.stopped = False
        """Set it to stop before the next moment."""
        self.account = Account(self.settings.digest, self.settings.lines)
        self._queue_of: dict[str, str] = {}
        """The queue of each application that has not ended, as placement rules chose it."""
        self._gangs: dict[str, Gang] = {}
        self._retries: dict[Id, Retried] = {}
        self._down: dict[str, NodeSpec] = {}
        self._nodes: dict[str, NodeSpec] = {}
        self._still = Standstill()
        self.handle(Configure(spec))
        self.scheduler.forget_ended()
        for node in nodes:
            self._add_node(node)
        self._room = Room(self._nodes.values())

    # -- the loop -------------------------------------------------------------------------------------------------

    def run(self, until_ms: int | None = None, progress: Callable[[int], None] | None = None) -> None:
        """Go on until nothing is left to happen, or to `until_ms`; `progress` hears how many tasks came or ended.

        Faults without end do not keep a simulation going: it is over when no work is left.
        """
        turns = 0
        at_ms: int | None = None
        while not self.stopped:
            at_ms = self._next_ms()
            if at_ms is None:
                self.now_ms = self._still.began_ms(self.now_ms, self.decisions)
            if at_ms is None or (until_ms is not None and at_ms > until_ms):
                break
            self._turn(at_ms)
            turns += 1
            if progress and turns % PROGRESS_EVERY == 0:
                progress(self.done)
        if until_ms is not None and not self.stopped and (at_ms is not None or self.waiting):
            self.now_ms = max(until_ms, self.now_ms)
        self.columns.end_ms = self.now_ms
        self.account.pass_on()
        if progress:
            progress(self.done)

    @property
    def done(self) -> int:
        """How many tasks came plus how many are through: twice the tasks when all is over."""
        return self.tasks + self.ended

    def why(self, waits: Id) -> Reason | None:
        """Why a task still waits; where its gang is not whole yet, why a placeholder of that does."""
        gang = self._gangs.get(waits[0])
        return self.scheduler.why(*waits) or (gang.why(self.scheduler) if gang is not None else None)

    def _next_ms(self) -> int | None:
        """The next moment at which anything happens; None when no work is left, or what waits can never start."""
        at_ms = _earlier(self._jobs.next_ms, self.due_ms)
        if self.waiting or self._gangs or (self.running and self._still.may_be_broken(self.scheduler)):
            due_ms = self.scheduler.next_wakeup_ms()
            if due_ms is not None and due_ms > self.now_ms:
                over = at_ms is None and self._still.is_over(self.scheduler, self.now_ms, self.decisions)
                at_ms = at_ms if over else _earlier(at_ms, due_ms)
        fault_ms = self._faults.next_ms
        if fault_ms is not None:
            # With nothing else to come, a fault matters only if it can bring room for what waits.
            hopes = self.waiting and self._still.may_bring_room(self._down)
            if (at_ms is not None and fault_ms < at_ms) or (at_ms is None and hopes):
                at_ms = fault_ms
        return None if at_ms is None else max(at_ms, self.now_ms)

    def _turn(self, at_ms: int) -> None:
        self.now_ms = at_ms
        self.happen(at_ms)
        for fault in self._faults.until(at_ms):
            self._strike(fault)
        for job in self._jobs.until(at_ms):
            self._submit(job)
        self.settle()

    # -- what comes -----------------------------------------------------------------------------------------------

    def _submit(self, job: Job) -> None:
        app = job.application
        self._still.ends()
        columns, at_ms, refusal = self.columns, self.now_ms, ""
        if app.id in self._queue_of:
            due_ms = self.scheduler.next_wakeup_ms()
            if due_ms is not None and due_ms <= at_ms:
                # It may have completed meanwhile: what was due before is said first.
                self.schedule(0)
        if app.id not in self._queue_of:
            self._queue_of[app.id] = app.queue
            refusal = self._room.too_small_for(job)
            for decision in () if refusal else self.handle(AddApplication(sized(job))):
                if isinstance(decision, ApplicationRejected):
                    refusal = f"{f'queue {app.queue}' if app.queue else NO_QUEUE}: {decision.reason.sentence()}"
        queue = columns.queues.of(self._queue_of.get(app.id, app.queue) or NO_QUEUE)
        user = columns.users.of(app.user)
        attempts = []
        for task in job.tasks:
            ask = task.ask
            name = ask.key if ask.key == app.id else f"{app.id}/{ask.key}"
            in_line_ms = at_ms if ask.conditions is None else max(ask.conditions.begin_ms, at_ms)
            row = columns.add_task(name, queue, user, ask.resources.items, ask.priority, in_line_ms)
            attempts.append(Attempt(task, row))
        self.tasks += len(attempts)
        if refusal:
            del self._queue_of[app.id]
            for attempt in attempts:
                self._refuse(attempt, refusal)
            return
        for attempt in attempts:
            self.waiting[app.id, attempt.ask.key] = attempt
        if job.gang:
            gang = self._gangs[app.id] = Gang(job, tuple(a.ask for a in attempts))
            self.handle(AddAsks(gang.placeholders))
        else:
            self.handle(AddAsks(tuple([a.ask for a in attempts])))

    def _open(self, gang: Gang) -> None:
        """Placeholders stand for all of it (or are given up): its real asks come."""
        app = gang.application
        del self._gangs[app]
        self.has_changed = True
        self.handle(AddAsks(tuple(ask for ask in gang.asks if (app, ask.key) in self.waiting)))

    def _refuse(self, attempt: Attempt, sentence: str) -> None:
        ask = attempt.task.ask
        self.refused.add(sentence, ask.key, ask.application)
        self._over(attempt, Fate.REFUSED)

    def _over(self, attempt: Attempt, fate: Fate) -> None:
        self.ended += 1
        self.columns.fate[attempt.row] = fate
        self.columns.done_ms[attempt.row] = self.now_ms

    # -- what ends ------------------------------------------------------------------------------------------------

    def _end(self, attempt: Attempt) -> None:
        """A run ends by itself."""
        # None: what its time limit ended is not tried again, as on a machine.
        code = None if attempt.cut_off else attempt.task.exit_code
        how = End.CUT_OFF if attempt.cut_off else End.FAILED if code else End.FINISHED
        id_ = self._leave(attempt, how)
        self.handle(Release(*id_, Cause.FINISHED, exit_code=code))
        if not (self._retries and self._comes_back(id_, attempt)):
            self._over(attempt, Fate.COMPLETED)

    def _leave(self, attempt: Attempt, how: End) -> Id:
        """It runs no longer."""
        del self.running[attempt.id]
        self._still.ends()
        for due in attempt.due:
            due.call_off()
        self.columns.end_run(attempt.run, self.now_ms, how)
        return attempt.id

    def _stopped(self, attempt: Attempt, cause: Cause) -> None:
        """What was told to stop has stopped."""
        id_ = self._leave(attempt, End.EVICTED)
        self.handle(Release(*id_, cause))
        self._again(id_, attempt)

    def _lost(self, attempt: Attempt) -> None:
        """Its node is gone, and so is it."""
        self._again(self._leave(attempt, End.LOST), attempt)

    def _again(self, id_: Id, attempt: Attempt) -> None:
        """It was stopped or lost: by whom does it come back, if at all?"""
        if self._comes_back(id_, attempt):
            return
        ask = attempt.ask
        is_submitted_again = self.settings.resubmit and ask.retry is None and attempt.tries < STARTS_MAX
        if not is_submitted_again or ask.application not in self._queue_of:
            self._over(attempt, Fate.GIVEN_UP)
            return
        tries = attempt.tries + 1
        self._wait_again(attempt, replace(ask, key=f"{attempt.task.ask.key}#{tries}", node="", task_group=""), tries)

    def _comes_back(self, id_: Id, attempt: Attempt) -> bool:
        """Whether the scheduler itself tries it again; then it waits from now on."""
        retried = self._retries.pop(id_, None)
        if retried is None:
            return False
        self._wait_again(attempt, replace(attempt.ask, key=retried.new_key), attempt.tries + 1, told=True)
        return True

    def _wait_again(self, attempt: Attempt, ask: AskSpec, tries: int, told: bool = False) -> None:
        fresh = Attempt(attempt.task.anew(), attempt.row)
        fresh.ask, fresh.tries = ask, tries
        self.columns.fate[attempt.row] = Fate.WAITING
        self.waiting[ask.application, ask.key] = fresh
        if not told:
            self.handle(AddAsks((ask,)))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _add_node(self, node: NodeSpec) -> None:
        self._nodes[node.id] = node
        self.handle(AddNode(node))
        self.columns.capacity.append((self.now_ms, node.id, node.capacity.items, 1))

    def _strike(self, fault: Fault) -> None:
        """A node is lost or comes back; what is so already, and a node that does not exist, changes nothing."""
        if fault.what == LOST and fault.node in self._nodes:
            node = self._down[fault.node] = self._nodes.pop(fault.node)
            self.columns.capacity.append((self.now_ms, node.id, node.capacity.items, -1))
            self.handle(RemoveNode(node.id, node.partition))
            self.follow()
        elif fault.what != LOST and fault.node in self._down:
            self._add_node(self._down.pop(fault.node))
            self._still.comes_back(fault.node)

    # -- what follows ---------------------------------------------------------------------------------------------

    def take(self, decisions: list[Decision]) -> None:
        """Remember what was decided."""
        if not decisions:
            return
        self.decisions += len(decisions)
        if self.account.wanted:
            self.account.tell(self.now_ms, decisions)
        for d in decisions:
            act = _ACTS.get(type(d))
            if act is not None:
                act(self, d)

    def _evict(self, order: Evict) -> None:
        if order.application in self._gangs and order.cause is not Cause.PLACEHOLDER_REPLACED:
            self._gangs[order.application].told_to_go(order.key)
        self.then(partial(self.stop, order))

    def stop(self, order: Evict) -> None:
        """A placeholder stops at once, a run after its grace."""
        attempt = self.running.get((order.application, order.key))
        if attempt is None:
            self.confirm(order)
            if order.application in self._gangs and order.cause is not Cause.PLACEHOLDER_REPLACED:
                self._placeholder_stopped(self._gangs[order.application], order)
            return
        if attempt.stopping is not None:
            return
        attempt.stopping = order.cause
        if stop_ms := attempt.stop_ms:
            attempt.due.append(self.later(self.now_ms + stop_ms, partial(self._stopped, attempt, order.cause)))
        else:
            self._stopped(attempt, order.cause)

    def _placeholder_stopped(self, gang: Gang, order: Evict) -> None:
        """Given back: it waits again. Its time was over: all go on one by one. Preempted: another takes its place."""
        again = self._retries.pop((order.application, order.key), None)
        if again is not None:
            gang.comes_back(order.key, again.new_key)
        elif order.cause is Cause.TIMEOUT:
            if gang.application in self._queue_of:
                self._open(gang)
        else:
            self.handle(AddAsks((gang.another(order.key),)))

    def _allocated(self, d: Allocated) -> None:
        attempt = self.waiting.pop((d.application, d.key), None)
        if attempt is None:
            if (gang := self._gangs.get(d.application)) is not None and gang.stands(d.key):
                self._open(gang)
            return
        self.running[d.application, d.key] = attempt
        now_ms = self.now_ms
        attempt.node, attempt.start_ms = d.node, now_ms
        attempt.run = self.columns.add_run(attempt.row, d.node, now_ms)
        attempt.due.append(self.later(now_ms + attempt.run_ms, partial(self._end, attempt)))

    def _released(self, d: Released) -> None:
        attempt = self.running.get((d.application, d.key))
        if attempt is not None:
            # Nobody was told that it ended: its node is gone.
            self.then(partial(self._lost, attempt))
        elif d.application in self._gangs and d.message.startswith("Node "):
            self.handle(AddAsks((self._gangs[d.application].another(d.key),)))

    def _retried(self, d: Retried) -> None:
        self._retries[d.application, d.key] = d

    def _application_accepted(self, d: ApplicationAccepted) -> None:
        self._queue_of[d.id] = d.queue

    def _application_changed(self, d: ApplicationChanged) -> None:
        if d.state in ENDED:
            self._queue_of.pop(d.id, None)
        for attempt in self._disbanded(d.id) if d.state in FAILED else ():
            self._over(attempt, Fate.GIVEN_UP)

    def _disbanded(self, app: str) -> list[Attempt]:
        """What waits for a gang that will never be whole."""
        gang = self._gangs.pop(app, None)
        ids = [(app, ask.key) for ask in gang.asks] if gang is not None else []
        return [self.waiting.pop(id_) for id_ in ids if id_ in self.waiting]

    def _ask_rejected(self, d: AskRejected) -> None:
        attempt = self.waiting.pop((d.application, d.key), None)
        for each in [attempt] if attempt is not None else self._disbanded(d.application):  # It was a placeholder.
            self._refuse(each, d.reason.sentence())

    def _refused(self, d: ConfigurationRejected | NodeRejected) -> None:
        raise Refused(d.reason.sentence())


_ACTS: dict[type[Any], Callable[[Engine, Any], None]] = {
    Allocated: Engine._allocated,
    Evict: Engine._evict,
    Released: Engine._released,
    Retried: Engine._retried,
    ApplicationAccepted: Engine._application_accepted,
    ApplicationChanged: Engine._application_changed,
    AskRejected: Engine._ask_rejected,
    ConfigurationRejected: Engine._refused,
    NodeRejected: Engine._refused,
}
