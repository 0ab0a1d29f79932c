"""The plain manifests are those that the chart makes. That they are it word for word needs Helm: `tests/kubernetes`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from scripts.make_manifests import DEPLOY, FILES, heading

FOLDER = DEPLOY / "kubernetes"


@pytest.mark.parametrize("name", FILES)
def test_each_is_made_of_the_chart_as_it_is(name: str) -> None:
    """After a change of the chart they are made anew, and a change of theirs alone is lost: `make manifests`."""
    assert (FOLDER / name).read_text().startswith(heading())


def test_nothing_is_beside_them_but_what_helm_leaves_to_others() -> None:
    """The kustomizations list all of them, and no file that nothing makes."""
    there = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yaml")}
    own = {"base/namespace.yaml", "base/kustomization.yaml", "webhook/kustomization.yaml"}
    assert there == own | FILES.keys()
    listed = {
        f"{overlay}/{file}"
        for overlay in ("base", "webhook")
        for file in yaml.safe_load(Path(FOLDER, overlay, "kustomization.yaml").read_text())["resources"]
    }
    assert listed == {"base/namespace.yaml", "webhook/../base", *FILES}


def test_devices_can_be_given_on_every_version() -> None:
    """From 1.36 on who writes devices and users into the status of a claim needs a right of its own for that."""
    objects = yaml.safe_load_all((FOLDER / "base" / "rights.yaml").read_text())
    role = next(each for each in objects if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "fairlead")
    may = {resource for rule in role["rules"] if "patch" in rule["verbs"] for resource in rule["resources"]}
    assert {"resourceclaims/status", "resourceclaims/binding"} <= may
