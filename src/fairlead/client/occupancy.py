"""The calls about who has what of a machine.

Decides paths and queries, as `client.routes` does for all else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.client.calls import call, listed, path_of, route
from fairlead.client.http import Call

if TYPE_CHECKING:
    from fairlead.wire import jobs, occupancy, unknown_runs


class OccupancyRoutes:
    """They are methods of both clients."""

    @listed("occupancy.OccupantPage")
    def occupants(self, *, node: str | None = None, limit: int | None = None) -> Call[occupancy.Occupant]:
        """Everybody's jobs that have room, on one node or all; at most `limit`."""
        return Call("GET", "/occupants", {"node": node}, most=limit)

    @listed("occupancy.GpuPage")
    def gpus(self) -> Call[occupancy.Gpu]:
        """The GPUs of the machine, and which job has each."""
        return call("GET", "/gpus")

    @listed("unknown_runs.UnknownRunPage")
    def unknown_runs(self) -> Call[unknown_runs.UnknownRun]:
        """Runs that go on and are not in the journal."""
        return call("GET", "/unknown-runs")

    @route
    def stop_unknown_run(self, run: str, *, grace_ms: int | None = None) -> Call[jobs.Done]:
        """End a run that is not in the journal."""
        body = {} if grace_ms is None else {"grace_ms": grace_ms}
        return call("POST", path_of("unknown-runs", run, "stop"), body, repeat=False)
