"""Runs that go on and are not in the journal: it was damaged and records were given up, or it is an older copy.

Decides what is known of them, and what room they hold. Never ends one: a person does. Invariant: the room of an unknown
run is nobody else's until it is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.resources import Resources
from fairlead.local.runs import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRun:
    """What its own files say of it."""

    run: str
    pid: int | None
    started_at_ms: int | None
    uid: int | None
    """None: it runs as the service itself, or that is not known."""
    command: tuple[str, ...]
    resources: Resources
    gpus: tuple[int, ...]


class UnknownRuns:
    """Those of one machine, in the order in which they were found."""

    def __init__(self) -> None:
        self._runs: dict[str, UnknownRun] = {}
        self.were_found = False
        """There was one, since this process began."""

    def __iter__(self) -> Iterator[UnknownRun]:
        return iter(self._runs.values())

    def __contains__(self, run: object) -> bool:
        return run in self._runs

    def add(self, report: RunReport, spec: Mapping[str, Any] | None) -> None:
        """It runs. `spec`: what it was told to execute; None: that is not known."""
        told = spec["run"] if spec is not None else {}
        self.were_found = True
        self._runs[report.key] = UnknownRun(
            run=report.key,
            pid=report.pid,
            started_at_ms=report.started_at_ms,
            uid=told.get("uid"),
            command=tuple(told.get("command", ())),
            resources=Resources(told.get("amounts", {"gpu": len(report.gpus)})),
            gpus=report.gpus,
        )

    def discard(self, run: str) -> None:
        """It is over, or known now."""
        self._runs.pop(run, None)

    def leave(self, capacity: Resources) -> Resources:
        """What they leave of this, of each amount 0 at least."""
        held = [each.resources for each in self]
        return Resources({name: max(0, n - sum(each[name] for each in held)) for name, n in capacity.items})
