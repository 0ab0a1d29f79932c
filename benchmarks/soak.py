"""Can the service of a shared machine be left alone?

    make soak                                   30 minutes; 3 where CI is set, and what takes long is no fault there
    python -m benchmarks.soak MINUTES [SEED]

Starts a service for this purpose alone, on a disk of its own, and lets six users work on it: small jobs, arrays,
chains, retries, jobs for which others are stopped, idle work, notebooks that are open for long. Meanwhile one does too
much at times, the service is killed again and again, and once its disk is full. Memory, descriptors, disk and how long
others wait are printed and judged: flat or not. At the end every job that had to run has run once.

As root, six accounts of the system are the users, and the disk is a small one in memory; else all of it is one user's,
and no disk gets full.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.retention import size_of
from benchmarks.soak_judgement import SETTLE_S, Sample, flat, ran_once, waits
from benchmarks.soak_users import (
    ABUSE,
    DOWN,
    OVER,
    QUIET,
    TOO_MUCH,
    Phase,
    answer_alike,
    be_users,
    do_too_much,
    read_on,
)
from fairlead.client import Address, Client
from fairlead.client.errors import ClientError, Refused, ServiceFailed

ACCOUNTS = ("daemon", "bin", "sys", "games", "man", "mail")
DISK_MIB = 256
LONGEST_START_S = 10.0
MOST_JOBS = 500
"""Jobs that a user may have at a time: the one who does too much is soon there, and stays."""
QUEUES = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: batch, properties: {job.output.max: 64Ki}}
          - {name: default, properties: {job.output.max: 64Ki}}
          - {name: urgent}
          - {name: notebooks}
"""


@dataclass(slots=True)
class Course:
    """A soak under way."""

    directory: Path
    seconds: float
    url: str
    phase: Phase
    stack: ExitStack
    most_jobs: int = MOST_JOBS
    is_disk_small: bool = False
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    """Of this life of the service."""
    samples: list[Sample] = field(default_factory=list)
    recovered_s: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def disk(self) -> Path:
        return self.directory / "disk"

    @property
    def client(self) -> Client:
        return Client(Address(socket=str(self.directory / "s")), timeout_s=60)

    # -- the service ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, and wait until it answers."""
        places = ["--state", str(self.disk / "state"), "--socket", str(self.directory / "s")]
        keep = ["--keep-jobs", "30s", "--keep-jobs-max", "300", "--keep-journal", "1m", "--keep-journal-max", "16Mi"]
        words = [
            "up",
            "--config",
            str(self.directory / "queues.yaml"),
            *places,
            *keep,
            "--port",
            self.url.rpartition(":")[2],
        ]
        words += ["--resource", "cpu=8", "--resource", "memory=4Gi", "--per-user", "submissions=100000"]
        words += ["--per-user", f"jobs={self.most_jobs}"]
        began = time.monotonic()
        with (self.directory / "log").open("ab") as log:
            program = [sys.executable, "-m", "fairlead.cli.main", *words]
            self.process = subprocess.Popen(program, stderr=log, cwd="/", start_new_session=True)
        while True:
            try:
                self.client.service()
                break
            except ClientError:
                if self.process.poll() is not None or time.monotonic() > began + 60:
                    raise SystemExit(
                        f"the service does not start: {(self.directory / 'log').read_text()[-3000:]}"
                    ) from None
                time.sleep(0.05)
        self.recovered_s.append(time.monotonic() - began)
        self.began = time.monotonic()

    def kill(self) -> None:
        """Kill it, and start it again."""
        assert self.process is not None
        self.phase.value = DOWN
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()
        time.sleep(SETTLE_S)
        self.phase.value = QUIET

    def fill_disk(self) -> None:
        """Take all room, see that submissions are refused and a cancel works, and give it back."""
        self.phase.value = DOWN
        draft = {"command": ["/bin/sleep", "1000"], "cwd": "/", "queue": "root.urgent", "priority": 1000}
        running = self.client.submit([draft]).jobs[0].key
        filler = self.disk / "filler"
        # Without a buffer: what is left in one is written when it is closed, and that fails.
        with filler.open("wb", buffering=0) as out, suppress(OSError):
            while out.write(b"x" * 2**16):
                pass
        time.sleep(3)
        refused = ""
        try:
            self.client.submit([{"command": ["/bin/true"], "cwd": "/"}])
        except (Refused, ServiceFailed) as error:
            refused = error.code
        self.client.cancel(running, now=True)
        ended = self.client.wait(running, timeout_s=30).state
        filler.unlink()
        said = f"full disk: a submission was refused ({refused or 'NOT REFUSED'}), a cancel worked ({ended})"
        self.notes.append(said)
        time.sleep(5)
        self.phase.value = QUIET

    # -- what is measured -----------------------------------------------------------------------------------------

    def sample(self, at_s: float) -> None:
        """Note how much it uses."""
        assert self.process is not None
        own = Path(f"/proc/{self.process.pid}")
        rss = next(
            int(line.split()[1]) for line in (own / "status").read_text().splitlines() if line.startswith("VmRSS")
        )
        used = size_of(self.disk / "state")
        self.samples.append(
            Sample(at_s, time.monotonic() - self.began, rss / 1024, len(list((own / "fd").iterdir())), used / 2**20)
        )

    def go(self) -> None:
        """All of it, in time: kills at equal distances, abuse half of the time, a full disk once."""
        began = time.monotonic()
        kill_every = max(self.seconds / 12, 20.0)
        kills, is_filled = 1, not self.is_disk_small
        while (at_s := time.monotonic() - began) < self.seconds:
            if at_s > kills * kill_every:
                self.kill()
                kills += 1
            elif not is_filled and at_s > 0.55 * self.seconds:
                self.fill_disk()
                is_filled = True
            self.phase.value = ABUSE if at_s % 30 > 15 else QUIET
            self.sample(at_s)
            time.sleep(1)

    def end(self) -> None:
        """Nothing that was started is left, whatever came of it."""
        with _quietly():
            for job in list(self.client.jobs(state=("waiting", "running"))):
                with _quietly():
                    self.client.cancel(job.key, now=True)
            time.sleep(1)
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def settle(self) -> None:
        """Nobody submits any more: what is open for long, on hold or too much is cancelled, and what is there ends."""
        client = self.client
        for job in list(client.jobs(state=("waiting", "running"))):
            with _quietly():
                if job.name in ("notebook", TOO_MUCH) or (job.state == "waiting" and client.job(job.key).held_by):
                    client.cancel(job.key)
        deadline = time.monotonic() + 120
        while left := list(client.jobs(state=("waiting", "running", "stopping"), limit=5)):
            if time.monotonic() > deadline:
                self.notes.append(f"NOT ENDED: {', '.join(f'{job.key} {job.name} {job.state}' for job in left)}")
                return
            time.sleep(0.5)


