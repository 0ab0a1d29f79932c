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
    try:
        importlib.import_module(os.path.basename(here) + ".priority").stand_back()
        status = importlib.import_module(os.path.basename(here) + ".run").main(sys.argv[1:])
    except Exception as problem:
        # The machine reads this: a sentence for the report of the run.
        sys.exit(f"its supervisor failed: {type(problem).__name__}: {problem}")
    sys.exit(status)
