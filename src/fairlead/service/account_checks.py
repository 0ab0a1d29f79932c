"""The watch over what queue files name: users and groups that this machine does not know are said in the log.

Decides when to look: at the start, after each change of the configuration, and once an hour, as accounts come and go.
Never refuses a file because of it. Invariant: a name is said once, until it is known or named no more.
"""

from __future__ import annotations

import asyncio
import logging

from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError, usable
from fairlead.local.unknown_accounts import unknown_accounts
from fairlead.service.machine import MachinePlace

log = logging.getLogger("fairlead.service")
LOOK_S = 2.0
AGAIN_S = 3600.0


async def watch_accounts(place: MachinePlace) -> None:
    """Look again and again."""
    seen, looked, said = "", 0.0, set[str]()
    while True:
        now = asyncio.get_running_loop().time()
        checksum, text = await place.look(lambda scheduler, _: (scheduler.cluster.checksum, scheduler.cluster.text))
        if checksum != seen or now >= looked + AGAIN_S:
            seen, looked = checksum, now
            found = await run_in_threadpool(_unknown, text)
            for sentence in found:
                if sentence not in said:
                    log.warning("%s", sentence)
            said = set(found)
        await asyncio.sleep(LOOK_S)


def _unknown(text: str) -> list[str]:
    """The names may be looked up far away, so not by the writer."""
    try:
        return unknown_accounts(usable(text))
    except ConfigurationError:
        return []
