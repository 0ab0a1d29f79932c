"""The books of a recorded course at one moment: what waited and ran then, in the shapes of the wire.

Decides what is called a job: an ask, by its key, with its application before it where one has several. Never changes
anything. Invariant: whoever looks sees everything; a reason is what the scheduler said at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.model.specs import DEFAULT_PARTITION, AskSpec
from fairlead.insight.forecast import kind_of
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.suppositions import Supposition
from fairlead.local.callers import Caller
from fairlead.local.job_names import job_of
from fairlead.runtime import Refusal
from fairlead.service import views
from fairlead.service.place import JobFilter, drafted
from fairlead.wire import jobs as wire
from fairlead.wire.fields import with_cpu
from fairlead.wire.stopped import in_brackets
from fairlead.wire.verdicts import Why

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.insight.trial import Name
    from fairlead.scheduler import Scheduler

VIEWER = Caller("", -1, True, may_submit=False)
"""Whoever opened the course: there is nothing in it to keep from them."""


class Held(NamedTuple):
    """An ask that is not in line yet."""

    app: Application
    spec: AskSpec


def key_of(application: str, ask: str) -> str:
    """What an ask is called: its attempts have one name."""
    key = job_of(ask)
    return key if key.startswith(application) else f"{application}:{key}"


class CourseMoment:
    """What was so then (`place.Moment`)."""

    caller = VIEWER

    def __init__(self, scheduler: Scheduler, names: Mapping[str, str]) -> None:
        """`names`: of jobs, as far as they are known."""
        self.scheduler, self._names = scheduler, names
        partitions = scheduler.cluster.partitions
        self.partition = DEFAULT_PARTITION if DEFAULT_PARTITION in partitions else next(iter(partitions), "")

    # -- which --------------------------------------------------------------------------------------------------------

    def _all(self) -> Iterator[Ask | Held]:
        partition = self.scheduler.cluster.partitions.get(self.partition)
        if partition is None:
            return
        for app in partition.applications.values():
            yield from app.asks.values()
        for application, held in partition.held_asks:
            yield Held(partition.applications[application], held.spec)

    def _one(self, key: str) -> Ask | Held:
        for ask in self._all():
            if key_of(ask.app.id, ask.spec.key) == key:
                return ask
        raise Refusal("not-found", f"no job {key} waited or ran at that moment")

    def found(self, wanted: JobFilter) -> Iterator[Ask | Held]:
        """Those that pass."""
        if wanted.array is not None or wanted.tags or wanted.namespace is not None:
            raise Refusal("invalid", "a recorded course knows no arrays, tags and namespaces; leave them out")
        for ask in self._all():
            name = self._name_of(ask)
            if wanted.passes(state_of(ask), ask.app.queue.path, ask.app.user, name):
                yield ask

    def order(self, ask: Ask | Held) -> tuple[int, str, str]:
        """By when it came."""
        return _created_ms(ask), ask.app.id, ask.spec.key

    def name(self, key: str) -> Name:
        """As the books have it."""
        ask = self._one(key)
        return self.partition, ask.app.id, ask.spec.key

    def knows(self, key: str) -> bool:
        """What is held is known, too."""
        self._one(key)
        return True

    def last_waiting(self, key: str) -> str:
        """There are no arrays."""
        return key

    def sees(self, application: str) -> bool:
        """Everything."""
        del application
        return True

    def in_line(self, ask: Ask) -> tuple[str, str, wire.Reason | None, bool]:
        """With its reason."""
        key, name, visible = self.called(ask)
        return key, name, self._reason(ask), visible

    def called(self, ask: Ask) -> tuple[str, str, bool]:
        """Everything is there to be seen."""
        return key_of(ask.app.id, ask.key), self._name_of(ask), True

    # -- how they are shown -------------------------------------------------------------------------------------------

    def row(self, ask: Ask | Held) -> wire.Job:
        """As a row of a list."""
        return wire.Job(**self._row(ask))

    def details(self, key: str) -> wire.JobDetails:
        """What the books know."""
        ask = self._one(key)
        spec, nomination = ask.spec, None if isinstance(ask, Held) else ask.nomination
        return wire.JobDetails(
            **self._row(ask),
            application=ask.app.id,
            labels=dict(spec.labels),
            tags=dict(spec.tags),
            task_group=spec.task_group,
            placeholder=spec.placeholder,
            idle=spec.idle,
            grace_ms=spec.grace_ms,
            priority_class=spec.priority_class,
            attempts=spec.attempt,
            nominated=nomination.node.id if nomination is not None else "",
        )

    def _row(self, ask: Ask | Held) -> dict[str, Any]:
        node = None if isinstance(ask, Held) else ask.node
        return {
            "key": key_of(ask.app.id, ask.spec.key),
            "name": self._name_of(ask),
            "queue": ask.app.queue.path,
            "time_limit_ms": ask.spec.time_limit_ms,
            "user": ask.app.user,
            "priority": ask.spec.priority if isinstance(ask, Held) else ask.priority,
            "state": state_of(ask),
            "node": node.id if node is not None else "",
            "exit_code": None,
            "reason": self._reason(ask),
            "submitted_at_ms": _created_ms(ask),
            "started_at_ms": None if isinstance(ask, Held) else ask.allocated_ms,
            "ended_at_ms": None,
            "resources": with_cpu(ask.spec.resources.as_dict()),
        }

    def _name_of(self, ask: Ask | Held) -> str:
        key = job_of(ask.spec.key)
        known = self._names.get(key) or self._names.get(ask.app.id)  # Parts of an array have its name.
        return known or ask.spec.tags.get("name", "") or ask.app.spec.tags.get("name", "")

    def _reason(self, ask: Ask | Held) -> wire.Reason | None:
        if state_of(ask) == "stopping" and not isinstance(ask, Held):
            rule, whom = ask.evicted_by or ("", "")
            said = "was told to stop" + (f" to make room for {whom.rpartition('/')[2]}" if whom else "")
            said += in_brackets(rule)
            return wire.Reason(code="evicted", sentence=said, values={"rule": rule, "on_behalf_of": whom})
        if state_of(ask) == "running":
            return None
        return views.waits_for(self.scheduler.why(ask.app.id, ask.spec.key, self.partition))

    def why(self, key: str) -> Why:
        """Without the verdict."""
        ask = self._one(key)
        reason, row = self._reason(ask), self._row(ask)
        it = f"it runs on {row['node']}" if row["node"] else "the scheduler had yet to look at it"
        return Why(
            key=key,
            state=row["state"],
            reason=reason,
            sentence=reason.sentence if reason else it,
            queue_position=None if isinstance(ask, Held) else views.place_in_line(ask),
            expected_start_ms=self.scheduler.expected_start_ms(ask.app.id, ask.spec.key, self.partition),
        )

    # -- what is supposed ---------------------------------------------------------------------------------------------

    def submission(self, draft: wire.JobDraft) -> Supposition:
        """A job like this draft; its command does not matter."""
        return drafted(draft, self.partition)

    def target(self, key: str, queue: str) -> str:
        """As it was given."""
        del key
        return queue

    def future(self) -> tuple[Runtimes, Callable[[Ask], Kind]]:
        """Nothing was learned: limits of time are all that is known of how long work lasts."""
        return Runtimes(), kind_of

    def arrivals(self) -> None:
        """Nobody noted what came."""
        return


def state_of(ask: Ask | Held) -> wire.Stoppable:
    """`waiting`, `running` or `stopping`."""
    if isinstance(ask, Held) or ask.node is None:
        return "waiting"
    return "stopping" if ask.evict_cause is not None else "running"


def _created_ms(ask: Ask | Held) -> int:
    return ask.app.submitted_ms if isinstance(ask, Held) else ask.created_ms
