"""A queue file on past work: the question that `fairlead.sim.past` answers, in a process of its own.

Decides how long it may take, and that one is under way at a time. Never reads the journal itself, and never simulates
in the service. Invariant: the process ends with the question, answered or given up; where the service is killed, by
itself after that time.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fairlead.runtime import Refusal
from fairlead.service.passes import Passes
from fairlead.service.place import now_ms
from fairlead.wire.configuration import PAST_S, ConfigPast, PastQuestion

DAY_MS = 86_400_000


@dataclass(slots=True)
class PastWork:
    """What the journal in a state directory recorded."""

    state: Path
    patience_s: float = PAST_S
    _passes: Passes = field(default_factory=lambda: Passes(1))

    async def compared(self, in_force: str, other: str, days: int) -> ConfigPast:
        """Both files on the work of so many days. Raises `Refusal`."""
        at_ms = now_ms()
        asked = PastQuestion(
            state=str(self.state),
            since_ms=at_ms - days * DAY_MS,
            now_ms=at_ms,
            in_force=in_force,
            other=other,
            patience_s=self.patience_s,
        )
        async with self._passes.one():
            return await self._answer(msgspec.json.encode(asked), f"the work of the last {days} days")

    async def _answer(self, asked: bytes, what: str) -> ConfigPast:
        command = (sys.executable, "-m", "fairlead.sim.past")
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        try:
            answer, no = await asyncio.wait_for(process.communicate(asked), self.patience_s)
        except TimeoutError:
            raise self._too_long(what) from None
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.returncode == -signal.SIGALRM:
            raise self._too_long(what)
        if process.returncode:
            why = no.decode(errors="replace").strip().rpartition("\n")[2] or "its process ended without a word"
            raise Refusal("conflict", f"{what} cannot be simulated: {why}")
        return msgspec.json.decode(answer, type=ConfigPast)

    def _too_long(self, what: str) -> Refusal:
        return Refusal(
            "unavailable",
            f"to simulate {what} takes longer than {self.patience_s:.0f} s; ask for fewer days, or run "
            f"`fairlead sim compare OLD.yaml NEW.yaml --workload {self.state}`",
        )
