"""The Python on the pages does what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(
    ("page", "least"), [("library.md", 7), ("where.md", 2), ("queues/preemption-by-priority.md", 1)]
)
def test_every_block_of_the_page_runs(page: str, least: int) -> None:
    """The blocks run one after the other, as a reader would type them; their assertions hold."""
    text = (PAGES / page).read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= least
    typed: dict[str, object] = {"__name__": "__page__"}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], page, "exec"), typed)
