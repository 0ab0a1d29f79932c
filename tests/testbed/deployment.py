"""The project's own manifests: rendered as a user renders them, and installed on the test bed.

Decides how manifests become objects, and how a process gets the rights of a service account and no others.
"""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from testbed.binaries import binary
from testbed.control_plane import ControlPlane

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "fairlead"
NAMESPACE = "fairlead"
Manifest = dict[str, Any]
Name = tuple[str, str, str]


def kustomized(overlay: str) -> dict[Name, Manifest]:
    """What `kubectl kustomize` makes of an overlay."""
    return _by_name(_output("kubectl", "kustomize", str(DEPLOY / "kubernetes" / overlay)))


def templated(*settings: str) -> dict[Name, Manifest]:
    """What `helm template` makes of the chart."""
    # Built from its module it believes in an old Kubernetes unless it is told.
    version = ("--kube-version", "1.34.0", "--namespace", NAMESPACE)
    return _by_name(_output("helm", "template", NAMESPACE, str(CHART), *version, *settings))


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm; its status and what it printed."""
    return subprocess.run([str(binary("helm")), *arguments], capture_output=True, text=True, check=False, timeout=60)


def _output(program: str, *arguments: str) -> str:
    done = subprocess.run([str(binary(program)), *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def _by_name(text: str) -> dict[Name, Manifest]:
    found: dict[Name, Manifest] = {}
    for item in yaml.safe_load_all(text):
        meta = item["metadata"]
        name = item["kind"], meta.get("namespace", ""), meta["name"]
        assert name not in found, f"{name} is there twice"
        found[name] = item
    return found


def of_kinds(objects: Iterable[Manifest], *kinds: str) -> list[Manifest]:
    """The objects of these kinds."""
    return [item for item in objects if item["kind"] in kinds]


def reached_at(objects: Iterable[Manifest], url: str) -> list[Manifest]:
    """Webhook configurations that call a process on this host instead of a service."""
    changed = copy.deepcopy(list(objects))
    for item in changed:
        for webhook in item["webhooks"]:
            webhook["clientConfig"] = {"url": url + webhook["clientConfig"]["service"]["path"]}
    return changed


def kubeconfig_of(plane: ControlPlane, account: str, folder: Path) -> Path:
    """A kubeconfig with the token of a service account, as a pod of it would have."""
    token = plane.kubectl("create", "token", account, "-n", NAMESPACE).strip()
    config = yaml.safe_load(plane.kubeconfig_for("admin"))
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = NAMESPACE
    file = folder / f"kubeconfig-{account}"
    file.write_text(yaml.safe_dump(config))
    return file
