"""What version 0.1 let through, tried on its tree and on this one: `make faults`.

Each scenario is what was found then, from outside: a service, what is done to it, and what may not be seen. It has to
be seen on version 0.1, taken from this repository's history, and must not be seen today. So a scenario that shows
nothing fails as well as a fault that is back.

    make faults                  all of it, in ten minutes
    make faults FAULTS=F9        only scenarios with F9 in their names
    make faults FROM=1234        one of them, another one with each number
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from faults.service import GONE, PATIENCE_S, Service, Version

ROOT = Path(__file__).resolve().parents[2]
OLD = "eb1099c"
"""The commit that was version 0.1."""
Scenario = Callable[[Service], str]
SCENARIOS: dict[str, Scenario] = {}


class NotHere(Exception):
    """This machine cannot show it; the text says why."""


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """What it is called in `docs/threats.md`, with its number there."""

    def keep(found: Scenario) -> Scenario:
        SCENARIOS[name] = found
        return found

    return keep


# Each returns what was seen of the fault, or nothing.


@scenario("F1 a flipped bit in the log")
def flipped_bit(service: Service) -> str:
    """Five jobs run; kill -9, one bit of the log, start."""
    service.start()
    keys = [service.shell(f"sleep {5000 + n}") for n in range(5)]
    service.until(lambda: all(service.state_of(key) == "running" for key in keys))
    service.kill()
    log = service.state / "journal.db-wal"
    content = bytearray(log.read_bytes())
    content[len(content) // 3] ^= 8
    log.write_bytes(content)
    served = service.start()
    time.sleep(2)
    running = sum(f"sleep {5000 + n}".encode() in _commands() for n in range(5))
    return f"{5 - running} of 5 running jobs were killed, and it serves" if served and running < 5 else ""


def _commands() -> bytes:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" "))
    return b"\n".join(found)


@scenario("F2 half-open connections")
def half_open(service: Service) -> str:
    """As many as there are descriptors; then root asks over the Unix socket."""
    service.start(descriptors=(256, 4096))
    service.open_tcp(600)
    time.sleep(1)
    try:
        return "" if service.ask("GET", "/info", wait_s=8)[0] == 200 else "root is refused over the Unix socket"
    except GONE as gone:
        return f"root is not answered over the Unix socket: {type(gone).__name__}"


@scenario("F3 no descriptor left")
def no_descriptors(service: Service) -> str:
    """More jobs run than it has descriptors to watch them with; all end."""
    service.start(descriptors=(90, 90))
    service.submit(*[{"command": ["/bin/sleep", "8.25"], "resources": service.version.cores(0.1)}] * 120)
    service.until(lambda: b"sleep 8.25" in _commands())
    last, live = time.monotonic(), list[int]()
    # What could not be started for want of descriptors is tried again, every 30 s at last.
    while time.monotonic() - last < 40:
        last = time.monotonic() if b"sleep 8.25" in _commands() else last
        time.sleep(0.5)

    def settled() -> bool:
        with contextlib.suppress(*GONE):
            live[:] = [service.ask("GET", f"/{service.version.jobs}?state=running&limit=1000", wait_s=5)[1]["total"]]
        return live == [0]

    return "" if service.until(settled) else f"{live} jobs that have ended are said to run"


@scenario("F4 a stop that fails once")
def dropped_stop(service: Service) -> str:
    """No inode is left when a job is cancelled; then there are some again."""
    with disk(service.state, "nr_inodes=600"):
        service.start()
        key = service.shell("sleep 6000")
        service.until(lambda: b"sleep 6000" in _commands())
        filled = service.state / "filled"
        filled.mkdir()
        with contextlib.suppress(OSError):
            for number in range(1000):
                (filled / str(number)).touch()
        status = service.cancel(key)
        time.sleep(2)
        shutil.rmtree(filled)
        if service.until(lambda: b"sleep 6000" not in _commands(), 15):
            return ""
        return f"the cancel was answered with {status}, and the job still runs"


@contextlib.contextmanager
def disk(place: Path, more: str = "size=64m") -> Iterator[None]:
    """A disk of its own there, as long as it lasts. Raises `NotHere`."""
    place.mkdir(mode=0o755)
    if os.geteuid() != 0 or _mount("-t", "tmpfs", "-o", f"mode=755,{more}", "none", str(place)):
        raise NotHere("it needs a disk of its own, and this machine mounts none")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def _mount(*words: str) -> int:
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode


@scenario("F5 output without a bound")
def endless_output(service: Service) -> str:
    """A job writes 150 MiB."""
    service.start()
    key = service.shell("yes | head -c 157286400")
    service.until(lambda: service.state_of(key) == "succeeded", 120)
    size = max(file.stat().st_size for file in (service.state / "runs").rglob("stdout*"))
    return f"{size >> 20} MiB of its output are kept" if size > 110 * 2**20 else ""


@scenario("F5 environments of one user")
def environments(service: Service) -> str:
    """One user who is no administrator brings 40 MiB of them."""
    if os.geteuid() != 0:
        raise NotHere("it needs root, to ask as another user")
    service.directory.chmod(0o755)
    service.start()
    job = {"command": ["/bin/true"], "env": {"X": "x" * 100_000}, "resources": service.version.cores(64.0)}
    os.seteuid(1)
    try:
        found = [service.submit(*[job] * 40)[0] for _ in range(10)]
    finally:
        os.seteuid(0)
    return "" if 429 in found else f"{found.count(201) * 40} jobs with 100 KB each are taken in"


@scenario("F5 one request with many jobs")
def many_jobs(service: Service) -> str:
    """Others read meanwhile."""
    service.start()
    job = {"command": ["/bin/true"], "resources": service.version.cores(1000.0)}
    longest, took = service.meanwhile(lambda: service.submit(*[job] * 4000))
    return f"a read waited for {longest:.1f} of {took:.1f} s" if longest > took / 3 else ""


@scenario("F6 a clock that was ahead")
def clock(service: Service) -> str:
    """By ten years, and is right now: ten seconds pass."""
    done = service.version.python("""
