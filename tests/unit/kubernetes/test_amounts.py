"""Quantities of Kubernetes, and what a pod needs."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.core.model.resources import Resources
from fairlead.kubernetes.objects import (
    ClaimedAmounts,
    Condition,
    Container,
    ContainerStatus,
    Needs,
    Pod,
    PodSpec,
    PodStatus,
)
from fairlead.kubernetes.translate.amounts import AmountError, quantity
from fairlead.kubernetes.translate.amounts import pod_needs as needs_of


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cpu", "500m", 500),
        ("cpu", "2", 2000),
        ("cpu", "0.1", 100),
        ("cpu", "1e3", 1_000_000),
        ("cpu", "100u", 1),
        ("cpu", ".5", 500),
        ("memory", "1Gi", 2**30),
        ("memory", "1.5Gi", 3 * 2**29),
        ("memory", "128974848", 128974848),
        ("memory", "129e6", 129_000_000),
        ("memory", "123m", 1),
        ("memory", "100M", 100_000_000),
        ("nvidia.com/gpu", "2", 2),
        ("memory", "100E", 2**63 - 1),
        ("cpu", 2, 2000),
    ],
)
def test_quantities(name: str, text: str, value: int) -> None:
    """Every form that the API takes, rounded up to a whole unit."""
    assert quantity(name, text) == value


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1K", "Gi", "1e", "1e999999999", "9" * 65, "--1", "1.2.3", "٣"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """The sentence names the resource and the text."""
    with pytest.raises(AmountError, match="memory"):
        quantity("memory", text)


def pod_needs(spec: PodSpec) -> Resources:
    return needs_of(Pod(spec=spec))


def container(cpu: str, *, always: bool = False, limit: str | None = None) -> Container:
    needs = Needs(requests={"cpu": cpu} if cpu else None, limits={"cpu": limit} if limit else None)
    return Container(name="c", resources=needs, restart_policy="Always" if always else None)


def test_containers_add_up_and_a_pod_counts_itself() -> None:
    """Two containers of one and two cores; one of `pods`."""
    needs = pod_needs(PodSpec(containers=[container("1"), container("2"), Container(name="none")]))
    assert needs.as_dict() == {"pods": 1, "vcore": 3000}


def test_the_largest_step_of_starting_counts() -> None:
    """An init container that needs more than all others together."""
    spec = PodSpec(containers=[container("1")], init_containers=[container("4"), container("2")])
    assert pod_needs(spec)["vcore"] == 4000


def test_sidecars_stay() -> None:
    """A sidecar adds to what runs, and to the init containers after it, but not to those before."""
    sidecar = container("1", always=True)
    assert pod_needs(PodSpec(containers=[container("2")], init_containers=[sidecar]))["vcore"] == 3000
    after = PodSpec(containers=[container("2")], init_containers=[sidecar, container("5")])
    assert pod_needs(after)["vcore"] == 6000
    before = PodSpec(containers=[container("2")], init_containers=[container("5"), sidecar])
    assert pod_needs(before)["vcore"] == 5000


def test_overhead_limits_and_the_pod_as_a_whole() -> None:
    """The overhead is added to all; a limit stands in for a missing request; pod-level requests for the sum."""
    spec = PodSpec(containers=[container("1")], overhead={"cpu": "250m"})
    assert pod_needs(spec)["vcore"] == 1250
    assert pod_needs(PodSpec(containers=[container("", limit="3")]))["vcore"] == 3000
    whole = PodSpec(containers=[container("1")], resources=Needs(requests={"cpu": "4"}), overhead={"cpu": "1"})
    assert pod_needs(whole)["vcore"] == 5000


def resizing(wants: str, granted: str, runs: str, *, why: str = "", sidecar: bool = False) -> int:
    """Thousandths of a core of a pod that is resized in place."""
    has = [ContainerStatus(name="c", resources=Needs(requests={"cpu": runs}), allocated_resources={"cpu": granted})]
    pending = [Condition(type="PodResizePending", status="True", reason=why)] if why else None
    if sidecar:
        spec, status = PodSpec(init_containers=[container(wants, always=True)]), PodStatus(init_container_statuses=has)
    else:
        spec, status = PodSpec(containers=[container(wants)]), PodStatus(container_statuses=has, conditions=pending)
    return needs_of(Pod(spec=spec, status=status))["vcore"]


def test_while_a_pod_is_resized_the_most_of_it_counts() -> None:
    """It shrinks, but runs with more still; it grows, and was not granted that yet; so does a sidecar."""
    assert resizing("1", "1", "3") == 3000
    assert resizing("1", "2", "1") == 2000
    assert resizing("3", "1", "1", why="Deferred") == 3000
    assert resizing("1", "1", "3", sidecar=True) == 3000


def test_a_resize_that_its_node_cannot_grant_does_not_count() -> None:
    """What it has does."""
    assert resizing("100", "1", "1", why="Infeasible") == 1000
    assert resizing("100", "2", "1", why="Infeasible") == 2000


def test_a_pod_that_is_resized_as_a_whole() -> None:
    """The most of what it asks for, was granted and has; what its node cannot grant does not count."""
    spec = PodSpec(containers=[container("1")], resources=Needs(requests={"cpu": "2"}))
    has = PodStatus(resources=Needs(requests={"cpu": "3", "memory": "1Gi"}), allocated_resources={"cpu": "4"})
    assert needs_of(Pod(spec=spec, status=has))["vcore"] == 4000
    assert "memory" not in needs_of(Pod(spec=spec, status=has)), "it is its containers' own"
    wants = PodSpec(containers=[container("1")], resources=Needs(requests={"cpu": "9"}))
    assert needs_of(Pod(spec=wants, status=has))["vcore"] == 9000
    refused = [Condition(type="PodResizePending", status="True", reason="Infeasible")]
    assert needs_of(Pod(spec=wants, status=msgspec.structs.replace(has, conditions=refused)))["vcore"] == 4000


def test_what_a_pod_has_of_its_node_by_claims_counts() -> None:
    claimed = [ClaimedAmounts({"cpu": "2"}), ClaimedAmounts({"memory": "1Ki"})]
    status = PodStatus(node_allocatable_resource_claim_statuses=claimed)
    needs = needs_of(Pod(spec=PodSpec(containers=[container("1")]), status=status))
    assert (needs["vcore"], needs["memory"]) == (3000, 1024)
