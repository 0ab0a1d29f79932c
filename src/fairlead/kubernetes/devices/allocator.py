"""The allocator: which devices of a node the claims of a pod get.

Decides by a search through the devices that suit, in the order of pools, slices and devices; the first answer that
keeps all constraints is it. Never changes what it is given. Invariants: a device is given once, except for what only
observes; the search ends after `STEPS` steps, so that no claim keeps the scheduler busy.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from fairlead.kubernetes.devices.inventory import Device, Pool
from fairlead.kubernetes.devices.wishes import Option, Shape, Wish

STEPS = 20_000
MOST = 32
"""Devices that a claim can have; Kubernetes' limit."""


class NoAnswer(Exception):
    """The search cannot go on for this node; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Given:
    """A device for a request."""

    option: Option
    device: Device


Answer = tuple[tuple[Given, ...], ...]
"""By claim, what it gets."""
Suits = Callable[[Option, Device], bool]
"""Whether a device is one that the option selects. Raises `NoAnswer` where that cannot be said."""


def allocate(
    shape: Shape, pools: Sequence[Pool], taken: Container[tuple[str, str, str]], suits: Suits
) -> Answer | None:
    """What each claim gets; None: not all can be had. Raises `NoAnswer`."""
    search = _Search(shape, pools, taken, suits)
    if search.claim(0):
        return tuple(tuple(given) for given in search.given)
    if search.unusable and not search.some_taken:
        raise NoAnswer(search.unusable)
    return None


class _Search:
    """One search; each method answers whether all that is left can be had."""

    def __init__(self, shape: Shape, pools: Sequence[Pool], taken: Container[object], suits: Suits) -> None:
        self.given: list[list[Given]] = [[] for _ in shape]
        self._shape = shape
        self._pools = pools
        self._taken = taken
        self._suits = suits
        self._suitable: dict[Option, list[Device]] = {}
        self._steps = 0
        self.unusable = ""
        """Why one that would suit, or may, is given to nobody."""
        self.some_taken = False
        """One that would suit may become free."""

    def claim(self, at: int) -> bool:
        """All claims from this one on."""
        return at == len(self._shape) or self._request(at, 0)

    def _request(self, claim: int, at: int) -> bool:
        requests = self._shape[claim].requests
        if at == len(requests):
            return self.claim(claim + 1)
        return any(self._option(claim, at, option) for option in requests[at])

    def _step(self) -> None:
        self._steps += 1
        if self._steps > STEPS:
            raise NoAnswer("there are too many ways to give it devices; make its requests simpler")

    def _option(self, claim: int, request: int, option: Option) -> bool:
        self._step()
        devices = self._of(option)
        if not option.count:
            if not devices or not all(self._take(claim, option, device) for device in devices):
                done = False
            else:
                done = self._request(claim, request + 1)
            if not done:
                # Of all of them some may have been taken: none is kept.
                self.given[claim] = [g for g in self.given[claim] if g.option is not option]
            return done
        return self._some(claim, request, option, devices, 0, option.count)

    def _some(self, claim: int, request: int, option: Option, devices: list[Device], start: int, left: int) -> bool:
        if not left:
            return self._request(claim, request + 1)
        for at in range(start, len(devices) - left + 1):
            self._step()
            if not self._take(claim, option, devices[at]):
                continue
            if self._some(claim, request, option, devices, at + 1, left - 1):
                return True
            self.given[claim].pop()
        return False

    def _of(self, option: Option) -> list[Device]:
        """The devices that the option selects, whether they are free or not where it wants all of them."""
        found = self._suitable.get(option)
        if found is None:
            found = self._suitable[option] = list(self._find(option))
        return found

    def _find(self, option: Option) -> Sequence[Device]:
        found = []
        for pool in self._pools:
            if pool.flaw:
                if not option.count:
                    raise NoAnswer(pool.flaw)
                self.unusable = pool.flaw
                continue
            for device in pool.devices:
                if option.count and not option.admin and device.key in self._taken:
                    self.some_taken = True
                elif self._suits(option, device):
                    if device.unusable:
                        name = "/".join(device.key)
                        self.unusable = f"device {name} has {device.unusable}, which is not understood here"
                    if not device.unusable or not option.count:
                        found.append(device)
        return found

    def _take(self, claim: int, option: Option, device: Device) -> bool:
        """Give the claim the device, unless that cannot be."""
        mine = self.given[claim]
        if len(mine) >= MOST or device.unusable:
            return False
        among = (mine,) if option.admin else self.given
        if any(given.device is device for claims in among for given in claims):
            return False
        if not option.admin and device.key in self._taken:
            return False
        if not self._keeps(self._shape[claim], mine, option, device):
            return False
        mine.append(Given(option, device))
        return True

    @staticmethod
    def _keeps(wish: Wish, mine: list[Given], option: Option, device: Device) -> bool:
        """Whether the device has in common with those that the claim has already what it must."""
        for match in wish.matching:
            if not match.covers(option):
                continue
            value = device.attribute(match.attribute)
            if value is None:
                return False
            if any(match.covers(g.option) and g.device.attribute(match.attribute) != value for g in mine):
                return False
        return True
