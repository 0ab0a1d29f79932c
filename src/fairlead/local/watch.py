"""Waiting for supervisors to begin and to end, on one thread.

Decides when the machine hears of it. Never decides what it means. Invariant: `on_exit` is called once for every process
that was added and has ended; a call that failed is made again later; a pid that was given out anew is never taken for
it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import selectors
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fairlead.local.supervisor import kernel

log = logging.getLogger("fairlead.local")

POLL_S = 0.1
"""Between two looks where the kernel cannot tell by itself (before Linux 5.3, no more file descriptors or watches)."""
AGAIN_S = 1.0


@dataclass(slots=True)
class _Watched:
    key: str
    pid: int
    started_ticks: int
    process: int | None
    """A file descriptor that becomes readable when the process ends; None: it is polled."""
    words: int | None
    """The read end of its standard error, if it is a child of this process, and until that is at its end."""
    heard: bytes = b""
    deaf: bool = False
    """The kernel does not tell of what it says: that is polled."""
    is_child: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_child = self.words is not None


class ExitWatch:
    """Watches processes until it is closed."""

    def __init__(self, on_begin: Callable[[str], None], on_exit: Callable[[str, str], None]) -> None:
        """`on_begin(key)` when the process says so, `on_exit(key, words)` when it has ended, with what it said else."""
        self._on_begin, self._on_exit = on_begin, on_exit
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}
        self._again: list[tuple[float, str, Callable[[], None]]] = []
        self._selector = selectors.DefaultSelector()
        self._bell_out, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._bell_out, False)
        self._selector.register(self._bell_out, selectors.EVENT_READ, None)
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="fairlead-machine", daemon=True)
        self._thread.start()

    def add_child(self, key: str, pid: int, words: int) -> int:
        """Watch a child of this process, which nothing else waits for; its start time, 0 if that cannot be said now.

        `words`: the read end of its standard error, owned from now on. Raises RuntimeError after `close`.
        """
        try:
            found = kernel.process(pid)
        except OSError:
            found = None
        os.set_blocking(words, False)
        self._watch(_Watched(key, pid, found.started_ticks if found else 0, _open_process(pid), words))
        return found.started_ticks if found else 0

    def add(self, key: str, pid: int, started_ticks: int) -> bool:
        """Watch this process. False: it is not alive any more, and nothing will be called.

        Raises RuntimeError after `close`, OSError if the kernel cannot say whether it is alive.
        """
        process = _open_process(pid)
        # The check comes after the opening: what was opened is then the process with this start time.
        try:
            found = kernel.process(pid)
        except OSError:
            _close(process)
            raise
        if found is None or found.started_ticks != started_ticks:
            _close(process)
            return False
        self._watch(_Watched(key, pid, started_ticks, process, None))
        return True

    def _watch(self, watched: _Watched) -> None:
        with self._lock:
            if self._closing:
                _close(watched.process, watched.words)
                raise RuntimeError("the machine has been closed")
            self._watched[watched.key] = watched
            if watched.words is not None:
                watched.deaf = not self._registered(watched.words, (watched.key, "words"))
            if watched.process is not None and not self._registered(watched.process, (watched.key, "process")):
                _close(watched.process)
                watched.process = None
        self._ring()

    def _registered(self, fd: int, data: tuple[str, str]) -> bool:
        """Whether the kernel tells of it; else it has no room for that now (ENOSPC, ENOMEM)."""
        try:
            self._selector.register(fd, selectors.EVENT_READ, data)
        except OSError as problem:
            log.warning("run %s is looked at every %.1f s instead of being waited for: %s", data[0], POLL_S, problem)
            return False
        return True

    def _unregister(self, fd: int) -> None:
        with contextlib.suppress(KeyError):  # It was not registered.
            self._selector.unregister(fd)

    def close(self) -> None:
        """Stop watching. The processes go on. A second call does nothing."""
        with self._lock:
            self._closing = True
        self._ring()
        if threading.current_thread() is not self._thread:
            self._thread.join(10)

    def _ring(self) -> None:
        with self._lock:
            if self._bell >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._bell, b"!")

    def _work(self) -> None:
        while not self._closing:
            ended = []
            for ready, _ in self._selector.select(self._timeout()):
                if ready.data is None:
                    _read_all(self._bell_out)
                elif ready.data[1] == "words":
                    self._listen(ready.data[0])
                else:
                    ended.append(ready.data[0])
            for key in self._deaf():
                self._listen(key)
            self._collect(ended)
            self._try_again()
        self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            for watched in self._watched.values():
                _close(watched.process, watched.words)
            self._watched.clear()
            self._selector.close()
            _close(self._bell, self._bell_out)
            self._bell = -1

    def _deaf(self) -> list[str]:
        with self._lock:
            return [key for key, each in self._watched.items() if each.deaf and each.words is not None]

    def _timeout(self) -> float | None:
        waits = [max(0.0, due - time.monotonic()) for due, _, _ in self._again]
        with self._lock:
            if any(each.process is None or (each.deaf and each.words is not None) for each in self._watched.values()):
                waits.append(POLL_S)
        return min(waits) if waits else None

    def _listen(self, key: str) -> None:
        with self._lock:
            watched = self._watched.get(key)
            if watched is None or watched.words is None:
                return
            said = _read_all(watched.words)
            if said is None:
                self._unregister(watched.words)
                os.close(watched.words)
                watched.words = None
                return
            watched.heard = (watched.heard + said)[-4000:]
        if said.startswith(b"begun\n"):
            self._tell(f"the begin of run {key} could not be told", partial(self._on_begin, key))

    def _collect(self, keys: Sequence[str]) -> None:
        with self._lock:
            polled = [key for key, each in self._watched.items() if each.process is None and _has_ended(each)]
            ended = [self._watched[key] for key in (*keys, *polled) if key in self._watched]
            for each in ended:
                if each.words is not None:
                    each.heard += _read_all(each.words) or b""
                    self._unregister(each.words)
                if each.process is not None:
                    self._unregister(each.process)
                _close(each.process, each.words)
                del self._watched[each.key]
        for each in ended:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(each.pid, os.WNOHANG)
            words = each.heard.removeprefix(b"begun\n").decode(errors="replace").strip()
            self._tell(f"the end of run {each.key} could not be settled", partial(self._on_exit, each.key, words))

    def _tell(self, otherwise: str, call: Callable[[], None], level: int = logging.ERROR) -> None:
        try:
            call()
        except Exception as fault:
            is_ours = not isinstance(fault, OSError)
            log.log(level, "%s, tried again: %s", otherwise, fault, exc_info=is_ours)
            self._again.append((time.monotonic() + AGAIN_S, otherwise, call))

    def _try_again(self) -> None:
        now = time.monotonic()
        due = [each for each in self._again if each[0] <= now]
        self._again = [each for each in self._again if each[0] > now]
        for _, otherwise, call in due:
            # What lasts was said once: the disk that keeps it back may be the one that has the log.
            self._tell(otherwise, call, logging.DEBUG)


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _has_ended(watched: _Watched) -> bool:
    """What cannot be asked just now is asked again."""
    try:
        if watched.is_child:
            return os.waitid(os.P_PID, watched.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return not kernel.alive(watched.pid, watched.started_ticks)
    except ChildProcessError:
        return True
    except OSError:
        return False


def _read_all(fd: int) -> bytes | None:
    """What can be read now; None at the end of the stream."""
    try:
        return os.read(fd, 65536) or None
    except OSError:
        return b""


def _close(*fds: int | None) -> None:
    for fd in fds:
        if fd is not None:
            with contextlib.suppress(OSError):
                os.close(fd)


def sentence_of(words: str) -> str:
    """What a supervisor said before it ended. Of what Python itself says when it cannot even begin: the error."""
    lines = words.splitlines()
    errors = [line for line in lines if re.match(r"(Fatal Python error|\w+Error)\b", line)]
    return (errors[-1] if errors else " ".join(lines))[-1000:]
