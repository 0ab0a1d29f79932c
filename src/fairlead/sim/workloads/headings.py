"""Headings: which columns of a table mean something, and what is done about the others.

Decides that a name which nearly is one of the known ones was meant as it: that is an error, or an option would be lost
over a typing error. Every other name is a column of one's own: it is passed over and said once. Never reads a cell.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection

RESOURCES = "resources."
COLUMNS = ("time", "run", "job", "user", "queue", "priority", "count", "gang", "time_limit", "retries", "idle")
_AMOUNTS = {"cpu": "vcore", "cpus": "vcore", "vcores": "vcore"} | {
    name: name for name in ("vcore", "memory", "gpu", "pods", "nvidia.com/gpu", "ephemeral-storage")
}
"""Resources that a column is often called by alone."""
_OTHERWISE = {"retry": "retries", "walltime": "time_limit"}
"""Other words for a column, that no rule of likeness finds."""
_LEAST = 4
"""Letters that the beginning of a name must have to be told for it: `prio`, not `id`."""
_ALIKE = 0.8


def is_known(name: str) -> bool:
    """Whether a column of this name is read."""
    return name in COLUMNS or (name.startswith(RESOURCES) and name != RESOURCES)


def meant(name: str, present: Collection[str]) -> str | None:
    """The known name that an unknown one was meant as; None if it is a column of one's own.

    What the table has beside it was not meant: with `queue` and `queues` the second is one's own.
    """
    word = name.strip().casefold()
    amount = word.removeprefix("resources").removeprefix("resource").lstrip("._- ")
    if amount in _AMOUNTS or word.startswith(("resources.", "resources_", "resource.", "resource_")):
        wanted = RESOURCES + (_AMOUNTS.get(amount, amount) or "NAME")
        return wanted if wanted not in present else None
    free = [known for known in COLUMNS if known not in present]
    close = [known for known in free if known == _OTHERWISE.get(word)]
    close += [known for known in free if known.startswith(word) and len(word) >= _LEAST]
    close += difflib.get_close_matches(word.replace("-", "_").replace(" ", "_"), free, n=1, cutoff=_ALIKE)
    return close[0] if close else None


class PassedOver:
    """The columns of one's own, in order of first sight."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, name: str) -> None:
        """A column that is not read."""
        self._names[name] = None

    def note(self) -> str | None:
        """One sentence about all of them; None if there are none."""
        if not self._names:
            return None
        names = [repr(name) for name in self._names]
        more = f" and {len(names) - _SAID:,} more" if len(names) > _SAID else ""
        return f"columns that mean nothing here were passed over: {', '.join(names[:_SAID])}{more}"


_SAID = 10
