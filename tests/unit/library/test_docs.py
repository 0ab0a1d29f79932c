"""The page about the library does what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "library.md"


def test_every_block_of_the_page_runs(capsys: object) -> None:
    """The blocks run one after the other, as a reader would type them; their assertions hold."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 7
    typed: dict[str, object] = {"__name__": "__page__"}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), typed)
