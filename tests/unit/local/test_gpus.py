"""GPUs by a made-up NVIDIA library: machines that test have none. Its functions have the names of the real ones."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from fairlead.local import gpus
from fairlead.local.gpus import Gpu, chosen, counted, found_gpus, numbered, visible

GB = 2**30


class MadeUp:
    """A library that knows two GPUs: a whole one, and one that is parted in two, with a gap between the parts."""

    class NVMLError(Exception):
        pass

    class NVMLError_NotFound(NVMLError):  # noqa: N801 - their name
        pass

    class NVMLError_NotSupported(NVMLError):  # noqa: N801
        pass

    NVML_DEVICE_MIG_ENABLE = 1
    names: ClassVar[dict[str, str]] = {
        "0": "NVIDIA A40",
        "1": "NVIDIA A100",
        "1.0": "NVIDIA A100 MIG 1g.5gb",
        "1.2": "NVIDIA A100 MIG 3g.20gb",
    }
    memory: ClassVar[dict[str, int]] = {"0": 48 * GB, "1": 40 * GB, "1.0": 5 * GB, "1.2": 20 * GB}
    closed = 0

    def nvmlInit(self) -> None:
        pass

    def nvmlShutdown(self) -> None:
        self.closed += 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, number: int) -> str:
        return str(number)

    def nvmlDeviceGetMigMode(self, device: str) -> tuple[int, int]:
        if device == "0":
            raise self.NVMLError_NotSupported
        return 1, 1

    def nvmlDeviceGetMaxMigDeviceCount(self, device: str) -> int:
        assert device == "1"
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: str, at: int) -> str:
        if at not in (0, 2):
            raise self.NVMLError_NotFound
        return f"{device}.{at}"

    def nvmlDeviceGetName(self, device: str) -> str | bytes:
        return self.names[device].encode() if device == "1.2" else self.names[device]

    def nvmlDeviceGetUUID(self, device: str) -> str:
        return f"{'MIG' if '.' in device else 'GPU'}-{device}"

    def nvmlDeviceGetMemoryInfo(self, device: str) -> Any:
        return SimpleNamespace(total=self.memory[device])


FOUND = (
    Gpu(0, "gpu", "GPU-0", "NVIDIA A40", 48 * GB),
    Gpu(200, "mig-1g.5gb", "MIG-1.0", "NVIDIA A100 MIG 1g.5gb", 5 * GB),
    Gpu(202, "mig-3g.20gb", "MIG-1.2", "NVIDIA A100 MIG 3g.20gb", 20 * GB),
)


def test_whole_ones_and_parts_are_resources_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    library = MadeUp()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    assert found_gpus() == FOUND
    assert library.closed == 1
    assert counted(FOUND) == {"gpu": 1, "mig-1g.5gb": 1, "mig-3g.20gb": 1}


def test_the_real_binding_has_all_that_is_asked() -> None:
    """Otherwise the made-up one would prove nothing."""
    real = pytest.importorskip("pynvml")
    missing = [name for name in vars(MadeUp) if name.startswith(("nvml", "NVML")) and not hasattr(real, name)]
    assert missing == []


def test_without_a_driver_they_are_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the library cannot begin or cannot answer; it is said once."""
    monkeypatch.setattr(gpus, "detect_gpus", lambda: (0, 1))

    class Silent(MadeUp):
        def nvmlInit(self) -> None:
            raise self.NVMLError

    class Broken(MadeUp):
        def nvmlDeviceGetUUID(self, device: str) -> str:
            raise self.NVMLError(device)

    for library in (Silent(), Broken()):
        monkeypatch.setitem(sys.modules, "pynvml", library)
        assert found_gpus() == (Gpu(0), Gpu(1))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert found_gpus() == (Gpu(0), Gpu(1))


def test_runs_get_the_lowest_free_of_the_kind_they_asked_for() -> None:
    owned = (*numbered((0, 1, 2)), *FOUND[1:])
    assert chosen({"gpu": 2, "mig-1g.5gb": 1}, owned, [0]) == (1, 2, 200)
    with pytest.raises(ValueError, match="has 1, and 0 are free"):
        chosen({"mig-1g.5gb": 1}, owned, [200])


def test_they_are_named_by_uuid_where_that_is_known() -> None:
    assert visible((0, 202), FOUND) == "GPU-0,MIG-1.2"
    assert visible((1,), numbered((0, 1))) == "1"
