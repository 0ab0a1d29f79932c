"""What it takes to describe a call once for both clients: a route, a list, and the paths of things that have names.

Decides how a method that describes a call becomes one that makes it. Never describes one (`client.routes` does).
Invariant: the module of an answer's shape is imported when the call is made, so that a command loads no more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import quote

from fairlead.client.http import Call

if TYPE_CHECKING:
    from fairlead.client.asynchronous import AsyncClient
    from fairlead.client.sync import Client

P = ParamSpec("P")
T = TypeVar("T")


class route(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that describes a call: on a `Client` it gives the answer, on an `AsyncClient` it is to be awaited."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._describe: Any = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: Client, kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, kind: type) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, client: None, kind: type) -> route[P, T]: ...
    def __get__(self, client: Any, kind: type) -> Any:
        """The method of a client."""
        if client is None:
            return self
        return lambda *args, **given: client.send(self._describe(client, *args, **given), self.shape())

    def shape(self) -> Any:
        """The type of the answer; its module is imported now: a command needs only a few of them."""
        return _shape(self._describe.__annotations__["return"].removeprefix("Call[").removesuffix("]"))


class pages(Generic[P, T]):  # noqa: N801 - the other one
    """A method that describes a list: on a client it iterates over all things of it, page by page."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]], page: str) -> None:
        self._describe: Any = describe
        self._page = page
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: Client, kind: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, kind: type) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, client: None, kind: type) -> pages[P, T]: ...
    def __get__(self, client: Any, kind: type) -> Any:
        """The method of a client."""
        if client is None:
            return self
        return lambda *args, **given: client.things(self._describe(client, *args, **given), _shape(self._page))


def listed(page: str) -> Callable[[Callable[Concatenate[Any, P], Call[T]]], pages[P, T]]:
    """Declare a list whose pages have this shape."""
    return lambda describe: pages(describe, page)


def _shape(name: str) -> Any:
    module, _, kind = name.partition(".")
    return getattr(import_module(f"fairlead.wire.{module}"), kind)


ANSWER_S = 60.0
"""What the service works out beside its other work it gives up itself after so long."""


def call(
    method: str, path: str, body: Any = None, /, *, repeat: bool = True, takes_s: float = 0.0, **query: Any
) -> Call[Any]:
    """A call; `repeat`: sent again it would do no harm; `takes_s`: what the answer may take by itself."""
    return Call(method, path, query, body, {}, repeat, takes_s=takes_s)


def path_of(collection: str, name: str, *rest: str) -> str:
    """The path of a thing that has a name, which cannot leave its place there."""
    # What is no Unicode, as a byte of a command line may be, is sent: nothing is called so.
    return "/".join(["", collection, quote(name, safe="", errors="surrogatepass"), *rest])
