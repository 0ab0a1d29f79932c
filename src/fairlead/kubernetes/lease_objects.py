"""Leases, as the API server sends them: the right to run of one of several replicas.

Decides how a lease is read and written. Never interprets one (`kubernetes.lease`).
"""

from __future__ import annotations

from fairlead.kubernetes.objects import Part, Text, Thing


class LeaseSpec(Part, frozen=True):
    """Who holds a lease, and until when."""

    holder_identity: Text = None
    lease_duration_seconds: int | None = None
    acquire_time: Text = None
    renew_time: Text = None
    lease_transitions: int | None = None


class Lease(Thing, frozen=True):
    """A lease."""

    spec: LeaseSpec = LeaseSpec()
