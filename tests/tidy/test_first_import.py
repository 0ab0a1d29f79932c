"""Each module that acts or decides can be the first that is imported: no circle of imports shows in one order only.

The compiled build is asked the same, in a process for each (`tests/compiled`).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fairlead

SOURCE = Path(fairlead.__file__).parent
# What these rooms stand on imports none of them (the import rules see to it): it may be there already.
ASK = """
import importlib, sys
failed = []
for name in sys.argv[1:]:
    for known in [known for known in sys.modules if known.startswith(("fairlead.core.", "fairlead.policy"))]:
        if not known.startswith("fairlead.core.model"):
            del sys.modules[known]
    try:
        importlib.import_module(name)
    except (ImportError, AttributeError) as e:
        failed.append(f"{name}: {e}")
print("\\n".join(failed))
"""


def failures(*names: str) -> list[str]:
    ended = subprocess.run([sys.executable, "-c", ASK, *names], capture_output=True, text=True, check=True)
    return ended.stdout.split("\n")[:-1] if ended.stdout.strip() else []


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_each_module_can_be_the_first() -> None:
    paths = [path for room in ("core/acts", "policy") for path in sorted((SOURCE / room).rglob("*.py"))]
    names = [".".join(("fairlead", *path.relative_to(SOURCE).with_suffix("").parts)) for path in paths]
    assert failures(*(name.removesuffix(".__init__") for name in names)) == []


def test_one_that_cannot_is_told() -> None:
    assert [line.partition(":")[0] for line in failures("fairlead.core", "fairlead.nowhere")] == ["fairlead.nowhere"]
