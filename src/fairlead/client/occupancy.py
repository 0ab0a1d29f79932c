"""The calls about who has what of a machine.

Decides paths and queries, as `client.routes` does for all else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.client.calls import call, listed
from fairlead.client.http import Call

if TYPE_CHECKING:
    from fairlead.wire import occupancy


class OccupancyRoutes:
    """They are methods of both clients."""

    @listed("occupancy.OccupantPage")
    def occupants(self, *, node: str | None = None) -> Call[occupancy.Occupant]:
        """Everybody's jobs that have room, on one node or all."""
        return call("GET", "/occupants", node=node)

    @listed("occupancy.GpuPage")
    def gpus(self) -> Call[occupancy.Gpu]:
        """The GPUs of the machine, and which job has each."""
        return call("GET", "/gpus")
