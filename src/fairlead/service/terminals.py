"""The route to the terminal of a job.

Decides who may sit at it, and how many connections a user has. Never looks at what is typed or written: it passes bytes
between the caller and the supervisor that holds the terminal, both ways at once. Invariant: when either side is gone,
so is the connection; the terminal and its job stay.

The body of the request is what the caller sends and the answer what comes back, both chunked and endless: HTTP/1.1 as
it is, over the Unix socket and over TCP, with the rights, the errors and the client that all other routes have.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

from fastapi import Response
from starlette.types import Receive, Scope, Send

from fairlead.local import selection
from fairlead.local.callers import Caller, Rights
from fairlead.local.job_names import run_key
from fairlead.local.job_states import ON_THE_MACHINE, State
from fairlead.local.jobs import Jobs
from fairlead.local.supervisor import run_files
from fairlead.runtime import Refusal
from fairlead.scheduler import Scheduler
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf

router = api("jobs")
PART = 65_536
BEGINS_WITHIN_S = 10.0
LOOK_AGAIN_S = 0.05
PIECES = "application/octet-stream"

_BODY = {PIECES: {"schema": {"type": "string", "format": "binary"}}}
TERMINAL: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Pieces: a letter, four bytes of length, and so many bytes (docs/interactive.md).",
        "content": _BODY,
    },
    **documented(404, 409, 429),
}


@router.post(
    "/jobs/{key}/terminal",
    response_class=Response,
    responses=TERMINAL,
    openapi_extra={"requestBody": {"description": "Pieces as well, as long as it is open.", "content": _BODY}},
)
async def attach_to_job(key: str, place: MachineOf, caller: CallerOf) -> Response:
    """Sit at the terminal of a job that runs: send what is typed while what is written is answered."""
    with contextlib.ExitStack() as held:
        held.enter_context(place.users.one_more("terminals", caller))
        reader, writer = await _connected(place, caller, key)
        return _Both(place, reader, writer, held.pop_all())


async def _connected(
    place: MachinePlace, caller: Caller, key: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The supervisor's ends. What has its place may take a moment to begin. Raises `Refusal`."""

    def look(scheduler: Scheduler, jobs: Jobs) -> int:
        job = selection.visible(jobs, Rights(caller, scheduler), key)
        if not caller.may_see(job):
            said = f"the terminal of job {key} is that of {job.spec.user}; nobody else but administrators may sit at it"
            raise Refusal("forbidden", said)
        if not job.spec.terminal:
            raise Refusal("conflict", f"job {key} has no terminal; `fairlead logs -f {key}` shows what it writes")
        if job.state not in ON_THE_MACHINE:
            advice = "; it has a terminal as long as it runs" if job.state is State.WAITING else ""
            raise Refusal("conflict", f"job {key} is {job.state}{advice}")
        return job.attempt

    deadline = asyncio.get_running_loop().time() + BEGINS_WITHIN_S
    while True:
        directory = place.machine.stdout_path(run_key(key, await place.look(look))).parent
        try:
            return await _open(directory)
        except OSError as error:
            if asyncio.get_running_loop().time() > deadline:
                said = f"the terminal of job {key} does not answer: {error.strerror}; try again"
                raise Refusal("unavailable", said) from error
        await asyncio.sleep(LOOK_AGAIN_S)


async def _open(directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    inside = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{inside}/{run_files.TERMINAL}")
    finally:
        os.close(inside)


class _Both(Response):
    """An answer that goes on while the request does."""

    media_type = PIECES

    def __init__(
        self,
        place: MachinePlace,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        held: contextlib.ExitStack,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._place, self._reader, self._writer, self._held = place, reader, writer, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until one side has ended."""
        del scope
        with self._held:
            try:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                both = [self._up(receive), self._down(send), self._place.stopping.wait()]
                tasks = [asyncio.ensure_future(each) for each in both]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                with contextlib.suppress(OSError):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                self._writer.close()

    async def _up(self, receive: Receive) -> None:
        while (message := await receive())["type"] == "http.request":
            with contextlib.suppress(OSError):
                self._writer.write(message.get("body", b""))
                await self._writer.drain()
            if not message.get("more_body", False):
                return

    async def _down(self, send: Send) -> None:
        with contextlib.suppress(OSError):
            while content := await self._reader.read(PART):
                await send({"type": "http.response.body", "body": content, "more_body": True})
