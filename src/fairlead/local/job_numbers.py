"""The numbers that jobs are called by.

Decides which comes next. Invariant: none is given out twice, and one that was passed over was never given out by this
book: its runs belong to records that were lost, or came after an older copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class JobNumbers:
    """Counts from 1."""

    def __init__(self) -> None:
        self._next = 1
        self._least = 1
        """Below it runs of that name exist already, whatever the book knows."""
        self._passed_over: list[tuple[int, int]] = []
        """From which number to before which, in their order."""

    @property
    def next(self) -> int:
        """The next one that is given out."""
        return max(self._next, self._least)

    def give(self, number: int) -> None:
        """A job has it; of an array also a further part."""
        if number >= self._next:
            self._passed_over, self._next = self._before(number), number + 1

    def skip_to(self, number: int) -> None:
        """Give out none below this (runs of that name exist already)."""
        self._least = max(self._least, number)

    def _before(self, number: int) -> list[tuple[int, int]]:
        """What was passed over when this one is the next."""
        return self._passed_over + ([(self._next, number)] if number > self._next else [])

    def was_given(self, number: int) -> bool:
        """Whether a job of this book had it, as far as that is known."""
        return 0 < number < self._next and not any(begin <= number < end for begin, end in self._passed_over)

    def dump(self) -> dict[str, Any]:
        """As plain values."""
        return {"next_number": self.next, "passed_over": [list(each) for each in self._before(self.next)]}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> JobNumbers:
        """What `dump` described. What an older version wrote does not say which were passed over: it may be any."""
        made = cls()
        made._next = state["next_number"]
        made._passed_over = [(begin, end) for begin, end in state.get("passed_over", [(1, made._next)])]
        return made
