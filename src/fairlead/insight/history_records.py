"""Event records: events and decisions told in the words of Apache YuniKorn's event system.

Decides what a record holds, its numbers (type, change, detail), its JSON, and in which words it is told that something
above the nodes holds an ask back: it asks the rules of `policy` and never looks at nodes, so that this costs no more
than the depth of the queue. Never decides which records there are (`insight.history_writer` does). Invariant: a record
is a tuple, made once and never changed, and becomes JSON only when somebody reads it; the obstacle that is named is the
first that the walk would meet.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.books.application_limits import closed_queue
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Items
from fairlead.policy.eligibility.limits import closing_ceiling, full_ceiling

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask

LONGEST_MESSAGE = 1024


class Type(IntEnum):
    """What a record is about."""

    REQUEST = 1
    APP = 2
    NODE = 3
    QUEUE = 4
    USERGROUP = 5


class Change(IntEnum):
    """What happened to it."""

    NONE = 0
    SET = 1
    ADD = 2
    REMOVE = 3


class Detail(IntEnum):
    """What exactly."""

    NONE = 0
    REQUEST_CANCEL = 100
    REQUEST_TIMEOUT = 102
    APP_ALLOC = 200
    APP_REQUEST = 201
    APP_REJECT = 202
    APP_NEW = 203
    APP_ACCEPTED = 204
    APP_STARTING = 205
    APP_RUNNING = 206
    APP_COMPLETING = 207
    APP_COMPLETED = 208
    APP_FAILING = 209
    APP_FAILED = 210
    APP_RESUMING = 211
    APP_EXPIRED = 212
    APP_CANNOTRUN_QUEUE = 213
    APP_RUNNABLE_QUEUE = 214
    APP_CANNOTRUN_QUOTA = 215
    APP_RUNNABLE_QUOTA = 216
    NODE_DECOMMISSION = 300
    NODE_SCHEDULABLE = 302
    NODE_ALLOC = 303
    NODE_CAPACITY = 304
    NODE_RESERVATION = 306
    QUEUE_DYNAMIC = 401
    QUEUE_TYPE = 402
    QUEUE_MAX = 403
    QUEUE_GUARANTEED = 404
    QUEUE_APP = 405
    QUEUE_PREEMPTION = 407
    ALLOC_CANCEL = 500
    ALLOC_PREEMPT = 501
    ALLOC_TIMEOUT = 502
    ALLOC_REPLACED = 503
    ALLOC_NODEREMOVED = 504
    UG_USER_LIMIT = 600
    UG_GROUP_LIMIT = 601
    UG_APP_LINK = 602
    UG_USER_RESOURCE = 603
    UG_GROUP_RESOURCE = 604


class Record(NamedTuple):
    """One record. `owner` is the application whose business it is (empty: everybody's); it is not shown."""

    at_ms: int
    type: int
    change: int
    detail: int
    object: str
    reference: str = ""
    message: str = ""
    amount: Items = ()
    owner: str = ""


def as_json(record: Record) -> dict[str, Any]:
    """A record in YuniKorn's JSON shape: what is zero or empty is left out, the amount is always there."""
    amounts = {name: {"value": value} if value else {} for name, value in record.amount}
    shown: dict[str, Any] = {
        "type": int(record.type),
        "objectID": record.object,
        "message": cut(record.message),
        "timestampNano": record.at_ms * 1_000_000,
        "eventChangeType": int(record.change),
        "eventChangeDetail": int(record.detail),
        "referenceID": record.reference,
    }
    shown = {name: value for name, value in shown.items() if value}
    return shown | {"resource": {"resources": amounts} if amounts else {}}


def amounts(items: Items) -> str:
    """An amount as YuniKorn writes it into messages: `map[memory:10 vcore:1000]`."""
    return "map[" + " ".join(f"{name}:{value}" for name, value in items) + "]"


def cut(message: str) -> str:
    """A message of at most 1024 characters; the end of a longer one is three dots."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."


# -- what holds an ask back ---------------------------------------------------------------------------------------


class Obstacle(NamedTuple):
    """One obstacle. `begins` and `ends` tell it of the application as a whole; `text` and `after` of one ask."""

    stops_application: bool
    begins: int = 0
    ends: int = 0
    text: str = ""
    after: str = ""
    """What is said of the ask when it is out of the way; `{}` stands for its key."""

    def over(self, key: str) -> str:
        """What is said of the ask `key` when the obstacle is out of the way."""
        return self.after.format(key)


AT_MOST_IN_QUEUE = Obstacle(True, Detail.APP_CANNOTRUN_QUEUE, Detail.APP_RUNNABLE_QUEUE)
AT_MOST_OF_USER = Obstacle(True, Detail.APP_CANNOTRUN_QUOTA, Detail.APP_RUNNABLE_QUOTA)


def obstacle_of(ask: Ask) -> Obstacle | None:
    """What holds a waiting ask back above the nodes, or None."""
    app = ask.app
    if app.state is State.ACCEPTED:
        if closed_queue(app) is not None:
            return AT_MOST_IN_QUEUE
        if closing_ceiling(app) is not None:
            return AT_MOST_OF_USER
    ceiling = full_ceiling(app, ask.items)
    if ceiling is not None:
        limit = ceiling.max or {}
        left = tuple((name, limit[name] - ceiling.used.get(name, 0)) for name in sorted(limit))
        text = f"exceeds the available user quota (requested {amounts(ask.items)}, available {amounts(left)})"
        return Obstacle(
            False, text=f"Request '{ask.key}' {text}", after="Request '{}' fits in the available user quota"
        )
    if app.queue.short_of_room(ask.items) is not None:
        room = tuple(sorted((app.queue.headroom() or {}).items()))
        path = app.queue.path
        text = f"does not fit in queue '{path}' (requested {amounts(ask.items)}, available {amounts(room)})"
        after = f"has become schedulable in queue '{path}'".replace("{", "{{").replace("}", "}}")
        return Obstacle(False, text=f"Request '{ask.key}' {text}", after=f"Request '{{}}' {after}")
    return None
