"""Fields of resource claims, their classes, and the slices of devices."""

from __future__ import annotations

from typing import Any

from testbed import devices
from testbed.devices import DRIVER, device, request
from testbed.fields.part import Manifest, Part, obeys

from fairlead.kubernetes.kinds import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES

MINE = f'device.attributes["{DRIVER}"]'
BIG = f'{MINE}.model == "big"'
SINCE = 34
"""`resource.k8s.io/v1` is served from 1.34 on."""


def offer(part: Part, node: str, *of_node: Manifest, **more: Any) -> None:
    """The devices of a node, which say whose part they are; `more` as for `device_slice`."""
    for each in of_node:
        each["attributes"]["part"] = {"string": part.name}
    part.put(RESOURCE_SLICES, devices.device_slice(part.on(node), *of_node, **more))


def of_part(part: Part) -> str:
    """Other parts have devices that all nodes reach."""
    return f'device.driver == "{DRIVER}" && {MINE}.part == "{part.name}"'


def big_ones(part: Part) -> str:
    """The class of the big devices."""
    part.put(DEVICE_CLASSES, devices.device_class(f"{part.name}-big", f"{of_part(part)} && {BIG}"))
    return f"{part.name}-big"


def two(part: Part, on_a: list[Manifest] | None = None, on_b: list[Manifest] | None = None) -> None:
    """Two nodes: a small device on a, a small and a big one on b, unless otherwise said; and the class of all."""
    part.put(DEVICE_CLASSES, devices.device_class(part.name, of_part(part)))
    part.nodes()
    offer(part, "a", *(on_a if on_a is not None else [device("d0")]))
    offer(part, "b", *(on_b if on_b is not None else [device("d0"), device("d1", "big", "40Gi")]))


def ask(part: Part, *requests: Manifest, **more: Any) -> None:
    """A pod with a claim."""
    made = devices.claim(part.on("claim"), *requests, **more)
    part.put(RESOURCE_CLAIMS, made)
    part.pod(**devices.claimed(part.on("claim")))


def one(part: Part, *selectors: str, name: str = "gpu", count: int = 1, of: str = "", **more: Any) -> Manifest:
    return request(name, of or part.name, count, *selectors, **more)


@obeys(
    "PodSpec.resourceClaims", "PodResourceClaim.name", "PodResourceClaim.resourceClaimName",
    "ResourceSliceSpec.devices", "ResourceSliceSpec.nodeName", since=SINCE,
)  # fmt: skip
def a_claim(part: Part, there: bool) -> None:
    two(part, on_a=[])
    ask(part, one(part))
    if not there:
        part.pod()


@obeys("DeviceClaim.requests", "DeviceRequest.name", since=SINCE)
def two_requests(part: Part, there: bool) -> None:
    two(part)
    ask(part, one(part), *([one(part, name="second")] if there else []))


@obeys("DeviceRequest.exactly", "ExactDeviceRequest.count", since=SINCE)
def count(part: Part, there: bool) -> None:
    two(part)
    ask(part, one(part, count=2 if there else 1))


@obeys("ExactDeviceRequest.selectors", since=SINCE)
def selectors(part: Part, there: bool) -> None:
    two(part)
    ask(part, one(part, *([BIG] if there else [])))


@obeys("ExactDeviceRequest.allocationMode", since=SINCE)
def all_devices(part: Part, there: bool) -> None:
    """One of those of b is in use: all of them cannot be had."""
    two(part)
    in_use(part, "b", "d0")
    ask(part, one(part, count=0 if there else 1))


@obeys("ExactDeviceRequest.deviceClassName", "DeviceClassSpec.selectors", since=SINCE)
def big_class(part: Part, there: bool) -> None:
    two(part)
    big = big_ones(part)
    ask(part, one(part, of=big if there else part.name))


