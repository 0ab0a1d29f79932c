"""Advice: which one of several changes somebody should make, and whose it is to make.

Decides the order: nothing that stops work before something that does, what the asker can do before what needs an
administrator, waiting before a purchase, then what gives up least. What nobody can do comes behind work that the asker
can cancel, and before all else that stops some. Never finds a change or tries one: `search` does.
Invariant: a change is only called the asker's when every part of it is the asker's to make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from fairlead.insight.parts import IN_THE_FILE, OF_THE_ASK, Part, What
from fairlead.policy.queue_choice.acl import may_submit

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.wire.verdicts import Way


class By(StrEnum):
    """Whose a change is to make, from the least power."""

    ASKER = "asker"
    QUEUE = "queue-administrator"
    MACHINE = "administrator"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Asker:
    """What the one who asks may do, beside submitting the work again in other words."""

    may_act: Callable[[str], bool]
    """On the work of this application: cancel it, change its priority."""
    may_move: Callable[[str], bool]
    """The work that is asked about to the queue with this path."""
    administers: Callable[[str], bool] = lambda queue: False  # noqa: ARG005 - it says what it is
    """The queue with this path."""
    is_admin: bool = False
    """Of the service, its nodes and its queue file."""
    nodes_may_join: bool = True
    """False where there is one machine: nobody can add another one."""
    has_pods: bool = False
    """Work is pods, of which a priority, queue or size cannot be changed."""


def owner_of(partition: Partition, owned: Application) -> Asker:
    """The owner of the work, where nobody says who asks."""
    spec = owned.spec

    def may_act(application: str) -> bool:
        app = partition.applications.get(application)
        return app is not None and app.user == owned.user

    def may_move(path: str) -> bool:
        queue = partition.root.find(path)
        return queue is not None and may_submit(queue, spec.user, spec.groups)

    return Asker(may_act, may_move)


_IN_ORDER = list(By)
_FILE_OR_NODES = frozenset({*IN_THE_FILE, What.QUOTA, What.DRAIN, What.TAINT, What.ATTRIBUTE, What.NODES})


def by(parts: Iterable[Part], asker: Asker, partition: Partition, ask: Ask) -> By:
    """Whose these parts together are: the most power that one of them needs."""
    return max((_of(part, asker, partition, ask) for part in parts), key=_IN_ORDER.index, default=By.ASKER)


def _of(part: Part, asker: Asker, partition: Partition, ask: Ask) -> By:
    what = part.what
    if what in OF_THE_ASK or what in (What.SMALLER, What.TIME):
        return By.ASKER
    if what is What.NODE_ROOM or (what is What.NODES and not asker.nodes_may_join):
        return By.NOBODY
    if what in _FILE_OR_NODES:
        return By.ASKER if asker.is_admin else By.MACHINE
    if what is What.QUEUE:
        return By.ASKER if asker.may_move(part.subject) else By.QUEUE
    if what is What.PRIORITY:
        queue = ask.app.queue
        bounds = [q.properties.job_priority_max for q in queue.lineage]
        most = next((bound for bound in bounds if bound is not None), None)
        is_his = asker.may_act(ask.app.id) and (most is None or part.value <= most)
        return By.ASKER if is_his or asker.administers(queue.path) else By.QUEUE
    application = part.subject.rpartition("/")[0]
    app = partition.applications.get(application)
    if what is What.CANCEL and asker.may_act(application):
        return By.ASKER
    return By.ASKER if app is not None and asker.administers(app.queue.path) else By.QUEUE


_PRICES: dict[What, int] = {
    What.QUEUE: 1,
    What.PRIORITY: 1,
    What.DRAIN: 1,
    What.SHORTER: 1,
    What.ANY_NODE: 1,
    What.TIME: 4,
    What.SMALLER: 3,
    What.ALONE: 3,
    What.CANCEL: 5,
    What.NODE_ROOM: 7,
    What.NODES: 8,
}
"""What a part of this kind gives up, as a rank; what is not here: 2. A purchase costs most."""
SOON_MS = 15 * 60_000
"""Waiting for so long costs nobody anything worth a change."""


def price(parts: Sequence[Part]) -> int:
    """The dearest part; of waiting only that which takes long."""
    return max((_price(part) for part in parts), default=0)


def _price(part: Part) -> int:
    if part.what is What.TIME and part.value - part.now <= SOON_MS:
        return 0
    return _PRICES.get(part.what, 2)


def ranked(changes: Iterable[Way]) -> list[Way]:
    """The same changes, the recommended one first."""

    def key(change: Way) -> tuple[int, int, int, int]:
        whose = By(change.by)
        is_to_cancel = whose is By.ASKER and not change.evicts
        last = 2 if whose is By.NOBODY else 0 if not change.stops else 1 if is_to_cancel else 3
        return (last, _IN_ORDER.index(whose), change.price, len(change.parts))

    return sorted(changes, key=key)
