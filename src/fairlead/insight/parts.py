"""Parts: single things that could be otherwise, as values.

Decides in which dimensions something can be otherwise, and what one unit less of it is. Never looks at a state or
judges. Invariant: a part says all that is needed to bring it about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class What(StrEnum):
    """The dimensions in which something can be otherwise."""

    PRIORITY = "priority"
    QUEUE_MAX = "queue-max"
    QUEUE_APPLICATIONS = "queue-applications"
    GUARANTEED = "guaranteed"
    """What a queue is guaranteed."""
    LIMIT = "limit"
    LIMIT_APPLICATIONS = "limit-applications"
    PROPERTY = "queue-property"
    """`text` is `name=value`, or `-name` for a property that would not be set."""
    QUOTA = "class-quota"
    """What a quota by priority class lets work ask for. Only refused work meets it."""
    NODE_ROOM = "node-room"
    NODES = "nodes"
    ATTRIBUTE = "node-attribute"
    """`text` is `key=value`, or `-key` for an attribute that the node would not have."""
    TAINT = "taint"
    """A taint of a node that would be gone; `text` is `key=value:effect`."""
    DRAIN = "drain"
    """A node that would take new work again."""
    CANCEL = "cancel"
    TURN = "reservation"
    """A reservation of another ask in its queue that would be lifted."""
    TIME = "time"
    """That nothing happens until then, and the clock goes on."""
    QUEUE = "queue"
    SMALLER = "smaller-request"
    WHERE = "constraints"
    """A constraint that the ask would do without (`text`: which), or a taint that it would tolerate."""
    SHORTER = "time-limit"
    """A time limit that the ask would declare: it may pass a kept turn with it."""
    PLAIN = "not-idle"
    STOPS_OTHERS = "may-preempt"
    """Neither its class nor it itself would forbid that others are stopped for it."""
    ANY_NODE = "any-node"
    """It would not have to run on one node."""
    ALONE = "no-gang"
    """It would be no member of its task group."""


IN_THE_FILE = frozenset(
    {
        What.QUEUE_MAX,
        What.QUEUE_APPLICATIONS,
        What.GUARANTEED,
        What.LIMIT,
        What.LIMIT_APPLICATIONS,
        What.PROPERTY,
    }
)
"""Changes of the queue file."""
OF_THE_ASK = frozenset({What.WHERE, What.SHORTER, What.PLAIN, What.STOPS_OTHERS, What.ANY_NODE, What.ALONE})
"""What is said when work is submitted: changing it means to submit it again."""
COUNTED = frozenset(
    {
        What.PRIORITY,
        What.QUEUE_MAX,
        What.QUEUE_APPLICATIONS,
        What.GUARANTEED,
        What.LIMIT,
        What.LIMIT_APPLICATIONS,
        What.QUOTA,
        What.NODE_ROOM,
        What.NODES,
        What.TIME,
        What.SMALLER,
        What.SHORTER,
    }
)
"""One unit less of these makes sense; the others are or are not."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that would be otherwise: `value` instead of `now`."""

    what: What
    subject: str
    """The queue, the node, the ask, or the node that new ones would be like."""
    now: int
    value: int
    resource: str = ""
    who: str = ""
    """For limits: `user NAME` or `group NAME`, as the entry of the file names it."""
    text: str = ""
    """What it is about where that is no number."""

    @property
    def step(self) -> int:
        """The direction of the change."""
        return -1 if self.what in (What.SMALLER, What.SHORTER) else 1

    @property
    def is_counted(self) -> bool:
        """Whether one unit less of it makes sense."""
        return self.what in COUNTED

    def less(self) -> Part:
        """The same by one unit less."""
        return replace(self, value=self.value - self.step)

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        plain: dict[str, Any] = {"what": str(self.what), "subject": self.subject, "now": self.now, "value": self.value}
        more = (("resource", self.resource), ("who", self.who), ("text", self.text))
        return plain | {name: value for name, value in more if value}
