"""The output of an array: `logs 12`, `logs -f 12`, `submit --array ... --wait`.

Decides which parts are looked at when. Never stops one. Invariant: each line begins with the key of the part that wrote
it, and the lines of one part come in order and once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.cli.app import complain
from fairlead.cli.follow import patient_log, patiently
from fairlead.cli.outputs import Prefixed, so_far, target, write
from fairlead.client.errors import Refused
from fairlead.client.sync import LIVE, Client
from fairlead.wire.arrays import split

if TYPE_CHECKING:
    from fairlead.client.routes import Stream

_AT_ONCE = 32
"""So many parts are followed at a time; the output of others is passed on when they have ended."""
_POLL_S = 0.5
_RUNS = ("running", "suspended", "stopping")


def begun(client: Client, key: str) -> list[str]:
    """The keys of the parts that have begun."""
    return [job.key for job in client.jobs(array=key) if job.started_at_ms is not None]


def _print(client: Client, key: str, streams: Sequence[Stream], unread: list[str]) -> None:
    """Pass on what all attempts of an ended part wrote; those may have been over before anybody looked."""
    job = patiently(lambda: client.job(key))
    for stream in streams:
        lines = Prefixed(key, target(stream))
        # To a file of the user's own all attempts write: it is told once.
        attempts = range(1, job.attempts + 1) if job.attempts > 1 and stream not in job.own_files else (None,)
        try:
            for attempt in attempts:
                for content in so_far(client, key, stream, attempt):
                    write(lines, content)
        except Refused as problem:  # It writes to /dev/null, or the like: the others are passed on all the same.
            complain(f"{key}: {problem.message}")
            unread.append(key)
        write(lines, b"")


def follow_parts(client: Client, key: str, streams: Sequence[Stream], unread: list[str]) -> None:
    """Pass on what the parts write until all have ended. `unread` gets the keys of those of which none can be read."""
    told: set[str] = set()
    threads: list[threading.Thread] = []
    while True:
        array = patiently(lambda: client.job(key))
        runs = patiently(lambda: list(client.jobs(array=key, state=_RUNS)))
        threads = [thread for thread in threads if thread.is_alive()]
        for job in runs[:_AT_ONCE]:
            if job.key not in told and len(threads) < _AT_ONCE * len(streams):
                told.add(job.key)
                threads += [_followed(client, job.key, stream, unread) for stream in streams]
        parts = array.parts
        ended = 0 if parts is None else parts.done + parts.failed + parts.cancelled
        # Once it has ended, all are looked at: how many have been told is not how many of those that wrote something.
        if array.state not in LIVE or ended > len(told) - len(threads) // len(streams):
            _print_ended(client, key, streams, told, unread)
        if array.state not in LIVE:
            for thread in threads:
                thread.join()
            return
        time.sleep(_POLL_S)


def _print_ended(client: Client, key: str, streams: Sequence[Stream], told: set[str], unread: list[str]) -> None:
    """Pass on what ended parts wrote that were not told; what was cancelled before it began wrote nothing."""
    for job in patiently(lambda: list(client.jobs(array=key))):
        if job.state not in LIVE and job.key not in told:
            told.add(job.key)
            if job.started_at_ms is not None:
                _print(client, job.key, streams, unread)


def _followed(client: Client, key: str, stream: Stream, unread: list[str]) -> threading.Thread:
    def follow() -> None:
        lines = Prefixed(key, target(stream))
        try:
            for chunk in patient_log(client, key, stream, 0):
                write(lines, chunk)
        except Exception as problem:
            complain(f"{key}: {problem}")
            unread.append(key)
        write(lines, b"")

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    return thread


def is_several(client: Client, key: str) -> bool:
    """Whether a key means several parts of an array. Raises `Refused` if there is no such job."""
    number, indices = split(key)
    return number.isdecimal() and not indices.isdecimal() and client.job(key).parts is not None
