"""What happened, row by row, in the shape of a recorded expectation.

Decides which decisions become rows and what the rows hold. Never changes anything. Invariant: one row for each
allocation and one for each allocation that ended (asks that were withdrawn while they waited have no node and no row);
an eviction is listed when it is ordered, and its confirmation is not listed again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    Decision,
    DeclarationRejected,
    Evict,
    NodeRejected,
    Released,
)
from fairlead.core.model.events import Cause

Row = dict[str, Any]


class Record:
    """The rows of one scenario."""

    def __init__(self) -> None:
        self.allocated: list[Row] = []
        self.released: list[Row] = []
        self.accepted: list[str] = []
        self.apps_rejected: dict[str, str] = {}
        self.asks_rejected: dict[str, str] = {}
        self.nodes_rejected: dict[str, str] = {}
        self.configuration_rejected: str | None = None
        self.placed = 0
        """How many asks were allocated or replaced."""
        self.evictions: list[Row] = []
        self.declarations_rejected: dict[str, str] = {}

    def take(self, decisions: Iterable[Decision], step: int, leaving: Container[tuple[str, str]] = ()) -> None:
        """Add rows for `decisions`, which came in `step`; `leaving` (application, key) was told to stop before and is
        listed.
        """
        for d in decisions:
            match d:
                case Allocated():
                    self.placed += 1
                    self.allocated.append({"key": d.key, "app": d.application, "node": d.node, "step": step})
                case Evict():
                    self.placed += d.cause is Cause.PLACEHOLDER_REPLACED
                    self._add_released(d.application, d.key, d.cause, step)
                case Released():
                    told = d.node or d.cause is Cause.TIMEOUT
                    if told and (d.application, d.key) not in leaving:
                        self._add_released(d.application, d.key, d.cause, step)
                case _:
                    self._take_answer(d)

    def add_eviction(self, order: Evict, preemptor: str, step: int) -> None:
        """Add the row of work that was told to stop for the ask with the key `preemptor` (empty: for nobody)."""
        if order.cause is Cause.PREEMPTED_BY_SCHEDULER:
            row = {"key": order.key, "for": preemptor, "rule": order.rule, "node": order.node, "step": step}
            self.evictions.append(row | ({"violates": list(order.violates)} if order.violates else {}))

    def _take_answer(self, d: Decision) -> None:
        match d:
            case ApplicationAccepted():
                self.accepted.append(d.id)
            case ApplicationRejected():
                self.apps_rejected[d.id] = d.reason.sentence()
            case AskRejected():
                self.asks_rejected[d.key] = d.reason.sentence()
            case NodeRejected():
                self.nodes_rejected[d.id] = d.reason.sentence()
            case DeclarationRejected():
                self.declarations_rejected[d.name] = d.reason.sentence()
            case ConfigurationRejected():
                self.configuration_rejected = d.reason.sentence()

    def _add_released(self, app: str, key: str, cause: Cause, step: int) -> None:
        self.released.append({"key": key, "app": app, "by": str(cause), "step": step})

    def as_result(self) -> Row:
        """The rows in the order that an expectation has them; final states are added by the caller."""
        return {
            "allocated": self.allocated,
            "released": sorted(self.released, key=lambda r: (r["step"], r["key"], r["by"])),
            "apps_accepted": sorted(self.accepted),
            "apps_rejected": self.apps_rejected,
            "asks_rejected": self.asks_rejected,
            "nodes_rejected": self.nodes_rejected,
        }

    def additions(self) -> Row:
        """The rows that only the rules beyond YuniKorn's have."""
        return {"evicted": self.evictions, "declarations_rejected": self.declarations_rejected}
