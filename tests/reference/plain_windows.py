"""Windows: times in which nodes are kept free for the work of some, and what they keep away.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reference.plain_held import Held
from reference.plain_line import NEVER, Task, Work
from reference.plain_room import HOUR_MS

PATIENCE_MS = 10**12
"""How long placeholders wait for their gang."""


@dataclass(frozen=True)
class Window:
    """A time in which nodes are kept free."""

    name: str
    start_ms: int
    length_ms: int
    every_ms: int = 0
    """It comes again so long after it began; 0: it does not."""
    nodes: tuple[str, ...] = ()
    """None: all of them."""
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """Whose work it keeps away from nothing, with that of queues below these."""
    stops: bool = False
    """What still runs when it begins is told to stop."""

    def times(self, now_ms: int) -> tuple[int, int] | None:
        """When it begins and ends, this time if it is open, else next; None: never again."""
        begin_ms = self.start_ms
        while begin_ms + self.length_ms <= now_ms:
            if not self.every_ms:
                return None
            begin_ms += self.every_ms
        return begin_ms, begin_ms + self.length_ms


class Windowed(Held):
    """What would run into a window does not start."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)
        self.windows: dict[str, Window] = {}
        self.look_ms = NEVER
        """When a window begins or ends next, or something begins to reach into one."""
        self.last_ms = 0
        """When something started last that was no placeholder."""

    def _tell(self, victim: Work, for_whom: str) -> None:
        raise NotImplementedError

    def _is_for(self, window: Window, work: Work) -> bool:
        job = work.gang.job
        return job.user in window.users or any(self._within(path, work.gang) for path in window.queues)

    def _lasts_ms(self, work: Work) -> int | None:
        """A placeholder may wait for its gang before."""
        limit_ms = work.task.limit_ms
        return limit_ms if limit_ms is None or not work.is_holder else limit_ms + PATIENCE_MS

    def _runs_into(self, work: Work, node: str, in_ms: int = 0) -> bool:
        """Whether it would still run on the node when a window begins there that is not for it, if it started so much
        later.
        """
        limit_ms = self._lasts_ms(work)
        for window in self.windows.values():
            times = window.times(self.now_ms)
            if times is None or self._is_for(window, work) or (window.nodes and node not in window.nodes):
                continue
            if limit_ms is None or self.now_ms + in_ms + limit_ms > times[0]:
                return True
        return False

    def _is_named(self, task: Task, node: str) -> bool:
        """Nor does a node count, where work is spread, that a window keeps from it."""
        waits = next((w for w in self.waiting if w.task is task), None)
        return super()._is_named(task, node) and (waits is None or not self._runs_into(waits, node))

    def _in_time(self, work: Work, found: Iterable[Work], node: str) -> list[Work]:
        """Those after whose grace it may still start on the node."""
        return [each for each in found if not self._runs_into(work, node, self._grace_left(each))]

    def _grace_left(self, work: Work) -> int:
        return max(work.told_ms + work.task.grace_ms - self.now_ms, 0) if work.leaving else work.task.grace_ms

    def _watch(self, work: Work) -> None:
        """It begins to wait."""
        super()._watch(work)
        self._sees_coming(work)

    def _sees_coming(self, work: Work) -> None:
        """It is looked at when it begins to reach into a window."""
        limit_ms = self._lasts_ms(work)
        if limit_ms is not None:
            found = (begin_ms - limit_ms + 1 for begin_ms, _ in self._all_times())
            self.look_ms = min([self.look_ms, *(at_ms for at_ms in found if at_ms > self.now_ms)])

    def _all_times(self) -> list[tuple[int, int]]:
        return [times for window in self.windows.values() if (times := window.times(self.now_ms)) is not None]

    def _look_at_windows(self) -> None:
        """Some begin or end, or something begins to reach into one."""
        self.changed = next(self.numbers)
        self.look_ms = NEVER
        for window in list(self.windows.values()):
            times = window.times(self.now_ms)
            if times is None:
                del self.windows[window.name]
            elif times[0] <= self.now_ms and window.stops:
                self._keeps_free(window, self.running)
        for work in self.waiting:
            if work.kept_on and self._runs_into(work, work.kept_on):
                work.kept_on, work.gathers = "", False
            self._sees_coming(work)
        for work in [w for w in self.turns if all(self._runs_into(w, node) for node in self.nodes)]:
            self._ends_turn(work)
        self.to_look |= {path for path, queue in self.queues.items() if queue.wait_ms}
        later = (at_ms for times in self._all_times() for at_ms in times if at_ms > self.now_ms)
        self.look_ms = min([self.look_ms, *later])

    def _keeps_free(self, window: Window, found: Sequence[Work]) -> None:
        """What is in its way is told to stop, node by node."""
        nodes = list(self.nodes)
        for work in sorted(found, key=lambda w: (nodes.index(w.node), w.started)):
            if work.leaving or self._is_for(window, work) or (window.nodes and work.node not in window.nodes):
                continue
            limit_ms = self._lasts_ms(work)
            if limit_ms is None or work.start_ms + limit_ms > self.now_ms:
                self._tell(work, "")

    def _keeps_free_what_moved(self, found: Sequence[Work]) -> None:
        """It runs in another queue now."""
        for window in self.windows.values():
            times = window.times(self.now_ms)
            if window.stops and times is not None and times[0] <= self.now_ms:
                self._keeps_free(window, found)

    def _may_follow(self) -> bool:
        """Whether something waits that may start when a window is over, or what was spared is so no longer."""
        is_spared = self.spared_ms < NEVER and self.now_ms <= self.last_ms + 2 * HOUR_MS
        return bool(self.waiting) and (bool(self.windows) or is_spared)