def in_use(part: Part, node: str, name: str, **more: Any) -> None:
    """A claim that has a device of a node, and a user."""
    made = devices.claim(part.on(f"had-{name}"), one(part, **more))
    given = {"request": "gpu", "driver": DRIVER, "pool": part.on(node), "device": name, **more}
    fields = [{"key": "metadata.name", "operator": "In", "values": [part.on(node)]}]
    where = {"nodeSelectorTerms": [{"matchFields": fields}]}
    user = {"resource": "pods", "name": part.on("user"), "uid": part.on("user")}
    allocation = {"devices": {"results": [given]}, "nodeSelector": where}
    part.put(RESOURCE_CLAIMS, {**made, "status": {"allocation": allocation, "reservedFor": [user]}})


@obeys("ResourceClaimStatus.allocation", "Device.name", "ResourceSliceSpec.pool", since=SINCE)
def allocation(part: Part, there: bool) -> None:
    two(part)
    if there:
        in_use(part, "a", "d0")
    ask(part, one(part))


@obeys("ResourceSliceSpec.driver", since=SINCE)
def driver(part: Part, there: bool) -> None:
    two(part)
    in_use(part, "a", "d0")
    own = f"{part.name}.example.com"
    other = devices.device_slice(part.on("a"), device("d0"), name=f"{part.name}-other")
    part.put(RESOURCE_SLICES, {**other, "spec": {**other["spec"], "driver": own if there else "third.example.com"}})
    part.put(DEVICE_CLASSES, devices.device_class(f"{part.name}-own", f'device.driver == "{own}"'))
    ask(part, one(part, of=f"{part.name}-own"))


@obeys("DeviceClaim.constraints", "DeviceConstraint.matchAttribute", since=SINCE)
def match_attribute(part: Part, there: bool) -> None:
    two(part, on_a=[device("d0"), device("d2")])
    same = {"constraints": [{"matchAttribute": f"{DRIVER}/model"}]} if there else {}
    ask(part, one(part, count=2), **same)


@obeys("DeviceConstraint.requests", since=SINCE)
def requests_of_a_constraint(part: Part, there: bool) -> None:
    """Of three devices all have something in common, or two of them."""
    two(part, on_a=[device("d0"), device("d2"), device("d4", "big")], on_b=[device(f"d{i}") for i in (0, 2, 4)])
    same = {"matchAttribute": f"{DRIVER}/model", **({} if there else {"requests": ["gpu"]})}
    ask(part, one(part, count=2), one(part, name="second"), constraints=[same])


@obeys("ExactDeviceRequest.adminAccess", since=SINCE)
def admin_access(part: Part, there: bool) -> None:
    """Devices that are in use may be looked at."""
    two(part)
    in_use(part, "a", "d0")
    made = devices.claim(part.on("claim"), one(part, **({"adminAccess": True} if there else {})))
    made["metadata"]["namespace"] = "second"
    part.put(RESOURCE_CLAIMS, made)
    part.pod(namespace="second", **devices.claimed(part.on("claim")))


TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
TOLERANT = {"tolerations": [{"key": "example.com/broken", "operator": "Exists"}]}


@obeys("Device.taints", since=36)
def taints_of_a_device(part: Part, there: bool) -> None:
    two(part, on_a=[device("d0", **({"taints": [TAINT]} if there else {}))])
    ask(part, one(part))


@obeys("ExactDeviceRequest.tolerations", since=36)
def tolerations_of_a_request(part: Part, there: bool) -> None:
    two(part, on_a=[device("d0", taints=[TAINT])])
    ask(part, one(part, **(TOLERANT if there else {})))


# -- one of several ----------------------------------------------------------------------------------------------


def first(part: Part, **sub: Any) -> None:
    """The first alternative nobody can have; the second is as `sub` says."""
    usual = {"name": "second", "deviceClassName": part.name, "allocationMode": "ExactCount", "count": 1}
    never = {**usual, "name": "first", "selectors": [{"cel": {"expression": f'{MINE}.model == "none"'}}]}
    ask(part, {"name": "gpu", "firstAvailable": [never, {**usual, **sub}]})


