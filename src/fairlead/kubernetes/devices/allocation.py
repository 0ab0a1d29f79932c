"""Allocations: what the allocator's answer is in the API's words, as it is written on a claim.

Decides which configuration of class and claim goes along. Never decides which devices. Invariant: what only a driver
reads is passed on as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairlead.kubernetes.device_objects import Configuration, DeviceClass, ResourceClaimSpec
from fairlead.kubernetes.devices.allocator import Given
from fairlead.kubernetes.devices.inventory import nodes_for


def allocation_of(
    given: Iterable[Given], spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]
) -> dict[str, Any]:
    """What is written as `status.allocation` of a claim that gets these devices."""
    given = tuple(given)
    results = []
    for each in given:
        driver, pool, device = each.device.key
        more: dict[str, Any] = {"adminAccess": True} if each.option.admin else {}
        if each.option.tolerations:
            # By these Kubernetes' controller of device taints knows that its pods may stay.
            more["tolerations"] = msgspec.to_builtins(each.option.tolerations)
        results.append({"request": each.option.name, "driver": driver, "pool": pool, "device": device, **more})
    config = [*_of_classes(given, classes), *_of_claim(given, spec.devices.config or ())]
    terms = nodes_for(each.device for each in given)
    return {
        "devices": {"results": results, **({"config": config} if config else {})},
        **({"nodeSelector": {"nodeSelectorTerms": terms}} if terms else {}),
    }


def _of_classes(given: tuple[Given, ...], classes: Mapping[str, DeviceClass]) -> list[dict[str, Any]]:
    requests: dict[str, dict[str, None]] = {}
    for each in given:
        requests.setdefault(each.option.of_class, {})[each.option.name] = None
    return [
        {"source": "FromClass", "requests": list(names), "opaque": config.opaque}
        for of_class, names in requests.items()
        for config in (classes[of_class].spec.config if of_class in classes else None) or ()
    ]


def _of_claim(given: tuple[Given, ...], configs: Iterable[Configuration]) -> list[dict[str, Any]]:
    """What the claim says to all requests, or to one of those that were met."""
    met = {name for each in given for name in (each.option.name, each.option.request)}
    found: list[dict[str, Any]] = []
    for config in configs:
        names = config.requests or ()
        if not names or met.intersection(names):
            said = {"requests": list(names)} if names else {}
            found.append({"source": "FromClaim", **said, "opaque": config.opaque})
    return found
