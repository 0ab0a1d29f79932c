"""The library as a place: a resource manager that does by hand what the course says, on a clock of its own."""

from __future__ import annotations

from dataclasses import replace

from invariants.books import check_books
from places.course import PLACEHOLDER, Course, Decided, Happening, task_of
from places.workload import PAUSE_MS, JobWords, Workload, application, asks, node_spec

from fairlead.core.model.events import Cause, Release
from fairlead.core.model.resources import NOTHING
from fairlead.core.model.specs import NodeSpec
from fairlead.library.callbacks import AllocationResponse, SilentCallbacks
from fairlead.library.service import SchedulerService

RM = "places"


class Owner(SilentCallbacks):
    """Starts and stops nothing: it takes note, and confirms at once what it was told to stop."""

    def __init__(self, workload: Workload) -> None:
        self.now_ms = 0
        self.decided = Decided()
        self._changed = False
        """Something was told since scheduling ran."""
        self._gangs: dict[str, tuple[JobWords, int]] = {}
        """Gangs that wait for so many placeholders."""
        self._application: dict[str, str] = {}
        """Of each task."""
        self._keys: dict[str, str] = {}
        """The attempt of each task that was placed last."""
        self._service = SchedulerService(automatic=False, clock=lambda: self.now_ms)
        self._service.register_resource_manager(RM, workload.queues, self)

    def nodes(self, nodes: list[NodeSpec]) -> None:
        self._service.update_node(RM, create=nodes)

    def happen(self, happening: Happening) -> Decided:
        """Tell it what happens and let it decide until nothing more follows."""
        self.decided = Decided()
        for job in happening.submit:
            self._submit(job)
        if happening.end:
            self._release(self._application[happening.end], self._keys[happening.end], Cause.FINISHED)
        end_ms = self.now_ms + PAUSE_MS
        while self.now_ms < end_ms:
            self._changed = True
            while self._changed:
                self._changed = False
                placed = self._service.step(1000)
                self._changed = self._changed or placed > 0
            with self._service.books(RM) as scheduler:
                due_ms = scheduler.next_wakeup_ms()
            self.now_ms = end_ms if due_ms is None else min(max(due_ms, self.now_ms + 1), end_ms)
        with self._service.books(RM) as scheduler:
            check_books(scheduler)
        return self.decided

    def _submit(self, job: JobWords) -> None:
        asked = asks(job)
        size = NOTHING
        for ask in asked:
            size += ask.resources
        spec = application(job)
        self._service.update_application(RM, new=[replace(spec, placeholder_ask=size) if job.gang else spec])
        self._application.update((ask.key, job.name) for ask in asked)
        if job.gang:
            self._gangs[job.name] = (job, len(asked))
            held = [replace(ask, key=f"{ask.key}~", placeholder=True, task_group="all") for ask in asked]
            self._service.update_allocation(RM, asks=held)
        else:
            self._service.update_allocation(RM, asks=asked)

    def update_allocation(self, response: AllocationResponse) -> None:
        for placed in response.new:
            self._note(placed.application, placed.key, placed.node)
        for evicted in response.evict:
            if not evicted.key.endswith("~"):
                self.decided.stop(task_of(evicted.key))
            self._release(evicted.application, evicted.key, evicted.cause)

    def _note(self, app: str, key: str, node: str) -> None:
        if not key.endswith("~"):
            self._keys[task_of(key)] = key
            self.decided.place(task_of(key), node)
            return
        self.decided.place(f"{app}{PLACEHOLDER}", node)
        job, missing = self._gangs[app]
        self._gangs[app] = (job, missing - 1)
        if missing == 1:
            self._service.update_allocation(RM, asks=[replace(ask, task_group="all") for ask in asks(job)])

    def _release(self, app: str, key: str, cause: Cause) -> None:
        self._changed = True
        self._service.update_allocation(RM, releases=[Release(app, key, cause)])


def run(workload: Workload, expected: Course) -> Course:
    """Do what the course says, until something else is decided than elsewhere."""
    owner = Owner(workload)
    owner.nodes([node_spec(node) for node in workload.nodes])
    course: Course = []
    for happening, elsewhere in expected:
        decided = owner.happen(happening)
        course.append((happening, decided))
        if decided.lines() != elsewhere.lines():
            break
    return course
