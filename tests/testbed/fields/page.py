"""The page of all fields of the API, read.

Decides how its tables are read. Knows nothing of what the fields do.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "kubernetes-fields.md"


def rows() -> dict[str, dict[str, str]]:
    """By type and field: what the page says becomes of it."""
    found: dict[str, dict[str, str]] = {}
    of_type: dict[str, str] = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            of_type = found.setdefault(line[3:], {})
        elif line.startswith("| `"):
            fields, outcome = line.strip("| ").split(" | ", 1)
            for name in re.findall(r"`(\w+)`", fields):
                assert name not in of_type, f"{name} stands twice"
                of_type[name] = outcome
    return found
