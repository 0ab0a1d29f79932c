"""Acts: what administrators did in a record, which a simulation of it does not repeat.

Decides which acts are counted, and in which words. Never what they mean for the work.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.core.model.events import (
    DrainNode,
    Event,
    LabelNode,
    MoveApplication,
    RemoveApplication,
    RemoveBudget,
    RemoveNode,
    RemoveQuota,
    RemoveWindow,
    ReportImages,
    ReserveAsk,
    SetAtOnce,
    SetBudget,
    SetPriority,
    SetQuota,
    SetWindow,
    UndrainNode,
)

ACTS: dict[type[Event], str] = {
    SetPriority: "priorities changed",
    SetAtOnce: "bounds of arrays changed",
    MoveApplication: "applications moved",
    ReserveAsk: "turns kept or given up",
    DrainNode: "nodes drained",
    UndrainNode: "nodes no longer drained",
    RemoveNode: "nodes removed",
    LabelNode: "taints of nodes (their labels are those of the end)",
    ReportImages: "images of nodes reported",
    RemoveApplication: "applications removed",
    SetQuota: "quotas set",
    RemoveQuota: "quotas removed",
    SetBudget: "budgets set",
    RemoveBudget: "budgets removed",
    SetWindow: "windows set",
    RemoveWindow: "windows removed",
}
"""What is not repeated, as it is counted in the notes."""


def not_repeated(acts: Mapping[str, int]) -> str:
    """How often each of them was done, as a note."""
    counted = ", ".join(f"{what} {count:,}" for what, count in sorted(acts.items()))
    return f"what administrators did is not repeated: {counted}"
