"""GPUs of this machine: which there are, what they are called, and which of them a run gets.

Decides how a device is named to a run (by its UUID where that is known, else by its number), and that a part of a GPU
(MIG) is a resource of its own. Never looks at what runs on a device. Invariant: the numbers of whole GPUs are those of
`nvidia-smi`; no two devices have the same number.

They are asked of NVIDIA's library, through `nvidia-ml-py` (extra `gpu`). Without it, or without a driver, they are
counted by what the kernel shows, and nothing is known of them but their number.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.local.devices import choose_gpus, detect_gpus

log = logging.getLogger("fairlead.local")

WHOLE = "gpu"
PART = "mig-"
"""How the resource of a part begins: `mig-1g.5gb`."""
PARTS_FROM = 100
"""Part 2 of GPU 0 has the number 102."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device that a run can be given: a GPU, or a part of one."""

    number: int
    kind: str = WHOLE
    """The resource that it is one of."""
    uuid: str = ""
    model: str = ""
    memory_bytes: int = 0

    @property
    def shown_as(self) -> str:
        """What a run finds in CUDA_VISIBLE_DEVICES."""
        return self.uuid or str(self.number)


def found_gpus() -> tuple[Gpu, ...]:
    """The devices of this machine."""
    nvml: Any
    try:
        import pynvml as nvml  # type: ignore[import-untyped, no-redef, unused-ignore]
    except ModuleNotFoundError:
        return numbered(detect_gpus())
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as problem:
        if numbers := detect_gpus():
            log.warning("NVIDIA's library does not answer (%s); GPUs are known by their numbers alone", problem)
        return numbered(numbers)
    try:
        return tuple(asked(nvml))
    except nvml.NVMLError as problem:
        log.warning("GPUs could not be asked what they are (%s); they are known by their numbers alone", problem)
        return numbered(detect_gpus())
    finally:
        nvml.nvmlShutdown()


def numbered(numbers: Iterable[int]) -> tuple[Gpu, ...]:
    """Devices of which nothing else is known."""
    return tuple(Gpu(number) for number in numbers)


def asked(nvml: Any) -> Iterator[Gpu]:
    """What the library says. A GPU that is set up to be parted is given out in its parts alone."""
    for number in range(nvml.nvmlDeviceGetCount()):
        device = nvml.nvmlDeviceGetHandleByIndex(number)
        if not _is_parted(nvml, device):
            yield _described(nvml, device, number, WHOLE)
            continue
        for at in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
            try:
                part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, at)
            except nvml.NVMLError_NotFound:
                continue
            profile = _text(nvml.nvmlDeviceGetName(part)).rpartition("MIG ")[2].strip()
            yield _described(nvml, part, PARTS_FROM * (number + 1) + at, f"{PART}{profile}")


def _is_parted(nvml: Any, device: Any) -> bool:
    try:
        now, _ = nvml.nvmlDeviceGetMigMode(device)
    except nvml.NVMLError_NotSupported:
        return False
    return bool(now == nvml.NVML_DEVICE_MIG_ENABLE)


def _described(nvml: Any, device: Any, number: int, kind: str) -> Gpu:
    memory = int(nvml.nvmlDeviceGetMemoryInfo(device).total)
    return Gpu(number, kind, _text(nvml.nvmlDeviceGetUUID(device)), _text(nvml.nvmlDeviceGetName(device)), memory)


def _text(said: str | bytes) -> str:
    """Older versions of the library answer in bytes."""
    return said.decode() if isinstance(said, bytes) else said


# -- giving out ---------------------------------------------------------------------------------------------------


def counted(owned: Sequence[Gpu]) -> dict[str, int]:
    """How many there are of each kind; of whole ones maybe none."""
    counts = {WHOLE: 0}
    for each in owned:
        counts[each.kind] = counts.get(each.kind, 0) + 1
    return counts


def chosen(wanted: Mapping[str, int], owned: Sequence[Gpu], used: Iterable[int]) -> tuple[int, ...]:
    """The lowest free devices of each kind. Raises ValueError, with the figures, if there are too few."""
    taken = set(used)
    numbers: list[int] = []
    for kind, count in wanted.items():
        numbers += choose_gpus(count, [each.number for each in owned if each.kind == kind], taken)
    return tuple(numbers)


def visible(numbers: Iterable[int], owned: Sequence[Gpu]) -> str:
    """These devices as a run is told of them."""
    names = {each.number: each.shown_as for each in owned}
    return ",".join(names[number] for number in numbers)
