"""What differs of a panel: some rows of its tables, or more than that.

Decides which rows a browser is sent anew. Never knows what they say. Invariant: what is shown, with these rows put in
the place of those of the same key, is what is to be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from fairlead.web.html import Html

BEGIN, END = '<tr data-k="', "</tr>"
"""Of a row, as `frame.table` makes them; none has a table in it."""


@lru_cache(maxsize=16)
def changed_rows(shown: Html, wanted: Html) -> Sequence[Html] | None:
    """The rows that differ; None: something else does too, or a key names more than one row.

    Pages that show the same have it worked out once.
    """
    (around, before), (around_then, after) = _taken_apart(shown), _taken_apart(wanted)
    if not after or list(before) != list(after) or around != around_then:
        return None
    return tuple(
        Html(f"{BEGIN}{new}{END}") for old, new in zip(before.values(), after.values(), strict=True) if old != new
    )


def _taken_apart(html: str) -> tuple[list[str], dict[str, str]]:
    """What is around the rows, and the rows by their keys; none if a key names two."""
    first, *pieces = html.split(BEGIN)
    rows = [piece.partition(END) for piece in pieces]
    by_key = {row.partition('"')[0]: row for row, _, _ in rows}
    return [first, *(rest for _, _, rest in rows)], by_key if len(by_key) == len(rows) else {}
