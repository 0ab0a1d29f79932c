"""The queue file of this service: whether a text can be used here, and the file, watched.

Decides when a change is complete, and what is said about a file that cannot be used. Never judges a queue file
(`fairlead.config` does). Invariant: a file that is missing, half written or wrong leaves in force what is in force;
each of its texts is tried once, and again when it is saved again after it was refused for what was so then.

It is looked at every second. A change counts when the file is the same at two looks, so that one that is being written
is not read; a file that is replaced as a whole (written beside it, then renamed) is never seen half written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError, Problem, checked, checksum_of, file_text, usable
from fairlead.core.model.specs import ClusterSpec
from fairlead.local import accounts
from fairlead.runtime import Refusal, Turn
from fairlead.runtime.configurations import Applied, configure
from fairlead.wire.configuration import ConfigFileStatus, ConfigProblem

if TYPE_CHECKING:
    from fairlead.runtime import Runtime

log = logging.getLogger("fairlead.service")

Signature = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the file said at one look. `spec` None: it cannot be used."""

    signature: Signature | None
    owner: str
    text: str
    spec: ClusterSpec | None
    problems: tuple[Problem, ...] = ()
    """What is wrong with it, or odd."""


class ConfigFile:
    """One file, and what came of its newest text."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.source = f"file {self.path}"
        """How the history of configurations names it."""
        self._tried: Signature | None = None
        self._candidate: Signature | None = None
        self._checksum: str | None = None
        """Of the newest text that was tried."""
        self._problems: tuple[Problem, ...] = ()
        self._refused = ""
        self._gone = False
        self._looked_ms = 0

    # --- reading -----------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """What it says now. Raises nothing: what is wrong is in the reading."""
        signature, owner = self._stat()
        try:
            text = file_text(self.path)
        except ConfigurationError as error:
            return Reading(signature, owner, "", None, tuple(error.problems))
        spec, problems = checked(text, str(self.path))
        return Reading(signature, owner, text, spec, tuple(problems))

    def _stat(self) -> tuple[Signature | None, str]:
        try:
            found = self.path.stat()
        except OSError:
            return None, ""
        signature = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        return signature, accounts.by_uid(found.st_uid).name

    def note(self, reading: Reading, refused: str = "") -> None:
        """It was tried: remember what came of it, and say so if it was refused."""
        self._looked_ms = time.time_ns() // 1_000_000
        self._tried = self._candidate = reading.signature
        self._checksum = checksum_of(reading.text) if reading.text else None
        self._problems, self._refused, self._gone = reading.problems, refused, False
        errors = [problem for problem in reading.problems if problem.severity == "error"]
        for problem in reading.problems:
            log.log(logging.ERROR if problem.severity == "error" else logging.WARNING, "%s", problem)
        if errors or refused:
            log.error(
                "%s is refused as a whole%s; what is in force stays", self.path, f": {refused}" if refused else ""
            )

    def begin(self, turn: Turn, reading: Reading) -> str:
        """What the file says when the service starts, in the first turn; why it cannot start like this, or nothing.

        A text that was put in force before is left alone: what was put in force since, in another way, stays. A file
        that cannot be used stops the start only where nothing else has ever been in force.
        """
        history = turn.books.configurations
        last = history.from_source(self.source)
        refused, first = "", history.current is None
        if reading.spec is not None and (last is None or last.checksum != reading.spec.checksum):
            refused = self._put_in_force(turn, reading.spec, reading.owner).refused
        self.note(reading, refused)
        return refused if first else ""

    def _put_in_force(self, turn: Turn, spec: ClusterSpec, owner: str) -> Applied:
        """Also where it is in force already in another way: a start must know that the file has said it since."""
        return configure(turn, spec, who=owner, source=self.source, kept_as_newest=True)

    # --- watching ----------------------------------------------------------------------------------------------

    async def watch(self, runtime: Runtime, every_s: float) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await self._look(runtime)
            except Refusal as refusal:
                log.warning("%s has changed but cannot be put in force now: %s", self.path, refusal.message)
            except Exception as fault:
                log.error("a fault while looking at %s: %s", self.path, fault, exc_info=fault)

    async def _look(self, runtime: Runtime) -> None:
        signature = (await run_in_threadpool(self._stat))[0]
        self._looked_ms = time.time_ns() // 1_000_000
        if signature is None:
            self._miss()
            return
        self._gone = False
        if signature == self._tried:
            await self._forget_refusal(runtime)
            return
        if signature != self._candidate:
            # It may still be being written: wait for a look at which it is the same.
            self._candidate = signature
            return
        reading = await run_in_threadpool(self.read)
        if reading.signature != signature or (await run_in_threadpool(self._stat))[0] != signature:
            return
        await self._try(runtime, reading)

    def _miss(self) -> None:
        if not self._gone:
            log.error("%s is gone; what is in force stays. Put the file back", self.path)
        self._gone, self._tried, self._candidate = True, None, None

    async def _try(self, runtime: Runtime, reading: Reading) -> None:
        """Put a complete reading in force, unless its text is the one that was tried last, and was not refused."""
        if reading.text and checksum_of(reading.text) == self._checksum and not self._refused:
            self._tried = reading.signature
            return
        spec = reading.spec
        if spec is None:
            self.note(reading)
            return

        def act(turn: Turn) -> Applied:
            return self._put_in_force(turn, spec, reading.owner)

        applied: Applied = await asyncio.wrap_future(runtime.do(act))
        self.note(reading, applied.refused)
        if applied.changed:
            log.info("%s is in force as version %d", self.path, applied.version)

    async def _forget_refusal(self, runtime: Runtime) -> None:
        """Its text was refused for what was so then; if it was put in force since in another way, it is tried again."""
        if self._refused:
            current = await asyncio.wrap_future(runtime.read(lambda _: runtime.books.configurations.current))
            if current is not None and current.checksum == self._checksum:
                self._tried = None

    # --- telling -----------------------------------------------------------------------------------------------

    def status(self, in_force: str) -> ConfigFileStatus:
        """How the file stands to what is in force (a checksum)."""
        return ConfigFileStatus(
            path=str(self.path),
            state=self._state(in_force),
            checksum=self._checksum,
            checked_at_ms=self._looked_ms,
            refused=self._refused,
            problems=[shown_problem(problem) for problem in self._problems],
        )

    def _state(self, in_force: str) -> str:
        if self._gone:
            return "missing"
        if self._refused or any(problem.severity == "error" for problem in self._problems):
            return "refused"
        return "in-force" if self._checksum == in_force else "differs"

    def problem(self) -> str:
        """What is wrong with it, as one sentence; empty when all is well."""
        if self._gone:
            return f"the queue file {self.path} is gone; what is in force stays. Put the file back"
        if self._refused:
            return f"the queue file {self.path} is refused: {self._refused}; when that is done, save it again"
        errors = [problem for problem in self._problems if problem.severity == "error"]
        if not errors:
            return ""
        more = f" (and {len(errors) - 1} more; `fairlead config status` lists all)" if len(errors) > 1 else ""
        return f"the queue file {self.path} is refused, what was in force stays: {errors[0]}{more}"


def shown_problem(problem: Problem) -> ConfigProblem:
    """A problem for the outside."""
    return ConfigProblem(**{name: getattr(problem, name) for name in ConfigProblem.__struct_fields__})


def taken(text: str, field: str = "text") -> ClusterSpec:
    """The configuration of a text in a request. Raises `Refusal` with everything that is wrong with it."""
    try:
        return usable(text)
    except ConfigurationError as error:
        details = [msgspec.to_builtins(shown_problem(problem)) for problem in error.problems]
        first = error.errors[0]
        place = f"{first.path}: " if first.path else ""
        more = f" (and {len(error.errors) - 1} more)" if len(error.errors) > 1 else ""
        message = f"line {first.line}: {place}{first.message}{more}"
        raise Refusal("invalid", message, field=field, details=details) from error
