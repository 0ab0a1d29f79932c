"""An API server in this process: objects with versions, lists, watches, bindings, and whatever can go wrong there.

Decides what a well-behaved server answers; `faults.Faults` decides when it does not. It is a `Transport` of the
product's client. It keeps a log of what was written, so that a test can say what must never have happened.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from testbed.faults import Faults

from fairlead.kubernetes.client import Answer, Request, Unreachable, refusal

KEPT = 400
"""So many changes can be watched from; older versions are gone."""
RUN_S = 0.3
"""From the binding of a pod to its running."""
BOOKMARK_S = 20.0
BEGAN_MS = 1_767_225_600_000
"""What its clock shows when the loop's time is 0: the beginning of 2026."""


@dataclass
class Log:
    """What was done to the objects, in order: time, verb, kind, key, what."""

    entries: list[tuple[float, str, str, str, str]] = field(default_factory=list)

    def of(self, verb: str) -> list[tuple[float, str, str, str, str]]:
        """All entries with this verb."""
        return [entry for entry in self.entries if entry[1] == verb]


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def body(self, after: int | None = None) -> dict[str, Any]:
        status = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": self.message, "reason": self.reason,
            "code": self.code,
        }  # fmt: skip
        if after is not None:
            status["details"] = {"retryAfterSeconds": after}
        return status


Key = tuple[str, str]


