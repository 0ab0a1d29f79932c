"""Requests to the API server: one method for each thing that is asked of it, and a typed error for each way to refuse.

Decides how a request is written and what an answer means. Never tries again by itself (who asked knows whether that
makes sense), and never opens a connection: a `Transport` does, so that a server in the same process can stand in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from fairlead.kubernetes.kinds import PODS, Kind
from fairlead.kubernetes.objects import Metadata, Part, Text


class ListMetadata(Part, frozen=True):
    """Where a list stands."""

    resource_version: Text = None
    continue_: Text = msgspec.field(default=None, name="continue")


class Page(Part, frozen=True):
    """One page of a list; the items are decoded by who knows their kind."""

    metadata: ListMetadata = ListMetadata()
    items: list[msgspec.Raw] | None = None


class GroupVersion(Part, frozen=True):
    """A version of a group of the API."""

    group_version: str = ""


class Group(Part, frozen=True):
    """A group of the API."""

    versions: tuple[GroupVersion, ...] = ()


class Groups(Part, frozen=True):
    """What a server has beside its core."""

    groups: tuple[Group, ...] = ()


class WatchLine(msgspec.Struct, frozen=True):
    """One line of a watch: its object is decoded by type, for an error is no object of the kind that is watched."""

    type: str
    object: msgspec.Raw


class Bookmark(Part, frozen=True):
    """How far a watch has come; its object is otherwise empty."""

    metadata: Metadata = Metadata()


class StatusDetails(Part, frozen=True):
    """More about a refusal."""

    retry_after_seconds: int | None = None


class Status(Part, frozen=True):
    """How the server answers when it refuses."""

    status: Text = None
    message: Text = None
    reason: Text = None
    code: int | None = None
    details: StatusDetails | None = None


JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
REQUEST_S = 30.0
"""A request that is not answered by then has failed; whether it was carried out is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""
    content_type: str = JSON


class Transport(Protocol):
    """Carries requests to the server. Raises `Unreachable` when there is no answer."""

    async def send(self, request: Request, timeout_s: float) -> Answer:
        """One request and its whole answer, whatever its status."""

    def stream(self, request: Request, idle_s: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a watch. Raises `ApiError` on entry when it is refused; ends when the server closes it.

        `idle_s` without a byte means that the connection is dead: `Unreachable`.
        """

    async def close(self) -> None:
        """Give up all connections."""


class ApiError(Exception):
    """The server refused. `status` is its code, `reason` its word for it (`AlreadyExists`), the text its sentence."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        """How long the server asks to be left alone, in seconds."""


class NotFound(ApiError):
    """404: there is no such object."""


class Conflict(ApiError):
    """409: the object changed meanwhile, exists already, or is bound already."""


class Gone(ApiError):
    """410: the version asked for is too old; list again."""


class Forbidden(ApiError):
    """401 or 403: the rights do not suffice."""


class Invalid(ApiError):
    """400 or 422: the request makes no sense to the server."""


class TooManyRequests(ApiError):
    """429: later; for an eviction, a disruption budget does not allow it now."""


class ServerFault(ApiError):
    """5xx: the server could not; whether it was carried out is not known."""


class Unreachable(Exception):
    """No answer; whether the request was carried out is not known."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def refusal(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> ApiError:
    """The typed error of an answer that is no success."""
    try:
        said = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        said = Status(message=body[:200].decode("utf-8", "replace").strip() or "no reason was given")
    wait = (headers or {}).get("retry-after", "")
    after = float(wait) if wait.isdecimal() else None
    if after is None and said.details is not None and said.details.retry_after_seconds is not None:
        after = float(said.details.retry_after_seconds)
    kind = _BY_STATUS.get(status, ServerFault if status >= 500 else ApiError)
    return kind(status, said.reason or "", said.message or "no reason was given", after)


class Client:
    """One API server, spoken to through one transport. Every method raises `ApiError` or `Unreachable`."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> bytes:
        """Send one request and give back the body of a success."""
        data = b"" if body is None else msgspec.json.encode(body)
        answer = await self.transport.send(Request(method, path, query or {}, data, content_type), REQUEST_S)
        if answer.status >= 300:
            raise refusal(answer.status, answer.body, answer.headers)
        return answer.body

    async def served(self) -> frozenset[str]:
        """The groups of the API that this server has, each with a version: `batch/v1`."""
        found = msgspec.json.decode(await self.send("GET", "/apis"), type=Groups)
        return frozenset(version.group_version for group in found.groups for version in group.versions)

    async def serves(self, kind: Kind) -> bool:
        """Whether it has this kind, of whose group it may have others alone. Raises `Forbidden` if it does not say."""
        try:
            await self.page(kind, query={"limit": "1"})
        except Forbidden:
            raise
        except ApiError as e:
            return not isinstance(e, NotFound)
        return True

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Any:
        """One object."""
        return msgspec.json.decode(await self.send("GET", kind.path(namespace, name)), type=kind.type)

    async def page(self, kind: Kind, namespace: str = "", query: Mapping[str, str] | None = None) -> Page:
        """One page of a list."""
        return msgspec.json.decode(await self.send("GET", kind.path(namespace), query), type=Page)

    def watch(
        self, kind: Kind, namespace: str, query: Mapping[str, str], idle_s: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a watch; see `Transport.stream`."""
        return self.transport.stream(Request("GET", kind.path(namespace), {**query, "watch": "true"}), idle_s)

    async def create(self, kind: Kind, manifest: Mapping[str, Any], namespace: str = "") -> Any:
        """Create an object from a whole manifest."""
        named = {"apiVersion": kind.group_version, "kind": kind.name, **manifest}
        return msgspec.json.decode(await self.send("POST", kind.path(namespace), body=named), type=kind.type)

    async def replace(self, kind: Kind, manifest: Mapping[str, Any], name: str, namespace: str = "") -> Any:
        """Put a whole manifest in the place of an object; with a `resourceVersion` only if it is still that one."""
        named = {"apiVersion": kind.group_version, "kind": kind.name, **manifest}
        return msgspec.json.decode(await self.send("PUT", kind.path(namespace, name), body=named), type=kind.type)

    async def patch(
        self,
        kind: Kind,
        name: str,
        change: Mapping[str, Any],
        namespace: str = "",
        *,
        sub: str = "",
        content_type: str = STRATEGIC_PATCH,
    ) -> None:
        """Change some fields of an object or of its part `sub`; of a custom resource by `MERGE_PATCH`."""
        await self.send("PATCH", kind.path(namespace, name, sub), body=change, content_type=content_type)

    async def delete(
        self, kind: Kind, name: str, namespace: str = "", *, uid: str = "", grace_s: int | None = None
    ) -> None:
        """Delete an object; with `uid` only that very one (else `Conflict`)."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        await self.send("DELETE", kind.path(namespace, name), body=options)

    async def bind(self, namespace: str, name: str, binding: Mapping[str, Any]) -> None:
        """Bind a pod to a node; `Conflict` when it is bound already or is another pod by now."""
        await self.send("POST", PODS.path(namespace, name, "binding"), body=binding)
