"""The resource-manager interface: whoever owns machines says what there is and what is asked for, and is called back.

Decides when scheduling runs: by itself on a thread of its own, or step by step by hand. Never who runs. What is
decided for one resource manager does not depend on the others: each has books of its own. Invariant: everything that
was decided is delivered once, in its order, one call at a time, and never while the books are locked.

In automatic mode callbacks come on the service's thread; by hand they come before the call that caused them returns. A
callback may call the service again: what follows from that is delivered after it has returned.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from fairlead.config import ConfigurationError, load_text
from fairlead.core.model import events
from fairlead.core.model.decisions import ConfigurationRejected, Configured, Decision
from fairlead.core.model.reasons import Reason
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import DEFAULT_PARTITION, ApplicationSpec, AskSpec, NodeSpec
from fairlead.library.arguments import check, check_amounts, check_texts, ids
from fairlead.library.callbacks import Call, ResourceManagerCallbacks, calls_for, check_callbacks
from fairlead.scheduler import Scheduler, allocations

PAUSE_MAX_MS = 100
"""A service that schedules by itself looks again after this long at the latest, whether or not it was told anything."""
RUNS_AT_ONCE = 1_000
"""Placements for one resource manager before the next one has its turn and callers get in between."""

_log = logging.getLogger(__name__)


class NotRegistered(LookupError):
    """A request of a resource manager that this service does not know."""


class RegistrationFailed(ValueError):
    """A resource manager was not taken in; the text says why."""


class ConfigurationRefused(ValueError):
    """A configuration was refused as a whole, and the one before goes on; the text has every problem."""


class ServiceClosed(RuntimeError):
    """The service was closed, or its thread broke off: nothing is scheduled any more."""


class _Registration:
    """One resource manager: its books and whom to tell."""

    def __init__(self, rm_id: str, callbacks: ResourceManagerCallbacks, scheduler: Scheduler) -> None:
        self.rm_id, self.callbacks, self.scheduler = rm_id, callbacks, scheduler


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SchedulerService:
    """Schedules for one or more resource managers; safe to call from any thread.

    `automatic`: scheduling runs on a thread of its own, at once when something was told and every 100 ms at the latest;
    otherwise only in `step`. `clock` gives milliseconds since 1970 (the machine's time by default); where it goes back,
    time stands still until it has caught up. Close it when done: it is a context manager.
    """

    def __init__(self, *, automatic: bool = True, clock: Callable[[], int] = _wall_ms) -> None:
        self.automatic = automatic
        self._clock = clock
        self._now_ms = 0
        self._registrations: dict[str, _Registration] = {}
        self._outbox: deque[tuple[str, Call]] = deque()
        self._changed = threading.Condition(threading.RLock())
        self._told = False
        """Something was told since the last turn."""
        self._at_rest = True
        """The thread waits, and everything was delivered."""
        self._deliverer: threading.Thread | None = None
        """Who makes the calls now; None: nobody does."""
        self._closed = False
        self._broken: BaseException | None = None
        self._thread: threading.Thread | None = None
        if automatic:
            self._thread = threading.Thread(target=self._run, name="fairlead-scheduling", daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- resource managers ----------------------------------------------------------------------------------------

    def register_resource_manager(self, rm_id: str, config: str, callbacks: ResourceManagerCallbacks) -> None:
        """Take in a resource manager with its queue file (text in YAML; empty: the built-in one).

        Raises `RegistrationFailed` when the id is empty or taken or the queue file has errors, TypeError when
        `callbacks` lack one.
        """
        check_callbacks(callbacks)
        if not rm_id:
            raise RegistrationFailed("registration of RM failed: give it an id that is not empty")
        try:
            spec = load_text(config, f"configuration of {rm_id}")
        except ConfigurationError as e:
            raise RegistrationFailed(f"registration of RM failed: {e}") from e
        with self._changed:
            self._check_open()
            if rm_id in self._registrations:
                raise RegistrationFailed(f'registration of RM failed: "{rm_id}" is registered; unregister it first')
            self._registrations[rm_id] = _Registration(rm_id, callbacks, Scheduler(spec, self._now()))

    def unregister_resource_manager(self, rm_id: str) -> None:
        """Forget a resource manager and its books; it is not called any more. `NotRegistered` when it is unknown."""
        with self._changed:
            self._registered(rm_id, "UnregisterRequest")
            del self._registrations[rm_id]
            kept = [(to, call) for to, call in self._outbox if to != rm_id]
            self._outbox.clear()
            self._outbox.extend(kept)

    def update_configuration(self, rm_id: str, config: str) -> None:
        """Replace the queue file as one step. `ConfigurationRefused` with every problem; then the old one goes on."""
        try:
            spec = load_text(config, f"configuration of {rm_id}")
        except ConfigurationError as e:
            with self._changed:
                self._registered(rm_id, "ConfigurationRequest")
            raise ConfigurationRefused(f"update of configuration failed: {e}") from e
        decisions = self._tell(rm_id, "ConfigurationRequest", [events.Configure(spec, who=rm_id)])
        for decision in decisions:
            if isinstance(decision, ConfigurationRejected):
                raise ConfigurationRefused(f"update of configuration failed: {decision.reason.sentence()}")

    # -- requests -------------------------------------------------------------------------------------------------

    def update_application(
        self,
        rm_id: str,
        *,
        new: Iterable[ApplicationSpec] = (),
        remove: Iterable[str] = (),
        partition: str = DEFAULT_PARTITION,
    ) -> None:
        """Submit applications, and take others out by id with all they have (`partition` is for the ids). TypeError for
        a field that has something else than it is for, such as an amount that is no whole number, and for one id that
        stands in no list; then nothing is taken in.
        """
        submitted, removed = tuple(new), ids(remove, partition)
        check(submitted, ApplicationSpec)
        check_amounts(spec.placeholder_ask for spec in submitted)
        told: list[events.Event] = [events.AddApplication(spec) for spec in submitted]
        told += [events.RemoveApplication(app_id, partition) for app_id in removed]
        self._tell(rm_id, "ApplicationRequest", told)

    def update_allocation(
        self,
        rm_id: str,
        *,
        asks: Iterable[AskSpec] = (),
        releases: Iterable[events.Release] = (),
        partition: str = DEFAULT_PARTITION,
    ) -> None:
        """Ask for resources (or report what runs already, with its node), then say what ended.

        `partition` is that of the asks; a `Release` names its own. TypeError for a field that has something else than
        it is for, such as an amount that is no whole number; then nothing is taken in.
        """
        asked, ended = tuple(asks), tuple(releases)
        check(asked, AskSpec)
        check(ended, events.Release)
        check_amounts(ask.resources for ask in asked)
        check_texts(partition)
        told: list[events.Event] = [events.AddAsks(asked, partition)] if asked else []
        told += ended
        self._tell(rm_id, "AllocationRequest", told)

    def update_node(
        self,
        rm_id: str,
        *,
        create: Iterable[NodeSpec] = (),
        update: Mapping[str, Resources] | None = None,
        label: Iterable[events.LabelNode] = (),
        drain: Iterable[str] = (),
        undrain: Iterable[str] = (),
        remove: Iterable[str] = (),
        partition: str = DEFAULT_PARTITION,
    ) -> None:
        """Nodes come, get another capacity, say something else about themselves, take no new work, take it again, or
        go: in this order, by id. A `LabelNode` names its own partition. TypeError as in `update_application`; then
        nothing is taken in.
        """
        created, labelled, resized = tuple(create), tuple(label), update or {}
        check(created, NodeSpec)
        check(labelled, events.LabelNode)
        drained, taking, removed = ids(drain, partition), ids(undrain, partition), ids(remove, partition)
        check_texts(*resized)
        check_amounts((*(spec.capacity for spec in created), *resized.values()))
        told: list[events.Event] = [events.AddNode(spec) for spec in created]
        told += [events.UpdateNode(node, capacity, partition) for node, capacity in resized.items()]
        told += labelled
        told += [events.DrainNode(node, partition) for node in drained]
        told += [events.UndrainNode(node, partition) for node in taking]
        told += [events.RemoveNode(node, partition) for node in removed]
        self._tell(rm_id, "NodeRequest", told)

    def _tell(self, rm_id: str, request: str, told: Iterable[events.Event]) -> list[Decision]:
        decided: list[Decision] = []
        with self._changed:
            registration = self._registered(rm_id, request)
            for event in told:
                now_ms = self._now()
                decisions = registration.scheduler.handle(event, now_ms)
                self._post(registration, now_ms, decisions)
                decided += decisions
            self._told = True
            self._changed.notify_all()
        if not self.automatic:
            self._deliver()
        return decided

    # -- questions ------------------------------------------------------------------------------------------------

    def why(self, rm_id: str, application: str, key: str, partition: str = DEFAULT_PARTITION) -> Reason | None:
        """Why this ask waits, with numbers; None when it is unknown or runs."""
        with self.books(rm_id) as scheduler:
            return scheduler.why(application, key, partition)

    @contextmanager
    def books(self, rm_id: str) -> Iterator[Scheduler]:
        """The scheduler of one resource manager, to read only: nothing moves inside the `with`. Be quick."""
        with self._changed:
            yield self._registered(rm_id, "StateRequest").scheduler

    # -- scheduling -----------------------------------------------------------------------------------------------

    def step(self, runs: int = 1) -> int:
        """By hand: up to so many scheduling runs for each resource manager; returns how many asks were placed.

        Each run places at most one ask in each partition. Raises RuntimeError in automatic mode, and whatever a
        callback raised first.
        """
        if self.automatic:
            raise RuntimeError("this service schedules by itself; make it with automatic=False to schedule by hand")
        with self._changed:
            self._check_open()
            placed = sum(self._schedule(registration, runs) for registration in list(self._registrations.values()))
        self._deliver()
        return placed

    def settle(self, timeout_s: float = 60.0) -> bool:
        """Wait until everything told so far was scheduled and delivered; False when that took longer than `timeout_s`.

        Not from a callback: it would wait for itself (RuntimeError). By hand there is nothing to wait for.
        """
        if threading.current_thread() in (self._thread, self._deliverer):
            raise RuntimeError("a callback cannot wait for itself: return, and the rest is delivered")
        if not self.automatic:
            self._deliver()
        with self._changed:
            calm = self._changed.wait_for(lambda: self._is_calm or self._closed, timeout_s)
            self._check_open()
            return calm

    @property
    def _is_calm(self) -> bool:
        return (
            not self._outbox and self._deliverer is None and (not self.automatic or (self._at_rest and not self._told))
        )

    def close(self) -> None:
        """Stop scheduling, deliver what was decided, and end the thread. Once is enough; more often is no error."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()
        elif self._thread is None:
            self._deliver()

    def _run(self) -> None:
        try:
            while self._turn():
                self._deliver()
        except BaseException as e:
            _log.exception("scheduling broke off; the service takes nothing in any more")
            self._broken = e
            with self._changed:
                self._closed = True
                self._changed.notify_all()
        self._deliver()

    def _turn(self) -> bool:
        """Wait for something to do and schedule once for everybody; False when the service was closed."""
        with self._changed:
            if not self._told and not self._closed:
                self._at_rest = True
                self._changed.notify_all()
                self._changed.wait(self._pause_ms() / 1000)
            self._at_rest = self._told = False
            if self._closed:
                return False
            for registration in list(self._registrations.values()):
                if self._schedule(registration, RUNS_AT_ONCE) >= RUNS_AT_ONCE:
                    self._told = True
        return True

    def _pause_ms(self) -> int:
        """How long nothing will happen by itself."""
        now_ms, pause_ms = self._now(), PAUSE_MAX_MS
        for registration in self._registrations.values():
            due_ms = registration.scheduler.next_wakeup_ms()
            if due_ms is not None:
                pause_ms = min(pause_ms, max(due_ms - now_ms, 1))
        return pause_ms

    def _schedule(self, registration: _Registration, runs: int) -> int:
        now_ms = self._now()
        decisions = registration.scheduler.schedule(now_ms, runs)
        self._post(registration, now_ms, decisions)
        return allocations(decisions)

    # -- delivery -------------------------------------------------------------------------------------------------

    def _post(self, registration: _Registration, at_ms: int, decisions: list[Decision]) -> None:
        mine = [d for d in decisions if not isinstance(d, Configured | ConfigurationRejected)]
        self._outbox.extend((registration.rm_id, call) for call in calls_for(registration.callbacks, at_ms, mine))

    def _deliver(self) -> None:
        """Make the calls, one after the other. Whoever calls while that goes on leaves the delivery to it."""
        with self._changed:
            if self._deliverer is not None:
                return
            self._deliverer = threading.current_thread()
        try:
            first = self._make_calls()
        except BaseException:
            # Somebody breaks off (Ctrl-C in a callback): what is left is delivered with the next call.
            self._is_delivered()
            raise
        if first is not None:
            raise first

    def _make_calls(self) -> Exception | None:
        """Until nothing is left; by hand the first exception of a callback."""
        first: Exception | None = None
        while (next_call := self._next_call()) is not None:
            rm_id, call = next_call
            try:
                call()
            except Exception as e:
                if self.automatic:
                    _log.exception("a callback of resource manager %s failed; what was decided stands", rm_id)
                elif first is None:
                    e.add_note(f"Raised by a callback of resource manager {rm_id}; what was decided stands.")
                    first = e
        return first

    def _next_call(self) -> tuple[str, Call] | None:
        with self._changed:
            if self._outbox:
                return self._outbox.popleft()
            self._is_delivered()
            return None

    def _is_delivered(self) -> None:
        with self._changed:
            self._deliverer = None
            self._changed.notify_all()

    # -- small things ---------------------------------------------------------------------------------------------

    def _now(self) -> int:
        self._now_ms = max(self._now_ms, self._clock())
        return self._now_ms

    def _registered(self, rm_id: str, request: str) -> _Registration:
        self._check_open()
        registration = self._registrations.get(rm_id)
        if registration is None:
            raise NotRegistered(f'received {request}, but RmID="{rm_id}" not registered')
        return registration

    def _check_open(self) -> None:
        if self._broken is not None:
            raise ServiceClosed("scheduling broke off; make a new service") from self._broken
        if self._closed:
            raise ServiceClosed("the service is closed")