def _quietly() -> Any:
    return suppress(ClientError)


# -- all of it ----------------------------------------------------------------------------------------------------


def listening() -> socket.socket:
    there = socket.socket()
    there.bind(("127.0.0.1", 0))
    there.listen(64)
    return there


def url_of(listens: socket.socket) -> str:
    return f"http://127.0.0.1:{listens.getsockname()[1]}"


def free_url() -> str:
    with listening() as there:
        return url_of(there)


def _small_disk(course: Course) -> None:
    """A disk that can be filled, where that can be made."""
    course.disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "none", str(course.disk)]
    course.is_disk_small = os.geteuid() == 0 and not subprocess.run(words, check=False, capture_output=True).returncode
    if course.is_disk_small:
        course.stack.callback(subprocess.run, ["umount", "-l", str(course.disk)], check=False)
    else:
        course.notes.append("no small disk could be made (root can): it did not get full")


def soak(minutes: float, seed: int, *, is_time_judged: bool) -> bool:
    """Whether all went well; prints what was seen."""
    directory = Path(tempfile.mkdtemp(prefix="fairlead-soak-"))
    directory.chmod(0o755)
    (directory / "queues.yaml").write_text(QUEUES)
    ledger = directory / "ledger"
    ledger.touch()
    ledger.chmod(0o666)
    processes = get_context("fork")
    phase = processes.Value("i", QUIET)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        course = Course(directory, minutes * 60, free_url(), phase, stack)
        _small_disk(course)
        course.start()
        stack.callback(course.end)
        users = ACCOUNTS if os.geteuid() == 0 else (pwd.getpwuid(os.geteuid()).pw_name,) * len(ACCOUNTS)
        tokens = [course.client.create_token(name="soak", user=user).token for user in users]
        control = listening()
        stack.callback(control.close)
        standing = processes.Process(target=answer_alike, args=(control,), daemon=True)
        standing.start()
        stack.callback(standing.kill)
        pipes = []
        for act, given in (
            (be_users, (tokens, str(ledger), seed)),
            (read_on, (tokens[0], url_of(control))),
            (do_too_much, (tokens[-1],)),
        ):
            here, there = processes.Pipe(duplex=False)
            process = processes.Process(target=act, args=(course.url, *given, phase, there), daemon=True)
            process.start()
            pipes.append((process, here))
        print(
            f"{minutes:g} minutes, seed {seed}, {len(set(users))} accounts; load {os.getloadavg()[0]:.1f}", flush=True
        )
        course.go()
        phase.value = OVER
        (must_run, counts), found, refused = (here.recv() for _, here in pipes)
        for process, _ in pipes:
            process.join(60)
        course.settle()
        waiting = {job.key for job in course.client.jobs(state=("waiting", "running"))}
        slowest = max(course.recovered_s)
        starts = (
            slowest < LONGEST_START_S,
            f"{len(course.recovered_s)} starts, the slowest answered after {slowest:.1f} s",
        )
        in_time = [*waits(found), starts]
        faults = {kind: count for kind, count in counts.items() if "internal" in kind}
        judged = [
            *flat(course.samples, course.seconds),
            *ran_once(ledger, directory / "log", must_run, waiting),
            (not faults, f"faults of the service that users met: {faults or 'none'}"),
            (bool(refused), f"refused to the one who did too much: {dict(refused) or 'NOTHING'}"),
            *((note.upper() != note and "NOT " not in note, note) for note in course.notes),
        ]
        for bad, found_out in (("slow", in_time), ("BAD ", judged)):
            for good, said in found_out:
                print(f"{'ok  ' if good else bad} {said}")
        print(f"submitted: {', '.join(f'{kind} {count}' for kind, count in sorted(counts.items()))}")
        print(f"load now {os.getloadavg()[0]:.1f}")
    return all(good for good, _ in (*judged, *(in_time if is_time_judged else ())))


def main() -> None:
    """Soak once; exit status 1 if something is bad."""
    in_ci = bool(os.environ.get("CI"))
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0 if in_ci else 30.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    raise SystemExit(0 if soak(minutes, seed, is_time_judged=not in_ci) else 1)


if __name__ == "__main__":
    main()
