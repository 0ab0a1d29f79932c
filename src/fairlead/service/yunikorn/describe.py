"""How the routes of /ws/v1 are described in the service's OpenAPI document.

Decides nothing; it keeps the descriptions out of the routes. Invariant: every status that a route can answer with is in
its description.
"""

from __future__ import annotations

from typing import Any

from fairlead.service.http.errors import documented

Described = dict[int | str, dict[str, Any]]

ERROR_SCHEMA = {
    "type": "object",
    "properties": {
        "status_code": {"type": "integer"},
        "message": {"type": "string"},
        "description": {"type": "string"},
    },
    "required": ["status_code", "message", "description"],
}
_ERROR = {"application/json": {"schema": ERROR_SCHEMA}}


def described(what: str, many: bool = True) -> Described:
    """A route that answers with a JSON list, or one object."""
    shape: dict[str, Any] = {"type": "object"}
    body = {"type": "array", "items": shape} if many else shape
    return _with_errors(what, {"application/json": {"schema": body}})


def text(what: str, *types: str) -> Described:
    """A route that answers with text of these types."""
    string = {"schema": {"type": "string"}}
    return _with_errors(what, {kind: string if kind.startswith("text/") else {} for kind in types or ("text/plain",)})


def _with_errors(what: str, content: dict[str, Any]) -> Described:
    return {
        200: {"description": what, "content": content},
        301: {"description": "Another path was meant."},
        308: {"description": "Another path was meant."},
        400: {"description": "A parameter has no meaning.", "content": _ERROR},
        401: {"description": "Over TCP a token is needed.", "content": _ERROR},
        403: {"description": "This is not for the caller.", "content": _ERROR},
        404: {"description": "There is no such thing.", "content": _ERROR},
        405: {"description": "This path has another method.", "content": _ERROR},
        413: documented(413)[413],
        422: documented()[422],
        500: {"description": "A fault in the service.", "content": _ERROR},
        503: {"description": "The service is stopping, or too many streams are open.", "content": _ERROR},
    }
