"""`fairlead.runtime.process`: when a service searches for garbage."""

import asyncio
import gc
from contextlib import suppress

from fairlead.runtime.process import NEVER, search_seldom


class Circle:
    """Something that only a search finds."""

    def __init__(self) -> None:
        self.itself = self


async def test_a_service_searches_what_came_since_the_last_time() -> None:
    before = gc.get_threshold()
    old = Circle()
    searching = asyncio.create_task(search_seldom(0.05))
    await asyncio.sleep(0)
    assert gc.get_threshold()[2] == NEVER
    assert not any(thing is old for thing in gc.get_objects()), "what was there is not searched"
    new = Circle()
    gone = id(new)
    del new
    while any(id(thing) == gone and isinstance(thing, Circle) for thing in gc.get_objects()):
        await asyncio.sleep(0.01)
    searching.cancel()
    with suppress(asyncio.CancelledError):
        await searching
    assert gc.get_threshold() == before
