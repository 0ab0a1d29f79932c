"""Pods and what makes pods: what is written into them before they are stored, and what is refused.

Decides from names and notes alone which namespaces take part, what their pods are given and who is believed (a pattern
is one of a shell: `*` stands for anything), and so scheduler, queue, application and submitter of a pod. Never changes
what a pod says of itself, save a submitter that it has no right to name. Invariant: deciding twice changes nothing
more.

A controller (a job, a deployment) makes its pods later and in its own name. So the submitter is written into the
template when somebody declares it, and the pods bring him along.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from fairlead.kubernetes.admission.review import ALLOWED, INVALID, Changes, Question, Verdict
from fairlead.kubernetes.objects import Pod, Reference
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.amounts import AmountError
from fairlead.kubernetes.translate.identity import IdentityError, Submitter
from fairlead.kubernetes.translate.workloads import QUEUE

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


DEFAULT_SCHEDULER = "default-scheduler"
TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind has its pod."""
KUEUE, KUEUE_MANAGED = "kueue.x-k8s.io/", "kueue.x-k8s.io/managed"
"""How labels of Kueue begin, and the one that it puts on pods which it has taken into its care."""
LABEL_MAX = 63


def review(question: Question, rules: AdmissionRules, notes: Mapping[str, str]) -> Verdict:
    """What becomes of a pod or of what makes pods; `notes` are labels and annotations of its namespace."""
    kind = question.kind.kind
    at = TEMPLATES.get(kind)
    if at is None or question.sub_resource or question.operation not in ("CREATE", "UPDATE"):
        return ALLOWED
    part = _part(question.object, at)
    if part is None:
        return ALLOWED
    try:
        pod = msgspec.convert(part, Pod)
    except msgspec.ValidationError as e:
        return Verdict(False, f"{kind} cannot be read: {e}", INVALID)
    namespace = question.namespace or pod.metadata.namespace or "default"
    whole = kind == "Job" and question.operation == "CREATE" and bool(_note(question.object, QUEUE))
    ours = is_ours(pod, namespace, rules, notes) or (whole and _names_no_other(pod, rules))
    changes = Changes(question.object)
    if rules.write_users:
        before = _as_pod(_part(question.old_object, at)) if question.operation == "UPDATE" else None
        news = ours and (before is None or not is_ours(before, namespace, rules, notes))
        refusal = _guarded(question, rules, pod, before)
        if refusal:
            return Verdict(False, refusal)
        text = _missing(question, rules, pod, before, news) if ours else ""
        if text:
            changes.put((*at, "metadata", "annotations", identity.USER_INFO), text)
    if not ours:
        return ALLOWED
    if whole:
        # It is let go on when all of it has room.
        changes.put(("spec", "suspend"), True)
        changes.put((*at, "spec", "schedulerName"), rules.scheduler_name)
    if kind == "Pod" and question.operation == "CREATE":
        _belonging(question, rules, notes, pod, namespace, changes)
    foreign = _of_kueue(question, at, pod) if question.operation == "CREATE" else ()
    return Verdict(patch=tuple(changes.operations), warnings=(*_warnings(pod), *foreign))


def _as_pod(part: dict[str, Any] | None) -> Pod | None:
    """What was stored before; None for what cannot be read, which then counts as new."""
    try:
        return None if part is None else msgspec.convert(part, Pod)
    except msgspec.ValidationError:
        return None


def is_ours(pod: Pod, namespace: str, rules: AdmissionRules, notes: Mapping[str, str]) -> bool:
    """Whether the pod is, or is about to be, scheduled by us."""
    if identity.is_mirror(pod):
        return False
    named = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    return named == rules.scheduler_name or (named == DEFAULT_SCHEDULER and rules.takes_part(namespace, notes))


def _names_no_other(pod: Pod, rules: AdmissionRules) -> bool:
    return (pod.spec.scheduler_name or DEFAULT_SCHEDULER) in (rules.scheduler_name, DEFAULT_SCHEDULER)


def _note(thing: Any, name: str) -> str:
    """What a label or annotation of this name says."""
    found = (_part(thing, ("metadata", where)) for where in ("labels", "annotations"))
    return next((str(notes[name]) for notes in found if notes and notes.get(name)), "")


def _part(thing: Any, at: tuple[str, ...]) -> dict[str, Any] | None:
    for name in at:
        thing = thing.get(name) if isinstance(thing, dict) else None
    return thing if isinstance(thing, dict) else None


# -- who submitted it ---------------------------------------------------------------------------------------------


