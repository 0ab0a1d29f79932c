"""kube-scheduler at work on a control plane, with an extender of ours that binds nothing.

Decides how it is started and what it is told to ask the extender. Knows nothing of the product, nor what is asked for.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from testbed.binaries import binary
from testbed.control_plane import ControlPlane

NAME = "kube"
"""The name of the scheduler that pods ask for."""


class KubeScheduler:
    """Use it as a context manager."""

    def __init__(
        self,
        plane: ControlPlane,
        extender: Mapping[str, Any],
        answer: Callable[[Any], Mapping[str, Any]],
        options: tuple[str, ...] = (),
    ) -> None:
        """`extender`: what it may be asked, in the words of kube-scheduler's configuration; `answer`: what it says."""
        self._plane, self._extender, self._answer, self._options = plane, extender, answer, options

    @property
    def log(self) -> Path:
        """What it wrote, all of it."""
        return self._plane.folder / "kube-scheduler.log"

    def __enter__(self) -> Self:
        answer = self._answer

        class Extender(BaseHTTPRequestHandler):
            """Answers what it is asked."""

            def do_POST(self) -> None:
                told: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(answer(told)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

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
            "extenders": [{"urlPrefix": f"http://127.0.0.1:{self._server.server_port}", **self._extender}],
        }  # fmt: skip
        file = self._plane.folder / "kube-scheduler.yaml"
        file.write_text(yaml.safe_dump(config))
        program = [str(binary("kube-scheduler")), f"--config={file}", "--secure-port=0"]
        program += ["--authentication-skip-lookup", *self._plane.gates, *self._options]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(program, stdout=log, stderr=log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(50)
        self._server.shutdown()
        self._server.server_close()