class FakeServer:
    """The server. Objects are plain manifests, by plural and `(namespace, name)`."""

    def __init__(self, faults: Faults | None = None, *, kubelet: bool = True) -> None:
        self.faults = faults or Faults()
        self.kubelet = kubelet
        self.objects: dict[str, dict[Key, dict[str, Any]]] = {}
        self.version = 100
        self.changes: list[tuple[int, str, str, dict[str, Any]]] = []
        """Version, plural, type, object."""
        self.compacted = 100
        self.log = Log()
        self.violations: list[str] = []
        self.requests = 0
        self.up = True
        self.extensions: list[str] = []
        """Groups of the API that it has beside Kubernetes' own, as `GROUP/VERSION`."""
        self.lacks: list[str] = []
        """Kinds that it has not, by plural, whatever their groups."""
        self._news = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._uid = 0
        self._streams = 0

    # -- what a test does directly --------------------------------------------------------------------------------

    def put(self, plural: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create or replace an object as somebody else would."""
        key = _key(manifest)
        old = self.objects.get(plural, {}).get(key)
        thing = copy.deepcopy(manifest)
        meta = thing.setdefault("metadata", {})
        if old is None:
            self._uid += 1
            meta.setdefault("uid", f"uid-{self._uid}")
            meta.setdefault("creationTimestamp", _stamp(self._now()))
        else:
            meta["uid"] = old["metadata"]["uid"]
        return self._write(plural, "ADDED" if old is None else "MODIFIED", thing)

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        """An object is gone at once."""
        thing = self.objects.get(plural, {}).pop((namespace, name), None)
        if thing is not None:
            self._tell(plural, "DELETED", thing)

    def now_ms(self) -> int:
        """The clock of whoever schedules here: by another one all pods would be of the past, or of the future."""
        return BEGAN_MS + int(self._now() * 1000)

    def all(self, plural: str) -> list[dict[str, Any]]:
        """All objects of a kind, by name."""
        return [thing for _, thing in sorted(self.objects.get(plural, {}).items())]

    def one(self, plural: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """One object, or None."""
        return self.objects.get(plural, {}).get((namespace, name))

    def compact(self) -> None:
        """Forget all changes so far: whoever watches from before must list again."""
        self.changes.clear()
        self.compacted = self.version

    async def restart(self, down_s: float) -> None:
        """The server is away for a while; all watches end. What it keeps it keeps."""
        self.up = False
        self._streams += 1
        self._wake()
        await asyncio.sleep(down_s)
        self.compact()
        self.up = True

    # -- the transport --------------------------------------------------------------------------------------------

    async def send(self, request: Request, timeout_s: float) -> Answer:
        """One request."""
        self.requests += 1
        fault = self.faults.for_request(request.method, request.path)
        await asyncio.sleep(min(fault.delay_s, timeout_s))
        if not self.up or fault.lost == "before" or fault.delay_s >= timeout_s:
            raise Unreachable(f"no answer to {request.method} {request.path}")
        if fault.status:
            return _answer(fault.status, Refused(fault.status, "Fault", "a fault of the test").body(fault.retry_after))
        try:
            body = self._serve(request)
            answer = Answer(200, {}, json.dumps(body).encode())
        except Refused as e:
            answer = _answer(e.code, e.body())
        if fault.lost == "after":
            raise Unreachable(f"the answer to {request.method} {request.path} was lost")
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, idle_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch."""
        self.requests += 1
        fault = self.faults.for_request("WATCH", request.path)
        await asyncio.sleep(fault.delay_s)
        if not self.up or fault.lost:
            raise Unreachable(f"no answer to WATCH {request.path}")
        if fault.status:
            body = json.dumps(Refused(fault.status, "Fault", "a fault of the test").body()).encode()
            raise refusal(fault.status, body)
        async with aclosing(self._lines(request)) as lines:
            yield lines

    async def close(self) -> None:
        """Nothing to close."""

    async def _lines(self, request: Request) -> AsyncGenerator[bytes, None]:
        plural, namespace, _, _ = _split(request.path)
        query = request.query
        stream = self._streams
        ends = self._now() + float(query.get("timeoutSeconds", "300"))
        at = int(query.get("resourceVersion") or 0)
        if at < self.compacted:
            yield _line("ERROR", Refused(410, "Expired", f"too old resource version: {at}").body())
            return
        quiet_since = self._now()
        while self.up and stream == self._streams and self._now() < ends:
            if at < self.compacted:
                yield _line("ERROR", Refused(410, "Expired", f"too old resource version: {at}").body())
                return
            fresh = [c for c in self.changes if c[0] > at]
            for version, of, kind, thing in self.faults.disturb(fresh):
                at = max(at, version)
                if of == plural and _is_selected(thing, namespace, query):
                    yield _line(kind, thing)
                    quiet_since = self._now()
            if fresh and self.faults.cuts():
                # Not within what was reordered: no server loses a change for good.
                return
            if fresh:
                await asyncio.sleep(self.faults.watch_delay())
                continue
            if self._now() - quiet_since > BOOKMARK_S and query.get("allowWatchBookmarks"):
                quiet_since = self._now()
                yield _bookmark(at)
            await self._wait(min(BOOKMARK_S, max(ends - self._now(), 0.001)))

    # -- requests -------------------------------------------------------------------------------------------------

    def _serve(self, request: Request) -> dict[str, Any]:
        if request.path == "/apis":
            return {"groups": [{"versions": [{"groupVersion": version}]} for version in self.extensions]}
        plural, namespace, name, sub = _split(request.path)
        body = json.loads(request.body) if request.body else {}
        if request.method == "GET":
            return self._read(plural, namespace, name, request)
        if request.method == "POST" and sub == "binding":
            return self._bind(namespace, name, body)
        if request.method == "POST":
            meta = body.setdefault("metadata", {})
            if namespace:
                meta["namespace"] = namespace
            if not meta.get("name"):
                meta["name"] = f"{meta.get('generateName', 'x-')}{self._uid}"
            if _key(body) in self.objects.get(plural, {}):
                raise Refused(409, "AlreadyExists", f'{plural} "{meta["name"]}" already exists')
            self._note("create", plural, body, "")
            return self.put(plural, body)
        thing = self.objects.get(plural, {}).get((namespace, name))
        if thing is None:
            raise Refused(404, "NotFound", f'{plural} "{name}" not found')
        if request.method == "PUT":
            return self._replace(plural, thing, body)
        if request.method == "PATCH":
            return self._patch(plural, thing, body)
        if request.method == "DELETE":
            return self._delete(plural, thing, body)
        raise Refused(405, "MethodNotAllowed", request.method)

    def _read(self, plural: str, namespace: str, name: str, request: Request) -> dict[str, Any]:
        if plural in self.lacks:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if name:
            thing = self.objects.get(plural, {}).get((namespace, name))
            if thing is None:
                raise Refused(404, "NotFound", f'{plural} "{name}" not found')
            return thing
        things = list(self._selected(plural, namespace, request.query))
        start = int(request.query.get("continue") or 0)
        limit = int(request.query.get("limit") or 0) or len(things)
        more = str(start + limit) if start + limit < len(things) else ""
        return {
            "metadata": {"resourceVersion": str(self.version), "continue": more},
            "items": things[start : start + limit],
        }

    def _bind(self, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        pod = self.objects.get("pods", {}).get((namespace, name))
        wanted, node = body["metadata"].get("uid"), body["target"]["name"]
        if pod is None:
            raise Refused(404, "NotFound", f'pods "{name}" not found')
        if wanted and wanted != pod["metadata"]["uid"]:
            raise Refused(409, "Conflict", "the UID in the precondition does not match")
        if pod["metadata"].get("deletionTimestamp"):
            raise Refused(409, "Conflict", f"pod {name} is being deleted, cannot be assigned to a host")
        bound = pod["spec"].get("nodeName")
        if bound:
            self._note("bound-again", "pods", pod, node)
            raise Refused(409, "Conflict", f'pod {name} is already assigned to node "{bound}"')
        changed = copy.deepcopy(pod)
        changed["spec"]["nodeName"] = node
        changed["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations") or {})
        _set_condition(changed, {"type": "PodScheduled", "status": "True"})
        self._note("bind", "pods", changed, node)
        self._write("pods", "MODIFIED", changed)
        self._check_node(node)
        if self.kubelet:
            self._later(RUN_S, lambda: self._run(namespace, name, changed["metadata"]["uid"]))
        return {"kind": "Status", "status": "Success"}

    def _run(self, namespace: str, name: str, uid: str) -> None:
        pod = self.one("pods", name, namespace)
        if pod is not None and pod["metadata"]["uid"] == uid and not pod["metadata"].get("deletionTimestamp"):
            changed = copy.deepcopy(pod)
            changed.setdefault("status", {})["phase"] = "Running"
            changed["status"]["startTime"] = _stamp(self._now())
            self._write("pods", "MODIFIED", changed)

    def _replace(self, plural: str, thing: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        _keep_preconditions(thing, body.get("metadata", {}))
        changed = copy.deepcopy(body)
        changed["metadata"] = {**thing["metadata"], **body.get("metadata", {})}
        self._note("replace", plural, changed, "")
        return self._write(plural, "MODIFIED", changed)

    def _patch(self, plural: str, thing: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        _keep_preconditions(thing, body.get("metadata", {}))
        changed = copy.deepcopy(thing)
        self._note("patch", plural, thing, json.dumps(body, sort_keys=True))
        conditions = body.get("status", {}).pop("conditions", [])
        _merge(changed, body)
        for condition in conditions:
            _set_condition(changed, condition)
        return self._write(plural, "MODIFIED", changed)

    def _delete(self, plural: str, thing: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        _keep_preconditions(thing, body.get("preconditions", {}))
        namespace, name = _key(thing)
        self._note("delete", plural, thing, str(body.get("gracePeriodSeconds", "")))
        grace = body.get("gracePeriodSeconds")
        if grace is None:
            grace = thing.get("spec", {}).get("terminationGracePeriodSeconds", 30) if plural == "pods" else 0
        if plural != "pods" or not thing["spec"].get("nodeName") or not grace:
            self.remove(plural, name, namespace)
            return {"kind": "Status", "status": "Success"}
        if not thing["metadata"].get("deletionTimestamp"):
            changed = copy.deepcopy(thing)
            changed["metadata"]["deletionTimestamp"] = _stamp(self._now() + grace)
            changed["metadata"]["deletionGracePeriodSeconds"] = grace
            self._write(plural, "MODIFIED", changed)
            # Most work ends well before its grace does.
            self._later(self.faults.stopping(grace), lambda: self._gone(namespace, name, thing["metadata"]["uid"]))
        return {"kind": "Status", "status": "Success"}

    def _gone(self, namespace: str, name: str, uid: str) -> None:
        pod = self.one("pods", name, namespace)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self.remove("pods", name, namespace)

    # -- books ----------------------------------------------------------------------------------------------------

    def _write(self, plural: str, kind: str, thing: dict[str, Any]) -> dict[str, Any]:
        self.objects.setdefault(plural, {})[_key(thing)] = thing
        self._tell(plural, kind, thing)
        return thing

    def _tell(self, plural: str, kind: str, thing: dict[str, Any]) -> None:
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.changes.append((self.version, plural, kind, copy.deepcopy(thing)))
        if len(self.changes) > KEPT:
            self.compacted = self.changes[len(self.changes) - KEPT - 1][0]
            del self.changes[: len(self.changes) - KEPT]
        self._wake()

    def _check_node(self, node: str) -> None:
        """What is bound to a node must fit there, at every moment."""
        found = self.objects.get("nodes", {}).get(("", node))
        if found is None:
            self.violations.append(f"a pod was bound to {node}, which is not there")
            return
        used = 0
        for pod in self.all("pods"):
            if pod["spec"].get("nodeName") == node and pod.get("status", {}).get("phase") not in (
                "Succeeded",
                "Failed",
            ):
                used += sum(_milli(c["resources"]["requests"]["cpu"]) for c in pod["spec"]["containers"])
        if used > _milli(found["status"]["allocatable"]["cpu"]):
            self.violations.append(f"{node} is over its capacity at {self._now():.3f} s: {used}m")

    def _selected(self, plural: str, namespace: str, query: Any) -> list[dict[str, Any]]:
        return [thing for thing in self.all(plural) if _is_selected(thing, namespace, query)]

    def _note(self, verb: str, plural: str, thing: dict[str, Any], what: str) -> None:
        namespace, name = _key(thing)
        self.log.entries.append((self._now(), verb, plural, f"{namespace}/{name}", what))

    # -- time -----------------------------------------------------------------------------------------------------

    def _now(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _wait(self, most_s: float) -> None:
        news = self._news
        try:
            async with asyncio.timeout(most_s):
                await news.wait()
        except TimeoutError:
            return

    def _later(self, seconds: float, act: Any) -> None:
        asyncio.get_running_loop().call_later(seconds, act)


def _key(thing: dict[str, Any]) -> Key:
    return thing["metadata"].get("namespace") or "", thing["metadata"]["name"]


def _keep_preconditions(thing: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in ("uid", "resourceVersion"):
        if wanted.get(name, thing["metadata"][name]) != thing["metadata"][name]:
            raise Refused(409, "Conflict", f"the {name} in the precondition does not match")


def _split(path: str) -> tuple[str, str, str, str]:
    """Plural, namespace, name, part of a path."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    parts += [""] * 3
    return parts[0], namespace, parts[1], parts[2]


def _is_selected(thing: dict[str, Any], namespace: str, query: Any) -> bool:
    if namespace and thing["metadata"].get("namespace") != namespace:
        return False
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        field_path, _, wanted = part.partition("=")
        value: Any = thing
        for step in field_path.strip("!").split("."):
            value = (value or {}).get(step)
        if (str(value or "") == wanted.lstrip("=")) == field_path.endswith("!"):
            return False
    return True


def _merge(into: dict[str, Any], change: dict[str, Any]) -> None:
    for key, value in change.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _set_condition(pod: dict[str, Any], condition: dict[str, Any]) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [c for c in conditions if c["type"] != condition["type"]] + [condition]


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def _stamp(seconds: float) -> str:
    whole = int(seconds)
    return f"2026-01-01T{whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}Z"


def _line(kind: str, thing: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode()


def _bookmark(version: int) -> bytes:
    meta = {"resourceVersion": str(version)}
    return _line("BOOKMARK", {"metadata": meta, "spec": {"containers": None}})


def _answer(status: int, body: dict[str, Any]) -> Answer:
    after = body.get("details", {}).get("retryAfterSeconds")
    return Answer(status, {"retry-after": str(after)} if after is not None else {}, json.dumps(body).encode())