try:
    from fairlead.runtime.process import Clock
except ImportError:
    from fairlead.runtime.clock import Clock
now = [1_000_000]
clock = Clock(10 * 365 * 86_400_000, wall=lambda: now[0], steady=lambda: now[0])
before = clock.now()
for _ in range(10_000):
    now[0] += 1
    clock.now()
for _ in range(100):
    now[0] += 100
    after = clock.now()
print(after - before)
""")
    passed = int(done.stdout)
    return f"20 s took {passed / 1000:.1f} s for its timers" if passed < 20_000 else ""


@scenario("F7 environments in the journal")
def kept_environment(service: Service) -> str:
    """A job with a secret in its environment ended; nothing is to be kept."""
    secret = "hunter-2-in-the-journal"
    service.start(short=True)
    service.shell("true", env={"SECRET": secret})
    for _ in range(2):
        time.sleep(3)
        service.kill(15)
        service.start(short=True)

    def there() -> bool:
        return any(secret.encode() in file.read_bytes() for file in service.state.rglob("*") if file.is_file())

    return "it is in the journal for good" if not service.until(lambda: not there(), 20) else ""


@scenario("F8 a damaged file of one run")
def damaged_run(service: Service) -> str:
    """Its claim is not what was written."""
    service.start()
    service.shell("sleep 7000")
    service.until(lambda: any((service.state / "runs").rglob("claim*")))
    service.kill()
    for pid in service.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    for claim in (service.state / "runs").rglob("claim*"):
        claim.write_text("{}")
    return "" if service.start() else "the whole service does not start any more"


@scenario("F9 a token without its account")
def orphaned_token(service: Service) -> str:
    """It was ada's, whose account is gone; another user has the number now."""
    service.start()
    service.kill(15)
    made = service.version.python(
        """
import sys
from pathlib import Path
try:
    from fairlead.service.tokens import Tokens
except ImportError:
    from fairlead.service.identity import Tokens
print(Tokens(Path(sys.argv[1])).create(name="", user="ada", uid=1)[0])
""",
        str(service.state / "tokens.json"),
    )
    service.start()
    asked = f"GET /api/v1/{service.version.jobs} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    with socket.create_connection(("127.0.0.1", service.port), PATIENCE_S) as one:
        one.sendall(f"{asked}Authorization: Bearer {made.stdout.strip()}\r\n\r\n".encode())
        status = one.makefile("rb").readline().split()[1]
    return "it is served" if status == b"200" else ""


