"""The journal's tests draw events from tests/strategies.py and build journals with journals.py beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
for _place in (str(_HERE), str(_HERE.parents[1])):
    if _place not in sys.path:
        sys.path.append(_place)
