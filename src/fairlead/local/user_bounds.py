"""What one user may have or do at a time, so that a user who does too much keeps nobody else from anything.

Decides when that is enough, and says what it is, how much of it, and when there is room again. Never bounds
administrators of the service. Invariant: what is refused has changed nothing; what was entered is left again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fairlead.core.model.quantities import format_bytes
from fairlead.local.callers import Caller
from fairlead.local.history_records import JobSpec
from fairlead.local.live_jobs import Taken, environment_size
from fairlead.runtime import Refusal

MINUTE_S = 60.0
SOON_S = 5
"""When to try again where nobody knows when there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBounds:
    """The bounds; each is for every user by itself."""

    jobs: int = 20_000
    """Jobs that wait or run."""
    environment: int = 32 * 2**20
    """Bytes of the environments and scripts of all of them together."""
    submissions: int = 600
    """Requests with jobs in one minute; one request may bring 10,000 jobs."""
    questions: int = 4
    """Questions that are worked out in processes of their own (what if, when, why with changes), or wait for that."""
    question_seconds: int = 20
    """Seconds of processor time that they may take in one minute."""
    streams: int = 20
    """Open streams of events."""
    terminals: int = 20
    """Connections to terminals of jobs."""
    connections: int = 200
    """Over the Unix socket, open at a time, and as many over TCP."""
    tokens: int = 100


class UserLimits:
    """Who is at which bound. May be called from any thread."""

    def __init__(self, bounds: UserBounds, now_s: Callable[[], float] = time.monotonic) -> None:
        """`now_s`: a clock that nobody can set."""
        self.bounds, self._now_s = bounds, now_s
        self._open: Counter[tuple[str, int]] = Counter()
        self._submitted: dict[int, deque[float]] = {}
        self._answered: dict[int, deque[tuple[float, float]]] = {}
        """Of each user when a question was answered in the last minute, and how many seconds it took."""
        self._lock = threading.Lock()

    def submission(self, caller: Caller) -> None:
        """One more request with jobs. Raises `Refusal`."""
        now, most = self._now_s(), self.bounds.submissions
        with self._lock:
            times = self._submitted.setdefault(caller.uid, deque())
            while times and times[0] <= now - MINUTE_S:
                times.popleft()
            if len(times) >= most and not caller.is_admin:
                wait_s = int(times[0] + MINUTE_S - now) + 1
                said = f"{caller.user} has submitted {most} times within a minute, as often as a user may"
                hint = "bring several jobs in one request (`fairlead submit --file`)"
                raise _too_many(f"{said}; {hint}, or try again in {wait_s} s", wait_s)
            times.append(now)

    def jobs(self, caller: Caller, taken: Taken, specs: Sequence[JobSpec]) -> None:
        """These come to what the user has already. Raises `Refusal`."""
        if caller.is_admin:
            return
        there, more, most = taken.jobs, sum(spec.count for spec in specs), self.bounds.jobs
        if there + more > most:
            said = f"{caller.user} has {there} jobs that wait or run, and these are {more}; a user may have {most}"
            raise _too_many(f"{said}: submit them when some have ended")
        self.environment(caller, taken, sum(map(environment_size, specs)))

    def environment(self, caller: Caller, taken: Taken, more: int) -> None:
        """So many characters of environments come to those that the user has already. Raises `Refusal`."""
        size = taken.environment + more
        if size > self.bounds.environment and not caller.is_admin:
            would, may = format_bytes(size, up=True), format_bytes(self.bounds.environment)
            said = f"the environments and scripts of all waiting and running jobs of {caller.user} would take {would}"
            raise _too_many(
                f"{said}, more than {may}: put large values into files, or submit when some jobs have ended"
            )

    def question(self, caller: Caller) -> None:
        """One more question. Raises `Refusal` where those of the last minute took all that a user has."""
        now, most = self._now_s(), self.bounds.question_seconds
        with self._lock:
            recent = self._answered.get(caller.uid, deque())
            while recent and recent[0][0] <= now - MINUTE_S:
                recent.popleft()
            if not recent:
                self._answered.pop(caller.uid, None)
            left = sum(seconds for _, seconds in recent)
            if left < most or caller.is_admin:
                return
            again_s = now
            for at_s, seconds in recent:
                left, again_s = left - seconds, at_s
                if left < most:
                    break
        wait_s = int(again_s + MINUTE_S - now) + 1
        said = f"the questions of {caller.user} took {most} s of processor time within a minute, as much as a user may"
        raise _too_many(f"{said}; ask fewer, or try again in {wait_s} s", wait_s)

    def answered(self, caller: Caller, cpu_s: float) -> None:
        """A question of this user took so much processor time."""
        with self._lock:
            self._answered.setdefault(caller.uid, deque()).append((self._now_s(), cpu_s))

    def tokens(self, caller: Caller, there: int) -> None:
        """One more beside those that the user has. Raises `Refusal`."""
        if there >= self.bounds.tokens and not caller.is_admin:
            raise _too_many(f"{caller.user} has {there} tokens, as many as a user may; revoke some first")

    @contextmanager
    def one_more(self, what: str, caller: Caller | None) -> Iterator[None]:
        """One of the `streams`, `terminals` or `questions`, as long as it lasts. Raises `Refusal` before it begins."""
        if caller is None or caller.is_admin:
            yield
            return
        most, mine = getattr(self.bounds, what), (what, caller.uid)
        with self._lock:
            if self._open[mine] >= most:
                raise _too_many(
                    f"{caller.user} has {most} {what} open, as many as a user may; wait until one has ended"
                )
            self._open[mine] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[mine] -= 1
                if not self._open[mine]:
                    del self._open[mine]


def _too_many(sentence: str, after_s: int = SOON_S) -> Refusal:
    return Refusal("too-many", sentence, after_s=after_s)
