"""The container file: what it copies is there and reaches the build, and the image needs no user and no root."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LINES = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()


def of(instruction: str) -> list[str]:
    """The arguments of all instructions of a kind."""
    return [line.partition(" ")[2] for line in LINES if line.startswith(f"{instruction} ")]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    """The list of what reaches the build says everything that is copied from it, and nothing else."""
    copied = [word for line in of("COPY") if not line.startswith("--from") for word in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(copied)


def test_what_the_build_of_the_package_needs_is_copied() -> None:
    """Its readme and its licence too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    copied = " ".join(of("COPY"))
    assert all(name in copied for name in ["pyproject.toml", "src", project["readme"], *project["license-files"]])
    assert "[k8s]" in " ".join(of("RUN"))
    assert "k8s" in project["optional-dependencies"]


def test_the_image_runs_as_nobody_of_its_own() -> None:
    """As the number that the manifests name, with the command that they give options to."""
    manifest = (ROOT / "deploy" / "kubernetes" / "base" / "scheduler.yaml").read_text(encoding="utf-8")
    (user,) = of("USER")
    assert f"runAsUser: {user.partition(':')[0]}\n" in manifest
    assert of("ENTRYPOINT") == ['["fairlead"]']
    assert re.search(r"- kubernetes\n +- run\n", manifest)


def test_the_version_is_the_packages() -> None:
    """In the chart and in the overlays."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = (ROOT / "deploy" / "helm" / "fairlead" / "Chart.yaml").read_text(encoding="utf-8")
    assert f'appVersion: "{version}"' in chart
    for overlay in ("base", "webhook"):
        text = (ROOT / "deploy" / "kubernetes" / overlay / "kustomization.yaml").read_text(encoding="utf-8")
        assert f'newTag: "{version}"' in text
