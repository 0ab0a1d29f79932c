"""Gangs: placeholders, what replaces them and where, what time out and lost nodes make of them."""

from __future__ import annotations

import json

import pytest
from gang_course import Gang, evicted, formed
from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, Decision, Evict, Released
from fairlead.core.model.events import (
    AddAsks,
    AddNode,
    Cause,
    Release,
    RemoveApplication,
    RemoveNode,
    SetPriority,
    UpdateNode,
)
from fairlead.core.model.lifecycle import State
from fairlead.core.model.reasons import WaitingForPlaceholder
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_APP_CREATION_TIME, TAG_REQUIRED_NODE, AskSpec, NodeSpec
from fairlead.scheduler import Scheduler

QUARTER_HOUR = 15 * 60_000


def test_an_application_runs_once_its_whole_gang_has_nodes() -> None:
    """The declared total decides, not the first placeholder."""
    g = Gang(2, 1)
    g.placeholders("p0", "p1")
    g.run()
    assert g.app.state is State.ACCEPTED
    g.do(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 1}))))
    g.run()
    assert g.app.state is State.RUNNING


def test_a_real_ask_runs_only_when_its_placeholder_is_confirmed_gone() -> None:
    """The run orders the swap; the confirmation makes the allocation."""
    g = formed(2)
    g.ask("r0")
    decided = g.run()
    assert evicted(decided) == [("p0", Cause.PLACEHOLDER_REPLACED)]
    assert not any(isinstance(d, Allocated) for d in decided)
    assert g.confirm(decided) == [Allocated("g", "r0", "n0")]
    assert g.running == {"p1": "n0", "r0": "n0"}


def test_a_second_confirmation_changes_nothing() -> None:
    """Reports may be repeated."""
    g = formed(2)
    g.ask("r0")
    decided = g.run()
    g.confirm(decided)
    assert g.confirm(decided) == []


def test_a_smaller_ask_gives_the_difference_back() -> None:
    """What the placeholder kept and the ask does not need is free at once."""
    g = Gang(4, 4)
    g.placeholders("p0", "p1", cores=2)
    g.run()
    g.ask("r0", cores=1)
    g.confirm(g.run())
    node = g.s.cluster.partitions["default"].nodes.nodes["n0"]
    assert node.available["vcore"] == 1


def test_an_ask_larger_than_its_placeholders_cancels_them_and_runs_as_a_plain_one() -> None:
    """Nothing is kept for it, so the placeholders are in its way."""
    g = formed(2)
    g.ask("r0", cores=2)
    decided = g.run()
    assert evicted(decided) == [("p0", Cause.TIMEOUT), ("p1", Cause.TIMEOUT)]
    g.confirm(decided)
    g.run()
    assert g.running == {"r0": "n0"}


def test_a_real_ask_waits_while_a_placeholder_may_still_be_replaced() -> None:
    """Even if there is room elsewhere; the reason says how many placeholders stand."""
    g = Gang(1, 1)
    g.placeholders("p0", cores=2)
    g.ask("r0")
    g.run()
    assert g.s.why("g", "r0") == WaitingForPlaceholder("t", 1, 0)


def test_withdrawing_the_last_waiting_placeholder_sets_real_asks_free() -> None:
    """A placeholder that never got a node is not waited for."""
    g = Gang(1, 1)
    g.placeholders("p0", cores=2)
    g.ask("r0")
    g.do(Release("g", "p0"))
    g.run()
    assert g.running == {"r0": "n0"}


def test_more_real_asks_than_placeholders_run_as_plain_ones_in_the_end() -> None:
    """Once every placeholder is replaced."""
    g = formed(1, 2)
    g.ask("r0", "r1")
    g.confirm(g.run())
    g.run()
    assert g.running == {"r0": "n0", "r1": "n0"}


def test_each_task_group_has_its_own_placeholders() -> None:
    """An ask never takes the place of another group's."""
    g = Gang(2, 2)
    g.placeholders("p0", task_group="a")
    g.placeholders("p1", task_group="b")
    g.run()
    g.ask("r0", task_group="b")
    assert evicted(g.run()) == [("p1", Cause.PLACEHOLDER_REPLACED)]


def test_asks_replace_in_the_order_of_their_priority() -> None:
    """Also after it was changed."""
    g = formed(1)
    g.ask("r0", "r1", priority=1)
    g.do(SetPriority("g", "r1", 5))
    decided = g.run()
    assert [d.on_behalf_of for d in decided if isinstance(d, Evict)] == ["r1"]


