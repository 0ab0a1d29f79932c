"""Nominated asks where rank decides: what their nomination is worth, who takes it, and when it ends."""

from __future__ import annotations

import pytest
from preempting_course import preempting
from priority_clusters import PriorityCluster, cores, labelled, on, only_on

from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, PreferredNodes, Requirement, SpreadTerm
from fairlead.core.model.decisions import Unreserved
from fairlead.core.model.events import AddAsks, Cause, DrainNode, RemoveNode, SetPriority, UpdateNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, QueueSpec
from fairlead.policy.place.nominated import Places
from fairlead.scheduler import Scheduler


def test_equal_and_lower_ones_do_not_get_the_space_that_is_held() -> None:
    """Rule 10."""
    c = PriorityCluster(nodes={"n1": 8})
    c.fill("low1", 4, 1)
    c.fill("low2", 4, 1)
    c.submit("urgent", 6, 9)
    c.run()
    c.gone("low1")
    c.submit("equal", 2, 9)
    c.submit("lower", 2, 8)
    c.run()
    assert c.s.why("equal", "equal") is not None
    assert c.s.why("lower", "lower") is not None


def test_a_higher_one_takes_the_space_and_the_first_may_preempt_again() -> None:
    """Rule 10: the nomination is cleared, nobody more is stopped for the higher one, and the first looks anew."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4})
    c.submit("low1", 4, 1)
    c.submit("low2", 4, 2)
    c.run()
    c.submit("urgent", 4, 8)
    assert c.run()[1] == ["low1"]
    c.submit("higher", 4, 9)
    _, stopped = c.run()
    assert stopped == ["low2"], "for the first, which lost its place"
    assert c.evictions()[-1].on_behalf_of == "urgent"
    assert c.nominated() == {"higher": "n2", "urgent": "n1"}
    assert [d.key for d in c.decided if isinstance(d, Unreserved)] == ["urgent"]


def test_one_that_starts_in_what_was_kept_for_a_weaker_one_has_that_look_anew_at_once() -> None:
    """What still leaves for it would not be enough: it waits for that no longer, and has other work stopped."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 2, "n3": 4})
    names = (("other", 4, 3), ("least", 2, 0), ("low1", 2, 1), ("low2", 2, 1))
    assert [c.fill(*name) for name in names] == ["n1", "n2", "n3", "n3"]
    c.submit("higher", 2, 9)
    assert c.run()[1] == ["least"]
    c.submit("wide", 4, 5)
    assert sorted(c.run()[1]) == ["low1", "low2"]
    c.gone("low1")
    started, stopped = c.run()
    assert (started, stopped) == (["higher@n3"], ["other"])
    assert c.nominated() == {"wide": "n1"}


@pytest.mark.parametrize("comes_first", [True, False], ids=["nominated elsewhere", "in its own turn"])
def test_one_that_lost_its_room_counts_as_one_for_which_nothing_was_stopped(comes_first: bool) -> None:
    """Else what it waits for later would count as stopped in vain, and it could have nothing stopped by guarantee."""
    c = PriorityCluster(nodes={"n1": 2, "n2": 4} if comes_first else {"n2": 4})
    if comes_first:
        assert c.fill("least", 2, 0) == "n1"
    assert [c.fill(name, 2, 1) for name in ("low1", "low2")] == ["n2", "n2"]
    if comes_first:
        c.submit("higher", 2, 9)
        assert c.run()[1] == ["least"]
    c.submit("wide", 4, 5)
    assert sorted(c.run()[1]) == ["low1", "low2"]
    wide = c.s.cluster.partitions["default"].applications["wide"].asks["wide"]
    assert wide.preempt_triggered
    if comes_first:
        c.gone("low1")
    else:
        c.submit("higher", 4, 9)
    c.run()
    assert (wide.nomination, wide.preempt_triggered) == (None, False)


def test_what_still_has_its_room_when_another_one_starts_beside_it_keeps_its_place() -> None:
    """Its own victim has not left yet; nothing is taken from it."""
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("low1", 2, 0)
    c.fill("low2", 2, 0)
    c.submit("first", 2, 9)
    c.run()
    c.submit("second", 2, 8)
    c.run()
    c.gone("low1")
    assert c.run() == (["first@n1"], [])
    assert [d.key for d in c.decided if isinstance(d, Unreserved)] == ["first"]
    assert c.nominated() == {"second": "n1"}
    c.gone("low2")
    assert c.run() == (["second@n1"], [])


