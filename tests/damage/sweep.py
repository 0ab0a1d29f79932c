"""One bit flipped at every 64th byte of the state of a service that was killed: found, or harmless, every time.

Makes a live state with a real service (a journal with snapshots, a log, claims, results, wishes, tokens, the machine's
resources), and hurts a copy of it in one place at a time. Harmless: what is read is what was written, and the journal
can be written on. Found: it is refused with a sentence. Anything else is a failure, with the command that repeats it.

    python tests/damage/sweep.py [--step 64] [--part 3/20] [--at FILE:BYTE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from testbed.nursery import Nursery
from testbed.unix_socket import Unix, wait_until_served

from fairlead.journal.format import JournalError
from fairlead.journal.store import Journal
from fairlead.local.supervisor import run_files
from fairlead.local.supervisor.sealed import Damaged
from fairlead.service.identity import Tokens, TokensError
from fairlead.service.resources_file import ResourcesFile

STEP = 64
HARMLESS, FOUND = "harmless", "found"
JOURNAL = ("", "-wal", ".lock")
_SUBMIT = [
    {"command": ["/bin/sleep", "600"], "name": "runs"},
    {"command": ["/bin/sh", "-c", "sleep 1; exit 3"], "name": "ends"},
    {"command": ["/bin/true"], "array": "1-3", "env": {"SECRET": "x" * 300}},
    {"command": ["/bin/true"], "hold": True, "queue": "root.default"},
]


# --- the live state --------------------------------------------------------------------------------------------------


def live_state(directory: Path) -> Path:
    """The state directory of a service that was killed; its supervisors are gone, too."""
    nursery, state, socket = Nursery(), directory / "state", directory / "s"
    try:
        for stops in (True, True, False):
            words = ("--state", str(state), "--socket", str(socket), "--no-tcp", "--resource", "cpu=9")
            process = nursery.start("up", *words, log=directory / "log")
            wait_until_served(
                socket, lambda started=process: None if started.poll() is None else (directory / "log").read_text()
            )
            _ask(socket, "/tokens", {"name": "sweep"})
            _ask(socket, "/jobs", {"jobs": _SUBMIT})
            while len(_ask(socket, "/jobs?state=running&name=runs")["jobs"]) == 0:
                time.sleep(0.02)
            time.sleep(0.3)
            process.terminate() if stops else process.kill()
            process.wait(50)
        time.sleep(1.5)
    finally:
        nursery.close()
        for pid in _processes_of(state):
            os.kill(pid, signal.SIGKILL)
    first = next(path.parent for path in sorted((state / "runs").glob("*/claim")))
    run_files.write(str(first), run_files.STOP, {"grace_ms": 30_000, "at_ms": 1})
    return state


def _ask(socket: Path, path: str, body: Any = None) -> Any:
    connection = Unix(socket)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", f"/api/v1{path}", body and json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    finally:
        connection.close()
    assert response.status < 300, answer
    return answer


def _processes_of(state: Path) -> list[int]:
    """The supervisors first: what they supervise cannot be killed without their noticing otherwise."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                words = (entry / "cmdline").read_bytes()
                if str(state).encode() in words:
                    found.insert(0, int(entry.name))
                elif f"={state}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


# --- what is read of it ----------------------------------------------------------------------------------------------


