"""The single writer: it owns the real clock, the journal and the scheduler, and drives one place (this machine, a
cluster).

Decides the order in which things happen, and that they are durable before anybody is told or anything is done. Never
decides who runs. Invariant: what a caller was told, and what was started or stopped, is in the journal. A name is
imported when it is first used: a cluster has no journal, and begins without reading what writes one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.runtime.books import Books, Entry, Place, RecoveryError, ServiceStarted, ServiceStopped, Turn
    from fairlead.runtime.process import Clock
    from fairlead.runtime.refusals import InternalFault, Refusal, Unavailable
    from fairlead.runtime.writer import Runtime

_HOMES = {
    "Books": "books",
    "Clock": "process",
    "Entry": "books",
    "InternalFault": "refusals",
    "Place": "books",
    "RecoveryError": "books",
    "Refusal": "refusals",
    "Runtime": "writer",
    "ServiceStarted": "books",
    "ServiceStopped": "books",
    "Turn": "books",
    "Unavailable": "refusals",
}

__all__ = [
    "Books",
    "Clock",
    "Entry",
    "InternalFault",
    "Place",
    "RecoveryError",
    "Refusal",
    "Runtime",
    "ServiceStarted",
    "ServiceStopped",
    "Turn",
    "Unavailable",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairlead.runtime' has no attribute {name!r}")
    return getattr(import_module(f"fairlead.runtime.{_HOMES[name]}"), name)
