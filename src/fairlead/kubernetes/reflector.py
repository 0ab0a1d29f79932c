"""The reflector: what the API server has of one kind, told as changes, whatever happens to lists and watches.

Decides when to list, to watch, to resume and to list again, and which changes follow from it. Never keeps objects: only
name, identity and version of each. Invariant: after `Synced` everything told so far, taken together, is a state that
the server had; nothing that was deleted while nobody watched is forgotten.

The rules it follows: 1. the whole state comes by pages, which a server gives in half the time of a watch with initial
events; 2. a line is decoded by its type first; 3. nothing of a line is kept, and an object that cannot be read keeps
no other one from being told; 4. a version that is too old, said by status or in a line, and a watch that closes at
once without a word, mean: list again, compare, and tell what is missing; 5. a watch is given up when the server was
silent for longer than it said it would be; 6. after every failure it waits, longer each time, never in step with
others, and at least for as long as the server asks.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from fairlead.kubernetes import client as api
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Thing

log = logging.getLogger("fairlead.kubernetes")

PAGE = 500
WATCH_S = (300, 600)
"""A watch lasts between these, drawn anew each time, so that not all end together."""
IDLE_MARGIN_S = 30
QUICK_S = 2.0
"""A watch that is closed within this time and brought nothing is suspected to stand on a version that is gone."""
WAIT_S = (0.2, 30.0)
"""The first and the longest wait after failures."""
TROUBLED = 5
"""After so many failures in a row it is said that a kind cannot be watched: servers are started anew at times."""
GRAVES = 1_000
"""So many deleted objects are remembered, to tell a late word about one from a new object of its name."""


@dataclass(frozen=True, slots=True)
class Changed:
    """An object is there, new or with another version."""

    kind: Kind
    object: Any


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is no more."""

    kind: Kind
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Synced:
    """All that was there when it was listed has been told; said after the first list and after every further one."""

    kind: Kind
    served: bool = True
    """Whether it can be listed at all: else there is none as far as we know."""


Change = Changed | Deleted | Synced
Seen = tuple[str, str]
"""Identity and version of an object."""


class Stale(Exception):
    """The version that was watched from is of no use any more."""