class Sweep:
    """The files of one state, and what each says while it is whole."""

    def __init__(self, state: Path, work: Path) -> None:
        self.state, self.work = state, work
        named = [f"journal.db{suffix}" for suffix in JOURNAL] + ["tokens.json", "resources.json"]
        self.files = [path for name in named if (path := state / name).is_file()]
        for name in ("claim", "result", "spec", "stop"):
            self.files += sorted(state.glob(f"runs/*/{name}"))[:2]
        self.whole = {path: self._said(path, state) for path in self.files if not path.name.startswith("journal")}
        self.confirmed = int((state / "journal.db.lock").read_bytes()[16:].split()[0])
        self.journal = self._journal_of(self._copy())

    def places(self, step: int, part: int, parts: int) -> Iterator[tuple[Path, int]]:
        """Every `step`th byte of every file, and of these each `parts`th from `part` on."""
        number = 0
        for path in self.files:
            for at in range(0, path.stat().st_size, step):
                if number % parts == part:
                    yield path, at
                number += 1

    def try_one(self, path: Path, at: int) -> str:
        """Flip a bit there in a copy: harmless or found. Raises AssertionError, or whatever should have been caught."""
        bit = 1 << random.Random(f"{path.name} {at}").randrange(8)
        content = bytearray(path.read_bytes())
        content[at] ^= bit
        if path.name.startswith("journal"):
            return self._journal_with(path.name, content)
        hurt = self.work / path.name
        hurt.write_bytes(content)
        try:
            said = self._said(hurt, self.work)
        except (TokensError, Damaged):
            return FOUND
        assert said == self.whole[path] or (path.name == "resources.json" and said == {}), "it says something else"
        return HARMLESS if said == self.whole[path] else FOUND

    @staticmethod
    def _said(path: Path, state: Path) -> Any:
        if path.name == "tokens.json":
            return Tokens(path).all()
        if path.name == "resources.json":
            return ResourcesFile(path).declared({})
        del state
        return run_files.read(str(path.parent), path.name)

    # --- the journal ---

    def _copy(self) -> Path:
        place = self.work / "copy"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for suffix in JOURNAL:
            if (path := self.state / f"journal.db{suffix}").is_file():
                shutil.copyfile(path, place / path.name)
        return place / "journal.db"

    @staticmethod
    def _journal_of(path: Path) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """The snapshots and the records."""
        with Journal(path) as journal:
            snapshots = {seq: journal.history.open_snapshot(seq).state for seq in journal.history.snapshot_seqs()}
            return snapshots, {record.seq: record.checksum for record in journal.history.records()}

    def _journal_with(self, name: str, content: bytes) -> str:
        path = self._copy()
        path.with_name(name).write_bytes(content)
        try:
            with Journal(path) as journal:
                recovery = journal.load_for_recovery()
                after = recovery.snapshot.seq if recovery.snapshot else 0
                read = {record.seq: record.checksum for record in recovery.records}
                last = journal.append(journal.last_at_ms, "note", b"{}")
                journal.commit()
        except JournalError:
            return FOUND
        snapshots, records = self.journal
        assert recovery.snapshot is None or recovery.snapshot.state == snapshots[after], "another state"
        # It was killed between a commit and its mark, perhaps: that commit nobody was told of.
        assert last > self.confirmed, "confirmed records are passed over"
        assert read == {seq: record for seq, record in records.items() if after < seq < last}, "other records"
        with Journal(path) as journal:
            assert journal.last_seq == last, "what was written on is not there"
        return HARMLESS


def folded(state: Path, directory: Path) -> Path:
    """The same journal after an orderly end: all of it in the database."""
    target = directory / "folded"
    target.mkdir()
    for suffix in JOURNAL:
        shutil.copyfile(state / f"journal.db{suffix}", target / f"journal.db{suffix}")
    Journal(target / "journal.db").close()
    assert not (target / "journal.db-wal").exists()
    return target


def sweep(state: Path, step: int, part: int, parts: int, say: Callable[[str], None] = print) -> list[str]:
    """Hurt every place of this part; the failures, in words."""
    failures: list[str] = []
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="fl-damage") as work:
        trial = Sweep(state, Path(work))
        for path, at in trial.places(step, part, parts):
            try:
                counts[path.name, trial.try_one(path, at)] += 1
            except Exception as fault:
                failures.append(f"{path.relative_to(state)}:{at}: {type(fault).__name__}: {fault}")
                counts[path.name, "FAILED"] += 1
    for (name, what), count in sorted(counts.items()):
        say(f"{name:16} {what:10} {count}")
    say(f"{sum(counts.values())} places, {len(failures)} neither found nor harmless")
    return failures


def main() -> int:
    """The exit status: 1 if something was neither found nor harmless."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=STEP, help="bytes from place to place")
    parser.add_argument("--part", default="0/1", help="K/N: of all places each Nth from the Kth on")
    parser.add_argument("--state", type=Path, help="a state that was kept, instead of a new one")
    parser.add_argument("--at", help="FILE:BYTE of that state alone")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    directory = Path(tempfile.mkdtemp(prefix="fl-damage-"))
    states = [given.state] if given.state else [live := live_state(directory), folded(live, directory)]
    if given.at:
        name, _, at = given.at.rpartition(":")
        with tempfile.TemporaryDirectory(prefix="fl-damage") as work:
            print(Sweep(states[0], Path(work)).try_one(states[0] / name, int(at)))
        return 0
    for state in states:
        print(f"{state.name}:")
        failures = sweep(state, given.step, part % parts, parts)
        for failure in failures:
            print(failure, file=sys.stderr)
        if failures:
            place = failures[0].split(": ")[0]
            print(f"to repeat: make damage DAMAGE_ARGS='--state {state} --at {place}'", file=sys.stderr)
            return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
