"""What the API server says of storage: claims, volumes, and the classes that they are of, as typed values.

Decides how these objects are read and what is left out, as `objects` does for all others. Never interprets a field.
Invariant: every field that the server may leave out has a default here.
"""

from __future__ import annotations

from fairlead.kubernetes.objects import Amounts, LabelSelector, Needs, NodeSelector, Part, Reference, Text, Thing


class VolumePhase(Part, frozen=True):
    """Whether a claim has its volume, or a volume is free."""

    phase: Text = None


class ClaimSpec(Part, frozen=True):
    """Which volume a claim wants, and which it has."""

    volume_name: Text = None
    storage_class_name: Text = None
    volume_attributes_class_name: Text = None
    volume_mode: Text = None
    access_modes: list[str] | None = None
    resources: Needs = Needs()
    selector: LabelSelector | None = None


class PersistentVolumeClaim(Thing, frozen=True):
    """A wish for a volume."""

    spec: ClaimSpec = ClaimSpec()
    status: VolumePhase = VolumePhase()


class VolumeAffinity(Part, frozen=True):
    """On which nodes a volume can be used."""

    required: NodeSelector | None = None


class Driver(Part, frozen=True):
    """Who attaches a volume."""

    driver: str = ""


class VolumeSpec(Part, frozen=True):
    """What a volume is."""

    node_affinity: VolumeAffinity | None = None
    storage_class_name: Text = None
    volume_attributes_class_name: Text = None
    volume_mode: Text = None
    access_modes: list[str] | None = None
    capacity: Amounts = None
    claim_ref: Reference | None = None
    csi: Driver | None = None


class PersistentVolume(Thing, frozen=True):
    """A volume."""

    spec: VolumeSpec = VolumeSpec()
    status: VolumePhase = VolumePhase()


class TopologyLabel(Part, frozen=True):
    """A label that a node must have, with one of these values."""

    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Part, frozen=True):
    """Labels that a node must have, all of them."""

    match_label_expressions: list[TopologyLabel] | None = None


class StorageClass(Thing, frozen=True):
    """How volumes of one name are made, and when."""

    provisioner: str = ""
    volume_binding_mode: Text = None
    allowed_topologies: list[TopologyTerm] | None = None


class Attachable(Part, frozen=True):
    """How many volumes can be attached at once; absent: no limit is known."""

    count: int | None = None


class NodeDriver(Part, frozen=True):
    """A driver that a node has."""

    name: str = ""
    allocatable: Attachable | None = None


class CSINodeSpec(Part, frozen=True):
    """The drivers of a node."""

    drivers: list[NodeDriver] | None = None


class CSINode(Thing, frozen=True):
    """What a node of this name can attach."""

    spec: CSINodeSpec = CSINodeSpec()
