"""Leader election by a Lease: of several schedulers of one name one acts.

Decides who leads. Never trusts anybody's clock but our own: a lease has run out when *we* have seen it unchanged for as
long as it lasts. Invariant: whoever cannot renew in time stops leading before anybody else may begin.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any

from fairlead.kubernetes.client import ApiError, Client, Conflict, NotFound, Unreachable
from fairlead.kubernetes.kinds import LEASES
from fairlead.kubernetes.lease_objects import Lease, LeaseSpec

log = logging.getLogger("fairlead.kubernetes")

DURATION_S = 15.0
"""How long a lease lasts unless it is renewed."""
DEADLINE_S = 10.0
"""Who has not renewed for so long stops leading."""
RETRY_S = 2.0
LOOK_S = 0.5
"""How often whoever stands by looks at the lease: by so much later than it might it takes over."""


class Election:
    """One candidate for one lease."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        stamp: Callable[[], str],
        chance: random.Random | None = None,
    ) -> None:
        """`identity` names this candidate and no other; `stamp` gives the time as the API writes it."""
        self.leads = False
        self.leader = ""
        """Who holds the lease, as far as we have seen."""
        self._client = client
        self._namespace, self._name, self._identity = namespace, name, identity
        self._stamp = stamp
        self._chance = chance or random.Random()
        self._seen: tuple[str, str, str] | None = None
        self._seen_at = 0.0
        self._lasts = DURATION_S
        self._lease: Lease | None = None

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then run `work` for as long as it is ours. `work` is cancelled when it is lost.

        Returns when `work` ends, or when the lease was lost; then the caller decides whether to stand again.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not await self._try_within(DEADLINE_S):
            await self._stand_by()
            began = loop.time()
        self.leads = True
        log.info("%s leads (lease %s/%s)", self._identity, self._namespace, self._name)
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._keep(began))
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First we stop, then somebody else may begin.
            self.leads = False
            working.cancel()
            renewing.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self._release()
        if working.done() and not working.cancelled():
            working.result()

    async def _stand_by(self) -> None:
        """Until the next look, or until the lease of somebody else runs out if that is before."""
        wait = LOOK_S * self._chance.uniform(1.0, 1.2)
        if self._seen is not None:
            left = self._seen_at + self._lasts - asyncio.get_running_loop().time()
            wait = min(wait, left) if left > 0 else wait
        await asyncio.sleep(wait)

    async def _pause(self) -> None:
        await asyncio.sleep(RETRY_S * self._chance.uniform(1.0, 1.2))

    async def _keep(self, renewed: float) -> None:
        """Renew until it fails for too long; `renewed`: when it was asked for what we have."""
        loop = asyncio.get_running_loop()
        while True:
            await self._pause()
            began = loop.time()
            if await self._try_within(max(DEADLINE_S - (began - renewed), 0.01)):
                renewed = began
            elif self.leader not in ("", self._identity):
                log.warning("%s has lost the lease to %s", self._identity, self.leader)
                return
            elif loop.time() - renewed >= DEADLINE_S:
                log.warning("%s could not renew its lease for %.0f s and stops", self._identity, DEADLINE_S)
                return

    async def _try_within(self, seconds: float) -> bool:
        """As `_try`; an answer that comes later says nothing: somebody else may have taken the lease meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                return await self._try()
        except TimeoutError:
            return False

    async def _try(self) -> bool:
        """Take or renew the lease; False when it is somebody else's or the server did not say."""
        try:
            lease: Lease | None = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            lease = None
        except (ApiError, Unreachable) as e:
            log.info("lease %s/%s: %s", self._namespace, self._name, e)
            return False
        if lease is not None and not self._is_free(lease):
            return False
        return await self._take(lease)

    def _is_free(self, lease: Lease) -> bool:
        """Whether it is ours, nobody's, or has been unchanged before our eyes for as long as it lasts."""
        spec, now = lease.spec, asyncio.get_running_loop().time()
        holder = spec.holder_identity or ""
        self.leader = holder
        seen = (holder, spec.renew_time or "", lease.metadata.resource_version or "")
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
            self._lasts = float(spec.lease_duration_seconds or DURATION_S)
        return holder in ("", self._identity) or now - self._seen_at >= self._lasts

    async def _take(self, lease: Lease | None) -> bool:
        stamp, spec = self._stamp(), lease.spec if lease is not None else LeaseSpec()
        ours = spec.holder_identity == self._identity
        body: dict[str, Any] = {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(DURATION_S),
                "acquireTime": spec.acquire_time if ours else stamp,
                "renewTime": stamp,
                "leaseTransitions": (spec.lease_transitions or 0) + (0 if ours else 1),
            },
        }
        try:
            if lease is None:
                self._lease = await self._client.create(LEASES, body, self._namespace)
            else:
                body["metadata"]["resourceVersion"] = lease.metadata.resource_version
                self._lease = await self._client.replace(LEASES, body, self._name, self._namespace)
        except Conflict:
            return False
        except (ApiError, Unreachable) as e:
            log.warning("lease %s/%s could not be taken: %s", self._namespace, self._name, e)
            return False
        self.leader = self._identity
        return True

    async def _release(self) -> None:
        """Let the next one begin at once; if that fails, the lease runs out by itself."""
        lease = self._lease
        if lease is None or self.leader != self._identity:
            return
        body = {
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "resourceVersion": lease.metadata.resource_version,
            },
            "spec": {
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "renewTime": self._stamp(),
                "leaseTransitions": lease.spec.lease_transitions,
            },
        }
        try:
            async with asyncio.timeout(2.0):
                await self._client.replace(LEASES, body, self._name, self._namespace)
        except (ApiError, Unreachable, TimeoutError) as e:
            log.info("lease %s/%s was not released: %s", self._namespace, self._name, e)
        self.leader = ""
