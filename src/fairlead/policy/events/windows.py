"""Windows: what an order to keep nodes free for a time means.

Decides nothing itself: the order is a declaration as others are, and what waits is looked at anew because of it. Never
touches what runs before the window begins. Invariant: a refused order changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts import windows
from fairlead.core.books.admission import WINDOW
from fairlead.core.model.decisions import DeclarationChanged, DeclarationRejected

if TYPE_CHECKING:
    from fairlead.core.books.cluster import Cluster
    from fairlead.core.model.events import RemoveWindow, SetWindow


def set_window(cluster: Cluster, event: SetWindow) -> None:
    """A window is declared or changed."""
    book, name = cluster.admission.windows, event.spec.name
    refused = book.why_not_set(event.spec)
    if refused is not None:
        cluster.out.append(DeclarationRejected(WINDOW, name, refused))
    elif change := book.set(event.spec):
        cluster.out.append(DeclarationChanged(WINDOW, name, change, event.who))
        _look(cluster)


def remove_window(cluster: Cluster, event: RemoveWindow) -> None:
    """A window does not come, or is over."""
    book = cluster.admission.windows
    refused = book.why_not_remove(event.name)
    if refused is not None:
        cluster.out.append(DeclarationRejected(WINDOW, event.name, refused))
        return
    book.remove(event.name)
    cluster.out.append(DeclarationChanged(WINDOW, event.name, "removed", event.who))
    _look(cluster)


def _look(cluster: Cluster) -> None:
    for partition in cluster.partitions.values():
        windows.look(partition)
