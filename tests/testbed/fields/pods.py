"""Fields of pods, their containers and their nodes: amounts, ports, labels, taints."""

from __future__ import annotations

from testbed.fields.part import REQUIRED, Manifest, Part, container, obeys

from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Thing

RUNTIMES = Kind(Thing, "RuntimeClass", "node.k8s.io/v1", "runtimeclasses", False)


def small_and_large(part: Part, small: str = "2") -> None:
    part.node("small", small)
    part.node("large")


# -- amounts ------------------------------------------------------------------------------------------------------


@obeys("PodSpec.containers", "Container.resources", "ResourceRequirements.requests")
def containers(part: Part, there: bool) -> None:
    small_and_large(part)
    part.pod(containers=[container("1"), *([container("2", "d")] if there else [])])


@obeys("ResourceRequirements.limits")
def limits(part: Part, there: bool) -> None:
    small_and_large(part)
    part.pod(containers=[{"name": "c", "image": "none", "resources": {"limits": {"cpu": "3" if there else "1"}}}])


@obeys("PodSpec.initContainers")
def init_containers(part: Part, there: bool) -> None:
    small_and_large(part)
    part.pod(initContainers=[container("3", "i")] if there else [])


@obeys("Container.restartPolicy")
def sidecar(part: Part, there: bool) -> None:
    small_and_large(part)
    part.pod(initContainers=[container("1500m", "i", **({"restartPolicy": "Always"} if there else {}))])


@obeys("PodSpec.overhead", "PodSpec.runtimeClassName")
def overhead(part: Part, there: bool) -> None:
    small_and_large(part)
    fixed = {"overhead": {"podFixed": {"cpu": "1500m"}}}
    part.put(RUNTIMES, {"metadata": {"name": part.name}, "handler": "heavy", **fixed})
    part.pod(**({"runtimeClassName": part.name} if there else {}))


@obeys("PodSpec.resources", since=34)
def resources_of_the_pod(part: Part, there: bool) -> None:
    small_and_large(part)
    part.pod(**({"resources": {"requests": {"cpu": "3"}}} if there else {}))


