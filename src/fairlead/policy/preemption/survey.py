"""Survey: what all attempts to make room by guarantee would look up again, listed once for each state of the books.

Decides nothing. Hundreds of asks may try at the same moment, and mostly nothing can be done for any of them: each is to
cost what concerns it alone. Invariant: an attempt finds the same with a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Partition, Queue


class Survey:
    """Of one partition as it is, until `books_version` changes."""

    def __init__(self, partition: Partition) -> None:
        self.partition, self.version = partition, partition.books_version
        self.to_come = [n.ask for n in partition.nominations.of.values() if not n.gathers]
        """Waiting asks for which work was stopped."""
        for node in partition.nodes.nodes.values() if partition.reservations else ():
            self.to_come += [holder for holder in node.reservations if holder.preempt_triggered]
        self._of_leaf: dict[tuple[Queue, int], list[Ask]] = {}

    def stoppable(self, leaf: Queue, least_spared: int) -> list[Ask]:
        """What runs in this leaf with a lower priority than that and may be told to stop, idle work apart: application
        by application, in order of arrival.
        """
        found = self._of_leaf.get((leaf, least_spared))
        if found is None:
            apps = [app for app in leaf.applications.values() if app.allocations]
            work = (a for app in apps for a in app.asks.values() if not a.spec.idle and a.priority < least_spared)
            found = self._of_leaf[leaf, least_spared] = [a for a in work if may_be_told(a)]
        return found


def may_be_told(running: Ask) -> bool:
    """Whether it runs, was not told to stop yet, and is not bound to its node."""
    return running.node is not None and running.evict_cause is None and not running.required_node
