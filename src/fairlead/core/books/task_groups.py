"""Task groups: what became of the placeholders of one name in an application.

Decides only whether some placeholder may still be replaced. Never looks at nodes. Invariant: `standing` are those that
have a node and were not told to go; replaced and timed out ones never come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.resources import Items

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask


class TaskGroup:
    """The placeholders of one name in an application, and what became of them."""

    __slots__ = ("count", "name", "replaced", "smallest", "standing", "timed_out")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        """Placeholders that were asked for, ever."""
        self.smallest: Items = ()
        """The size of the first one."""
        self.replaced = 0
        self.timed_out = 0
        """Lost in any other way than by being replaced."""
        self.standing: dict[Ask, None] = {}
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
