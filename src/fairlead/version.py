"""Which Fairlead this is: its number, and whether the modules that decide are compiled.

Decides nothing. Never imports what it tells about: finding a module's file is enough. Invariant: what it says of the
build is true of the process that asks, because one build is all compiled or all plain (`docs/compiled.md`).
"""

from __future__ import annotations

from importlib import metadata, util
from pathlib import Path
from typing import Literal

Build = Literal["compiled", "plain"]

_FRONT_DOOR = "fairlead.scheduler"
"""The one module that is compiled in every compiled build."""


def version() -> str:
    """The number of the installed package; `0+source` for a source tree that is not installed."""
    try:
        return metadata.version("fairlead")
    except metadata.PackageNotFoundError:
        return "0+source"


def build() -> Build:
    """Whether this process decides with extension modules or with the plain Python files."""
    found = util.find_spec(_FRONT_DOOR)
    plain = found is None or found.origin is None or Path(found.origin).suffix == ".py"
    return "plain" if plain else "compiled"


def version_and_build() -> str:
    """Both, as people read them: `0.1.0 (plain)`."""
    return f"{version()} ({build()})"
