"""Admission: what the priority class of new work means for it, and whether its quotas have room.

Decides the priority that new work gets and whether it is refused because of its class. Never touches work that is there
already, nor work that is reported with the node it runs on: that was admitted before. Invariant: an admitted ask has
the value of the class that it names.

How a priority comes about:
* a class is named: its value, and its policy. A priority beside it must be the same or 0, which says nothing;
* neither class nor priority is given: the global default, if there is one, as if it had been named;
* a priority alone, or one that was resolved elsewhere, even if it is 0: that priority, and no class.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.books.admission import Admission
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.class_quotas import ClassQuotas
from fairlead.core.books.classes import NEVER
from fairlead.core.model.reasons import PriorityMismatch, Reason, UnknownPriorityClass
from fairlead.core.model.resources import Items
from fairlead.core.model.specs import AskSpec


def admit(
    admission: Admission, queue: str, spec: AskSpec, app: Application | None = None, *, enters: bool = True
) -> AskSpec | Reason:
    """The ask as it enters the books, with its class resolved; or why it is not admitted to the queue of this path.

    What does not enter the line yet (`enters`) needs no room in quotas before it does.
    """
    resolved = with_class(admission, spec)
    if isinstance(resolved, Reason):
        return resolved
    if enters:
        return why_beyond_quota(admission, queue, resolved, app) or resolved
    refused = (
        admission.quotas.why_not_allowed(queue, resolved.priority_class) if _is_limited(admission, resolved) else None
    )
    return refused or resolved


def why_beyond_quota(admission: Admission, queue: str, spec: AskSpec, app: Application | None = None) -> Reason | None:
    """Why the quotas have no room for an ask whose class is resolved; None when they have.

    The placeholders of a task group and its work that waits do not count beside each other: one goes as the other
    comes, and a gang has one place each.
    """
    wanted = (queue, spec.priority_class, spec.resources.items, _is_limited(admission, spec))
    obstacle = admission.quotas.obstacle(*wanted)
    if obstacle is None or app is None or not spec.task_group:
        return obstacle
    return admission.quotas.obstacle(*wanted, _doubled(app, spec))


def _is_limited(admission: Admission, spec: AskSpec) -> bool:
    found = admission.classes.get(spec.priority_class)
    return found is not None and found.limited


def _doubled(app: Application, spec: AskSpec) -> list[Ask]:
    """What of its gang does not count beside the ask: what has the place that it takes, or will take its place, and in
    the other groups as much of what has no node yet as there are placeholders.
    """
    groups: dict[str, tuple[list[Ask], list[Ask]]] = {spec.task_group: ([], [])}
    for ask in app.asks.values():
        if ask.spec.task_group and (ask.spec.placeholder or ask.node is None):
            groups.setdefault(ask.spec.task_group, ([], []))[ask.spec.placeholder].append(ask)
    coming, places = groups.pop(spec.task_group)
    beside = list(coming if spec.placeholder else places)
    for coming, places in groups.values():
        beside += coming[: len(places)]
    return beside


class Trial:
    """Admission of several asks before any of them enters: each counts for those after it."""

    def __init__(self, admission: Admission) -> None:
        self._admission = Admission()
        self._admission.classes = admission.classes
        self._admission.quotas = admission.quotas.copied()

    def admit(self, queue: str, spec: AskSpec, *, enters: bool = True) -> AskSpec | Reason:
        """What `admit` will say when those before it have entered."""
        admitted = admit(self._admission, queue, spec, enters=enters)
        if enters and not isinstance(admitted, Reason):
            self._admission.quotas.add(queue, admitted.priority_class, admitted.resources.items, 1)
        return admitted


def with_class(admission: Admission, spec: AskSpec) -> AskSpec | Reason:
    """The ask with what its class, or the global default, says; or why its class does not do."""
    classes = admission.classes
    if spec.priority_class:
        found = classes.get(spec.priority_class)
        if found is None:
            return UnknownPriorityClass(spec.priority_class, tuple(known.name for known in classes))
        if spec.priority not in (0, found.value):
            return PriorityMismatch(found.name, found.value, spec.priority)
    elif spec.priority or spec.priority_resolved or classes.default is None:
        return spec
    else:
        found = classes.default
    return replace(
        spec,
        priority_class=found.name,
        priority=found.value,
        allow_preempt_other=spec.allow_preempt_other and found.preemption_policy != NEVER,
        min_runtime_ms=found.min_runtime_ms,
    )


def as_reported(admission: Admission, spec: AskSpec) -> AskSpec:
    """Work that runs already: its priority is what it was admitted with; where none is told, its class says it, and at
    any rate, as it is now, for how long it is protected.
    """
    if spec.priority or not spec.priority_class:
        found = admission.classes.get(spec.priority_class)
        if found is None or spec.min_runtime_ms:
            return spec
        return replace(spec, min_runtime_ms=found.min_runtime_ms)
    resolved = with_class(admission, spec)
    return spec if isinstance(resolved, Reason) else resolved


def why_not_larger(admission: Admission, ask: Ask, new: Items, path: str = "") -> Reason | None:
    """Why a waiting ask cannot become as large as `new`; None when its quotas have room, or it does not grow.

    `path`: once it is in that queue, and counts there; empty: in its own.
    """
    old = dict(ask.items)
    more = tuple((name, amount - old.get(name, 0)) for name, amount in new if amount > old.get(name, 0))
    if not more:
        return None
    path = path or ask.app.queue.path
    return as_moved(admission, ask.app, path).obstacle(path, ask.spec.priority_class, more, limited=False)


def as_moved(admission: Admission, app: Application, path: str) -> ClassQuotas:
    """The quotas with their figures as they are once an application counts in this queue; to be looked at alone."""
    if path == app.queue.path:
        return admission.quotas
    quotas = admission.quotas.copied()
    for ask in app.asks.values():
        quotas.count(ask, -1)
        quotas.add(path, ask.spec.priority_class, ask.items, 1)
    return quotas
