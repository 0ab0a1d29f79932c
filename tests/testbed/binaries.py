"""The programs of a real Kubernetes control plane, built here from their modules, without containers.

Decides where they are kept, when they are built, and which version of Kubernetes is meant (`FAIRLEAD_BED_KUBERNETES`).
They never enter the checkout: the cache is a folder of the user's (`FAIRLEAD_BED_CACHE`, else
`~/.cache/fairlead-testbed`), one for each version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

GO = "1.21"
"""The oldest Go that does: it gets by itself the one that a module asks for."""
HERE = Path(__file__).parent
OTHERS = tuple(sorted(folder.name.removeprefix("kubernetes-") for folder in HERE.glob("kubernetes-*")))
"""Versions beside the usual one, each with a module of its own; clients and controllers stay the usual ones."""
VERSION = os.environ.get("FAIRLEAD_BED_KUBERNETES", "")
"""Empty: the usual one."""
MINOR = int((VERSION or "1.34").partition(".")[2])
"""Its second number; the usual one is that of `kubernetes/go.mod`."""
USUAL = "kubernetes"
"""The module of the usual version, and of all clients and controllers: together they compile what they share once."""
OF_VERSION = f"kubernetes-{VERSION}" if VERSION else USUAL
PACKAGES = {
    "kube-apiserver": (OF_VERSION, "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-scheduler": (OF_VERSION, "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": (USUAL, "k8s.io/kubernetes/cmd/kubectl"),
    "job-controller": (USUAL, "./job-controller"),
    "kwok": (USUAL, "sigs.k8s.io/kwok/cmd/kwok"),
    "etcd": (USUAL, "./etcd"),
    "helm": (USUAL, "helm.sh/helm/v3/cmd/helm"),
}
"""By name: the module, and the package in it."""


class BedError(RuntimeError):
    """The test bed cannot be made; the text says what is missing."""


def cache() -> Path:
    """The folder with the built programs."""
    home = os.environ.get("FAIRLEAD_BED_CACHE")
    return Path(home) if home else Path.home() / ".cache" / "fairlead-testbed"


def binary(name: str) -> Path:
    """The program, built first if it is not there yet (the API server takes some minutes the first time)."""
    built = _place(name)
    if not built.exists():
        _build([name])
    return built


def build(names: Iterable[str]) -> None:
    """Have all of these programs: those of one module are built together, which takes less time."""
    missing = [name for name in names if not _place(name).exists()]
    for module in dict.fromkeys(PACKAGES[name][0] for name in missing):
        _build([name for name in missing if PACKAGES[name][0] == module])


def _place(name: str) -> Path:
    folder = HERE / PACKAGES[name][0]
    if not folder.exists():
        raise BedError(f"there is no Kubernetes {VERSION} here; known: {', '.join(OTHERS)}, and the usual one")
    sources = sorted(path for path in folder.rglob("*") if path.is_file())
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    return cache() / version / name


def _build(names: list[str]) -> None:
    """Build programs of one module."""
    module, shown = PACKAGES[names[0]][0], " and ".join(names)
    go = shutil.which("go")
    if go is None:
        raise BedError(f"Go is needed to build {shown} for the test bed; install Go {GO} or newer and try again")
    half = _place(names[0]).with_name(f"half.{os.getpid()}")
    half.mkdir(parents=True, exist_ok=True)
    print(f"building {shown} (once)", flush=True)
    done = subprocess.run(
        [go, "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", f"{half}{os.sep}"]
        + [PACKAGES[name][1] for name in names],
        cwd=HERE / module,
        env={"GOTOOLCHAIN": "auto", **os.environ, "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"},
        check=False,
    )
    if done.returncode:
        shutil.rmtree(half)
        raise BedError(f"{shown} could not be built (go build ended with {done.returncode})")
    for name in names:
        (half / name).rename(_place(name))
    half.rmdir()


if __name__ == "__main__":
    try:
        build(PACKAGES)
    except BedError as missing:
        raise SystemExit(f"the test bed cannot be made: {missing}") from None
