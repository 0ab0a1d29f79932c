"""Each module of the core and the policy has a test file of its name, in a folder of the same name as its own.

What several modules do together is tested in the files that stand in `tests/unit/core` and `tests/unit/policy`.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "fairlead"
TESTS = ROOT / "tests" / "unit"


def modules() -> dict[str, bool]:
    """Each module by its path, and whether it has a test file."""
    paths = [p.relative_to(PACKAGE) for part in ("core", "policy") for p in (PACKAGE / part).rglob("*.py")]
    return {
        p.with_suffix("").as_posix(): (TESTS / p.parent / f"test_{p.name}").exists()
        for p in sorted(paths)
        if p.name != "__init__.py"
    }


def test_each_module_has_a_test_of_its_name() -> None:
    """A new module comes with its tests."""
    has_test = modules()
    assert len(has_test) > 50
    assert [name for name, tested in has_test.items() if not tested] == [], "these need a test file of their name"
