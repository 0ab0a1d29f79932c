"""Retry: work that was broken off or failed is tried again, as an ask of the same application.

Decides when a further attempt enters: at once, or after its back-off, for which it is held. Idle work that was stopped
goes back to its queue in the same way, and so do placeholders that were given back so that another gang gets through.
Which ends are followed by a further attempt is said in `core.books.retries`; that it goes ahead of others is the
order's business. Never starts or stops anything. Invariant: one end makes at most one further attempt, and the attempts
of one piece of work are linked by `first_key`.
"""

from __future__ import annotations

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.books.retries import BROKEN_OFF, GAVE_WAY, backoff_ms, next_placeholder, next_spec, why_final
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import AskRejected, Retried
from fairlead.core.model.events import Cause, Checkpoint
from fairlead.core.model.lifecycle import State
from fairlead.core.model.reasons import Refused
from fairlead.core.model.specs import AskSpec
from fairlead.policy.events import held

GOES_ON = frozenset({State.ACCEPTED, State.STARTING, State.RUNNING, State.COMPLETING})
"""An application that fails, starts over or has ended gets no further attempts."""


def final(ask: Ask, cause: Cause, exit_code: int | None = None) -> str:
    """Why an allocation that ends like this gets no further attempt, as part of a sentence; nothing: it gets one."""
    if ask.app.state not in GOES_ON:
        return f"application {ask.app.id} is {ask.app.state}"
    return why_final(ask.spec, cause, exit_code)


def try_again(partition: Partition, ask: Ask, cause: Cause, exit_code: int | None = None) -> AskSpec | None:
    """An allocation is about to end: make its next attempt, if it gets one. `held.enter_if_met` lets it in later."""
    if ask.spec.placeholder:
        if not _gave_way(ask, cause):
            return None
        spec, due_ms = next_placeholder(ask.spec, ask.priority, cause), partition.now_ms
    elif final(ask, cause, exit_code):
        return None
    else:
        spec = next_spec(ask.spec, ask.priority, cause)
        due_ms = partition.now_ms + backoff_ms(ask.spec, cause)
    is_held = partition.held_asks.get(ask.app.id, spec.key) is not None
    if is_held or spec.key in ask.app.asks:
        where = "held" if is_held else "there already"
        why = Refused(f"attempt {spec.attempt} of {spec.first_key} cannot enter: an ask of that name is {where}")
        partition.out.append(AskRejected(ask.app.id, ask.key, why, partition.name))
        return None
    held.hold(partition, ask.app, spec, Conditions(begin_ms=due_ms))
    partition.out.append(Retried(ask.app.id, ask.key, spec.key, spec.attempt, due_ms, partition.name))
    return spec


def _gave_way(ask: Ask, cause: Cause) -> bool:
    """Whether it is a placeholder that its gang gave back for another one's sake; its gang still waits to be whole."""
    told_to = ask.evicted_by is not None and ask.evicted_by[0] == GAVE_WAY
    return told_to and cause in BROKEN_OFF and ask.app.state is State.ACCEPTED


def checkpoint(partition: Partition, event: Checkpoint) -> None:
    """A running allocation has saved its work: what it did before now would not be lost. Others are passed over."""
    ask = partition.find_ask(event.application, event.key)
    if ask is not None and ask.node is not None:
        ask.checkpoint_ms = partition.now_ms
