"""Which build runs is told by the files that Python found."""

from __future__ import annotations

import subprocess
import sys
from importlib import machinery
from pathlib import Path

import pytest

import fairlead
from fairlead import scheduler
from fairlead.version import build, version, version_and_build


def test_it_is_what_was_imported() -> None:
    """The front door's own file says it too."""
    assert build() == ("plain" if str(scheduler.__file__).endswith(".py") else "compiled")
    assert version_and_build() == f"{version()} ({build()})"


def test_asking_imports_nothing_that_decides() -> None:
    """`fairlead --version` stays quick."""
    program = "import sys; from fairlead.version import build; build(); print('fairlead.scheduler' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout == "False\n"


def test_an_extension_module_beside_the_source_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes it first, and so it is what is told."""
    (tmp_path / f"scheduler{machinery.EXTENSION_SUFFIXES[0]}").touch()
    monkeypatch.delitem(sys.modules, "fairlead.scheduler")
    monkeypatch.setattr(fairlead, "__path__", [str(tmp_path), *fairlead.__path__])
    assert build() == "compiled"
