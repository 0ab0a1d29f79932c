"""kube-scheduler's own answer to the question where a pod could run: the nodes that pass all of its filters.

Decides how it is asked: an extender is told the nodes that are left after the filters, notes them, and lets none pass,
so that nothing is ever bound. Knows nothing of the product.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml
from testbed.binaries import binary
from testbed.control_plane import CLIENTS, ControlPlane

NAME = "kube"
"""The name of the scheduler that pods ask for."""


class KubeFilters:
    """kube-scheduler at work on a control plane. Use it as a context manager."""

    def __init__(self, plane: ControlPlane) -> None:
        self.passed: dict[str, list[str]] = {}
        """By identity of a pod: the nodes that passed when it was last looked at; none where the list is missing."""
        self._plane = plane

    def __enter__(self) -> KubeFilters:
        passed = self.passed

        class Extender(BaseHTTPRequestHandler):
            """Notes what is asked about."""

            def do_POST(self) -> None:
                told: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                names = told["NodeNames"] or []
                passed[told["Pod"]["metadata"]["uid"]] = names
                failed = dict.fromkeys(names, "noted")
                answer = json.dumps({"NodeNames": [], "FailedAndUnresolvableNodes": failed}).encode()
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
            "extenders": [{
                "urlPrefix": f"http://127.0.0.1:{self._server.server_port}", "filterVerb": "filter",
                "nodeCacheCapable": True,
            }],
        }  # fmt: skip
        file = self._plane.folder / "filters.yaml"
        file.write_text(yaml.safe_dump(config))
        with (self._plane.folder / "kube-scheduler.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(binary("kube-scheduler")), f"--config={file}", "--secure-port=0", "--authentication-skip-lookup"],
                stdout=log, stderr=log, env={**os.environ, **CLIENTS},
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(50)
        self._server.shutdown()
        self._server.server_close()
