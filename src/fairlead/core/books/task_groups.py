"""Task groups: what became of the placeholders of one name in an application.

Decides only whether some placeholder may still be replaced. Never looks at nodes. Invariant: `standing` are those that
have a node and were not told to go; replaced and timed out ones never come back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.resources import Items

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask


@dataclass(slots=True, eq=False)
class TaskGroup:
    """The placeholders of one name in an application, and what became of them."""

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
    def stands_in(self) -> bool:
        """Whether some placeholder may still be replaced, so that real asks of the group wait for it."""
        return self.count > self.replaced + self.timed_out
