"""kube-scheduler's own points for each node on which a pod could run, as its log tells them.

Decides how it is asked: one pod at a time, and whatever it would bind is refused by an extender, so that nothing runs
because of it. Knows nothing of the product.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml
from testbed.binaries import binary
from testbed.control_plane import CLIENTS, ControlPlane

NAME = "kube"
"""The name of the scheduler that pods ask for."""
LINE = re.compile(r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)')
Points = dict[str, dict[str, int]]
"""By plugin and node, with the weight of the plugin."""


class KubeScores:
    """kube-scheduler at work on a control plane. Use it as a context manager."""

    def __init__(self, plane: ControlPlane) -> None:
        self.refused: dict[str, str] = {}
        """By identity of a pod: the node that it would have been bound to."""
        self._plane = plane
        self._log = plane.folder / "scores.log"

    def __enter__(self) -> KubeScores:
        refused = self.refused

        class Extender(BaseHTTPRequestHandler):
            """Binds nothing."""

            def do_POST(self) -> None:
                told: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                refused[told["PodUID"]] = told["Node"]
                answer = json.dumps({"Error": "nothing is bound here"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Extender)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self._plane.kubeconfig), "qps": 10_000, "burst": 10_000},
            "profiles": [{
                "schedulerName": NAME, "plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}},
            }],
            "extenders": [{"urlPrefix": f"http://127.0.0.1:{self._server.server_port}", "bindVerb": "bind"}],
        }  # fmt: skip
        file = self._plane.folder / "scores.yaml"
        file.write_text(yaml.safe_dump(config))
        program = [str(binary("kube-scheduler")), f"--config={file}", "--secure-port=0"]
        program += ["--authentication-skip-lookup", "--vmodule=schedule_one=10"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(program, stdout=log, stderr=log, env={**os.environ, **CLIENTS})
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(50)
        self._server.shutdown()
        self._server.server_close()

    def points(self, pod: str) -> Points:
        """What its log says of a pod (`namespace/name`); nothing when less than two nodes were left to choose from."""
        found: Points = {}
        for named, plugin, node, score in LINE.findall(self._log.read_text()):
            if named == pod:
                found.setdefault(plugin, {})[node] = int(score)
        return found
