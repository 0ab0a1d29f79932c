"""Suiting volumes: which of the cluster's volumes a claim could have.

Decides which free volumes do for a claim, and which is kept for it. Never gives one away. Invariant: what is found is
found once for all claims that want the same, until a volume changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.constraints import Requirement
from fairlead.core.model.matching import matches

if TYPE_CHECKING:
    from fairlead.kubernetes.storage import Claim, Key, Volume

Wish = tuple[str, str, bool, int, frozenset[str], tuple[Requirement, ...]]
"""What a claim wants of a free volume."""


class SuitingVolumes:
    """All volumes of one cluster."""

    def __init__(self) -> None:
        self.by_name: dict[str, Volume] = {}
        self._kept: dict[tuple[str, str, str], dict[str, None]] = {}
        """By the claim that they are kept for."""
        self._free: dict[Wish, list[str]] = {}
        """What was found since a free volume has changed."""

    def put(self, name: str, volume: Volume | None) -> None:
        """A volume is another one from now on, or gone."""
        before = self.by_name.pop(name, None)
        if before is not None:
            kept = self._kept[before.claim]
            del kept[name]
            if not kept:
                del self._kept[before.claim]
        if volume is not None:
            self.by_name[name] = volume
            self._kept.setdefault(volume.claim, {})[name] = None
        if before != volume and any(each.free for each in (before, volume) if each is not None):
            self._free.clear()

    def kept_for(self, key: Key, claim: Claim) -> str:
        """The volume that is kept for the claim; or nothing. One of another attributes class is passed over.

        People keep one by the claim's name alone, before there is one of that name; it must be large enough.
        """
        names = (*self._kept.get((*key, claim.uid), ()), *self._kept.get((*key, ""), ()))
        return next((name for name in names if self._is_usable(self.by_name[name], claim)), "")

    @staticmethod
    def _is_usable(volume: Volume, claim: Claim) -> bool:
        fits = bool(volume.claim[2]) or (volume.size >= claim.size and volume.block == claim.block)
        return fits and volume.terms is not None and volume.attributes_class == claim.attributes_class

    def free_for(self, claim: Claim) -> list[str]:
        """Free volumes that do for such a claim, from the smallest on."""
        wish = claim.wish
        if wish not in self._free:
            suiting = ((v.size, name) for name, v in self.by_name.items() if _does(v, claim))
            self._free[wish] = [name for _, name in sorted(suiting)]
        return self._free[wish]


def _does(volume: Volume, claim: Claim) -> bool:
    """Whether a volume is free, can be read, and has what the claim wants."""
    return (
        volume.terms is not None
        and volume.free
        and volume.of_class == claim.of_class
        and volume.attributes_class == claim.attributes_class
        and volume.block == claim.block
        and volume.size >= claim.size
        and volume.modes >= claim.modes
        and matches(claim.labels, volume.labels)
    )
