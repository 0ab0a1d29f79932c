"""`fairlead sim view`: the pages of a recorded course, from the start to the end.

Decides the order of start and stop. Invariant: only pages are on the network; the questions behind them are asked on a
socket in a directory of its own, and only with a session of whoever started it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from fairlead.journal.format import JournalError
from fairlead.local import accounts
from fairlead.runtime.process import log_to_stderr, loop_factory, on_signals
from fairlead.service.duties import again
from fairlead.service.http.app import make_app
from fairlead.service.http.connections import MOST, Connections, raise_descriptors
from fairlead.service.http.server import Server
from fairlead.service.http.sockets import Tcp
from fairlead.service.pages import Pages
from fairlead.service.place import now_ms
from fairlead.service.recorded.course import Course
from fairlead.service.recorded.place import RecordedPlace
from fairlead.version import version


def serve_course(file: Path, port: int, on_ready: Callable[[str], None]) -> str:
    """Show the course of a journal until SIGINT or SIGTERM; `on_ready` is told the address that opens it, once.

    The answer is why it could not, or nothing.
    """
    log_to_stderr("warning")
    with ExitStack() as stack:
        try:
            course = Course(file)
        except JournalError as error:
            return str(error)
        stack.callback(course.close)
        pages = Pages(option="--port")
        pages.listen(Tcp(), port, None, stack)
        if not pages.url:
            return pages.why_none
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_live(course, file, pages, on_ready))
    return ""


async def _live(course: Course, file: Path, pages: Pages, on_ready: Callable[[str], None]) -> None:
    uid = os.geteuid()
    user = accounts.by_uid(uid).name
    place = RecordedPlace(
        version=version(), started_at_ms=now_ms(), pages=pages, course=course, name=str(file), user=user
    )
    place.at_ms = course.begin_ms
    server = Server(make_app(place), pages.changes.close, Connections(raise_descriptors(), of_user=MOST, own_uid=uid))
    on_signals(server.stop)
    keeping, going = again("pages", pages.keep), again("going on", place.keep_going)
    duties = [asyncio.create_task(keeping), asyncio.create_task(going)]
    ticket, _ = pages.sessions.ticket(user, uid)
    on_ready(f"{pages.url}/enter?ticket={ticket}")
    try:
        await server.serve(sockets=pages.inside)
    finally:
        for task in duties:
            task.cancel()
        await asyncio.gather(*duties, return_exceptions=True)
