"""Occupancy: which job has which room and which device of a machine, since when and until when at most.

Decides the fields. Never who may see them.
"""

from __future__ import annotations

from typing import Annotated

from fairlead.wire.fields import Amounts, Page, Shape, said


class RunningJob(Shape, frozen=True, kw_only=True):
    """A job that has room."""

    key: str
    user: str
    name: Annotated[
        str, said("Empty where the administrator keeps names private, and it is not the caller's business.")
    ]
    queue: str
    state: str
    started_at_ms: int | None
    ends_at_ms: Annotated[int | None, said("By its time limit; null: it has none, or stands still.")]
    visible: Annotated[bool, said("The caller may see all of it, and act on it.")] = True


class Occupant(RunningJob, frozen=True, kw_only=True):
    """A job on a node, with what it has there."""

    node: str
    resources: Amounts
    gpus: list[int]


class OccupantPage(Page, frozen=True, kw_only=True):
    """Jobs that have room, by node and age."""

    occupants: list[Occupant]


class Gpu(Shape, frozen=True, kw_only=True):
    """A device: a GPU, or a part of one."""

    number: Annotated[int, said("As nvidia-smi counts; of part P of GPU N 100 * (N + 1) + P.")]
    resource: Annotated[str, said("What jobs ask for to get one: gpu, or mig-1g.5gb and the like.")]
    uuid: Annotated[str, said("Empty: not known.")]
    model: str
    memory_bytes: Annotated[int, said("0: not known.")]
    holder: Annotated[RunningJob | None, said("The job that it is given to.")]


class GpuPage(Page, frozen=True, kw_only=True):
    """Devices by number."""

    gpus: list[Gpu]