class Reflector:
    """One kind of object on one server. `run` goes on until it is cancelled."""

    def __init__(
        self,
        client: api.Client,
        kind: Kind,
        sink: Callable[[Change], None],
        *,
        namespace: str = "",
        fields: str = "",
        chance: random.Random | None = None,
        read_as: type[Any] | None = None,
    ) -> None:
        """`sink` takes every change, in the loop's thread; `fields` is a selector of the API.

        `read_as` is how objects are read, where that is not the usual type of the kind.
        """
        self.kind = kind
        self.namespace = namespace
        self.lists = 0
        """How often everything was listed."""
        self.failures = 0
        """Failures since the last success."""
        self.trouble = ""
        """Why the last list or watch failed; empty: it did not, or it was followed by one that goes well."""
        self.unread: dict[tuple[str, str], str] = {}
        """Objects that cannot be read, by namespace and name, and why; what was told of them before still counts."""
        self._client = client
        self._sink = sink
        self._filter = {"fieldSelector": fields} if fields else {}
        self._chance = chance or random.Random()
        self._known: dict[tuple[str, str], Seen] = {}
        self._graves: dict[str, None] = {}
        """Identities of objects that were deleted; the oldest are forgotten first."""
        self._version: str | None = None
        self._line = msgspec.json.Decoder(api.WatchLine)
        self._object = msgspec.json.Decoder(read_as or kind.type)
        self._bare = msgspec.json.Decoder(Thing)
        self._bookmark = msgspec.json.Decoder(api.Bookmark)

    def stuck(self) -> str:
        """That nothing new is heard, as a sentence; empty: it is, or it failed a few times only."""
        if not self.trouble or self.failures < TROUBLED:
            return ""
        return f"{self.kind.title} cannot be watched, and what was known of them counts: {self.trouble}"

    async def run(self) -> None:
        """List and watch for ever. Only a watch that went well ends a row of failures: a list alone can be had from a
        server that calls its own version too old.
        """
        while True:
            try:
                if self._version is None:
                    await self._list()
                else:
                    await self._follow()
                    self.failures = 0
            except (Stale, api.Gone) as e:
                log.info("%s: listing again: %s", self.kind.plural, e)
                # It may be too old again at once: a server that says so for ever is asked ever more rarely.
                self._version = None
                await self._wait(str(e))
            except (api.ApiError, api.Unreachable, msgspec.MsgspecError) as e:
                after = e.retry_after_s if isinstance(e, api.ApiError) else None
                await self._wait(str(e) or type(e).__name__, after or 0.0)

    async def _wait(self, why: str, least: float = 0.0) -> None:
        self.failures += 1
        self.trouble = why
        first, longest = WAIT_S
        most = min(longest, first * 2 ** min(self.failures - 1, 10))
        if self.failures in (1, 5) or self.failures % 20 == 0:
            log.warning("%s: %s (failure %d)", self.kind.plural, why, self.failures)
        await asyncio.sleep(max(most * self._chance.uniform(0.5, 1.0), least))

    # -- the whole state ------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        found: dict[tuple[str, str], Seen] = {}
        version = ""
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                for raw in page.items or ():
                    thing, flaw = self._read(raw)
                    found[_key(thing)] = self._there(thing, flaw)
                version = page.metadata.resource_version or ""
        self._version = version or "0"
        self._finish_list(found)

    async def _pages(self) -> AsyncGenerator[api.Page, None]:
        """The pages of a list; while one is read, the server is at work on the next."""
        query = {**self._filter, "limit": str(PAGE)}
        ask = partial(self._client.page, self.kind, self.namespace)
        coming: asyncio.Task[api.Page] | None = asyncio.create_task(ask(query))
        try:
            while coming is not None:
                page, coming = await coming, None
                if page.metadata.continue_:
                    coming = asyncio.create_task(ask({**query, "continue": page.metadata.continue_}))
                    await asyncio.sleep(0)
                yield page
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    def _finish_list(self, found: dict[tuple[str, str], Seen]) -> None:
        for key in [key for key in self._known if key not in found]:
            self._gone(key)
        self.lists += 1
        self.trouble = ""
        self._sink(Synced(self.kind))

    # -- what changes ---------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        assert self._version is not None
        lasts = self._chance.randint(*WATCH_S)
        query = {
            **self._filter,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(lasts),
        }
        loop = asyncio.get_running_loop()
        began, lines_seen = loop.time(), 0
        async with self._client.watch(self.kind, self.namespace, query, lasts + IDLE_MARGIN_S) as lines:
            self.trouble = ""
            async for line in lines:
                lines_seen += 1
                self._take(line)
        if not lines_seen and loop.time() - began < QUICK_S:
            raise Stale("the watch was closed at once without a word")

    def _take(self, line: bytes) -> None:
        said = self._line.decode(line)
        if said.type == "BOOKMARK":
            self._version = self._bookmark.decode(said.object).metadata.resource_version or self._version
            return
        if said.type == "ERROR":
            raise _spoken(said.object)
        thing, flaw = self._read(said.object)
        if said.type == "DELETED":
            key, known = _key(thing), self._known.get(_key(thing))
            # A late word about an earlier object of that name says nothing about the one that is there now.
            if known is not None and known[0] == (thing.metadata.uid or ""):
                self._gone(key)
            self._bury(thing)
        elif (thing.metadata.uid or "") not in self._graves:
            self._there(thing, flaw, listed=False)
        version = thing.metadata.resource_version
        if version and not is_older(version, self._version or ""):
            self._version = version

    def _read(self, raw: msgspec.Raw) -> tuple[Any, str]:
        """An object; of one that cannot be read the metadata, and why."""
        try:
            return self._object.decode(raw), ""
        except msgspec.MsgspecError as e:
            return self._bare.decode(raw), str(e)

    def _bury(self, thing: Any) -> None:
        if thing.metadata.uid:
            self._graves[thing.metadata.uid] = None
            if len(self._graves) > GRAVES:
                del self._graves[next(iter(self._graves))]

    def _there(self, thing: Any, flaw: str, *, listed: bool = True) -> Seen:
        """An object is there: told unless this very version was told before.

        A list is the truth, also when its versions are older (a server that was set back); in a watch an older version
        is a late word and is passed over. `flaw`: why it cannot be read.
        """
        key, meta = _key(thing), thing.metadata
        seen = (meta.uid or "", meta.resource_version or "")
        if listed:
            # What a list has is not dead: the server may have been set back to before it was deleted.
            self._graves.pop(seen[0], None)
        known = self._known.get(key)
        if known is not None:
            if not listed and is_older(seen[1], known[1]):
                return known
            if known[0] != seen[0]:
                self._gone(key)
            elif known[1] == seen[1]:
                return known
        self._known[key] = seen
        if flaw:
            log.warning("%s: %s cannot be read and is passed over: %s", self.kind.plural, "/".join(key), flaw)
            self.unread[key] = flaw
        else:
            self.unread.pop(key, None)
            self._sink(Changed(self.kind, thing))
        return seen

    def _gone(self, key: tuple[str, str]) -> None:
        known = self._known.pop(key, None)
        self.unread.pop(key, None)
        if known is not None:
            self._sink(Deleted(self.kind, key[0], key[1], known[0]))


def _key(thing: Any) -> tuple[str, str]:
    return thing.metadata.namespace or "", thing.metadata.name


def is_older(version: str, than: str) -> bool:
    """Versions of one kind grow; what is no number is never taken for older."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


def _spoken(raw: msgspec.Raw) -> api.ApiError:
    """The refusal in a line of a watch."""
    data = bytes(raw)
    said = msgspec.json.decode(data, type=api.Status)
    return api.refusal(said.code or 500, data)


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The lines in a stream of bytes, however it is cut up; empty ones and an unfinished last one are left out."""
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" not in chunk:
            continue
        *whole, last = rest.split(b"\n")
        rest = bytearray(last)
        for line in whole:
            if line.strip():
                yield bytes(line)
