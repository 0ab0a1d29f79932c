"""Task groups: the placeholders of one name in an application, counted.

Decides how many members a group has, and whether it still stands in for real asks. Never looks at nodes, nor which
placeholder a real ask replaces (`policy.place.gang`). Invariant: what was asked for is replaced, lost, or a member.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.resources import Items

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask


@dataclass(slots=True, eq=False)
class TaskGroup:
    """The placeholders of one name in an application; replaced and timed out ones never come back."""

    name: str
    count: int = 0
    """Placeholders that were asked for, ever."""
    smallest: Items = ()
    """The size of the first one."""
    replaced: int = 0
    timed_out: int = 0
    """Lost in any other way than by being replaced."""
    standing: dict[Ask, None] = field(default_factory=dict)
    """Those that have a node and were not told to go."""

    def count_in(self, ask: Ask) -> None:
        """One more placeholder was asked for."""
        if not self.count:
            self.smallest = ask.items
        self.count += 1

    @property
    def members(self) -> int:
        """How many placeholders it has that may still be replaced."""
        return self.count - self.replaced - self.timed_out

    @property
    def stands_in(self) -> bool:
        """Whether some placeholder may still be replaced, so that real asks of the group wait for it."""
        return self.members > 0