@scenario("F10 a job that kills its supervisor")
def killed_supervisor(service: Service) -> str:
    """With a child that has another session and a clean environment."""
    service.start(control_groups=False)
    service.shell("setsid env -i /bin/sleep 8123 & sleep 1; kill -9 $PPID; sleep 8124")
    service.until(lambda: b"sleep 8123" in _commands())
    if service.until(lambda: b"sleep 8123" not in _commands(), 15):
        return ""
    subprocess.run(["pkill", "-9", "-xf", "/bin/sleep 8123"], check=False)
    return "its child goes on for good"


@scenario("F10 a state directory of another user")
def planted_state(service: Service) -> str:
    """Who could have put tokens in."""
    if os.geteuid() != 0:
        raise NotHere("it needs root, for whom another user is none to be believed")
    service.state.mkdir()
    os.chown(service.state, 1, 1)
    return "root believes what is in it" if service.start() else ""


@scenario("F10 names that show as others")
def shown_names(service: Service) -> str:
    """A control character of eight bits, and a mark that turns the direction of writing."""
    service.start()
    taken = [service.submit({"command": ["/bin/true"], "name": name})[0] for name in ("a\x9b2Jb", "a\u202eb")]
    return "such names are taken" if 201 in taken else ""


@scenario("F10 a body that is too large")
def large_body(service: Service) -> str:
    """100 MB, as any client sends it."""
    service.start()
    word = service.version.jobs
    try:
        status, _ = service.ask("POST", f"/{word}", {word: [{"command": ["x" * 100_000_000]}]})
    except GONE as gone:
        return f"it is cut off without a word: {type(gone).__name__}"
    return "" if status == 413 else f"it is answered with {status}"


# -- on both ----------------------------------------------------------------------------------------------------


def old_tree() -> Path:
    """Version 0.1, from this repository's history."""
    tree = ROOT / "build" / "version-0.1"
    if not (tree / "src").exists():
        packed = subprocess.run(["git", "archive", OLD, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            # By name: the first versions of Python 3.11 have no such filter.
            files.extraction_filter = getattr(tarfile, "data_filter", None)
            files.extractall(tree)
    return tree


def seen(version: Version, tried: Scenario) -> str:
    """What was seen of the fault in this version; empty: nothing."""
    directory = Path(tempfile.mkdtemp(prefix="fl-fault-", dir="/tmp"))
    service = Service(version, directory)
    try:
        return tried(service)
    finally:
        service.end()
        shutil.rmtree(directory, ignore_errors=True)


def main() -> int:
    """1 if a scenario shows nothing on version 0.1, or something today; 2 if there is none of that name."""
    asked = argparse.ArgumentParser(description="What version 0.1 let through, tried on its tree and on this one.")
    asked.add_argument("part", nargs="?", default="", help="only scenarios with this in their names")
    asked.add_argument("--one", type=int, help="one of those alone: that of this number, counted round and round")
    given = asked.parse_args()
    wanted = [name for name in SCENARIOS if given.part in name]
    if not wanted:
        print(f"no scenario has {given.part!r} in its name; there are: {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    if given.one is not None:
        wanted = [wanted[given.one % len(wanted)]]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    old = Version("0.1", old_tree(), "works", keeps_short=False)
    new = Version("today", ROOT, "jobs", keeps_short=True)
    good = True
    for name in wanted:
        tried = SCENARIOS[name]
        try:
            then, now = seen(old, tried), seen(new, tried)
        except NotHere as why:
            print(f"--   {name}: not tried: {why}", flush=True)
            continue
        ok = bool(then) and not now
        good = good and ok
        print(f"{'ok  ' if ok else 'BAD '} {name}: 0.1: {then or 'nothing seen'}; today: {now or 'held'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
