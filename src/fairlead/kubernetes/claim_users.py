"""Claim users: which pods use which volume claims, and which claims have a volume, or wait for one of a class.

Decides nothing. Invariant: what concerns a change of a volume is found without looking at every claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.kubernetes.storage import Claim, Key


class ClaimUsers:
    """The claims of one cluster, and their pods."""

    def __init__(self) -> None:
        self._pods: dict[Key, dict[str, None]] = {}
        """Pods by identity."""
        self._wants: dict[Key, tuple[str, str]] = {}
        """By claim: the name of its volume; or nothing, and its class."""
        self._claims: dict[tuple[str, str], dict[Key, None]] = {}

    def put(self, key: Key, claim: Claim | None) -> None:
        """A claim is another one from now on, or gone."""
        if (before := self._wants.pop(key, None)) is not None:
            self._claims[before].pop(key)
            if not self._claims[before]:
                del self._claims[before]
        if claim is not None:
            wants = (claim.volume, "") if claim.volume else ("", claim.of_class)
            self._wants[key] = wants
            self._claims.setdefault(wants, {})[key] = None

    def with_volume(self, name: str) -> Iterator[Key]:
        """Claims that have this volume, or are about to."""
        yield from self._claims.get((name, ""), ())

    def of_class(self, name: str) -> Iterator[Key]:
        """Claims without a volume that are of this class."""
        yield from self._claims.get(("", name), ())

    def use(self, claims: Iterable[Key], uid: str) -> None:
        """A pod needs these claims from now on."""
        for key in claims:
            self._pods.setdefault(key, {})[uid] = None

    def leave(self, claims: Iterable[Key], uid: str) -> None:
        """A pod is no more."""
        for key in claims:
            users = self._pods.get(key)
            if users is not None:
                users.pop(uid, None)
                if not users:
                    del self._pods[key]

    def of(self, keys: Iterable[Key]) -> list[str]:
        """The pods that use one of these claims."""
        return list(dict.fromkeys(uid for key in keys for uid in self._pods.get(key, ())))
