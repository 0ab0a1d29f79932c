"""Messages on their way: commands and mail as runs of the user, webhooks by a process that is the user.

Decides which goes next, and how long it may take. Never decides that one is due. Invariant: each that was handed in is
told of once as sent or as given up, unless the service ends before; a user who sends many keeps no other waiting.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

from fairlead.local import webhook
from fairlead.local.orders import TRIES
from fairlead.local.runs import RunReport, RunSpec

if TYPE_CHECKING:
    from fairlead.local.machine import Machine

log = logging.getLogger("fairlead.local")

AT_ONCE = 4
TIME_LIMIT_MS = 60_000
MEMORY = 256 * 2**20
PROCESSES = 64
WEBHOOK_S = 120.0
LOOK_AGAIN_S = 0.1
TRY_AGAIN_S = 10.0
"""Where the system has no room for a process now."""
_SENDMAIL = "PATH=/usr/sbin:/usr/lib:/sbin:/usr/bin:$PATH"
NO_SENDMAIL = 69
"""EX_UNAVAILABLE."""
NOT_LOADED = 2
"""Python's own status where the file that it is to execute is not there; that has others."""
_END = "END-OF-THIS-MESSAGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message: its name, for whom and where to, and what it says."""

    run: str
    to: str
    kind: str
    sentence: str
    facts: Mapping[str, Any]
    uid: int
    gids: tuple[int, ...] = ()
    """None: the account is not the one that it was."""
    as_user: bool = False
    """Whether the service is root and becomes the user for it."""
    cwd: str = "/"

    def script(self) -> str:
        """What a shell does to send it."""
        if self.kind == "command":
            return f"#!/bin/sh\n{self.to}\n"
        mail = EmailMessage(policy.default.clone(cte_type="8bit"))
        mail["To"], mail["Subject"] = self.to.removeprefix("mail:"), f"[fairlead] {self.sentence}"
        mail.set_content("\n".join(f"{name}: {value}" for name, value in self.facts.items()) + "\n")
        begin = f"#!/bin/sh\n{_SENDMAIL}\ncommand -v sendmail >&2 || exit {NO_SENDMAIL}\n"
        to = self.to.removeprefix("mail:")
        return f"{begin}exec sendmail -i -- '{to}' <<'{_END}'\n{mail.as_bytes().decode()}\n{_END}\n"


