"""Pods as an outsider sees them: every change that the API server tells, in its order.

Decides how it is listened to (kubectl), and that listening goes on after the server was away. Knows nothing of the
product, and judges nothing.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from testbed.binaries import binary
from testbed.control_plane import ControlPlane

Manifest = dict[str, Any]


class Listener:
    """Calls `take(type, pod)` for each change, from a thread of its own; `anew` when the changes begin anew."""

    def __init__(
        self, plane: ControlPlane, take: Callable[[str, Manifest], None], anew: Callable[[], None] | None = None
    ) -> None:
        self.failure: BaseException | None = None
        """What went wrong in `take`: nothing was heard from then on."""
        self._take, self._anew = take, anew
        self._command = [str(binary("kubectl")), f"--kubeconfig={plane.kubeconfig}", "get", "pods", "-A", "--watch"]
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no longer. Raises what went wrong."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()
        self._thread.join(10)
        if self.failure is not None:
            raise self.failure

    def _listen(self) -> None:
        while not self._stopped:
            with subprocess.Popen(
                [*self._command, "--output-watch-events", "-o", "json"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            ) as self._process:  # fmt: skip
                assert self._process.stdout is not None
                try:
                    for line in self._process.stdout:
                        event = json.loads(line)
                        self._take(event["type"], event["object"])
                except ValueError:
                    # Broken off in the middle of a line.
                    self._process.kill()
                except BaseException as e:
                    self.failure = e
                    self._process.kill()
                    return
            if self._anew is not None:
                self._anew()
            time.sleep(0.2)
