"""`kubectl fairlead`: the command line, asked of the scheduler of the cluster that kubectl speaks to.

Decides how that scheduler is reached: kubectl itself forwards a port to it, for as long as the command runs, with the
rights of whoever runs it. Never speaks to the API server. Invariant: the port is closed again whatever happens.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

SCHEDULER = "fairlead/fairlead"
VALUES = ("--kubeconfig", "--context", "--cluster", "--user", "--as")
"""Options that are kubectl's; they stand before the command."""
READY_S = 30
_FORWARDED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
_USAGE = f"""\
Usage: kubectl fairlead [--kubeconfig FILE] [--context NAME] [--scheduler NS/SERVICE] COMMAND ...

Ask the scheduler of a cluster. Commands are those of `fairlead`:

  kubectl fairlead why job/train          why it waits, and what would help
  kubectl fairlead when pod/web -n shop   when it starts
  kubectl fairlead whatif cancel pod/old  what would be otherwise
  kubectl fairlead top                    live: what runs, what waits and why
  kubectl fairlead queues                 and ls, show, nodes, usage, limits

The scheduler is the Service {SCHEDULER} unless --scheduler or FAIRLEAD_SCHEDULER names another.
A namespace that is not named is that of kubectl's context.
"""


class NoWay(Exception):
    """The scheduler cannot be reached; the text says why and what to do."""


def split(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Options of kubectl, the scheduler's Service, and the command with its own words. Raises `NoWay`."""
    ours: list[str] = []
    scheduler = os.environ.get("FAIRLEAD_SCHEDULER") or SCHEDULER
    left = list(words)
    while left and left[0].startswith("-"):
        option, sign, value = left.pop(0).partition("=")
        if option not in (*VALUES, "--scheduler"):
            raise NoWay(f"{option} is no option of `kubectl fairlead`; those of a command stand behind it")
        if not sign:
            if not left:
                raise NoWay(f"{option} needs a value")
            value = left.pop(0)
        if option == "--scheduler":
            scheduler = value
        else:
            ours.append(f"{option}={value}")
    if scheduler.count("/") != 1:
        raise NoWay(f"--scheduler: write NAMESPACE/SERVICE, not {scheduler!r}")
    return ours, scheduler, left


@contextmanager
def forwarded(kubectl: str, options: Sequence[str], scheduler: str) -> Iterator[int]:
    """A port of this machine that leads to the scheduler, for the length of a `with`. Raises `NoWay`."""
    namespace, _, service = scheduler.partition("/")
    command = [kubectl, *options, "-n", namespace, "port-forward", f"service/{service}", ":8080"]
    command.append(f"--pod-running-timeout={READY_S}s")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            found = next(filter(None, map(_FORWARDED.search, process.stdout)), None)
            if found is None:
                said = process.stderr.read().strip()
                raise NoWay(f"there is no way to {scheduler}: {said}; --scheduler NS/SERVICE names another scheduler")
            # It says a line for each connection, and stands still once nobody takes them.
            for said_by_it in (process.stdout, process.stderr):
                threading.Thread(target=_pass_over, args=(said_by_it,), daemon=True).start()
            yield int(found[1])
        finally:
            process.terminate()


def _pass_over(lines: IO[str]) -> None:
    with suppress(OSError, ValueError):  # Closed: the forwarding is over.
        for _ in lines:
            pass


def namespace_of(kubectl: str, options: Sequence[str]) -> str:
    """The namespace of kubectl's context; nothing where it has none."""
    path = "jsonpath={.contexts[0].context.namespace}"
    command = [kubectl, *options, "config", "view", "--minify", "-o", path]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main(words: Sequence[str]) -> int:
    """Run one command; its exit status."""
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_USAGE)
        return 0
    try:
        options, scheduler, command = split(words)
        if not command:
            raise NoWay("which command? `kubectl fairlead --help` lists some")
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise NoWay("kubectl is not found; it has to be in PATH")
        environ = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
        environ["FAIRLEAD_NAMESPACE"] = namespace_of(kubectl, options)
        with forwarded(kubectl, options, scheduler) as port:
            environ["FAIRLEAD_URL"] = f"http://127.0.0.1:{port}"
            words = [sys.executable, "-m", "fairlead.cli.main", *command]
            return subprocess.run(words, env=environ, check=False).returncode
    except NoWay as problem:
        sys.stderr.write(f"kubectl fairlead: {problem}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def run() -> None:
    """Entry point of `kubectl-fairlead`, which kubectl finds by its name."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
