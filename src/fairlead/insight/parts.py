"""Parts: single things that could be otherwise, as values and in words.

Decides in which dimensions something can be otherwise, what one unit less of it is, and how each is said: several
amounts of one thing are said together. Never looks at a state or judges. Invariant: a part says all that is needed to
bring it about; its clause completes the words "it runs if".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from fairlead.core.model.constraints import CORDONED
from fairlead.core.model.quantities import format_exactly
from fairlead.times import duration_exactly
from fairlead.wire import verdicts
from fairlead.wire.fields import measured


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
    CONDITION = "condition"
    """What is not in line yet would not have to wait for this (`text`: which)."""
    AT_ONCE = "at-once"
    """So many of its application might be in line or run at a time."""


_AMOUNTS_IN_THE_FILE = (What.QUEUE_MAX, What.QUEUE_APPLICATIONS, What.GUARANTEED, What.LIMIT, What.LIMIT_APPLICATIONS)
IN_THE_FILE = frozenset({*_AMOUNTS_IN_THE_FILE, What.PROPERTY})
"""Changes of the queue file."""
OF_THE_ASK = frozenset({What.WHERE, What.SHORTER, What.PLAIN, What.STOPS_OTHERS, What.ANY_NODE, What.ALONE})
"""What is said when work is submitted: changing it means to submit it again."""
_OTHER_AMOUNTS = (
    What.PRIORITY,
    What.QUOTA,
    What.NODE_ROOM,
    What.NODES,
    What.TIME,
    What.SMALLER,
    What.SHORTER,
    What.AT_ONCE,
)
COUNTED = frozenset({*_AMOUNTS_IN_THE_FILE, *_OTHER_AMOUNTS})
"""One unit less of these makes sense; the others are or are not."""


class Part(Struct, frozen=True):
    """One thing that would be otherwise: `value` instead of `now`, as the books count."""

    what: What
    subject: str
    now: int
    value: int
    resource: str = ""
    who: str = ""
    text: str = ""

    def shown(self) -> verdicts.Part:
        """As it is answered."""
        resource, (now, value) = measured(self.resource, self.now, self.value)
        return verdicts.Part(self.what, self.subject, now, value, resource, self.who, self.text)

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


def clauses(parts: Sequence[Part]) -> list[str]:
    """One for each thing that would be otherwise; each completes the words "it runs if"."""
    return list(_said(parts, _CLAUSES))


def acts(parts: Sequence[Part], *, of_pods: bool = False) -> list[str]:
    """The same as things to do: each completes the words "you can". `of_pods`: what asks is a pod, or a job of pods."""
    return list(_said(parts, _ACTS_OF_PODS if of_pods else _ACTS))


Words = str | Callable[[Part], str]


def _said(parts: Sequence[Part], words: dict[What, Words]) -> Iterable[str]:
    together: dict[tuple[str, str, str, str], list[Part]] = {}
    for part in parts:
        together.setdefault((part.what, part.subject, part.who, part.text), []).append(part)
    for same in together.values():
        new = format_exactly({p.resource: p.value for p in same if p.resource})
        # Where more is used than there is, nothing is free.
        old = format_exactly({p.resource: max(p.now, 0) for p in same if p.resource})
        part, clause = same[0], words[What(same[0].what)]
        key = part.subject.rpartition("/")[2]
        if part.what is What.NODE_ROOM and any(p.value <= 0 for p in same):
            # Of what is used beyond it more is about to leave.
            new = f"{format_exactly({p.resource: p.value - p.now for p in same})} more"
        # An entry for `*` counts for each one alone that has none of its own.
        who = "each user (*)" if part.who == "user *" else part.who
        yield clause.format(p=part, new=new, old=old, key=key, who=who) if isinstance(clause, str) else clause(part)


def _priority(part: Part) -> str:
    less = part.value - 1
    return f"its priority were {part.value} (now {part.now}{f'; {less} is not enough' if less > part.now else ''})"


def _nodes(part: Part) -> str:
    many = "one more node" if part.value == 1 else f"{part.value} more nodes"
    return f"there were {many} like {part.subject}"


def _property(part: Part) -> str:
    if part.text.startswith("-"):
        return f"{part.subject} had no {part.text[1:]}"
    name, _, value = part.text.partition("=")
    return f"{part.subject} had {name}: {value}"


def _attribute(part: Part) -> str:
    if part.text.startswith("-"):
        return f"node {part.subject} had no attribute {part.text[1:]}"
    return f"node {part.subject} had the attribute {part.text}"


def _where(part: Part) -> str:
    if part.text.startswith(TOLERATES):
        return f"it tolerated the taint {part.text.removeprefix(TOLERATES)}"
    return f"it were submitted without its {WITHOUT[part.text]}"


def _shorter(part: Part) -> str:
    now = f"now {duration_exactly(part.now)}" if part.now else "now it has none"
    return f"its time limit were {duration_exactly(part.value)} at most ({now})"


TOLERATES = "tolerates "
WITHOUT = {
    "selector": "node selector",
    "affinity": "affinity",
    "anti-affinity": "anti-affinity",
    "spread": "spread",
    "ports": "host ports",
}
"""Constraints that an ask could do without, by the filter that they are."""

HOLD, BEGIN, AFTER = "hold", "begin", "after"
_ENTERS = {HOLD: "it were released", BEGIN: "it were to begin now", AFTER: "it waited for no other work"}
_LET_ENTER = {HOLD: "release it", BEGIN: "let it begin now", AFTER: "let it wait for no other work"}


def _taint(part: Part) -> str:
    if part.text.startswith(f"{CORDONED}:"):
        return f"node {part.subject} were not cordoned"
    return f"node {part.subject} had no taint {part.text}"


_CLAUSES: dict[What, Words] = {
    What.PRIORITY: _priority,
    What.QUEUE_MAX: "the maximum of {p.subject} were {new} (now {old})",
    What.QUEUE_APPLICATIONS: "{p.subject} might run {p.value} applications (now {p.now})",
    What.GUARANTEED: "the guarantee of {p.subject} were {new} (now {old})",
    What.LIMIT: "the limit of {who} in {p.subject} were {new} (now {old})",
    What.LIMIT_APPLICATIONS: "{who} might run {p.value} applications in {p.subject} (now {p.now})",
    What.PROPERTY: _property,
    What.QUOTA: "quota {p.text} of {p.subject} were {new} (now {old})",
    What.NODE_ROOM: "{new} were free on {p.subject} (now {old})",
    What.NODES: _nodes,
    What.ATTRIBUTE: _attribute,
    What.TAINT: _taint,
    What.DRAIN: "node {p.subject} were not drained",
    What.CANCEL: "{key} were gone",
    What.TURN: "the reservation of {key} were lifted",
    What.TIME: lambda p: f"nothing happened for {duration_exactly(p.value - p.now)} ({p.text})",
    What.QUEUE: "it were in {p.subject}",
    What.SMALLER: "it needed no more than {new} (now {old})",
    What.WHERE: _where,
    What.SHORTER: _shorter,
    What.PLAIN: "it were not idle",
    What.STOPS_OTHERS: "others might be stopped for it ({p.text})",
    What.ANY_NODE: "it might run on other nodes than {p.text}",
    What.ALONE: "it were no member of task group {p.text}",
    What.CONDITION: lambda p: _ENTERS[p.text],
    What.AT_ONCE: "{p.subject} might have {p.value} parts at once (now {p.now})",
}
"""By the first part of the same subject; `new` and `old` are its amounts as they would be, and as they are."""


def _do_property(part: Part) -> str:
    if part.text.startswith("-"):
        return f"take {part.text[1:]} out of {part.subject}"
    name, _, value = part.text.partition("=")
    return f"give {part.subject} {name}: {value}"


def _do_attribute(part: Part) -> str:
    if part.text.startswith("-"):
        return f"take the attribute {part.text[1:]} from node {part.subject}"
    return f"give node {part.subject} the attribute {part.text}"


def _do_taint(part: Part) -> str:
    if part.text.startswith(f"{CORDONED}:"):
        # Its cluster puts the taint back for as long as the node is cordoned.
        return f"uncordon node {part.subject}"
    return f"take the taint {part.text} from node {part.subject}"


def _do_where(part: Part) -> str:
    if part.text.startswith(TOLERATES):
        return f"submit it so that it tolerates the taint {part.text.removeprefix(TOLERATES)}"
    return f"submit it without its {WITHOUT[part.text]}"


_ACTS: dict[What, Words] = {
    What.PRIORITY: "raise its priority to {p.value} (now {p.now})",
    What.QUEUE_MAX: "raise the maximum of {p.subject} to {new} (now {old})",
    What.QUEUE_APPLICATIONS: "let {p.subject} run {p.value} applications (now {p.now})",
    What.GUARANTEED: "guarantee {p.subject} {new} (now {old})",
    What.LIMIT: "raise the limit of {who} in {p.subject} to {new} (now {old})",
    What.LIMIT_APPLICATIONS: "let {who} run {p.value} applications in {p.subject} (now {p.now})",
    What.PROPERTY: _do_property,
    What.QUOTA: "raise quota {p.text} of {p.subject} to {new} (now {old})",
    What.NODE_ROOM: "have {new} free on {p.subject} (now {old})",
    What.NODES: lambda p: f"add {'one more node' if p.value == 1 else f'{p.value} more nodes'} like {p.subject}",
    What.ATTRIBUTE: _do_attribute,
    What.TAINT: _do_taint,
    What.DRAIN: "let node {p.subject} take new work again",
    What.CANCEL: "cancel {key}",
    What.TURN: "lift the reservation of {key}",
    What.TIME: lambda p: f"wait {duration_exactly(p.value - p.now)}: {p.text}",
    What.QUEUE: "move it to {p.subject}",
    What.SMALLER: "ask for {new} at most (now {old})",
    What.WHERE: _do_where,
    What.SHORTER: lambda p: f"declare a time limit of {duration_exactly(p.value)} at most",
    What.PLAIN: "submit it as work that is not idle",
    What.STOPS_OTHERS: "submit it so that others may be stopped for it ({p.text})",
    What.ANY_NODE: "let it run on other nodes than {p.text}",
    What.ALONE: "submit it without its task group {p.text}",
    What.CONDITION: lambda p: _LET_ENTER[p.text],
    What.AT_ONCE: "let {p.subject} have {p.value} parts at once (now {p.now})",
}
"""As `_CLAUSES`, for somebody who is told what to do."""
_ACTS_OF_PODS: dict[What, Words] = {
    **_ACTS,
    What.PRIORITY: "make it anew with a priority class of value {p.value} (now {p.now})",
    What.QUEUE: "make it anew in {p.subject}",
    What.SMALLER: "make it anew with requests of {new} at most (now {old})",
    What.SHORTER: lambda p: f"set its activeDeadlineSeconds to {p.value // 1000} at most",
    What.CANCEL: "delete {key}",
}
"""The same where Kubernetes does not let these be changed of what is there."""