# -- another node -------------------------------------------------------------------------------------------------


def elsewhere() -> tuple[Gang, list[Decision]]:
    """A swap under way from `p0` on `n0` to the node that `r0` requires, `n1`."""
    g = Gang(1, 1, 1)
    g.placeholders("p0", tags={TAG_REQUIRED_NODE: "n0"})
    g.run()
    g.ask("r0", tags={TAG_REQUIRED_NODE: "n1"})
    return g, g.run()


def test_an_ask_that_the_placeholders_node_does_not_suit_goes_to_one_that_does() -> None:
    """The space there is kept from the moment the swap is ordered."""
    g, decided = elsewhere()
    g.ask("plain", task_group="")
    assert g.run() == []
    g.confirm(decided)
    assert g.running == {"r0": "n1"}


def test_it_waits_until_that_node_has_room() -> None:
    """And is looked at again when the room is made."""
    g = Gang(1, 1, 1)
    g.placeholders("p0", tags={TAG_REQUIRED_NODE: "n0"})
    g.ask("other", task_group="", tags={TAG_REQUIRED_NODE: "n1"})
    g.run()
    g.ask("r0", tags={TAG_REQUIRED_NODE: "n1"})
    assert g.run() == []
    g.do(Release("g", "other"))
    assert evicted(g.run()) == [("p0", Cause.PLACEHOLDER_REPLACED)]


def test_nothing_takes_the_place_of_a_placeholder_on_a_node_that_has_become_too_small() -> None:
    """It goes to another node with room, and waits as long as there is none; what has room where it is stays there."""
    g = formed(2)
    g.do(UpdateNode("n0", Resources({"vcore": 1})))
    g.ask("r0", "r1")
    assert evicted(g.run()) == []
    g.do(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 1}))))
    while decided := g.run():
        g.confirm(decided)
    assert g.running == {"r0": "n1", "r1": "n0"}


def test_a_node_that_becomes_too_small_during_a_swap_takes_nothing() -> None:
    """The ask waits again when its placeholder is gone."""
    g = formed(2)
    g.ask("r0")
    decided = g.run()
    g.do(UpdateNode("n0", Resources({"vcore": 1})))
    assert not any(isinstance(d, Allocated) for d in g.confirm(decided))
    assert g.running == {"p1": "n0"}
    assert [a.key for a in g.app.waiting_asks()] == ["r0"]


def test_the_loss_of_the_placeholders_node_completes_the_swap() -> None:
    """The placeholder is gone: that is the confirmation."""
    g, _ = elsewhere()
    assert Allocated("g", "r0", "n1") in g.do(RemoveNode("n0"))


def test_the_loss_of_the_asks_node_calls_the_swap_off() -> None:
    """It waits again; the placeholder, told to go, goes."""
    g, decided = elsewhere()
    g.do(RemoveNode("n1"))
    g.confirm(decided)
    assert [a.key for a in g.app.waiting_asks()] == ["r0"]
    assert g.running == {}


def test_the_loss_of_the_common_node_lets_the_ask_wait_again() -> None:
    """Both were on it."""
    g = formed(2)
    g.ask("r0")
    g.run()
    g.do(RemoveNode("n0"))
    assert g.running == {}
    g.do(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 1}))))
    g.run()
    assert g.running == {"r0": "n1"}


def test_a_withdrawn_ask_under_way_does_not_come_back() -> None:
    """The placeholder goes all the same, without being replaced."""
    g = formed(2)
    g.ask("r0")
    decided = g.run()
    g.do(Release("g", "r0"))
    g.confirm(decided)
    assert g.running == {"p1": "n0"}
    assert "r0" not in g.app.asks


def test_an_ask_under_way_that_changes_its_size_is_looked_at_anew() -> None:
    """It may not fit in the placeholder's place any longer."""
    g = formed(2)
    g.ask("r0")
    g.run()
    g.ask("r0", cores=2)
    assert [a.key for a in g.app.waiting_asks()] == ["r0"]


def test_removing_the_application_leaves_nothing() -> None:
    """With a swap under way too."""
    g = formed(2)
    g.ask("r0", "r1")
    g.s.schedule(0, 1)
    g.do(RemoveApplication("g"))
    partition = g.s.cluster.partitions["default"]
    assert not partition.applications
    assert not partition.root.allocated.get("vcore")


# -- time ---------------------------------------------------------------------------------------------------------


