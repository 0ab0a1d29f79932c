"""The calls about windows: times in which nodes are kept free.

Decides paths, queries and bodies, as `client.routes` does for all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.client.calls import call, listed, path_of, route
from fairlead.client.http import Call

if TYPE_CHECKING:
    from fairlead.wire import jobs, windows


class WindowRoutes:
    """They are methods of both clients."""

    @route
    def set_window(self, name: str, draft: windows.WindowDraft | Mapping[str, Any]) -> Call[windows.Window]:
        """Keep nodes free for a time, or change when."""
        return call("PUT", path_of("windows", name), draft)

    @route
    def remove_window(self, name: str) -> Call[jobs.Done]:
        """Take a window back."""
        return call("DELETE", path_of("windows", name), repeat=False)

    @listed("windows.WindowPage")
    def windows(self) -> Call[windows.Window]:
        """The windows that are open or to come, the next one first."""
        return call("GET", "/windows")
