"""kube-scheduler's own answer to the question where a pod could run: the nodes that pass all of its filters.

Decides how it is asked: an extender is told the nodes that are left after the filters, notes them, and lets none pass,
so that nothing is ever bound. Knows nothing of the product.
"""

from __future__ import annotations

from typing import Any

from testbed.control_plane import ControlPlane
from testbed.kube_scheduler import KubeScheduler


class KubeFilters(KubeScheduler):
    """kube-scheduler at work on a control plane. Use it as a context manager."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(plane, {"filterVerb": "filter", "nodeCacheCapable": True}, self._noted)
        self.passed: dict[str, list[str]] = {}
        """By identity of a pod: the nodes that passed when it was last looked at; none where the list is missing."""

    def _noted(self, told: Any) -> dict[str, Any]:
        names = told["NodeNames"] or []
        self.passed[told["Pod"]["metadata"]["uid"]] = names
        return {"NodeNames": [], "FailedAndUnresolvableNodes": dict.fromkeys(names, "noted")}
