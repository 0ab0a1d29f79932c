"""`python -m fairlead`: the command, where its folder is not on the search path. Decides nothing, prints nothing."""

from __future__ import annotations

from fairlead.cli.main import run

if __name__ == "__main__":
    run()
