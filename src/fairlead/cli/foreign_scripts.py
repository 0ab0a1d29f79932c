"""Scripts for Slurm, PBS, Grid Engine and LSF: the variables that they read and the commands that they call.

Decides what is said of each, and which of them a job gets: where it was submitted, and no other. Programs that find one
of the others take it that all of that scheduler is there.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from fairlead.cli.foreign import COMMANDS

_USED = re.compile(r"\b(?:SLURM|PBS|SGE|LSB)_[A-Z][A-Z0-9_]*\b")
_READ = re.compile(r"\$\{?(JOB_ID|JOB_NAME|NSLOTS|NHOSTS|PE_HOSTFILE|TASK_ID|QUEUE|NCPUS|TMPDIR)\b")
"""Names that others may use for something else."""
_LINES = re.compile(r"^#(?:SBATCH|PBS|BSUB|\$)\s*-", re.MULTILINE)
_SET = re.compile(r"(?:^|[;\s])(?:export[ \t]+)?([A-Z][A-Z0-9_]*)=", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_SUBMITTED_IN: Final = frozenset({"SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "SGE_O_WORKDIR", "LS_SUBCWD"})
"""The directory in which it was submitted: without it `cd $PBS_O_WORKDIR` would go home."""
_HERE: Final = {
    "FAIRLEAD_KEY": "SLURM_JOB_ID SLURM_JOBID PBS_JOBID JOB_ID LSB_JOBID",
    "FAIRLEAD_NAME": "SLURM_JOB_NAME PBS_JOBNAME JOB_NAME LSB_JOBNAME",
    "FAIRLEAD_QUEUE": "SLURM_JOB_PARTITION PBS_QUEUE PBS_O_QUEUE QUEUE LSB_QUEUE",
    "FAIRLEAD_CPU": "SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE SLURM_JOB_CPUS_PER_NODE PBS_NP PBS_NUM_PPN NCPUS NSLOTS "
    "LSB_DJOB_NUMPROC LSB_MAX_NUM_PROCESSORS",
    "FAIRLEAD_MEMORY, in bytes": "SLURM_MEM_PER_NODE",
    "FAIRLEAD_ARRAY_KEY": "SLURM_ARRAY_JOB_ID PBS_ARRAY_ID",
    "FAIRLEAD_ARRAY_INDEX": "SLURM_ARRAY_TASK_ID PBS_ARRAYID PBS_ARRAY_INDEX SGE_TASK_ID TASK_ID LSB_JOBINDEX",
    "FAIRLEAD_ARRAY_COUNT": "SLURM_ARRAY_TASK_COUNT",
    "FAIRLEAD_ARRAY_FIRST": "SLURM_ARRAY_TASK_MIN SGE_TASK_FIRST",
    "FAIRLEAD_ARRAY_LAST": "SLURM_ARRAY_TASK_MAX SGE_TASK_LAST LSB_JOBINDEX_END",
    "FAIRLEAD_ARRAY_STEP": "SLURM_ARRAY_TASK_STEP SGE_TASK_STEPSIZE LSB_JOBINDEX_STEP",
    "one less than FAIRLEAD_ATTEMPT": "SLURM_RESTART_COUNT",
    "always 1 here": "SLURM_NNODES SLURM_JOB_NUM_NODES NHOSTS PBS_NUM_NODES",
    "what $(mktemp -d) makes": "TMPDIR SLURM_TMPDIR",
}
"""What each is here."""
_STARTERS: Final = frozenset({"srun", "jsrun", "aprun", "ibrun", "blaunch", "pbsdsh", "mpirun.lsf"})
"""What starts the tasks of a job there."""
_ABOUT_JOBS: Final = frozenset({
    "sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "seff", "sstat", "qsub", "qstat", "qdel", "qalter",
    "qhold", "qrls", "bsub", "bjobs", "bkill",
})  # fmt: skip
_CALLED = re.compile(
    r"(?:^|[;&|(`{]|\b(?:then|do|else|if|while|exec|time|nice)\b|=[\"']?)[ \t]*(?:\w+=\S*[ \t]+)*"
    rf"({'|'.join(map(re.escape, sorted(_STARTERS | _ABOUT_JOBS, reverse=True)))})(?=[\s\"')`]|$)",
    re.MULTILINE,
)
"""At the beginning of a command; also in one that a variable holds."""


def read_by(script: str, given: Container[str]) -> list[str]:
    """What is to be said of each that a script reads and does not set; `given`: variables that it gets."""
    text, ours = _code_of(script)
    names = [*_USED.findall(text), *(_READ.findall(text) if _LINES.search(script) else ())]
    unset = (n for n in dict.fromkeys(names) if n not in ours and n not in given and n not in _SUBMITTED_IN)
    return [_said(name) for name in unset]


def submitted_in(script: str, directory: str) -> dict[str, str]:
    """Variables that a script reads and does not set, for the directory in which it is submitted, with that."""
    text, ours = _code_of(script)
    read = (name for name in sorted(_SUBMITTED_IN - ours) if re.search(rf"\b{name}\b", text))
    return dict.fromkeys(read, directory)


def _code_of(script: str) -> tuple[str, set[str]]:
    """A script without its comments, and the variables that it sets."""
    text = _COMMENT.sub("", script)
    return text, set(_SET.findall(text))


def called_by(script: str) -> list[str]:
    """What is to be said of each command that a script calls, where this machine has none of that name."""
    import shutil

    names = dict.fromkeys(_CALLED.findall(_COMMENT.sub("", script)))
    return [_called(name) for name in names if shutil.which(name) is None]


def _called(name: str) -> str:
    if name in _STARTERS:
        return (
            f"{name}: leave it out, the job has its cores already; several tasks start with mpirun, or with & and wait"
        )
    if name == "scontrol":
        return "scontrol: `hostname` is the one node of a job; `fairlead show` says what is known of one"
    return f"{name} is `fairlead {COMMANDS[name]}` here"


def _said(name: str) -> str:
    found = next((ours for ours, theirs in _HERE.items() if name in theirs.split()), "")
    return f"{name} is {found}" if found else f"{name} is nothing here; --env {name}=VALUE sets it"
