"""The page of all fields against the schema of the API server: a field that a new version brings is missing there."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from driven_cluster import Cluster as Driven
from driven_cluster import binds
from testbed import devices
from testbed.binaries import MINOR, VERSION
from testbed.control_plane import ControlPlane
from testbed.fields.page import rows

from fairlead.kubernetes.acts import Explain
from fairlead.kubernetes.kinds import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(120)]
GROUPS = ("api/v1", "apis/policy/v1", "apis/storage.k8s.io/v1", "apis/resource.k8s.io/v1")
OUTCOMES = ("obeyed: ", "waits: ", "does not matter: ")
EXAMPLES: dict[str, dict[str, Any]] = {
    kind: {"volumes": [{"name": "disk", kind: {}}]}
    for kind in ("awsElasticBlockStore", "gcePersistentDisk", "iscsi", "rbd")
}
EXAMPLES["schedulingGroup"] = {"schedulingGroup": {"podGroupName": "g"}}
"""For each field for which a pod waits: a pod with it."""
CLAIMED: dict[str, dict[str, Any]] = {
    "capacity": devices.claim("c", devices.request(capacity={"requests": {"memory": "1Gi"}})),
    "distinctAttribute": devices.claim("c", constraints=[{"distinctAttribute": "gpu.example.com/model"}]),
}
"""Or a claim with it, ..."""
OFFERED: dict[str, dict[str, Any]] = {
    "consumesCounters": {"consumesCounters": [{"counterSet": "c", "counters": {}}]},
    "bindingConditions": {"bindingConditions": ["ready"]},
    "allowMultipleAllocations": {"allowMultipleAllocations": True},
    "nodeAllocatableResourceMappings": {"nodeAllocatableResourceMappings": {"cpu": {}}},
}
"""... or the only device that would suit."""


def test_the_page_has_every_field_of_the_schema(plane: ControlPlane) -> None:
    """And none that is not there; an older version may lack some, and whole groups."""
    schemas: dict[str, set[str]] = {}
    served = plane.kubectl("api-versions").split()
    assert VERSION or all(group.removeprefix("apis/").removeprefix("api/") in served for group in GROUPS)
    for group in (group for group in GROUPS if group.removeprefix("apis/").removeprefix("api/") in served):
        for name, schema in json.loads(plane.kubectl("get", "--raw", f"/openapi/v3/{group}"))["components"][
            "schemas"
        ].items():
            schemas[name.rpartition(".")[2]] = set(schema.get("properties", ()))
    page = rows()
    assert len(page) > 20
    for of_type, fields in page.items():
        missing, unknown = schemas.get(of_type, set()) - set(fields), set(fields) - schemas.get(of_type, set())
        assert not missing, f"{of_type}: the page does not say what becomes of {sorted(missing)}"
        since = {name: re.search(r": since 1\.(\d+), ", outcome) for name, outcome in fields.items()}
        unknown -= {name for name, found in since.items() if found and int(found[1]) > MINOR}
        assert VERSION or not unknown, f"{of_type}: the schema has no {sorted(unknown)}"


def test_each_field_has_an_outcome() -> None:
    """There is no other than these three: nothing is passed over in silence."""
    for of_type, fields in rows().items():
        for name, outcome in fields.items():
            assert outcome.startswith(OUTCOMES), f"{of_type}.{name}: {outcome}"


def test_a_pod_waits_for_what_is_not_understood_and_the_reason_names_it() -> None:
    """For each field of which the page says so."""
    waits = {name for fields in rows().values() for name, outcome in fields.items() if outcome.startswith("waits: ")}
    assert waits == {*EXAMPLES, *CLAIMED, *OFFERED}
    for name in waits:
        cluster = Driven()
        cluster.node("n1")
        cluster.put(DEVICE_CLASSES, devices.device_class())
        cluster.put(RESOURCE_SLICES, devices.device_slice("n1", devices.device("d0", **OFFERED.get(name, {}))))
        cluster.put(RESOURCE_CLAIMS, CLAIMED.get(name, devices.claim("c")))
        cluster.pod("p", spec=EXAMPLES.get(name, devices.claimed("c")))
        acts = cluster.acts()
        assert binds(acts) == {}, name
        assert [name in act.message for act in acts if isinstance(act, Explain)] == [True], name
