"""Make the plain manifests in `deploy/kubernetes` from the Helm chart: `make manifests`.

Decides which template becomes which file. Never writes the kustomizations, nor the namespace, which Helm leaves to
whoever installs. Invariant: each file says of which chart it was made, so that a test sees without Helm when it is old.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from testbed.binaries import binary

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
CHART = DEPLOY / "helm" / "fairlead"
FILES = {
    "base/rights.yaml": "rights.yaml",
    "base/queues.yaml": "queues.yaml",
    "base/queue-definition.yaml": "queue-definition.yaml",
    "base/scheduler.yaml": "scheduler.yaml",
    "webhook/rights.yaml": "webhook-rights.yaml",
    "webhook/webhook.yaml": "webhook.yaml",
    "webhook/registration.yaml": "webhook-registration.yaml",
}
"""By file below `deploy/kubernetes`, the template that it is made of."""


def digest() -> str:
    """Of all files of the chart, by name and content."""
    files = sorted(path for path in CHART.rglob("*") if path.is_file())
    parts = [path.relative_to(CHART).as_posix().encode() + b"\0" + path.read_bytes() for path in files]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def heading() -> str:
    """What each file begins with."""
    return f"# Made from deploy/helm/fairlead by `make manifests`; change it there. Chart: sha256 {digest()}\n"


def made(name: str) -> str:
    """The text of a file. Raises `CalledProcessError` if Helm refuses the chart."""
    settings = ["--set", "webhook.enabled=true"] if name.startswith("webhook/") else []
    # Built from its module it believes in an old Kubernetes unless it is told.
    words = ["template", "fairlead", str(CHART), "--namespace", "fairlead", "--kube-version", "1.34.0", *settings]
    command = [str(binary("helm")), *words, "--show-only", f"templates/{FILES[name]}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("# Source: ")]
    return heading() + "\n".join(lines).removeprefix("---\n").rstrip("\n") + "\n"


def main() -> None:
    """Write all of them."""
    for name in FILES:
        (DEPLOY / "kubernetes" / name).write_text(made(name), encoding="utf-8")


if __name__ == "__main__":
    main()