def test_a_higher_one_that_comes_after_the_victims_are_gone_runs_at_once() -> None:
    """Rule 10: part of the space of the nominated one is free already."""
    c = PriorityCluster(nodes={"n1": 8})
    c.fill("low1", 4, 1)
    c.fill("low2", 4, 1)
    c.submit("urgent", 8, 8)
    assert sorted(c.run()[1]) == ["low1", "low2"]
    c.gone("low1")
    c.submit("higher", 4, 9)
    assert c.run() == (["higher@n1"], [])
    assert c.nominated() == {}


def test_one_that_waits_for_others_to_leave_starts_where_only_a_promise_to_weaker_work_keeps_it_off() -> None:
    """Rule 10: that promise is about another node, but keeps work like this out of the whole rack.

    Else work that is weaker than both would have the room that it leaves alone.
    """
    apart = AffinityTerm(selector=labelled("x"), topology_key="rack")
    c = PriorityCluster(nodes={"n2": 2})
    c.node("n1", 2, rack="s")
    c.node("n3", 3, rack="s")
    c.fill("low", 3, 1, grace_ms=60_000)
    c.fill("leaves", 2, 5, where=Constraints(selector=on_host("n2")), grace_ms=60_000)
    c.submit("urgent", 2, 9, where=Constraints(selector=on_host("n2")))
    c.fill("full", 2, 8)
    c.submit("promised", 3, 6, where=Constraints(anti_affinity=(apart,)))
    assert c.run()[1] == ["low"]
    c.gone("urgent", cause=Cause.FINISHED)
    c.finished("full")
    c.submit("higher", 2, 7, labels={"app": "x"})
    c.submit("weak", 2, 0)
    assert c.run() == (["higher@n1"], [])


def test_a_victim_that_ends_by_itself_first_pays_too() -> None:
    """It finishes before it is stopped: the nominated one starts at once, and nobody else goes."""
    c = PriorityCluster()
    c.fill("low", 4, 1)
    c.submit("urgent", 4, 9)
    c.run()
    c.finished("low")
    assert c.run() == (["urgent@n1"], [])


def test_a_victim_that_takes_its_time_holds_nobody_else_up() -> None:
    """Rule 11: others are placed meanwhile, and the preemptor stops nobody else."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 2})
    c.fill("low", 4, 1, grace_ms=60_000)
    c.fill("safe", 2, 20)
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["low"]
    c.finished("safe")
    c.submit("other", 2, 0)
    assert c.run() == (["other@n2"], [])
    assert c.run(50_000) == ([], [])
    c.gone("low")
    assert c.run()[0] == ["urgent@n1"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_one_that_finds_room_elsewhere_starts_where_it_likes_it_best(rule: str) -> None:
    """Two other nodes get room while its victim takes its time; it does not begin with the first in order."""
    c = PriorityCluster(nodes={"n1": 4}, rule=rule)
    c.fill("low", 4, 1, grace_ms=60_000)
    for node in ("n2", "n3"):
        c.node(node, 4)
        c.fill(f"safe-{node}", 4, 20)
    c.submit("urgent", 4, 9, where=Constraints(preferred_nodes=(PreferredNodes(1, on_host("n3")),)))
    assert c.run()[1] == ["low"]
    c.finished("safe-n2")
    c.finished("safe-n3")
    assert c.run() == (["urgent@n3"], [])


def test_of_the_room_that_is_kept_for_weaker_ones_it_takes_what_it_likes_best() -> None:
    c = PriorityCluster(nodes={"n1": 4, "n2": 4, "n3": 4})
    for node in ("n1", "n2", "n3"):
        c.fill(f"low-{node}", 4, 1, where=Constraints(selector=on_host(node)), grace_ms=60_000)
    c.submit("urgent", 4, 9, where=Constraints(preferred_nodes=(PreferredNodes(1, on_host("n2")),)))
    c.run()
    c.submit("one", 4, 5)
    c.submit("two", 4, 5)
    c.run()
    assert c.nominated() == {"urgent": "n3", "one": "n2", "two": "n1"}
    c.gone("low-n1")
    c.gone("low-n2")
    assert c.run()[0][0] == "urgent@n2"


@pytest.mark.parametrize("lost", [DrainNode("n1"), RemoveNode("n1")], ids=["drained", "lost"])
def test_a_nomination_ends_with_its_node(lost: DrainNode | RemoveNode) -> None:
    """Rule 10: the next plan is for another node."""
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("low1", 4, 1)
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["low1"]
    c.node("n2", 4)
    c.handle(SetPriority("urgent", "urgent", 9))
    c.submit("low2", 4, 10)
    assert c.run()[0] == ["low2@n2"]
    c.finished("low2")
    c.handle(lost)
    assert c.run()[0] == ["urgent@n2"]


def test_a_node_that_shrinks_under_the_nomination_ends_it() -> None:
    """The space cannot be enough any more: it is given up, and the next plan is made elsewhere."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4})
    assert c.fill("low1", 4, 1) == "n1"
    c.fill("low2", 4, 2)
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["low1"]
    c.handle(UpdateNode("n1", Resources({"vcore": 2000})))
    c.gone("low1")
    assert c.run()[1] == ["low2"]
    assert c.nominated() == {"urgent": "n2"}


