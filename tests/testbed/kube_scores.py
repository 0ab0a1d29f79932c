"""kube-scheduler's own points for each node on which a pod could run, as its log tells them.

Decides how it is asked: one pod at a time, and whatever it would bind is refused by an extender, so that nothing runs
because of it. Knows nothing of the product.
"""

from __future__ import annotations

import re
from typing import Any

from testbed.control_plane import ControlPlane
from testbed.kube_scheduler import KubeScheduler

LINE = re.compile(r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)')
Points = dict[str, dict[str, int]]
"""By plugin and node, with the weight of the plugin."""


class KubeScores(KubeScheduler):
    """kube-scheduler at work on a control plane. Use it as a context manager."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(plane, {"bindVerb": "bind"}, self._refused, ("--vmodule=schedule_one=10",))
        self.refused: dict[str, str] = {}
        """By identity of a pod: the node that it would have been bound to."""

    def _refused(self, told: Any) -> dict[str, Any]:
        self.refused[told["PodUID"]] = told["Node"]
        return {"Error": "nothing is bound here"}

    def points(self, pod: str) -> Points:
        """What its log says of a pod (`namespace/name`); nothing when less than two nodes were left to choose from."""
        found: Points = {}
        for named, plugin, node, score in LINE.findall(self.log.read_text()):
            if named == pod:
                found.setdefault(plugin, {})[node] = int(score)
        return found
