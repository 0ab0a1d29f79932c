"""Wishes: what a claim asks for, as frozen values by which equal claims are the same.

Decides how a claim is read, and what of it is not understood. Never looks at a device. Invariant: two claims with equal
wishes can have the same devices; what only a driver reads is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.kubernetes.device_objects import Exactly, Request, ResourceClaimSpec, Selector
from fairlead.kubernetes.objects import Toleration

ALL, EXACT = "All", "ExactCount"


class NotUnderstood(ValueError):
    """The claim says something that is not understood here; the sentence names the field."""


@dataclass(frozen=True, slots=True)
class Option:
    """Devices of one class: a request, or one of its alternatives."""

    request: str
    """The name of the request."""
    name: str
    """As results and constraints name it: `gpu`, or `gpu/large` for an alternative."""
    of_class: str
    selectors: tuple[str, ...]
    count: int
    """0: all there are."""
    admin: bool = False
    """It only observes: what others have is no obstacle, and is not taken from them."""
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """The devices of these requests (of all, if none is named) have the same value of an attribute."""

    attribute: str
    requests: tuple[str, ...] = ()

    def covers(self, option: Option) -> bool:
        """Whether it is about what the option gets."""
        return not self.requests or option.request in self.requests or option.name in self.requests


@dataclass(frozen=True, slots=True)
class Wish:
    """A claim: for each request the options, of which the first that can be had is taken."""

    requests: tuple[tuple[Option, ...], ...]
    matching: tuple[Match, ...] = ()

    def classes(self) -> dict[str, None]:
        """The names of the device classes that it is about."""
        return dict.fromkeys(option.of_class for options in self.requests for option in options)

    def __str__(self) -> str:
        said = (" or ".join(f"{o.count or 'all'} {o.of_class}" for o in options) for options in self.requests)
        return ", ".join(said)


Shape = tuple[Wish, ...]
"""The claims of a pod that have no devices yet, which all must be had on one node."""


def wish_of(spec: ResourceClaimSpec) -> Wish:
    """What a claim asks for. Raises `NotUnderstood`."""
    devices = spec.devices
    matching = []
    for constraint in devices.constraints or ():
        if constraint.distinct_attribute is not None:
            raise NotUnderstood("its constraint has distinctAttribute, which is not understood here")
        if constraint.match_attribute is None:
            raise NotUnderstood("its constraint has no matchAttribute, which is all that is understood here")
        matching.append(Match(constraint.match_attribute, tuple(constraint.requests or ())))
    return Wish(tuple(map(_options, devices.requests or ())), tuple(matching))


def _options(request: Request) -> tuple[Option, ...]:
    if request.exactly is not None:
        return (_option(request.name, request.name, request.exactly),)
    found = tuple(_option(request.name, f"{request.name}/{o.name}", o) for o in request.first_available or ())
    if not found:
        raise NotUnderstood(f"its request {request.name} has neither exactly nor firstAvailable")
    return found


def _option(request: str, name: str, given: Exactly) -> Option:
    mode = given.allocation_mode or EXACT
    if mode not in (ALL, EXACT):
        raise NotUnderstood(f"its request {name} has allocationMode {mode}, which is not understood here")
    if given.capacity is not None:
        raise NotUnderstood(f"its request {name} asks for capacity, a part of a device, which is not understood here")
    return Option(
        request=request,
        name=name,
        of_class=given.device_class_name,
        selectors=expressions(given.selectors, f"its request {name}"),
        count=0 if mode == ALL else given.count or 1,
        admin=bool(given.admin_access),
        tolerations=tuple(given.tolerations or ()),
    )


def expressions(selectors: list[Selector] | None, whose: str) -> tuple[str, ...]:
    """The expressions of selectors. Raises `NotUnderstood`."""
    for selector in selectors or ():
        if selector.cel is None:
            raise NotUnderstood(f"{whose} has a selector without cel, which is all that is understood here")
    return tuple(selector.cel.expression for selector in selectors or () if selector.cel is not None)
