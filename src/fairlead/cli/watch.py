"""What changes at the service, as it changes: the eyes of `top` and of the demo.

Decides what counts as a change: another state, or another kind of reason to wait (not other numbers in it). Never
draws. Invariant: work that was seen once is reported until its end, also if it lives shorter than a look.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.cli.filters import LIVE_STATES, is_within
from fairlead.cli.follow import how_it_ended
from fairlead.cli.jobfields import elapsed_ms
from fairlead.cli.render import amounts, duration, plain
from fairlead.client.errors import ClientError, Refused
from fairlead.client.sync import Client
from fairlead.times import clock_time

if TYPE_CHECKING:
    from fairlead.wire.cluster import Node, Queue
    from fairlead.wire.jobs import Job

_SHOWN_EACH = 300
"""So many rows that run, and that wait, are fetched at a look; the totals come from the queues."""
_LOOKED_UP = 100
"""Jobs that have left the lists and are looked up one by one, at most, at a look."""
_SILENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class View:
    """What there is at one moment."""

    at_ms: int
    live: list[Job] = field(default_factory=list)
    ended: list[Job] = field(default_factory=list)
    """Those that ended since the last look."""
    queues: list[Queue] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


class Watcher:
    """Looks again and again, and says what is different."""

    def __init__(self, client: Client, queue: str | None = None) -> None:
        """`queue`: only of this one and those below it."""
        self.client, self._queue = client, queue
        self._known: dict[str, tuple[str, str]] = {}
        self._touched: set[str] = set()
        self._told: deque[str] = deque()
        self._rung = threading.Event()
        self._stopped = threading.Event()

    def look(self) -> tuple[View, list[str]]:
        """The view now, and a line for each change since the last look. Raises `ClientError` if the service is away."""
        self._rung.clear()
        touched, self._touched = self._touched, set()
        live = [*self._rows("running", "suspended", "stopping", parts=True), *self._rows("waiting")]
        here = {row.key for row in live}
        gone = [key for key in dict.fromkeys([*self._known, *sorted(touched)]) if key not in here]
        ended = [row for key in gone[:_LOOKED_UP] if (row := self._look_up(key))]
        now = int(time.time() * 1000)
        told = [self._told.popleft() for _ in range(len(self._told))]
        lines = told + [line for row in [*ended, *live] if (line := self._change(row, now))]
        for row in ended:
            if row.state not in LIVE_STATES:
                self._known.pop(row.key, None)
        view = View(now, live, ended, list(self._queues(self.client.queues())), list(self.client.nodes()))
        return view, lines

    def _rows(self, *states: str, parts: bool = False) -> list[Job]:
        return list(self.client.jobs(state=states, queue=self._queue, parts=parts, limit=_SHOWN_EACH))

    def _queues(self, trees: Iterable[Queue]) -> Iterator[Queue]:
        """The trees of what is looked at."""
        for tree in trees:
            if self._is_wanted(tree.path):
                yield tree
            else:
                yield from self._queues(tree.children)

    def _is_wanted(self, path: str) -> bool:
        return self._queue is None or is_within(self._queue, path)

    def _look_up(self, key: str) -> Job | None:
        try:
            row = self.client.job(key)
        except Refused:
            self._known.pop(key, None)
            return None
        return row if self._is_wanted(row.queue) else None

    def _change(self, row: Job, now_ms: int) -> str:
        mark = (row.state, (row.reason.code if row.reason else "") or "")
        if self._known.get(row.key) == mark:
            return ""
        self._known[row.key] = mark
        return change_line(row, now_ms)

    def tell(self, line: str) -> None:
        """Add a line of one's own to what the next look says; may be called from any thread."""
        self._told.append(line)
        self._rung.set()

    # -- a doorbell: the event stream says when to look, polling makes up for it when it is silent --------------------

    def listen(self) -> None:
        """Start listening to the service's events in the background."""
        threading.Thread(target=self._listen, daemon=True).start()

    def stop(self) -> None:
        """Listen no longer."""
        self._stopped.set()
        self._rung.set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until something happened, at most `timeout_s`; whether something did."""
        return self._rung.wait(timeout_s)

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                for event in self.client.events(timeout_s=_SILENCE_S, opened=self._rung.set):
                    key = event.data.get("key") if isinstance(event.data, dict) else None
                    if key and isinstance(key, str):  # What is declared for all, a priority class say, has none.
                        self._touched.add(key)
                    self._rung.set()
                    if self._stopped.is_set():
                        return
            except ClientError:
                pass
            time.sleep(1.0)


def change_line(row: Job, now_ms: int) -> str:
    """`12:00:01  17 train in root.batch: waiting: …`, on one line."""
    at = clock_time(now_ms)
    head = f"{at}  {row.key} {row.name} in {row.queue} ({row.priority})"
    return plain(f"{head}: {what_happened(row)}")


def what_happened(row: Job) -> str:
    """The state of a job in words."""
    state = row.state
    if state == "waiting":
        return f"waiting: {(row.reason.sentence if row.reason else '') or 'not looked at yet'}"
    if state == "running":
        return f"running on {row.node or '?'} with {amounts(row.resources)}"
    if state == "stopping":
        return "told to stop"
    if state == "suspended":
        return row.reason.sentence if row.reason else "suspended"
    ran = f" after {duration(elapsed_ms(row, row.ended_at_ms))}" if row.started_at_ms and row.ended_at_ms else ""
    status = f" with exit status {row.exit_code}" if state == "failed" and row.exit_code is not None else ""
    told = how_it_ended(row)
    return f"{state}{ran}{status}" + (f": {told}" if told else "")
