"""Two courses of `make simulate-service`: one that broke a promise once, and one more; and that it would notice."""

from __future__ import annotations

import pytest
from simulation import service, world

pytestmark = pytest.mark.timeout(300)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 4])
def test_a_service_keeps_its_promises(seed: int) -> None:
    """Whatever is killed, refused, or told late. In course 1 nominated asks had another order after a restart."""
    counts, failures = service.run(seed, 1500, each=1500)
    assert not failures, failures
    assert counts["kills"] > 5
    assert counts["jobs"] > 50


def test_a_run_that_is_executed_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that forgets what it has executed."""
    plain = world.World.begin

    def twice(self: world.World, spec: world.RunSpec) -> world.Run:
        plain(self, spec)
        return plain(self, spec)

    monkeypatch.setattr(world.World, "begin", twice)
    _, failures = service.run(4, 200, each=200)
    assert "executed more than once" in failures[0]
    assert "make simulate-service SEED=4" in failures[0]
