"""Gates: how many applications run in a queue, or for a user or group, and whether one more may (`maxapplications`).

Decides what counts: what runs, what is accepted only and has placeholders, and what is kept a place because work was
told to stop for one of its asks. What runs nothing and only waits to be tried again, or is idle, does not
(`core.acts.application_steps`). Never parks anything. Invariant: an application counts once, and is never in its own
way.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from fairlead.core.model.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books import Application, Ceiling, Queue
    from fairlead.core.books.demand import Obstacle


Yielding = Mapping["Application", int]
"""How many of the asks of each application would give up what is promised to them."""
NONE_YIELDS: Yielding = MappingProxyType({})


RUNS, ENTERS, IS_PROMISED, GAVE_WAY = 0, 1, 2, 3


def has_to_enter(app: Application) -> int:
    """Whether the application needs a place among those that may run before any of its asks can start: `RUNS` (not),
    `ENTERS`, `IS_PROMISED` (it needs one, and is kept one because work was stopped for it), or `GAVE_WAY`: it gets none
    before another gang is whole or gone, which keeps nothing else back.
    """
    if app.state is not State.ACCEPTED:
        return RUNS
    if app.gives_way_to is not None:
        return GAVE_WAY
    if app.id in app.queue.allocating_accepted:
        return RUNS  # Its placeholders have its place already, also among what its user may run.
    if not any(place.max_applications for place in (*app.queue.lineage, *app.ceilings)):
        return RUNS
    return IS_PROMISED if app in app.queue.promised else ENTERS


def look_again(app: Application) -> None:
    """Whether the application has a place to run may have changed: what waits with a wrong demand changes its own."""
    enters = has_to_enter(app)
    for batch in app.batches.values():
        if batch.demand.enters != enters:
            app.out_of_line[batch] = None
    if app.batches:
        app.queue.touch_app(app)


def closed_place(app: Application, yielding: Yielding = NONE_YIELDS) -> Queue | Ceiling | None:
    """Where as many applications run as may beside this one: the first queue from the root down, else the first limit
    of its user or group; None: nowhere.
    """
    places: tuple[Queue | Ceiling, ...] = (*reversed(app.queue.lineage), *app.ceilings)
    return next((place for place in places if is_closed(place, app, yielding)), None)


def is_closed(place: Obstacle, app: Application, yielding: Yielding = NONE_YIELDS) -> bool:
    """Whether the application would be one too many there."""
    most = place.max_applications
    return bool(most) and not place.counts(app) and begun(place, app, yielding) >= most


def begun(place: Obstacle, but: Application | None = None, yielding: Yielding = NONE_YIELDS) -> int:
    """How many applications count in a queue or limit; `but` one that is kept a place there."""
    count = place.count_applications()
    return count + len(awaited(place, but, yielding)) if place.promised else count


def awaited(place: Obstacle, but: Application | None = None, yielding: Yielding = NONE_YIELDS) -> list[Application]:
    """Those that are kept a place there and do not count already, `but` one."""
    waiting = (a for a in place.promised if a is not but and a.state is State.ACCEPTED and not place.counts(a))
    return [a for a in waiting if place.promised[a] > yielding.get(a, 0)]


def keep_place(app: Application, places: Iterable[Obstacle]) -> None:
    """Work was told to stop for an ask of `app`: it is kept a place everywhere on its way."""
    for place in places:
        place.promised[app] = place.promised.get(app, 0) + 1


def give_place_back(app: Application, places: Iterable[Obstacle]) -> None:
    """For one of its asks no place is kept any longer: what waits for it is woken."""
    for place in places:
        place.promised[app] -= 1
        if not place.promised[app]:
            del place.promised[app]
            place.open_gate()
