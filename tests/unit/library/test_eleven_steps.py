"""The eleven-step example of priorities with fences and offsets, through the resource-manager interface."""

from __future__ import annotations

from scenarios.test_seeds import BEFORE, STEPS, after

import fairlead
from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.specs import PRIORITY_MIN
from fairlead.sim.steps import ScheduleStep, events_of


class Placed(fairlead.SilentCallbacks):
    """Keeps the keys in the order in which they are to be started."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def update_allocation(self, response: fairlead.AllocationResponse) -> None:
        self.keys += [new.key for new in response.new]


def tell(service: fairlead.SchedulerService) -> None:
    """Everything that happens before the first placement; the node comes last."""
    told = [event for step in after(11).steps if not isinstance(step, ScheduleStep) for event in events_of(step)]
    for event in sorted(told, key=lambda event: isinstance(event, AddNode)):
        match event:
            case AddNode():
                service.update_node("rm", create=[event.node])
            case AddApplication():
                service.update_application("rm", new=[event.application])
            case AddAsks():
                service.update_allocation("rm", asks=event.asks)
            case _:
                raise AssertionError(event)


def test_step_by_step() -> None:
    """Each step places the request of the table, and leaves the queues with the priorities of the table."""
    placed, expected = Placed(), dict(BEFORE)
    with fairlead.SchedulerService(automatic=False) as service:
        service.register_resource_manager("rm", after(11).config, placed)
        tell(service)
        for leaf, request, changed in STEPS:
            assert service.step() == 1
            assert placed.keys[-1] == f"{leaf}-{request}"
            expected |= changed
            with service.books("rm") as scheduler:
                queues = scheduler.cluster.partitions["default"].root.walk()
                reported = {queue.path: max(queue.reported, PRIORITY_MIN) for queue in queues}
            assert {path: reported[path] for path in expected} == expected
        assert service.step() == 0


def test_by_itself() -> None:
    """Nobody steps, and the order is the same."""
    placed = Placed()
    with fairlead.SchedulerService() as service:
        service.register_resource_manager("rm", after(11).config, placed)
        tell(service)
        assert service.settle()
    assert placed.keys == [f"{leaf}-{request}" for leaf, request, _ in STEPS]