def _guarded(question: Question, rules: AdmissionRules, pod: Pod, before: Pod | None) -> str:
    """Why a submitter that is named must be refused; nothing when he may stay.

    That is asked of every pod, also of those that are not ours: they may become ours.
    """
    said = _named(pod)
    user, groups = question.user, question.groups
    if said is None or said == _named(before) or rules.is_controller(user):
        return ""
    try:
        claimed = msgspec.json.decode(said, type=Submitter)
    except msgspec.MsgspecError as e:
        return f'annotation {identity.USER_INFO} must look like {{"user": "ada", "groups": ["staff"]}}: {e}'
    whom = claimed.user or ""
    if rules.is_trusted(user, groups) or (whom == user and set(claimed.groups or ()) <= set(groups)):
        return ""
    return (
        f"user {user!r} may not submit in the name of {whom!r}: leave out the annotation {identity.USER_INFO}, "
        "it is written for you"
    )


def _missing(question: Question, rules: AdmissionRules, pod: Pod, before: Pod | None, news: bool) -> str:
    """The submitter that has to be written; nothing when he is named or nobody is to be made up.

    `news`: it was not ours before. What has run without a submitter is left so: a change of a template starts its pods
    anew.
    """
    earlier = _named(before)
    if _named(pod) is not None or rules.is_controller(question.user):
        return ""
    if earlier is not None:
        return "" if rules.is_trusted(question.user, question.groups) else earlier
    submitter = {"user": question.user, "groups": list(question.groups)}
    return msgspec.json.encode(submitter).decode() if news else ""


def _named(pod: Pod | None) -> str | None:
    return None if pod is None else (pod.metadata.annotations or {}).get(identity.USER_INFO)


# -- where it belongs ---------------------------------------------------------------------------------------------


def _belonging(
    question: Question,
    rules: AdmissionRules,
    notes: Mapping[str, str],
    pod: Pod,
    namespace: str,
    changes: Changes,
) -> None:
    """Scheduler, queue and application of a new pod, where it names none."""
    if pod.spec.scheduler_name != rules.scheduler_name:
        changes.put(("spec", "schedulerName"), rules.scheduler_name)
    queue = notes.get(identity.QUEUE, "")
    if queue and not identity.queue_of(pod):
        # A long path is no valid label; as an annotation it is read as well.
        where = "labels" if identity.LABEL_VALUE.fullmatch(queue) else "annotations"
        changes.put(("metadata", where, identity.QUEUE), queue)
    if not _names_application(pod):
        name = application_name(question, rules.applications_in(notes), pod, namespace)
        if name:
            changes.put(("metadata", "labels", identity.APP_ID), name)


def application_name(question: Question, how: Applications, pod: Pod, namespace: str) -> str:
    """The application of a pod that names none; nothing where none is to be written."""
    if how is Applications.NONE:
        return ""
    if how is Applications.NAMESPACE:
        return _fitting(f"yunikorn-{namespace}-autogen")
    owner = next((o for o in pod.metadata.owner_references or () if o.controller), None)
    if how is Applications.OWNER and owner is not None:
        return _fitting(f"{namespace}-{owner.name}-{_mark(owner)}")
    return _fitting(f"{namespace}-{question.uid}")


def _names_application(pod: Pod) -> bool:
    labels, notes = pod.metadata.labels or {}, pod.metadata.annotations or {}
    named = any(labels.get(name) for name in identity.APP_ID_LABELS) or bool(notes.get(identity.APP_ID))
    return named or bool(identity.pod_group_of(pod) or identity.owner_application(pod))


def _mark(owner: Reference) -> str:
    return (owner.uid or owner.kind or "")[:8]


def _fitting(name: str) -> str:
    """A name that is short enough for a label; a long one is told apart by a digest of the whole."""
    if len(name) <= LABEL_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: LABEL_MAX - 11].rstrip('-._')}-{digest}"


def _of_kueue(question: Question, at: tuple[str, ...], pod: Pod) -> tuple[str, ...]:
    """What labels of Kueue do here, told to whoever submits something with one and with none of ours. What Kueue makes
    itself, or has taken into its care, bears its mark: it needs no advice.
    """
    thing = question.object
    labels = {**(_part(thing, (*at, "metadata", "labels")) or {}), **(_part(thing, ("metadata", "labels")) or {})}
    used = sorted(name for name in labels if name.startswith(KUEUE))
    is_job = question.kind.kind == "Job"
    if not used or KUEUE_MANAGED in labels or (_note(thing, QUEUE) if is_job else identity.queue_of(pod)):
        return ()
    if is_job:
        here = f"with label {QUEUE} fairlead starts it as a whole, in that queue"
    else:
        here = "label queue of the pod names its queue"
    return (f"fairlead does not look at label {used[0]}: {here} (docs/kubernetes.md, coming from Kueue)",)


def _warnings(pod: Pod) -> tuple[str, ...]:
    """What will keep the pod from being scheduled, told to whoever submits it."""
    try:
        identity.gang_of(pod)
    except (IdentityError, AmountError) as e:
        return (f"fairlead cannot schedule this: {e}",)
    return ()
