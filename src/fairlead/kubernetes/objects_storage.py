"""What the API server says about storage: claims, volumes and classes as typed values, with what counts here.

Decides how these objects are read. Never interprets a field. What holds for `objects` holds here.
"""

from __future__ import annotations

from fairlead.kubernetes.objects import Amounts, LabelSelector, Metadata, NodeSelector, Part, Text


class VolumeNeeds(Part, frozen=True):
    """How large a volume has to be."""

    requests: Amounts = None


class ClaimSpec(Part, frozen=True):
    """Which volume a claim wants, and which it has."""

    volume_name: Text = None
    storage_class_name: Text = None
    volume_mode: Text = None
    access_modes: list[str] | None = None
    resources: VolumeNeeds | None = None
    selector: LabelSelector | None = None


class ClaimStatus(Part, frozen=True):
    """Whether it has it."""

    phase: Text = None


class PersistentVolumeClaim(Part, frozen=True):
    """A wish for a volume."""

    metadata: Metadata = Metadata()
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class VolumeAffinity(Part, frozen=True):
    """On which nodes a volume can be used."""

    required: NodeSelector | None = None


class ClaimReference(Part, frozen=True):
    """The claim that a volume belongs to."""

    namespace: Text = None
    name: Text = None
    uid: Text = None


class VolumeSpec(Part, frozen=True):
    """What a volume is."""

    node_affinity: VolumeAffinity | None = None
    storage_class_name: Text = None
    volume_mode: Text = None
    access_modes: list[str] | None = None
    capacity: Amounts = None
    claim_ref: ClaimReference | None = None


class VolumeStatus(Part, frozen=True):
    """Whether anybody may have it."""

    phase: Text = None


class PersistentVolume(Part, frozen=True):
    """A volume."""

    metadata: Metadata = Metadata()
    spec: VolumeSpec | None = None
    status: VolumeStatus | None = None


class TopologyLabel(Part, frozen=True):
    """A label that a node must have, with one of these values."""

    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Part, frozen=True):
    """Labels that a node must have, all of them."""

    match_label_expressions: list[TopologyLabel] | None = None


class StorageClass(Part, frozen=True):
    """How volumes of one name are made, and when."""

    metadata: Metadata = Metadata()
    provisioner: str = ""
    volume_binding_mode: Text = None
    allowed_topologies: list[TopologyTerm] | None = None
