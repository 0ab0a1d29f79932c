"""The binder: it carries out acts at the API server, many at a time, and reports what came of a placement.

Decides when to try again and when to give up. Never decides what is done. Invariants: acts on one pod happen in the
order in which they were ordered; a placement of which it is not known whether the server took it is asked about until
it is known, and only then reported as failed; what somebody else has written on a claim or volume meanwhile is not
overwritten; after `stop` nothing is sent any more.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from fairlead.kubernetes import acts, bodies, device_requests, volume_requests
from fairlead.kubernetes import client as api
from fairlead.kubernetes.event_correlator import EventCorrelator
from fairlead.kubernetes.event_queue import EventQueue
from fairlead.kubernetes.kinds import EVENTS, PODS
from fairlead.kubernetes.objects import Pod, Thing
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.pods import Standing, standing

log = logging.getLogger("fairlead.kubernetes")

AT_ONCE = 48
"""Requests in flight at most; events have theirs beside these."""
DECIDED = acts.Placing | acts.EvictPod
"""What follows from a decision about where pods run."""
WAIT_S = (0.1, 20.0)
"""The first and the longest wait before an act is tried again."""
LONG = 10
"""After so many answers that the server could not, in a minute, it is said at the pod that it cannot be bound."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The server has bound the pod to the node."""

    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The server will not bind the pod to the node; `why` is a sentence."""

    uid: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class BindDelayed:
    """The server has failed to bind the pod to the node for long, and is asked on; `why` is its sentence."""

    uid: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The claim has given its devices back, if it had any for the pod; `version`: its own since, if it is there."""

    claim: acts.ObjectName
    version: str


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Why the pod waits could not be said: the server did not answer in time."""

    uid: str


@dataclass(frozen=True, slots=True)
class PlaceholderRefused:
    """The server does not take a placeholder of the application's gang; `why` is a sentence, or empty: it did now."""

    application: str
    why: str


Report = Bound | BindFailed | BindDelayed | PlaceholderRefused | Returned | Unsaid


class _Waits(Exception):
    """Another placeholder of the group is tried for it."""


