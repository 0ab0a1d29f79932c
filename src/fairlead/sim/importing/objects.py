"""Objects that schedulers write as JSON, made flat: `sacct --json`, Kubernetes' pods and jobs, YuniKorn's applications.

Decides which fields of them a simulation can use, and under which name; the name says the unit. Objects of any other
form keep their own names, those of nested ones with dots. Never judges a value. Invariant: what is missing in an object
is an empty cell, never a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fairlead.sim.importing.quantities import amount_of

Cells = dict[str, str]
Flat = Callable[[Mapping[str, Any]], Iterator[Cells]]
SACCT, PODS, JOBS, YUNIKORN = "of sacct", "of Kubernetes (pods)", "of Kubernetes (jobs)", "of YuniKorn"


def form_of(first: Mapping[str, Any]) -> str:
    """Which form an object has; empty: one of its own."""
    if "job_id" in first and isinstance(first.get("time"), dict):
        return SACCT
    if "applicationID" in first:
        return YUNIKORN
    spec = first.get("spec")
    if isinstance(spec, dict) and "metadata" in first:
        return PODS if "containers" in spec else JOBS if "template" in spec else ""
    return ""


def flat_records(form: str, each: Mapping[str, Any]) -> Iterator[Cells]:
    """The records in an object: one, or none, or one for each task in it."""
    return _OF.get(form, _any)(each)


def _any(each: Mapping[str, Any]) -> Iterator[Cells]:
    yield dict(_flattened(each, ""))


def _flattened(each: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for name, value in each.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{before}{name}.")
        elif isinstance(value, list):
            yield before + name, ",".join(str(part) for part in value if not isinstance(part, dict | list))
        else:
            yield before + name, _text(value)


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _in(each: Any, *path: str) -> Any:
    """A value far inside; None where there is none."""
    for name in path:
        each = each.get(name) if isinstance(each, dict) else None
    return each


# -- Slurm ---------------------------------------------------------------------------------------------------------


def _sacct(each: Mapping[str, Any]) -> Iterator[Cells]:
    times = each["time"]
    state = _in(each, "state", "current") or each.get("state")
    granted = {(row.get("type"), row.get("name")): row.get("count") for row in _in(each, "tres", "allocated") or ()}
    granted = granted or {
        (row.get("type"), row.get("name")): row.get("count") for row in _in(each, "tres", "requested") or ()
    }
    array = _number(_in(each, "array", "job_id"))
    yield {
        "JobID": array or _text(each["job_id"]),
        "submit s": _number(times.get("submission")),
        "start s": _number(times.get("start")),
        "end s": _number(times.get("end")),
        "elapsed s": _number(times.get("elapsed")),
        "time limit min": _number(times.get("limit")),
        "alloc cpus": _text(granted.get(("cpu", ""))) or _number(_in(each, "required", "CPUs")),
        "memory MB": _text(granted.get(("mem", ""))),
        "gpus": _text(granted.get(("gres", "gpu"))),
        "nodes": _text(granted.get(("node", ""))),
        "partition": _text(each.get("partition")),
        "user": _text(_in(each, "association", "user") or each.get("user")),
        "account": _text(_in(each, "association", "account") or each.get("account")),
        "state": ",".join(state) if isinstance(state, list) else _text(state),
    }


def _number(value: Any) -> str:
    """A number as newer versions write it, with whether it is set; 0 where times are meant says that there is none."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return _text(value or None)


# -- Kubernetes ----------------------------------------------------------------------------------------------------

_QUEUES = ("yunikorn.apache.org/queue", "queue", "kueue.x-k8s.io/queue-name", "volcano.sh/queue-name")
_APPLICATIONS = (
    "yunikorn.apache.org/app-id",
    "applicationId",
    "spark-app-selector",
    "job-name",
    "batch.kubernetes.io/job-name",
)
_USERS = ("yunikorn.apache.org/username", "yunikorn.apache.org/user.info", "user", "owner")


def _pod(each: Mapping[str, Any]) -> Iterator[Cells]:
    phase = _text(_in(each, "status", "phase"))
    ended = [
        at
        for container in _in(each, "status", "containerStatuses") or ()
        if (at := _in(container, "state", "terminated", "finishedAt"))
    ]
    yield _of_cluster(each, each["spec"]) | {
        "started": _text(_in(each, "status", "startTime")),
        # One of its containers may have ended before the others.
        "finished": max(ended, default="") if phase != "Running" else "",
        "phase": phase,
    }


