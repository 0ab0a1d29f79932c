"""Job templates: what pods ask for that a job will have, as the API server will complete them.

Decides what limit ranges, runtime classes and priority classes add to a template. Never decides when a job starts.
Invariant: what is read depends on what is known now; whoever changes that asks again whether it `differs`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlead.kubernetes.kinds import LIMIT_RANGES, RUNTIME_CLASSES, Kind
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.pod_reader import UNREADABLE
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.translate.constraints import selects_namespaces
from fairlead.kubernetes.translate.identity import IDLE, IdentityError
from fairlead.kubernetes.translate.pods import ask_of
from fairlead.kubernetes.translate.workloads import (
    QUEUE,
    WorkloadSpec,
    application_spec,
    as_one,
    with_class,
    with_label_keys,
    with_limits,
    with_runtime,
    with_whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.model.specs import ApplicationSpec, AskSpec
    from fairlead.kubernetes.informer import Informer
    from fairlead.kubernetes.workload_phase import Workload

WATCHED = (LIMIT_RANGES, RUNTIME_CLASSES)


class MissingError(IdentityError):
    """What a job or its template names is not there; the sentence names it."""


class JobTemplates:
    """Reads the templates of one informer's jobs."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._known: dict[Kind, dict[tuple[str, str], Any]] = {kind: {} for kind in WATCHED}
        """By namespace and name."""

    def take(self, change: Change) -> None:
        """A limit range or runtime class has changed."""
        if isinstance(change, Changed):
            meta = change.object.metadata
            self._known[change.kind][meta.namespace or "", meta.name] = change.object
        elif isinstance(change, Deleted):
            self._known[change.kind].pop((change.namespace, change.name), None)

    def application(self, spec: WorkloadSpec) -> ApplicationSpec:
        """The application of a job, of which its namespace says a part. Raises `UNREADABLE`."""
        around, namespace = self._informer.around, spec.name.namespace
        if around.lacks_namespace(namespace):
            raise MissingError(f"its namespace {namespace} is not known yet")
        return application_spec(spec, spec.pod_sets[0].template, around.namespace_notes(namespace))

    def asks(self, spec: WorkloadSpec) -> Iterator[tuple[AskSpec, int]]:
        """What keeps the room of each pod of a job, without a key, and how many pods these are. Raises `UNREADABLE`."""
        return zip(as_one(self._asks(spec)), (pods.count for pods in spec.pod_sets), strict=True)

    def _asks(self, spec: WorkloadSpec) -> Iterator[AskSpec]:
        around, images = self._informer.around, self._informer.images
        for pods in spec.pod_sets:
            ask = ask_of(self._completed(pods.template), around.namespaces_of, around.classes, images)
            if ask.idle:
                raise IdentityError(f"idle work starts with no job as a whole: leave out {IDLE}, or {QUEUE}")
            yield replace(ask, application=spec.application, priority_resolved=True, task_group=pods.name)

    def _completed(self, template: Pod) -> Pod:
        """As the API server makes a pod of it. Raises `MissingError` where that would refuse it."""
        ranges, runtimes = (self._known[kind] for kind in WATCHED)
        inside = [found for (space, _), found in sorted(ranges.items()) if space == template.metadata.namespace]
        runtime, classes = runtimes.get(("", template.spec.runtime_class_name or "")), self._informer.around.classes
        for what, name, found in (
            ("priority class", template.spec.priority_class_name, classes.get(template.spec.priority_class_name or "")),
            ("runtime class", template.spec.runtime_class_name, runtime),
        ):
            if name and found is None:
                raise MissingError(f"there is no {what} {name}, and without it no pod of it can be made")
        resolved = with_runtime(with_class(template, classes), runtime)
        return with_limits(with_whole(with_label_keys(resolved)), inside)

    def differ(self, known: Workload, *, by_namespaces: bool = False) -> bool:
        """Whether the pods of a job, whose room is reserved, would ask for something else by now, or what was wrong
        with it is so no more. `by_namespaces`: these alone are others than before.
        """
        if by_namespaces and not (known.flaw or any(selects_namespaces(p.template) for p in known.spec.pod_sets)):
            return False
        reserved = {each.spec.task_group: each.spec for each in known.stand_ins.values()}
        try:
            if known.flaw:
                self.application(known.spec)
            now = [ask for ask, _ in self.asks(known.spec)]
        except UNREADABLE as e:
            return str(e) != known.flaw
        return bool(known.flaw) or any(
            replace(ask, key=old.key, placeholder=old.placeholder) != old
            for ask, old in ((ask, reserved.get(ask.task_group, ask)) for ask in now)
        )
