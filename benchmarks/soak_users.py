"""What the users of a soak do: six of them, each by chance, as people of a lab do; and one who does too much.

Part of `benchmarks.soak`. Each function is what a process of its own does until it is told that it is over.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from typing import Any, TypeAlias

from fairlead.client import Address, Client
from fairlead.client.errors import ClientError, Refused, ServiceFailed, Unreachable
from fairlead.local.devices import read_hierarchies
from fairlead.local.means import stand_before_jobs

QUIET, ABUSE, DOWN, OVER = range(4)
"""Phases of a soak. In `DOWN` the service was killed, or its disk is full."""
TOO_MUCH = "too-much"
"""Name of the jobs of the one who does too much."""
MOST_LIVE = 12
"""Jobs that one user has at a time, notebooks apart."""
Phase: TypeAlias = "Synchronized[int]"


@dataclass(slots=True)
class User:
    """One of the six."""

    client: Client
    ledger: str
    draw: random.Random
    phase: Phase
    must_run: list[str] = field(default_factory=list)
    """Keys of jobs that nobody ever cancels or stops for others: each has to run once."""
    notebook: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    def submit(self, kind: str, *drafts: dict[str, Any]) -> list[str]:
        """The keys of these jobs; sent until the service has taken them in, under one name, so that they are one."""
        name = os.urandom(16).hex()
        jobs = [{"cwd": "/", "name": kind, "queue": "root.batch", "resources": {"cpu": 0.5}} | each for each in drafts]
        while self.phase.value != OVER:
            try:
                found = [job.key for job in self.client.submit(jobs, idempotency_key=name).jobs]
            except Unreachable:
                time.sleep(0.2)
            except (Refused, ServiceFailed) as refused:
                self.counts[f"refused: {refused.code}"] += 1
                if refused.code != "disk-full":
                    return []
                time.sleep(0.5)
            else:
                self.counts[kind] += len(found)
                return found
        return []

    def noted(self, seconds: float, exit_code: int = 0) -> list[str]:
        """A command that writes its key and attempt down when it runs."""
        script = f'echo "$FAIRLEAD_KEY.$FAIRLEAD_ATTEMPT" >> {self.ledger}; sleep {seconds:.2f}; exit {exit_code}'
        return ["/bin/sh", "-c", script]

    # -- what they do: a further kind is a method here and a weight below ---------------------------------------------

    def short(self) -> None:
        """Some small jobs."""
        drafts = [
            {"command": self.noted(self.draw.uniform(0, 1)), "priority": 50} for _ in range(self.draw.choice((1, 3)))
        ]
        self.must_run += self.submit("short", *drafts)

    def chain(self) -> None:
        """One after another, and one for the case that it fails."""
        code = self.draw.choice((0, 0, 1))
        for first in self.submit("first", {"command": self.noted(0.2, code), "priority": 50}):
            self.must_run.append(first)
            after = {"command": self.noted(0.1), "priority": 50}
            self.submit("after-ok", after | {"after": [{"key": first, "awaited": "ok"}], "on_never": "cancel"})
            self.submit("after-not-ok", after | {"after": [{"key": first, "awaited": "not-ok"}], "on_never": "cancel"})

    def array(self) -> None:
        """An array, two parts at a time; now and then some parts are cancelled, and one job waits for one of them."""
        draft = {"command": self.noted(self.draw.uniform(0, 0.5)), "priority": 50}
        for key in self.submit("array", draft | {"array": "1-6%2"}):
            if self.draw.random() < 0.5:
                self.must_run += [f"{key}.{index}" for index in range(1, 7)]
                after = {"command": self.noted(0.1), "priority": 50, "after": [{"key": f"{key}.3", "awaited": "ok"}]}
                self.must_run += self.submit("after a part", after)
            else:
                self.client.cancel(f"{key}.5-6")

    def failing(self) -> None:
        """It fails, and is tried again."""
        self.submit("failing", {"command": self.noted(0, 3), "retry": {"limit": 2, "backoff_ms": 500}})

    def urgent(self) -> None:
        """Others are stopped for it."""
        drafts = {"command": self.noted(0.5), "queue": "root.urgent", "priority": 40, "resources": {"cpu": 4}}
        self.submit("urgent", drafts)

    def idle(self) -> None:
        """On what others leave over."""
        self.submit("idle", {"command": self.noted(3), "idle": True})

    def tidy_notebook(self) -> None:
        """A notebook is open for long and does nothing; now and then it is closed and another one opened."""
        if self.notebook and self.draw.random() < 0.8:
            return
        if self.notebook:
            self.client.cancel(self.notebook)
        draft = {"command": ["/bin/sleep", "100000"], "queue": "root.notebooks", "resources": {"cpu": 0.1}}
        self.notebook = next(iter(self.submit("notebook", draft)), "")

    def hold(self) -> None:
        """Held, looked at, and released or cancelled."""
        for key in self.submit("held", {"command": self.noted(0.1), "hold": True}):
            self.client.why(key)
            if self.draw.random() < 0.5:
                self.client.release(key)
            else:
                self.client.cancel(key)

    def look(self) -> None:
        """What is there, and why something waits."""
        for job in list(self.client.jobs(state=("waiting", "running"), limit=20))[:3]:
            self.client.job(job.key)
            if job.state == "waiting":
                self.client.why(job.key)
        list(self.client.queues())
        list(self.client.occupants())

    def live(self) -> None:
        """Go on until it is over."""
        kinds: dict[Callable[[], None], int] = {
            self.short: 6,
            self.chain: 3,
            self.array: 2,
            self.failing: 1,
            self.urgent: 1,
            self.idle: 1,
            self.tidy_notebook: 1,
            self.hold: 1,
            self.look: 6,
        }
        while self.phase.value != OVER:
            try:
                has_much = len(list(self.client.jobs(state=("waiting", "running"), limit=MOST_LIVE + 2))) > MOST_LIVE
                act = self.look if has_much else self.draw.choices(list(kinds), list(kinds.values()))[0]
                act()
            except Unreachable:
                time.sleep(0.3)
            except ClientError as error:
                self.counts[f"error: {getattr(error, 'code', '') or error.message[:60]}"] += 1
            time.sleep(self.draw.uniform(0.3, 1.2))


def be_users(url: str, tokens: list[str], ledger: str, seed: int, phase: Phase, out: Connection) -> None:
    """All of them, a thread each."""
    users = [
        User(Client(Address.of_url(url, token)), ledger, random.Random(seed + n), phase)
        for n, token in enumerate(tokens)
    ]
    threads = [threading.Thread(target=user.live) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts: Counter[str] = Counter()
    for user in users:
        counts += user.counts
    out.send(([key for user in users for key in user.must_run], counts))


def answer_alike(listening: socket.socket) -> None:
    """A server that does nothing but give one answer, with the place on the processor that the service has.

    How long it takes says what the machine costs, and the one who reads: it is what the service is held against.
    """
    os.setsid()
    stand_before_jobs(read_hierarchies())
    content = b'{"nodes":[]}'
    lines = ["HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(content)}", "", ""]
    while True:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.recv(2**16)
            connection.sendall("\r\n".join(lines).encode() + content)


Wait: TypeAlias = tuple[bool, int, float]
"""How long a read took in which phase, in seconds, and whether it was one of the control."""


def read_on(url: str, token: str, control: str, phase: Phase, out: Connection, pause_s: float = 0.05) -> None:
    """Read as another user does who looks at the machine, all the time; `control` after each four."""
    client, other, waits = Client(Address.of_url(url, token)), Client(Address.of_url(control)), list[Wait]()
    reads: list[Callable[[], Any]] = [
        lambda: list(client.queues()),
        lambda: list(client.nodes()),
        lambda: list(client.jobs(state=("waiting", "running"), limit=20)),
        lambda: list(client.occupants()),
        lambda: list(other.nodes()),
    ]
    number = 0
    while (before := phase.value) != OVER:
        began = time.perf_counter()
        which = number % len(reads)
        with suppress(ClientError):
            reads[which]()
            if phase.value == before != DOWN:
                waits.append((which == len(reads) - 1, before, time.perf_counter() - began))
        number += 1
        time.sleep(pause_s)
    out.send(waits)


def do_too_much(url: str, token: str, phase: Phase, out: Connection) -> None:
    """In phases of abuse: submissions, questions, streams and output without end. Bounds are to hold it."""
    client, refused = Client(Address.of_url(url, token), timeout_s=30), Counter[str]()

    def worst(act: Callable[[], Any]) -> None:
        while phase.value != OVER:
            if phase.value != ABUSE:
                time.sleep(0.1)
                continue
            try:
                act()
            except (Refused, ServiceFailed) as error:
                refused[error.code] += 1
                time.sleep(0.02)
            except (ClientError, TimeoutError):
                time.sleep(0.2)

    plain = {"name": TOO_MUCH, "cwd": "/"}
    many = [plain | {"command": ["/bin/true"], "hold": True, "env": {"X": "x" * 500}} for _ in range(200)]
    loud = plain | {"command": ["/bin/sh", "-c", "yes | head -c 30000000"], "time_limit_ms": 20_000}

    def submit_and_cancel() -> None:
        for job in client.submit(many).jobs:
            client.cancel(job.key)

    def listen() -> None:
        for number, _ in enumerate(client.events(timeout_s=5)):
            if number > 200:
                break

    acts: list[Callable[[], Any]] = [submit_and_cancel, lambda: client.submit([loud] * 3)]
    acts += [lambda: client.what_if(submit={"command": ["/bin/true"], "cwd": "/"})] * 4 + [listen] * 6
    threads = [threading.Thread(target=worst, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.send(refused)
