"""Placeholders: what the gangs of one informer lack, and what enters when a gang has all of its room.

Decides when placeholder pods are made, when they need not be made any more, and when members enter. Never places
anything. Invariant: a member enters only when every placeholder of its gang has a node, or the gang is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from fairlead.core.model.events import Event, RemoveApplication
from fairlead.core.model.resources import NOTHING
from fairlead.core.model.specs import TAG_FORCE_CREATE
from fairlead.kubernetes.acts import DeletePod, DropPlaceholder
from fairlead.kubernetes.bodies import placeholder
from fairlead.kubernetes.gangs import Declared
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.pod_reader import UNREADABLE
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.translate.identity import GANG_GIVEN_UP
from fairlead.kubernetes.translate.pods import ask_of, gang_failure, gang_mark
from fairlead.kubernetes.workload_sizes import Parts, asked_once, parts_of

if TYPE_CHECKING:
    from fairlead.kubernetes.informer import Informer


class Placeholders:
    """The placeholders of one informer."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self.is_empty: Callable[[str], bool] = lambda _: False
        """Whoever has the books says whether an application is there of which nothing ever was."""
        self.why_too_large: Callable[[Parts], str] = lambda _: ""
        """The same: why all nodes could not hold so many at once."""

    def count_in(self, known: KnownPod) -> Iterator[Event]:
        """A placeholder has a node: when it was the last one, the members of its gang enter."""
        if known.foreign:
            return
        gangs = self._informer.gangs
        begins = gangs.stands(known) if known.spec.placeholder else gangs.has_begun(known)
        if begins:
            self._informer.workloads.has_room(known.application)
            yield from self.release_members(known.application)

    def release_members(self, application: str) -> Iterator[Event]:
        """Pods of an application that were held back enter, as far as they may; of a gang that is given up its
        placeholders are there still, and on their way out.
        """
        for member in self._informer.pod_store.members(application):
            self._informer.gangs.noted(member)
            is_useless = member.spec.placeholder and member.leaving and not member.bound
            if member.books is Books.OUT and not is_useless and self._informer.may_enter(member):
                yield from self._informer.enter(member)

    def begin(self, application: str) -> Iterator[Event]:
        """Pods of an application enter, whatever has room by now; that all of it has none is no reason against it."""
        informer = self._informer
        informer.gangs.begin(application)
        if application in informer.specs:
            informer.specs[application] = replace(informer.specs[application], placeholder_ask=NOTHING)
            informer.refused.pop(application, None)
        yield from self.release_members(application)

    def try_again(self, application: str) -> Iterator[Event]:
        """An application that was refused is tried again; one with a gang by itself, its members follow much later."""
        informer = self._informer
        del informer.refused[application]
        declared = informer.gangs.declared.get(application)
        if declared is not None and declared.gang.groups and not declared.begun:
            yield from informer.introduce(application)
        yield from self.release_members(application)

    def expel(self, application: str) -> Iterator[Event]:
        """An application leaves the books before it is declared anew. What has just ended is there for a while still,
        and would take in pods without being accepted, so that no placeholder would be made.
        """
        if application in self._informer.applications:
            del self._informer.applications[application]
            yield RemoveApplication(application, self._informer.partition)

    def expel_empty(self, application: str) -> Iterator[Event]:
        """A pod has gone: its application goes with the last one, where nothing of it was ever in the books. No timer
        would end it there.
        """
        if application not in self._informer.pod_store.by_application and self.is_empty(application):
            yield from self.expel(application)

    def hold_back(self, members: Iterable[KnownPod]) -> Iterator[Event]:
        """What is to start together waited in line as plain pods."""
        for member in members:
            if member.books is Books.WAITING:
                yield from self._informer.withdraw(member)

    def lost_room(self, placeholder: KnownPod) -> None:
        """Its node would not take it any more: before its gang begins it is made anew, for another place."""
        gang = self._informer.gangs.declared.get(placeholder.application)
        if gang is not None and not (gang.begun or placeholder.leaving or placeholder.stopping):
            placeholder.leaving = True
            self._informer.gangs.gone(placeholder)
            self._informer.acts.append(DeletePod(placeholder.name))

    def settle(self) -> Iterator[Event]:
        """Nodes are other than before: a gang that all of them could not hold gives its room back, and takes none
        before they could.
        """
        informer, why_too_large = self._informer, asked_once(self.why_too_large)
        for application, gang in [(a, g) for a, g in informer.gangs.declared.items() if g.parts and not g.begun]:
            before, gang.too_large = gang.too_large, why_too_large(gang.parts)
            if not (before or gang.too_large):
                continue
            made = [member for member in informer.pod_store.members(application) if member.spec.placeholder]
            has_room = any(each.books is Books.PLACED for each in made)
            if not (gang.too_large or has_room or self.is_empty(application)):
                yield from self.expel(application)  # With the last of its placeholders it was about to end.
            for each in made:
                if gang.too_large and each.books is Books.PLACED:
                    self.lost_room(each)
                elif gang.too_large and each.books is Books.WAITING:
                    yield from informer.withdraw(each)
                    informer.may_enter(each)  # It is told why it may not.
                elif not gang.too_large and each.books is Books.OUT and informer.may_enter(each):
                    yield from informer.enter(each)

    def _look_at_size(self, gang: Declared) -> None:
        """Whether all nodes could hold a gang, by what its placeholder pods are going to ask for."""
        informer, around = self._informer, self._informer.around
        firsts = [gang.placeholder(group, 0) for group in gang.gang.groups if group.min_member]
        made = [msgspec.convert(placeholder(first, informer.scheduler_name), Pod) for first in firsts]
        try:
            asks = [ask_of(pod, around.namespaces_of, around.classes) for pod in made]
        except UNREADABLE:
            return  # Its placeholders say so.
        gang.parts = parts_of(
            ask for first, ask in zip(firsts, asks, strict=True) for _ in range(first.group.min_member)
        )
        gang.too_large = self.why_too_large(gang.parts)

    def decided_before(self, known: KnownPod, pod: Pod) -> Iterator[Event]:
        """A pod says that its gang has failed, and why, has begun or was given up: another scheduler was there before,
        and it is not waited for again.
        """
        informer, application = self._informer, known.application
        gang = informer.gangs.declared.get(application)
        if gang is None:
            return
        why, mark = gang_failure(pod), gang_mark(pod)
        if not gang.begun and why:
            informer.gangs.give_up(application, failed=True)
            informer.refused[application] = why
            yield from self.expel(application)
        elif not gang.begun and mark:
            yield from self._go_on(application, given_up=mark == GANG_GIVEN_UP)
        if known.bound and known.books is Books.OUT and not known.leaving and informer.gangs.is_late(known):
            known.leaving = True
            informer.acts.append(DeletePod(known.name))
        informer.gangs.noted(known)

    def _go_on(self, application: str, *, given_up: bool) -> Iterator[Event]:
        """A gang has begun before, or was given up: its members enter. With that its placeholders go."""
        informer = self._informer
        if given_up:
            informer.gangs.give_up(application)
        made = [each for each in informer.pod_store.members(application) if each.spec.placeholder]
        for each in made if given_up else ():
            if not each.bound:
                informer.stand(each, Books.OUT)
            if not each.leaving:
                each.leaving = True
                informer.acts.append(DeletePod(each.name))
        yield from self.expel(application)
        for each in made:
            informer.pod_store.house(each)  # It runs still, and is about to be in the books again.
        yield from self.begin(application)

    def force(self, known: KnownPod) -> Iterator[Event]:
        """A pod of an application that is refused has a node. It runs: whatever the queues say by now, it has to be in
        the books, and so large a gang does not come any more. A placeholder keeps its room for nothing.
        """
        informer, application = self._informer, known.application
        if known.spec.placeholder:
            informer.acts.append(DeletePod(known.name))
        elif not (known.flaw or informer.gangs.has_failed(application)):
            del informer.refused[application]
            spec = informer.specs[application]
            tags = {**spec.tags, TAG_FORCE_CREATE: "true"}
            informer.specs[application] = replace(spec, tags=tags, placeholder_ask=NOTHING)
            yield from informer.introduce(application)
            yield from self.release_members(application)

    def complete(self, application: str, only: str = "") -> None:
        """Create the placeholders that a gang lacks, or of these `only` the one of this name.

        They go with the pod that owns them, at first the one that declared the gang; where that is gone, or goes, the
        cluster would delete them at once, again and again. The next pod of the application owns them then.
        """
        informer = self._informer
        declared = informer.gangs.declared.get(application)
        if not informer.live or declared is None or declared.begun or application in informer.refused:
            return
        owner = informer.pod_store.by_uid.get(declared.owner.uid)
        if owner is None or owner.leaving:
            members = informer.pod_store.members(application)
            owner = next((m for m in members if not (m.spec.placeholder or m.leaving)), None)
            if owner is None:
                return
            declared.owner = owner.name
        if not declared.parts:
            self._look_at_size(declared)
        for each in declared.placeholder_named(only) if only else declared.placeholders():
            if informer.pod_store.named(each.namespace, each.name) is None:
                informer.acts.append(each)

    def drop(self, gang: Declared | None) -> None:
        """Those that are not there yet need not be made any more."""
        for each in gang.placeholders() if gang is not None else ():
            if self._informer.pod_store.named(each.namespace, each.name) is None:
                self._informer.acts.append(DropPlaceholder(each.namespace, each.name))
