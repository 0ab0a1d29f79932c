"""Many random courses under each rule of preemption, in portions, each in a process of its own (`make courses`).

Decides which courses are taken in which order: a portion under each rule, then the next portion, so that one number
says how far all of them are. Never watches a law itself (`rank_courses` does). Every course that broke one is told
with the command that repeats it. `python tests/properties/courses.py --help`; status 0: no law was broken.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from properties.course_numbers import require_some
from properties.rank_courses import COURSE_S, rules_of_configuration

from fairlead.version import build

PROGRAM = Path(__file__).with_name("rank_courses.py")
PORTION = 100


@dataclass(frozen=True, slots=True)
class Portion:
    """Courses `first` to `last` - 1 under one rule."""

    rule: str
    first: int
    last: int


Take = Callable[[Portion], str]
"""What taking a portion says: `rank_courses`' lines, the last one being the count."""


def take(portion: Portion) -> str:
    """Take a portion in a process of its own; one that does not come back is said to have no end."""
    command = [sys.executable, str(PROGRAM), portion.rule, str(portion.first), str(portion.last)]
    paths = os.pathsep.join([str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")])
    most_s = COURSE_S * (portion.last - portion.first)
    try:
        ended = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=most_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{portion.rule} course {portion.first} or one behind it: rest: a call has no end\n1 of them broke a law"
    if ended.returncode in (0, 1) and ended.stdout:
        return ended.stdout
    last_words = " ".join(ended.stderr.split())[-500:]
    return f"{portion.rule} course {portion.first} or one behind it: crash: {last_words}\n1 of them died"


def portions(rules: Sequence[str], first: int, last: int, size: int = PORTION) -> list[Portion]:
    """All of them, a portion of each rule before the next."""
    starts = range(first, last, size)
    return [Portion(rule, start, min(start + size, last)) for start in starts for rule in rules]


def run(rules: Sequence[str], first: int, last: int, jobs: int = 1, taking: Take = take) -> int:
    """Take them and print what they broke, and now and then how far they are; how many broke a law."""
    failed: Counter[str] = Counter()
    began = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[tuple[Portion, Future[str]]] = [(p, pool.submit(taking, p)) for p in portions(rules, first, last)]
        done = first
        try:
            for portion, future in waiting:
                failed[portion.rule] += _tell(future.result())
                if portion.rule == rules[-1]:
                    done = portion.last
                    print(
                        f"-- {done} of {last}, {time.monotonic() - began:.0f} s, {failed.total()} broke a law",
                        flush=True,
                    )
        except KeyboardInterrupt:
            for _, future in waiting:
                future.cancel()
            print(f"stopped; to go on: make courses COURSES={last} FROM={done}")
            raise
    for rule in rules:
        print(f"{rule}: {last - first} courses ({first} to {last - 1}), {failed[rule]} broke a law")
    return failed.total()


def _tell(said: str) -> int:
    """Print what a portion found, each course with the command that repeats it; how many courses that were."""
    found = set()
    for line in said.splitlines()[:-1]:
        print(line, flush=True)
        words = line.split()
        number = words[2].rstrip(",:")
        if (words[0], number) not in found:
            found.add((words[0], number))
            name = PROGRAM.relative_to(PROGRAM.parents[2])
            print(f"   again: .venv/bin/python {name} {words[0]} {number} {int(number) + 1}", flush=True)
    return len(found)


def main(texts: Sequence[str] | None = None) -> int:
    """The command line; returns the status."""
    known = rules_of_configuration()
    arguments = argparse.ArgumentParser(description="Watch the laws of rank in many random courses.")
    arguments.add_argument("last", type=int, help="the number after that of the last course")
    arguments.add_argument("--first", type=int, default=0, help="the number of the first course (0)")
    arguments.add_argument("--rule", choices=known, action="append", help="only under this rule; may be repeated")
    arguments.add_argument("--jobs", type=int, default=1, help="so many processes at a time (1)")
    given = arguments.parse_args(texts)
    require_some(arguments, given.first, given.last, "courses")
    rules = given.rule or known
    print(f"courses {given.first} to {given.last - 1} under {', '.join(rules)}, {build()} build", flush=True)
    return int(run(rules, given.first, given.last, given.jobs) > 0)


if __name__ == "__main__":
    sys.exit(main())