def test_a_nominated_ask_that_is_resized_looks_anew() -> None:
    """What is held is not what it needs any more."""
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("low1", 2, 1)
    c.fill("low2", 2, 1)
    c.submit("urgent", 2, 9)
    assert c.run()[1] == ["low2"]
    c.handle(AddAsks((AskSpec(application="urgent", key="urgent", resources=Resources({"vcore": 4000}), priority=9),)))
    assert c.run()[1] == ["low1"]
    c.gone("low1")
    c.gone("low2")
    assert c.run()[0] == ["urgent@n1"]


def test_a_nominated_ask_whose_priority_falls_can_be_overtaken() -> None:
    """What counts is what it is now."""
    c = PriorityCluster()
    c.fill("low", 4, 1)
    c.submit("urgent", 4, 9)
    c.run()
    c.submit("other", 4, 5)
    assert c.run() == ([], [])
    c.handle(SetPriority("urgent", "urgent", 3))
    c.run()
    assert c.nominated() == {"other": "n1"}


def test_room_under_the_maximum_of_the_queue_is_kept_too() -> None:
    """A lower one of the same queue on another node must not fill the queue while the victim leaves."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(4)), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4})
    c.fill("high", 4, 20, "root.b")
    c.fill("low", 4, 1, "root.a")
    c.submit("urgent", 4, 9, "root.a")
    assert c.run()[1] == ["low"]
    c.finished("high")
    c.submit("small", 2, 0, "root.a")
    assert c.run() == ([], [])
    c.gone("low")
    started, _ = c.run()
    assert [name.partition("@")[0] for name in started] == ["urgent"]


def test_a_loaded_scheduler_keeps_nominations_and_what_they_keep() -> None:
    """After a restart the space, and the room under maxima, is held as before."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(4)), nodes={"n1": 4, "n2": 4})
    c.fill("low", 4, 1)
    c.submit("urgent", 4, 9)
    c.run()
    c.s = Scheduler.load(c.s.dump())
    c.submit("small", 2, 0)
    assert c.run() == ([], [])
    c.gone("low")
    assert len(c.run()[0]) == 1


def on_host(name: str) -> tuple[Requirement, ...]:
    return (Requirement(HOSTNAME, "In", (name,)),)


def test_by_guarantee_room_that_idle_work_left_for_one_ask_is_given_to_no_third() -> None:
    """`mine` would be stopped at once for `daemon`, which requires the node; `small` has its turn before that."""
    c = PriorityCluster(rule="guarantee")
    c.fill("idle", 4, queue="root.b", idle=True)
    c.submit("mine", 4)
    assert c.run() == ([], ["idle"])
    c.submit("small", 2, 9)
    c.submit("daemon", 4, 5, "root.b", tags=on("n1"))
    c.gone("idle")
    assert c.run()[0] in (["mine@n1"], ["daemon@n1"])


def test_what_requires_the_node_takes_the_room_of_one_that_it_must_not_be_beside() -> None:
    """Neither would start otherwise: `mine` would be stopped for `daemon`, which is kept off by what `mine` keeps."""
    c = PriorityCluster(rule="guarantee")
    c.fill("idle", 4, queue="root.b", idle=True)
    c.submit("mine", 4, labels={"app": "web"})
    assert c.run() == ([], ["idle"])
    apart = AffinityTerm(labelled("web"), HOSTNAME)
    c.submit("daemon", 4, 5, "root.b", tags=on("n1"), where=Constraints(anti_affinity=(apart,)))
    c.gone("idle")
    assert c.run()[0] == ["daemon@n1"]


