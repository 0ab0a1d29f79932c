"""Each module of the core and the policy has a test file of its name, in a folder of the same name as its own.

What several modules do together is tested in the files that stand in `tests/unit/core` and `tests/unit/policy`.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "fairlead"
TESTS = ROOT / "tests" / "unit"

WITHOUT_TEST = frozenset(
    """
    core/acts/limit_groups core/books/admission
    core/books/node_filters core/books/partition core/books/topology_counts
    policy/eligibility/start_estimates
    policy/events/admin_objects policy/events/handlers policy/events/reload policy/order/victim_index
    policy/place/allocate policy/place/backfill
    """.split()  # noqa: SIM905 (a list of quoted words is harder to read)
)
"""Modules that are tested only by what they do for others. Shrink it, never add to it."""


def modules() -> dict[str, bool]:
    """Each module by its path, and whether it has a test file."""
    paths = [p.relative_to(PACKAGE) for part in ("core", "policy") for p in (PACKAGE / part).rglob("*.py")]
    return {
        p.with_suffix("").as_posix(): (TESTS / p.parent / f"test_{p.name}").exists()
        for p in sorted(paths)
        if p.name != "__init__.py"
    }


def test_each_module_has_a_test_of_its_name() -> None:
    """A new module comes with its tests; one that gets them leaves the list."""
    has_test = modules()
    assert len(has_test) > 50
    without = {name for name, tested in has_test.items() if not tested}
    assert not sorted(without - WITHOUT_TEST), "these need a test file of their name"
    assert not sorted(WITHOUT_TEST - without), "these have one, or are gone: take them off the list"