def _job(each: Mapping[str, Any]) -> Iterator[Cells]:
    spec, status = each["spec"], each.get("status") or {}
    ended = status.get("completionTime") or next(
        (c.get("lastTransitionTime") for c in status.get("conditions") or () if c.get("type") == "Failed"), ""
    )
    parallel = min(spec.get("parallelism") or 1, spec.get("completions") or spec.get("parallelism") or 1)
    yield _of_cluster(each, _in(spec, "template", "spec") or {}) | {
        "application": _text(_in(each, "metadata", "name")),
        "started": _text(status.get("startTime")),
        "finished": _text(ended),
        "count": _text(parallel),
        "time limit s": _text(spec.get("activeDeadlineSeconds")),
    }


def _of_cluster(each: Mapping[str, Any], pod: Mapping[str, Any]) -> Cells:
    meta = each.get("metadata") or {}
    said = (meta.get("annotations") or {}) | (meta.get("labels") or {})
    amounts = _asked(pod)
    gpus = {name: amount for name, amount in amounts.items() if name.rpartition("/")[2] == "gpu"}
    return {
        "created": _text(meta.get("creationTimestamp")),
        "cpu milli": _text(amounts.get("cpu") or None),
        "memory bytes": _text(amounts.get("memory") or None),
        "gpus": _text(sum(gpus.values()) or None),
        "queue": _first(said, _QUEUES) or _text(meta.get("namespace")),
        "application": _first(said, _APPLICATIONS) or _text(meta.get("name")),
        "user": _first(said, _USERS) or _text(meta.get("namespace")),
        "priority": _text(pod.get("priority")),
    }


def _asked(pod: Mapping[str, Any]) -> Counter[str]:
    """As Kubernetes counts it: its containers together with what runs beside them, or what one that comes first needs
    if that is more; and its overhead.
    """
    beside, most = Counter[str](), Counter[str]()
    for container in pod.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            beside += _wanted(container)
            most |= beside
        else:
            most |= beside + _wanted(container)
    together = sum((_wanted(container) for container in pod.get("containers") or ()), beside)
    return (together | most) + _amounts(pod.get("overhead") or {})


def _wanted(container: Mapping[str, Any]) -> Counter[str]:
    return _amounts((_in(container, "resources", "limits") or {}) | (_in(container, "resources", "requests") or {}))


def _amounts(quantities: Mapping[str, Any]) -> Counter[str]:
    return Counter({name: amount_of(name, str(text)) for name, text in quantities.items()})


def _first(said: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((_text(said[name]) for name in names if said.get(name)), "")


# -- YuniKorn ------------------------------------------------------------------------------------------------------


def _yunikorn(each: Mapping[str, Any]) -> Iterator[Cells]:
    """One record for each allocation; of an application that shows none any more one, with the most that it used."""
    same = {
        "application": _text(each["applicationID"]),
        "queue": _text(each.get("queueName")),
        "user": _text(each.get("user")),
        "state": _text(each.get("applicationState")),
        "finished ns": _nanoseconds(each.get("finishedTime")),
    }
    rows = [row for row in each.get("allocations") or () if not row.get("placeholder")]
    for row in rows:
        yield (
            same
            | _resources(row.get("resource"))
            | {
                "submitted ns": _nanoseconds(row.get("requestTime") or each.get("submissionTime")),
                "started ns": _nanoseconds(row.get("allocationTime")),
                "priority": _text(row.get("priority")),
            }
        )
    if not rows:
        yield (
            same
            | _resources(each.get("maxUsedResource") or each.get("usedResource"))
            | {
                "submitted ns": _nanoseconds(each.get("submissionTime")),
                "started ns": _nanoseconds(_running_since(each)),
                "priority": "",
            }
        )


def _running_since(each: Mapping[str, Any]) -> Any:
    return next((row.get("time") for row in each.get("stateLog") or () if row.get("applicationState") == "Running"), 0)


def _nanoseconds(value: Any) -> str:
    return _text(value) if isinstance(value, int) and value > 0 else ""


def _resources(amounts: Any) -> Cells:
    found = amounts if isinstance(amounts, dict) else {}
    gpus = sum(amount for name, amount in found.items() if name.rpartition("/")[2] == "gpu")
    return {
        "cpu milli": _text(found.get("vcore")),
        "memory bytes": _text(found.get("memory")),
        "gpus": _text(gpus or None),
    }


_OF: Final[dict[str, Flat]] = {SACCT: _sacct, PODS: _pod, JOBS: _job, YUNIKORN: _yunikorn}
