"""The single writer: it owns the real clock, the journal and the scheduler, and drives one place (this machine, a
cluster).

Decides the order in which things happen, and that they are durable before anybody is told or anything is done. Never
decides who runs. Invariant: what a caller was told, and what was started or stopped, is in the journal.
"""

from __future__ import annotations

from fairlead.runtime.books import Books, Entry, Place, RecoveryError, ServiceStarted, ServiceStopped, Turn
from fairlead.runtime.process import Clock
from fairlead.runtime.refusals import InternalFault, Refusal, Unavailable
from fairlead.runtime.writer import Runtime

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
