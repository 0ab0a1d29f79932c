"""Reviews: what the API server asks of a webhook, and how it is answered.

Decides how a question is read, how an answer is written, and how a change of an object is put into words (JSON Patch).
Never judges. Invariant: an answer carries the identity of its question.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.kubernetes.objects import Part, Text

API_VERSION = "admission.k8s.io/v1"
FORBIDDEN = 403
INVALID = 422


class UnreadableReview(ValueError):
    """A question that cannot be read; the sentence says why."""


class Asker(Part, frozen=True):
    """Who sent the request, as the API server has authenticated him."""

    username: Text = None
    groups: list[str] | None = None


class ObjectKind(Part, frozen=True):
    """The kind of the object in question."""

    group: Text = None
    version: Text = None
    kind: str = ""


class Question(Part, frozen=True):
    """May this be done, and as it stands?"""

    uid: str
    kind: ObjectKind = ObjectKind()
    sub_resource: Text = None
    name: Text = None
    namespace: Text = None
    operation: Text = None
    user_info: Asker = Asker()
    object: Any = None
    old_object: Any = None

    @property
    def user(self) -> str:
        """The name of whoever asks."""
        return self.user_info.username or ""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of whoever asks."""
        return tuple(self.user_info.groups or ())


class Review(Part, frozen=True):
    """The envelope of a question."""

    api_version: str = ""
    request: Question | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is answered."""

    allowed: bool = True
    message: str = ""
    """Why not; told to the user as it is."""
    code: int = FORBIDDEN
    patch: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    """Sentences that `kubectl` prints."""


ALLOWED = Verdict()


def question_of(body: bytes) -> Question:
    """The question in a request's body. Raises `UnreadableReview`."""
    try:
        review = msgspec.json.decode(body, type=Review)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise UnreadableReview(f"the body is no AdmissionReview: {e}") from e
    if review.api_version != API_VERSION:
        raise UnreadableReview(f"only {API_VERSION} is understood, not {review.api_version!r}")
    if review.request is None:
        raise UnreadableReview("the AdmissionReview has no request")
    return review.request


def answer_to(question: Question, verdict: Verdict) -> bytes:
    """The answer as the API server reads it."""
    response: dict[str, Any] = {"uid": question.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = {"code": verdict.code, "message": verdict.message}
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


class Changes:
    """Changes of one object, collected as JSON Patch. The object itself is changed too, so that changes build on it."""

    def __init__(self, thing: dict[str, Any]) -> None:
        self.operations: list[dict[str, Any]] = []
        self._thing = thing

    def put(self, path: tuple[str, ...], value: Any) -> None:
        """Set a field; the parts above it are made where they are missing."""
        place = self._thing
        for depth, name in enumerate(path[:-1], 1):
            if not isinstance(place.get(name), dict):
                place[name] = {}
                self._note(path[:depth], {})
            place = place[name]
        place[path[-1]] = value
        self._note(path, value)

    def _note(self, path: tuple[str, ...], value: Any) -> None:
        self.operations.append({"op": "add", "path": pointer(path), "value": value})


def pointer(path: tuple[str, ...]) -> str:
    """A path as a JSON pointer."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)
