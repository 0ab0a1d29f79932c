"""Gangs on a cluster: placeholder pods that keep room until all members of an application can start.

Decides which placeholder pods an application needs, and whether its members must still be held back. Never places
anything: the scheduler does, and it swaps members for placeholders. Invariant: a gang is declared once, by the first
pod of its application that enters; the names of its placeholders follow from it, so that none is created twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256

from fairlead.core.acts.gangs import DEFAULT_TIMEOUT_MS
from fairlead.core.model.specs import ApplicationSpec
from fairlead.kubernetes.acts import CreatePlaceholder, ObjectName
from fairlead.kubernetes.kinds import POD_GROUPS, VOLCANO_GROUPS
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.pod_store import KnownPod
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.identity import Gang, TaskGroup
from fairlead.kubernetes.workload_sizes import Parts

NAME_MAX = 63
_NO_NAME = re.compile(r"[^a-z0-9-]")
RESERVES = "gang-reserves"
"""The code of a pod that is held back meanwhile, ..."""
LACKS_ROOM = "gang-lacks-room"
"""... and where no placeholder pod is there to say that nodes are lacking."""
FAILED = "gang-failed"
"""The code of a pod whose gang (`Hard`) was not to be had in its time."""


@dataclass(slots=True)
class Declared:
    """The gang of one application."""

    application: ApplicationSpec
    gang: Gang
    owner: ObjectName
    priority_class: str
    user_info: str
    deadline_s: int | None = None
    """`activeDeadlineSeconds` of the pod that declared it: it counts for all, as they mostly come of one template."""
    standing: dict[str, None] = field(default_factory=dict)
    """Placeholders that have a node, and were not told to go."""
    begun: bool = False
    """All of them had one: members enter from now on."""
    given_up: bool = False
    """It was not to be had: placeholders that turn up now are of no use."""
    failed: bool = False
    """And its application with it (`Hard`): it is not tried again."""
    stand_ins: int = 0
    """So many keep its room that are no pods (`workloads`)."""
    parts: Parts = ()
    """What its placeholder pods ask for."""
    too_large: str = ""
    """Why all nodes together could not hold it, as a sentence: it takes no room then."""
    refused: str = ""
    """Why the API server does not take one of its placeholders, as a sentence."""
    refused_ms: int | None = None
    """Since when it takes none, or since when it is too large and has none with a node."""
    seen: tuple[int, str] = (0, "")
    """So many placeholders had a node at the last look, and that was in its way, ..."""
    told: tuple[int, str] = (0, "")
    """... and when its members were last told."""

    def take_news(self) -> bool:
        """Whether its members wait with something else than they were told, and it is the same as at the last look."""
        before, self.seen = self.seen, (0 if self.stand_ins else len(self.standing), self.in_its_way)
        if self.begun or self.seen != before or self.seen == self.told:
            return False
        self.told = self.seen
        return True

    @property
    def in_its_way(self) -> str:
        """Why it cannot have all of its room as things are, as a sentence; empty: nothing is known to be."""
        return self.too_large or self.refused

    @property
    def size(self) -> int:
        """How many placeholders it takes."""
        return self.stand_ins + sum(group.min_member for group in self.gang.groups)

    def placeholders(self) -> Iterator[CreatePlaceholder]:
        """All the placeholder pods of the gang."""
        for group in self.gang.groups:
            for number in range(group.min_member):
                yield self.placeholder(group, number)

    def placeholder_named(self, name: str) -> Iterator[CreatePlaceholder]:
        """The one of this name, if the gang has it; a large gang is not gone through for that."""
        number = identity.whole(name.rpartition("-")[2])
        for group in self.gang.groups:
            if number is not None and number < group.min_member:
                found = self.placeholder(group, number)
                if found.name == name:
                    yield found

    def placeholder(self, group: TaskGroup, number: int) -> CreatePlaceholder:
        """One of a group."""
        return CreatePlaceholder(
            self.owner.namespace,
            placeholder_name(self.application.id, group.name, number),
            self.application.id,
            self.application.queue,
            group,
            self.owner,
            self.priority_class,
            self.user_info,
            self.deadline_s,
        )


class Gangs:
    """The gangs of all applications."""

    def __init__(self) -> None:
        self.declared: dict[str, Declared] = {}

    def declare(self, application: ApplicationSpec, gang: Gang, owner: ObjectName, pod: Pod) -> Declared:
        """An application begins with a pod that declares its gang."""
        notes = pod.metadata.annotations or {}
        user_info, deadline_s = notes.get(identity.USER_INFO, ""), pod.spec.active_deadline_seconds
        found = Declared(application, gang, owner, pod.spec.priority_class_name or "", user_info, deadline_s)
        self.declared[application.id] = found
        return found

    def redeclare(self, application: ApplicationSpec) -> None:
        """An application that has not begun is declared otherwise."""
        if application.id in self.declared:
            self.declared[application.id].application = application

    def reserve(self, application: ApplicationSpec, size: int, owner: ObjectName, too_large: str) -> None:
        """A workload of this application begins when so many stand-ins have a node. `too_large`: why none has yet, of
        which all pods of a group are told at once.
        """
        found = Declared(application, Gang((), True, 0), owner, "", "", stand_ins=size, too_large=too_large)
        found.seen = 0, too_large
        if owner.kind in (POD_GROUPS, VOLCANO_GROUPS):
            found.told = found.seen
        self.declared[application.id] = found

    def too_large(self, application: str, why: str) -> None:
        """What is said of a workload that waits for more nodes; its pods are told once that stays as it is."""
        if application in self.declared:
            self.declared[application].too_large = why

    def holds_back(self, pod: KnownPod) -> bool:
        """Whether the gang of the pod's application reserves its room still: then only placeholders are placed, and
        none of one that is larger than all nodes.

        That holds for pods of no group as well, such as one that declares the groups.
        """
        found = self.declared.get(pod.application)
        if found is None or found.begun:
            return False
        return not pod.spec.placeholder or bool(found.parts and found.too_large)

    def obstacle(self, pod: KnownPod) -> tuple[str, str]:
        """Why a pod is held back: a code and a sentence."""
        found = self.declared[pod.application]
        so_far = f"{len(found.standing)} of {found.size} have it"
        if found.in_its_way:
            so_far = f"{so_far}; {found.in_its_way}"
        code = LACKS_ROOM if found.stand_ins or pod.spec.placeholder else RESERVES
        return code, f"the gang of application {pod.application} reserves its room: {so_far}"

    def refused(self, application: str, why: str, now_ms: int) -> bool:
        """The API server does not take a placeholder; empty: it has taken one since. True when it was so for all of the
        gang's time and none has a node: from then on that time would run by itself.
        """
        found = self.declared.get(application)
        if found is None or found.begun:
            return False
        found.refused = why
        return self._waits_in_vain(found, now_ms)

    def beyond_nodes(self, now_ms: int) -> list[str]:
        """Applications whose gang was too large for all nodes for all of its time: no timer of theirs would run."""
        gangs = self.declared.items()
        # (All of them are looked at whenever anything happens: what is most often so comes first.)
        lacking = [(a, g) for a, g in gangs if g.in_its_way or g.refused_ms is not None]
        return [a for a, g in lacking if g.parts and not g.begun and self._waits_in_vain(g, now_ms)]

    def _waits_in_vain(self, gang: Declared, now_ms: int) -> bool:
        if gang.standing or not gang.in_its_way:
            gang.refused_ms = None
        elif gang.refused_ms is None:
            gang.refused_ms = now_ms
        own_ms = gang.application.placeholder_timeout_ms or DEFAULT_TIMEOUT_MS
        return gang.refused_ms is not None and now_ms - gang.refused_ms >= own_ms

    def stands(self, placeholder: KnownPod) -> bool:
        """A placeholder has a node; True when the gang begins by that."""
        found = self.declared.get(placeholder.application)
        if found is None or found.begun:
            return False
        found.standing[placeholder.name.uid] = None
        found.begun = len(found.standing) >= found.size
        return found.begun

    def has_begun(self, member: KnownPod) -> bool:
        """A pod that is no placeholder has a node: the gang must have begun some time. True when that was not known."""
        found = self.declared.get(member.application)
        if found is None or found.begun:
            return False
        found.begun = True
        return True

    def begin(self, application: str) -> None:
        """Members enter from now on, whatever has a node by now."""
        found = self.declared.get(application)
        if found is not None:
            found.begun = True

    def gone(self, pod: KnownPod) -> None:
        """A pod has no node any more, or is about to lose it."""
        found = self.declared.get(pod.application)
        if found is not None:
            found.standing.pop(pod.name.uid, None)

    def give_up(self, application: str, *, failed: bool = False) -> None:
        """The gang waits for its placeholders no longer: members enter as plain work, unless it has `failed`."""
        found = self.declared.get(application)
        if found is not None:
            found.begun = found.given_up = True
            found.failed = failed

    def has_failed(self, application: str) -> bool:
        """Whether a gang that had to be whole was not to be had in its time."""
        found = self.declared.get(application)
        return found is not None and found.failed

    def noted(self, member: KnownPod) -> None:
        """A pod bears what a scheduler that begins later has to know of its gang; that of failed ones is told apart."""
        found = self.declared.get(member.application)
        if found is not None and found.gang.groups and found.begun and not found.failed:
            mark = identity.GANG_GIVEN_UP if found.given_up else identity.GANG_BEGUN
            member.name = replace(member.name, gang_mark=mark)

    def is_late(self, placeholder: KnownPod) -> bool:
        """Whether a placeholder comes too late: it was on its way while its gang was given up."""
        found = self.declared.get(placeholder.application)
        return placeholder.spec.placeholder and found is not None and found.given_up

    def forget(self, application: str) -> Declared | None:
        """The application has no pod any more."""
        return self.declared.pop(application, None)


def placeholder_name(application: str, group: str, number: int) -> str:
    """The name of a placeholder pod: it follows from what it stands for, and is a name that the API takes.

    What cannot stand in a name, is too long, or leaves open where the group begins, is told apart by a digest.
    """
    given = f"tg-{application}-{group}-{number}"
    if len(given) <= NAME_MAX and not _NO_NAME.search(given) and "-" not in group:
        return given
    tail = f"-{sha256(f'{application}/{group}'.encode()).hexdigest()[:10]}-{number}"
    head = _NO_NAME.sub("-", f"tg-{application}".lower())
    return f"{head[: NAME_MAX - len(tail)].rstrip('-')}{tail}"
