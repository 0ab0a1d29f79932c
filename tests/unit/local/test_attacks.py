"""Jobs that attack what watches over them, where it has the same user and there are no control groups.

Each is tried in a process of its own, as the service is one.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from fairlead.local.supervisor import kernel

pytestmark = pytest.mark.real

SERVICE = """
import sys, time
from pathlib import Path
from fairlead.local import orphans
from fairlead.local.machine import Machine
from fairlead.local.means import Means
from fairlead.local.runs import RunSpec

assert orphans.take_in()
ends = {}
machine = Machine(Path(sys.argv[1]), on_end=lambda report: ends.update({report.key: report}), means=Means())
commands = dict(zip(sys.argv[2::2], sys.argv[3::2]))
for key, script in commands.items():
    machine.start(RunSpec(key=key, command=("/bin/sh", "-c", script), processes=50))
    until = time.monotonic() + 60
    while key != list(commands)[-1] and not (Path(sys.argv[1]) / key / "stdout.log").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
until = time.monotonic() + 60
while not all(key in ends for key in commands if not key.startswith("watched")):
    assert time.monotonic() < until, ends
    time.sleep(0.01)
for key in sorted(ends):
    print(key, "lost" if ends[key].lost else ends[key].exit_code, flush=True)
for key in set(commands) - set(ends):
    machine.stop(key, grace_ms=0)
while len(ends) < len(commands):
    assert time.monotonic() < until, ends
    time.sleep(0.01)
machine.close()
"""
LEFT = "for i in 1 2 3; do setsid env -i /bin/sleep {seconds} & done; (setsid env -i sh -c '/bin/sleep {seconds} &' &)"
"""Children that leave the session, the parent and the environment by which they could be found."""


def attacked(tmp_path: Path, **commands: str) -> list[str]:
    """What became of the jobs, of a service that lived through it."""
    words = [word for pair in commands.items() for word in pair]
    done = subprocess.run(
        [sys.executable, "-c", SERVICE, str(tmp_path), *words],
        capture_output=True, text=True, timeout=120, check=False, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def seconds() -> str:
    """How long something sleeps, by which it is found."""
    return f"9{uuid.uuid4().int % 10**8:08}"


def sleeping(how_long: str) -> list[int]:
    return [pid for pid, words in kernel.command_lines() if how_long.encode() in words]


def test_a_job_that_kills_its_supervisor_leaves_nothing(tmp_path: Path) -> None:
    """It is lost, and what it has hidden from its marker is ended before that is said: nothing is beside a retry."""
    mark = seconds()
    script = f"{LEFT.format(seconds=mark)}; sleep 0.3; kill -9 $PPID; sleep {mark}"
    assert attacked(tmp_path, a=script) == ["a lost"]
    assert sleeping(mark) == []


def test_a_job_that_forks_while_it_is_ended_loses(tmp_path: Path) -> None:
    """Without a supervisor, and out of its session: it is stopped to the last process before it is killed."""
    mark = seconds()
    one = f"os.setsid(); os.execv('/bin/sleep', ['sleep', '{mark}'])"
    again = f"import os\nfor i in range(40):\n    if os.fork() == 0: {one}\n"
    loop = f"while :; do setsid env -i /bin/sleep {mark} & sleep 0.002; done"
    script = f"setsid env -i sh -c '{loop}' & sleep 0.2; {sys.executable} -c \"{again}\"; kill -9 $PPID"
    assert attacked(tmp_path, a=script) == ["a lost"]
    assert sleeping(mark) == []


def test_a_job_that_kills_the_supervisors_of_others_does_not_hide_what_was_left(tmp_path: Path) -> None:
    """They have one user, so it can: those are lost and nothing of them runs on; the service and the rest go on."""
    mark, other = seconds(), seconds()
    victim = f"echo here; {LEFT.format(seconds=mark)}; sleep {mark}"
    # The brackets keep the pattern from being found in the command line of whoever has it as a word.
    its = f"supervisor/__main__[.]py {tmp_path}/victim"
    find = f"tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '{its}' && kill -9 ${{p#/proc/}}"
    kill = f"sleep 0.3; for p in /proc/[0-9]*; do {find}; done; exit 3"
    said = attacked(tmp_path, victim=victim, watched=f"echo here; sleep {other}", killer=kill)
    assert said == ["killer 3", "victim lost"]
    assert sleeping(mark) == sleeping(other) == []


def test_a_job_that_forks_twice_away_is_ended_with_it(tmp_path: Path) -> None:
    """Its supervisor lives: a daemon without a mark is found all the same."""
    mark = seconds()
    assert attacked(tmp_path, a=f"{LEFT.format(seconds=mark)}; sleep 0.2; exit 5") == ["a 5"]
    assert sleeping(mark) == []
