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
        self.next = 1
        self._passed_over: list[tuple[int, int]] = []
        """From which number to before which, in their order."""

    def give(self, number: int) -> None:
        """A job has it; of an array also a further part."""
        if number >= self.next:
            self.skip_to(number)
            self.next = number + 1

    def skip_to(self, number: int) -> None:
        """Give out none below this (runs of that name exist already)."""
        if number > self.next:
            begin = self.next
            if self._passed_over and self._passed_over[-1][1] == begin:
                begin, _ = self._passed_over.pop()
            self._passed_over.append((begin, number))
            self.next = number

    def was_given(self, number: int) -> bool:
        """Whether a job of this book had it, as far as that is known."""
        return 0 < number < self.next and not any(begin <= number < end for begin, end in self._passed_over)

    def dump(self) -> dict[str, Any]:
        """As plain values."""
        return {"next_number": self.next, "passed_over": [list(each) for each in self._passed_over]}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> JobNumbers:
        """What `dump` described. What an older version wrote does not say which were passed over: it may be any."""
        made = cls()
        made.next = state["next_number"]
        made._passed_over = [(begin, end) for begin, end in state.get("passed_over", [(1, made.next)])]
        return made
