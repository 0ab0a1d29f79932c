"""Nominations made and taken back: what becomes so in the books when room is kept for an ask, or no longer is.

Decides what follows from an order: what is kept, which lines change, and what is woken. Never decides for which ask
work is stopped (`policy.preemption.when`). Invariant: an ask that is nominated waits, and holds no reserved node.
"""

from __future__ import annotations

from fairlead.core.acts import waiting_asks
from fairlead.core.books import kept_constraints
from fairlead.core.books.application_limits import look_again
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import Nomination
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Reserved, Unreserved


def nominate(partition: Partition, ask: Ask, node: Node, victims: tuple[Ask, ...], *, gathers: bool = False) -> None:
    """Keep the space that `victims` leave on `node` for `ask`, and nothing else any longer.

    Unless room only `gathers` there, it leaves the line, and all that it needs of the node is kept, also where nothing
    has to go: what it took from a weaker ask the weaker one would take back else, and so on for ever.
    """
    assert ask.reserved_on is None, f"{ask} has {ask.reserved_on} reserved"
    withdraw(partition, ask)
    if not gathers:
        ask.app.leave(ask)
    enter(partition, Nomination(ask, node, victims, gathers))
    partition.books_version += 1
    partition.nodes.touch(node)
    partition.out.append(Reserved(ask.app.id, ask.key, node.id, partition.name))


def enter(partition: Partition, nomination: Nomination) -> None:
    """Put a nomination into the book."""
    ask = nomination.ask
    ask.nomination = nomination
    nomination.node.hold(ask)
    partition.nominations.of[ask] = nomination
    partition.nominations.keep_room(nomination)
    look_again(ask.app)
    if not nomination.gathers:
        kept_constraints.promise(partition.nodes, ask, nomination.node)


def lose(partition: Partition, ask: Ask) -> None:
    """What was kept for `ask` is lost: if work was stopped for that, other work may be stopped for it again."""
    if ask.nomination is not None:
        withdraw(partition, ask)
        ask.app.may_preempt_again(ask)


def withdraw(partition: Partition, ask: Ask) -> None:
    """Keep nothing for `ask` any longer (it runs, is gone, or a stronger one took the room); if it waits, in line."""
    nomination = ask.nomination
    if nomination is None:
        return
    node = nomination.node
    node.unhold(ask)
    ask.nomination = None
    del partition.nominations.of[ask]
    kept_constraints.let_go(partition.nodes, ask)
    partition.nominations.give_room_back(nomination)
    look_again(ask.app)
    partition.nodes.gained(node)
    partition.books_version += 1
    partition.out.append(Unreserved(ask.app.id, ask.key, node.id, partition.name))
    if ask.pending:
        if ask.batch is None:
            waiting_asks.line_up(partition, ask)
        else:
            partition.nodes.seeks(ask.batch.demand, ask.created_ms)
        ask.app.queue.touch_app(ask.app)