def test_placeholders_of_a_running_application_are_released_after_a_quarter_of_an_hour() -> None:
    """It goes on without them."""
    g = formed(2)
    g.ask("r0")
    g.confirm(g.run())
    assert evicted(g.pass_time(QUARTER_HOUR - 1)) == []
    decided = g.pass_time(1)
    assert evicted(decided) == [("p1", Cause.TIMEOUT)]
    g.confirm(decided)
    assert g.app.state is State.RUNNING


def test_the_timer_goes_by_the_application_s_own_timeout() -> None:
    """Given in milliseconds."""
    g = formed(1, timeout_ms=5000)
    assert evicted(g.pass_time(4999)) == []
    assert evicted(g.pass_time(1)) == [("p0", Cause.TIMEOUT)]


def test_the_creation_time_counts_as_the_begin() -> None:
    """So that a restart does not start the time anew."""
    g = Gang(1, 1, timeout_ms=5000, tags={TAG_APP_CREATION_TIME: "-2"})
    g.placeholders("p0")
    g.run()
    assert evicted(g.pass_time(3000)) == [("p0", Cause.TIMEOUT)]


def test_a_soft_gang_that_does_not_come_together_starts_over_with_plain_asks() -> None:
    """All it had is released; then real asks are placed one by one."""
    g = Gang(2, 1, timeout_ms=1000)
    g.placeholders("p0", "p1")
    g.run()
    decided = g.pass_time(1000)
    assert g.app.state is State.RESUMING
    assert evicted(decided) == [("p0", Cause.TIMEOUT)]
    assert [d.key for d in decided if isinstance(d, Released)] == ["p1"]
    g.confirm(decided)
    assert g.app.state is State.ACCEPTED
    g.ask("r0")
    g.run()
    assert g.running == {"r0": "n0"}


def test_a_hard_gang_that_does_not_come_together_fails() -> None:
    """Once everything it had is gone."""
    g = Gang(2, 1, style="Hard", timeout_ms=1000)
    g.placeholders("p0", "p1")
    g.run()
    decided = g.pass_time(1000)
    assert g.app.state is State.FAILING
    g.confirm(decided)
    partition = g.s.cluster.partitions["default"]
    assert [a.state for a in partition.ended.values()] == [State.FAILED]


def test_a_real_ask_that_started_is_taken_back_with_its_incomplete_gang() -> None:
    """Nothing partly started stays."""
    g = Gang(3, 2, timeout_ms=1000)
    g.placeholders("p0", "p1", "p2")
    g.run()
    g.ask("r0")
    g.confirm(g.run())
    g.confirm(g.pass_time(1000))
    assert g.running == {}
    assert g.app.state is State.ACCEPTED


def test_an_application_completes_half_a_minute_after_its_last_real_work() -> None:
    """Its left-over placeholders are released first."""
    g = formed(2)
    g.ask("r0")
    g.confirm(g.run())
    g.do(Release("g", "r0"))
    assert g.app.state is State.COMPLETING
    decided = g.pass_time(30_000)
    assert evicted(decided) == [("p1", Cause.TIMEOUT)]
    g.confirm(decided)
    assert "g" not in g.s.cluster.partitions["default"].applications


def test_a_completing_application_told_to_release_everything_is_completed_at_once() -> None:
    """Nothing more is to come."""
    g = formed(1)
    g.do(Release("g", ""))
    assert g.app.state is State.COMPLETING
    g.do(Release("g", ""))
    assert "g" not in g.s.cluster.partitions["default"].applications


@pytest.mark.parametrize("moment", ["formed", "under way", "elsewhere"])
def test_a_snapshot_in_the_middle_loses_nothing(moment: str) -> None:
    """The loaded one carries on as the one that went on."""
    g, orders = (formed(2, timeout_ms=5000), []) if moment != "elsewhere" else elsewhere()
    if moment == "under way":
        g.ask("r0")
        orders = g.run()
    other = Scheduler.load(json.loads(json.dumps(g.s.dump())))
    check_books(other)
    for order in [d for d in orders if isinstance(d, Evict)]:
        event = Release(order.application, order.key, order.cause)
        assert other.handle(event, 1) == g.s.handle(event, 1)
    late = AskSpec(application="g", key="late", resources=Resources({"vcore": 1}), task_group="t")
    for event, at_ms in ((AddAsks((late,)), 2), (Release("g", "p1"), 3)):
        assert other.handle(event, at_ms) == g.s.handle(event, at_ms)
        assert other.schedule(at_ms) == g.s.schedule(at_ms)
    assert other.schedule(6000) == g.s.schedule(6000)
    assert other.dump() == g.s.dump()