@obeys("PodSpec.nodeName")
def node_name(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a" if there else "", "3")
    part.pod("2")


@obeys("PodStatus.phase")
def phase(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", "3", status={"phase": "Succeeded" if there else "Running"})
    part.pod("2")


def granted(name: str = "c", has: str = "1", uses: str = "1") -> Manifest:
    """The status of a container."""
    amounts = {"allocatedResources": {"cpu": has}, "resources": {"requests": {"cpu": uses}}}
    return {"name": name, "ready": True, "restartCount": 0, "image": "none", "imageID": "x", **amounts}


@obeys("PodStatus.containerStatuses", "ContainerStatus.allocatedResources")
def granted_amount(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", "1", status={"containerStatuses": [granted(has="3" if there else "1")]})
    part.pod("2")


@obeys("ContainerStatus.resources")
def amount_in_use(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", "1", status={"containerStatuses": [granted(uses="3" if there else "1")]})
    part.pod("2")


@obeys("ContainerStatus.name", "Container.name")
def name_of_a_status(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", "1", status={"containerStatuses": [granted("c" if there else "gone", "3", "3")]})
    part.pod("2")


@obeys("PodStatus.initContainerStatuses")
def granted_to_a_sidecar(part: Part, there: bool) -> None:
    part.nodes()
    beside = container("500m", "i", restartPolicy="Always")
    part.runs(
        "a", "1", initContainers=[beside], status={"initContainerStatuses": [granted("i", "2" if there else "1")]}
    )
    part.pod("2")


@obeys("PodStatus.conditions")
def a_resize_that_is_not_possible(part: Part, there: bool) -> None:
    part.nodes()
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    part.runs("a", "3", status={"containerStatuses": [granted()], **({"conditions": pending} if there else {})})
    part.pod("2")


@obeys("PodStatus.resources", since=36)
def in_use_as_a_whole(part: Part, there: bool) -> None:
    part.nodes()
    whole = {"resources": {"requests": {"cpu": "1"}}}
    status = {"resources": {"requests": {"cpu": "3" if there else "1"}}}
    part.runs("a", "1", **whole, status=status)
    part.pod("2")


@obeys("PodStatus.allocatedResources", since=36)
def granted_as_a_whole(part: Part, there: bool) -> None:
    part.nodes()
    whole = {"resources": {"requests": {"cpu": "1"}}}
    status = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "3" if there else "1"}}
    part.runs("a", "1", **whole, status=status)
    part.pod("2")


@obeys("PodStatus.nodeAllocatableResourceClaimStatuses", since=36)
def used_by_devices(part: Part, there: bool) -> None:
    part.nodes()
    uses = [{"resourceClaimName": "c", "containers": ["c"], "resources": {"cpu": "2"}}] if there else []
    claims = [{"name": "devices", "resourceClaimName": "c"}]
    part.runs("a", "1", resourceClaims=claims, status={"nodeAllocatableResourceClaimStatuses": uses})
    part.pod("2")


# -- nodes --------------------------------------------------------------------------------------------------------


@obeys("NodeStatus.allocatable")
def allocatable(part: Part, there: bool) -> None:
    whole = {"cpu": "4", "memory": "4Gi", "pods": "20"}
    part.node("a", status={"capacity": whole, "allocatable": {**whole, "cpu": "1"} if there else whole})
    part.node("b")
    part.pod("2")


@obeys("NodeStatus.capacity")
def capacity(part: Part, there: bool) -> None:
    part.node("a", status={"capacity": {"cpu": "1" if there else "4", "memory": "4Gi", "pods": "20"}})
    part.node("b")
    part.pod("2")


@obeys("NodeSpec.unschedulable")
def unschedulable(part: Part, there: bool) -> None:
    part.node("a", unschedulable=there)
    part.node("b")
    part.pod()


@obeys("NodeSpec.taints")
def taints(part: Part, there: bool) -> None:
    part.node("a", taints=[TAINT] if there else [])
    part.node("b")
    part.pod()


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def tolerant(part: Part, **toleration: str) -> None:
    part.node("a", taints=[TAINT])
    part.node("b")
    part.pod(tolerations=[toleration] if toleration else [])


@obeys("PodSpec.tolerations")
def tolerations(part: Part, there: bool) -> None:
    tolerant(part, **({"operator": "Exists"} if there else {}))


@obeys("Toleration.key")
def key_of_a_toleration(part: Part, there: bool) -> None:
    tolerant(part, key="gpu" if there else "disk", operator="Exists")


@obeys("Toleration.operator")
def operator_of_a_toleration(part: Part, there: bool) -> None:
    tolerant(part, key="gpu", operator="Exists" if there else "Equal")


@obeys("Toleration.value")
def value_of_a_toleration(part: Part, there: bool) -> None:
    tolerant(part, key="gpu", value="yes" if there else "no")


@obeys("Toleration.effect")
def effect_of_a_toleration(part: Part, there: bool) -> None:
    tolerant(part, key="gpu", operator="Exists", effect="NoSchedule" if there else "NoExecute")


@obeys("PodSpec.nodeSelector")
def node_selector(part: Part, there: bool) -> None:
    part.nodes()
    part.pod(nodeSelector={part.zone: "b"} if there else {})


def wants(**term: object) -> Manifest:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


@obeys("PodSpec.affinity", "NodeAffinity." + REQUIRED, "NodeSelectorTerm.matchExpressions")
def node_affinity(part: Part, there: bool) -> None:
    part.nodes()
    beyond = {"key": part.zone, "operator": "NotIn", "values": ["a"]}
    part.pod(affinity=wants(matchExpressions=[beyond]) if there else {})


@obeys("NodeSelectorTerm.matchFields")
def match_fields(part: Part, there: bool) -> None:
    part.nodes()
    named = {"key": "metadata.name", "operator": "In", "values": [part.on("b")]}
    part.pod(affinity=wants(matchFields=[named]) if there else {})


@obeys("PodSpec.schedulingGates")
def scheduling_gates(part: Part, there: bool) -> None:
    part.nodes()
    part.pod(schedulingGates=[{"name": "example.com/later"}] if there else [])


# -- ports --------------------------------------------------------------------------------------------------------


def serving(number: int = 80, **port: object) -> list[Manifest]:
    return [container(ports=[{"containerPort": number, **port}])]


def two_servers(part: Part, **port: object) -> None:
    """One has port 80 of all addresses of node a, another of one address of node b."""
    part.nodes()
    part.runs("a", containers=serving(hostPort=80))
    part.runs("b", containers=serving(hostPort=80, hostIP="10.0.0.1"))
    part.pod(containers=serving(**port))  # type: ignore[arg-type]


@obeys("ContainerPort.hostPort")
def host_port(part: Part, there: bool) -> None:
    two_servers(part, hostPort=80 if there else 81)


@obeys("ContainerPort.hostIP")
def host_address(part: Part, there: bool) -> None:
    two_servers(part, hostPort=80, **({"hostIP": "10.0.0.2"} if there else {}))


@obeys("ContainerPort.protocol")
def protocol(part: Part, there: bool) -> None:
    two_servers(part, hostPort=80, protocol="UDP" if there else "TCP")


@obeys("PodSpec.hostNetwork", "Container.ports")
def host_network(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", containers=serving(hostPort=80))
    part.pod(containers=serving(), hostNetwork=there)


@obeys("ContainerPort.containerPort")
def port_of_the_network(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", containers=serving(hostPort=80))
    part.pod(containers=serving(80 if there else 81), hostNetwork=True)


# -- what a node declares that it can do --------------------------------------------------------------------------


def declared(part: Part, name: str) -> None:
    """Node b alone declares it."""
    room = {"cpu": "4", "memory": "4Gi", "pods": "20"}
    part.node("a")
    part.node("b", status={"allocatable": room, "capacity": room, "declaredFeatures": [name]})


@obeys("PodSpec.hostUsers", "NodeStatus.declaredFeatures", since=36)
def host_users(part: Part, there: bool) -> None:
    declared(part, "UserNamespacesHostNetworkSupport")
    part.pod(hostNetwork=True, **({"hostUsers": False} if there else {}))


@obeys("Container.restartPolicyRules", since=36)
def restart_rules(part: Part, there: bool) -> None:
    declared(part, "RestartAllContainersOnContainerExits")
    rules = [{"action": "RestartAllContainers" if there else "Restart", "exitCodes": {"operator": "In", "values": [1]}}]
    part.pod(containers=[container(restartPolicy="Never", restartPolicyRules=rules)], restartPolicy="Never")
