"""What changes at the service, as it changes: the eyes of `top` and of the demo.

Decides what counts as a change: another state, or another kind of reason to wait (not other numbers in it). Never
draws. Invariant: work that was seen once is reported until its end, also if it lives shorter than a look.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead.cli.client import Client
from fairlead.cli.failures import Failure
from fairlead.cli.follow import how_it_ended
from fairlead.cli.jobs import LIVE_STATES
from fairlead.cli.render import amounts, duration, plain
from fairlead.times import clock_time

_SHOWN_EACH = 300
"""So many rows that run, and that wait, are fetched at a look; the totals come from the queues."""
_LOOKED_UP = 100
"""Jobs that have left the lists and are looked up one by one, at most, at a look."""
_SILENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class View:
    """What there is at one moment."""

    at_ms: int
    live: list[dict[str, Any]] = field(default_factory=list)
    ended: list[dict[str, Any]] = field(default_factory=list)
    """Those that ended since the last look."""
    queues: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)


class Watcher:
    """Looks again and again, and says what is different."""

    def __init__(self, client: Client, wanted: Callable[[dict[str, Any]], bool] = lambda _row: True) -> None:
        self.client, self.wanted = client, wanted
        self._known: dict[str, tuple[str, str]] = {}
        self._touched: set[str] = set()
        self._told: deque[str] = deque()
        self._rung = threading.Event()
        self._stopped = False

    def look(self) -> tuple[View, list[str]]:
        """The view now, and a line for each change since the last look. Raises `Failure` if the service is away."""
        self._rung.clear()
        touched, self._touched = self._touched, set()
        live = [*self._rows("running", "stopping"), *self._rows("waiting")]
        here = {row["key"] for row in live}
        gone = [key for key in dict.fromkeys([*self._known, *sorted(touched)]) if key not in here]
        ended = [row for key in gone[:_LOOKED_UP] if (row := self._look_up(key))]
        now = int(time.time() * 1000)
        told = [self._told.popleft() for _ in range(len(self._told))]
        lines = told + [line for row in [*ended, *live] if (line := self._change(row, now))]
        for row in ended:
            if row["state"] not in LIVE_STATES:
                self._known.pop(row["key"], None)
        view = View(now, live, ended, self.client.get("/queues")["queues"], self.client.get("/nodes")["nodes"])
        return view, lines

    def _rows(self, *states: str) -> list[dict[str, Any]]:
        return [row for row in self.client.jobs({"state": states}, _SHOWN_EACH) if self.wanted(row)]

    def _look_up(self, key: str) -> dict[str, Any] | None:
        try:
            row = self.client.job(key)
        except Failure as failure:
            self._known.pop(key, None)
            if failure.status == 4:
                return None
            raise
        return row if self.wanted(row) else None

    def _change(self, row: dict[str, Any], now_ms: int) -> str:
        mark = (row["state"], (row.get("reason") or {}).get("code") or "")
        if self._known.get(row["key"]) == mark:
            return ""
        self._known[row["key"]] = mark
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
        self._stopped = True
        self._rung.set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until something happened, at most `timeout_s`; whether something did."""
        return self._rung.wait(timeout_s)

    def _listen(self) -> None:
        while not self._stopped:
            try:
                for event in self.client.events(timeout_s=_SILENCE_S):
                    if isinstance(event.data, dict) and isinstance(event.data.get("key"), str):
                        self._touched.add(event.data["key"])
                    self._rung.set()
                    if self._stopped:
                        return
            except (Failure, KeyError, ValueError):
                pass
            time.sleep(1.0)


def change_line(row: dict[str, Any], now_ms: int) -> str:
    """`12:00:01  17 train in root.batch: waiting: …`, on one line."""
    at = clock_time(now_ms)
    head = f"{at}  {row['key']} {row.get('name') or ''} in {row.get('queue') or ''} ({row.get('priority', 0)})"
    return plain(f"{head}: {what_happened(row)}")


def what_happened(row: dict[str, Any]) -> str:
    """The state of a job in words."""
    state = row["state"]
    if state == "waiting":
        return f"waiting: {(row.get('reason') or {}).get('sentence') or 'not looked at yet'}"
    if state == "running":
        return f"running on {row.get('node') or '?'} with {amounts(row.get('resources') or {})}"
    if state == "stopping":
        return "told to stop"
    started, ended = row.get("started_at_ms"), row.get("ended_at_ms")
    ran = f" after {duration(ended - started)}" if started and ended else ""
    status = f" with exit status {row['exit_code']}" if state == "failed" and row.get("exit_code") is not None else ""
    told = how_it_ended(row)
    return f"{state}{ran}{status}" + (f": {told}" if told else "")
