"""Jobs: what comes to the scheduler, and when.

Decides the form in which every workload (a trace, a journal, a generator) reaches the engine: submissions in order of
time, each task with the time that it will really run, which the scheduler is never told; and a queue file for one that
comes without: every queue that it names is a leaf like all others. Never schedules. Invariant: times are integers in
milliseconds from one origin, and never go back from one job to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec


@dataclass(frozen=True, slots=True)
class Task:
    """One ask and what becomes of it once it runs."""

    ask: AskSpec
    run_ms: int
    """How long it runs when nothing stops it."""
    exit_code: int = 0
    """How each of its runs ends; other than 0 it is tried again if its ask has retries left."""


@dataclass(frozen=True, slots=True)
class Job:
    """Tasks that come together at `at_ms`, in one application.

    An application that is known and has not ended gets them as further asks; `application` then only says which one.
    `gang`: all tasks start together or none does, by placeholders of their sizes.
    """

    at_ms: int
    application: ApplicationSpec
    tasks: tuple[Task, ...]
    gang: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Everything a simulation is fed with, beside the queue file: `jobs` is read once, in order."""

    name: str
    jobs: Iterable[Job]
    nodes: tuple[NodeSpec, ...] = ()
    """The machines that the source names; empty: it names none."""
    tasks: int | None = None
    """How many tasks there are, where that is known before."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the results should know; grows while `jobs` is read."""
    queues: str = ""
    """A queue file that suits it, for runs without one; empty: one queue `root.default`."""


class OutOfOrder(ValueError):
    """A job that comes before its predecessor."""


def in_order(jobs: Iterable[Job]) -> Iterator[Job]:
    """The jobs as they are; raises `OutOfOrder` where time goes back."""
    last_ms = None
    for job in jobs:
        if last_ms is not None and job.at_ms < last_ms:
            name = job.application.id
            raise OutOfOrder(
                f"job {name} comes at {job.at_ms} ms, after one at {last_ms} ms: sort the workload by time"
            )
        last_ms = job.at_ms
        yield job


# -- a queue file ------------------------------------------------------------------------------------------------

DEFAULT_QUEUE = "root.default"
Tree: TypeAlias = "dict[str, Tree]"
_BAD = re.compile(r"[^a-zA-Z0-9_:#/@-]")


def queue_name(text: str) -> str:
    """A name that a queue can have, made of any text."""
    return _BAD.sub("-", text.strip())[:64].lower() or "default"


def queue_path(text: str) -> str:
    """A whole path below root, made of any text; nothing gives `root.default`."""
    parts = [part for part in text.strip().split(".") if part.strip()]
    if parts and parts[0].lower() == "root":
        parts = parts[1:]
    return ".".join(["root", *map(queue_name, parts)]) if parts else DEFAULT_QUEUE


def queue_file(paths: Iterable[str], *, preemption: bool = True) -> str:
    """The YAML text with a leaf for each path, which begins with `root.`"""
    tree: Tree = {}
    for path in paths:
        level = tree
        for name in path.split(".")[1:]:
            level = level.setdefault(name, {})
    lines = ["partitions:", "  - name: default"]
    if not preemption:
        lines.append("    preemption: {enabled: false}")
    lines += ["    queues:", "      - name: root", '        submitacl: "*"']

    def write(level: Tree, indent: str) -> None:
        if level:
            lines.append(f"{indent}queues:")
        for name, below in level.items():
            lines.append(f'{indent}  - name: "{name}"')
            write(below, indent + "    ")

    write(tree, " " * 8)
    return "\n".join(lines) + "\n"
