"""Reads of /ws/v1: how a route is declared and described, who reads, and what is seen.

Decides that a reader who is no administrator sees nothing of others' applications: they are left out of lists and are
not found by name. Totals of queues, nodes and groups are everybody's. Never looks at the books itself. Invariant: the
same rule holds for lists, single reads, event records and the state dump, and every status that a route can answer with
is in its description.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Response
from starlette.concurrency import run_in_threadpool

from fairlead.core.books.partition import Partition
from fairlead.insight.history_records import Record
from fairlead.local.callers import Caller
from fairlead.service.http.errors import documented
from fairlead.service.place import CallerOf, Moment, Place, PlaceOf, ReaderOf
from fairlead.service.yunikorn import transport

Described = dict[int | str, dict[str, Any]]
Sees = Callable[[str], bool]
_F = TypeVar("_F", bound=Callable[..., Any])

_WORDS = {"status_code": "integer", "message": "string", "description": "string"}
_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": kind} for name, kind in _WORDS.items()},
    "required": list(_WORDS),
}
_ERRORS = {
    400: "A parameter has no meaning.",
    401: "Over TCP a token is needed.",
    403: "This is not for the caller.",
    404: "There is no such thing.",
    405: "This path has another method.",
    500: "A fault in the service.",
    503: "The service is stopping, or too many streams are open.",
}


# -- how a route is declared --------------------------------------------------------------------------------------


def described(what: str, many: bool = True) -> Described:
    """A route that answers with a JSON list, or one object."""
    shape: dict[str, Any] = {"type": "object"}
    return _with_errors(what, {"application/json": {"schema": {"type": "array", "items": shape} if many else shape}})


def text(what: str, *types: str) -> Described:
    """A route that answers with text of these types."""
    string = {"schema": {"type": "string"}}
    return _with_errors(what, {kind: string if kind.startswith("text/") else {} for kind in types or ("text/plain",)})


def _with_errors(what: str, content: dict[str, Any]) -> Described:
    error = {"application/json": {"schema": _SCHEMA}}
    found: Described = {status: {"description": said, "content": error} for status, said in _ERRORS.items()}
    found |= {status: documented(status)[status] for status in (413, 422)}
    found |= {status: {"description": "Another path was meant."} for status in (301, 308)}
    return found | {200: {"description": what, "content": content}}


def reads(router: APIRouter, path: str, what: str, *, many: bool = True) -> Callable[[_F], _F]:
    """Declare a route that answers what a function says of the books.

    Its first argument is the moment; the others are what it needs of the request.
    """

    def declare(ask: _F) -> _F:
        signature = inspect.signature(ask, eval_str=True)
        _, *own = signature.parameters.values()

        async def answering(place: PlaceOf, who: ReaderOf, **given: Any) -> Response:
            known = {"place": place, "who": who} | given
            return await read(place, who, lambda moment: ask(moment, **{each.name: known[each.name] for each in own}))

        shared = inspect.signature(answering, eval_str=True).parameters
        taken = [shared["place"], shared["who"], *(each for each in own if each.name not in shared)]
        taken = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in taken]
        answering.__name__, answering.__doc__ = ask.__name__, ask.__doc__
        answering.__signature__ = signature.replace(parameters=taken, return_annotation=Response)  # type: ignore[attr-defined]
        router.get(path, response_class=Response, responses=described(what, many))(answering)
        return ask

    return declare


async def read(place: Place, who: Caller | None, ask: Callable[[Moment], Any], *, pretty: bool = False) -> Response:
    """What `ask` says of the books, as an answer; what is long is written beside the loop."""

    def encoded(content: Any) -> bytes:
        return transport.as_text(content, pretty=pretty)

    found = await place.shown(ask, who, encoded)
    return transport.answer(found if isinstance(found, bytes) else await run_in_threadpool(encoded, found))


def partition_of(moment: Moment, name: str) -> Partition:
    """The partition of a name. Raises `Refusal`."""
    found = moment.scheduler.cluster.partitions.get(transport.whole(name))
    if found is None:
        raise transport.missing("Partition not found")
    return found


# -- who reads ----------------------------------------------------------------------------------------------------


def sees_all(who: Caller | None) -> bool:
    """Whether nothing is hidden."""
    return who is None or who.is_admin


async def administrator(who: CallerOf) -> Caller:
    """Who asks for everything at once: an administrator, also where everybody may read the rest. Raises `Refusal`."""
    who.require_admin("read everything at once")
    return who


Administrator = Annotated[Caller, Depends(administrator)]


def visible(place: Place, who: Caller | None) -> Callable[[Sequence[Record]], Awaitable[list[Record]]]:
    """Leaves out the records about applications that the reader may not see."""

    async def keep(records: Sequence[Record]) -> list[Record]:
        if sees_all(who):
            return list(records)
        keys = {record.owner for record in records if record.owner}
        seen = await place.read(lambda moment: {key for key in keys if moment.sees(key)}, who)
        return [record for record in records if not record.owner or record.owner in seen]

    return keep
