"""Rules: which namespaces take part, what their pods are given, and who is believed.

Decides from names and notes alone. Never looks at a pod. A pattern is one of a shell: `*` stands for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from fairlead.kubernetes.translate import identity

ENABLED = "fairlead.io/enabled"
"""Label or annotation of a namespace: `true` or `false` whatever the patterns say."""
ENABLED_THERE = f"{identity.DOMAIN}namespace.enableYuniKorn"
"""YuniKorn's word for the same."""
APPLICATIONS = "fairlead.io/applications"
"""Label or annotation of a namespace: another `Applications` than usual."""
GENERATE_THERE = f"{identity.DOMAIN}namespace.generateAppId"
"""YuniKorn's word: whether pods without an application get one here."""
CONTROLLERS = ("system:serviceaccount:kube-system:*", "system:kube-controller-manager")
"""Who makes pods from what others declared."""


class Applications(Enum):
    """Which application a pod joins that names none."""

    NAMESPACE = "namespace"
    """One for all such pods of the namespace."""
    OWNER = "owner"
    """One for each job, replica set or other owner; pods without an owner have one each."""
    POD = "pod"
    """One for each pod."""
    NONE = "none"
    """Nothing is written; the scheduler takes such pods of a namespace as one application."""


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """What a webhook is started with."""

    scheduler_name: str = "fairlead"
    namespaces: tuple[str, ...] = ("*",)
    """Patterns: pods of these that name no scheduler are given ours."""
    excluded: tuple[str, ...] = ("kube-*",)
    """Patterns: of these not; they count before `namespaces`."""
    applications: Applications = Applications.NAMESPACE
    write_users: bool = True
    """Write into each pod who submitted it, and guard what is written."""
    controllers: tuple[str, ...] = CONTROLLERS
    """Patterns: users whose pods keep the submitter that their template names."""
    trusted_users: tuple[str, ...] = ()
    """Patterns: users who may name somebody else as the submitter."""
    trusted_groups: tuple[str, ...] = ()

    def takes_part(self, namespace: str, notes: Mapping[str, str]) -> bool:
        """Whether pods of the namespace that name no scheduler are ours."""
        for name in (ENABLED, ENABLED_THERE):
            word = truth(notes.get(name, ""))
            if word is not None:
                return word
        return matches(namespace, self.namespaces) and not matches(namespace, self.excluded)

    def applications_in(self, notes: Mapping[str, str]) -> Applications:
        """Which application a pod joins that names none, in a namespace with these notes."""
        for kind in Applications:
            if notes.get(APPLICATIONS, "") == kind.value:
                return kind
        word = truth(notes.get(GENERATE_THERE, ""))
        if word is None:
            return self.applications
        if not word:
            return Applications.NONE
        return self.applications if self.applications is not Applications.NONE else Applications.NAMESPACE

    def is_controller(self, user: str) -> bool:
        """Whether the user makes pods from what others declared."""
        return matches(user, self.controllers)

    def is_trusted(self, user: str, groups: Iterable[str]) -> bool:
        """Whether the user may say for whom he submits."""
        return matches(user, self.trusted_users) or any(matches(group, self.trusted_groups) for group in groups)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether at least one pattern fits."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def truth(text: str) -> bool | None:
    """`true` or `false`; None for anything else."""
    return {"true": True, "false": False}.get(text.strip().lower())
