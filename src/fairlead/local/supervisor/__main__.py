"""Entry of the supervisor process: `python -I -S __main__.py RUN_DIRECTORY`.

Decides nothing. It makes this folder importable without the package around it, so that a broken or changed environment
cannot slow down or stop the start of work. Everything is imported before anything is done.
"""

from __future__ import annotations

import importlib
import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(os.path.dirname(here))
    importlib.import_module(os.path.basename(here) + ".priority").stand_back()
    sys.exit(importlib.import_module(os.path.basename(here) + ".run").main(sys.argv[1:]))
