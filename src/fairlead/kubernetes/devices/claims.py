"""Claims: what resource claims ask for, what they have, and which pods name them.

Decides why a pod has to wait for its claims whatever the nodes have, and on which nodes those with devices can be used.
Never gives a claim a device. Invariant: what nobody asked for is not read further than its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairlead.kubernetes.device_objects import DeviceClass, ResourceClaim, ResourceClaimSpec
from fairlead.kubernetes.devices.inventory import Key, terms_of
from fairlead.kubernetes.devices.wishes import NotUnderstood, Wish, expressions, wish_of
from fairlead.kubernetes.storage import Terms, both
from fairlead.kubernetes.translate.pods import PodClaim

Name = tuple[str, str]
"""Namespace and name of a claim."""
MOST_USERS = 256
"""Pods that may use a claim at once; Kubernetes' limit."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim."""

    uid: str
    version: str
    spec: ResourceClaimSpec
    wish: Wish | None
    flaw: str
    """Why it has no wish: what of it is not understood."""
    allocated: bool
    devices: tuple[Key, ...]
    """That it has for itself."""
    terms: Terms | None
    """Where these can be used; None: that cannot be read."""
    users: frozenset[str]
    """Pods by identity, as the server has them."""
    leaving: bool
    owners: frozenset[str]


class Claims:
    """All claims and classes, and whose claims they are."""

    def __init__(self) -> None:
        self.known: dict[Name, Claim] = {}
        self.classes: dict[str, DeviceClass] = {}
        self._users: dict[Name, dict[str, None]] = {}

    def put(self, given: ResourceClaim) -> Name:
        """A claim is new or has changed."""
        name = (given.metadata.namespace or "default", given.metadata.name)
        self.known[name] = _claim(given)
        return name

    def use(self, claims: Iterable[PodClaim], uid: str) -> None:
        """A pod needs these claims from now on."""
        for each in claims:
            if each.claim is not None:
                self._users.setdefault(each.claim, {})[uid] = None

    def leave(self, claims: Iterable[PodClaim], uid: str) -> None:
        """A pod is no more."""
        for each in claims:
            users = self._users.get(each.claim) if each.claim is not None else None
            if users is not None and each.claim is not None:
                users.pop(uid, None)
                if not users:
                    del self._users[each.claim]

    def users_of(self, names: Iterable[Name]) -> list[str]:
        """The pods that name one of these claims."""
        return list(dict.fromkeys(uid for name in names for uid in self._users.get(name, ())))

    def of_class(self, name: str) -> Iterator[Name]:
        """Claims that pods name and that are about a class."""
        for claim in self._users:
            known = self.known.get(claim)
            if known is not None and known.wish is not None and name in known.wish.classes():
                yield claim

    # -- questions ------------------------------------------------------------------------------------------------

    def why_not(self, claims: Iterable[PodClaim], uid: str) -> str:
        """Why a pod with these claims cannot have a node yet, as a sentence; empty: nothing is in the way."""
        return next(filter(None, (self._why_not(each, uid) for each in claims)), "")

    def _why_not(self, each: PodClaim, uid: str) -> str:
        if each.claim is None:
            return (
                f"its resource claim {each.name} (resourceClaims) is not made yet; "
                f"the controller of resource claims makes it from template {each.template}"
            )
        its, claim = f"its resource claim {'/'.join(each.claim)}", self.known.get(each.claim)
        if claim is None:
            return f"{its} is not there; it starts when that is there"
        if claim.leaving:
            return f"{its} is being deleted; it starts when that is there anew"
        if each.template and uid not in claim.owners:
            return f"{its} was made for another pod; it starts when there is one of its own"
        if claim.allocated:
            if claim.terms is None:
                return f"the nodes of {its[4:]} cannot be read"
            is_full = len(claim.users) >= MOST_USERS and uid not in claim.users
            return f"{its} is used by {MOST_USERS} pods, the most that are allowed" if is_full else ""
        if claim.wish is None:
            return f"{its} cannot be met: {claim.flaw}"
        missing = next((name for name in claim.wish.classes() if name not in self.classes), None)
        return f"device class {missing} of {its[4:]} is not there" if missing is not None else ""

    def nodes_for(self, claims: Iterable[PodClaim]) -> Terms:
        """The terms on nodes of which one must hold for the devices that these claims have."""
        found: Terms = ()
        for each in claims:
            claim = self.known.get(each.claim) if each.claim is not None else None
            if claim is not None and claim.allocated:
                found = both(found, claim.terms or ())
        return found

    def selectors_of(self, of_class: str) -> tuple[str, ...]:
        """The expressions of a class. Raises `NotUnderstood`."""
        known = self.classes.get(of_class)
        if known is None:
            raise NotUnderstood(f"device class {of_class} is not there")
        return expressions(known.spec.selectors, f"device class {of_class}")


def _claim(given: ResourceClaim) -> Claim:
    meta, allocation = given.metadata, given.status.allocation
    wish, flaw = None, ""
    try:
        wish = wish_of(given.spec)
    except NotUnderstood as e:
        flaw = str(e)
    results = (allocation.devices.results if allocation is not None else None) or ()
    return Claim(
        uid=meta.uid or "",
        version=meta.resource_version or "",
        spec=given.spec,
        wish=wish,
        flaw=flaw,
        allocated=allocation is not None,
        # A part of a device keeps the others from being given here: what is left of it is not known.
        devices=tuple((r.driver, r.pool, r.device) for r in results if not r.admin_access),
        terms=terms_of(allocation.node_selector) if allocation is not None else (),
        users=frozenset(user.uid or "" for user in given.status.reserved_for or ()),
        leaving=bool(meta.deletion_timestamp),
        owners=frozenset(owner.uid or "" for owner in meta.owner_references or () if owner.controller),
    )
