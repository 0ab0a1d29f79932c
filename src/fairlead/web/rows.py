"""What differs of a panel: some rows of its tables, or more than that.

Decides which rows a browser is sent anew. Never knows what they say. Invariant: what is shown, with these rows put in
the place of those of the same key, is what is to be shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from fairlead.web.html import Html

ROW = re.compile(r'<tr data-k="([^"]*)">.*?</tr>', re.DOTALL)
"""As `frame.table` makes them; none has a table in it."""


@lru_cache(maxsize=16)
def changed_rows(shown: Html, wanted: Html) -> Sequence[Html] | None:
    """The rows that differ; None: something else does too, or a key names more than one row.

    Pages that show the same have it worked out once.
    """
    before, after = list(ROW.finditer(shown)), list(ROW.finditer(wanted))
    keys = [row[1] for row in after]
    if not keys or keys != [row[1] for row in before] or len(set(keys)) < len(keys):
        return None
    if ROW.split(shown)[::2] != ROW.split(wanted)[::2]:
        return None
    return tuple(Html(new[0]) for old, new in zip(before, after, strict=True) if old[0] != new[0])
