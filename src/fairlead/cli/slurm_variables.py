"""The variables that Slurm gives a job, in a script that reads them: what they are here.

Decides what is said of each. Never sets one: programs that find some of them take it that all of Slurm is there.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

_USED = re.compile(r"\bSLURM_[A-Z][A-Z0-9_]*\b")
_SET = re.compile(r"^[ \t]*(?:export[ \t]+)?(SLURM_\w+)=", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_HERE: Final = {
    "JOB_ID": "KEY",
    "JOBID": "KEY",
    "JOB_NAME": "NAME",
    "JOB_PARTITION": "QUEUE",
    "CPUS_PER_TASK": "CPU",
    "CPUS_ON_NODE": "CPU",
    "JOB_CPUS_PER_NODE": "CPU",
    "ARRAY_JOB_ID": "ARRAY_KEY",
    "ARRAY_TASK_ID": "ARRAY_INDEX",
    "ARRAY_TASK_COUNT": "ARRAY_COUNT",
    "ARRAY_TASK_MIN": "ARRAY_FIRST",
    "ARRAY_TASK_MAX": "ARRAY_LAST",
    "ARRAY_TASK_STEP": "ARRAY_STEP",
}


def read_by(script: str, given: Container[str]) -> list[str]:
    """What is to be said of each that a script reads and does not set; `given`: variables that it gets."""
    text = _COMMENT.sub("", script)
    ours = set(_SET.findall(text))
    return [_said(name) for name in dict.fromkeys(_USED.findall(text)) if name not in ours and name not in given]


def _said(name: str) -> str:
    rest = name.removeprefix("SLURM_")
    if rest in _HERE:
        return f"{name} is FAIRLEAD_{_HERE[rest]}"
    if rest == "RESTART_COUNT":
        return f"{name} is one less than FAIRLEAD_ATTEMPT"
    return f"{name} is nothing here; --env {name}=VALUE sets it"