class Binder:
    """Everything that is sent to one API server to change something."""

    def __init__(
        self,
        client: api.Client,
        report: Callable[[Report], None],
        *,
        scheduler_name: str = "fairlead",
        instance: str = "fairlead",
        image: str = bodies.IMAGE,
        stamp: Callable[[], str],
        chance: random.Random | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        """`report` is called in the loop's thread; `stamp` gives the time as the API writes it, with microseconds."""
        self.failed = 0
        self._client = client
        self._report = report
        self._scheduler_name = scheduler_name
        self._instance = instance
        self._image = image
        self._stamp = stamp
        self._chance = chance or random.Random()
        self._free = asyncio.Semaphore(at_once)
        self._queues: dict[str, deque[acts.Act]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._decided = 0
        self._failing: set[int] = set()
        """Of what was decided: what is tried on and on, by identity."""
        self._probes: dict[tuple[str, str, str], str] = {}
        """The one placeholder that is tried of each group whose placeholders are refused; the others wait for it."""
        self._talk = EventCorrelator(self.do)
        self.events = EventQueue(self._record)
        self._numbers = self._chance.randrange(2**40)
        self._stopped = False

    @property
    def busy(self) -> int:
        """What was decided and is not done. What else is under way may take long, such as placeholders refused, and
        what has failed for long: it says nothing of how much the server can take.
        """
        return self._decided - len(self._failing)

    def do(self, wanted: acts.Act) -> None:
        """Have an act done, after those that were ordered for the same object before."""
        act = acts.at_server(wanted)
        if self._stopped or act is None:
            return
        if isinstance(act, acts.Explain | acts.Record) and not self._talk.is_news(
            act, asyncio.get_running_loop().time()
        ):
            return
        if isinstance(act, acts.Record):
            self.events.put(act, self._stamp())
            return
        key = _object(act).uid
        if isinstance(act, acts.Bind):
            self._talk.overtaken(key)
        self._decided += isinstance(act, DECIDED)
        waiting = self._queues.get(key)
        if isinstance(act, acts.DropPlaceholder) and waiting is None:
            return
        if waiting is None:
            self._queues[key] = deque((act,))
            self._workers[key] = asyncio.create_task(self._work(key), name=f"acts on {key}")
        else:
            waiting.append(act)

    async def stop(self) -> None:
        """Send nothing any more; what is on its way is given up."""
        self._stopped = True
        workers = list(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self.events.stop()

    async def settle(self) -> None:
        """Wait until all that was ordered is done."""
        while self._workers:
            await asyncio.gather(*self._workers.values(), return_exceptions=True)
        await self.events.settle()

    # -- one pod after the other ----------------------------------------------------------------------------------

    async def _work(self, key: str) -> None:
        waiting = self._queues[key]
        try:
            while waiting:
                act = waiting.popleft()
                if isinstance(act, acts.Explain | acts.Nominate) and any(type(later) is type(act) for later in waiting):
                    continue
                if not isinstance(act, acts.DropPlaceholder):
                    await self._see_through(act, waiting)
        finally:
            del self._queues[key]
            del self._workers[key]

    async def _see_through(self, act: acts.Act, later: Collection[acts.Act]) -> None:
        """Carry one act out, trying again for as long as that makes sense; `later` is ordered for the same pod."""

        async def once() -> None:
            async with self._free:
                await self._once(act)

        try:
            await self._try(act, once, later)
        finally:
            self._decided -= isinstance(act, DECIDED)
            self._failing.discard(id(act))
            if isinstance(act, acts.CreatePlaceholder) and self._probe_for(act) == act.name:
                del self._probes[_group(act)]

    async def _record(self, act: acts.Record, stamp: str) -> None:
        """Send one event, trying again twice."""
        self._numbers += 1
        body = bodies.event(act, self._numbers, stamp, self._instance)

        async def once() -> None:
            await self._client.create(EVENTS, body, act.pod.namespace)

        await self._try(act, once)

    async def _try(self, act: acts.Act, once: Callable[[], Awaitable[None]], later: Collection[acts.Act] = ()) -> None:
        failures = 0
        while not _is_outdated(act, later):
            after: float | None = None
            try:
                await once()
                return
            except _Waits:
                await asyncio.sleep(WAIT_S[1] * self._chance.uniform(0.5, 1.0))
                continue
            except (api.ServerFault, api.TooManyRequests) as e:
                after, said = e.retry_after_s, str(e)
                if failures + 1 == LONG and isinstance(act, acts.Bind):
                    self._report(BindDelayed(act.pod.uid, act.node, e.message))
            except api.Unreachable as e:
                said = str(e)
            except api.ApiError as e:
                if not await self._again_after(act, e):
                    return
                said = str(e)
            failures += 1
            if failures == LONG and isinstance(act, DECIDED):
                self._failing.add(id(act))
            if isinstance(act, acts.Explain | acts.Record) and failures > 2:
                self._talk.unsaid(act)
                if isinstance(act, acts.Explain):
                    self._report(Unsaid(act.pod.uid))
                return
            if failures in (3, 10) or failures % 50 == 0:
                log.warning("%s of %s: %s (try %d)", type(act).__name__, _object(act), said, failures)
            first, longest = WAIT_S
            wait = min(longest, first * 2 ** min(failures - 1, 12)) * self._chance.uniform(0.5, 1.0)
            await asyncio.sleep(max(wait, after or 0.0))

    async def _again_after(self, act: acts.Act, e: api.ApiError) -> bool:
        """Whether an act that the server refused may work later."""
        if isinstance(act, acts.Bind | acts.SelectNode | acts.KeepVolume):
            self.failed += 1
            self._spare(act.pod.uid)
            self._report(BindFailed(act.pod.uid, act.node, e.message))
            return False
        if isinstance(e, api.NotFound):
            return False
        if isinstance(e, api.Conflict) and isinstance(act, acts.CreatePlaceholder):
            return await self._gives_up_its_name(act)
        if isinstance(e, api.Conflict):
            # Another pod has its name by now, or somebody else changed it at the same moment.
            return e.reason != "AlreadyExists" and await self._is_there(act)
        if isinstance(act, acts.CreatePlaceholder) and self._probes.setdefault(_group(act), act.name) == act.name:
            text = f"placeholder {act.name} of its gang is refused: {e.message}"
            self.do(acts.Record(act.owner, "FailedCreate", text, warning=True))
            self._report(PlaceholderRefused(act.application, text))
        lasting = acts.EvictPod | acts.DeletePod | acts.CreatePlaceholder | acts.Suspend | acts.ReturnDevices
        if isinstance(act, lasting) and not isinstance(e, api.Invalid):
            # Rights and quotas may change; meanwhile somebody waits for this.
            return True
        self.failed += 1
        log.warning("%s of %s was refused: %s", type(act).__name__, _object(act), e)
        return False

    def _spare(self, uid: str) -> None:
        """A pod never came to the node on which it was to be stopped meanwhile: it waits again, and is not deleted."""
        waiting = self._queues.get(uid, deque())
        stay = [later for later in waiting if not isinstance(later, acts.EvictPod)]
        self._decided -= len(waiting) - len(stay)
        waiting.clear()
        waiting.extend(stay)

    def _probe_for(self, act: acts.CreatePlaceholder) -> str:
        """The name of the placeholder for which this one waits, maybe itself; nothing: none of its group is refused."""
        return self._probes.get(_group(act), "")

    async def _gives_up_its_name(self, act: acts.CreatePlaceholder) -> bool:
        """Whether the name of a placeholder will be free: what has it is one that ended. It is deleted, if need be."""
        try:
            pod: Pod = await self._client.get(PODS, act.name, act.namespace)
            if standing(pod, self._scheduler_name) is not Standing.OVER or not identity.is_placeholder(pod):
                return False
            if not pod.metadata.deletion_timestamp:
                await self._client.delete(PODS, act.name, act.namespace, uid=pod.metadata.uid or "", grace_s=0)
        except (api.ApiError, api.Unreachable):
            return True  # It is gone by now, or nobody can say.
        return True

    async def _is_there(self, act: acts.Act) -> bool:
        """Whether the very object of an act is still there, as far as the server says; if it does not, it may be."""
        if isinstance(act, acts.CreatePlaceholder | acts.DropPlaceholder | acts.DeselectNode):
            return True
        name = act.job if isinstance(act, acts.Suspend) else act.pod
        try:
            found: Thing = await self._client.get(name.kind, name.name, name.namespace)
        except api.NotFound:
            return False
        except (api.ApiError, api.Unreachable):
            return True
        return found.metadata.uid == name.uid

    async def _once(self, act: acts.Act) -> None:
        if isinstance(act, acts.Bind):
            await self._bind(act)
        elif isinstance(act, acts.EvictPod):
            await self._evict(act)
        elif isinstance(act, acts.DeletePod):
            await self._client.delete(PODS, act.pod.name, act.pod.namespace, uid=act.pod.uid, grace_s=0)
        elif isinstance(act, acts.Suspend):
            name, change = act.job, bodies.suspension(act)
            await self._client.patch(name.kind, name.name, change, name.namespace, content_type=api.MERGE_PATCH)
        elif isinstance(act, acts.SelectNode | acts.DeselectNode | acts.KeepVolume):
            await volume_requests.carry_out(self._client, act)
        elif isinstance(act, acts.ReturnDevices):
            self._report(Returned(act.claim, await device_requests.give_back(self._client, act)))
        elif isinstance(act, acts.Nominate):
            await self._patch_status(act.pod, bodies.nomination(act))
        elif isinstance(act, acts.Explain):
            await self._patch_status(act.pod, bodies.unscheduled(act, self._second()))
        elif isinstance(act, acts.CreatePlaceholder):
            if self._probe_for(act) not in ("", act.name):
                raise _Waits
            body = bodies.placeholder(act, self._scheduler_name, self._image)
            await self._client.create(PODS, body, act.namespace)
            if self._probe_for(act):
                self._report(PlaceholderRefused(act.application, ""))

    async def _bind(self, act: acts.Bind) -> None:
        """Bind; a conflict may be our own binding of which the answer was lost, so the server is asked."""
        for use in act.devices:
            await device_requests.use(self._client, act.pod, use)
        try:
            await self._client.bind(act.pod.namespace, act.pod.name, bodies.binding(act))
        except api.Conflict:
            pod: Pod = await self._client.get(PODS, act.pod.name, act.pod.namespace)
            bound = pod.spec.node_name
            if pod.metadata.uid != act.pod.uid or bound != act.node:
                if not bound and pod.metadata.uid == act.pod.uid and not pod.metadata.deletion_timestamp:
                    raise api.ServerFault(500, "Conflict", "the binding was refused for the moment") from None
                raise
        self._report(Bound(act.pod.uid, act.node))
        text = f"Successfully assigned {act.pod} to {act.node}"
        self.do(acts.Record(act.pod, "Scheduled", text))

    async def _evict(self, act: acts.EvictPod) -> None:
        """As kube-scheduler does: first the condition that says why, then the deletion with the pod's own grace."""
        try:
            await self._patch_status(act.pod, bodies.disruption(act, self._second()))
        except (api.Invalid, api.Forbidden) as e:
            log.warning("%s: its condition could not be set: %s", act.pod, e)
        await self._client.delete(PODS, act.pod.name, act.pod.namespace, uid=act.pod.uid)
        text = acts.preempted(act.by, act.node, act.rule, act.message)
        self.do(acts.Record(act.pod, "Preempted", text, warning=False, related=act.by))

    async def _patch_status(self, pod: acts.ObjectName, change: dict[str, object]) -> None:
        await self._client.patch(PODS, pod.name, change, pod.namespace, sub="status")

    def _second(self) -> str:
        return self._stamp()[:19] + "Z"


def _is_outdated(act: acts.Act, later: Collection[acts.Act]) -> bool:
    """Whether what was ordered later takes this back; should it be wanted anew, that is another order."""
    if isinstance(act, acts.CreatePlaceholder):
        return any(isinstance(other, acts.DropPlaceholder) for other in later)
    if isinstance(act, acts.Suspend):
        return any(isinstance(other, acts.Suspend) for other in later)
    if isinstance(act, acts.Bind):
        return any(isinstance(other, acts.Bind | acts.ReturnDevices) for other in later)
    return isinstance(act, acts.SelectNode) and any(isinstance(other, acts.DeselectNode) for other in later)


def _group(act: acts.CreatePlaceholder) -> tuple[str, str, str]:
    return act.namespace, act.application, act.group.name


def _object(act: acts.Act) -> acts.ObjectName:
    """What an act is about; a placeholder that is not there yet goes by its name."""
    if isinstance(act, acts.CreatePlaceholder | acts.DropPlaceholder):
        return acts.ObjectName(act.namespace, act.name, f"{act.namespace}/{act.name}")
    if isinstance(act, acts.SelectNode | acts.DeselectNode | acts.KeepVolume):
        return act.claim
    return act.job if isinstance(act, acts.Suspend) else act.pod
