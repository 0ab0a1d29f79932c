"""The container file: what it copies is there and reaches the build, and the image needs no user and no root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
    (extras,) = re.findall(r"/source\[([a-z0-9,]+)\]", " ".join(of("RUN")))
    assert extras.split(",") == ["k8s", "web"]
    assert {"k8s", "web"} <= set(project["optional-dependencies"])


def test_the_image_runs_as_nobody_of_its_own() -> None:
    """As the number that the manifests name, with the command that they give options to."""
    manifest = (ROOT / "deploy" / "kubernetes" / "base" / "scheduler.yaml").read_text(encoding="utf-8")
    (user,) = of("USER")
    assert f"runAsUser: {user.partition(':')[0]}\n" in manifest
    assert of("ENTRYPOINT") == ['["fairlead"]']
    assert re.search(r"- kubernetes\n +- run\n", manifest)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_steps_of_the_build_make_a_command_that_runs(tmp_path: Path) -> None:
    """Without a daemon: they are run below a folder. The versions are those of the lock."""
    places = {name: str(tmp_path / name.strip("/").replace("/", "-")) for name in ("/source", "/opt/fairlead")}

    def below(text: str) -> str:
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    for line in of("COPY"):
        *names, to = line.split()
        if line.startswith("--from"):
            continue
        Path(below(to)).mkdir(parents=True, exist_ok=True)
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, below(to), dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / name, below(to))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for line in of("RUN"):
        done = subprocess.run(["sh", "-c", below(line)], capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
    program = Path(places["/opt/fairlead"]) / "bin"
    said = subprocess.run(
        [program / "fairlead", "kubernetes", "run", "--help"], capture_output=True, text=True, check=True
    )
    assert "--config-map" in said.stdout
    subprocess.run([program / "python", "-c", "import fairlead.web.app"], capture_output=True, check=True)
    listed = (
        "from importlib.metadata import distributions as d; print(*(f'{x.name.lower()}=={x.version}' for x in d()))"
    )
    found = set(subprocess.check_output([program / "python", "-c", listed], text=True).replace("_", "-").split())
    locked = set(re.findall(r"^[a-z0-9._-]+==[^ ;]+", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE))
    assert len(found & locked) > 15
    assert {name for name in found - locked if not name.startswith("fairlead==")} == set()


def test_the_version_is_the_packages() -> None:
    """In the chart and in the overlays."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = (ROOT / "deploy" / "helm" / "fairlead" / "Chart.yaml").read_text(encoding="utf-8")
    assert f'appVersion: "{version}"' in chart
    for overlay in ("base", "webhook"):
        text = (ROOT / "deploy" / "kubernetes" / overlay / "kustomization.yaml").read_text(encoding="utf-8")
        assert f'newTag: "{version}"' in text
