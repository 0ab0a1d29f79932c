"""What the API server says of devices: claims, classes and slices (`resource.k8s.io/v1`), as typed values.

Decides how these objects are read and what is left out, as `objects` does for all others. Never interprets a field.
Invariant: every field that the server may leave out has a default here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.kubernetes.objects import NodeSelector, Part, Reference, Text, Thing, Toleration

# -- what there is ------------------------------------------------------------------------------------------------


class Attribute(Part, frozen=True):
    """One property of a device; exactly one field is set."""

    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: Text = None
    version: Text = None


class Capacity(Part, frozen=True):
    """How much of something a device has."""

    value: str | int | float = 0


class DeviceTaint(Part, frozen=True):
    """Claims stay away from the device unless they tolerate this."""

    key: str = ""
    value: Text = None
    effect: str = ""


class Device(Part, frozen=True):
    """A device of a slice."""

    name: str
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity] | None = None
    node_name: Text = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    consumes_counters: list[Part] | None = None
    binding_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, Part] | None = None


class Pool(Part, frozen=True):
    """What the slice is a part of; only slices of the newest generation count."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(Part, frozen=True):
    """Devices of one driver, and the nodes that reach them."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: Text = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None


class ResourceSlice(Thing, frozen=True):
    """What a driver has published."""

    spec: SliceSpec = SliceSpec()


# -- what is wanted -----------------------------------------------------------------------------------------------


class Cel(Part, frozen=True):
    """An expression that is true of a device, or not."""

    expression: str = ""


class Selector(Part, frozen=True):
    """A condition on a device."""

    cel: Cel | None = None


class Configuration(Part, frozen=True):
    """What a driver is told when it prepares a device; nobody else reads it."""

    requests: list[str] | None = None
    opaque: Any = None


class ClassSpec(Part, frozen=True):
    """Which devices are of a class."""

    selectors: list[Selector] | None = None
    config: list[Configuration] | None = None


class DeviceClass(Thing, frozen=True):
    """A class of devices."""

    spec: ClassSpec = ClassSpec()


class Exactly(Part, frozen=True):
    """Devices of one class; of alternatives each has a name."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[Selector] | None = None
    allocation_mode: Text = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[Toleration] | None = None
    capacity: Part | None = None


class Request(Part, frozen=True):
    """What a claim asks for: exactly this, or the first of several that can be had."""

    name: str = ""
    exactly: Exactly | None = None
    first_available: list[Exactly] | None = None


class Constraint(Part, frozen=True):
    """What the devices of some requests must have in common."""

    requests: list[str] | None = None
    match_attribute: Text = None
    distinct_attribute: Text = None


class Devices(Part, frozen=True):
    """All that a claim asks for."""

    requests: list[Request] | None = None
    constraints: list[Constraint] | None = None
    config: list[Configuration] | None = None


class ResourceClaimSpec(Part, frozen=True):
    """What a claim asks for."""

    devices: Devices = Devices()


class Result(Part, frozen=True):
    """A device that a claim has."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: Text = msgspec.field(default=None, name="shareID")


class Results(Part, frozen=True):
    """The devices that a claim has."""

    results: list[Result] | None = None


class Allocation(Part, frozen=True):
    """What a claim has, and the nodes on which that can be used."""

    devices: Results = Results()
    node_selector: NodeSelector | None = None


class ResourceClaimStatus(Part, frozen=True):
    """What a claim has, and the pods that may use it."""

    allocation: Allocation | None = None
    reserved_for: list[Reference] | None = None


class ResourceClaim(Thing, frozen=True):
    """A wish for devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
