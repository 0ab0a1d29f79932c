"""Each field that is obeyed, on a real API server: with it a pod has other nodes than without, as kube-scheduler says.

All parts of `testbed.fields` are in one cluster at a time. What chooses no node is tested where `ELSEWHERE` says.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.binaries import MINOR
from testbed.control_plane import ControlPlane
from testbed.fields import claims_of_devices, company, pods, volumes
from testbed.fields.page import rows
from testbed.fields.part import CASES, Part
from testbed.kube_filters import KubeFilters
from testbed.load import client_of
from testbed.random_cluster import NAMESPACES
from testbed.same_nodes import SPACES, Nodes, create, make_namespaces, ours, theirs

from fairlead.kubernetes.client import Client
from fairlead.kubernetes.kinds import CLAIMS, PODS, RESOURCE_CLAIMS, VOLUMES

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
TESTS = Path(__file__).resolve().parent
GATES = ("UserNamespacesHostNetworkSupport", "DRANodeAllocatableResources")
"""Of the fields that 1.36 brought these are for who asks for them."""
STATUS_LATER = (PODS, CLAIMS, VOLUMES, RESOURCE_CLAIMS)
"""Kinds of which the server takes a status only afterwards."""
POINTS = "test_same_scores.py::test_the_same_points"
LIFE = "test_priority.py::test_a_preemption_from_beginning_to_end"
BUDGET, COUNTED = (
    "test_priority.py::test_budgets_are_kept_where_there_is_a_choice",
    "test_beside_others.py::test_a_budget_leaves_what_its_controller_counted",
)
DEVICES = "test_devices.py::test_devices_by_template_and_by_a_shared_claim"
EPHEMERAL = "test_volumes.py::test_an_ephemeral_volume_waits_for_the_claim_that_is_made_for_its_pod"
ENDS = "test_operation.py::test_forecasts_know_what_ends_by_itself"
ELSEWHERE = {
    # What chooses among the nodes that would do.
    "Container.image": POINTS,
    "ContainerImage.names": POINTS,
    "ContainerImage.sizeBytes": POINTS,
    "NodeStatus.images": POINTS,
    "NodeAffinity.preferredDuringSchedulingIgnoredDuringExecution": POINTS,
    "PreferredSchedulingTerm.preference": POINTS,
    "PreferredSchedulingTerm.weight": POINTS,
    "PodAffinity.preferredDuringSchedulingIgnoredDuringExecution": POINTS,
    "PodAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution": POINTS,
    "WeightedPodAffinityTerm.podAffinityTerm": POINTS,
    "WeightedPodAffinityTerm.weight": POINTS,
    # Priority and preemption.
    "PodSpec.priority": LIFE,
    "PodSpec.priorityClassName": LIFE,
    "PodSpec.terminationGracePeriodSeconds": LIFE,
    "PodSpec.preemptionPolicy": "test_priority.py::test_never_waits_and_evicts_nobody",
    "PodStatus.nominatedNodeName": "test_priority.py::test_a_nomination_outlives_its_process",
    "PodDisruptionBudgetSpec.maxUnavailable": BUDGET,
    "PodDisruptionBudgetSpec.minAvailable": BUDGET,
    "PodDisruptionBudgetSpec.selector": BUDGET,
    "PodDisruptionBudgetStatus.disruptionsAllowed": COUNTED,
    "PodDisruptionBudgetStatus.observedGeneration": COUNTED,
    # Claims that somebody makes for a pod, and what is written to claims.
    "Volume.ephemeral": EPHEMERAL,
    "Volume.name": EPHEMERAL,
    "PodResourceClaim.resourceClaimTemplateName": DEVICES,
    "PodStatus.resourceClaimStatuses": DEVICES,
    "ResourceClaimStatus.reservedFor": DEVICES,
    "DeviceClaim.config": DEVICES,
    "DeviceClassSpec.config": DEVICES,
    # Whose a pod is, and when it ends.
    "PodSpec.schedulerName": "test_unchanged.py::test_whose_a_pod_is",
    "PodSpec.activeDeadlineSeconds": ENDS,
    "PodSpec.restartPolicy": ENDS,
    "PodStatus.startTime": ENDS,
}
"""By field: the test that is about it."""
__all__ = ["claims_of_devices", "company", "pods", "volumes"]


def test_each_obeyed_field_has_a_test() -> None:
    """A row of the page that says so, and that no test is about, is found here."""
    obeyed = {
        f"{of_type}.{name}"
        for of_type, fields in rows().items()
        for name, outcome in fields.items()
        if outcome.startswith("obeyed: ")
    }
    about = [name for case in CASES for name in case.fields] + list(ELSEWHERE)
    assert sorted(about) == sorted(obeyed)
    for test in dict.fromkeys(ELSEWHERE.values()):
        file, name = test.split("::")
        assert re.search(rf"^def {name}\(", (TESTS / file).read_text(), re.MULTILINE), test


async def furnish(client: Client, parts: list[Part]) -> None:
    """Make what the parts have, kind by kind in the order of each part."""
    await make_namespaces(client, NAMESPACES)
    admin = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    await client.patch(SPACES, "second", admin)
    things = [each for part in parts for each in part.things]
    for kind in dict.fromkeys(kind for kind, _ in sorted(things, key=lambda each: each[0] is PODS)):
        mine = [thing for of, thing in things if of is kind]
        await create(client, kind, mine)
        for thing in mine if kind in STATUS_LATER else ():
            if "status" in thing:
                meta, change = thing["metadata"], {"status": thing["status"]}
                await client.patch(kind, meta["name"], change, meta.get("namespace", ""), sub="status")


async def compare(plane: ControlPlane, parts: list[Part]) -> tuple[Nodes, Nodes]:
    """By name of a part: the nodes of its pod, as kube-scheduler says, and as we say."""
    client = client_of(plane, 16)
    try:
        await furnish(client, parts)
        with KubeFilters(plane) as filters:
            await asyncio.sleep(1)
            said = await theirs(client, filters, [part.probe for part in parts])
            mine = await ours(client)
    finally:
        await client.transport.close()
    name = {part.probe["metadata"]["name"]: part.name for part in parts}
    return {name[pod]: nodes for pod, nodes in said.items()}, {name[pod]: mine.get(pod) or [] for pod in name}


@pytest.fixture
def open_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """An API server without anything that runs pods, which takes all that is obeyed."""
    with ControlPlane(tmp_path, kwok=False, gates=GATES if MINOR >= 36 else ()) as plane:
        yield plane


def test_with_a_field_its_pod_has_other_nodes_as_kube_scheduler_says(open_plane: ControlPlane) -> None:
    cases = [case for case in CASES if case.since <= MINOR]
    assert len({case.name for case in CASES}) == len(CASES)
    pairs = [case.parts() for case in cases]
    said, mine = asyncio.run(compare(open_plane, [part for pair in pairs for part in pair]))
    differ = [f"{name}: may run on {said[name]}, ours says {mine[name]}" for name in said if said[name] != mine[name]]
    same = []
    for case, (having, lacking) in zip(cases, pairs, strict=True):
        short = [[node.removeprefix(part.name) for node in said[part.name]] for part in (having, lacking)]
        if short[0] == short[1]:
            same.append(f"{case.name}: {short[0]} with and without {case.fields}")
    assert (differ, same) == ([], [])