@obeys("DeviceRequest.firstAvailable", "DeviceSubRequest.selectors", since=SINCE)
def first_available(part: Part, there: bool) -> None:
    two(part)
    first(part, **({"selectors": [{"cel": {"expression": BIG}}]} if there else {}))


@obeys("DeviceSubRequest.count", since=SINCE)
def count_of_an_alternative(part: Part, there: bool) -> None:
    two(part)
    first(part, count=2 if there else 1)


@obeys("DeviceSubRequest.allocationMode", since=SINCE)
def all_as_an_alternative(part: Part, there: bool) -> None:
    two(part)
    in_use(part, "b", "d0")
    first(part, **({"allocationMode": "All", "count": 0} if there else {}))


@obeys("DeviceSubRequest.deviceClassName", since=SINCE)
def class_of_an_alternative(part: Part, there: bool) -> None:
    two(part)
    big = big_ones(part)
    first(part, deviceClassName=big if there else part.name)


@obeys("DeviceSubRequest.name", since=SINCE)
def name_of_an_alternative(part: Part, there: bool) -> None:
    """A constraint is about one of the alternatives."""
    two(part, on_a=[device("d0"), device("d2", "big")], on_b=[device("d0"), device("d2")])
    usual = {"deviceClassName": part.name, "allocationMode": "ExactCount", "count": 2}
    sub = {"name": "second", **usual}
    same = {"matchAttribute": f"{DRIVER}/model", "requests": ["gpu/second"]}
    ask(part, {"name": "gpu", "firstAvailable": [sub]}, **({"constraints": [same]} if there else {}))


@obeys("DeviceSubRequest.tolerations", since=36)
def tolerations_of_an_alternative(part: Part, there: bool) -> None:
    two(part, on_a=[device("d0", taints=[TAINT])])
    first(part, **(TOLERANT if there else {}))


# -- which nodes reach a device -----------------------------------------------------------------------------------


def terms(part: Part, node: str) -> Manifest:
    named = {"key": part.zone, "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchExpressions": [named]}]}


def reached(part: Part, *of_pool: Manifest, **where: Any) -> None:
    """A pool beyond both nodes, which have nothing themselves."""
    two(part, on_a=[], on_b=[])
    offer(part, "beyond", *(of_pool or (device("d0"),)), **where)
    ask(part, one(part))


@obeys("ResourceSliceSpec.nodeSelector", since=SINCE)
def selector_of_a_slice(part: Part, there: bool) -> None:
    reached(part, **({"nodeSelector": terms(part, "a")} if there else {"allNodes": True}))


@obeys("ResourceSliceSpec.allNodes", since=SINCE)
def slice_of_all_nodes(part: Part, there: bool) -> None:
    reached(part, **({"allNodes": True} if there else {"nodeName": part.on("a")}))


@obeys("ResourceSliceSpec.perDeviceNodeSelection", "Device.nodeName", since=36)
def name_of_a_devices_node(part: Part, there: bool) -> None:
    if there:
        reached(part, device("d0", nodeName=part.on("a")), perDeviceNodeSelection=True)
    else:
        reached(part, allNodes=True)


@obeys("Device.nodeSelector", since=36)
def selector_of_a_device(part: Part, there: bool) -> None:
    reached(part, device("d0", nodeSelector=terms(part, "a" if there else "b")), perDeviceNodeSelection=True)


@obeys("Device.allNodes", since=36)
def device_of_all_nodes(part: Part, there: bool) -> None:
    way = {"allNodes": True} if there else {"nodeName": part.on("b")}
    reached(part, device("d0", **way), perDeviceNodeSelection=True)


@obeys("Device.attributes", since=SINCE)
def attributes(part: Part, there: bool) -> None:
    two(part, on_a=[device("d0", "big" if there else "small")])
    ask(part, one(part, BIG))


@obeys("Device.capacity", since=SINCE)
def capacity_of_a_device(part: Part, there: bool) -> None:
    two(part, on_a=[device("d0", memory="40Gi" if there else "10Gi")])
    ask(part, one(part, f'device.capacity["{DRIVER}"].memory.compareTo(quantity("20Gi")) >= 0'))
