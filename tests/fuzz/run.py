"""Fuzz one target, or all of them: `make fuzz TARGET=api SECONDS=60`.

With atheris (`requirements-fuzz.lock`; there is a wheel for some versions of Python alone) what is new in an input is
seen by the branches that it takes; without it the inputs of the corpus are changed at random. An input may take 10 s on
a processor and 2 GiB (`bounds`). What is found is kept in build/fuzz/found, and fails: make it a test, or a file of the
corpus.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fuzz.bounds import STANDSTILL_S, TooLong, bounded
from fuzz.mutations import CORPUS, MOST_BYTES, corpus, mutated

BUILD = Path("build/fuzz")
MEMORY_MB = 2048


def with_atheris(target: str, seconds: int) -> None:
    """Go on until the time is over, or something is found; this process ends then."""
    import atheris

    with atheris.instrument_imports(include=["fairlead"], enable_loader_override=False):
        from fuzz.targets import TARGETS
    mine, found = BUILD / "corpus" / target, BUILD / "found"
    mine.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    words = [f"-max_total_time={seconds}", f"-timeout={STANDSTILL_S}", f"-rss_limit_mb={MEMORY_MB}"]
    words += [f"-max_len={MOST_BYTES}", f"-artifact_prefix={found}/{target}-", "-print_final_stats=1", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *words, str(mine), str(CORPUS / target)], bounded(TARGETS[target]))
    atheris.Fuzz()


def without(target: str, seconds: int, first: int) -> int:
    """The same by mutations from `first` on; how many inputs that were."""
    from fuzz.targets import TARGETS

    read = bounded(TARGETS[target], standstill_s=STANDSTILL_S)
    inputs, end, number = corpus(target), time.monotonic() + seconds, first
    while time.monotonic() < end:
        data = mutated(inputs, number)
        try:
            read(data)
        except (Exception, TooLong):
            (BUILD / "found").mkdir(parents=True, exist_ok=True)
            kept = BUILD / "found" / f"{target}-{number}"
            kept.write_bytes(data)
            print(f"{target}: input {number} is kept as {kept}", file=sys.stderr)
            raise
        number += 1
    return number - first


def main() -> int:
    """Fuzz each target that is meant, in a process of its own (one for each processor); 1 if something was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="In this process.")
    given = parser.parse_args()
    names = sorted(path.name for path in CORPUS.iterdir())
    if given.target and given.target not in names:
        print(f"there is no target {given.target!r}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    if not given.here:
        meant = [name for name in names if given.target in ("", name)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return max(pool.map(lambda name: _apart(name, given.seconds, given.first), meant))
    try:
        with_atheris(given.target, given.seconds)
    except ModuleNotFoundError as missing:
        if missing.name != "atheris":
            raise
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB * 2**20, resource.RLIM_INFINITY))
        count = without(given.target, given.seconds, given.first)
        print(f"{given.target}: {count} inputs without atheris, nothing found")
    return 0


def _apart(target: str, seconds: int, first: int) -> int:
    words = ["--here", "--target", target, "--seconds", str(seconds), "--first", str(first)]
    command = [sys.executable, "-m", "fuzz.run", *words]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(f"== {target}, {seconds} s\n{done.stdout.decode(errors='replace')}", flush=True)
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
