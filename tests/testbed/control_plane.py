"""A real API server with etcd and fake nodes, for one test session, in one folder, gone afterwards.

Decides how the programs are started, where they listen and when they are ready. Knows nothing of the product.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from free_ports import free_port
from testbed.binaries import BedError, binary

READY_S = 240.0
STAGES = Path(__file__).parent / "stages.yaml"


@dataclass
class Started:
    """A program that was started, with what it prints."""

    process: subprocess.Popen[bytes]
    log: Path

    def stop(self, sign: int = signal.SIGTERM) -> None:
        """End it and wait."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(sign)
        try:
            self.process.wait(50)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def tail(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-3000:]


class ControlPlane:
    """etcd, kube-apiserver and, where wanted, kwok."""

    def __init__(self, folder: Path, *, kwok: bool = True, fast: bool = False, gates: Sequence[str] = ()) -> None:
        """`fast`: without the server's own throttling, for throughput runs. `gates`: alpha features that are on."""
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._kwok = kwok
        self._fast = fast
        self.gates = [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []
        """Options of the server and of kube-scheduler."""
        self._etcd_port, self._peer_port, self.port = free_port(), free_port(), free_port()
        self.running: dict[str, Started] = {}
        self._tokens = {"admin": ("admin", '"system:masters"')}

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.port}"

    # -- life -----------------------------------------------------------------------------------------------------

    def start(self) -> ControlPlane:
        """Start everything and wait until it is ready. Raises `BedError`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("sa.key", "sa.pub"):
            command = ["openssl", "genrsa", "-out", "sa.key", "2048"]
            if name == "sa.pub":
                command = ["openssl", "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"]
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        self.write_tokens()
        self.start_etcd()
        self.start_server()
        self.kubeconfig.write_text(self.kubeconfig_for("admin"))
        if self._kwok:
            self.start_kwok()
        return self

    def __enter__(self) -> ControlPlane:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop everything, the last started first."""
        for name in reversed(list(self.running)):
            self.running.pop(name).stop()

    def add_user(self, name: str, groups: str = "") -> str:
        """A user without rights who is known after the next start of the server; its kubeconfig as text."""
        self._tokens[name] = (name, groups)
        self.write_tokens()
        return self.kubeconfig_for(name)

    def write_tokens(self) -> None:
        """Who may speak to the server, by token."""
        lines = [f"token-{name},{user},{user},{groups}" for name, (user, groups) in self._tokens.items()]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")

    def kubeconfig_for(self, name: str) -> str:
        """A kubeconfig with this user's token."""
        return yaml.safe_dump({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bed",
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": name}}],
            "clusters": [{"name": "bed", "cluster": {
                "server": self.server,
                "certificate-authority": str(self.folder / "certs" / "apiserver.crt"),
            }}],
            "users": [{"name": name, "user": {"token": f"token-{name}"}}],
        })  # fmt: skip

    def start_etcd(self) -> None:
        """Start etcd on the data that is there."""
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        self._run("etcd", [
            str(binary("etcd")), "--data-dir", str(self.folder / "etcd"), "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}", "--unsafe-no-fsync", "--log-level", "error",
        ])  # fmt: skip
        self._until(lambda: _answers(f"{client}/health"), "etcd")

    def start_server(self) -> None:
        """Start the API server and wait until it is ready."""
        more = [] if not self._fast else [
            "--enable-priority-and-fairness=false", "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=2000",
        ]  # fmt: skip
        self._run("kube-apiserver", [
            str(binary("kube-apiserver")), f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--secure-port={self.port}", "--bind-address=127.0.0.1", f"--cert-dir={self.folder / 'certs'}",
            f"--service-account-key-file={self.folder / 'sa.pub'}",
            f"--service-account-signing-key-file={self.folder / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", *more, *self.gates,
        ])  # fmt: skip
        self._until(lambda: _answers(f"{self.server}/readyz", "token-admin"), "kube-apiserver")

    def start_kwok(self) -> None:
        """Start what plays the nodes: it runs pods, ends those that are deleted, and keeps nodes ready."""
        self._run("kwok", [
            str(binary("kwok")), "--kubeconfig", str(self.kubeconfig), "--config", str(STAGES),
            "--manage-all-nodes=true",
        ])  # fmt: skip

    def start_job_controller(self) -> None:
        """Start Kubernetes' own controller of jobs; `running` has it."""
        self._run("job-controller", [str(binary("job-controller"))], KUBECONFIG=str(self.kubeconfig))

    def kill(self, name: str) -> None:
        """End a program without a word."""
        self.running.pop(name).stop(signal.SIGKILL)

    def _run(self, name: str, command: Sequence[str], **environ: str) -> None:
        log = self.folder / f"{name}.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=out, cwd=self.folder, start_new_session=True,
                env={**os.environ, **environ},
            )  # fmt: skip
        self.running[name] = Started(process, log)

    def _until(self, ready: Any, name: str) -> None:
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            started = self.running[name]
            if started.process.poll() is not None:
                raise BedError(f"{name} ended with {started.process.returncode}:\n{started.tail()}")
            if ready():
                return
            time.sleep(0.1)
        raise BedError(f"{name} was not ready within {READY_S:.0f} s:\n{self.running[name].tail()}")

    # -- using it -------------------------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, manifest: str | Any = None, check: bool = True, user: str = "") -> str:
        """Run kubectl; `manifest` (text, or values to be written as one) is its standard input."""
        text = manifest if isinstance(manifest, str) or manifest is None else _as_text(manifest)
        kubeconfig = self.kubeconfig
        if user:
            kubeconfig = self.folder / f"kubeconfig-{user}"
            kubeconfig.write_text(self.kubeconfig_for(user))
        done = subprocess.run(
            [str(binary("kubectl")), *arguments],
            input=text,
            text=True,
            capture_output=True,
            env={**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(self.folder / "cache")},
            check=False,
            timeout=120,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout + ("" if check else done.stderr)

    def apply(self, manifest: str | Any) -> None:
        """Create or change what the manifest says. The server may take a moment until it knows a priority class that it
        has just been given.
        """
        end = time.monotonic() + READY_S
        while True:
            try:
                self.kubectl("apply", "--server-side", "-f", "-", manifest=manifest)
                return
            except AssertionError as refused:
                if "no PriorityClass with name" not in str(refused) or time.monotonic() > end:
                    raise
            time.sleep(0.1)

    def define(self, *definitions: Any) -> None:
        """Make custom resources, and wait until the server serves them."""
        self.apply(list(definitions))
        names = [each["metadata"]["name"] for each in definitions]
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            found = [self.get("crd", name).get("status", {}).get("conditions") or () for name in names]
            if all(any(c["type"] == "Established" and c["status"] == "True" for c in each) for each in found):
                return
            time.sleep(0.2)
        raise BedError(f"{names} were not served within {READY_S:.0f} s")

    def get(self, *arguments: str) -> Any:
        """What `kubectl get … -o json` says."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))


def _as_text(manifest: Any) -> str:
    if isinstance(manifest, list):
        return "---\n".join(yaml.safe_dump(item) for item in manifest)
    return str(yaml.safe_dump(manifest))


def _answers(url: str, token: str = "") -> bool:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    blind = ssl.create_default_context()
    blind.check_hostname = False
    blind.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, timeout=2, context=blind if url.startswith("https") else None) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def node_manifest(name: str, cpu: str = "4", memory: str = "16Gi", pods: int = 110, **more: Any) -> dict[str, Any]:
    """A node for kwok; `more`: `labels`, `taints`, `extra` resources."""
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), **more.get("extra", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **more.get("labels", {})},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": more["taints"]} if "taints" in more else {},
        "status": {"allocatable": room, "capacity": room},
    }


@contextlib.contextmanager
def control_plane(folder: Path, **how: Any) -> Iterator[ControlPlane]:
    """A control plane for the length of a `with`."""
    with ControlPlane(folder, **how) as plane:
        yield plane
