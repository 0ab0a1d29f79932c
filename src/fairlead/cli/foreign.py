"""Words of Slurm, PBS, Grid Engine, LSF, pueue and others that are typed here by habit, and what they are here.

Decides what is said beside "no such command" and "no such option". Never understands such a word as if it were one of
ours: what means nearly the same would surprise. Invariant: each word that is named here is one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

COMMANDS: Final = {
    "sbatch": "submit", "srun": "run", "salloc": "run --pty", "sattach": "attach", "squeue": "ls", "sacct": "ls -a",
    "scancel": "cancel", "scontrol": "show", "sinfo": "nodes", "sprio": "why", "sshare": "usage", "sstat": "show",
    "add": "submit", "status": "ls", "list": "ls", "ps": "ls", "jobs": "ls", "kill": "cancel", "stop": "cancel",
    "remove": "cancel", "rm": "cancel", "delete": "cancel", "log": "logs", "follow": "logs -f", "tail": "logs -f",
    "pause": "suspend", "start": "resume", "stash": "hold", "enqueue": "release", "restart": "rerun", "edit": "update",
    "env": "update --env", "send": "attach", "switch": "priority", "group": "queues", "parallel": "config apply",
    "qsub": "submit", "bsub": "submit", "qstat": "ls", "bjobs": "ls", "qdel": "cancel", "bkill": "cancel",
    "qhold": "hold", "qrls": "release", "qalter": "update", "bmod": "update", "bstop": "suspend", "bresume": "resume",
    "qacct": "ls -a", "bacct": "ls -a", "bhist": "show --history", "bpeek": "logs -f", "qhost": "nodes",
    "bhosts": "nodes", "pbsnodes": "nodes", "bqueues": "queues", "qlogin": "run --pty", "qrsh": "run --pty",
    "seff": "show", "tsp": "submit", "ts": "submit",
    "history": "show --history", "queue": "queues", "node": "nodes", "info": "show", "explain": "why",
}  # fmt: skip
"""What is typed elsewhere, and the command here that does most of it."""
_OF_LISTS: Final = {
    "--partition": "--queue", "-A": "--tag account=NAME",
    "--account": "--tag account=NAME", "--wckey": "--tag wckey=KEY", "--jobname": "--name", "-g": "--queue",
    "--group": "--queue",
}  # fmt: skip
_BY_STATE: Final = {"-t": "--state", "--states": "--state"}
_TO_SUBMIT: Final = {
    "--wrap": "-- sh -c 'LINE'", "--test-only": "`fairlead whatif submit`", "--clusters": "--context",
    "-M": "--context", "--export-file": "--env-file", "--group": "--queue", "--stashed": "--hold",
    "--delay": "--begin", "--follow": "`fairlead run`", "--working-directory": "--cwd", "-l": "--name",
}  # fmt: skip
"""What is said to `submit` and `run`, beside the options of `sbatch` that mean the same in a script."""
OPTIONS: Final = {
    "ls": _OF_LISTS | _BY_STATE | {
        "--format": "--columns", "-O": "--columns", "--Format": "--columns", "-S": "--sort", "--iterate": "--interval",
        "--noheader": "--no-header", "-h": "--no-header", "-r": "--parts", "--array": "--parts", "-l": "-o wide",
        "--long": "-o wide", "-j": "KEY KEY", "--jobs": "KEY KEY", "--priority": "--sort queue,-priority", "-P":
        "--sort queue,-priority", "--start": "`fairlead when KEY`", "-w": "`fairlead nodes --jobs`",
        "--nodelist": "`fairlead nodes --jobs`",
    },
    "cancel": _OF_LISTS | _BY_STATE | {
        "--signal": "`fairlead signal NAME KEY`", "--force": "--now", "-f": "--now", "-9": "--now",
        "--all": "--queue root", "-a": "--queue root",
    },
    "wait": _OF_LISTS, "hold": _OF_LISTS, "release": _OF_LISTS, "suspend": _OF_LISTS, "resume": _OF_LISTS,
    "requeue": _OF_LISTS, "signal": _OF_LISTS,
    "rerun": _OF_LISTS | _BY_STATE | {"--all-failed": "--me --state failed", "-a": "--me --state failed"},
    "logs": {"--lines": "--tail", "-n": "--tail", "-l": "--tail"},
}  # fmt: skip
"""Of each command: the option elsewhere, and what it is here."""
STATES: Final = {
    "pending": "waiting", "pd": "waiting", "queued": "waiting", "stashed": "waiting", "r": "running", "s": "suspended",
    "paused": "suspended", "completing": "stopping", "cg": "stopping", "completed": "succeeded", "cd": "succeeded",
    "success": "succeeded", "done": "succeeded", "f": "failed", "ca": "cancelled", "canceled": "cancelled",
    "killed": "cancelled", "timeout": "timed_out", "to": "timed_out", "preempted": "evicted", "pr": "evicted",
    "node_fail": "lost", "nf": "lost",
}  # fmt: skip


RESOURCES: Final = {"core": "cpu", "cores": "cpu", "cpus": "cpu", "mem": "memory", "ram": "memory", "gpus": "gpu"}


def about_command(name: str) -> str:
    """What is said of a command that there is not; empty: nothing is known of it."""
    ours = COMMANDS.get(name)
    return f"there is no command {name!r}; it is `fairlead {ours}` here" if ours else ""


def about_option(command: str, option: str, typed: Sequence[str]) -> str:
    """What is said of an option that a command does not have; empty: nothing is known of it. `typed`: its words."""
    if command in ("submit", "run") and option not in _TO_SUBMIT:
        return _of_sbatch(option, typed)
    ours = (_TO_SUBMIT if command in ("submit", "run") else OPTIONS.get(command, {})).get(option)
    return f"there is no option {option}; it is {ours} here" if ours else ""


def about_state(text: str) -> str:
    """What is said of a state that there is not; empty: nothing is known of it."""
    ours = STATES.get(text.lower())
    return f"{text!r} is {ours} here" if ours else ""


def about_time(text: str) -> str:
    """What is said of a duration in Slurm's form; empty: it is none."""
    from fairlead.cli import sbatch
    from fairlead.times import duration_exactly

    if not re.fullmatch(r"\d+-[\d:]+|\d+(:\d+)+", text):
        return ""
    try:
        words = sbatch.time_limit(text)
    except sbatch.Unlike:
        return ""
    return f"{text!r} is how Slurm says it; write {duration_exactly(int(words[1][:-1]) * 1000)}" if words else ""


def _of_sbatch(option: str, typed: Sequence[str]) -> str:
    from fairlead.cli import sbatch
    from fairlead.cli.submit import submit

    at = next((n for n, word in enumerate(typed) if word.partition("=")[0].startswith(option)), None)
    name = sbatch.full_name(option)
    if at is None or not name:
        return ""
    value = typed[at].partition("=")[2] or (typed[at][2:] if not option.startswith("--") else "")
    if not value and sbatch.takes_value(name) and at + 1 < len(typed) and not typed[at + 1].startswith("-"):
        value = typed[at + 1]
    options = sbatch.Options()
    options.add([f"--{name}={value}" if value else f"--{name}"], option)
    flags = frozenset(flag for param in submit.params for flag in param.opts)
    words = [word for _, found in options.translated(flags) for word in found]
    if options.unknown:
        return f"there is no option {option}; of `sbatch` it is not here: {options.unknown[0].split(': ', 2)[2]}"
    return f"there is no option {option}; it is {shlex.join(words)} here" if words else f"leave {option} out: it is so"