def test_what_requires_the_node_takes_the_room_of_others_and_has_work_stopped_too() -> None:
    """Neither alone would be enough for `daemon`, and `mine` would be stopped for it at once."""
    c = PriorityCluster(rule="guarantee")
    c.node("n2", 8)
    c.handle(DrainNode("n2"))
    c.fill("low", 2)
    c.fill("idle", 2, queue="root.b", idle=True)
    c.submit("mine", 2, -1)
    assert c.run() == ([], ["idle"])
    c.submit("daemon", 4, 5, "root.b", tags=on("n1"))
    c.gone("idle")
    assert c.run() == ([], ["low"])
    c.gone("low")
    assert c.run()[0] == ["daemon@n1"]


def test_what_requires_the_node_takes_the_room_of_one_that_has_a_lower_priority_from_now_on() -> None:
    c = PriorityCluster(rule="guarantee")
    c.node("n2", 8)
    c.handle(DrainNode("n2"))
    for name in ("idle1", "idle2"):
        c.fill(name, 2, queue="root.b", idle=True)
    c.submit("mine", 4, 9)
    assert sorted(c.run()[1]) == ["idle1", "idle2"]
    c.gone("idle1")
    c.submit("daemon", 2, 5, "root.b", tags=on("n1"))
    assert c.run() == ([], [])
    c.handle(SetPriority("mine", "mine", 0))
    assert c.run()[0] == ["daemon@n1"]


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_what_is_kept_for_a_later_one_does_not_shut_the_earlier_one_out(rule: str) -> None:
    """`spread` may be where `first` will be only as long as as many run elsewhere, which end."""
    c = PriorityCluster(QueueSpec(name="a"), nodes={"n1": 4, "n2": 1}, rule=rule)
    here, labels = on_host("n1"), {"tier": "x"}
    evenly = SpreadTerm((Requirement("tier", "In", ("x",)),), HOSTNAME, 1, only_selected=False)
    c.fill("other", 1, where=Constraints(selector=on_host("n2")), labels=labels)
    for name in ("idle1", "idle2"):
        c.fill(name, 2, idle=True, where=Constraints(selector=here))
    c.submit("first", 2, where=Constraints(selector=here), labels=labels)
    c.submit("spread", 2, where=Constraints(selector=here, spread=(evenly,)), labels=labels)
    assert sorted(c.run()[1]) == ["idle1", "idle2"]
    c.finished("other")
    c.gone("idle1")
    assert c.run()[0] == ["first@n1"]
    c.gone("idle2")
    assert "spread@n1" not in c.run()[0]


def test_idle_work_waits_until_nothing_else_moves() -> None:
    """`mine` may start only once `daemon` has had other work stopped; idle work on another node starts after it."""
    c = PriorityCluster(nodes={"n1": 3, "n2": 3}, rule="guarantee")
    there = Constraints(selector=on_host("n1"))
    c.fill("low", 2, where=there)
    c.fill("idle", 1, queue="root.b", idle=True, where=there)
    c.fill("full", 3)
    c.submit("mine", 1, -1, where=there)
    assert c.run() == ([], ["idle"])
    c.submit("daemon", 2, 5, "root.b", tags=on("n1"))
    c.submit("left", 1, idle=True)
    c.gone("idle")
    c.finished("full")
    assert c.run() == (["mine@n1", "left@n2"], ["low"])


@pytest.mark.plain
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_is_found_once_for_those_that_are_alike_is_so_for_each(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [preempting(seed, rule) for seed in range(8)]
    of = Places.of
    monkeypatch.setattr(Places, "of", lambda places, ask: of(Places(places._partition), ask))
    assert found == [preempting(seed, rule) for seed in range(8)]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_a_weaker_one_takes_no_room_of_all_nodes_that_a_stronger_one_waits_for(rule: str) -> None:
    """Another node has become smaller than what runs there, so that all together have four cores less."""
    c = PriorityCluster(nodes={"n1": 12, "n2": 6}, rule=rule)
    for name, amount, priority, node in (("wide", 6, 9, "n2"), ("stays", 2, 9, "n1"), ("ends", 2, 9, "n1")):
        c.fill(name, amount, priority, where=only_on(node))
    for name, priority in (("low", 0), ("next", 1)):
        c.fill(name, 2, priority, where=only_on("n1"))
    c.submit("strong", 6, 8)
    c.submit("weak", 2, 7)
    assert c.run() == ([], ["low", "next"])
    c.handle(UpdateNode("n2", Resources({"vcore": 2000})))
    c.finished("ends")
    c.gone("next")
    assert c.run() == ([], [])
    c.gone("low")
    assert c.run() == (["strong@n1"], [])
