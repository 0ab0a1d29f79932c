"""Windows: times in which nodes are kept free, for maintenance or for the work of some.

Decides which windows an ask would run into if it started now, and what that means for where it may run. Never stops
anything, and starts nothing (`core.acts.windows` says what follows when time goes on). Invariant: what waits has the
constraints that its windows give it at the time of the books; a timer is set for the next moment at which that changes.

An ask runs into a window when its time limit reaches beyond the beginning; without a limit it runs into every one that
is to come. Of a window that comes again the next time counts alone: what reaches that far is kept from it anyway. All
of it is said in constraints (`Ask.where`), so that placement, preemption, kept turns and forecasts need to know nothing
of windows, and nothing is dearer while there are none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlead.core.books.declared import Declared, Problem
from fairlead.core.books.user_limits import groups_of
from fairlead.core.model.constraints import DOES_NOT_EXIST, NODE_NAME, NOT_IN, Constraints, Requirement
from fairlead.core.model.plain import to_plain
from fairlead.core.model.specs import WindowSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition

TIMER = "window"


def window_problem(spec: WindowSpec) -> Problem:
    """What is wrong with a window."""
    if not spec.name:
        return "name", "a window has no name"
    if spec.length_ms <= 0:
        return "length", f"window {spec.name}: it has to be longer than nothing"
    if spec.starts_ms < 0:
        return "starts", f"window {spec.name}: it begins before 1970"
    if spec.every_ms < 0 or 0 < spec.every_ms <= spec.length_ms:
        advice = "make it shorter, or let it come less often"
        return "every", f"window {spec.name}: it would come again before it is over; {advice}"
    return None


def occurrence(spec: WindowSpec, now_ms: int) -> tuple[int, int] | None:
    """When it begins and ends: this time, if it is open, else the next; None: it is over."""
    start_ms = spec.starts_ms
    if now_ms >= start_ms + spec.length_ms:
        if not spec.every_ms:
            return None
        start_ms += ((now_ms - start_ms - spec.length_ms) // spec.every_ms + 1) * spec.every_ms
    return start_ms, start_ms + spec.length_ms


def is_for(spec: WindowSpec, app: Application) -> bool:
    """Whether the window is for the work of this application, and keeps it from nothing."""
    queues = [path.lower() for path in spec.queues]
    if app.user in spec.users or any(group in spec.groups for group in groups_of(app.user, app.spec.groups)):
        return True
    return bool(queues) and any(queue.path in queues for queue in app.queue.lineage)


def covers(spec: WindowSpec, node: Node) -> bool:
    """Whether the window keeps this node free."""
    return not spec.nodes or node.id in spec.nodes


def lasts_into(spec: WindowSpec, ask: Ask, start_ms: int) -> bool:
    """Whether running work may still run when the window begins, which is not for it."""
    limit_ms = ask.limit_ms
    ends_ms = None if limit_ms is None or ask.allocated_ms is None else ask.allocated_ms + limit_ms
    return (ends_ms is None or ends_ms > start_ms) and not is_for(spec, ask.app)


class Windows(Declared[WindowSpec]):
    """All windows, by name. They hold in every partition."""

    def __init__(self) -> None:
        super().__init__("window", window_problem)
        self.opened: dict[tuple[str, str], int] = {}
        """By partition and name those that are open and were said to be: when they began."""

    def forget(self, partition: str) -> None:
        """A partition is gone: nothing is open there."""
        self.opened = {where: began_ms for where, began_ms in self.opened.items() if where[0] != partition}

    # -- what is in the way of an ask -----------------------------------------------------------------------------

    def ahead_of(self, ask: Ask, now_ms: int, within_ms: int = 0) -> Iterator[tuple[WindowSpec, int, int]]:
        """The windows that it would run into if it started now, or so much later, and when each begins and ends."""
        limit_ms = ask.limit_ms
        for spec in self._specs.values():
            times = occurrence(spec, now_ms)
            if (
                times is None
                or (limit_ms is not None and now_ms + within_ms + limit_ms <= times[0])
                or is_for(spec, ask.app)
            ):
                continue
            yield spec, *times

    def let(self, ask: Ask, node: Node, now_ms: int, within_ms: int = 0) -> bool:
        """Whether it would run into none that keeps this node free if it started now, or so much later."""
        return not any(covers(spec, node) for spec, _, _ in self.ahead_of(ask, now_ms, within_ms))

    def where(self, partition: Partition, ask: Ask) -> Constraints:
        """Where it may run if it starts now."""
        own, ahead = ask.spec.where, [spec for spec, _, _ in self.ahead_of(ask, partition.now_ms)]
        if not ahead:
            return own
        kept_free = dict.fromkeys(node for spec in ahead for node in spec.nodes)
        is_elsewhere = Requirement(NODE_NAME, NOT_IN, tuple(kept_free))
        return replace(own, selector=(*own.selector, is_elsewhere if all(spec.nodes for spec in ahead) else _NOWHERE))

    def narrow(self, partition: Partition, ask: Ask) -> Constraints:
        """The same; when that changes with time, there is a timer for it."""
        due_ms = self.changes_ms(ask, partition.now_ms)
        if due_ms is not None:
            partition.timers.set_earlier(due_ms, partition.name, "", TIMER)
        return self.where(partition, ask)

    def changes_ms(self, ask: Ask, now_ms: int) -> int | None:
        """When it begins to reach into the next window; None: it does already, or has no time limit."""
        limit_ms = ask.limit_ms
        if limit_ms is None:
            return None
        due = (start_ms - limit_ms + 1 for start_ms, _ in self.times(now_ms))
        return min((due_ms for due_ms in due if due_ms > now_ms), default=None)

    def next_ms(self, now_ms: int) -> int | None:
        """When the next window begins or ends."""
        return min((at_ms for times in self.times(now_ms) for at_ms in times if at_ms > now_ms), default=None)

    def times(self, now_ms: int) -> list[tuple[int, int]]:
        """When each that is not over begins and ends, this time or next."""
        return [times for spec in self._specs.values() if (times := occurrence(spec, now_ms)) is not None]

    # -- what runs ------------------------------------------------------------------------------------------------

    def runs_into(self, spec: WindowSpec, partition: Partition, start_ms: int) -> Iterator[Ask]:
        """Running work that the window is not for and that may still run when it begins, in the order of nodes."""
        for node in partition.nodes.nodes.values():
            for ask in node.allocations if covers(spec, node) else ():
                if lasts_into(spec, ask, start_ms):
                    yield ask

    # -- written down ---------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """All of it as plain values."""
        opened = [[*names, began_ms] for names, began_ms in self.opened.items()]
        return {"specs": [to_plain(spec) for spec in self._specs.values()], "opened": opened}

    def load(self, state: dict[str, Any] | None) -> None:
        """What `dump` wrote down (None: by a version that knew nothing of it)."""
        if state is not None:
            self._load(state["specs"], ())
            self.opened = {(partition, name): began_ms for partition, name, began_ms in state["opened"]}


_NOWHERE = Requirement(NODE_NAME, DOES_NOT_EXIST)
"""Every node has one."""
