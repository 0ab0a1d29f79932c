"""A cluster for one test: a real API server with fake nodes, manifests through kubectl, and our command as a process.

Decides how tests speak to the cluster: as a user would. Knows the product only as a command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from free_ports import free_port
from testbed.control_plane import ControlPlane, node_manifest

PATIENCE_S = 60.0
Manifest = dict[str, Any]


def pod(name: str, cpu: str = "1", memory: str = "64Mi", namespace: str = "default", **more: Any) -> Manifest:
    """A pod that sleeps; `more`: `labels`, `notes` (annotations), `priority` (class), and fields of its spec."""
    meta: dict[str, Any] = {"name": name, "namespace": namespace}
    if "labels" in more:
        meta["labels"] = more.pop("labels")
    if "notes" in more:
        meta["annotations"] = more.pop("notes")
    container = {
        "name": "sleep",
        "image": "busybox:stable",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        **more.pop("container", {}),
    }
    spec: dict[str, Any] = {"schedulerName": "fairlead", "containers": [container]}
    if "priority" in more:
        spec["priorityClassName"] = more.pop("priority")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec | more}


def priority_class(name: str, value: int, policy: str = "PreemptLowerPriority", **notes: str) -> Manifest:
    """A priority class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "annotations": notes},
        "value": value,
        "preemptionPolicy": policy,
    }


class Running:
    """Our command at work."""

    def __init__(self, command: list[str], log: Path, environ: Mapping[str, str], port: int) -> None:
        self.log, self.port = log, port
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environ})

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def says(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace")

    def status(self, path: str = "/readyz") -> int:
        """The HTTP status of a path; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def read(self, path: str) -> str:
        """The text at a path."""
        with urllib.request.urlopen(self.url + path, timeout=50) as answer:
            return str(answer.read().decode())

    def end(self, sign: int = signal.SIGTERM) -> int:
        """Tell it to stop and wait; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        try:
            return self.process.wait(50)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it did not end on signal {sign}:\n{self.says()[-3000:]}") from None


class Cluster:
    """What a test sees."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder
        self.schedulers: list[Running] = []
        self._count = 0

    # -- as a user ------------------------------------------------------------------------------------------------

    def apply(self, *manifests: Manifest) -> None:
        """Create or change objects, in this order."""
        self.plane.apply(list(manifests))

    def nodes(self, count: int = 1, cpu: str = "4", **more: Any) -> None:
        """Nodes `n0`, `n1`, … for kwok."""
        self.apply(*(node_manifest(f"n{number}", cpu=cpu, **more) for number in range(count)))

    def pods(self, namespace: str = "default") -> dict[str, Manifest]:
        """All pods of a namespace by name."""
        return {item["metadata"]["name"]: item for item in self.plane.get("pods", "-n", namespace)["items"]}

    def places(self, namespace: str = "default") -> dict[str, str]:
        """The nodes of all pods that have one and are not being deleted."""
        return {
            name: item["spec"]["nodeName"]
            for name, item in self.pods(namespace).items()
            if item["spec"].get("nodeName") and "deletionTimestamp" not in item["metadata"]
        }

    def condition(self, name: str, kind: str = "PodScheduled", namespace: str = "default") -> Manifest:
        """A condition of a pod; empty when there is none."""
        found = self.pods(namespace)[name].get("status", {}).get("conditions", ())
        return next((each for each in found if each["type"] == kind), {})

    def events(self, name: str, namespace: str = "default") -> list[Manifest]:
        """The events about a pod."""
        items = self.plane.get("events.events.k8s.io", "-n", namespace)["items"]
        return [item for item in items if item["regarding"].get("name") == name]

    def until(self, done: Callable[[], Any], what: str = "", patience_s: float = PATIENCE_S) -> Any:
        """Wait until `done()` gives something; fails with what there is."""
        end = time.monotonic() + patience_s
        while not (found := done()):
            if time.monotonic() > end:
                raise AssertionError(f"{what or 'it'} did not happen; there is:\n{self.story()}")
            time.sleep(0.2)
        return found

    def until_placed(self, *names: str, namespace: str = "default") -> dict[str, str]:
        """Wait until these pods have nodes."""
        return dict(
            self.until(
                lambda: (p := self.places(namespace)) if set(names) <= set(self.places(namespace)) else None,
                f"a node for {', '.join(names)}",
            )
        )

    def until_told(self, name: str, text: str, namespace: str = "default") -> str:
        """Wait until a pod is told why it waits, with this text in it."""

        def told() -> str:
            message = str(self.condition(name, namespace=namespace).get("message", ""))
            return message if text in message else ""

        return str(self.until(told, f"{text!r} in the condition of {name}"))

    def story(self) -> str:
        """What the cluster and the schedulers say, for a failure."""
        parts = [self.plane.kubectl("get", "pods", "-A", "-o", "wide", check=False)]
        parts += [running.says()[-3000:] for running in self.schedulers]
        return "\n".join(parts)

    # -- our command ----------------------------------------------------------------------------------------------

    def schedule(self, queues: str | Manifest | None = None, *options: str, ready: bool = True) -> Running:
        """Start the scheduler on this cluster; with a queue file if given."""
        self._count += 1
        port = free_port()
        command = [sys.executable, "-m", "fairlead.cli.main", "kubernetes", "run", "--listen", f"127.0.0.1:{port}"]
        command += ["--kubeconfig", str(self.plane.kubeconfig), *options]
        if queues is not None:
            file = self.folder / f"queues-{self._count}.yaml"
            file.write_text(queues if isinstance(queues, str) else yaml.safe_dump(queues))
            command += ["--queues", str(file)]
        running = Running(command, self.folder / f"fairlead-{self._count}.log", {}, port)
        self.schedulers.append(running)
        if ready:
            self.until(lambda: running.status() == 200 or running.process.poll() is not None, "the scheduler's start")
            assert running.process.poll() is None, running.says()
        return running

    def fairlead(self, running: Running, *arguments: str, status: int = 0) -> str:
        """Run the command line against the scheduler."""
        done = subprocess.run(
            [sys.executable, "-m", "fairlead.cli.main", *arguments],
            env={**os.environ, "FAIRLEAD_URL": running.url, "NO_COLOR": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def end(self) -> None:
        """Stop our processes."""
        for running in self.schedulers:
            if running.process.poll() is None:
                running.process.kill()
                running.process.wait()

    def clear(self) -> None:
        """Leave the cluster as it was at the beginning."""
        self.end()
        kubectl = self.plane.kubectl
        now = ("--wait=false", "--grace-period=0", "--force", "--ignore-not-found")
        kubectl("delete", "jobs", "--all", "-A", "--wait=false", "--cascade=background")
        kubectl("delete", "pods", "--all", "-A", *now)
        kubectl("delete", "poddisruptionbudgets,configmaps,leases,resourcequotas", "--all", "-n", "default", *now[:1])
        kubectl("delete", "nodes", "--all", "--wait=false")
        for item in self.plane.get("priorityclasses")["items"]:
            if not item["metadata"]["name"].startswith("system-"):
                kubectl("delete", "priorityclass", item["metadata"]["name"])
        for item in self.plane.get("events.events.k8s.io", "-A")["items"][:1]:
            del item
            kubectl("delete", "events", "--all", "-A", "--wait=false")
        self.until(
            lambda: not json.loads(kubectl("get", "pods,nodes", "-A", "-o", "json"))["items"], "an empty cluster"
        )
        # It forgets nodes that are made anew under the same name.
        self.plane.kill("kwok")
        self.plane.start_kwok()