class Deliveries:
    """Some threads that send; those of different users in turn."""

    def __init__(self, machine: Machine, told: Callable[[Delivery, str], None]) -> None:
        """`told(delivery, wrong)` is called when one is sent (`wrong` is empty) or given up, and makes that durable."""
        self._machine, self._told = machine, told
        self._waiting: dict[int, deque[Delivery]] = {}
        self._known: set[str] = set()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def send(self, delivery: Delivery) -> None:
        """Hand one in; a second time it is passed over."""
        with self._changed:
            if delivery.run in self._known or self._closing.is_set():
                return
            self._known.add(delivery.run)
            self._waiting.setdefault(delivery.uid, deque()).append(delivery)
            if len(self._threads) < AT_ONCE:
                thread = threading.Thread(target=self._work, name="deliveries", daemon=True)
                try:
                    thread.start()
                    self._threads.append(thread)
                except RuntimeError as problem:  # It waits for the next one, or for those that are there.
                    log.warning("message %s has to wait: %s", delivery.run, problem)
            self._changed.notify()

    def settled(self, run: str) -> None:
        """What became of it is in the journal."""
        with self._changed:
            self._known.discard(run)

    def close(self) -> None:
        """Send nothing more; what is due is sent at the next start."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()

    def _work(self) -> None:
        while (delivery := self._next()) is not None:
            try:
                wrong = self._deliver(delivery)
            except Exception as fault:
                log.error("message %s could not be sent: %s", delivery.run, fault, exc_info=fault)
                wrong = f"a fault in the service: {fault}"
            if wrong is not None and not self._closing.is_set():
                self._told(delivery, wrong)
                self._clear_up(delivery)

    def _next(self) -> Delivery | None:
        with self._changed:
            while not self._waiting and not self._closing.is_set():
                self._changed.wait()
            if self._closing.is_set():
                return None
            uid = next(iter(self._waiting))
            mine = self._waiting.pop(uid)
            found = mine.popleft()
            if mine:
                self._waiting[uid] = mine  # Behind the others.
            return found

    def _deliver(self, delivery: Delivery) -> str | None:
        if delivery.as_user and not delivery.gids:
            return "its user is not there any more"
        return self._by_webhook(delivery) if delivery.kind == "url" else self._by_run(delivery)

    def _by_run(self, delivery: Delivery) -> str | None:
        """What went wrong, or nothing; None: the service ends before it is over."""
        user: dict[str, Any] = {"uid": delivery.uid, "gid": delivery.gids[0], "groups": delivery.gids}
        run = RunSpec(
            key=delivery.run,
            command=("notice",),
            script=delivery.script(),
            env={f"FAIRLEAD_{name.upper()}": str(value) for name, value in delivery.facts.items() if value is not None},
            # That the directory is gone may be what the mail says; a command must not be executed anywhere else.
            cwd=delivery.cwd if delivery.kind == "command" else "/",
            vcore=1000,
            memory=MEMORY,
            processes=PROCESSES,
            grace_ms=1000,
            time_limit_ms=TIME_LIMIT_MS,
            output_bytes=4096,
            **(user if delivery.as_user else {}),
        )
        report, tries = self._started(run), 1
        while report is not None and report.ended_at_ms is None:
            if self._closing.wait(LOOK_AGAIN_S):
                return None
            report = self._machine.report(delivery.run)
            if report is not None and report.never_executed:
                if tries == TRIES:
                    return _wrong(self._machine.give_up(delivery.run, f"it could not be started, {TRIES} times"))
                report, tries = self._started(run), tries + 1  # Its supervisor found no room; there may be some by now.
        if report is None or self._closing.is_set():
            return None
        if delivery.kind == "mail" and report.exit_code == NO_SENDMAIL:
            return "there is no sendmail on this machine"
        return _wrong(report)

    def _started(self, run: RunSpec) -> RunReport | None:
        while not self._closing.is_set():
            try:
                return self._machine.start(run)
            except OSError as problem:
                self._wait(run.key, problem)
        return None

    def _wait(self, run: str, problem: OSError) -> None:
        log.warning("message %s has to wait: %s", run, problem)
        self._closing.wait(TRY_AGAIN_S)

    def _clear_up(self, delivery: Delivery) -> None:
        """That it was sent is in the journal. Its supervisor may take a moment more to go."""
        while not self._closing.is_set():
            try:
                self._machine.purge(delivery.run)
                return
            except ValueError:
                self._closing.wait(LOOK_AGAIN_S)
            except OSError as problem:
                log.warning("the files of message %s could not be removed: %s", delivery.run, problem)
                return

    def _by_webhook(self, delivery: Delivery) -> str | None:
        user = [str(delivery.uid), *map(str, delivery.gids)] if delivery.as_user else ["-"]
        while not self._closing.is_set():
            try:
                done = subprocess.run(
                    [sys.executable, "-I", "-S", webhook.__file__, delivery.to, *user],
                    input=json.dumps({"text": delivery.sentence, **delivery.facts}).encode(),
                    capture_output=True,
                    env={"LC_ALL": "C.UTF-8"},
                    cwd="/",
                    timeout=WEBHOOK_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"no answer in {WEBHOOK_S:.0f} s"
            except OSError as problem:
                self._wait(delivery.run, problem)
                continue
            if done.returncode == NOT_LOADED:
                self._wait(delivery.run, OSError("its program cannot be loaded; is Fairlead being installed?"))
                continue
            said = done.stdout.decode("utf-8", "replace")
            return said or ("" if done.returncode == 0 else "its process failed")
        return None


def _wrong(report: RunReport) -> str:
    if report.error or report.lost:
        return report.error or "how it ended is not known"
    if report.timed_out:
        return f"it took longer than {TIME_LIMIT_MS // 1000} s"
    if report.signal is not None:
        return f"it was ended by signal {report.signal}"
    return f"exit status {report.exit_code}" if report.exit_code else ""
