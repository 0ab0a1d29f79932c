"""The names of the attempts of a job: for the machine (runs) and for the scheduler (asks).

Decides nothing. Invariant: each name says its job and the number of its attempt, which counts from 1.
"""

from __future__ import annotations


def run_key(key: str, attempt: int) -> str:
    """The name of one attempt to run the job `key`; attempts count from 1."""
    return f"{key}-{attempt}"


def parse_run_key(run: str) -> tuple[str, int] | None:
    """The job and the attempt that a run's name stands for, or None if it is none of ours."""
    key, dash, attempt = run.partition("-")
    number, dot, index = key.partition(".")
    if dash and all(text.isascii() and text.isdecimal() for text in (number, attempt, *([index] if dot else ()))):
        return key, int(attempt)
    return None


def ask_key(key: str, attempt: int) -> str:
    """What the scheduler calls this attempt of a job."""
    return key if attempt <= 1 else f"{key}#{attempt}"


def job_of(ask: str) -> str:
    """The job that an ask (`KEY#2`, also with its application before it) is an attempt of."""
    return ask.rpartition("/")[2].partition("#")[0]


def attempt_of(ask: str) -> int:
    """Which attempt an ask is; 1 for the first."""
    number = ask.partition("#")[2]
    return int(number) if number.isascii() and number.isdecimal() else 1
